/* host.c - see host.h. */
#include "base/host.h"

#include <errno.h>

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_hex(char c) {
        return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_label_char(char c) {
        return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* What inet_aton() and browsers read as part of an address: digits, or 0x and hex digits. */
static bool is_number(const char *p, size_t n) {
        bool hex = n >= 2 && p[0] == '0' && p[1] == 'x';

        for (size_t i = hex ? 2 : 0; i < n; i++)
                if (!(hex ? is_hex(p[i]) : is_digit(p[i])))
                        return false;
        return true;
}

static bool is_label(const char *p, size_t n) {
        if (n == 0 || n > HOST_LABEL_MAX || p[0] == '-' || p[n - 1] == '-')
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_label_char(p[i]))
                        return false;
        return true;
}

int host_canonical(const char *p, size_t n, char dst[HOST_NAME]) {
        char name[HOST_NAME];
        size_t start = 0;

        if (n > 0 && p[n - 1] == '.')
                n--;
        if (n == 0 || n >= HOST_NAME)
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                name[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char) (p[i] - 'A' + 'a') : p[i];
        for (size_t i = 0; i < n; i++)
                if (name[i] == '.') {
                        if (!is_label(name + start, i - start))
                                return -EINVAL;
                        start = i + 1;
                }
        if (!is_label(name + start, n - start) || is_number(name + start, n - start))
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                dst[i] = name[i];
        dst[n] = '\0';
        return 0;
}
