/*
 * json.c - JSON text in and out, and building and reading the tree.
 *
 * Depth and node count are checked on the text, before jansson allocates anything for it.
 *
 * A container into which something could not be put becomes a *wreck*: its type is one that jansson does not know,
 * which makes json_dumpb() refuse it and every later access miss. That needs no memory, so it works when there is
 * none, and builders need no error handling of their own.
 */
#include "json/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "json/tree.h"

enum { WRECK_OBJECT = 1000, WRECK_ARRAY = 1001 };

/* Values: the document, one for each comma, and one for each container that is not empty. Text that is not JSON may
 * be counted wrongly; it is refused afterwards. */
static int measure(const char *what, const char *text, size_t n, size_t max, struct err *err) {
        size_t depth = 0, nodes = 1;
        bool quoted = false, opened = false;

        for (size_t i = 0; i < n; i++) {
                char c = text[i];

                if (quoted) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                quoted = false;
                        continue;
                }
                if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
                        continue;
                if (c == ',' || (opened && c != ']' && c != '}'))
                        nodes++;
                opened = c == '[' || c == '{';
                quoted = c == '"';
                if (opened)
                        depth++;
                else if ((c == ']' || c == '}') && depth > 0)
                        depth--;
                if (depth > JSON_DEPTH)
                        return json_error(err, what, 0, "nested deeper than %d levels", JSON_DEPTH);
                if (nodes > max)
                        return json_error(err, what, 0, "more than %zu values", max);
        }
        return 0;
}

int json_parse_long(const char *what, const char *text, size_t n, size_t max, struct json **ret, struct err *err) {
        json_error_t why;
        json_t *j;
        int r = measure(what, text, n, max, err);

        if (r < 0)
                return r;
        j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
        if (!j && (json_error_code(&why) == json_error_out_of_memory || !why.text[0])) /* jansson often says nothing */
                return err_set(err, -ENOMEM, ERR_INTERNAL, "parse JSON");
        if (!j)
                return json_error(err, what, why.line > 0 ? (unsigned) why.line : 0, "not JSON: %s", why.text);
        *ret = tree_of(j);
        return 0;
}

int json_parse(const char *what, const char *text, size_t n, struct json **ret, struct err *err) {
        return json_parse_long(what, text, n, JSON_NODES, ret, err);
}

static bool is_wreck(const json_t *j) {
        return (int) j->type == WRECK_OBJECT || (int) j->type == WRECK_ARRAY;
}

struct json *json_free(struct json *j) {
        json_t *raw = tree_raw(j);

        if (raw && is_wreck(raw))
                raw->type = (int) raw->type == WRECK_OBJECT ? JSON_OBJECT : JSON_ARRAY;
        json_decref(raw);
        return NULL;
}

void json_freep(struct json **j) {
        *j = json_free(*j);
}

struct json *json_new_object(void) {
        return tree_of(json_object());
}

struct json *json_new_array(void) {
        return tree_of(json_array());
}

static void wreck(json_t *j) {
        if (json_typeof(j) == JSON_OBJECT) {
                (void) json_object_clear(j);
                j->type = (json_type) WRECK_OBJECT;
        } else if (json_typeof(j) == JSON_ARRAY) {
                (void) json_array_clear(j);
                j->type = (json_type) WRECK_ARRAY;
        }
}

/* Takes value, which may be NULL or a wreck; then the container becomes one. */
static void put(struct json *into, const char *key, struct json *value) {
        json_t *to = tree_raw(into), *v = tree_raw(value);
        bool sound = to && v && !is_wreck(v);
        int r = -1;

        if (!sound)
                (void) json_free(value);
        else
                r = key ? json_object_set_new(to, key, v) : json_array_append_new(to, v);
        if (to && r < 0)
                wreck(to);
}

void json_set(struct json *obj, const char *key, struct json *value) {
        put(obj, key, value);
}

void json_add(struct json *arr, struct json *value) {
        put(arr, NULL, value);
}

/* Length of the UTF-8 sequence at s, 0 if there is none. Overlong forms, surrogates and values above U+10FFFF do not
 * count (RFC 3629, section 4). */
