/* hash.c - SHA-256 by libmd: small, static, no start-up cost (docs/decisions/003-libmd.md). */
#include "base/hash.h"

#include <sha2.h>
#include <stdint.h>

#include "base/str.h"

void hash_text(char dst[HASH_TEXT], const void *p, size_t n) {
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA2_CTX ctx;

        SHA256Init(&ctx);
        SHA256Update(&ctx, p, n);
        SHA256Final(digest, &ctx);
        (void) str_copy(dst, HASH_TEXT, "sha256:");
        str_hex(dst + 7, digest, sizeof(digest));
}
