/* uri.c - hosts, paths and query strings: small pure readers, each with one meaning or none. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "http/http.h"

enum { LABEL_MAX = 63, PORT_TEXT = 6 };

static int hex(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char) (c | 0x20);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_name_byte(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/* Letters, digits, '-' and '_' in labels; one dot may end it. A last label that is a number makes it an IPv4 address,
 * and then only the dotted quad is one: 127.1 and 0x7f000001 mean an address to some readers and a name to others. */
static bool is_name(const char *host) {
        const char *label = host, *s = host;
        bool numeric = true;
        struct in_addr a;

        for (;; s++) {
                if (is_name_byte(*s))
                        continue;
                if ((*s && *s != '.') || s == label || s - label > LABEL_MAX)
                        return false;
                if (!*s || !s[1])
                        break;
                label = s + 1;
        }
        if (label[0] == '0' && label[1] == 'x')
                return false;
        for (s = label; *s && *s != '.'; s++)
                numeric = numeric && *s >= '0' && *s <= '9';
        return !numeric || inet_pton(AF_INET, host, &a) == 1;
}

static bool is_ipv6(const char *s, size_t n) {
        char text[INET6_ADDRSTRLEN];
        struct in6_addr a;

        if (n < 4 || n - 2 >= sizeof(text) || s[n - 1] != ']')
                return false;
        memcpy(text, s + 1, n - 2);
        text[n - 2] = '\0';
        return inet_pton(AF_INET6, text, &a) == 1;
}

int http_parse_host(const char *s, char host[HTTP_HOST_MAX + 1], uint16_t *ret_port) {
        const char *end = *s == '[' ? strchr(s, ']') : strchrnul(s, ':');
        char text[HTTP_HOST_MAX + 1];
        uint64_t port = 0;
        size_t n;

        if (!end)
                return -EINVAL;
        if (*s == '[')
                end++;
        n = (size_t) (end - s);
        if (n == 0 || n > HTTP_HOST_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                text[i] = (char) (s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 0x20 : s[i]);
        text[n] = '\0';
        if (*s == '[' ? !is_ipv6(text, n) : !is_name(text))
                return -EINVAL;
        if (*end && (*end != ':' || strlen(end) > PORT_TEXT || str_to_u64(end + 1, UINT16_MAX, &port) < 0 || port == 0))
                return -EINVAL;
        memcpy(host, text, n + 1);
        *ret_port = (uint16_t) port;
        return 0;
}

/* The byte at s[0] or the escape there; 0 for what is no byte of a string. *used: how much of n that was. */
static char decode_one(const char *s, size_t n, size_t *used) {
        int high, low;

        *used = 1;
        if (*s != '%')
                return *s;
        high = n > 2 ? hex(s[1]) : -1;
        low = n > 2 ? hex(s[2]) : -1;
        if (high < 0 || low < 0)
                return 0;
        *used = 3;
        return (char) (high << 4 | low);
}

static int decode(const char *s, size_t n, bool plus, char *dst, size_t cap) {
        size_t len = 0, used;

        for (size_t i = 0; i < n; i += used) {
                char c = plus && s[i] == '+' ? ' ' : decode_one(s + i, n - i, &used);

                if (plus && s[i] == '+')
                        used = 1;
                if (!c || len + 1 >= cap) {
                        dst[0] = '\0';
                        return c ? -ENAMETOOLONG : -EINVAL;
                }
                dst[len++] = c;
        }
        dst[len] = '\0';
        return 0;
}

int http_percent_decode(const char *s, size_t n, char *dst, size_t cap) {
        return decode(s, n, false, dst, cap);
}

int http_path_next(const char **path, char *dst, size_t cap) {
        const char *s = *path, *end;
        int r;

        if (*s != '/')
                return *s ? -EINVAL : 0;
        end = strchrnul(++s, '/');
        r = decode(s, (size_t) (end - s), false, dst, cap);
        if (r < 0)
                return r;
        *path = end;
        return 1;
}

/* One segment. The last one may be empty: "/a/" names a folder. */
static bool is_plain_segment(const char *s, size_t n, bool last) {
        size_t dots = 0, len = 0, used;

        for (size_t i = 0; i < n; i += used, len++) {
                char c = decode_one(s + i, n - i, &used);

                if (!c || c == '/' || c == '\\')
                        return false;
                dots += c == '.';
        }
        return len == 0 ? last : dots != len || len > 2;
}

bool http_path_is_plain(const char *path) {
        while (*path == '/') {
                const char *end = strchrnul(path + 1, '/');

                if (!is_plain_segment(path + 1, (size_t) (end - path) - 1, !*end))
                        return false;
                path = end;
                if (!*path)
                        return true;
        }
        return false;
}

int http_query_next(const char **query, char *name, size_t name_cap, char *value, size_t value_cap) {
        const char *s, *end, *equals;
        int r;

        for (s = *query; *s == '&'; s++)
                ;
        if (!*s)
                return 0;
        end = strchrnul(s, '&');
        equals = memchr(s, '=', (size_t) (end - s));
        if (!equals)
                equals = end;
        r = decode(s, (size_t) (equals - s), true, name, name_cap);
        if (r == 0)
                r = decode(equals + (equals < end), (size_t) (end - equals) - (equals < end), true, value, value_cap);
        if (r < 0)
                return r;
        *query = end;
        return 1;
}
