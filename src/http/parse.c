/*
 * parse.c - bytes in, events out.
 *
 * llhttp reads the grammar. It is fed whole lines (of heads, chunk framing and trailers) and runs of body bytes that
 * end where it was told the body ends, so that no result depends on how the network cut the bytes, and every line has
 * been through our own rules first: CRLF and nothing else ends a line, no control bytes, no folding, bounded sizes.
 * Framing is worked out twice, by llhttp and in head.c; if the two disagree the message is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/parser.h"

int http_refuse(struct http_parser *p, unsigned status, const char *why) {
        if (p->state != PARSE_BAD) { /* the first reason is the one to tell */
                p->state = PARSE_BAD;
                p->status = status;
                p->why = why;
        }
        return -1;
}

static int failure(const struct http_parser *p, struct err *err) {
        if (p->status >= 500 && p->status != 501 && p->status != 505)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "%s", p->why);
        if (p->status == 413 || p->status == 414 || p->status == 431)
                return err_set(err, -EMSGSIZE, ERR_LIMIT, "%s", p->why);
        return err_set(err, -EPROTO, ERR_PEER, "%s", p->why);
}

static int on_name(llhttp_t *ll, const char *at, size_t n) {
        struct http_parser *p = ll->data;
        struct http_head *h = &p->head;
        size_t start = (size_t) (at - p->raw.p);

        if (p->state != PARSE_HEAD) /* trailers: looked at by http_check_trailer(), and dropped */
                return 0;
        if (h->n_headers == HTTP_HEADERS_MAX)
                return http_refuse(p, 431, "too many header lines");
        p->spans[h->n_headers++] = (struct parse_span){ .name = (uint16_t) start, .name_end = (uint16_t) (start + n) };
        return 0;
}

static int on_value(llhttp_t *ll, const char *at, size_t n) {
        struct http_parser *p = ll->data;
        struct parse_span *s;
        size_t start = (size_t) (at - p->raw.p);

        if (p->state != PARSE_HEAD || n == 0) /* where llhttp sees no value may be on the next line */
                return 0;
        if (p->head.n_headers == 0)
                return http_refuse(p, 400, "header value without a name");
        s = &p->spans[p->head.n_headers - 1];
        if (s->value > 0)
                return http_refuse(p, 400, "header value in two pieces");
        s->value = (uint16_t) start;
        s->value_end = (uint16_t) (start + n);
        return 0;
}

/* 1 tells llhttp that there is no body, 2 that no HTTP follows; it does not know what the response answers, and would
 * wait for the body that the Content-Length of a 304 describes. */
static int on_head(llhttp_t *ll) {
        struct http_parser *p = ll->data;

        if (http_check_head(p) < 0)
                return -1;
        if (!p->response || p->head.body != HTTP_BODY_NONE)
                return 0;
        return p->head.upgrade ? 2 : 1;
}

static int on_body(llhttp_t *ll, const char *at, size_t n) {
        struct http_parser *p = ll->data;

        if (p->n_data > 0)
                return http_refuse(p, 400, "body in two pieces");
        p->data = at;
        p->n_data = n;
        return 0;
}

static int on_chunk(llhttp_t *ll) {
        struct http_parser *p = ll->data;

        p->has_chunk = true;
        p->left = ll->content_length;
        return 0;
}

static int on_complete(llhttp_t *ll) {
        struct http_parser *p = ll->data;

        p->complete = true;
        return 0;
}

static const llhttp_settings_t settings = {
        .on_header_field = on_name,
        .on_header_value = on_value,
        .on_headers_complete = on_head,
        .on_body = on_body,
        .on_chunk_header = on_chunk,
        .on_message_complete = on_complete,
};

static unsigned status_of(llhttp_errno_t e) {
        if (e == HPE_INVALID_METHOD)
                return 501;
        return e == HPE_INVALID_VERSION ? 505 : 400;
}

static const char *why_of(llhttp_errno_t e, const struct http_parser *p) {
        if (e == HPE_INVALID_METHOD)
                return "unknown method";
        if (e == HPE_INVALID_CHUNK_SIZE)
                return "bad chunk size";
        if (e == HPE_INVALID_HEADER_TOKEN || e == HPE_UNEXPECTED_SPACE)
                return "bad header line";
        if (e == HPE_INVALID_CONTENT_LENGTH)
                return "bad Content-Length";
        if (e == HPE_UNEXPECTED_CONTENT_LENGTH)
                return "two Content-Length, or one beside Transfer-Encoding";
        if (e == HPE_INVALID_TRANSFER_ENCODING)
                return "bad Transfer-Encoding";
        if (e == HPE_INVALID_URL)
                return "bad request target";
        return p->state == PARSE_HEAD ? "bad head" : "bad framing of the body";
}

/* Every byte must be taken: what llhttp leaves behind would be read by somebody as another message. */
static int execute(struct http_parser *p, const char *bytes, size_t n) {
        llhttp_errno_t e = llhttp_execute(&p->ll, bytes, n);

        if (p->state == PARSE_BAD)
                return -1;
        if (e == HPE_PAUSED_UPGRADE && p->complete && llhttp_get_error_pos(&p->ll) == bytes + n)
                return 0;
        return e == HPE_OK ? 0 : http_refuse(p, status_of(e), why_of(e, p));
}

