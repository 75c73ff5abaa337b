/*
 * fileproto.c - see fileproto.h.
 *
 *   request     u32 flags; u64 offset, length; text path, other
 *   AP_ENTRY    u32 mode, target_mode, uid, gid; u64 size, mtime_s; u32 mtime_ns; text path, target; attributes
 *   AP_SET_XATTRS  text path, prefix; attributes
 *   attributes  u16 n, n * { text name; u16 length, bytes }
 *   AP_EVENT    u8 what, has_entry; text name
 *   AP_USAGE    u64 total, used
 *
 * Invariant: a value has one form on the wire; what a decoder accepts its encoder writes back byte for byte.
 */
#include "fileproto/fileproto.h"

#include <errno.h>
#include <string.h>

#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"

static bool is_path(const char *s) {
        return s[0] == '/' && strlen(s) < AP_PATH_MAX;
}

/* NULL if there is none. */
static const char *get_path(struct rd *r) {
        const char *s = ap_get_text(r);

        if (s && !is_path(s)) {
                r->bad = true;
                return NULL;
        }
        return s;
}

static void put_attributes(struct wr *w, const struct fp_xattr *x, uint16_t n) {
        wr_u16(w, n);
        w->bad |= n > FP_XATTRS;
        for (size_t i = 0; !w->bad && i < n; i++) {
                ap_put_text(w, x[i].name);
                wr_u16(w, x[i].n);
                wr_bytes(w, x[i].value, x[i].n);
        }
}

static uint16_t get_attributes(struct rd *r, struct fp_xattr *x) {
        uint16_t n = rd_u16(r);
        size_t sum = 0;

        if (n > FP_XATTRS)
                r->bad = true;
        for (size_t i = 0; !r->bad && i < n; i++) {
                x[i].name = ap_get_text(r);
                x[i].n = rd_u16(r);
                x[i].value = rd_bytes(r, x[i].n);
                if (r->bad || strlen(x[i].name) >= FP_XATTR_NAME || !str_has_prefix(x[i].name, "user."))
                        r->bad = true;
                else
                        sum += strlen(x[i].name) + x[i].n;
        }
        if (sum > FP_XATTR_BYTES)
                r->bad = true;
        return n;
}

void fp_put_request(struct wr *w, enum ap_type type, uint32_t id, const struct fp_request *q) {
        size_t at = ap_begin(w, type, id);

        wr_u32(w, q->flags);
        wr_u64(w, q->offset);
        wr_u64(w, q->length);
        ap_put_text(w, q->path);
        ap_put_text(w, q->other ? q->other : "");
        ap_end(w, at);
}

int fp_get_request(enum ap_type type, const void *body, size_t n, struct fp_request *ret) {
        struct rd r = rd_from(body, n);
        struct fp_request q = { .flags = rd_u32(&r) };

        q.offset = rd_u64(&r);
        q.length = rd_u64(&r);
        q.path = get_path(&r);
        q.other = ap_get_text(&r);
        if (!rd_done(&r) || (q.flags & ~(uint32_t) (FP_WITH_XATTRS | FP_RECURSIVE | FP_WITH_ENTRY)))
                return -EBADMSG;
        if (type == AP_MOVE ? !is_path(q.other) : q.other[0] != '\0')
                return -EBADMSG;
        *ret = q;
        return 0;
}

void fp_put_entry(struct wr *w, uint32_t id, const struct fp_entry *e) {
        size_t at = ap_begin(w, AP_ENTRY, id);

        wr_u32(w, e->mode);
        wr_u32(w, e->target_mode);
        wr_u32(w, e->uid);
        wr_u32(w, e->gid);
        wr_u64(w, e->size);
        wr_u64(w, (uint64_t) e->mtime_s);
        wr_u32(w, e->mtime_ns);
        ap_put_text(w, e->path);
        ap_put_text(w, e->target);
        put_attributes(w, e->xattrs, e->n_xattrs);
        ap_end(w, at);
}

int fp_get_entry(const void *body, size_t n, struct fp_entry *ret) {
        struct rd r = rd_from(body, n);
        struct fp_entry e = { .mode = rd_u32(&r) };

        e.target_mode = rd_u32(&r);
        e.uid = rd_u32(&r);
        e.gid = rd_u32(&r);
        e.size = rd_u64(&r);
        e.mtime_s = (int64_t) rd_u64(&r);
        e.mtime_ns = rd_u32(&r);
        e.path = get_path(&r);
        e.target = ap_get_text(&r);
        e.n_xattrs = get_attributes(&r, e.xattrs);
        if (!rd_done(&r) || (e.target[0] && !is_path(e.target)) || e.mtime_ns >= 1000000000)
                return -EBADMSG;
        *ret = e;
        return 0;
}

void fp_put_xattrs(struct wr *w, uint32_t id, const struct fp_xattrs *x) {
        size_t at = ap_begin(w, AP_SET_XATTRS, id);

        ap_put_text(w, x->path);
        ap_put_text(w, x->prefix);
        put_attributes(w, x->xattrs, x->n_xattrs);
        ap_end(w, at);
}

int fp_get_xattrs(const void *body, size_t n, struct fp_xattrs *ret) {
        struct rd r = rd_from(body, n);
        struct fp_xattrs x = { .path = get_path(&r) };

        x.prefix = ap_get_text(&r);
        x.n_xattrs = get_attributes(&r, x.xattrs);
        if (!rd_done(&r) || !str_has_prefix(x.prefix, "user.") || strlen(x.prefix) >= FP_XATTR_NAME)
                return -EBADMSG;
        for (size_t i = 0; i < x.n_xattrs; i++)
                if (!str_has_prefix(x.xattrs[i].name, x.prefix))
                        return -EBADMSG;
        *ret = x;
        return 0;
}

void fp_put_event(struct wr *w, uint32_t id, const struct fp_event *e) {
        size_t at = ap_begin(w, AP_EVENT, id);

        wr_u8(w, e->what);
        wr_u8(w, e->has_entry);
        ap_put_text(w, e->name);
        ap_end(w, at);
}

int fp_get_event(const void *body, size_t n, struct fp_event *ret) {
        struct rd r = rd_from(body, n);
        struct fp_event e = { .what = rd_u8(&r) };

        e.has_entry = rd_u8(&r);
        e.name = ap_get_text(&r);
        if (!rd_done(&r) || e.what < FP_CREATE || e.what > FP_OVERFLOW || e.has_entry > 1 ||
            strlen(e.name) >= AP_PATH_MAX)
                return -EBADMSG;
        *ret = e;
        return 0;
}

void fp_put_usage(struct wr *w, uint32_t id, uint64_t total_bytes, uint64_t used_bytes) {
        size_t at = ap_begin(w, AP_USAGE, id);

        wr_u64(w, total_bytes);
        wr_u64(w, used_bytes);
        ap_end(w, at);
}

int fp_get_usage(const void *body, size_t n, uint64_t *ret_total, uint64_t *ret_used) {
        struct rd r = rd_from(body, n);
        uint64_t total = rd_u64(&r), used = rd_u64(&r);

        if (!rd_done(&r) || used > total)
                return -EBADMSG;
        *ret_total = total;
        *ret_used = used;
        return 0;
}
