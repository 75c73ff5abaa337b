/* text.c - see text.h. */
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "dns/dns.h"

static bool is_blank(char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

int text_line(const char **at, const char *end, struct text_word *words, int max) {
        const char *p = *at, *line_end;
        int n = 0;

        if (p >= end)
                return -1;
        line_end = memchr(p, '\n', (size_t) (end - p));
        *at = line_end ? line_end + 1 : end;
        line_end = line_end ? line_end : end;
        while (n < max) {
                const char *start;

                while (p < line_end && is_blank(*p))
                        p++;
                if (p == line_end || *p == '#' || *p == ';')
                        break;
                for (start = p; p < line_end && !is_blank(*p);)
                        p++;
                words[n++] = (struct text_word){ start, (size_t) (p - start) };
        }
        return n;
}

bool text_is(const struct text_word *w, const char *s) {
        return w->n == strlen(s) && memcmp(w->p, s, w->n) == 0;
}

void text_copy(const struct text_word *w, char *dst, size_t cap) {
        size_t n = w->n < cap ? w->n : 0;

        memcpy(dst, w->p, n);
        dst[n] = '\0';
}

int text_read(const char *path, char **ret) {
        AUTO_FREE char *text = malloc(DNS_TEXT_MAX);
        int n;

        if (!text)
                return -ENOMEM;
        n = fd_read_at(AT_FDCWD, path, text, DNS_TEXT_MAX);
        if (n >= 0)
                *ret = TAKE_PTR(text);
        return n;
}
