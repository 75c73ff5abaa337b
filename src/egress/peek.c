/* peek.c - see peek.h. */
#include "egress/peek.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3, METHOD_MAX = 20 };

/* " HTTP/1.0" or " HTTP/1.1" at the end of the line. */
static bool ends_in_version(const char *p, size_t n) {
        static const char version[] = " HTTP/1.";
        const size_t len = sizeof(version) - 1;

        return n > len + 1 && memcmp(p + n - len - 1, version, len) == 0 && (p[n - 1] == '0' || p[n - 1] == '1');
}

enum peek_kind peek_kind(const void *bytes, size_t n) {
        const char *p = bytes, *end;
        size_t method = 0;

        if (n == 0)
                return PEEK_MORE;
        if ((uint8_t) p[0] == TLS_HANDSHAKE)
                return n == 1 ? PEEK_MORE : p[1] == TLS_MAJOR ? PEEK_TLS : PEEK_OTHER;
        while (method < n && method < METHOD_MAX && ((p[method] >= 'A' && p[method] <= 'Z') || p[method] == '-'))
                method++;
        if (method == n)
                return PEEK_MORE;
        if (method == 0 || p[method] != ' ')
                return PEEK_OTHER;
        end = memchr(p, '\n', n < PEEK_LINE_MAX ? n : PEEK_LINE_MAX);
        if (!end)
                return n < PEEK_LINE_MAX ? PEEK_MORE : PEEK_OTHER;
        n = (size_t) (end - p);
        /* A bare LF is looked at, too: the strict parser then refuses it, where it would otherwise pass unseen. */
        if (p[n - 1] == '\r')
                n--;
        return ends_in_version(p, n) ? PEEK_HTTP : PEEK_OTHER;
}
