/* cases.c - see cases.h. */
#include "cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "http/http.h"

static void wrong(const char *name, const char *what) {
        (void) fprintf(stderr, "%s: %s\n", name, what);
        exit(1);
}

static int nibble(char c) {
        return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static char unescape(const char **s, const char *name) {
        static const char from[] = "rnt\\", to[] = "\r\n\t\\";
        const char *at;

        (*s)++;
        if (**s == 'x' && nibble((*s)[1]) >= 0 && nibble((*s)[2]) >= 0) {
                *s += 2;
                return (char) (nibble((*s)[-1]) << 4 | nibble((*s)[0]));
        }
        at = **s ? strchr(from, **s) : NULL;
        if (!at)
                wrong(name, "bad escape");
        return to[at - from];
}

static void read_case(struct http_case *c, const char *text) {
        const char *end = strstr(text, "\n=> "), *s = strchrnul(text, '\n');

        c->response = str_has_prefix(text, "response ");
        if (!end || (!c->response && !str_has_prefix(text, "request\n")))
                wrong(c->name, "no first line, or no =>");
        if (c->response) {
                size_t n = strcspn(text + 9, " \n");

                if (n >= sizeof(c->method))
                        wrong(c->name, "method");
                memcpy(c->method, text + 9, n);
                c->eof = str_has_prefix(text + 9 + n, " eof\n");
        }
        while (s[1] == '#')
                s = strchrnul(s + 1, '\n');
        c->bytes = malloc(CASE_MAX);
        for (; c->bytes && s < end; s++)
                if (*s != '\n')
                        c->bytes[c->n++] = *s == '\\' ? unescape(&s, c->name) : *s;
        c->expected = strdup(end + 4);
        if (!c->bytes || !c->expected)
                wrong(c->name, "no memory");
}

static int is_case(const struct dirent *e) {
        return e->d_name[0] != '.';
}

size_t cases_read(const char *folder, struct http_case **ret) {
        AUTO_FD int dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        static char text[CASE_MAX];
        struct dirent **names;
        int n = scandirat(dir_fd, ".", &names, is_case, alphasort);

        if (n <= 0)
                wrong(folder, "no cases");
        *ret = calloc((size_t) n, sizeof(**ret));
        if (!*ret)
                wrong(folder, "no memory");
        for (int i = 0; i < n; i++) {
                if (str_copy((*ret)[i].name, sizeof((*ret)[i].name), names[i]->d_name) < 0 ||
                    fd_read_at(dir_fd, names[i]->d_name, text, sizeof(text)) < 0)
                        wrong(names[i]->d_name, "cannot be read");
                read_case(&(*ret)[i], text);
                free(names[i]);
        }
        free(names);
        return (size_t) n;
}

static void add_bytes(struct buf *out, const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '\\')
                        buf_add(out, p + i, 1);
                else
                        buf_addf(out, "\\x%02x", (unsigned char) p[i]);
}

static void dump_head(const struct http_head *h, bool response, struct buf *out) {
        static const char *const bodies[] = { "none", "length", "chunked", "close" };
        static const char *const forms[] = { "origin", "absolute", "authority", "asterisk" };

        if (response)
                buf_addf(out, "head 1.%u %u", h->minor, h->status);
        else
                buf_addf(out, "head 1.%u %s %s %s host=%s port=%u path=%s", h->minor, h->method, forms[h->form],
                         h->target, h->host, h->port, h->path);
        if (h->query)
                buf_addf(out, " query=%s", h->query);
        buf_addf(out, " body=%s", bodies[h->body]);
        if (h->has_length)
                buf_addf(out, " length=%" PRIu64, h->length);
        buf_addf(out, "%s%s%s%s%s\n", h->https ? " https" : "", h->keep_alive ? " keep" : "",
                 h->upgrade ? " upgrade" : "", h->expect_continue ? " expect" : "", h->interim ? " interim" : "");
        for (size_t i = 0; i < h->n_headers; i++) {
                buf_addf(out, " %s=", h->headers[i].name);
                add_bytes(out, h->headers[i].value, strlen(h->headers[i].value));
                buf_addf(out, "\n");
        }
}

/* Where the dump is: bodies that come in pieces are one line. */
struct dump {
        const struct http_case *c;
        struct http_parser *p;
        struct buf *out;
        bool in_body, raw;
};

static void dump_event(struct dump *d, const struct http_event *ev) {
        const struct http_head *h = http_parser_head(d->p);

        if (ev->type == HTTP_EV_BODY) {
                buf_addf(d->out, "%s", d->in_body ? "" : "body ");
                add_bytes(d->out, ev->data, ev->n);
        } else if (d->in_body && ev->type != HTTP_EV_MORE)
                buf_addf(d->out, "\n");
        d->in_body = ev->type == HTTP_EV_BODY || (d->in_body && ev->type == HTTP_EV_MORE);
        if (ev->type == HTTP_EV_HEAD)
                dump_head(h, d->c->response, d->out);
        if (ev->type != HTTP_EV_END)
                return;
        buf_addf(d->out, "end\n");
        d->raw = h->upgrade || (!d->c->response && h->form == HTTP_FORM_AUTHORITY);
        if (d->raw)
                buf_addf(d->out, "raw ");
        else if (!d->c->response || h->interim)
                http_parser_next(d->p, d->c->response ? d->c->method : NULL);
}

/* A failure takes the place of an "end" whose bytes it came with, or follows it. */
static void dump_failure(struct dump *d, const struct err *err) {
        if (d->in_body)
                buf_addf(d->out, "\n");
        if (d->out->len >= 4 && str_eq(d->out->p + d->out->len - 4, "end\n"))
                d->out->p[d->out->len -= 4] = '\0';
        buf_addf(d->out, "refused %u %s\n", http_parser_status(d->p), err->msg);
}

static int dump_piece(struct dump *d, const char *bytes, size_t n) {
        struct err err = { 0 };
        struct http_event ev;

        do {
                if (d->raw) {
                        add_bytes(d->out, bytes, n);
                        return 0;
                }
                if (http_feed(d->p, bytes, n, &ev, &err) < 0) {
                        dump_failure(d, &err);
                        return -1;
                }
                dump_event(d, &ev);
                bytes += ev.used;
                n -= ev.used;
        } while (n > 0 || (ev.type != HTTP_EV_MORE && ev.type != HTTP_EV_END));
        return 0;
}

void case_dump(const struct http_case *c, size_t first, size_t step, struct buf *out) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        struct err err = { 0 };
        struct dump d = { .c = c, .out = out };
        struct http_event ev;
        size_t n;

        if ((c->response ? http_parser_new_response(&p, c->method, &err) : http_parser_new_request(&p, &err)) < 0)
                wrong(c->name, err.msg);
        d.p = p;
        for (size_t at = 0; at < c->n; at += n, first = step) {
                n = first < c->n - at ? first : c->n - at;
                if (dump_piece(&d, c->bytes + at, n) < 0)
                        return;
        }
        if (d.raw)
                buf_addf(out, "\n");
        if (!c->eof || d.raw) {
                if (http_parser_is_busy(p))
                        buf_addf(out, "%smore\n", d.in_body ? "\n" : "");
                return;
        }
        if (http_eof(p, &ev, &err) < 0)
                dump_failure(&d, &err);
        else if (ev.type == HTTP_EV_END)
                dump_event(&d, &ev);
}
