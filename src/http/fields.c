/* fields.c - looking things up in a head: headers by name, and values that are lists. */
#include <string.h>
#include <strings.h>

#include "http/http.h"

enum { WEIGHT_ONE = 1000, WEIGHT_UNSAID = 1001 };

const char *http_header(const struct http_head *head, const char *name, size_t *at) {
        for (size_t i = at ? *at : 0; i < head->n_headers; i++)
                if (strcasecmp(head->headers[i].name, name) == 0) {
                        if (at)
                                *at = i + 1;
                        return head->headers[i].value;
                }
        return NULL;
}

static size_t blanks(const char *s) {
        return strspn(s, " \t");
}

/* The length of the element at s, up to a comma outside of quotes. */
static size_t element(const char *s) {
        bool quoted = false;
        size_t n = 0;

        for (; s[n] && (quoted || s[n] != ','); n++) {
                if (s[n] == '"')
                        quoted = !quoted;
                else if (quoted && s[n] == '\\' && s[n + 1])
                        n++;
        }
        return n;
}

/* The first of the list's elements (or the next after *list) whose name is token; its parameters, or NULL. */
static const char *find(const char *list, const char *token) {
        size_t n = strlen(token);

        while (*list) {
                size_t len;

                list += blanks(list);
                len = element(list);
                if (len >= n && strncasecmp(list, token, n) == 0) {
                        const char *rest = list + n + blanks(list + n);

                        if (!*rest || *rest == ',' || *rest == ';')
                                return rest;
                }
                list += len;
                list += *list == ',';
        }
        return NULL;
}

bool http_list_has(const char *list, const char *token) {
        return find(list, token) != NULL;
}

/* "q=0.5" in thousandths. What is no weight counts as none: 0. */
static unsigned weight(const char *s) {
        unsigned v = 0, scale = WEIGHT_ONE;

        if (*s != '0' && *s != '1')
                return 0;
        v = (unsigned) (*s++ - '0') * WEIGHT_ONE;
        if (*s == '.')
                for (s++; *s >= '0' && *s <= '9' && scale > 1; s++) {
                        scale /= 10;
                        v += (unsigned) (*s - '0') * scale;
                }
        return v > WEIGHT_ONE ? 0 : v;
}

static unsigned weight_of(const char *list, const char *token) {
        const char *s = find(list, token);

        if (!s)
                return WEIGHT_UNSAID;
        for (; *s == ';'; s += strcspn(s, ";,")) {
                s++;
                s += blanks(s);
                if ((*s == 'q' || *s == 'Q') && s[1] == '=')
                        return weight(s + 2);
        }
        return WEIGHT_ONE;
}

unsigned http_list_weight(const char *list, const char *token) {
        unsigned w = weight_of(list, token);

        if (w == WEIGHT_UNSAID)
                w = weight_of(list, "*");
        return w == WEIGHT_UNSAID ? 0 : w;
}

bool http_media_is(const char *value, const char *type) {
        const char *rest = find(value, type);

        return rest && *rest != ',' && strncasecmp(value, type, strlen(type)) == 0;
}
