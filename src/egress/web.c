/*
 * web.c - see web.h: the client's side, and the order of things.
 *
 * One request at a time: the next head is not looked at before the answer to the last one is complete. The far side is
 * dialled when the first request was allowed, so a connection with nothing but denied requests never leaves this
 * process. Reading stops on one side while the other cannot take more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egress/conn.h"
#include "egress/dial.h"
#include "egress/egress.h"
#include "egress/limits.h"
#include "egress/sandbox.h"
#include "egress/web_state.h"
#include "tls/tls.h"

#define BIT(n) (1u << (n))

enum { HANDSHAKE_NS = 500 * 1000, READ_NS = 10 * 1000 };

static const unsigned legal[WEB_STATES] = {
        [WEB_HANDSHAKE] = BIT(WEB_HEAD),
        [WEB_HEAD] = BIT(WEB_DIAL) | BIT(WEB_EXCHANGE) | BIT(WEB_LAST),
        [WEB_DIAL] = BIT(WEB_EXCHANGE) | BIT(WEB_LAST),
        [WEB_EXCHANGE] = BIT(WEB_HEAD) | BIT(WEB_RAW) | BIT(WEB_LAST),
        [WEB_RAW] = BIT(WEB_LAST),
        [WEB_LAST] = 0,
};

void web_move(struct web *w, enum web_state next) {
        if (!(legal[w->state] & BIT(next)))
                abort(); /* our bug, never a peer's */
        w->state = next;
}

static void set_reading(struct bufferevent *bev, bool on) {
        if (on)
                (void) bufferevent_enable(bev, EV_READ);
        else
                (void) bufferevent_disable(bev, EV_READ);
}

bool web_has_room(const struct web *w, struct bufferevent *to) {
        size_t room = EGRESS_WEB_BYTES / w->conn->sandbox->n_conns;

        room = room < EGRESS_WEB_BYTES_LEAST ? EGRESS_WEB_BYTES_LEAST : room;
        room = room > EGRESS_WEB_BYTES_MOST ? EGRESS_WEB_BYTES_MOST : room;
        return to && evbuffer_get_length(bufferevent_get_output(to)) < room;
}

void web_flow(struct web *w) {
        bool client = true;

        if (w->conn->parked || w->state == WEB_DIAL)
                client = false;
        else if ((w->state == WEB_EXCHANGE && !w->request_done) || w->state == WEB_RAW)
                client = web_has_room(w, w->world);
        set_reading(w->client, client);
        if (w->world)
                set_reading(w->world, !w->conn->parked && w->state != WEB_LAST && web_has_room(w, w->client));
}

bool web_turn_begin(struct web *w, uint64_t *ret_begin_ns) {
        sandbox_charge(w->conn->sandbox, READ_NS); /* libevent read the socket before it called us */
        w->conn->parked = !sandbox_begin(w->conn->sandbox, ret_begin_ns);
        if (w->conn->parked)
                web_flow(w);
        return !w->conn->parked;
}

/* --- records --- */

void web_note_end(struct web *w, const char *detail) {
        struct conn *c = w->conn;
        struct record r = { .event = w->event,
                            .kind = "http",
                            .name = c->name,
                            .address = c->address,
                            .port = c->port,
                            .protocol = c->protocol,
                            .allowed = true,
                            .code = "",
                            .rule = w->rule,
                            .side = policy_net_side_name(POLICY_NET_SANDBOX),
                            .with_bytes = true,
                            .bytes_out = c->flows[CONN_CLIENT].bytes - w->out_before,
                            .bytes_in = c->flows[CONN_WORLD].bytes - w->in_before,
                            .duration_ns = clock_mono_ns() - w->begin_ns,
                            .method = w->method,
                            .path = w->path,
                            .phase = "close",
                            .detail = detail };

        if (w->begin_ns > 0)
                sandbox_tell(c->sandbox, &r);
        w->begin_ns = 0;
}

