/*
 * conn.c - the state machine of one connection.
 *
 * Theory of operation: bytes arrive in the bufferevent's input, at most HTTP_READ_HIGH of them. conn_run() pulls them
 * through the parser one event at a time and acts on each; it stops when bytes are missing, when the handler left body
 * bytes lying, when a reply is awaited, or when so much output waits that a further request would only add to it.
 * Whatever may let it go on (bytes, room, a whole reply, http_resume()) runs it again, from the top of the loop.
 * Nothing is freed here but by the reaper in server.c.
 *
 * Deadlines, one timer: IDLE idle_ms; HEAD head_ms for the whole head, however it trickles; REQUEST read_ms between
 * bytes while we wait for them; DISCARD and the end of CLOSING linger_ms. REPLY has none: the handler decides how long
 * it thinks. A client that does not take our bytes meets the bufferevent's write timeout, write_ms, in any state.
 */
#include "http/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

static const unsigned legal[CONN_STATES] = {
        [CONN_IDLE] = BIT(CONN_HEAD) | BIT(CONN_REQUEST) | BIT(CONN_CLOSING) | BIT(CONN_DEAD),
        [CONN_HEAD] = BIT(CONN_REQUEST) | BIT(CONN_CLOSING) | BIT(CONN_DEAD),
        [CONN_REQUEST] = BIT(CONN_REPLY) | BIT(CONN_DISCARD) | BIT(CONN_CLOSING) | BIT(CONN_DEAD),
        [CONN_REPLY] = BIT(CONN_IDLE) | BIT(CONN_CLOSING) | BIT(CONN_DEAD),
        [CONN_DISCARD] = BIT(CONN_IDLE) | BIT(CONN_CLOSING) | BIT(CONN_DEAD),
        [CONN_CLOSING] = BIT(CONN_DEAD),
};

static unsigned or_default(unsigned ms, unsigned usual) {
        return ms ? ms : usual;
}

/* 0: none */
static unsigned deadline_ms(const struct http_conn *c) {
        const struct http_server_config *cfg = server_config(c->server);

        switch (c->state) {
        case CONN_IDLE:
                return or_default(cfg->idle_ms, HTTP_IDLE_MS);
        case CONN_HEAD:
                return or_default(cfg->head_ms, HTTP_HEAD_MS);
        case CONN_REQUEST:
                if (evbuffer_get_length(c->body) > 0 || c->reply == CONN_REPLY_OPEN)
                        return 0;
                return or_default(cfg->read_ms, HTTP_READ_MS);
        case CONN_DISCARD:
                return or_default(cfg->linger_ms, HTTP_LINGER_MS);
        case CONN_CLOSING:
                return c->lingers ? or_default(cfg->linger_ms, HTTP_LINGER_MS) : 0;
        case CONN_REPLY:
        case CONN_DEAD:
        case CONN_STATES:
                break;
        }
        return 0;
}

static struct timeval as_timeval(unsigned ms) {
        return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = (suseconds_t) (ms % 1000) * 1000 };
}

static void arm(struct http_conn *c) {
        unsigned ms = deadline_ms(c);
        struct timeval tv = as_timeval(ms);

        if (ms == 0 || event_add(c->timer, &tv) < 0)
                (void) event_del(c->timer);
}

/* The only writer of c->state. */
static void move(struct http_conn *c, enum conn_state next) {
        if (!(legal[c->state] & BIT(next)))
                abort(); /* our bug, never the peer's */
        c->state = next;
        arm(c);
        server_file(c);
}

void conn_wake(struct http_conn *c) {
        if (!c->running)
                event_active(c->wake, EV_READ, 0);
}

void conn_kill(struct http_conn *c, int result) {
        static const struct linger reset = { .l_onoff = 1 };

        if (c->state == CONN_DEAD)
                return;
        c->result = result;
        bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
        (void) bufferevent_disable(c->bev, EV_READ | EV_WRITE);
        if (c->reply == CONN_REPLY_OPEN && c->how == HTTP_BODY_CLOSE) /* an orderly end would mean that it is whole */
                (void) setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        move(c, CONN_DEAD);
}

/* Closing a socket with unread bytes in it makes the kernel reset the connection, which may overtake our last words. So
 * our side is shut first, and what still comes is thrown away for a while. */
static void linger(struct http_conn *c) {
        if (c->lingers)
                return;
        if (c->transport && c->transport->finish)
                c->transport->finish(c->bev, c->transport->arg);
        if (!bufferevent_get_underlying(c->bev))
                (void) shutdown(bufferevent_getfd(c->bev), SHUT_WR);
        c->lingers = true;
        arm(c);
        server_file(c);
        if (c->eof)
                conn_kill(c, 0);
}

void conn_close(struct http_conn *c) {
        if (c->state == CONN_CLOSING || c->state == CONN_DEAD)
                return;
        move(c, CONN_CLOSING);
        bufferevent_setwatermark(c->bev, EV_WRITE, 0, 0);
        (void) evbuffer_drain(bufferevent_get_input(c->bev), SIZE_MAX);
        if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
                linger(c);
}

