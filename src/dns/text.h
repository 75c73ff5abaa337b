/* text.h - lines of words, as in resolv.conf and hosts. Private to src/dns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text_word {
        const char *p;
        size_t n;
};

/*
 * The words of the next line, at most max of them; a word that begins with # or ; ends the line. Moves *at to the line
 * after. Returns the count, or -1 behind the last line.
 */
int text_line(const char **at, const char *end, struct text_word *words, int max);
bool text_is(const struct text_word *w, const char *s);
/* NUL-terminated copy; "" if it does not fit. */
void text_copy(const struct text_word *w, char *dst, size_t cap);
/* A whole file below DNS_TEXT_MAX. The caller frees *ret. Returns the length or negative errno. */
int text_read(const char *path, char **ret);
