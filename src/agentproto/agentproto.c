/*
 * agentproto.c - framing and the simple frames; spawn.c and start.c have the others. See agentproto.h.
 *
 * Invariant: each value has one form on the wire, so what a decoder accepts its encoder writes back byte for byte (the
 * fuzz targets check this), and a caller gets either all of a body or -EBADMSG.
 */
#include "agentproto/agentproto.h"

#include <errno.h>
#include <string.h>

#include "base/rd.h"
#include "base/wr.h"

enum {
        LENGTH_BYTES = 4, /* the length field does not count itself */
        ERRNO_MAX = 4095, /* the kernel's: larger values cannot be told from addresses */
        SIGNAL_MAX = 64,
};

static bool is_type(uint16_t t) {
        return (t >= AP_CONFIGURE && t <= AP_GO) || (t >= AP_STAT && t <= AP_DISK) ||
               (t >= AP_STARTED && t <= AP_USAGE) || (t >= AP_READY && t <= AP_HERE);
}

int ap_frame(const void *p, size_t n, struct ap_head *ret) {
        struct rd r = rd_from(p, n);
        uint32_t length = rd_u32(&r);
        uint16_t type;
        uint32_t id;

        /* The length is judged as soon as it is there: a peer must not make us wait for a frame we would refuse. */
        if (!r.bad && (length < AP_HEAD - LENGTH_BYTES || length > AP_FRAME_MAX - LENGTH_BYTES))
                return -EBADMSG;
        type = rd_u16(&r);
        if (!r.bad && !is_type(type))
                return -EBADMSG;
        id = rd_u32(&r);
        if (r.bad || n < length + LENGTH_BYTES)
                return 0;
        *ret = (struct ap_head){ .length = length + LENGTH_BYTES, .type = (enum ap_type) type, .id = id };
        return 1;
}

void ap_head_put(void *p, enum ap_type type, uint32_t id, size_t body) {
        struct wr w = wr_to(p, AP_HEAD);

        wr_u32(&w, (uint32_t) (body + AP_HEAD - LENGTH_BYTES));
        wr_u16(&w, (uint16_t) type);
        wr_u32(&w, id);
}

size_t ap_begin(struct wr *w, enum ap_type type, uint32_t id) {
        size_t at = w->len;
        uint8_t head[AP_HEAD];

        ap_head_put(head, type, id, 0);
        wr_bytes(w, head, sizeof(head));
        return at;
}

void ap_end(struct wr *w, size_t at) {
        struct wr length;

        if (w->bad || w->len - at > AP_FRAME_MAX) {
                w->bad = true;
                return;
        }
        length = wr_to(w->p + at, LENGTH_BYTES);
        wr_u32(&length, (uint32_t) (w->len - at - LENGTH_BYTES));
}

void ap_put_text(struct wr *w, const char *s) {
        size_t n = strlen(s);

        if (n >= AP_FRAME_MAX) {
                w->bad = true;
                return;
        }
        wr_u32(w, (uint32_t) n);
        wr_bytes(w, s, n + 1);
}

const char *ap_get_text(struct rd *r) {
        size_t n = rd_u32(r);
        const char *s = rd_bytes(r, n + 1);

        if (!s)
                return NULL;
        if (strnlen(s, n + 1) != n) { /* a NUL too early, or none at all */
                r->bad = true;
                return NULL;
        }
        return s;
}

void ap_put_u32(struct wr *w, enum ap_type type, uint32_t id, uint32_t v) {
        size_t at = ap_begin(w, type, id);

        wr_u32(w, v);
        ap_end(w, at);
}

void ap_put_empty(struct wr *w, enum ap_type type, uint32_t id) {
        ap_end(w, ap_begin(w, type, id));
}

void ap_put_configure(struct wr *w, uint64_t keep_caps) {
        size_t at = ap_begin(w, AP_CONFIGURE, 0);

        wr_u64(w, keep_caps);
        ap_end(w, at);
}

void ap_put_resize(struct wr *w, uint32_t id, uint16_t rows, uint16_t columns) {
        size_t at = ap_begin(w, AP_RESIZE, id);

        wr_u16(w, rows);
        wr_u16(w, columns);
        ap_end(w, at);
}

void ap_put_exit(struct wr *w, uint32_t id, const struct ap_exit *e) {
        size_t at = ap_begin(w, AP_EXITED, id);

        wr_u8(w, e->signalled);
        wr_u32(w, e->code);
        wr_u64(w, e->user_us);
        wr_u64(w, e->system_us);
        wr_u64(w, e->max_rss_kib);
        ap_end(w, at);
}

void ap_put_error(struct wr *w, uint32_t id, uint32_t err_no, const char *step) {
        size_t at = ap_begin(w, AP_ERROR, id);

        wr_u32(w, err_no);
        wr_str(w, step);
        ap_end(w, at);
}

