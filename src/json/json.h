/*
 * json.h - one tree and one strict decoder for JSON (wire) and YAML (files). The only user of jansson and libyaml.
 *
 * `struct json` is jansson's json_t under our name, so that nobody else includes <jansson.h>. Numbers are integers or
 * reals; duplicate keys, aliases, tags, NaN, NUL, invalid UTF-8, depth over JSON_DEPTH and more values than JSON_NODES
 * are refused. A document is an object or an array.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json;       /* reference counted; json_free() drops one */
struct json_lines; /* where the values of one YAML document were written; valid while its tree is unchanged */

enum { JSON_DEPTH = 16, JSON_NODES = 20000 };

/* Parses JSON text of n bytes. `what` names it in errors. */
int json_parse(const char *what, const char *text, size_t n, struct json **ret, struct err *err);
/* The same with a limit of the caller's own in place of JSON_NODES. */
int json_parse_long(const char *what, const char *text, size_t n, size_t max, struct json **ret, struct err *err);
/*
 * Parses one YAML document: plain scalars are null (also `~` and nothing), true, false, JSON's numbers, or else
 * strings; quoted scalars are strings. ret_lines may be NULL; otherwise the caller owns *ret_lines.
 */
int json_parse_yaml(const char *what, const char *text, size_t n, struct json **ret, struct json_lines **ret_lines,
                    struct err *err);
struct json *json_free(struct json *j);
void json_freep(struct json **j);
struct json_lines *json_lines_free(struct json_lines *l);
void json_lines_freep(struct json_lines **l);

/*
 * Building. All accept NULL (out of memory) and then fail as a whole at json_text(). Hand a child over only when it
 * is complete. A string that is not UTF-8 is kept with U+FFFD for each bad byte, so that nobody can suppress a record
 * by the name of a file.
 */
struct json *json_new_object(void); /* not json_object(): jansson exports a function of that name */
struct json *json_new_array(void);
void json_set(struct json *obj, const char *key, struct json *value); /* takes value */
void json_set_str(struct json *obj, const char *key, const char *s);  /* NULL becomes null */
void json_set_int(struct json *obj, const char *key, int64_t v);
void json_set_bool(struct json *obj, const char *key, bool v);
void json_set_real(struct json *obj, const char *key, double v);
void json_add(struct json *arr, struct json *value); /* takes value */
void json_add_str(struct json *arr, const char *s);
void json_add_int(struct json *arr, int64_t v);
/* One more owner of the same value, for json_set() and json_add(): it must not change any more. Accepts NULL. */
struct json *json_share(const struct json *j);
/* A container of its own, with the same members or elements, which are shared. */
struct json *json_clone(const struct json *j);

/* Reading; NULL or the default when absent or of another type. Borrowed. */
struct json *json_get(const struct json *obj, const char *key);
const char *json_get_str(const struct json *obj, const char *key);
int64_t json_get_int(const struct json *obj, const char *key, int64_t otherwise);
bool json_get_bool(const struct json *obj, const char *key, bool otherwise);
double json_get_real(const struct json *obj, const char *key, double otherwise); /* an integer, too */
size_t json_len(const struct json *arr); /* elements of an array, members of an object */
struct json *json_at(const struct json *arr, size_t i);
/* A string's text, else NULL. */
const char *json_str(const struct json *j);
/* The members of an object; stops when fn returns non-zero, and returns that. */
int json_each(const struct json *obj, int (*fn)(void *arg, const char *key, const struct json *value), void *arg);
bool json_is_object(const struct json *j);
bool json_is_array(const struct json *j);
bool json_is_null(const struct json *j);

/* Canonical text: sorted keys, no spaces. Pretty: two spaces of indent, keys as set. Reals have 15 digits. The caller
 * frees *ret. */
int json_text(const struct json *j, bool pretty, char **ret, struct err *err);
/* True if s is UTF-8 (what json_set_str() keeps unchanged). */
bool json_is_utf8(const char *s);

/* --- canonical text member by member, for those who write many documents. Keys of an object must come sorted (else
 * abort()) and live until it is closed; key = NULL for the document and in arrays. --- */
struct json_emit {
        struct buf *to;
        size_t depth;
        const char *last[JSON_DEPTH];
};
void json_emit_object(struct json_emit *e, const char *key);
void json_emit_array(struct json_emit *e, const char *key);
void json_emit_close(struct json_emit *e, char bracket);
void json_emit_str(struct json_emit *e, const char *key, const char *s);  /* control characters become '?' */
void json_emit_text(struct json_emit *e, const char *key, const char *s); /* they stay; NULL becomes null */
void json_emit_int(struct json_emit *e, const char *key, int64_t v);
void json_emit_bool(struct json_emit *e, const char *key, bool v);
void json_emit_tree(struct json_emit *e, const char *key, struct json *j); /* takes j */

/* --- field tables: the one way a document becomes a struct --- */
enum field_type {
        FIELD_STR,
        FIELD_U32,
        FIELD_U64,
        FIELD_BOOL,
        FIELD_ENUM,
        FIELD_OBJECT,
        FIELD_LIST,
        FIELD_TEXT,
        FIELD_ANY
};

/* A place in a document. The caller fills the first two members for the document itself; field_decode() makes the
 * others for each member and element that it hands to a decoder. */
struct field_ctx {
        const char *what;               /* file name for errors, or "request" */
        const struct json_lines *lines; /* NULL: errors carry no line */
        const struct field_ctx *up;     /* the place of the container; NULL for the document */
        const struct json *in;          /* the container */
        const char *key;                /* in an object; NULL for an element of a list */
        size_t index;
};

struct field {
        const char *key;
        enum field_type type;
        size_t offset; /* into the struct */
        size_t size;   /* STR: capacity; U32, U64: greatest value; LIST: most elements, 0 = any number */
        uint64_t min;  /* U32, U64: least value */
        bool required;
        const char *const *names; /* ENUM: NULL-terminated; the value is the index, stored as int */
        /* OBJECT, LIST (called for each element, index in order), TEXT (a string or number) and ANY:
         * decodes value into the struct at `at` (LIST: base, the others: base + offset). */
        int (*decode)(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err);
};

/* Decodes an object by table. An unknown key, a missing required key or a wrong type is -EINVAL, and the message
 * is "WHAT:LINE: path.key: problem; allowed: ...". Members that were read before the failure stay written. */
int field_decode(const struct field_ctx *ctx, const struct json *obj, const struct field *fields, size_t n, void *into,
                 struct err *err);
/* Scalar as text whether it was written as string or number ("512M", 1.5, 256); for FIELD_TEXT decoders. */
int field_text(const struct json *value, char *dst, size_t cap);
/* An error at the place ctx; returns -EINVAL. */
int field_error(const struct field_ctx *ctx, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
