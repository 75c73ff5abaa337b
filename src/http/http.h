/*
 * http.h - HTTP/1.1 messages: one strict parser for requests and responses, writers, and small readers of fields.
 * Event-free but for evbuffers; server.h has the connections. What is refused, and why: docs/internals/http.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/limits.h"

struct buf;
struct err;
struct evbuffer;
struct http_parser;

/* How a body is delimited. */
enum http_body {
        HTTP_BODY_NONE,
        HTTP_BODY_LENGTH,  /* http_head.length bytes (0 is possible) */
        HTTP_BODY_CHUNKED, /* and nothing but chunked */
        HTTP_BODY_CLOSE,   /* a response that ends with its connection */
};
/* What the target of a request looks like (RFC 9112, 3.2). Checked against the method. */
enum http_form { HTTP_FORM_ORIGIN, HTTP_FORM_ABSOLUTE, HTTP_FORM_AUTHORITY, HTTP_FORM_ASTERISK };

struct http_header {
        const char *name, *value; /* value without blanks around it; bytes from 0x80 up are possible */
};

/* A checked head. Strings are NUL-terminated and belong to the parser until http_parser_next(). */
struct http_head {
        unsigned minor;               /* HTTP/1.minor: 0 or 1 */
        const char *method;           /* requests: as sent, a method that llhttp knows */
        const char *target;           /* requests: as sent */
        enum http_form form;          /* requests */
        bool https;                   /* requests: the scheme of an absolute target */
        char host[HTTP_HOST_MAX + 1]; /* requests: lower case, brackets of IPv6 kept; Host and target agree */
        uint16_t port;                /* requests: 0 if none was given */
        const char *path;             /* requests: before '?'; starts with '/', "*" for asterisk, "" for authority */
        const char *query;            /* requests: after '?', NULL without one */
        unsigned status;              /* responses: 100 to 999 */
        struct http_header headers[HTTP_HEADERS_MAX];
        size_t n_headers;
        enum http_body body; /* how the body of this very message ends */
        bool has_length;     /* Content-Length was given, even if there is no body (HEAD, 304) */
        uint64_t length;
        bool keep_alive;      /* the peer will go on after this message */
        bool upgrade;         /* request: Upgrade is asked for; response: 101, or 2xx to CONNECT: what follows is raw */
        bool expect_continue; /* requests: a 100 is awaited before the body */
        bool interim;         /* responses: 1xx but not 101; the answer is still to come */
};

enum http_event_type {
        HTTP_EV_MORE, /* all bytes were used; more are needed */
        HTTP_EV_HEAD, /* http_parser_head() is there */
        HTTP_EV_BODY, /* data[0..n) of the body: the last n of the bytes used */
        HTTP_EV_END,  /* the message is whole; bytes behind it were not touched */
};
struct http_event {
        enum http_event_type type;
        size_t used; /* bytes that the parser took */
        const void *data;
        size_t n;
};

int http_parser_new_request(struct http_parser **ret, struct err *err);
/* method: of the request that the response answers (HEAD and CONNECT change what follows). */
int http_parser_new_response(struct http_parser **ret, const char *method, struct err *err);
struct http_parser *http_parser_free(struct http_parser *p);
void http_parser_freep(struct http_parser **p);

/*
 * Takes bytes up to the next event. To be called again with the rest (also with n = 0) until it says HTTP_EV_MORE or
 * HTTP_EV_END. After HTTP_EV_END it says so again and takes nothing, until http_parser_next(). Bytes behind a final
 * response are an error, in place of HTTP_EV_END or after it. -EPROTO, -EMSGSIZE: the peer is refused; sticky; no
 * message has a byte of the peer in it. The same bytes give the same result however they are cut.
 */
int http_feed(struct http_parser *p, const void *bytes, size_t n, struct http_event *ret, struct err *err);
/* The same from an evbuffer: drains what is used and moves body bytes to the end of body; event.n says how many. */
int http_pull(struct http_parser *p, struct evbuffer *in, struct evbuffer *body, struct http_event *ret,
              struct err *err);
/* The peer will send no more, and http_feed() said HTTP_EV_MORE. 0: fine between messages (HTTP_EV_MORE), or this was
 * the end of a response without a length (HTTP_EV_END). -EPROTO: truncated. */
