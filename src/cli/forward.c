/*
 * forward.c - a small gateway: each request is read and written anew, with what the server needs to find the sandbox,
 * and so is its answer, both as they come. After an upgrade (WebSocket) both sides are one raw stream.
 */
#include "cli/forward.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/server.h"

enum { RELAY_HIGH = 256 << 10, QUIET_MS = 24 * 3600 * 1000 };

struct forward {
        struct client *client;
        const struct client_box *box;
        uint16_t port;
        TAILQ_HEAD(, relay) relays;
};

/* One request; freed when both the client here and the call there are gone. */
struct exchange {
        struct forward *forward;
        struct http_conn *conn;   /* NULL: gone */
        struct client_call *call; /* NULL: gone */
        bool started, whole;      /* the answer has begun; is whole */
        bool full;
};

/* --- raw streams --- */

struct relay {
        TAILQ_ENTRY(relay) link;
        struct forward *forward;
        struct bufferevent *side[2];
        bool eof[2];
};

static void relay_free(struct relay *y) {
        TAILQ_REMOVE(&y->forward->relays, y, link);
        bufferevent_free(y->side[0]);
        bufferevent_free(y->side[1]);
        free(y);
}

static struct bufferevent *other(const struct relay *y, const struct bufferevent *bev) {
        return y->side[bev == y->side[0]];
}

static void relay_read(struct bufferevent *bev, void *arg) {
        struct bufferevent *to = other(arg, bev);

        (void) bufferevent_write_buffer(to, bufferevent_get_input(bev));
        if (evbuffer_get_length(bufferevent_get_output(to)) > RELAY_HIGH)
                (void) bufferevent_disable(bev, EV_READ);
}

static void relay_written(struct bufferevent *bev, void *arg) {
        struct relay *y = arg;

        if (y->eof[bev == y->side[0]]) /* the other has ended, and this was the last of it */
                relay_free(y);
        else
                (void) bufferevent_enable(other(y, bev), EV_READ);
}

static void relay_event(struct bufferevent *bev, short what, void *arg) {
        struct relay *y = arg;

        relay_read(bev, y);
        y->eof[bev == y->side[1]] = true;
        if ((what & BEV_EVENT_ERROR) || evbuffer_get_length(bufferevent_get_output(other(y, bev))) == 0)
                relay_free(y);
}

static void relay_start(struct forward *f, struct bufferevent *a, struct bufferevent *b) {
        struct relay *y = calloc(1, sizeof(*y));

        if (!y) {
                bufferevent_free(a);
                bufferevent_free(b);
                return;
        }
        *y = (struct relay){ .forward = f, .side = { a, b } };
        TAILQ_INSERT_TAIL(&f->relays, y, link);
        for (size_t i = 0; i < ARRAY_SIZE(y->side); i++) {
                bufferevent_setcb(y->side[i], relay_read, relay_written, relay_event, y);
                (void) bufferevent_enable(y->side[i], EV_READ | EV_WRITE);
        }
        relay_read(a, y); /* what came behind the heads */
        relay_read(b, y);
}

/* --- the answer --- */

static void settle(struct exchange *x) {
        if (!x->conn && !x->call)
                free(x);
}

static void refuse(struct exchange *x, unsigned status, const char *why) {
        struct buf lines = BUF_INIT(256), body = BUF_INIT(1024);
        struct err err = { 0 };

        http_add(&lines, "Content-Type", "text/plain");
        buf_addf(&body, "gabion: %s\n", why);
        if (x->started)
                http_reply_abort(x->conn);
        else
                (void) http_reply(x->conn, status, &lines, buf_str(&body), body.len, &err);
        x->whole = true;
        buf_done(&lines);
        buf_done(&body);
}

static void on_head(struct client_call *q, const struct http_head *head, void *data) {
        static const char *const drop[] = { "Date", NULL }; /* http_reply_start() writes one */
        struct exchange *x = data;
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        enum http_body how = head->body == HTTP_BODY_LENGTH || head->has_length ? HTTP_BODY_LENGTH
                             : head->body == HTTP_BODY_NONE                     ? HTTP_BODY_LENGTH
                                                                                : HTTP_BODY_CHUNKED;
        struct bufferevent *here = NULL, *there;
        struct err err = { 0 };

        if (!x->conn)
                return;
        http_add_forwarded(&lines, head, drop, head->upgrade);
        x->started = true;
        if (!head->upgrade) {
                (void) http_reply_start(x->conn, head->status, &lines, how, head->length, &err);
        } else if (http_hand_over(x->conn, head->status, &lines, &here, &err) == 0) {
                there = client_call_take(q);
                x->call = NULL;
                relay_start(x->forward, here, there);
        }
        buf_done(&lines);
}

static void on_body(struct client_call *q, struct evbuffer *body, void *data) {
        struct exchange *x = data;
        struct err err = { 0 };

        (void) q;
        if (!x->conn)
                (void) evbuffer_drain(body, SIZE_MAX);
        else if (!http_reply_is_full(x->conn))
                (void) http_reply_buffer(x->conn, body, &err);
}

