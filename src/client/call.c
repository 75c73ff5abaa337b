/*
 * call.c - one request and its answer, each on a connection of its own.
 *
 * Theory of operation. A call dials, then writes what was queued and parses what comes, with the strict parser of
 * src/http. Its end, good or bad, is told from the top of the loop by the event `over`, which also frees it: so nothing
 * goes away below a callback, and cancelling is possible anywhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/state.h"
#include "tls/tls.h"

enum { ENVD_PORT = 49983 };

struct client_call {
        TAILQ_ENTRY(client_call) link; /* owned by its client */
        struct client *client;
        struct place *place;
        const struct client_ops *ops;
        void *data;
        char method[16];
        struct dial *dial;
        struct bufferevent *bev;     /* once connected */
        struct evbuffer *out, *body; /* before that; what the owner has not taken */
        struct http_parser *parser;
        struct event *over, *again;
        enum http_body how;
        unsigned quiet_ms;
        bool ready;     /* TLS has shaken hands, too */
        bool answered;  /* a byte of the answer has come */
        bool eof, full; /* theirs is shut; the owner waits for room */
        bool ended, silent;
        int result;
        struct err err;
};

static void call_free(struct client_call *q) {
        TAILQ_REMOVE(&q->client->calls, q, link);
        q->dial = dial_free(q->dial);
        if (q->bev)
                bufferevent_free(q->bev);
        if (q->out)
                evbuffer_free(q->out);
        if (q->body)
                evbuffer_free(q->body);
        q->parser = http_parser_free(q->parser);
        if (q->over)
                event_free(q->over);
        if (q->again)
                event_free(q->again);
        free(q);
}

/* The first word counts. */
static void finish(struct client_call *q, int r, const struct err *err) {
        if (q->ended)
                return;
        q->ended = true;
        q->result = r;
        if (err)
                q->err = *err;
        if (q->bev)
                (void) bufferevent_disable(q->bev, EV_READ | EV_WRITE);
        event_active(q->over, EV_TIMEOUT, 0);
}

static void fail(struct client_call *q, int r, const char *why) {
        struct err err = { 0 };

        finish(q, err_set(&err, r, ERR_PEER, "the server at %s %s", q->place->url.text, why), &err);
}

static void on_over(int fd, short what, void *arg) {
        struct client_call *q = arg;

        (void) fd, (void) what;
        if (!q->silent)
                q->ops->on_done(q, q->result, &q->err, q->data);
        call_free(q);
}

/* --- the answer --- */

/* False: the owner has not taken all, and must say so first. */
static bool give(struct client_call *q) {
        if (evbuffer_get_length(q->body) > 0 && q->ops->on_body)
                q->ops->on_body(q, q->body, q->data);
        else
                (void) evbuffer_drain(q->body, SIZE_MAX);
        if (q->ended || evbuffer_get_length(q->body) == 0)
                return true;
        (void) bufferevent_disable(q->bev, EV_READ);
        return false;
}

static void pull(struct client_call *q) {
        struct evbuffer *in = bufferevent_get_input(q->bev);
        const struct http_head *head;
        struct http_event ev = { 0 };
        struct err err = { 0 };
        int r;

        while (!q->ended && q->bev && give(q)) {
                if (q->ended)
                        return;
                r = http_pull(q->parser, in, q->body, &ev, &err);
                if (r == 0 && ev.type == HTTP_EV_MORE && q->eof)
                        r = http_eof(q->parser, &ev, &err);
                if (r < 0) {
                        if (q->eof && q->answered)
                                fail(q, -ECONNRESET, "ended the connection in the middle of its answer");
                        else if (q->eof)
                                fail(q, -ECONNRESET, "ended the connection without an answer");
                        else
                                fail(q, -EPROTO, "does not speak HTTP as it should");
                        return;
                }
                head = http_parser_head(q->parser);
                if (ev.type == HTTP_EV_MORE) {
                        if (q->eof)
                                fail(q, -ECONNRESET, "ended the connection without an answer");
                        return;
                }
                if (ev.type == HTTP_EV_HEAD && !head->interim && q->ops->on_head)
                        q->ops->on_head(q, head, q->data);
                if (ev.type == HTTP_EV_END && head->interim)
                        http_parser_next(q->parser, q->method);
                else if (ev.type == HTTP_EV_END)
                        finish(q, 0, NULL);
        }
}

static void on_read(struct bufferevent *bev, void *arg) {
        struct client_call *q = arg;

        (void) bev;
        q->answered = true;
        pull(q);
}

static void on_write(struct bufferevent *bev, void *arg) {
        struct client_call *q = arg;

        (void) bev;
        if (q->full && !q->ended) {
                q->full = false;
                if (q->ops->on_room)
                        q->ops->on_room(q, q->data);
        }
}