int http_eof(struct http_parser *p, struct http_event *ret, struct err *err);
/* From HTTP_EV_HEAD until http_parser_next(). */
const struct http_head *http_parser_head(const struct http_parser *p);
/* After a failure: what a server should answer (400, 413, 414, 417, 431, 501, 505). */
unsigned http_parser_status(const struct http_parser *p);
/* Has a part of a message arrived? */
bool http_parser_is_busy(const struct http_parser *p);
/* After HTTP_EV_END: the next message on the connection. method as above for responses (the same one after an interim
 * response), NULL for requests. */
void http_parser_next(struct http_parser *p, const char *method);

/*
 * Writers. Header lines are collected in a struct buf (BUF_INIT(HTTP_HEAD_MAX)); what must not be written (CR, LF, NUL,
 * a name that is no token) makes it bad, and a bad one is never sent.
 */
void http_add(struct buf *lines, const char *name, const char *value);
void http_addf(struct buf *lines, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Copies the headers of a message that is passed on: without hop-by-hop headers (Connection and what it names,
 * Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade), Content-Length, Expect, and the names in drop (ends
 * with NULL; may be NULL). With upgrade, "Connection: Upgrade" and the Upgrade header are written. */
void http_add_forwarded(struct buf *lines, const struct http_head *head, const char *const *drop, bool upgrade);
/* Writes Content-Length or Transfer-Encoding for a peer that speaks HTTP/1.minor. Returns how the body has to be
 * written: chunked cannot go to 1.0, and a body that ended by closing becomes chunked for 1.1. */
enum http_body http_add_framing(struct buf *lines, const struct http_head *head, unsigned minor);
/* Always HTTP/1.1. Failure: nothing was written. lines may be NULL. */
int http_write_request_head(struct evbuffer *to, const char *method, const char *target, const struct buf *lines,
                            struct err *err);
int http_write_response_head(struct evbuffer *to, unsigned status, const struct buf *lines, struct err *err);
/* A piece of a body, and its end. The buffer variant moves everything from `from`. */
int http_write_body(struct evbuffer *to, enum http_body how, const void *p, size_t n, struct err *err);
int http_write_buffer(struct evbuffer *to, enum http_body how, struct evbuffer *from, struct err *err);
/* All bytes of from behind those of to; negative: no memory. Few are copied: a piece that is moved keeps its memory,
 * and a thousand tiny ones would have a thousand times as much. */
int http_move(struct evbuffer *to, struct evbuffer *from);
int http_write_end(struct evbuffer *to, enum http_body how, struct err *err);
/* "OK" for 200; never NULL. */
const char *http_reason(unsigned status);

/* The value of the first header of that name at or after *at (moved behind it), or NULL. at may be NULL: from 0. */
const char *http_header(const struct http_head *head, const char *name, size_t *at);
/* Is token an element of a comma-separated list? Parameters (";q=") are not looked at. */
bool http_list_has(const char *list, const char *token);
/* The weight of token in an Accept-like list, in thousandths; "*" counts for what is not named; 0: not acceptable. */
unsigned http_list_weight(const char *list, const char *token);
/* Is this media type, whatever its parameters, the type? ("application/json; charset=utf-8", "application/json") */
bool http_media_is(const char *value, const char *type);

/* host[:port] as Host has it: lower-cased name, IPv4, or IPv6 in brackets. -EINVAL. *ret_port: 0 if none. */
int http_parse_host(const char *s, char host[HTTP_HOST_MAX + 1], uint16_t *ret_port);
/* Decodes %XX of n bytes. 0, -EINVAL (bad escape, %00), -ENAMETOOLONG. */
int http_percent_decode(const char *s, size_t n, char *dst, size_t cap);
/* The next segment of a path, decoded. 1: dst holds it; 0: no more; -EINVAL, -ENAMETOOLONG. */
int http_path_next(const char **path, char *dst, size_t cap);
/* Means the same to every server: no empty, "." or ".." segment, also encoded; no encoded '/', '\\' or NUL. */
bool http_path_is_plain(const char *path);
/* The next name=value of a query string, decoded ('+' is a blank). 1, 0: no more, -EINVAL, -ENAMETOOLONG. */
int http_query_next(const char **query, char *name, size_t name_cap, char *value, size_t value_cap);