static void on_call_room(struct client_call *q, void *data) {
        struct exchange *x = data;

        (void) q;
        if (x->conn && x->full)
                http_resume(x->conn);
        x->full = false;
}

static void on_call_done(struct client_call *q, int result, const struct err *err, void *data) {
        struct exchange *x = data;
        struct err ignored = { 0 };

        (void) q;
        x->call = NULL;
        if (x->conn && result == 0)
                (void) http_reply_end(x->conn, &ignored);
        else if (x->conn)
                refuse(x, 502, err->msg);
        x->whole = true;
        settle(x);
}

/* --- the request --- */

static void on_request_body(struct http_conn *c, struct evbuffer *body, void *data) {
        struct exchange *x = data;

        (void) c;
        if (!x->call)
                (void) evbuffer_drain(body, SIZE_MAX);
        else if (client_call_is_full(x->call))
                x->full = true;
        else
                client_call_write_buffer(x->call, body);
}

static void on_request_end(struct http_conn *c, void *data) {
        struct exchange *x = data;

        (void) c;
        if (x->call)
                client_call_end(x->call);
}

static void on_reply_room(struct http_conn *c, void *data) {
        struct exchange *x = data;

        (void) c;
        if (x->call)
                client_call_resume(x->call);
}

static void on_request_done(struct http_conn *c, int result, void *data) {
        struct exchange *x = data;

        (void) c, (void) result;
        x->conn = NULL;
        if (x->call)
                x->call = client_call_cancel(x->call);
        settle(x);
}

static const struct http_handler handler = {
        .on_body = on_request_body, .on_end = on_request_end, .on_room = on_reply_room, .on_done = on_request_done
};
static const struct client_ops ops = {
        .on_head = on_head, .on_body = on_body, .on_room = on_call_room, .on_done = on_call_done
};

/* The browser's own Host is passed on where the server does not take it for a name of its own. */
static const char *host_of(const struct http_head *head) {
        bool plain = str_eq(head->host, "localhost") || head->host[0] == '[' ||
                     !head->host[strspn(head->host, "0123456789.")];

        return plain ? http_header(head, "Host", NULL) : NULL;
}

static void on_request(struct http_conn *c, const struct http_head *head, void *arg) {
        static const char *const drop[] = { "Host", "E2b-Sandbox-Id", "E2b-Sandbox-Port", "e2b-traffic-access-token",
                                            NULL };
        struct exchange *x = calloc(1, sizeof(*x));
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX), target = BUF_INIT(HTTP_LINE_MAX);
        struct client_request q = { .method = head->method, .quiet_ms = QUIET_MS, .lines = &lines };
        struct err err = { 0 };

        if (!x) {
                (void) http_reply(c, 503, NULL, NULL, 0, &err);
                return;
        }
        *x = (struct exchange){ .forward = arg, .conn = c };
        http_accept(c, &handler, x, UINT64_MAX);
        buf_addf(&target, "%s%s%s", head->path, head->query ? "?" : "", head->query ? head->query : "");
        http_add_forwarded(&lines, head, drop, head->upgrade);
        q.target = buf_str(&target);
        q.box = x->forward->box;
        q.port = x->forward->port;
        q.host = host_of(head);
        q.upgrade = head->upgrade;
        q.body = http_add_framing(&lines, head, 1);
        if (client_call_new(x->forward->client, &q, &ops, x, &x->call, &err) < 0)
                refuse(x, 502, err.msg);
        buf_done(&lines);
        buf_done(&target);
}

static void on_signal(int fd, short what, void *arg) {
        (void) fd, (void) what;
        (void) event_base_loopbreak(arg);
}

int forward_serve(struct client *c, const struct client_box *box, uint16_t port, int fd, struct err *err) {
        struct forward f = { .client = c, .box = box, .port = port };
        const struct http_server_config config = { .on_head = on_request, .arg = &f };
        struct event_base *base = client_base(c);
        struct event *ends[] = { evsignal_new(base, SIGINT, on_signal, base),
                                 evsignal_new(base, SIGTERM, on_signal, base) };
        struct http_server *s = NULL;
        int r;

        TAILQ_INIT(&f.relays);
        r = http_server_new(&s, base, &config, err);
        if (r < 0)
                (void) close(fd);
        else
                r = http_server_listen(s, fd, NULL, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ends); i++)
                if (!ends[i] || event_add(ends[i], NULL) < 0)
                        r = err_set(err, -ENOMEM, ERR_INTERNAL, "signals");
        if (r == 0)
                (void) event_base_dispatch(base);
        s = http_server_free(s);
        for (struct relay *y; (y = TAILQ_FIRST(&f.relays));)
                relay_free(y);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (ends[i])
                        event_free(ends[i]);
        return r;
}
