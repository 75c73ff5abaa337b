/*
 * net_path.c - paths of requests, in one form.
 *
 * Proxy and server must not disagree about which resource a path names, or a prefix means nothing. So whatever is read
 * in different ways by different servers is not judged at all but refused: dot segments (also escaped, also with
 * parameters, as in "..;"), empty segments, back-slashes, escaped escapes, control characters. What is left has one
 * spelling: the characters that RFC 3986 allows in a segment stand for themselves, everything else is escaped. An
 * escaped slash is kept, since clients need it, and is read both ways.
 */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "policy/net_rules.h"

static int hex_value(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_plain(unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("-._~!$&'()*+,=:@", c));
}

static void put(char *dst, size_t *n, char c) {
        if (*n < POLICY_NET_PATH)
                dst[*n] = c;
        (*n)++;
}

/* Where the reader is within a segment. */
struct segment {
        size_t n;        /* characters before the first ';' */
        bool dots;       /* all of them are dots */
        bool parameters; /* a ';' was seen */
};

static bool is_dots(const struct segment *s) {
        return s->dots && (s->n == 1 || s->n == 2);
}

/* One character as the most lenient server sees it. False: ambiguous. */
static bool segment_feed(struct segment *s, unsigned char c) {
        if (c == '/') {
                if (is_dots(s) || s->n == 0)
                        return false;
                *s = (struct segment){ .dots = true };
        } else if (c == ';') {
                s->parameters = true;
        } else if (!s->parameters) {
                s->n++;
                s->dots = s->dots && c == '.';
        }
        return true;
}

static void write_escape(struct net_path *to, unsigned char c) {
        static const char digits[] = "0123456789ABCDEF";

        put(to->kept, &to->n, '%');
        put(to->kept, &to->n, digits[c >> 4]);
        put(to->kept, &to->n, digits[c & 15]);
}

/* The next character of *text, escaped or not. False: not a character of a path. */
static bool next(const char **text, unsigned char *ret, bool *ret_escaped) {
        const char *p = *text;
        unsigned char c = (unsigned char) *p;

        *ret_escaped = c == '%';
        if (c == '%') {
                int high = hex_value(p[1]), low = high < 0 ? -1 : hex_value(p[2]);

                if (low < 0)
                        return false;
                c = (unsigned char) (high << 4 | low);
                p += 2;
        }
        *text = p + 1;
        *ret = c;
        if (*ret_escaped)
                return c >= 0x20 && c != 0x7f && c != '%' && c != '\\';
        return c > 0x20 && c < 0x7f && c != '\\' && c != '#';
}

int net_path_read(const char *text, struct net_path *ret) {
        struct segment segment = { .dots = true };
        size_t n_bare = 0, before;
        bool escaped;
        unsigned char c;

        memset(ret, 0, sizeof(*ret));
        if (*text++ != '/')
                return -EINVAL;
        put(ret->kept, &ret->n, '/');
        put(ret->bare, &n_bare, '/');
        while (*text && *text != '?') {
                if (!next(&text, &c, &escaped) || !segment_feed(&segment, c))
                        return -EINVAL;
                before = ret->n;
                if (is_plain(c) || (!escaped && (c == '/' || c == ';')))
                        put(ret->kept, &ret->n, (char) c);
                else
                        write_escape(ret, c);
                if (c == '/')
                        put(ret->bare, &n_bare, '/');
                else if (!segment.parameters)
                        for (size_t i = before; i < ret->n && i < POLICY_NET_PATH; i++)
                                put(ret->bare, &n_bare, ret->kept[i]);
        }
        return is_dots(&segment) ? -EINVAL : 0;
}

bool net_path_below(const char *prefix, const struct net_path *path, bool strict) {
        const char *const forms[] = { path->kept, path->bare };
        size_t n = strlen(prefix);

        for (size_t i = 0; i < (strict ? 1 : ARRAY_SIZE(forms)); i++) {
                const char *rest = forms[i] + n;

                if (str_has_prefix(forms[i], prefix) && (prefix[n - 1] == '/' || *rest == '\0' || *rest == '/'))
                        return true;
        }
        return false;
}
