/*
 * reply.c - see reply.h. Only records that lead from the question to an address count: aliases whose owner is the name
 * asked for, or the target of such an alias, and addresses of the last one. Everything else in a reply is ignored, so a
 * server can say something about the name it was asked for and about nothing else.
 */
#include "reply.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/wr.h"
#include "wire.h"

struct records {
        struct wire_rr rr[REPLY_RECORDS];
        ldns_rdf *target[REPLY_RECORDS]; /* of an alias */
        size_t n;
};

static void records_done(struct records *s) {
        for (size_t i = 0; i < s->n; i++) {
                wire_name_freep(&s->rr[i].owner);
                wire_name_freep(&s->target[i]);
        }
}

int reply_ask(const struct reply_question *q, uint8_t dst[REPLY_QUESTION_MAX]) {
        CLEANUP(wire_name_freep) ldns_rdf *name = wire_name_new(q->name);
        struct wr w = wr_to(dst, REPLY_QUESTION_MAX);

        if (!name)
                return -ENOMEM;
        wr_u16(&w, q->id);
        wr_u16(&w, WIRE_RD);
        wr_u16(&w, 1);
        wr_u16(&w, 0);
        wr_u32(&w, 0);
        wr_bytes(&w, ldns_rdf_data(name), ldns_rdf_size(name));
        wr_u16(&w, q->type);
        wr_u16(&w, WIRE_IN);
        return (int) w.len; /* a name has 255 bytes at most */
}

static bool same(const ldns_rdf *a, const ldns_rdf *b) {
        return ldns_dname_compare(a, b) == 0;
}

/* The target of an alias: its data must be a name and nothing more. */
static int target_read(const uint8_t *p, size_t n, const struct wire_rr *rr, ldns_rdf **ret) {
        struct rd r = { .p = p + rr->data_at, .left = n - rr->data_at };
        int code = wire_name_read(&r, p, n, ret);

        return code == 0 && n - r.left != rr->data_at + rr->n_data ? -EBADMSG : code;
}

static int records_read(struct rd *r, const uint8_t *p, size_t n, unsigned count, struct records *s) {
        int code = 0;

        for (unsigned i = 0; i < count && i < REPLY_RECORDS && code == 0; i++) {
                code = wire_rr_read(r, p, n, &s->rr[i]);
                if (code < 0)
                        return code;
                s->n++;
                if (s->rr[i].type == DNS_CNAME && s->rr[i].class == WIRE_IN)
                        code = target_read(p, n, &s->rr[i], &s->target[i]);
        }
        return code;
}

static int addresses(const uint8_t *p, const struct records *s, const ldns_rdf *owner, uint16_t type,
                     struct reply *ret) {
        size_t want = type == DNS_A ? 4 : 16;

        for (size_t i = 0; i < s->n && ret->n_addrs < DNS_ADDRS; i++) {
                const struct wire_rr *rr = &s->rr[i];
                struct addr *a = &ret->addrs[ret->n_addrs];

                if (rr->type != type || rr->class != WIRE_IN || !same(rr->owner, owner))
                        continue;
                if (rr->n_data != want)
                        return -EBADMSG;
                a->family = type == DNS_A ? ADDR_V4 : ADDR_V6;
                memcpy(a->b, p + rr->data_at, want);
                ret->ttl_s = rr->ttl < ret->ttl_s ? rr->ttl : ret->ttl_s;
                ret->n_addrs++;
        }
        return ret->n_addrs > 0 ? 0 : -ENODATA;
}

/* Index of the alias of this owner, or -1. */
static int alias(const struct records *s, const ldns_rdf *owner) {
        for (size_t i = 0; i < s->n; i++)
                if (s->target[i] && same(s->rr[i].owner, owner))
                        return (int) i;
        return -1;
}

static int walk(const uint8_t *p, const struct records *s, const ldns_rdf *name, uint16_t type, struct reply *ret) {
        for (unsigned steps = 0; steps <= REPLY_ALIASES; steps++) {
                int i, code = addresses(p, s, name, type, ret);

                if (code != -ENODATA)
                        return code;
                i = alias(s, name);
                if (i < 0)
                        return -ENODATA;
                ret->ttl_s = s->rr[i].ttl < ret->ttl_s ? s->rr[i].ttl : ret->ttl_s;
                name = s->target[i];
        }
        return -EBADMSG; /* a circle, or as good as one */
}

/* -EAGAIN unless this is what we asked, as an answer. */
static int question_check(struct rd *r, const uint8_t *p, size_t n, const struct reply_question *q, ldns_rdf **ret) {
        CLEANUP(wire_name_freep) ldns_rdf *name = wire_name_new(q->name), *asked = NULL;
        int code;

        if (!name)
                return -ENOMEM;
        code = wire_name_read(r, p, n, &asked);
        if (code < 0)
                return code == -EBADMSG ? -EAGAIN : code;
        if (!same(name, asked) || rd_u16(r) != q->type || rd_u16(r) != WIRE_IN || r->bad)
                return -EAGAIN;
        *ret = TAKE_PTR(name);
        return 0;
}

int reply_decode(const void *p, size_t n, const struct reply_question *q, struct reply *ret) {
        CLEANUP(wire_name_freep) ldns_rdf *name = NULL;
        CLEANUP(records_done) struct records s = { .n = 0 };
        struct rd r = rd_from(p, n);
        struct wire_header h = wire_header_read(&r);
        struct reply rep = { .ttl_s = UINT32_MAX };
        int code;

        if (r.bad || h.id != q->id || !(h.flags & WIRE_QR) || h.flags >> 11 & 15)
                return -EAGAIN;
        /* Some servers leave the question out when they refuse; the id and the connected socket must do then. */
        if (h.n_questions == 0 && (h.flags & 15) != 0 && (h.flags & 15) != DNS_NXDOMAIN)
                return -EIO;
        if (h.n_questions != 1)
                return -EAGAIN;
        code = question_check(&r, p, n, q, &name);
        if (code < 0)
                return code;
        if (h.flags & WIRE_TC)
                return -EMSGSIZE;
        if ((h.flags & 15) == DNS_NXDOMAIN)
                return -ENOENT;
        if ((h.flags & 15) != DNS_NOERROR)
                return -EIO;
        code = records_read(&r, p, n, h.n_answers, &s);
        if (code == 0)
                code = walk(p, &s, name, q->type, &rep);
        if (code == 0)
                *ret = rep;
        return code;
}
