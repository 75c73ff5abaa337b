/* str.c - see str.h. */
#include "base/str.h"

#include <errno.h>
#include <string.h>

int str_to_u64(const char *s, uint64_t max, uint64_t *ret) {
        uint64_t v = 0;

        if (!*s)
                return -EINVAL;
        for (; *s; s++) {
                unsigned d = (unsigned) (*s - '0');

                if (d > 9)
                        return -EINVAL;
                if (v > (UINT64_MAX - d) / 10)
                        return -ERANGE;
                v = v * 10 + d;
        }
        if (v > max)
                return -ERANGE;
        *ret = v;
        return 0;
}

int str_copy(char *dst, size_t cap, const char *src) {
        size_t n = strlen(src);

        if (n >= cap) {
                dst[0] = '\0';
                return -ENAMETOOLONG;
        }
        memcpy(dst, src, n + 1);
        return 0;
}

bool str_eq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

bool str_has_prefix(const char *s, const char *prefix) {
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

void str_hex(char *dst, const void *p, size_t n) {
        static const char digits[] = "0123456789abcdef";
        const uint8_t *b = p;

        for (size_t i = 0; i < n; i++) {
                dst[2 * i] = digits[b[i] >> 4];
                dst[2 * i + 1] = digits[b[i] & 15];
        }
        dst[2 * n] = '\0';
}

void str_base64(char *dst, const void *p, size_t n) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const uint8_t *b = p;

        for (size_t i = 0; i < n; i += 3) {
                uint32_t v =
                        (uint32_t) b[i] << 16 | (i + 1 < n ? (uint32_t) b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);

                *dst++ = digits[v >> 18];
                *dst++ = digits[v >> 12 & 63];
                *dst++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
                *dst++ = i + 2 < n ? digits[v & 63] : '=';
        }
        *dst = '\0';
}

static int digit_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int str_unhex(void *dst, size_t n, const char *text) {
        uint8_t *b = dst;

        for (size_t i = 0; i < n; i++) {
                int high = digit_value(text[2 * i]), low = high < 0 ? -1 : digit_value(text[2 * i + 1]);

                if (low < 0)
                        return -EINVAL;
                b[i] = (uint8_t) (high << 4 | low);
        }
        return 0;
}
