/* rd.c - see rd.h. Every getter goes through rd_take(), so there is one bounds check to audit. */
#include "base/rd.h"

#include <string.h>

struct rd rd_from(const void *p, size_t n) {
        /* Nothing may be NULL for a caller, but NULL + 0 is undefined, and NULL means "bad" in rd_bytes(). */
        return (struct rd){ .p = p ? p : (const void *) "", .left = n, .bad = false };
}

static const uint8_t *rd_take(struct rd *r, size_t n) {
        const uint8_t *at = r->p;

        if (r->bad || n > r->left) { /* compared this way round so that n cannot overflow */
                r->bad = true;
                return NULL;
        }
        r->p += n;
        r->left -= n;
        return at;
}

static uint64_t rd_be(struct rd *r, size_t n) {
        const uint8_t *at = rd_take(r, n);
        uint64_t v = 0;

        for (size_t i = 0; at && i < n; i++)
                v = v << 8 | at[i];
        return v;
}

uint8_t rd_u8(struct rd *r) {
        return (uint8_t) rd_be(r, 1);
}

uint16_t rd_u16(struct rd *r) {
        return (uint16_t) rd_be(r, 2);
}

uint32_t rd_u32(struct rd *r) {
        return (uint32_t) rd_be(r, 4);
}

uint64_t rd_u64(struct rd *r) {
        return rd_be(r, 8);
}

const void *rd_bytes(struct rd *r, size_t n) {
        return rd_take(r, n);
}

void rd_str(struct rd *r, char *dst, size_t cap) {
        size_t n = rd_u16(r);
        const uint8_t *at = rd_take(r, n);

        dst[0] = '\0';
        if (!at)
                return;
        if (n >= cap || memchr(at, '\0', n)) {
                r->bad = true;
                return;
        }
        memcpy(dst, at, n);
        dst[n] = '\0';
}

bool rd_done(const struct rd *r) {
        return !r->bad && r->left == 0;
}
