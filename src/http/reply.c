/*
 * reply.c - replies of a server's connection. The head says how the body ends, and what is written keeps to it: more
 * or less than announced ends the connection, because the client would take the next reply for a part of this one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http/conn.h"

static struct evbuffer *output(const struct http_conn *c) {
        return bufferevent_get_output(c->bev);
}

static int check_alive(const struct http_conn *c, struct err *err) {
        if (c->state == CONN_DEAD || c->state == CONN_CLOSING || c->state == CONN_DISCARD)
                return err_set(err, -EPIPE, ERR_PEER, "the client is gone");
        return 0;
}

/* RFC 9110, 6.6.1: a server with a clock says the time. */
static void add_date(struct buf *lines) {
        time_t now = time(NULL);
        char text[40];
        struct tm tm;

        if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
                http_add(lines, "Date", text);
}

static bool has_no_body(unsigned status) {
        return status < 200 || status == 204 || status == 304;
}

/* Will the rest of the request's body be more than we care to throw away? */
static bool is_too_much(const struct http_conn *c, const struct http_head *head) {
        return c->state == CONN_REQUEST && ((head->expect_continue && !c->continued) ||
                                            (head->has_length && head->length - c->n_body > HTTP_DISCARD_MAX));
}

static int write_head(struct http_conn *c, unsigned status, const struct buf *lines, uint64_t length, struct err *err) {
        const struct http_head *head = http_parser_head(c->parser);
        struct buf all = BUF_INIT(HTTP_HEAD_MAX);
        int r;

        if (lines) {
                buf_add(&all, buf_str(lines), lines->len);
                all.bad = all.bad || lines->bad;
        }
        add_date(&all);
        if (c->how == HTTP_BODY_LENGTH)
                http_addf(&all, "Content-Length", "%" PRIu64, length);
        else if (c->how == HTTP_BODY_CHUNKED)
                http_add(&all, "Transfer-Encoding", "chunked");
        if (c->last && status != 101)
                http_add(&all, "Connection", "close");
        else if (head->minor == 0)
                http_add(&all, "Connection", "keep-alive");
        r = http_write_response_head(output(c), status, &all, err);
        buf_done(&all);
        return r;
}

int http_reply_start(struct http_conn *c, unsigned status, const struct buf *lines, enum http_body how, uint64_t length,
                     struct err *err) {
        const struct http_head *head = http_parser_head(c->parser);
        int r = check_alive(c, err);

        if (r < 0)
                return r;
        if (c->reply != CONN_REPLY_NONE)
                return err_set(err, -EALREADY, ERR_INTERNAL, "second reply to a request");
        c->how = has_no_body(status) ? HTTP_BODY_NONE : how;
        if (c->how == HTTP_BODY_CHUNKED && head->minor == 0)
                c->how = HTTP_BODY_CLOSE;
        c->last = c->last || server_is_draining(c->server) || c->how == HTTP_BODY_CLOSE || is_too_much(c, head);
        r = write_head(c, status, lines, length, err);
        if (r < 0)
                return r;
        c->mute = c->mute || c->how == HTTP_BODY_NONE;
        c->reply_left = c->how == HTTP_BODY_LENGTH ? length : 0;
        c->reply = CONN_REPLY_OPEN;
        return 0;
}

/* Before n bytes of a body are written. 1: they are described but not sent. */
static int account(struct http_conn *c, size_t n, struct err *err) {
        int r = check_alive(c, err);

        if (r < 0)
                return r;
        if (c->reply != CONN_REPLY_OPEN)
                return err_set(err, -EINVAL, ERR_INTERNAL, "body without a reply");
        if (c->how == HTTP_BODY_LENGTH && n > c->reply_left && !c->mute) {
                conn_kill(c, -EINVAL);
                return err_set(err, -EINVAL, ERR_INTERNAL, "reply longer than announced");
        }
        if (evbuffer_get_length(output(c)) + n > HTTP_WRITE_MAX) {
                conn_kill(c, -ENOBUFS);
                return err_set(err, -ENOBUFS, ERR_LIMIT, "the client reads too slowly");
        }
        if (c->mute)
                return 1;
        c->reply_left -= c->how == HTTP_BODY_LENGTH ? n : 0;
        return 0;
}

/* Ends the connection if writing failed; what was written already cannot be taken back. */
static int settle(struct http_conn *c, int r) {
        if (r < 0)
                conn_kill(c, r);
        return r;
}

int http_reply_body(struct http_conn *c, const void *p, size_t n, struct err *err) {
        int r = account(c, n, err);

        if (r != 0)
                return r < 0 ? r : 0;
        return settle(c, http_write_body(output(c), c->how, p, n, err));
}

