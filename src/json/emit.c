/*
 * emit.c - canonical text without a tree.
 *
 * Invariant: what is written is byte for byte what json_text() makes of it. Strings of records lose control characters,
 * which have more than one form in the wild and no business there; invalid UTF-8 becomes U+FFFD as elsewhere.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "json/json.h"
#include "json/tree.h"

static void put_string(struct buf *to, const char *s, bool keep) {
        const unsigned char *p = (const unsigned char *) s;

        buf_add(to, "\"", 1);
        while (*p) {
                size_t plain = 0, n;

                while (p[plain] >= 0x20 && p[plain] < 0x7f && p[plain] != '"' && p[plain] != '\\')
                        plain++;
                buf_add(to, p, plain);
                p += plain;
                if (*p == '"' || *p == '\\') {
                        buf_add(to, *p == '"' ? "\\\"" : "\\\\", 2);
                        p++;
                } else if (keep && *p && *p < 0x20) {
                        json_put_escape(to, (char) *p++);
                } else if (*p == 0x7f && keep) {
                        buf_add(to, p++, 1);
                } else if (*p) {
                        n = json_utf8_at(p);
                        if (n < 2) /* a control character, or a byte of no sequence */
                                buf_add(to, n ? "?" : "\xef\xbf\xbd", n ? 1 : 3);
                        else
                                buf_add(to, p, n);
                        p += n ? n : 1;
                }
        }
        buf_add(to, "\"", 1);
}

/* Comma and key. Keys out of order are a bug of ours, and one that every use would show. */
static void begin(struct json_emit *e, const char *key) {
        if (e->depth > 0) {
                const char **last = &e->last[e->depth - 1];

                if (*last)
                        buf_add(e->to, ",", 1);
                if (key && *last && strcmp(*last, key) >= 0)
                        abort();
                *last = key ? key : "";
        }
        if (key) {
                put_string(e->to, key, false);
                buf_add(e->to, ":", 1);
        }
}

static void open_with(struct json_emit *e, const char *key, const char *bracket) {
        begin(e, key);
        if (e->depth == JSON_DEPTH)
                abort();
        e->last[e->depth++] = NULL;
        buf_add(e->to, bracket, 1);
}

void json_emit_object(struct json_emit *e, const char *key) {
        open_with(e, key, "{");
}

void json_emit_array(struct json_emit *e, const char *key) {
        open_with(e, key, "[");
}

void json_emit_close(struct json_emit *e, char bracket) {
        e->depth--;
        buf_add(e->to, &bracket, 1);
}

void json_emit_str(struct json_emit *e, const char *key, const char *s) {
        begin(e, key);
        put_string(e->to, s, false);
}

void json_emit_text(struct json_emit *e, const char *key, const char *s) {
        begin(e, key);
        if (s)
                put_string(e->to, s, true);
        else
                buf_add(e->to, "null", 4);
}

void json_emit_tree(struct json_emit *e, const char *key, struct json *j) {
        begin(e, key);
        if (j)
                json_put_value(e->to, tree_raw(j));
        else
                e->to->bad = true;
        (void) json_free(j);
}

void json_emit_int(struct json_emit *e, const char *key, int64_t v) {
        begin(e, key);
        buf_addf(e->to, "%" PRId64, v);
}

void json_emit_bool(struct json_emit *e, const char *key, bool v) {
        begin(e, key);
        buf_add(e->to, v ? "true" : "false", v ? 4 : 5);
}