void ap_put_ready(struct wr *w, const struct ap_ready *r) {
        size_t at = ap_begin(w, AP_READY, r->id);

        wr_u32(w, r->securebits);
        wr_u32(w, (uint32_t) r->landlock_errno);
        wr_u32(w, (uint32_t) r->scope_errno);
        wr_str(w, r->status);
        ap_end(w, at);
}

int ap_get_u32(const void *body, size_t n, uint32_t *ret) {
        struct rd r = rd_from(body, n);
        uint32_t v = rd_u32(&r);

        if (!rd_done(&r))
                return -EBADMSG;
        *ret = v;
        return 0;
}

int ap_get_configure(const void *body, size_t n, uint64_t *ret) {
        struct rd r = rd_from(body, n);
        uint64_t v = rd_u64(&r);

        if (!rd_done(&r))
                return -EBADMSG;
        *ret = v;
        return 0;
}

int ap_get_resize(const void *body, size_t n, uint16_t *rows, uint16_t *columns) {
        struct rd r = rd_from(body, n);
        uint16_t a = rd_u16(&r), b = rd_u16(&r);

        if (!rd_done(&r))
                return -EBADMSG;
        *rows = a;
        *columns = b;
        return 0;
}

int ap_get_exit(const void *body, size_t n, struct ap_exit *ret) {
        struct rd r = rd_from(body, n);
        struct ap_exit e = { .signalled = rd_u8(&r) };

        e.code = rd_u32(&r);
        e.user_us = rd_u64(&r);
        e.system_us = rd_u64(&r);
        e.max_rss_kib = rd_u64(&r);
        if (!rd_done(&r) || e.signalled > 1)
                return -EBADMSG;
        if (e.signalled ? e.code < 1 || e.code > SIGNAL_MAX : e.code > UINT8_MAX)
                return -EBADMSG;
        *ret = e;
        return 0;
}

/* Text from an agent ends up in messages on somebody's terminal, so control characters are refused on arrival. */
static bool is_text(const char *s, const char *also) {
        for (; *s; s++)
                if ((*s < ' ' || *s > '~') && !strchr(also, *s))
                        return false;
        return true;
}

int ap_get_error(const void *body, size_t n, uint32_t *err_no, char *step, size_t cap) {
        struct rd r = rd_from(body, n);
        uint32_t v = rd_u32(&r);

        rd_str(&r, step, cap);
        if (!rd_done(&r) || v < 1 || v > ERRNO_MAX || !is_text(step, "")) {
                step[0] = '\0';
                return -EBADMSG;
        }
        *err_no = v;
        return 0;
}

int ap_get_output(const void *body, size_t n, unsigned *stream, const void **bytes, size_t *n_bytes) {
        struct rd r = rd_from(body, n);
        unsigned s = rd_u8(&r);

        /* An empty piece is refused because it would cost its sender no credit: it could be sent for ever. */
        if (r.bad || s < 1 || s > 2 || r.left < 1 || r.left > AP_CHUNK)
                return -EBADMSG;
        *stream = s;
        *bytes = r.p;
        *n_bytes = r.left;
        return 0;
}

/* The body of a datagram that must be exactly one frame of the given type. */
static int datagram(const void *p, size_t n, enum ap_type type, struct rd *ret, uint32_t *ret_id) {
        struct ap_head head;

        if (ap_frame(p, n, &head) != 1 || head.length != n || head.type != type)
                return -EBADMSG;
        *ret = rd_from((const uint8_t *) p + AP_HEAD, n - AP_HEAD);
        *ret_id = head.id;
        return 0;
}

int ap_get_ready(const void *p, size_t n, struct ap_ready *ret) {
        uint32_t id, securebits, landlock, scope;
        struct rd r;

        if (datagram(p, n, AP_READY, &r, &id) < 0)
                return -EBADMSG;
        securebits = rd_u32(&r);
        landlock = rd_u32(&r);
        scope = rd_u32(&r);
        rd_str(&r, ret->status, sizeof(ret->status));
        if (!rd_done(&r) || landlock > ERRNO_MAX || scope > ERRNO_MAX || !is_text(ret->status, "\n\t")) {
                ret->status[0] = '\0'; /* it is large, so it is read in place; nobody may take it for an answer */
                return -EBADMSG;
        }
        ret->id = id;
        ret->securebits = securebits;
        ret->landlock_errno = (int32_t) landlock;
        ret->scope_errno = (int32_t) scope;
        return 0;
}

int ap_get_exec_failed(const void *p, size_t n, uint32_t *err_no) {
        struct rd r;
        uint32_t id, v;

        if (datagram(p, n, AP_EXEC_FAILED, &r, &id) < 0)
                return -EBADMSG;
        v = rd_u32(&r);
        if (!rd_done(&r) || v < 1 || v > ERRNO_MAX)
                return -EBADMSG;
        *err_no = v;
        return 0;
}