static void note_begin(struct web *w, const struct policy_net_verdict *v) {
        (void) snprintf(w->rule, sizeof(w->rule), "%s", v->rule);
        (void) snprintf(w->path, sizeof(w->path), "%s", v->path ? v->path : "");
        ledger_event(w->event);
        w->begin_ns = clock_mono_ns();
        w->out_before = w->conn->flows[CONN_CLIENT].bytes;
        w->in_before = w->conn->flows[CONN_WORLD].bytes;
}

/* --- a request --- */

/* Does the request speak to the host that this connection is for? */
static bool is_our_host(const struct web *w, const struct http_head *h) {
        const struct conn *c = w->conn;

        if (h->form == HTTP_FORM_ABSOLUTE && h->https != w->tls)
                return false;
        if (!c->name)
                return true; /* an address was allowed as such: whoever is there may have any name */
        return str_eq(h->host, c->name) && (h->port == 0 || h->port == c->port);
}

static void judge(struct web *w) {
        const struct http_head *h = http_parser_head(w->request);
        struct conn *c = w->conn;
        struct policy_net_request q = {
                .stage = POLICY_NET_HTTP, .name = c->name, .port = c->port, .method = h->method, .path = h->path
        };
        struct policy_net_verdict v;
        char detail[HTTP_HOST_MAX + 16];

        w->head_ms = 0;
        w->minor = h->minor;
        (void) snprintf(w->method, sizeof(w->method), "%s", h->method);
        if (!c->name)
                q.address = &c->address;
        policy_net_eval(c->sandbox->policy, &q, &v);
        if (h->form == HTTP_FORM_AUTHORITY) {
                web_deny(w, "net.protocol_not_allowed", "floor:protocol", "floor", NULL, "CONNECT");
        } else if (!is_our_host(w, h)) {
                (void) snprintf(detail, sizeof(detail), "host %s", h->host);
                web_deny(w, "net.sni_mismatch", "floor:host", "floor", NULL, detail);
        } else if (h->upgrade && c->verdict.needs_http) {
                web_deny(w, "net.protocol_not_allowed", "floor:upgrade", "floor", NULL, "Upgrade");
        } else if (!v.allowed) {
                web_deny(w, v.code, v.rule, policy_net_side_name(v.side), v.path, NULL);
        } else {
                note_begin(w, &v);
                if (h->expect_continue)
                        (void) http_write_response_head(bufferevent_get_output(w->client), 100, NULL,
                                                        &(struct err){ 0 });
                web_world_send(w);
        }
}

/* A piece of the body goes on. False: the connection is gone. */
static bool pass_body(struct web *w, struct evbuffer *body) {
        size_t n = evbuffer_get_length(body);
        struct conn *c = w->conn;
        struct err err = { 0 };

        if (!conn_may_spend(c, n))
                return false;
        c->sandbox->bytes_out += n;
        c->flows[CONN_CLIENT].bytes += n;
        c->moved_ms = egress_now_ms();
        if (http_write_buffer(bufferevent_get_output(w->world), w->request_how, body, &err) < 0) {
                web_fail(w, "out of memory");
                return false;
        }
        return true;
}

/* One event of the parser. False: nothing more can be done now. */
static bool step(struct web *w) {
        struct evbuffer *in = bufferevent_get_input(w->client), *body = evbuffer_new();
        struct http_event ev;
        struct err err = { 0 };
        bool more = false;

        if (!body || http_pull(w->request, in, body, &ev, &err) < 0) {
                web_bad_request(w, body ? http_parser_status(w->request) : 500, body ? err.msg : "out of memory");
        } else if (ev.type == HTTP_EV_HEAD) {
                judge(w);
                more = true;
        } else if (ev.type == HTTP_EV_BODY) {
                more = pass_body(w, body);
        } else if (ev.type == HTTP_EV_END) {
                w->request_done = true;
                (void) http_write_end(bufferevent_get_output(w->world), w->request_how, &err);
        } else if (w->state == WEB_HEAD && w->head_ms == 0 && http_parser_is_busy(w->request)) {
                w->head_ms = egress_now_ms();
        }
        if (body)
                evbuffer_free(body);
        return more;
}

