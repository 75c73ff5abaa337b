/* wr.c - see wr.h. */
#include "base/wr.h"

#include <string.h>

struct wr wr_to(void *p, size_t cap) {
        return (struct wr){ .p = p, .len = 0, .cap = cap, .bad = false };
}

void wr_bytes(struct wr *w, const void *p, size_t n) {
        if (w->bad || n > w->cap - w->len) {
                w->bad = true;
                return;
        }
        if (n > 0)
                memcpy(w->p + w->len, p, n);
        w->len += n;
}

static void wr_be(struct wr *w, uint64_t v, size_t n) {
        uint8_t b[8];

        for (size_t i = 0; i < n; i++)
                b[i] = (uint8_t) (v >> (8 * (n - 1 - i)));
        wr_bytes(w, b, n);
}

void wr_u8(struct wr *w, uint8_t v) {
        wr_be(w, v, 1);
}

void wr_u16(struct wr *w, uint16_t v) {
        wr_be(w, v, 2);
}

void wr_u32(struct wr *w, uint32_t v) {
        wr_be(w, v, 4);
}

void wr_u64(struct wr *w, uint64_t v) {
        wr_be(w, v, 8);
}

void wr_str(struct wr *w, const char *s) {
        size_t n = strlen(s);

        if (n > UINT16_MAX) {
                w->bad = true;
                return;
        }
        wr_u16(w, (uint16_t) n);
        wr_bytes(w, s, n);
}
