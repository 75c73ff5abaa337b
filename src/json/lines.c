/*
 * lines.c - where each value was written, and errors that say so.
 *
 * jansson's nodes carry no line, and null, true and false are one shared node each, so a node cannot name its place.
 * What does is (container, position): jansson keeps members in the order of insertion. The table is searched only when
 * an error is reported, hence the plain array.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "json/json.h"
#include "json/tree.h"

enum { LINES_FIRST = 64, WHAT_SHOWN = 96 };

struct json_lines {
        struct {
                const json_t *in; /* compared, never followed */
                size_t index;
                unsigned line;
        } * at;
        size_t n;
        size_t cap;
};

struct json_lines *json_lines_new(void) {
        return calloc(1, sizeof(struct json_lines));
}

struct json_lines *json_lines_free(struct json_lines *l) {
        if (l)
                free(l->at);
        free(l);
        return NULL;
}

void json_lines_freep(struct json_lines **l) {
        *l = json_lines_free(*l);
}

int json_lines_add(struct json_lines *l, const json_t *in, size_t index, unsigned line) {
        if (l->n == l->cap) {
                size_t cap = l->cap ? 2 * l->cap : LINES_FIRST;
                void *p = reallocarray(l->at, cap, sizeof(*l->at));

                if (!p)
                        return -ENOMEM;
                l->at = p;
                l->cap = cap;
        }
        l->at[l->n].in = in;
        l->at[l->n].index = index;
        l->at[l->n].line = line;
        l->n++;
        return 0;
}

unsigned json_lines_find(const struct json_lines *l, const json_t *in, size_t index) {
        for (size_t i = 0; l && i < l->n; i++)
                if (l->at[i].in == in && l->at[i].index == index)
                        return l->at[i].line;
        return 0;
}

/* Replaces what a terminal would act on: C0, DEL, and the C1 range in its two-byte UTF-8 form. */
static void disarm(char *s) {
        unsigned char *p = (unsigned char *) s;

        for (; *p; p++)
                if (*p < 0x20 || *p == 0x7f)
                        *p = '?';
                else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
                        p[0] = p[1] = '?';
}

int json_error(struct err *err, const char *what, unsigned line, const char *fmt, ...) {
        char problem[sizeof(err->msg)];
        size_t n = strlen(what);
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(problem, sizeof(problem), fmt, ap);
        va_end(ap);
        if (n > WHAT_SHOWN)
                what += n - WHAT_SHOWN; /* the end of a path says more than its beginning */
        if (line > 0)
                (void) err_set(err, -EINVAL, ERR_INVALID, "%s:%u: %s", what, line, problem);
        else
                (void) err_set(err, -EINVAL, ERR_INVALID, "%s: %s", what, problem);
        disarm(err->msg);
        return -EINVAL;
}
