/*
 * multipart.c - multipart/form-data from strangers. See multipart.h.
 *
 * Invariant: the same bytes give the same parts however they are cut. Data is passed on up to where a mark might begin;
 * heads and marks are looked at only when they are whole.
 */
#include "envd/multipart.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

enum { AT_START, AT_MARK, IN_HEAD, IN_DATA, BEHIND_DATA, AT_END, FAILED };

static const char crlf[] = "\r\n", end_of_head[] = "\r\n\r\n";

static int refuse(struct multipart *m, int r, struct err *err, const char *why) {
        m->state = FAILED;
        return err_set(err, r, ERR_INVALID, "multipart body: %s", why);
}

/* RFC 2046, bchars. */
static bool is_boundary(const char *s, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char) s[i]) && !strchr("'()+_,-./:=? ", s[i]))
                        return false;
        return n > 0 && n <= ENVD_BOUNDARY && s[n - 1] != ' ';
}

static const char *skip_blanks(const char *s) {
        return s + strspn(s, " \t");
}

/* A parameter "; name=value" at *at, which moves behind it: value is a token or a quoted text. 1; 0: no more; -EINVAL.
 */
static int parameter(const char **at, const char **ret_name, size_t *ret_n, char *value, size_t cap) {
        static const char no_token[] = " \t;=\"(),/:<>?@[]\\{}";
        const char *p = skip_blanks(*at);
        size_t n = 0;

        if (!*p)
                return 0;
        if (*p++ != ';')
                return -EINVAL;
        p = skip_blanks(p);
        *ret_name = p;
        *ret_n = strcspn(p, no_token);
        p += *ret_n;
        if (*ret_n == 0 || *p++ != '=')
                return -EINVAL;
        if (*p != '"') {
                n = strcspn(p, no_token);
                if (n == 0 || n >= cap)
                        return -EINVAL;
                memcpy(value, p, n);
                value[n] = '\0';
                *at = p + n;
                return 1;
        }
        for (p++; *p != '"'; p++) {
                /* Browsers write a backslash as it is; others write it, and the quote, with one before. */
                if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
                        p++;
                if (!*p || n + 1 >= cap)
                        return -EINVAL;
                value[n++] = *p;
        }
        value[n] = '\0';
        *at = p + 1;
        return 1;
}

int multipart_init(struct multipart *m, const char *content_type, struct err *err) {
        static const char type[] = "multipart/form-data";
        char value[ENVD_BOUNDARY + 2];
        const char *at, *name;
        size_t n;
        int r;

        *m = (struct multipart){ .state = AT_START };
        if (strncasecmp(content_type, type, sizeof(type) - 1) != 0)
                return refuse(m, -EINVAL, err, "not multipart/form-data");
        at = content_type + sizeof(type) - 1;
        while ((r = parameter(&at, &name, &n, value, sizeof(value))) > 0) {
                if (n != 8 || strncasecmp(name, "boundary", n) != 0)
                        continue;
                if (m->n_mark > 0 || !is_boundary(value, strlen(value)))
                        return refuse(m, -EINVAL, err, "bad boundary");
                memcpy(m->mark, "\r\n--", 4);
                (void) str_copy(m->mark + 4, sizeof(m->mark) - 4, value); /* is_boundary() looked at its length */
                m->n_mark = strlen(m->mark);
        }
        return r < 0 || m->n_mark == 0 ? refuse(m, -EINVAL, err, "no boundary, or a bad one") : 0;
}

static int disposition(struct multipart *m, const char *value, struct err *err) {
        static const char kind[] = "form-data";
        char text[ENVD_PART_HEAD];
        bool has_name = false;
        const char *at = value + sizeof(kind) - 1, *name;
        size_t n;
        int r;

        if (strncasecmp(value, kind, sizeof(kind) - 1) != 0)
                return refuse(m, -EPROTO, err, "a part that is no form-data");
        while ((r = parameter(&at, &name, &n, text, sizeof(text))) > 0) {
                bool is_name = n == 4 && strncasecmp(name, "name", n) == 0;
                bool is_file = n == 8 && strncasecmp(name, "filename", n) == 0;

                if ((is_name && has_name) || (is_file && m->has_filename) || (!is_name && !is_file))
                        return refuse(m, -EPROTO, err, "Content-Disposition may have name and filename, once each");
                memcpy(is_name ? m->name : m->filename, text, sizeof(text));
                has_name |= is_name;
                m->has_filename |= is_file;
        }
        return r < 0 || !has_name ? refuse(m, -EPROTO, err, "bad Content-Disposition") : 0;
}

