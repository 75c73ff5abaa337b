/*
 * keep.c - see keep.h.
 *
 * The memfd mirrors a buffer in memory: an entry is u8 kind, str sandbox (a CA has ""), str text. Adding writes the new
 * entry behind the others, so a process that is killed in between leaves whole entries and at most one that is cut,
 * which the next one ignores.
 */
#include "egress/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"

enum { KEEP_CA = 1, KEEP_NAME = 2, TEXT_MAX = 8192, BYTES_MAX = 64 << 20 };

struct keep {
        int fd;
        struct buf bytes;
        char ca[TEXT_MAX];
};

struct entry {
        uint8_t kind;
        char sandbox[ID_TEXT], text[TEXT_MAX];
};

/* False at the end, or at an entry that was cut. */
static bool next(struct rd *r, struct entry *e) {
        e->kind = rd_u8(r);
        rd_str(r, e->sandbox, sizeof(e->sandbox));
        rd_str(r, e->text, sizeof(e->text));
        return !r->bad;
}

static int write_at(struct keep *k, size_t from, struct err *err) {
        while (from < k->bytes.len) {
                ssize_t n = pwrite(k->fd, k->bytes.p + from, k->bytes.len - from, (off_t) from);

                if (n < 0)
                        return err_set(err, -errno, ERR_INTERNAL, "keep: write: %s", strerror(errno));
                from += (size_t) n;
        }
        return 0;
}

static int add(struct keep *k, uint8_t kind, const char *sandbox, const char *text, struct err *err) {
        uint8_t bytes[TEXT_MAX + ID_TEXT + 8];
        struct wr w = wr_to(bytes, sizeof(bytes));
        size_t from = k->bytes.len;

        wr_u8(&w, kind);
        wr_str(&w, sandbox);
        wr_str(&w, text);
        if (!w.bad && strlen(text) < TEXT_MAX)
                buf_add(&k->bytes, bytes, w.len);
        if (w.bad || k->bytes.bad || strlen(text) >= TEXT_MAX)
                return err_set(err, -EFBIG, ERR_LIMIT, "keep: too much to remember");
        return write_at(k, from, err);
}

/* Whole entries of the process before. */
static int load(struct keep *k, struct err *err) {
        AUTO_FREE char *text = NULL;
        struct entry e;
        struct stat st;
        struct rd r;
        ssize_t n;
        size_t whole = 0;

        if (fstat(k->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > BYTES_MAX)
                return err_set(err, -EBADMSG, ERR_PEER, "keep: not what a process of ours left");
        text = malloc((size_t) st.st_size + 1);
        n = text ? pread(k->fd, text, (size_t) st.st_size, 0) : -1;
        if (n < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "keep: cannot be read");
        r = rd_from(text, (size_t) n);
        while (next(&r, &e)) {
                whole = (size_t) n - r.left;
                if (e.kind == KEEP_CA)
                        (void) str_copy(k->ca, sizeof(k->ca), e.text);
        }
        buf_add(&k->bytes, text, whole);
        return k->bytes.bad ? err_set(err, -ENOMEM, ERR_INTERNAL, "keep: out of memory") : 0;
}

int keep_new(int from_fd, struct keep **ret, struct err *err) {
        struct keep *k = calloc(1, sizeof(*k));
        int r = 0;

        if (!k)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "keep: out of memory");
        k->bytes = BUF_INIT(BYTES_MAX);
        k->fd = from_fd >= 0 ? from_fd : memfd_create("gabion-egress", MFD_CLOEXEC);
        if (k->fd < 0)
                r = err_set(err, -errno, ERR_INTERNAL, "keep: memfd: %s", strerror(errno));
        else if (from_fd >= 0)
                r = load(k, err);
        if (r < 0) {
                if (from_fd >= 0)
                        k->fd = -1;
                keep_free(k);
                return r;
        }
        *ret = k;
        return 0;
}

struct keep *keep_free(struct keep *k) {
        if (!k)
                return NULL;
        own_closep(&k->fd);
        explicit_bzero(k->ca, sizeof(k->ca));
        if (k->bytes.p)
                explicit_bzero(k->bytes.p, k->bytes.len);
        buf_done(&k->bytes);
        free(k);
        return NULL;
}

int keep_fd(const struct keep *k) {
        return k->fd;
}

const char *keep_ca(const struct keep *k) {
        return k->ca;
}

int keep_set_ca(struct keep *k, const char *pem, struct err *err) {
        int r = add(k, KEEP_CA, "", pem, err);

        return r < 0 ? r : str_copy(k->ca, sizeof(k->ca), pem);
}

int keep_add_name(struct keep *k, const char sandbox[ID_TEXT], const char *name, struct err *err) {
        return add(k, KEEP_NAME, sandbox, name, err);
}

int keep_names(const struct keep *k, const char sandbox[ID_TEXT],
               int (*fn)(void *arg, const char *name, struct err *err), void *arg, struct err *err) {
        struct rd r = rd_from(k->bytes.p, k->bytes.len);
        struct entry e;
        int failed = 0;

        while (failed == 0 && next(&r, &e))
                if (e.kind == KEEP_NAME && str_eq(e.sandbox, sandbox))
                        failed = fn(arg, e.text, err);
        return failed;
}

int keep_remove(struct keep *k, const char sandbox[ID_TEXT], struct err *err) {
        struct rd r = rd_from(k->bytes.p, k->bytes.len);
        size_t from = 0, to = 0;
        struct entry e;

        while (next(&r, &e)) {
                size_t end = k->bytes.len - r.left;

                if (e.kind != KEEP_NAME || !str_eq(e.sandbox, sandbox)) {
                        memmove(k->bytes.p + to, k->bytes.p + from, end - from);
                        to += end - from;
                }
                from = end;
        }
        if (to == k->bytes.len)
                return 0;
        k->bytes.len = to;
        /* Cut first: a process that is killed here leaves fewer names, never names of another sandbox. */
        if (ftruncate(k->fd, 0) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "keep: %s", strerror(errno));
        return write_at(k, 0, err);
}
