/*
 * head.c - the rules for heads that llhttp leaves to us. Whatever two readers might understand differently is refused:
 * a proxy that guesses is a proxy that can be talked past.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"
#include "http/parser.h"

#define LENGTH_MAX ((uint64_t) INT64_MAX)

bool http_is_token(const char *s, size_t n) {
        static const char other[] = "!#$%&'*+-.^_`|~";

        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= '0' && s[i] <= '9') || ((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z') ||
                      (s[i] && strchr(other, s[i]))))
                        return false;
        return n > 0;
}

/* "HTTP/1.0" or "HTTP/1.1" at s. */
static int check_version(struct http_parser *p, const char *s, size_t n) {
        if (n != 8 || memcmp(s, "HTTP/", 5) != 0)
                return http_refuse(p, 400, "bad start line");
        if (s[5] != '1' || s[6] != '.' || (s[7] != '0' && s[7] != '1'))
                return http_refuse(p, 505, "not HTTP/1.0 or HTTP/1.1");
        p->head.minor = (unsigned) (s[7] - '0');
        return 0;
}

static int check_status_line(struct http_parser *p, const char *s, size_t n) {
        if (n < 12 || s[8] != ' ' || (n > 12 && s[12] != ' '))
                return http_refuse(p, 400, "bad status line");
        if (check_version(p, s, 8) < 0)
                return -1;
        for (size_t i = 9; i < 12; i++) {
                if (s[i] < '0' || s[i] > '9')
                        return http_refuse(p, 400, "bad status line");
                p->head.status = p->head.status * 10 + (unsigned) (s[i] - '0');
        }
        return p->head.status < 100 ? http_refuse(p, 400, "bad status line") : 0;
}

/* Bytes that a URI has. '\\' is a slash to some servers, '#' would hide what follows. */
bool http_is_target(const char *s, size_t n) {
        bool query = false;

        for (size_t i = 0; i < n; i++) {
                if (s[i] <= ' ' || s[i] >= 0x7f || strchr("#\"<>", s[i]) || (s[i] == '\\' && !query))
                        return false;
                query = query || s[i] == '?';
        }
        return n > 0;
}

/* Exactly "method SP target SP version": other readers take other blanks, or none, for the end of the target. */
int http_check_start(struct http_parser *p, size_t n) {
        const char *s = p->raw.p;
        const char *sp1 = memchr(s, ' ', n), *sp2 = memrchr(s, ' ', n);

        if (p->response)
                return check_status_line(p, s, n);
        if (!sp1 || sp1 == sp2 || !http_is_token(s, (size_t) (sp1 - s)))
                return http_refuse(p, 400, "bad request line");
        if (check_version(p, sp2 + 1, n - (size_t) (sp2 + 1 - s)) < 0)
                return -1;
        if (!http_is_target(sp1 + 1, (size_t) (sp2 - sp1 - 1)))
                return http_refuse(p, 400, "bad request target");
        return 0;
}

/* Cuts raw into strings; llhttp is done with all of it but the last line. */
static int make_strings(struct http_parser *p) {
        struct http_head *h = &p->head;
        char *raw = p->raw.p, *blank;

        for (size_t i = 0; i < h->n_headers; i++) {
                const struct parse_span *s = &p->spans[i];
                size_t value_end = s->value_end;

                if (raw[s->name_end] != ':' || !http_is_token(raw + s->name, s->name_end - s->name))
                        return http_refuse(p, 400, "bad header name");
                raw[s->name_end] = '\0';
                while (value_end > s->value && (raw[value_end - 1] == ' ' || raw[value_end - 1] == '\t'))
                        value_end--;
                if (s->value > 0)
                        raw[value_end] = '\0';
                h->headers[i] = (struct http_header){ raw + s->name, s->value > 0 ? raw + s->value : "" };
        }
        if (p->response)
                return 0;
        h->method = raw;
        blank = strchr(raw, ' '); /* http_check_start() saw both */
        *blank = '\0';
        h->target = blank + 1;
        *strchr(blank + 1, ' ') = '\0';
        return 0;
}

/* The only header of that name; NULL if there is none. Two are refused, even if they agree. */
static int find_one(struct http_parser *p, const char *name, const char *why, const char **ret) {
        size_t at = 0;

        *ret = http_header(&p->head, name, &at);
        return *ret && http_header(&p->head, name, &at) ? http_refuse(p, 400, why) : 0;
}

static bool connection_has(const struct http_head *h, const char *token) {
        const char *value;
        size_t at = 0;

        while ((value = http_header(h, "connection", &at)))
                if (http_list_has(value, token))
                        return true;
        return false;
}

/* Path and query get strings of their own, because target stays as it was sent. */
static int split_path(struct http_parser *p, const char *from) {
        char *mark;

        if (*from != '/')
                buf_add(&p->text, "/", 1);
        buf_add(&p->text, from, strlen(from));
        if (p->text.bad)
                return http_refuse(p, 500, "no memory");
        mark = strchr(p->text.p, '?');
        if (mark) {
                *mark = '\0';
                p->head.query = mark + 1;
        }
        p->head.path = p->text.p;
        return 0;
}

