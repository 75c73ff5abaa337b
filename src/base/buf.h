/* buf.h - growable byte buffer with a ceiling fixed at birth. Always NUL-terminated behind its length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
        char *p;
        size_t len;
        size_t cap;
        size_t max;
        bool bad; /* sticky: the ceiling was hit or memory ran out */
};

#define BUF_INIT(ceiling) ((struct buf){ .max = (ceiling) })

void buf_add(struct buf *b, const void *p, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drops n bytes from the front. */
void buf_eat(struct buf *b, size_t n);
/* Contents as a string; "" while empty. Borrowed until the next change. */
const char *buf_str(const struct buf *b);
void buf_done(struct buf *b);
