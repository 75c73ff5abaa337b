/* str.h - bounded string helpers; the replacements for strtol, strcpy and friends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whole string, decimal, no sign, no spaces. 0 or -EINVAL, -ERANGE (above max). */
int str_to_u64(const char *s, uint64_t max, uint64_t *ret);
/* Copies all of src or nothing: 0, or -ENAMETOOLONG with dst = "". */
int str_copy(char *dst, size_t cap, const char *src);
bool str_eq(const char *a, const char *b);
bool str_has_prefix(const char *s, const char *prefix);
/* Lower-case hex, NUL-terminated; dst holds 2 * n + 1. */
void str_hex(char *dst, const void *p, size_t n);
/* Base64 with padding, NUL-terminated; dst holds STR_BASE64(n). */
#define STR_BASE64(n) (((n) + 2) / 3 * 4 + 1)
void str_base64(char *dst, const void *p, size_t n);
/* The inverse: exactly 2 * n lower-case digits at text, whatever follows them. 0 or -EINVAL. */
int str_unhex(void *dst, size_t n, const char *text);