/* The request is over for its handler. */
static void release(struct http_conn *c, int result) {
        const struct http_handler *h = TAKE_PTR(c->handler);

        if (h)
                h->on_done(c, result, c->data);
        c->data = NULL;
}

static void refuse(struct http_conn *c, unsigned status, const struct err *err) {
        const struct http_server_config *cfg = server_config(c->server);

        if (cfg->on_refused)
                cfg->on_refused(c, status, err, cfg->arg);
        if (c->state == CONN_DEAD)
                return;
        if (c->state == CONN_DISCARD || conn_answer(c, status, err->msg)) {
                release(c, err->code);
                conn_close(c);
        } else
                conn_kill(c, err->code); /* a reply had begun: only its being cut short can tell the client */
}

/* The reply is whole, and so is the request. */
static void finish(struct http_conn *c) {
        release(c, 0);
        if (c->state == CONN_DEAD)
                return;
        if (c->last || server_is_draining(c->server)) {
                conn_close(c);
                return;
        }
        http_parser_next(c->parser, NULL);
        c->reply = CONN_REPLY_NONE;
        c->n_body = c->n_discarded = 0;
        c->mute = c->full = c->continued = false;
        move(c, CONN_IDLE);
}

static void give_body(struct http_conn *c) {
        if (c->handler && c->handler->on_body && c->reply != CONN_REPLY_WHOLE)
                c->handler->on_body(c, c->body, c->data);
        else
                (void) evbuffer_drain(c->body, SIZE_MAX);
        c->resumed = false; /* only now: a handler that resumes itself would never end */
        if (c->state == CONN_REQUEST)
                arm(c);
}

static void on_message_body(struct http_conn *c, const struct http_event *ev) {
        struct err err = { 0 };

        if (c->state == CONN_DISCARD) {
                c->n_discarded += ev->used;
                (void) evbuffer_drain(c->body, SIZE_MAX);
                if (c->n_discarded > HTTP_DISCARD_MAX)
                        conn_close(c);
                return;
        }
        c->n_body += ev->n;
        if (c->n_body > c->body_max) {
                (void) err_set(&err, -EMSGSIZE, ERR_LIMIT, "body too large");
                refuse(c, 413, &err);
                return;
        }
        give_body(c);
}

static void on_message_end(struct http_conn *c) {
        if (c->state == CONN_DISCARD) {
                finish(c);
                return;
        }
        move(c, CONN_REPLY);
        if (c->handler && c->handler->on_end && c->reply != CONN_REPLY_WHOLE)
                c->handler->on_end(c, c->data);
}

static void on_message_head(struct http_conn *c) {
        const struct http_server_config *cfg = server_config(c->server);
        const struct http_head *head = http_parser_head(c->parser);
        struct err err = { 0 };

        move(c, CONN_REQUEST);
        c->last = !head->keep_alive;
        c->mute = str_eq(head->method, "HEAD");
        c->serial = server_next_serial(c->server);
        cfg->on_head(c, head, cfg->arg);
        if (c->state != CONN_REQUEST || c->reply == CONN_REPLY_WHOLE)
                return;
        if (!c->handler) {
                (void) err_set(&err, -EPROTO, ERR_INTERNAL, "nobody answers");
                refuse(c, 500, &err);
        } else if (head->has_length && head->length > c->body_max) {
                (void) err_set(&err, -EMSGSIZE, ERR_LIMIT, "body too large");
                refuse(c, 413, &err);
        } else if (head->expect_continue && c->reply == CONN_REPLY_NONE) {
                c->continued = true;
                if (http_write_response_head(bufferevent_get_output(c->bev), 100, NULL, &err) < 0)
                        conn_kill(c, err.code);
        }
}

/* One event of the parser. False: nothing more can be done now. */
static bool pull(struct http_conn *c) {
        struct err err = { 0 };
        struct http_event ev;

        if (http_pull(c->parser, bufferevent_get_input(c->bev), c->body, &ev, &err) < 0) {
                refuse(c, http_parser_status(c->parser), &err);
                return false;
        }
        switch (ev.type) {
        case HTTP_EV_MORE:
                if (c->state == CONN_IDLE && http_parser_is_busy(c->parser))
                        move(c, CONN_HEAD);
                return false;
        case HTTP_EV_HEAD:
                on_message_head(c);
                break;
        case HTTP_EV_BODY:
                on_message_body(c, &ev);
                break;
        case HTTP_EV_END:
                on_message_end(c);
                break;
        }
        return true;
}

