/*
 * answer.c - replies built from nothing but the question and our own values. Records name their owner by a pointer to
 * the question, so there is no compression to compute.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "dns/dns.h"
#include "wire.h"

enum { UDP_PLAIN = 512, OPTION_EDE = 15, EDE_PROHIBITED = 18 };

static bool fits(const struct dns_query *q, const struct addr *a) {
        return (q->type == DNS_A && a->family == ADDR_V4) || (q->type == DNS_AAAA && a->family == ADDR_V6);
}

static void record(struct wr *w, uint16_t type, uint32_t ttl_s, const void *data, size_t n) {
        wr_u16(w, WIRE_POINTER_TO_QUESTION);
        wr_u16(w, type);
        wr_u16(w, WIRE_IN);
        wr_u32(w, ttl_s);
        wr_u16(w, (uint16_t) n);
        wr_bytes(w, data, n);
}

/* How many records it wrote. */
static uint16_t records(struct wr *w, const struct dns_query *q, const struct dns_answer *a, const ldns_rdf *ptr) {
        uint16_t n = 0;

        for (size_t i = 0; i < a->n_addrs && i < DNS_ADDRS; i++)
                if (fits(q, &a->addrs[i])) {
                        record(w, q->type, a->ttl_s, a->addrs[i].b, a->addrs[i].family == ADDR_V4 ? 4 : 16);
                        n++;
                }
        if (ptr) {
                record(w, DNS_PTR, a->ttl_s, ldns_rdf_data(ptr), ldns_rdf_size(ptr));
                n++;
        }
        return n;
}

static void header(struct wr *w, const struct dns_query *q, const struct dns_answer *a, uint16_t n, bool cut) {
        unsigned flags = WIRE_QR | WIRE_RA | (q->opcode & 15u) << 11 | (a->rcode & 15u);

        flags |= (q->rd ? WIRE_RD : 0) | (q->cd ? WIRE_CD : 0) | (cut ? WIRE_TC : 0);
        wr_u16(w, q->id);
        wr_u16(w, (uint16_t) flags);
        wr_u16(w, q->n_question > 0);
        wr_u16(w, n);
        wr_u16(w, 0);
        wr_u16(w, q->edns);
}

static void edns(struct wr *w, const struct dns_query *q, const struct dns_answer *a) {
        size_t n = a->prohibited ? strnlen(a->prohibited, DNS_WHY_MAX) : 0;

        wr_u8(w, 0);
        wr_u16(w, WIRE_OPT);
        wr_u16(w, DNS_UDP_MAX);
        wr_u32(w, (uint32_t) a->rcode >> 4 << 24 | (q->edns_do ? 0x8000 : 0));
        wr_u16(w, (uint16_t) (n > 0 ? 6 + n : 0));
        if (n > 0) {
                wr_u16(w, OPTION_EDE);
                wr_u16(w, (uint16_t) (2 + n));
                wr_u16(w, EDE_PROHIBITED);
                wr_bytes(w, a->prohibited, n);
        }
}

int dns_answer_build(const struct dns_query *q, const struct dns_answer *a, bool tcp, uint8_t *dst, size_t cap,
                     struct err *err) {
        CLEANUP(wire_name_freep) ldns_rdf *ptr = NULL;
        size_t limit = q->edns_bytes > UDP_PLAIN ? q->edns_bytes : UDP_PLAIN;
        bool cut = false;

        if (limit > DNS_UDP_MAX)
                limit = DNS_UDP_MAX;
        if (a->ptr && q->type == DNS_PTR) {
                ptr = wire_name_new(a->ptr);
                if (!ptr)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "DNS answer: out of memory");
        }
        for (;;) {
                struct wr head = wr_to(dst, cap), w = wr_to(dst, cap);
                uint16_t n = 0;

                header(&w, q, a, 0, cut);
                wr_bytes(&w, q->question, q->n_question);
                if (!cut && a->rcode == DNS_NOERROR && q->n_question > 0)
                        n = records(&w, q, a, ptr);
                if (q->edns)
                        edns(&w, q, a);
                header(&head, q, a, n, cut);
                if (w.bad)
                        return err_set(err, -EMSGSIZE, ERR_INTERNAL, "DNS answer: longer than %zu bytes", cap);
                if (tcp || w.len <= limit)
                        return (int) w.len;
                cut = true; /* without records it is below 512 */
        }
}