/* One byte of a line, by our rules; 1: the line is whole. max: without CRLF. */
static int take_byte(struct http_parser *p, size_t line_len, uint8_t c, size_t max, unsigned status) {
        if (p->state == PARSE_CHUNK_END && line_len == 0 && c != '\r')
                return http_refuse(p, 400, "chunk longer than its size");
        if (p->last == '\r' && line_len > 0 && c != '\n')
                return http_refuse(p, 400, "CR without LF");
        if (c == '\n')
                return p->last == '\r' && line_len > 0 ? 1 : http_refuse(p, 400, "LF without CR");
        if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
                return http_refuse(p, 400, "control byte");
        if (line_len == 0 && (c == ' ' || c == '\t'))
                return http_refuse(p, 400, "line starts with a blank (folding is refused)");
        if (line_len >= max + (c == '\r'))
                return http_refuse(p, status, "line too long");
        p->last = c;
        return 0;
}

/* Moves bytes to b until a line is whole. *used grows. 1: whole; 0: more needed; -1. */
static int take_line(struct http_parser *p, struct buf *b, size_t max, const char *bytes, size_t n, size_t *used) {
        bool is_head = p->state == PARSE_HEAD;
        size_t start = *used, len = b->len - p->line_start, room = b->max - b->len;
        unsigned status = is_head && p->n_lines == 0 && !p->response ? 414 : 431;
        int r = 0;

        while (r == 0 && *used < n) {
                if (*used - start == room)
                        return http_refuse(p, 431, is_head ? "head too large" : "trailers too large");
                r = take_byte(p, len++, (uint8_t) bytes[*used], max, status);
                (*used)++;
        }
        if (r < 0)
                return r;
        buf_add(b, bytes + start, *used - start);
        return b->bad ? http_refuse(p, 500, "no memory") : r;
}

/* The head is whole and good: what comes next, and does llhttp agree? */
static int head_done(struct http_parser *p) {
        bool whole = p->head.body == HTTP_BODY_NONE || (p->head.body == HTTP_BODY_LENGTH && p->head.length == 0);

        if (p->head.n_headers + 2 != p->n_lines || whole != p->complete)
                return http_refuse(p, 400, "ambiguous head");
        p->left = p->head.length;
        p->line_start = p->n_lines = 0;
        if (whole)
                p->state = PARSE_END;
        else
                p->state = p->head.body == HTTP_BODY_CHUNKED ? PARSE_CHUNK_LINE : PARSE_BODY;
        return 0;
}

static int feed_head(struct http_parser *p, const char *bytes, size_t n, size_t *used) {
        size_t start;
        int r = take_line(p, &p->raw, HTTP_LINE_MAX, bytes, n, used);

        if (r <= 0)
                return r;
        start = p->line_start;
        p->line_start = p->raw.len;
        p->n_lines++;
        if (p->n_lines == 1 && http_check_start(p, p->raw.len - 2) < 0)
                return -1;
        if (execute(p, p->raw.p + start, p->raw.len - start) < 0)
                return -1;
        return p->raw.len - start == 2 ? head_done(p) : 0;
}

static int feed_data(struct http_parser *p, const char *bytes, size_t n, size_t *used) {
        size_t want = n - *used;

        if (p->head.body != HTTP_BODY_CLOSE && want > p->left)
                want = (size_t) p->left;
        if (want == 0)
                return 0;
        if (execute(p, bytes + *used, want) < 0)
                return -1;
        if (p->n_data != want || p->data != bytes + *used)
                return http_refuse(p, 400, "ambiguous body");
        *used += want;
        if (p->head.body == HTTP_BODY_CLOSE)
                return 0;
        p->left -= want;
        if (p->left > 0)
                return p->complete ? http_refuse(p, 400, "ambiguous body") : 0;
        if (p->state == PARSE_CHUNK_DATA)
                p->state = PARSE_CHUNK_END;
        else if (p->complete)
                p->state = PARSE_END;
        else
                return http_refuse(p, 400, "ambiguous body");
        return 0;
}

/* A line of chunk framing: its end, the next size, or a trailer. */
static int feed_framing(struct http_parser *p, const char *bytes, size_t n, size_t *used) {
        size_t max = p->state == PARSE_CHUNK_END    ? 0
                     : p->state == PARSE_CHUNK_LINE ? HTTP_CHUNK_LINE_MAX
                                                    : HTTP_TRAILER_BYTES;
        int r = take_line(p, &p->line, max, bytes, n, used);

        if (r <= 0)
                return r;
        p->has_chunk = false;
        if ((p->state == PARSE_CHUNK_LINE && http_check_chunk_line(p) < 0) ||
            (p->state == PARSE_TRAILER && http_check_trailer(p) < 0) || execute(p, p->line.p, p->line.len) < 0)
                return -1;
        if (p->has_chunk != (p->state == PARSE_CHUNK_LINE) ||
            p->complete != (p->state == PARSE_TRAILER && p->line.len == 2))
                return http_refuse(p, 400, "ambiguous framing of the body");
        if (p->state == PARSE_CHUNK_LINE && http_check_excess(p) < 0)
                return -1;
        buf_eat(&p->line, p->line.len);
        if (p->state == PARSE_CHUNK_LINE)
                p->state = p->left > 0 ? PARSE_CHUNK_DATA : PARSE_TRAILER;
        else if (p->state == PARSE_CHUNK_END)
                p->state = PARSE_CHUNK_LINE;
        else if (p->complete)
                p->state = PARSE_END;
        return 0;
}