int http_reply_buffer(struct http_conn *c, struct evbuffer *from, struct err *err) {
        int r = account(c, evbuffer_get_length(from), err);

        if (r < 0)
                return r;
        if (r > 0)
                return settle(c, http_write_buffer(output(c), HTTP_BODY_NONE, from, err));
        return settle(c, http_write_buffer(output(c), c->how, from, err));
}

int http_reply_end(struct http_conn *c, struct err *err) {
        int r = check_alive(c, err);

        if (r < 0)
                return r;
        if (c->reply != CONN_REPLY_OPEN)
                return err_set(err, -EINVAL, ERR_INTERNAL, "end without a reply");
        if (c->reply_left > 0 && !c->mute) {
                conn_kill(c, -EINVAL);
                return err_set(err, -EINVAL, ERR_INTERNAL, "reply shorter than announced");
        }
        if (!c->mute && settle(c, http_write_end(output(c), c->how, err)) < 0)
                return err->code;
        c->reply = CONN_REPLY_WHOLE;
        conn_wake(c);
        return 0;
}

int http_reply(struct http_conn *c, unsigned status, const struct buf *lines, const void *body, size_t n,
               struct err *err) {
        int r = http_reply_start(c, status, lines, HTTP_BODY_LENGTH, n, err);

        if (r < 0)
                return r;
        r = http_reply_body(c, body, n, err);
        return r < 0 ? r : http_reply_end(c, err);
}

bool http_reply_is_full(struct http_conn *c) {
        bool full = c->state != CONN_DEAD && evbuffer_get_length(output(c)) >= HTTP_WRITE_HIGH;

        c->full = c->full || full;
        return full;
}

int http_flush(struct http_conn *c) {
        int r = 0;

        if ((c->state != CONN_REQUEST && c->state != CONN_REPLY) || c->full || c->transport || http_conn_fd(c) < 0)
                return 0; /* elsewhere on_write() has something to do, or somebody else writes */
        (void) evbuffer_unfreeze(output(c), 1);
        if (evbuffer_get_length(output(c)) > 0 && evbuffer_write(output(c), http_conn_fd(c)) < 0 &&
            (errno == ECONNRESET || errno == EPIPE))
                r = -errno;
        (void) evbuffer_freeze(output(c), 1); /* what is left, and failures, are libevent's */
        return r;
}

void http_reply_abort(struct http_conn *c) {
        conn_kill(c, -ECANCELED);
}

/* why: words of this layer, none of the peer's, so that they need no escaping. */
bool conn_answer(struct http_conn *c, unsigned status, const char *why) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };
        char text[256];
        int n = snprintf(text, sizeof(text), "{\"code\":%u,\"message\":\"%s\"}\n", status, why);
        bool done;

        if (c->reply != CONN_REPLY_NONE)
                return false;
        c->last = true;
        http_add(&lines, "Content-Type", "application/json");
        done = n > 0 && (size_t) n < sizeof(text) && http_reply(c, status, &lines, text, (size_t) n, &err) == 0;
        buf_done(&lines);
        return done;
}

int http_hand_over(struct http_conn *c, unsigned status, const struct buf *lines, struct bufferevent **ret,
                   struct err *err) {
        const struct http_head *head = http_parser_head(c->parser);
        struct bufferevent *bev = c->bev;
        int r = check_alive(c, err);

        if (r < 0)
                return r;
        if (c->reply != CONN_REPLY_NONE ||
            (c->state == CONN_REQUEST && (head->body == HTTP_BODY_CHUNKED || head->length > 0)))
                return err_set(err, -EBUSY, ERR_INTERNAL, "request not whole, or answered");
        c->how = HTTP_BODY_NONE;
        c->last = false;
        r = write_head(c, status, lines, 0, err);
        if (r < 0)
                return r;
        conn_kill(c, 0);
        c->bev = NULL;
        bufferevent_setwatermark(bev, EV_READ | EV_WRITE, 0, 0);
        (void) bufferevent_set_timeouts(bev, NULL, NULL);
        (void) bufferevent_enable(bev, EV_READ | EV_WRITE);
        *ret = bev;
        return 0;
}

const struct http_head *http_conn_head(const struct http_conn *c) {
        return http_parser_head(c->parser);
}

uint64_t http_conn_serial(const struct http_conn *c) {
        return c->serial;
}

int http_conn_fd(const struct http_conn *c) {
        return c->bev ? bufferevent_getfd(c->bev) : -1;
}

struct bufferevent *http_conn_bev(const struct http_conn *c) {
        return c->bev;
}
