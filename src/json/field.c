/*
 * field.c - a document becomes a struct, by table.
 *
 * Every member of the document must be in the table and of its type; nothing is ignored, because a typo in a policy
 * must not be a silent no-op. Places are chained on the stack (struct field_ctx), so the path of an error is known
 * without being stored anywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "json/tree.h"

enum {
        KEY_MAX = 32,   /* longest key that is compared for a suggestion */
        KEY_SHOWN = 48, /* of a key in a message */
        PATH_SHOWN = 112,
        REAL_DIGITS = 17, /* always enough to tell doubles apart */
        NOT_THERE = -1,
};

/* --- errors --- */

static size_t path_put(const struct field_ctx *ctx, char *dst, size_t cap) {
        size_t n;
        int k;

        if (!ctx->up)
                return 0;
        n = path_put(ctx->up, dst, cap);
        if (ctx->key)
                k = snprintf(dst + n, cap - n, "%s%.*s", n > 0 ? "." : "", KEY_SHOWN, ctx->key);
        else
                k = snprintf(dst + n, cap - n, "[%zu]", ctx->index);
        n += k > 0 ? (size_t) k : 0;
        return n < cap ? n : cap - 1;
}

/* A member that is not there has no line of its own: then it is that of what should hold it. */
static unsigned place_line(const struct field_ctx *ctx) {
        unsigned line = 0;

        for (; ctx && line == 0; ctx = ctx->up)
                line = json_lines_find(ctx->lines, tree_raw(ctx->in), ctx->index);
        return line;
}

int field_error(const struct field_ctx *ctx, struct err *err, const char *fmt, ...) {
        char problem[sizeof(err->msg)], path[PATH_SHOWN] = "";
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(problem, sizeof(problem), fmt, ap);
        va_end(ap);
        (void) path_put(ctx, path, sizeof(path));
        return json_error(err, ctx->what, place_line(ctx), "%s%s%s", path, *path ? ": " : "", problem);
}

/* Levenshtein distance; anything longer than KEY_MAX is far away. */
static size_t distance(const char *a, const char *b) {
        size_t row[KEY_MAX + 1], n = strlen(b);

        if (strlen(a) > KEY_MAX || n > KEY_MAX)
                return KEY_MAX;
        for (size_t k = 0; k <= n; k++)
                row[k] = k;
        for (size_t i = 1; a[i - 1]; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t k = 1; k <= n; k++) {
                        size_t best = diagonal + (a[i - 1] != b[k - 1]);

                        diagonal = row[k];
                        if (row[k] + 1 < best)
                                best = row[k] + 1;
                        if (row[k - 1] + 1 < best)
                                best = row[k - 1] + 1;
                        row[k] = best;
                }
        }
        return row[n];
}

static int unknown_key(const struct field_ctx *ctx, const struct field *fields, size_t n, struct err *err) {
        const char *near = NULL;
        size_t best = 3; /* at most two slips of the finger */
        char hint[KEY_MAX + 24] = "", allowed[192] = "";
        size_t len = 0;

        for (size_t i = 0; i < n; i++) {
                size_t d = distance(ctx->key, fields[i].key);
                int k = snprintf(allowed + len, sizeof(allowed) - len, " %s", fields[i].key);

                len += k > 0 && (size_t) k < sizeof(allowed) - len ? (size_t) k : 0;
                if (d < best && d < strlen(fields[i].key)) {
                        best = d;
                        near = fields[i].key;
                }
        }
        if (near)
                (void) snprintf(hint, sizeof(hint), "did you mean '%s'? ", near);
        return field_error(ctx, err, "unknown key; %sallowed:%s", hint, allowed);
}

/* --- values --- */

int field_text(const struct json *value, char *dst, size_t cap) {
        const json_t *j = tree_raw(value);
        int n = -1;

        if (json_is_string(j))
                return str_copy(dst, cap, json_string_value(j));
        if (json_is_integer(j)) {
                n = snprintf(dst, cap, "%" PRId64, (int64_t) json_integer_value(j));
        } else if (json_is_real(j)) {
                double v = json_real_value(j);

                /* The shortest text that reads back as the same number, which is what was written. */
                for (int digits = 1; digits <= REAL_DIGITS; digits++) {
                        n = snprintf(dst, cap, "%.*g", digits, v);
                        if (n < 0 || (size_t) n >= cap || strtod(dst, NULL) == v)
                                break;
                }
        } else {
                return -EINVAL;
        }
        return n >= 0 && (size_t) n < cap ? 0 : -ENAMETOOLONG;
}

