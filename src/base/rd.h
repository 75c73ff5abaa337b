/* rd.h - bounded reader over untrusted bytes. The only way wire bytes become integers here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rd {
        const uint8_t *p;
        size_t left;
        bool bad; /* sticky: after the first short read every getter yields 0 */
};

struct rd rd_from(const void *p, size_t n);
uint8_t rd_u8(struct rd *r);
uint16_t rd_u16(struct rd *r);
uint32_t rd_u32(struct rd *r);
uint64_t rd_u64(struct rd *r);
/* n bytes in place, or NULL and bad. Borrowed from the input. */
const void *rd_bytes(struct rd *r, size_t n);
/* A u16-length-prefixed string into dst (NUL added). Rejects longer than cap-1 and embedded NULs. */
void rd_str(struct rd *r, char *dst, size_t cap);
/* True only if nothing was short and nothing is left over. */
bool rd_done(const struct rd *r);
