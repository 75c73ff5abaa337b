/* tree.h - what the files of this component share: the cast to jansson, line tables, and the shape of errors. */
#pragma once

#include <stddef.h>

#include <jansson.h>

#undef json_is_object /* macros of jansson with the names of our functions */
#undef json_is_array
#undef json_is_null

struct buf;
struct err;
struct json;
struct json_lines;

/* The one place where our name and jansson's meet. */
static inline json_t *tree_raw(const struct json *j) {
        return (json_t *) j;
}

static inline struct json *tree_of(json_t *j) {
        return (struct json *) j;
}

enum { JSON_REAL_DIGITS = 15 };

/* Canonical text of a tree, or NULL. The caller frees it. */
char *json_canonical(const json_t *j);
/* The same into a buffer; what is left of a tree that memory did not suffice for makes it bad. */
void json_put_value(struct buf *to, const json_t *j);
/* A character that JSON must escape. */
void json_put_escape(struct buf *to, char c);
/* A string with its quotes. What JSON must escape is escaped in the one way that RFC 8785 has. */
void json_put_string(struct buf *to, const char *s);

/* Length of the UTF-8 sequence at s, 0 if there is none. */
size_t json_utf8_at(const unsigned char *s);

struct json_lines *json_lines_new(void);
/* Remembers that the value number `index` of container `in` began at line (in = NULL: the document). */
int json_lines_add(struct json_lines *l, const json_t *in, size_t index, unsigned line);
/* 0 if unknown; accepts NULL. */
unsigned json_lines_find(const struct json_lines *l, const json_t *in, size_t index);

/* "WHAT:LINE: message" (line 0: no line) with control characters replaced, since the message quotes the document and
 * will be shown on a terminal. Returns -EINVAL. */
int json_error(struct err *err, const char *what, unsigned line, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
