/* hash.h - SHA-256 as text, the form in which every digest appears in Gabion. */
#pragma once

#include <stddef.h>

enum { HASH_TEXT = 72 }; /* "sha256:" + 64 hex digits + NUL */

void hash_text(char dst[HASH_TEXT], const void *p, size_t n);