/* The event that the state asks for before any more bytes. */
static bool is_due(struct http_parser *p, struct http_event *ev) {
        if (p->state != PARSE_HEAD && !p->announced) {
                p->announced = true;
                ev->type = HTTP_EV_HEAD;
                return true;
        }
        ev->type = HTTP_EV_END;
        return p->state == PARSE_END;
}

int http_feed(struct http_parser *p, const void *bytes, size_t n, struct http_event *ret, struct err *err) {
        struct http_event ev = { .type = HTTP_EV_MORE };
        int r = 0;

        if (p->state == PARSE_BAD)
                return failure(p, err);
        p->n_data = 0;
        while (!is_due(p, &ev)) {
                ev.type = HTTP_EV_MORE;
                if (ev.used == n)
                        break;
                if (p->state == PARSE_HEAD)
                        r = feed_head(p, bytes, n, &ev.used);
                else if (p->state == PARSE_BODY || p->state == PARSE_CHUNK_DATA)
                        r = feed_data(p, bytes, n, &ev.used);
                else
                        r = feed_framing(p, bytes, n, &ev.used);
                if (r < 0)
                        return failure(p, err);
                if (p->n_data > 0) {
                        ev.type = HTTP_EV_BODY;
                        ev.data = p->data;
                        ev.n = p->n_data;
                        break;
                }
        }
        /* Somebody would take them for the answer to the next request. */
        if (ev.type == HTTP_EV_END && ev.used < n && p->response && !p->head.interim && !p->head.upgrade) {
                (void) http_refuse(p, 400, "bytes behind the response");
                return failure(p, err);
        }
        *ret = ev;
        return 0;
}

int http_eof(struct http_parser *p, struct http_event *ret, struct err *err) {
        struct http_event ev = { .type = HTTP_EV_MORE };

        if (p->state == PARSE_BODY && p->head.body == HTTP_BODY_CLOSE) {
                if (llhttp_finish(&p->ll) == HPE_OK && p->complete)
                        p->state = PARSE_END;
                ev.type = HTTP_EV_END;
        }
        if (p->state != PARSE_BAD && p->state != PARSE_END && http_parser_is_busy(p))
                (void) http_refuse(p, 400, "message cut short");
        if (p->state == PARSE_BAD)
                return failure(p, err);
        *ret = ev;
        return 0;
}

const struct http_head *http_parser_head(const struct http_parser *p) {
        return &p->head;
}

unsigned http_parser_status(const struct http_parser *p) {
        return p->status;
}

bool http_parser_is_busy(const struct http_parser *p) {
        return p->state != PARSE_END && (p->state != PARSE_HEAD || p->raw.len > 0);
}

void http_parser_next(struct http_parser *p, const char *method) {
        llhttp_t ll;

        if (p->state == PARSE_BAD)
                return;
        llhttp_init(&ll, p->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
        ll.data = p;
        p->ll = ll;
        p->n_interim = p->head.interim ? p->n_interim + 1 : 0;
        p->state = PARSE_HEAD;
        p->to_head = method && str_eq(method, "HEAD");
        p->to_connect = method && str_eq(method, "CONNECT");
        p->announced = p->complete = false;
        buf_done(&p->raw);
        buf_done(&p->text);
        p->line_start = p->n_lines = 0;
        p->last = 0;
        p->excess = p->trailer_bytes = 0;
        p->head = (struct http_head){ 0 };
}

static int parser_new(struct http_parser **ret, bool response, const char *method, struct err *err) {
        struct http_parser *p = calloc(1, sizeof(*p));

        if (!p)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http parser");
        p->response = response;
        p->raw = BUF_INIT(HTTP_HEAD_MAX);
        p->text = BUF_INIT(HTTP_LINE_MAX + 1);
        p->line = BUF_INIT(HTTP_TRAILER_BYTES);
        http_parser_next(p, method);
        *ret = p;
        return 0;
}

int http_parser_new_request(struct http_parser **ret, struct err *err) {
        return parser_new(ret, false, NULL, err);
}

int http_parser_new_response(struct http_parser **ret, const char *method, struct err *err) {
        return parser_new(ret, true, method, err);
}

struct http_parser *http_parser_free(struct http_parser *p) {
        if (p) {
                buf_done(&p->raw);
                buf_done(&p->text);
                buf_done(&p->line);
                free(p);
        }
        return NULL;
}

void http_parser_freep(struct http_parser **p) {
        *p = http_parser_free(*p);
}