/* "http://authority/path?query": the authority must say what Host says. */
static int check_absolute(struct http_parser *p, const char *rest) {
        struct http_head *h = &p->head;
        char text[HTTP_HOST_MAX + 8], host[HTTP_HOST_MAX + 1];
        size_t n = strcspn(rest, "/?");
        uint16_t port, usual = h->https ? 443 : 80;

        if (n >= sizeof(text))
                return http_refuse(p, 400, "bad request target");
        memcpy(text, rest, n);
        text[n] = '\0';
        if (http_parse_host(text, host, &port) < 0)
                return http_refuse(p, 400, "bad request target");
        if (!str_eq(host, h->host) || (port ? port : usual) != (h->port ? h->port : usual))
                return http_refuse(p, 400, "target and Host disagree");
        h->form = HTTP_FORM_ABSOLUTE;
        h->port = port ? port : h->port;
        if (str_eq(h->method, "OPTIONS") && !rest[n]) { /* the server as a whole: RFC 9112, 3.2.4 */
                h->path = "*";
                return 0;
        }
        return split_path(p, rest + n);
}

static int check_authority(struct http_parser *p) {
        struct http_head *h = &p->head;
        char host[HTTP_HOST_MAX + 1];
        uint16_t port;

        if (http_parse_host(h->target, host, &port) < 0 || port == 0)
                return http_refuse(p, 400, "target of CONNECT is not host:port");
        if (!str_eq(host, h->host) || (h->port && h->port != port))
                return http_refuse(p, 400, "target and Host disagree");
        h->form = HTTP_FORM_AUTHORITY;
        h->port = port;
        h->path = "";
        return 0;
}

static int check_target(struct http_parser *p) {
        struct http_head *h = &p->head;
        const char *host;

        if (find_one(p, "host", "more than one Host", &host) < 0)
                return -1;
        if (!host || http_parse_host(host, h->host, &h->port) < 0)
                return http_refuse(p, 400, host ? "bad Host" : "no Host");
        if (str_eq(h->method, "CONNECT"))
                return check_authority(p);
        if (*h->target == '/')
                return split_path(p, h->target);
        h->https = strncasecmp(h->target, "https://", 8) == 0;
        if (h->https || strncasecmp(h->target, "http://", 7) == 0)
                return check_absolute(p, h->target + (h->https ? 8 : 7));
        if (!str_eq(h->target, "*") || !str_eq(h->method, "OPTIONS"))
                return http_refuse(p, 400, "bad request target");
        h->form = HTTP_FORM_ASTERISK;
        h->path = "*";
        return 0;
}

static int check_framing(struct http_parser *p, bool *ret_chunked) {
        struct http_head *h = &p->head;
        const char *coding, *length;

        if (find_one(p, "transfer-encoding", "more than one Transfer-Encoding", &coding) < 0 ||
            find_one(p, "content-length", "more than one Content-Length", &length) < 0)
                return -1;
        if (coding && length)
                return http_refuse(p, 400, "both Content-Length and Transfer-Encoding");
        if (coding && h->minor == 0)
                return http_refuse(p, 400, "Transfer-Encoding in HTTP/1.0");
        if (coding && strcasecmp(coding, "chunked") != 0)
                return http_refuse(p, 400, "Transfer-Encoding is not chunked");
        if (length && str_to_u64(length, LENGTH_MAX, &h->length) < 0)
                return http_refuse(p, 400, "bad Content-Length");
        h->has_length = length != NULL;
        *ret_chunked = coding != NULL;
        return 0;
}

static int check_request(struct http_parser *p, bool chunked) {
        struct http_head *h = &p->head;
        const char *expect = http_header(h, "expect", NULL);

        if (check_target(p) < 0)
                return -1;
        h->body = chunked ? HTTP_BODY_CHUNKED : h->has_length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
        if (h->form == HTTP_FORM_AUTHORITY && h->body != HTTP_BODY_NONE)
                return http_refuse(p, 400, "CONNECT with a body");
        if (expect && h->minor > 0) {
                if (strcasecmp(expect, "100-continue") != 0)
                        return http_refuse(p, 417, "unknown expectation");
                h->expect_continue = chunked || h->length > 0;
        }
        h->upgrade = h->minor > 0 && h->form != HTTP_FORM_AUTHORITY && http_header(h, "upgrade", NULL) &&
                     connection_has(h, "upgrade");
        return 0;
}

static int check_response(struct http_parser *p, bool chunked) {
        struct http_head *h = &p->head;
        bool tunnel = p->to_connect && h->status / 100 == 2, bare = h->status < 200 || h->status == 204;

        h->upgrade = h->status == 101 || tunnel;
        h->interim = h->status < 200 && h->status != 101;
        if (h->interim && p->n_interim >= HTTP_INTERIM_MAX)
                return http_refuse(p, 400, "too many interim responses");
        if (bare && (chunked || h->length > 0))
                return http_refuse(p, 400, "body where the status allows none");
        if (bare || tunnel) /* RFC 9110, 9.3.6: what such a response says about a length means nothing */
                h->has_length = false, h->length = 0;
        if (bare || tunnel || p->to_head || h->status == 304)
                h->body = HTTP_BODY_NONE;
        else
                h->body = chunked ? HTTP_BODY_CHUNKED : h->has_length ? HTTP_BODY_LENGTH : HTTP_BODY_CLOSE;
        return 0;
}

int http_check_head(struct http_parser *p) {
        struct http_head *h = &p->head;
        bool chunked = false;

        if (make_strings(p) < 0 || check_framing(p, &chunked) < 0)
                return -1;
        if ((p->response ? check_response(p, chunked) : check_request(p, chunked)) < 0)
                return -1;
        h->keep_alive = h->body != HTTP_BODY_CLOSE && !connection_has(h, "close") &&
                        (h->minor > 0 || connection_has(h, "keep-alive"));
        return 0;
}
