/*
 * egressproto.c - see egressproto.h.
 *
 * Invariant: each message has one form on the wire, so what egp_get() accepts egp_put() writes back byte for byte.
 */
#include "egressproto/egressproto.h"

#include <errno.h>
#include <string.h>

#include "base/rd.h"
#include "base/wr.h"

static bool is_id(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");

        return n == ID_LEN && !s[n];
}

/* Text that reaches somebody's terminal. */
static bool is_text(const char *s) {
        for (; *s; s++)
                if (*s < ' ' || *s > '~')
                        return false;
        return true;
}

/* Names a sandbox: these three have it as their first member. */
static bool has_sandbox(enum egp_type t) {
        return t == EGP_ADD || t == EGP_UPDATE || t == EGP_REMOVE;
}

static bool is_type(uint16_t t) {
        return (t >= EGP_CONFIG && t <= EGP_PING) || (t >= EGP_READY && t <= EGP_RECORD);
}

static bool is_valid(const struct egp_message *m) {
        if (!is_type((uint16_t) m->type) || (m->request == 0) != (m->type == EGP_RECORD))
                return false;
        if (has_sandbox(m->type) && !is_id(m->sandbox))
                return false;
        if (m->type == EGP_FAILED && (!m->text[0] || !is_text(m->text)))
                return false;
        return m->type != EGP_RECORD || (m->n_record > 0 && m->n_record <= EGP_RECORD_MAX);
}

void egp_put(struct wr *w, const struct egp_message *m) {
        if (!is_valid(m)) {
                w->bad = true;
                return;
        }
        wr_u16(w, (uint16_t) m->type);
        wr_u32(w, m->request);
        if (has_sandbox(m->type))
                wr_str(w, m->sandbox);
        if (m->type == EGP_UPDATE)
                wr_u8(w, m->drop_existing);
        if (m->type == EGP_READY)
                wr_u8(w, m->with_certificate);
        if (m->type == EGP_FAILED)
                wr_str(w, m->text);
        if (m->type == EGP_RECORD)
                wr_bytes(w, m->record, m->n_record);
}

static bool get_flag(struct rd *r) {
        uint8_t v = rd_u8(r);

        r->bad = r->bad || v > 1;
        return v == 1;
}

int egp_get(const void *p, size_t n, struct egp_message *ret) {
        struct rd r = rd_from(p, n);
        struct egp_message m = { 0 };
        uint16_t type = rd_u16(&r);

        m.request = rd_u32(&r);
        if (r.bad || n > EGP_MESSAGE_MAX || !is_type(type))
                return -EBADMSG;
        m.type = (enum egp_type) type;
        if (has_sandbox(m.type))
                rd_str(&r, m.sandbox, sizeof(m.sandbox));
        if (m.type == EGP_UPDATE)
                m.drop_existing = get_flag(&r);
        if (m.type == EGP_READY)
                m.with_certificate = get_flag(&r);
        if (m.type == EGP_FAILED)
                rd_str(&r, m.text, sizeof(m.text));
        if (m.type == EGP_RECORD) {
                m.n_record = r.left;
                m.record = rd_bytes(&r, r.left);
        }
        if (!rd_done(&r) || !is_valid(&m))
                return -EBADMSG;
        *ret = m;
        return 0;
}

bool egp_n_fds(const struct egp_message *m, size_t n) {
        switch (m->type) {
        case EGP_CONFIG:
                return n == 1 || n == 2;
        case EGP_ADD:
                return n == 4;
        case EGP_UPDATE:
                return n == 1;
        case EGP_READY:
                return n == (m->with_certificate ? 2 : 1);
        case EGP_REMOVE:
        case EGP_PING:
        case EGP_OK:
        case EGP_FAILED:
        case EGP_RECORD:
                break;
        }
        return n == 0;
}