static void pass_raw(struct web *w, struct bufferevent *from, struct bufferevent *to, unsigned leg) {
        struct evbuffer *in = bufferevent_get_input(from);
        size_t n = evbuffer_get_length(in);
        struct conn *c = w->conn;

        if (leg == CONN_CLIENT && !conn_may_spend(c, n))
                return;
        if (leg == CONN_CLIENT)
                c->sandbox->bytes_out += n;
        c->flows[leg].bytes += n;
        c->moved_ms = egress_now_ms();
        (void) bufferevent_write_buffer(to, in);
        web_flow(w);
}

/* Does with the client's bytes what can be done now. */
static void client_bytes(struct web *w) {
        struct conn *c = w->conn;
        struct evbuffer *in = bufferevent_get_input(w->client);

        while (c->state == CONN_WEB &&
               (w->state == WEB_HEAD || (w->state == WEB_EXCHANGE && !w->request_done && web_has_room(w, w->world))) &&
               step(w))
                ;
        if (c->state != CONN_WEB)
                return;
        if (w->state == WEB_RAW) {
                pass_raw(w, w->client, w->world, CONN_CLIENT);
        } else if (w->state == WEB_LAST) {
                w->dropped += evbuffer_get_length(in);
                (void) evbuffer_drain(in, evbuffer_get_length(in));
                if (w->dropped > HTTP_DISCARD_MAX)
                        conn_end(c, NULL, true);
        } else {
                web_flow(w);
        }
}

void web_resume(struct web *w) {
        web_flow(w);
        web_world_resume(w);
        if (w->conn->state == CONN_WEB && w->state != WEB_HANDSHAKE)
                client_bytes(w);
}

