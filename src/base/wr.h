/* wr.h - bounded writer into a caller's buffer; the mirror of rd.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr {
        uint8_t *p;
        size_t len;
        size_t cap;
        bool bad; /* sticky: something did not fit, and nothing more is written */
};

struct wr wr_to(void *p, size_t cap);
void wr_u8(struct wr *w, uint8_t v);
void wr_u16(struct wr *w, uint16_t v);
void wr_u32(struct wr *w, uint32_t v);
void wr_u64(struct wr *w, uint64_t v);
void wr_bytes(struct wr *w, const void *p, size_t n);
/* u16 length, then the bytes. Longer than 65535 is an overflow. */
void wr_str(struct wr *w, const char *s);
