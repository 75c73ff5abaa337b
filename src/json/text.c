/*
 * text.c - canonical text of a tree (RFC 8785, but for reals, which no canonical document of ours has): keys sorted by
 * their bytes, no blanks, control characters as \\b \\t \\n \\f \\r or \\u00xx with lower-case digits.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "json/json.h"
#include "json/tree.h"

enum { TEXT_MAX = 64 << 20 };

void json_put_escape(struct buf *to, char c) {
        static const char known[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
        const char *at = strchr(known, c);

        if (at && c)
                buf_addf(to, "\\%c", letters[at - known]);
        else
                buf_addf(to, "\\u%04x", (unsigned) (unsigned char) c);
}

void json_put_string(struct buf *to, const char *s) {
        buf_add(to, "\"", 1);
        while (*s) {
                size_t plain = 0;

                while ((unsigned char) s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
                        plain++;
                buf_add(to, s, plain);
                s += plain;
                if (*s)
                        json_put_escape(to, *s++);
        }
        buf_add(to, "\"", 1);
}

static int by_key(const void *a, const void *b) {
        const char *const *x = a, *const *y = b;

        return strcmp(*x, *y);
}

static void put_object(struct buf *to, const json_t *j) {
        size_t n = 0, all = json_object_size(j);
        AUTO_FREE const char **keys = malloc((all + 1) * sizeof(*keys));
        json_t *o = (json_t *) j;

        if (!keys) {
                to->bad = true;
                return;
        }
        for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at))
                keys[n++] = json_object_iter_key(at);
        qsort(keys, n, sizeof(*keys), by_key);
        buf_add(to, "{", 1);
        for (size_t i = 0; i < n; i++) {
                if (i > 0)
                        buf_add(to, ",", 1);
                json_put_string(to, keys[i]);
                buf_add(to, ":", 1);
                json_put_value(to, json_object_get(j, keys[i]));
        }
        buf_add(to, "}", 1);
}

static void put_real(struct buf *to, const json_t *j) {
        AUTO_FREE char *text = json_dumps(j, JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_REAL_DIGITS));

        buf_addf(to, "%s", text ? text : "");
        to->bad |= !text;
}

void json_put_value(struct buf *to, const json_t *j) {
        switch (json_typeof(j)) {
        case JSON_OBJECT:
                put_object(to, j);
                return;
        case JSON_ARRAY:
                buf_add(to, "[", 1);
                for (size_t i = 0; i < json_array_size(j); i++) {
                        if (i > 0)
                                buf_add(to, ",", 1);
                        json_put_value(to, json_array_get(j, i));
                }
                buf_add(to, "]", 1);
                return;
        case JSON_STRING:
                json_put_string(to, json_string_value(j));
                return;
        case JSON_INTEGER:
                buf_addf(to, "%" PRId64, (int64_t) json_integer_value(j));
                return;
        case JSON_REAL:
                put_real(to, j);
                return;
        case JSON_TRUE:
                buf_add(to, "true", 4);
                return;
        case JSON_FALSE:
                buf_add(to, "false", 5);
                return;
        case JSON_NULL:
                buf_add(to, "null", 4);
                return;
        default: /* a wreck (json.c) */
                to->bad = true;
        }
}

char *json_canonical(const json_t *j) {
        struct buf to = BUF_INIT(TEXT_MAX);

        json_put_value(&to, j);
        if (to.bad) {
                buf_done(&to);
                return NULL;
        }
        return to.p;
}