void web_kick(struct web *w) {
        bufferevent_trigger(w->client, EV_READ, BEV_OPT_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
}

void web_next(struct web *w) {
        web_note_end(w, NULL);
        w->answer_begun = false;
        if (w->last_exchange || !w->request_done || w->client_eof) {
                /* Nothing more is read: what was written goes out, then the connection ends. */
                web_move(w, WEB_LAST);
                web_world_close(w, false);
                web_flow(w);
                return;
        }
        w->request_done = false;
        w->fresh_world = false;
        http_parser_next(w->request, NULL);
        web_move(w, WEB_HEAD);
        web_kick(w); /* the next request may have come already */
        web_flow(w);
}

/* --- callbacks --- */

static void on_client_read(struct bufferevent *bev, void *arg) {
        struct web *w = arg;
        struct sandbox *s = w->conn->sandbox;
        uint64_t begin;

        (void) bev;
        if (w->conn->state != CONN_WEB || w->state == WEB_HANDSHAKE || !web_turn_begin(w, &begin))
                return;
        client_bytes(w);
        sandbox_end(s, begin, NULL);
}

static void on_client_write(struct bufferevent *bev, void *arg) {
        struct web *w = arg;

        if (w->conn->state != CONN_WEB)
                return;
        if (w->state == WEB_LAST && evbuffer_get_length(bufferevent_get_output(bev)) == 0) {
                if (w->client_eof)
                        conn_end(w->conn, NULL, false);
                else if (!w->tls)
                        (void) shutdown(w->client_fd, SHUT_WR);
                return;
        }
        web_flow(w);
}

/* Is there still something to do for a client that has said its last word? */
static bool wants_more(const struct web *w) {
        if (w->state == WEB_EXCHANGE)
                return w->request_done; /* it waits for its answer */
        if (w->state == WEB_RAW)
                return evbuffer_get_length(bufferevent_get_output(w->world)) > 0;
        return w->state == WEB_LAST && evbuffer_get_length(bufferevent_get_output(w->client)) > 0;
}

/* The client has gone, or will say no more. */
static void client_ended(struct web *w, short what) {
        struct err err = { 0 };
        bool clean = w->tls ? tls_error(w->client, what, &err) == -ENODATA : (what & BEV_EVENT_EOF) != 0;

        w->client_eof = true;
        if (clean && wants_more(w))
                return;
        if (w->state == WEB_HANDSHAKE)
                conn_end(w->conn, "TLS with the client failed: it may not trust the certificate of this sandbox", true);
        else if (w->state == WEB_EXCHANGE || w->state == WEB_DIAL) {
                web_note_end(w, "client went away");
                conn_end(w->conn, NULL, true);
        } else {
                conn_end(w->conn, NULL, !clean);
        }
}

static void on_client_event(struct bufferevent *bev, short what, void *arg) {
        struct web *w = arg;

        (void) bev;
        if (w->conn->state != CONN_WEB)
                return;
        if (what & BEV_EVENT_CONNECTED) {
                sandbox_charge(w->conn->sandbox, HANDSHAKE_NS); /* it was made below us, unmeasured */
                web_move(w, WEB_HEAD);
                web_flow(w);
        } else {
                client_ended(w, what);
        }
}

/* --- life --- */

static int open_client(struct web *w, int fd, struct err *err) {
        struct egress *e = w->conn->egress;
        struct bufferevent *under =
                bufferevent_socket_new(e->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        int r = 0;

        if (!under) {
                (void) close(fd);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        w->client = under;
        w->client_fd = fd;
        /* Only now, when nothing of it is queued: libevent would move it between the loop's queues by halves. */
        (void) bufferevent_priority_set(under, sandbox_priority(w->conn->sandbox));
        if (w->tls) {
                if (!e->mint)
                        return err_set(err, -ENOTSUP, ERR_INVALID, "TLS has to be opened, but open_tls is off");
                r = tls_accept(e->mint, under, w->conn->name, &w->client, err);
        }
        if (r < 0)
                return r;
        bufferevent_setcb(w->client, on_client_read, on_client_write, on_client_event, w);
        bufferevent_setwatermark(w->client, EV_READ, 0, HTTP_READ_HIGH);
        bufferevent_setwatermark(w->client, EV_WRITE, 0, 0);
        return bufferevent_enable(w->client, EV_READ | EV_WRITE) < 0
                       ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory")
                       : 0;
}

int web_new(struct conn *c, int client_fd, int world_fd, bool tls, struct web **ret, struct err *err) {
        struct web *w = calloc(1, sizeof(*w));
        int r;

        if (!w) {
                (void) close(client_fd);
                own_closep(&world_fd);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        *w = (struct web){ .conn = c, .tls = tls, .client_fd = -1, .world_fd = -1 };
        w->state = tls ? WEB_HANDSHAKE : WEB_HEAD;
        w->head_ms = egress_now_ms();
        r = open_client(w, client_fd, err);
        if (r == 0)
                r = http_parser_new_request(&w->request, err);
        if (r == 0 && world_fd >= 0)
                r = web_world_open(w, world_fd, err);
        else
                own_closep(&world_fd);
        if (r < 0) {
                web_shut(w, true);
                web_free(w);
                return r;
        }
        *ret = w;
        return 0;
}

static void reset_fd(int fd) {
        static const struct linger at_once = { .l_onoff = 1 };

        if (fd >= 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void web_shut(struct web *w, bool reset) {
        web_note_end(w, "cut off");
        dial_cancel(TAKE_PTR(w->dial));
        web_world_close(w, reset);
        if (reset)
                reset_fd(w->client_fd);
        if (w->client && w->tls && !reset && w->state != WEB_HANDSHAKE)
                tls_close(w->client);
        else if (w->client)
                bufferevent_free(w->client);
        w->client = NULL;
}

struct web *web_free(struct web *w) {
        if (!w)
                return NULL;
        http_parser_free(w->request);
        http_parser_free(w->response);
        free(w);
        return NULL;
}

void web_sweep(struct web *w, uint64_t now_ms) {
        uint64_t idle = now_ms - w->conn->moved_ms;

        if (w->state == WEB_HANDSHAKE && idle > EGRESS_HELLO_MS)
                conn_end(w->conn, "no TLS handshake in time", true);
        else if (w->state == WEB_HEAD && w->head_ms > 0 && now_ms - w->head_ms > HTTP_HEAD_MS)
                web_bad_request(w, 408, "head of the request did not come in time");
        else if ((w->state == WEB_HEAD && idle > HTTP_IDLE_MS) || (w->state == WEB_LAST && idle > HTTP_LINGER_MS))
                conn_end(w->conn, NULL, false);
        else if (idle > EGRESS_IDLE_MS)
                conn_end(w->conn, "idle", true);
}