/* Header lines without the empty line behind them. Of those that we do not know only the form is looked at. */
static int head_lines(struct multipart *m, char *head, struct err *err) {
        static const char wanted[] = "Content-Disposition";
        bool seen = false;
        size_t lines = 0;

        m->name[0] = m->filename[0] = '\0';
        m->has_filename = false;
        for (char *line = head, *next; line; line = next) {
                char *end = strstr(line, crlf), *colon;

                next = end ? end + 2 : NULL;
                if (end)
                        *end = '\0';
                colon = strchr(line, ':');
                if (!colon || colon == line || ++lines > ENVD_PART_LINES)
                        return refuse(m, -EPROTO, err, "bad header line of a part");
                for (const char *p = line; *p; p++)
                        if (p < colon ? !isalnum((unsigned char) *p) && !strchr("!#$%&'*+-.^_`|~", *p)
                                      : (unsigned char) *p < ' ' && *p != '\t')
                                return refuse(m, -EPROTO, err, "bad byte in a header line of a part");
                *colon = '\0';
                if (strcasecmp(line, wanted) != 0)
                        continue;
                if (seen)
                        return refuse(m, -EPROTO, err, "two Content-Disposition lines");
                seen = true;
                if (disposition(m, skip_blanks(colon + 1), err) < 0)
                        return err->code;
        }
        return seen ? 0 : refuse(m, -EPROTO, err, "a part without Content-Disposition");
}

/* 1: the head was whole. */
static int take_head(struct multipart *m, struct evbuffer *in, struct err *err) {
        struct evbuffer_ptr at = evbuffer_search(in, end_of_head, 4, NULL);
        char head[ENVD_PART_HEAD];
        size_t n;

        if (at.pos < 0 || at.pos >= ENVD_PART_HEAD) {
                if (at.pos >= 0 || evbuffer_get_length(in) > ENVD_PART_HEAD + 4)
                        return refuse(m, -EMSGSIZE, err, "header lines of a part are too long");
                return 0;
        }
        n = (size_t) at.pos;
        (void) evbuffer_remove(in, head, n);
        (void) evbuffer_drain(in, 4);
        head[n] = '\0';
        if (memchr(head, '\0', n))
                return refuse(m, -EPROTO, err, "bad byte in a header line of a part");
        return head_lines(m, head, err) < 0 ? err->code : 1;
}

/* What stands behind a mark: the next part, or the end. 1: it was there. */
static int take_mark(struct multipart *m, struct evbuffer *in, struct err *err) {
        char two[2];

        if (evbuffer_copyout(in, two, 2) < 2)
                return 0;
        if (memcmp(two, crlf, 2) != 0 && memcmp(two, "--", 2) != 0)
                return refuse(m, -EPROTO, err, "bytes behind a boundary");
        (void) evbuffer_drain(in, 2);
        m->state = two[0] == '-' ? AT_END : IN_HEAD;
        return 1;
}

static int take_start(struct multipart *m, struct evbuffer *in, struct err *err) {
        char first[sizeof(m->mark)];
        size_t n = m->n_mark - 2; /* without CRLF */
        ev_ssize_t k = evbuffer_copyout(in, first, n);

        if (k > 0 && memcmp(first, m->mark + 2, (size_t) k) != 0)
                return refuse(m, -EPROTO, err, "does not start with its boundary");
        if (k < 0 || (size_t) k < n)
                return 0;
        (void) evbuffer_drain(in, n);
        m->state = AT_MARK;
        return 1;
}

static enum multipart_event take_data(struct multipart *m, struct evbuffer *in, struct evbuffer *data) {
        struct evbuffer_ptr at = evbuffer_search(in, m->mark, m->n_mark, NULL);
        size_t have = evbuffer_get_length(in), n;

        if (at.pos == 0) {
                (void) evbuffer_drain(in, m->n_mark);
                m->state = BEHIND_DATA;
                return MULTIPART_PART_END;
        }
        n = at.pos > 0 ? (size_t) at.pos : have >= m->n_mark ? have - m->n_mark + 1 : 0;
        if (n == 0)
                return MULTIPART_MORE;
        (void) evbuffer_remove_buffer(in, data, n);
        return MULTIPART_DATA;
}

int multipart_next(struct multipart *m, struct evbuffer *in, struct evbuffer *data, enum multipart_event *ret,
                   struct err *err) {
        int r = 1;

        *ret = MULTIPART_MORE;
        while (r > 0) {
                switch (m->state) {
                case AT_START:
                        r = take_start(m, in, err);
                        break;
                case AT_MARK:
                case BEHIND_DATA:
                        r = take_mark(m, in, err);
                        break;
                case IN_HEAD:
                        r = take_head(m, in, err);
                        if (r > 0) {
                                m->state = IN_DATA;
                                *ret = MULTIPART_PART;
                                return 0;
                        }
                        break;
                case IN_DATA:
                        *ret = take_data(m, in, data);
                        return 0;
                case AT_END:
                        if (evbuffer_get_length(in) > 2)
                                return refuse(m, -EPROTO, err, "bytes behind its end");
                        *ret = MULTIPART_END;
                        return 0;
                default:
                        return refuse(m, -EPROTO, err, "was refused already");
                }
        }
        return r;
}

int multipart_finish(const struct multipart *m, struct evbuffer *in, struct err *err) {
        char rest[2];
        size_t n = evbuffer_get_length(in);

        if (m->state != AT_END ||
            (n != 0 && (n != 2 || evbuffer_copyout(in, rest, 2) != 2 || memcmp(rest, crlf, 2) != 0)))
                return err_set(err, -EPROTO, ERR_INVALID, "multipart body: cut short, or bytes behind its end");
        return 0;
}