size_t json_utf8_at(const unsigned char *s) {
        static const struct {
                unsigned char first, last, low, high; /* range of the first byte, then of the second */
                size_t n;
        } forms[] = {
                { 0x01, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
                { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
                { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                if (s[0] < forms[i].first || s[0] > forms[i].last)
                        continue;
                if (forms[i].n > 1 && (s[1] < forms[i].low || s[1] > forms[i].high))
                        return 0;
                for (size_t k = 2; k < forms[i].n; k++)
                        if ((s[k] & 0xc0) != 0x80)
                                return 0;
                return forms[i].n;
        }
        return 0;
}

bool json_is_utf8(const char *s) {
        const unsigned char *p = (const unsigned char *) s;

        while (*p) {
                size_t n = json_utf8_at(p);

                if (n == 0)
                        return false;
                p += n;
        }
        return true;
}

/* The string with U+FFFD for each byte that belongs to no sequence. */
static json_t *repaired(const char *s) {
        const unsigned char *p = (const unsigned char *) s;
        struct buf b = BUF_INIT(3 * strlen(s));
        json_t *j = NULL;

        while (*p) {
                size_t n = json_utf8_at(p);

                buf_add(&b, n ? (const char *) p : "\xef\xbf\xbd", n ? n : 3);
                p += n ? n : 1;
        }
        if (!b.bad)
                j = json_string(buf_str(&b));
        buf_done(&b);
        return j;
}

static struct json *string(const char *s) {
        json_t *j;

        if (!s)
                j = json_null();
        else
                j = json_is_utf8(s) ? json_string(s) : repaired(s);
        return tree_of(j);
}

void json_set_str(struct json *obj, const char *key, const char *s) {
        put(obj, key, string(s));
}

void json_add_str(struct json *arr, const char *s) {
        put(arr, NULL, string(s));
}

void json_add_int(struct json *arr, int64_t v) {
        put(arr, NULL, tree_of(json_integer(v)));
}

void json_set_int(struct json *obj, const char *key, int64_t v) {
        put(obj, key, tree_of(json_integer(v)));
}

void json_set_bool(struct json *obj, const char *key, bool v) {
        put(obj, key, tree_of(json_boolean(v)));
}

void json_set_real(struct json *obj, const char *key, double v) {
        put(obj, key, tree_of(json_real(v)));
}

struct json *json_get(const struct json *obj, const char *key) {
        return tree_of(json_object_get(tree_raw(obj), key));
}

const char *json_get_str(const struct json *obj, const char *key) {
        return json_string_value(tree_raw(json_get(obj, key)));
}

int64_t json_get_int(const struct json *obj, const char *key, int64_t otherwise) {
        const json_t *j = tree_raw(json_get(obj, key));

        return json_is_integer(j) ? json_integer_value(j) : otherwise;
}

bool json_get_bool(const struct json *obj, const char *key, bool otherwise) {
        const json_t *j = tree_raw(json_get(obj, key));

        return json_is_boolean(j) ? json_is_true(j) : otherwise;
}

double json_get_real(const struct json *obj, const char *key, double otherwise) {
        const json_t *v = tree_raw(json_get(obj, key));

        return v && json_is_number(v) ? json_number_value(v) : otherwise;
}

size_t json_len(const struct json *arr) {
        return json_is_array(arr) ? json_array_size(tree_raw(arr)) : json_object_size(tree_raw(arr));
}

struct json *json_at(const struct json *arr, size_t i) {
        return tree_of(json_array_get(tree_raw(arr), i));
}

const char *json_str(const struct json *j) {
        return json_string_value(tree_raw(j));
}

int json_each(const struct json *obj, int (*fn)(void *arg, const char *key, const struct json *value), void *arg) {
        const char *key;
        json_t *value;
        int r = 0;

        json_object_foreach(tree_raw(obj), key, value) {
                r = fn(arg, key, tree_of(value));
                if (r != 0)
                        break;
        }
        return r;
}

struct json *json_share(const struct json *j) {
        return tree_of(json_incref(tree_raw(j)));
}

struct json *json_clone(const struct json *j) {
        return tree_of(json_copy(tree_raw(j)));
}

bool json_is_object(const struct json *j) {
        return j && json_typeof(tree_raw(j)) == JSON_OBJECT;
}

bool json_is_null(const struct json *j) {
        return j && json_typeof(tree_raw(j)) == JSON_NULL;
}

bool json_is_array(const struct json *j) {
        return j && json_typeof(tree_raw(j)) == JSON_ARRAY;
}

int json_text(const struct json *j, bool pretty, char **ret, struct err *err) {
        char *text = NULL;

        if (j && pretty)
                text = json_dumps(tree_raw(j),
                                  JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_REAL_DIGITS));
        else if (j)
                text = json_canonical(tree_raw(j));
        if (!text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "build JSON: no memory, or a value that JSON cannot hold");
        *ret = text;
        return 0;
}