static bool step(struct http_conn *c) {
        switch (c->state) {
        case CONN_IDLE:
        case CONN_HEAD:
                return evbuffer_get_length(bufferevent_get_output(c->bev)) < HTTP_WRITE_HIGH && pull(c);
        case CONN_REQUEST:
                if (c->reply == CONN_REPLY_WHOLE) { /* before the request was */
                        release(c, 0);
                        (void) evbuffer_drain(c->body, SIZE_MAX);
                        if (c->last)
                                conn_close(c);
                        else
                                move(c, CONN_DISCARD);
                        return true;
                }
                if (evbuffer_get_length(c->body) > 0) {
                        if (c->resumed)
                                give_body(c);
                        return evbuffer_get_length(c->body) == 0;
                }
                return pull(c);
        case CONN_REPLY:
                if (c->reply != CONN_REPLY_WHOLE)
                        return false;
                finish(c);
                return true;
        case CONN_DISCARD:
                return pull(c);
        case CONN_CLOSING:
        case CONN_DEAD:
        case CONN_STATES:
                break;
        }
        return false;
}

void conn_run(struct http_conn *c) {
        c->running = true;
        while (step(c))
                ;
        c->running = false;
}

static void on_read(struct bufferevent *bev, void *arg) {
        struct http_conn *c = arg;

        if (c->state == CONN_CLOSING) {
                c->n_discarded += evbuffer_get_length(bufferevent_get_input(bev));
                (void) evbuffer_drain(bufferevent_get_input(bev), SIZE_MAX);
                if (c->n_discarded > HTTP_LINGER_BYTES)
                        conn_kill(c, -EMSGSIZE);
        }
        conn_run(c);
}

static void on_write(struct bufferevent *bev, void *arg) {
        struct http_conn *c = arg;
        size_t n = evbuffer_get_length(bufferevent_get_output(bev));

        if (c->state == CONN_CLOSING && n == 0)
                linger(c);
        if (c->full && n <= HTTP_WRITE_LOW) {
                c->full = false;
                if (c->handler && c->handler->on_room && c->reply == CONN_REPLY_OPEN)
                        c->handler->on_room(c, c->data);
        }
        conn_run(c);
}

static bool is_answered(const struct http_conn *c) {
        return c->state == CONN_IDLE || c->state == CONN_DISCARD || c->state == CONN_CLOSING;
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct http_conn *c = arg;

        if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)))
                return;
        c->eof = what & BEV_EVENT_EOF;
        conn_run(c); /* what has come counts */
        if (c->eof && is_answered(c) && evbuffer_get_length(bufferevent_get_output(bev)) > 0)
                conn_close(c); /* a client that asked, shut its side and still reads */
        else
                conn_kill(c, what & BEV_EVENT_TIMEOUT ? -ETIMEDOUT : -ECONNRESET);
}

static void on_wake(int fd, short what, void *arg) {
        (void) fd, (void) what;
        conn_run(arg);
}

static void on_timer(int fd, short what, void *arg) {
        struct http_conn *c = arg;
        struct err err = { 0 };

        (void) fd, (void) what;
        if (c->state == CONN_REQUEST && c->reply == CONN_REPLY_OPEN)
                return;
        if (c->state == CONN_HEAD || c->state == CONN_REQUEST) {
                (void) err_set(&err, -ETIMEDOUT, ERR_PEER, "request did not arrive in time");
                refuse(c, 408, &err);
        } else if (c->state == CONN_DISCARD)
                conn_close(c);
        else
                conn_kill(c, -ETIMEDOUT);
}

int conn_new(struct http_server *s, struct bufferevent *bev, const struct http_transport *t, struct http_conn **ret,
             struct err *err) {
        struct timeval write = as_timeval(or_default(server_config(s)->write_ms, HTTP_WRITE_MS));
        struct http_conn *c = calloc(1, sizeof(*c));

        if (!c) {
                bufferevent_free(bev);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http connection");
        }
        *c = (struct http_conn){ .server = s, .transport = t, .bev = bev };
        c->timer = evtimer_new(server_base(s), on_timer, c);
        c->wake = event_new(server_base(s), -1, 0, on_wake, c);
        c->body = evbuffer_new();
        if (!c->timer || !c->wake || !c->body || http_parser_new_request(&c->parser, err) < 0) {
                conn_free(c);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http connection");
        }
        bufferevent_setcb(bev, on_read, on_write, on_event, c);
        bufferevent_setwatermark(bev, EV_READ, 0, HTTP_READ_HIGH);
        bufferevent_setwatermark(bev, EV_WRITE, HTTP_WRITE_LOW, 0);
        (void) bufferevent_set_timeouts(bev, NULL, &write);
        (void) bufferevent_enable(bev, EV_READ | EV_WRITE);
        arm(c);
        conn_wake(c); /* a bufferevent from somebody else may have bytes already */
        *ret = c;
        return 0;
}

void conn_free(struct http_conn *c) {
        release(c, c->result);
        if (c->timer)
                event_free(c->timer);
        if (c->wake)
                event_free(c->wake);
        if (c->body)
                evbuffer_free(c->body);
        c->parser = http_parser_free(c->parser);
        if (c->bev)
                bufferevent_free(c->bev);
        free(c);
}

void http_accept(struct http_conn *c, const struct http_handler *handler, void *data, uint64_t body_max) {
        c->handler = handler;
        c->data = data;
        c->body_max = body_max ? body_max : HTTP_BODY_DEFAULT;
}

void http_resume(struct http_conn *c) {
        c->resumed = true;
        conn_wake(c);
}