static void wait_for(struct client_call *q, unsigned ms) {
        const struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t) (ms % 1000) * 1000 };

        (void) bufferevent_set_timeouts(q->bev, &tv, NULL);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct client_call *q = arg;
        struct err err = { 0 };

        if (q->ended)
                return;
        if (what & BEV_EVENT_CONNECTED) {
                q->ready = true;
                wait_for(q, q->quiet_ms);
        } else if (what & BEV_EVENT_TIMEOUT) {
                fail(q, -ETIMEDOUT, q->ready ? "has said nothing for too long" : "does not speak TLS");
        } else if (q->place->url.scheme == CLIENT_HTTPS && tls_error(bev, what, &err) != -ENODATA) {
                finish(q, err_wrap(&err, "the server at %s", q->place->url.text), &err);
        } else { /* an end, or an error after which an answer that is already here counts */
                q->eof = true;
                pull(q);
        }
}

/* --- the connection --- */

static void on_dialled(void *arg, int fd, const struct err *err) {
        struct client_call *q = arg;
        bool https = q->place->url.scheme == CLIENT_HTTPS;
        struct err failed = { 0 };
        int r = 0;

        if (fd < 0) {
                finish(q, fd, err);
                return;
        }
        if (https)
                r = tls_connect_fd(q->client->tls, q->client->base, fd, q->place->url.host, &q->bev, &failed);
        else
                q->bev = bufferevent_socket_new(q->client->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        if (r < 0 || !q->bev) {
                (void) close(fd);
                finish(q, r < 0 ? r : err_set(&failed, -ENOMEM, ERR_INTERNAL, "out of memory"), &failed);
                return;
        }
        q->ready = !https;
        bufferevent_setcb(q->bev, on_read, on_write, on_event, q);
        bufferevent_setwatermark(q->bev, EV_READ, 0, HTTP_READ_HIGH);
        bufferevent_setwatermark(q->bev, EV_WRITE, CLIENT_WRITE_HIGH / 4, 0);
        wait_for(q, https ? CLIENT_DIAL_MS : q->quiet_ms);
        (void) evbuffer_add_buffer(bufferevent_get_output(q->bev), q->out);
        (void) bufferevent_enable(q->bev, EV_READ | EV_WRITE);
}

/* A server looks at our headers about sandboxes only if Host is no name of its own: an address, or sandbox.DOMAIN. */
static bool is_neutral(const struct client_url *u) {
        return u->scheme == CLIENT_UNIX || str_eq(u->host, "localhost") || str_has_prefix(u->host, "sandbox.") ||
               u->host[0] == '[' || !u->host[strspn(u->host, "0123456789.")];
}

static void put_host(const struct client_url *u, const struct client_request *r, struct buf *lines) {
        const char *prefix = r->box && !is_neutral(u) ? "sandbox." : "";
        bool usual = u->scheme == CLIENT_UNIX || u->port == (u->scheme == CLIENT_HTTPS ? 443 : 80);

        if (r->host)
                http_add(lines, "Host", r->host);
        else if (usual)
                http_addf(lines, "Host", "%s%s", prefix, u->host);
        else
                http_addf(lines, "Host", "%s%s:%u", prefix, u->host, (unsigned) u->port);
}

static void put_lines(struct client_call *q, const struct client_request *r, struct buf *lines) {
        put_host(&q->place->url, r, lines);
        if (!r->upgrade)
                http_add(lines, "Connection", "close");
        if (r->box) {
                http_add(lines, "E2b-Sandbox-Id", r->box->id);
                http_addf(lines, "E2b-Sandbox-Port", "%u", r->port ? (unsigned) r->port : (unsigned) ENVD_PORT);
                if (!r->port)
                        http_add(lines, "X-Access-Token", r->box->token);
                else if (r->box->traffic[0])
                        http_add(lines, "e2b-traffic-access-token", r->box->traffic);
        } else if (q->client->key[0]) {
                http_add(lines, "X-API-Key", q->client->key);
        }
        if (r->lines && r->lines->bad)
                lines->bad = true;
        else if (r->lines)
                buf_add(lines, buf_str(r->lines), r->lines->len);
        if (r->port)
                return; /* what is passed on says itself what its body is */
        if (r->text || q->how != HTTP_BODY_NONE)
                http_add(lines, "Content-Type", r->type ? r->type : "application/json");
        if (r->text)
                http_addf(lines, "Content-Length", "%zu", strlen(r->text));
        else if (q->how == HTTP_BODY_LENGTH)
                http_addf(lines, "Content-Length", "%llu", (unsigned long long) r->length);
        else if (q->how == HTTP_BODY_CHUNKED)
                http_add(lines, "Transfer-Encoding", "chunked");
}

static int begin(struct client_call *q, const struct client_request *r, struct err *err) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        int n;

        q->out = evbuffer_new();
        q->body = evbuffer_new();
        q->over = event_new(q->client->base, -1, 0, on_over, q);
        if (!q->out || !q->body || !q->over || str_copy(q->method, sizeof(q->method), r->method) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (r->box && !r->port && !r->box->token[0])
                return err_set(err, -EPERM, ERR_DENIED, "this key may see sandbox %s, but not connect to it",
                               r->box->id);
        q->how = r->body;
        put_lines(q, r, &lines);
        n = http_write_request_head(q->out, r->method, r->target, &lines, err);
        if (lines.p)
                explicit_bzero(lines.p, lines.len); /* the key */
        buf_done(&lines);
        if (n == 0)
                n = http_parser_new_response(&q->parser, q->method, err);
        if (n == 0 && r->text && evbuffer_add(q->out, r->text, strlen(r->text)) < 0)
                n = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        return n < 0 ? n : dial_new(q->client, q->place, on_dialled, q, &q->dial, err);
}

int client_call_new(struct client *c, const struct client_request *request, const struct client_ops *ops, void *data,
                    struct client_call **ret, struct err *err) {
        struct client_call *q = calloc(1, sizeof(*q));
        int r;

        if (!q)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        q->client = c;
        q->place = request->box ? &c->sandboxes : &c->server;
        q->ops = ops;
        q->data = data;
        q->quiet_ms = request->quiet_ms ? request->quiet_ms : CLIENT_ANSWER_MS;
        TAILQ_INSERT_TAIL(&c->calls, q, link);
        r = begin(q, request, err);
        if (r < 0) {
                call_free(q);
                return r;
        }
        *ret = q;
        return 0;
}

/* --- for the owner --- */

static struct evbuffer *output(const struct client_call *q) {
        return q->bev ? bufferevent_get_output(q->bev) : q->out;
}

void client_call_write(struct client_call *q, const void *p, size_t n) {
        struct err err = { 0 };

        if (!q->ended && http_write_body(output(q), q->how, p, n, &err) < 0)
                finish(q, err.code, &err);
}

void client_call_write_buffer(struct client_call *q, struct evbuffer *from) {
        struct err err = { 0 };

        if (q->ended)
                (void) evbuffer_drain(from, SIZE_MAX);
        else if (http_write_buffer(output(q), q->how, from, &err) < 0)
                finish(q, err.code, &err);
}

void client_call_end(struct client_call *q) {
        struct err err = { 0 };

        if (!q->ended && http_write_end(output(q), q->how, &err) < 0)
                finish(q, err.code, &err);
}

bool client_call_is_full(const struct client_call *q) {
        bool full = !q->ended && evbuffer_get_length(output(q)) >= CLIENT_WRITE_HIGH;

        ((struct client_call *) (uintptr_t) q)->full |= full;
        return full;
}

static void on_again(int fd, short what, void *arg) {
        struct client_call *q = arg;

        (void) fd, (void) what;
        if (q->ended || !q->bev)
                return;
        (void) bufferevent_enable(q->bev, EV_READ);
        pull(q);
}

void client_call_resume(struct client_call *q) {
        if (!q->again)
                q->again = event_new(q->client->base, -1, 0, on_again, q);
        if (q->again)
                event_active(q->again, EV_TIMEOUT, 0);
        else
                fail(q, -ENOMEM, "is read by a program that has no memory");
}

struct bufferevent *client_call_take(struct client_call *q) {
        struct bufferevent *bev = TAKE_PTR(q->bev);

        bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
        (void) bufferevent_set_timeouts(bev, NULL, NULL);
        bufferevent_setwatermark(bev, EV_WRITE, 0, 0);
        (void) client_call_cancel(q);
        return bev;
}

struct client_call *client_call_cancel(struct client_call *q) {
        if (q) {
                q->silent = true;
                finish(q, -ECANCELED, NULL);
        }
        return NULL;
}

/* --- the client --- */

int client_new(struct client **ret, const struct client_config *config, struct err *err) {
        CLEANUP(client_freep) struct client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        TAILQ_INIT(&c->calls);
        r = client_url_parse(config->server, &c->server.url, err);
        if (r == 0)
                r = client_url_parse(config->sandboxes ? config->sandboxes : config->server, &c->sandboxes.url, err);
        if (r < 0)
                return r;
        if (str_copy(c->key, sizeof(c->key), config->key) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "the API key is longer than %d characters",
                               CLIENT_KEY_TEXT - 1);
        if (c->server.url.scheme == CLIENT_HTTPS || c->sandboxes.url.scheme == CLIENT_HTTPS) {
                r = tls_client_new(config->ca_file, NULL, &c->tls, err);
                if (r < 0)
                        return r;
        }
        c->base = event_base_new();
        if (!c->base)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "event loop");
        *ret = TAKE_PTR(c);
        return 0;
}

struct client *client_free(struct client *c) {
        struct client_call *q;

        if (!c)
                return NULL;
        while ((q = TAILQ_FIRST(&c->calls)))
                call_free(q);
        if (c->base)
                event_base_free(c->base);
        c->tls = tls_client_free(c->tls);
        place_done(&c->server);
        place_done(&c->sandboxes);
        explicit_bzero(c->key, sizeof(c->key));
        free(c);
        return NULL;
}

void client_freep(struct client **c) {
        *c = client_free(*c);
}

struct event_base *client_base(const struct client *c) {
        return c->base;
}

const struct client_url *client_server(const struct client *c) {
        return &c->server.url;
}
