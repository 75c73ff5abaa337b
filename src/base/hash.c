/* hash.c - SHA-256 by libmd: small, static, no start-up cost (docs/decisions/003-libmd.md). */
#include "base/hash.h"

#include <sha2.h>

#include "base/str.h"

void hash_parts(uint8_t dst[HASH_BYTES], const struct hash_part *parts, size_t n) {
        SHA2_CTX ctx;

        SHA256Init(&ctx);
        for (size_t i = 0; i < n; i++)
                SHA256Update(&ctx, parts[i].p, parts[i].n);
        SHA256Final(dst, &ctx);
}

void hash_text(char dst[HASH_TEXT], const void *p, size_t n) {
        const struct hash_part all = { p, n };
        uint8_t digest[HASH_BYTES];

        hash_parts(digest, &all, 1);
        (void) str_copy(dst, HASH_TEXT, "sha256:");
        str_hex(dst + 7, digest, sizeof(digest));
}

bool hash_equal(const void *a, const void *b, size_t n) {
        const volatile uint8_t *x = a, *y = b; /* volatile: no shortcut may be put in */
        uint8_t differ = 0;

        for (size_t i = 0; i < n; i++)
                differ = (uint8_t) (differ | (x[i] ^ y[i]));
        return differ == 0;
}