static int decode_str(const struct field_ctx *ctx, const struct field *f, const json_t *v, void *at, struct err *err) {
        if (!json_is_string(v))
                return field_error(ctx, err, "must be a string%s", json_is_number(v) ? "; put it in quotes" : "");
        if (json_string_length(v) >= f->size)
                return field_error(ctx, err, "must be shorter than %zu bytes", f->size);
        return str_copy(at, f->size, json_string_value(v));
}

static int decode_int(const struct field_ctx *ctx, const struct field *f, const json_t *v, void *at, struct err *err) {
        json_int_t i = json_integer_value(v);

        if (!json_is_integer(v))
                return field_error(ctx, err, "must be a whole number");
        if (i < 0 || (uint64_t) i < f->min || (uint64_t) i > f->size)
                return field_error(ctx, err, "must be between %" PRIu64 " and %zu", f->min, f->size);
        if (f->type == FIELD_U32)
                *(uint32_t *) at = (uint32_t) i;
        else
                *(uint64_t *) at = (uint64_t) i;
        return 0;
}

static int decode_enum(const struct field_ctx *ctx, const struct field *f, const json_t *v, void *at, struct err *err) {
        const char *s = json_string_value(v);
        char allowed[128] = "";
        size_t len = 0;

        for (int i = 0; f->names[i]; i++) {
                int k = snprintf(allowed + len, sizeof(allowed) - len, " %s", f->names[i]);

                len += k > 0 && (size_t) k < sizeof(allowed) - len ? (size_t) k : 0;
                if (s && str_eq(s, f->names[i])) {
                        *(int *) at = i;
                        return 0;
                }
        }
        return field_error(ctx, err, "must be one of:%s", allowed);
}

static int decode_list(const struct field_ctx *ctx, const struct field *f, const json_t *v, void *base,
                       struct err *err) {
        size_t n = json_array_size(v);

        if (json_typeof(v) != JSON_ARRAY)
                return field_error(ctx, err, "must be a list");
        if (f->size > 0 && n > f->size)
                return field_error(ctx, err, "must have at most %zu elements", f->size);
        for (size_t i = 0; i < n; i++) {
                struct field_ctx place = { ctx->what, ctx->lines, ctx, tree_of((json_t *) v), NULL, i };
                int r = f->decode(&place, json_at(place.in, i), base, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_one(const struct field_ctx *ctx, const struct field *f, const json_t *v, void *into,
                      struct err *err) {
        void *at = (char *) into + f->offset;

        switch (f->type) {
        case FIELD_STR:
                return decode_str(ctx, f, v, at, err);
        case FIELD_U32:
        case FIELD_U64:
                return decode_int(ctx, f, v, at, err);
        case FIELD_BOOL:
                if (!json_is_boolean(v))
                        return field_error(ctx, err, "must be true or false");
                *(bool *) at = json_is_true(v);
                return 0;
        case FIELD_ENUM:
                return decode_enum(ctx, f, v, at, err);
        case FIELD_OBJECT:
                if (json_typeof(v) != JSON_OBJECT)
                        return field_error(ctx, err, "must be a mapping (key: value)");
                break;
        case FIELD_LIST:
                return decode_list(ctx, f, v, into, err);
        case FIELD_TEXT:
                if (!json_is_string(v) && !json_is_number(v))
                        return field_error(ctx, err, "must be a string or a number");
                break;
        case FIELD_ANY:
                break;
        }
        return f->decode(ctx, tree_of((json_t *) v), at, err);
}

int field_decode(const struct field_ctx *ctx, const struct json *obj, const struct field *fields, size_t n, void *into,
                 struct err *err) {
        struct field_ctx place = { ctx->what, ctx->lines, ctx, obj, NULL, 0 };
        json_t *raw = tree_raw(obj), *value;

        if (!json_is_object(obj))
                return field_error(ctx, err, "must be a mapping (key: value)");
        json_object_foreach(raw, place.key, value) {
                size_t i = 0;
                int r;

                while (i < n && !str_eq(fields[i].key, place.key))
                        i++;
                r = i < n ? decode_one(&place, &fields[i], value, into, err) : unknown_key(&place, fields, n, err);
                if (r < 0)
                        return r;
                place.index++;
        }
        place.index = (size_t) NOT_THERE;
        for (size_t i = 0; i < n; i++) {
                place.key = fields[i].key;
                if (fields[i].required && !json_get(obj, place.key))
                        return field_error(&place, err, "is required");
        }
        return 0;
}
