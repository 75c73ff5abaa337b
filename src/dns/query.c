/* query.c - what a sandbox asks, decoded strictly. Whatever is odd gets the rcode that ends it at once. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "dns/dns.h"
#include "wire.h"

enum { EDNS_MIN = 512 };

static int refuse(struct dns_query *ret, const struct dns_query *q, enum dns_rcode rcode, struct err *err,
                  const char *why) {
        *ret = *q;
        ret->rcode = rcode;
        return err_set(err, -EBADMSG, ERR_PEER, "DNS query: %s", why);
}

/* Name, type and class, with the name also as it was written. 0 or -EBADMSG, -ENOMEM. */
static int question_read(struct rd *r, const uint8_t *p, size_t n, struct dns_query *q, uint16_t *ret_class,
                         ldns_rdf **ret_name) {
        CLEANUP(wire_name_freep) ldns_rdf *name = NULL;
        size_t before = r->left, len;
        const uint8_t *fixed;
        int code = wire_name_read(r, p, n, &name);

        if (code < 0)
                return code;
        len = ldns_rdf_size(name);
        fixed = rd_bytes(r, 4);
        /* There is nothing before the question to which compression could point. */
        if (!fixed || before - r->left != len + 4)
                return -EBADMSG;
        memcpy(q->question, ldns_rdf_data(name), len);
        memcpy(q->question + len, fixed, 4);
        q->n_question = len + 4;
        q->type = (uint16_t) (fixed[0] << 8 | fixed[1]);
        *ret_class = (uint16_t) (fixed[2] << 8 | fixed[3]);
        *ret_name = TAKE_PTR(name);
        return 0;
}

/* RFC 6891. Its options are nothing to us. */
static int edns_read(struct rd *r, struct dns_query *q, unsigned *ret_version) {
        uint8_t owner = rd_u8(r);
        uint16_t type = rd_u16(r), size = rd_u16(r);
        uint32_t ttl = rd_u32(r);

        (void) rd_bytes(r, rd_u16(r));
        if (r->bad || owner != 0 || type != WIRE_OPT)
                return -EBADMSG;
        q->edns = true;
        q->edns_do = ttl & 0x8000;
        q->edns_bytes = size < EDNS_MIN ? EDNS_MIN : size;
        *ret_version = ttl >> 16 & 0xff;
        return 0;
}

int dns_query_decode(const void *p, size_t n, struct dns_query *ret, struct err *err) {
        CLEANUP(wire_name_freep) ldns_rdf *name = NULL;
        struct rd r = rd_from(p, n);
        struct wire_header h = wire_header_read(&r);
        struct dns_query q = { .id = h.id };
        unsigned version = 0;
        uint16_t class = 0;
        int code;

        if (r.bad || (h.flags & WIRE_QR))
                return err_set(err, -ENOMSG, ERR_PEER, "DNS query: %s", r.bad ? "too short" : "it is an answer");
        q.opcode = h.flags >> 11 & 15;
        q.rd = h.flags & WIRE_RD;
        q.cd = h.flags & WIRE_CD;
        if (q.opcode != 0)
                return refuse(ret, &q, DNS_NOTIMP, err, "an operation other than a question");
        if (n > DNS_QUERY_MAX)
                return refuse(ret, &q, DNS_FORMERR, err, "too long");
        if (h.n_questions != 1 || h.n_answers != 0 || h.n_authorities != 0 || h.n_additional > 1)
                return refuse(ret, &q, DNS_FORMERR, err, "exactly one question is expected");
        code = question_read(&r, p, n, &q, &class, &name);
        if (code == -ENOMEM)
                return refuse(ret, &q, DNS_SERVFAIL, err, "out of memory");
        if (code < 0)
                return refuse(ret, &q, DNS_FORMERR, err, "malformed question");
        if ((h.n_additional == 1 && edns_read(&r, &q, &version) < 0) || !rd_done(&r))
                return refuse(ret, &q, DNS_FORMERR, err, "malformed after the question");
        if (version != 0)
                return refuse(ret, &q, DNS_BADVERS, err, "unknown EDNS version");
        if (class != WIRE_IN)
                return refuse(ret, &q, DNS_REFUSED, err, "a class other than IN");
        if (wire_name_text(name, q.name) < 0)
                return refuse(ret, &q, DNS_REFUSED, err, "not a host name");
        *ret = q;
        return 0;
}

int dns_ptr_address(const char *name, struct addr *ret) {
        static const char suffix[] = ".in-addr.arpa";
        const char *part[4];
        char text[ADDR_TEXT];
        unsigned n = 0;
        size_t len = strlen(name), body;

        if (len < sizeof(suffix) || !str_eq(name + len - (sizeof(suffix) - 1), suffix))
                return -EINVAL;
        body = len - (sizeof(suffix) - 1);
        for (size_t i = 0; i < body; i++)
                if (i == 0 || name[i - 1] == '.') {
                        if (n == 4)
                                return -EINVAL;
                        part[n++] = name + i;
                }
        if (n != 4 || body > 15)
                return -EINVAL;
        (void) snprintf(text, sizeof(text), "%.*s.%.*s.%.*s.%.*s", (int) strcspn(part[3], "."), part[3],
                        (int) strcspn(part[2], "."), part[2], (int) strcspn(part[1], "."), part[1],
                        (int) strcspn(part[0], "."), part[0]);
        return addr_parse(text, ret);
}
