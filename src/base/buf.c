/* buf.c - see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool buf_room(struct buf *b, size_t n) {
        size_t want = b->cap ? b->cap : 256;
        char *p;

        if (b->bad || n > b->max || b->len > b->max - n) {
                b->bad = true;
                return false;
        }
        if (b->len + n + 1 <= b->cap)
                return true;
        while (want < b->len + n + 1)
                want *= 2;
        p = realloc(b->p, want);
        if (!p) {
                b->bad = true;
                return false;
        }
        b->p = p;
        b->cap = want;
        return true;
}

void buf_add(struct buf *b, const void *p, size_t n) {
        if (!buf_room(b, n))
                return;
        if (n > 0)
                memcpy(b->p + b->len, p, n);
        b->len += n;
        b->p[b->len] = '\0';
}

void buf_addf(struct buf *b, const char *fmt, ...) {
        size_t room = b->cap - b->len;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(b->p ? b->p + b->len : NULL, room, fmt, ap);
        va_end(ap);
        if (n < 0 || !buf_room(b, (size_t) n)) {
                if (b->p)
                        b->p[b->len] = '\0';
                return;
        }
        if ((size_t) n >= room) { /* it did not fit */
                va_start(ap, fmt);
                (void) vsnprintf(b->p + b->len, b->cap - b->len, fmt, ap);
                va_end(ap);
        }
        b->len += (size_t) n;
}

void buf_eat(struct buf *b, size_t n) {
        if (n > b->len)
                n = b->len;
        if (n == 0)
                return;
        b->len -= n;
        memmove(b->p, b->p + n, b->len + 1);
}

const char *buf_str(const struct buf *b) {
        return b->p ? b->p : "";
}

void buf_done(struct buf *b) {
        free(b->p);
        *b = BUF_INIT(b->max);
}
