/*
 * write.c - heads and bodies out. A head is always rebuilt from checked parts, never copied: nothing that came in
 * decides about framing or connections on the way out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/parser.h"

static const struct {
        unsigned status;
        const char *reason;
} reasons[] = {
        { 100, "Continue" },
        { 101, "Switching Protocols" },
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 417, "Expectation Failed" },
        { 421, "Misdirected Request" },
        { 422, "Unprocessable Content" },
        { 426, "Upgrade Required" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
        { 507, "Insufficient Storage" },
};

const char *http_reason(unsigned status) {
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "Unnamed";
}

static bool is_value(const char *s) {
        for (; *s; s++)
                if (((unsigned char) *s < 0x20 && *s != '\t') || *s == 0x7f)
                        return false;
        return true;
}

void http_add(struct buf *lines, const char *name, const char *value) {
        if (!http_is_token(name, strlen(name)) || !is_value(value))
                lines->bad = true;
        buf_addf(lines, "%s: %s\r\n", name, value);
}

void http_addf(struct buf *lines, const char *name, const char *fmt, ...) {
        char value[HTTP_LINE_MAX];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(value, sizeof(value), fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= sizeof(value))
                lines->bad = true;
        http_add(lines, name, value);
}

static bool is_named(const struct http_head *head, const char *header, const char *name) {
        const char *value;
        size_t at = 0;

        while ((value = http_header(head, header, &at)))
                if (http_list_has(value, name))
                        return true;
        return false;
}

static bool is_listed(const char *const *names, const char *name) {
        for (; names && *names; names++)
                if (strcasecmp(*names, name) == 0)
                        return true;
        return false;
}

/* Host is nobody's to take away by naming it in Connection. */
static bool stays_here(const struct http_head *head, const char *name) {
        static const char *const hop[] = { "connection",     "keep-alive", "te",     "trailer", "transfer-encoding",
                                           "content-length", "upgrade",    "expect", NULL };

        return is_listed(hop, name) || strncasecmp(name, "proxy-", 6) == 0 ||
               (strcasecmp(name, "host") != 0 && is_named(head, "connection", name));
}

void http_add_forwarded(struct buf *lines, const struct http_head *head, const char *const *drop, bool upgrade) {
        size_t at = 0;
        const char *value;

        for (size_t i = 0; i < head->n_headers; i++) {
                const struct http_header *h = &head->headers[i];

                if (!stays_here(head, h->name) && !is_listed(drop, h->name))
                        http_add(lines, h->name, h->value);
        }
        if (!upgrade)
                return;
        http_add(lines, "Connection", "Upgrade");
        while ((value = http_header(head, "upgrade", &at)))
                http_add(lines, "Upgrade", value);
}

enum http_body http_add_framing(struct buf *lines, const struct http_head *head, unsigned minor) {
        enum http_body how = head->body;

        if (head->has_length) /* also where it only describes: HEAD, 304 */
                http_addf(lines, "Content-Length", "%" PRIu64, head->length);
        if (how == HTTP_BODY_CHUNKED || how == HTTP_BODY_CLOSE)
                how = minor > 0 ? HTTP_BODY_CHUNKED : HTTP_BODY_CLOSE;
        if (how == HTTP_BODY_CHUNKED)
                http_add(lines, "Transfer-Encoding", "chunked");
        return how;
}

static int write_head(struct evbuffer *to, const char *start, const struct buf *lines, struct err *err) {
        struct buf head = BUF_INIT(HTTP_HEAD_MAX);
        int r = 0;

        if (lines && lines->bad)
                return err_set(err, -EINVAL, ERR_INVALID, "header that cannot be written, or too many");
        buf_addf(&head, "%s\r\n%s\r\n", start, lines ? buf_str(lines) : "");
        if (head.bad)
                r = err_set(err, -EMSGSIZE, ERR_LIMIT, "head too large to write");
        else if (evbuffer_add(to, head.p, head.len) < 0)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "http head");
        buf_done(&head);
        return r;
}

int http_write_request_head(struct evbuffer *to, const char *method, const char *target, const struct buf *lines,
                            struct err *err) {
        char start[HTTP_LINE_MAX + 1];
        int n = snprintf(start, sizeof(start), "%s %s HTTP/1.1", method, target);

        if (!http_is_token(method, strlen(method)) || !http_is_target(target, strlen(target)))
                return err_set(err, -EINVAL, ERR_INVALID, "method or target that cannot be written");
        if (n < 0 || (size_t) n >= sizeof(start))
                return err_set(err, -EMSGSIZE, ERR_LIMIT, "head too large to write");
        return write_head(to, start, lines, err);
}

int http_write_response_head(struct evbuffer *to, unsigned status, const struct buf *lines, struct err *err) {
        char start[64];

        if (status < 100 || status > 999)
                return err_set(err, -EINVAL, ERR_INVALID, "status %u", status);
        (void) snprintf(start, sizeof(start), "HTTP/1.1 %u %s", status, http_reason(status));
        return write_head(to, start, lines, err);
}

/* An empty chunk would be the end of the body. */
static bool is_nothing(enum http_body how, size_t n) {
        return n == 0 || how == HTTP_BODY_NONE;
}

int http_write_body(struct evbuffer *to, enum http_body how, const void *p, size_t n, struct err *err) {
        if (is_nothing(how, n))
                return 0;
        if ((how == HTTP_BODY_CHUNKED && evbuffer_add_printf(to, "%zx\r\n", n) < 0) || evbuffer_add(to, p, n) < 0 ||
            (how == HTTP_BODY_CHUNKED && evbuffer_add(to, "\r\n", 2) < 0))
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http body");
        return 0;
}

int http_move(struct evbuffer *to, struct evbuffer *from) {
        size_t n = evbuffer_get_length(from);
        const void *p = n > 0 && n < HTTP_MOVE_MIN ? evbuffer_pullup(from, -1) : NULL;

        if (!p)
                return evbuffer_add_buffer(to, from);
        return evbuffer_add(to, p, n) < 0 || evbuffer_drain(from, n) < 0 ? -1 : 0;
}

int http_write_buffer(struct evbuffer *to, enum http_body how, struct evbuffer *from, struct err *err) {
        size_t n = evbuffer_get_length(from);

        if (is_nothing(how, n)) {
                (void) evbuffer_drain(from, n);
                return 0;
        }
        if ((how == HTTP_BODY_CHUNKED && evbuffer_add_printf(to, "%zx\r\n", n) < 0) || http_move(to, from) < 0 ||
            (how == HTTP_BODY_CHUNKED && evbuffer_add(to, "\r\n", 2) < 0))
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http body");
        return 0;
}

int http_write_end(struct evbuffer *to, enum http_body how, struct err *err) {
        if (how == HTTP_BODY_CHUNKED && evbuffer_add(to, "0\r\n\r\n", 5) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http body");
        return 0;
}
