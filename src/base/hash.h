/* hash.h - SHA-256 as text, the form in which digests appear in Gabion, and as bytes for trees of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_TEXT = 72, HASH_BYTES = 32, HASH_HEX = 65 }; /* text: "sha256:" + 64 hex digits + NUL */

struct hash_part {
        const void *p;
        size_t n;
};

void hash_text(char dst[HASH_TEXT], const void *p, size_t n);
/* The digest itself, of several pieces one after the other. */
void hash_parts(uint8_t dst[HASH_BYTES], const struct hash_part *parts, size_t n);
/* Are n bytes the same? Takes the same time whatever the answer, for comparing secrets. */
bool hash_equal(const void *a, const void *b, size_t n);
