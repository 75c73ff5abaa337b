/*
 * web_world.c - the far side of a seen connection: see web_state.h.
 *
 * The socket is kept for the next request if both ends allow it. One that was used before may have been closed
 * meanwhile; then the client is cut off without an answer, as the server itself would have done, and tries again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egress/conn.h"
#include "egress/dial.h"
#include "egress/egress.h"
#include "egress/sandbox.h"
#include "egress/web_state.h"
#include "tls/tls.h"

enum { CONTINUE = 100 };

/* --- the answer --- */

/* Bytes for the client. */
static void count_in(struct web *w, size_t n) {
        w->conn->flows[CONN_WORLD].bytes += n;
        w->conn->moved_ms = egress_now_ms();
}

static int write_head(struct web *w, const struct http_head *h, bool upgrade) {
        struct evbuffer *out = bufferevent_get_output(w->client);
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        size_t before = evbuffer_get_length(out);
        struct err err = { 0 };
        int r;

        http_add_forwarded(&lines, h, NULL, upgrade);
        if (!upgrade && !h->interim) {
                w->answer_how = http_add_framing(&lines, h, w->minor);
                w->last_exchange = w->last_exchange || w->answer_how == HTTP_BODY_CLOSE || !w->request_done;
                if (w->last_exchange)
                        http_add(&lines, "Connection", "close");
                else if (w->minor == 0)
                        http_add(&lines, "Connection", "keep-alive");
        }
        r = http_write_response_head(out, h->status, &lines, &err);
        buf_done(&lines);
        count_in(w, evbuffer_get_length(out) - before);
        return r;
}

/* False: the exchange has ended. */
static bool answer_head(struct web *w) {
        const struct http_head *h = http_parser_head(w->response);

        if (h->interim) {
                /* The 100 that the client waited for was ours. */
                if (h->status == CONTINUE || w->minor == 0 || write_head(w, h, false) == 0)
                        return true;
        } else if (h->upgrade) {
                if (http_parser_head(w->request)->upgrade && w->request_done && write_head(w, h, true) == 0) {
                        struct evbuffer *in = bufferevent_get_input(w->world);

                        web_move(w, WEB_RAW);
                        w->answer_begun = true;
                        count_in(w, evbuffer_get_length(in));
                        (void) bufferevent_write_buffer(w->client, in);
                        return false;
                }
        } else if (write_head(w, h, false) == 0) {
                w->answer_begun = true;
                return true;
        }
        web_fail(w, "upstream: its answer cannot be passed on");
        return false;
}

static void answer_end(struct web *w) {
        const struct http_head *h = http_parser_head(w->response);
        struct err err = { 0 };

        if (h->interim) {
                http_parser_next(w->response, w->method);
                return;
        }
        if (http_write_end(bufferevent_get_output(w->client), w->answer_how, &err) < 0) {
                web_fail(w, "out of memory");
                return;
        }
        if (!h->keep_alive)
                web_world_close(w, false);
        web_next(w);
}

/* One event of the parser. False: nothing more can be done now. */
static bool step(struct web *w) {
        struct evbuffer *body = evbuffer_new();
        struct http_event ev;
        struct err err = { 0 };
        bool more = false;

        if (!body || http_pull(w->response, bufferevent_get_input(w->world), body, &ev, &err) < 0) {
                web_fail(w, "upstream: its answer is not HTTP/1.1 as everybody reads it");
        } else if (ev.type == HTTP_EV_HEAD) {
                more = answer_head(w);
        } else if (ev.type == HTTP_EV_BODY) {
                count_in(w, ev.n);
                more = http_write_buffer(bufferevent_get_output(w->client), w->answer_how, body, &err) == 0;
                if (!more)
                        web_fail(w, "out of memory");
        } else if (ev.type == HTTP_EV_END) {
                more = http_parser_head(w->response)->interim;
                answer_end(w);
        }
        if (body)
                evbuffer_free(body);
        return more;
}

static void world_bytes(struct web *w) {
        struct conn *c = w->conn;

        while (c->state == CONN_WEB && w->state == WEB_EXCHANGE && w->world && web_has_room(w, w->client) && step(w))
                ;
        if (c->state != CONN_WEB)
                return;
        if (w->state == WEB_RAW) {
                struct evbuffer *in = bufferevent_get_input(w->world);

                count_in(w, evbuffer_get_length(in));
                (void) bufferevent_write_buffer(w->client, in);
        } else if (w->state == WEB_HEAD && w->world && evbuffer_get_length(bufferevent_get_input(w->world)) > 0) {
                /* It speaks although nothing was asked: it cannot be trusted with the next request. */
                web_world_close(w, true);
        }
        web_flow(w);
}

void web_world_resume(struct web *w) {
        if (w->world)
                world_bytes(w);
}

/* --- callbacks --- */

static void on_read(struct bufferevent *bev, void *arg) {
        struct web *w = arg;
        struct sandbox *s = w->conn->sandbox;
        uint64_t begin;

        (void) bev;
        if (w->conn->state != CONN_WEB || !web_turn_begin(w, &begin))
                return;
        world_bytes(w);
        sandbox_end(s, begin, NULL);
}

static void on_write(struct bufferevent *bev, void *arg) {
        struct web *w = arg;

        if (w->conn->state != CONN_WEB)
                return;
        if (w->state == WEB_RAW && w->client_eof && evbuffer_get_length(bufferevent_get_output(bev)) == 0)
                conn_end(w->conn, NULL, false);
        else
                web_kick(w); /* there is room: the client's bytes may wait */
}

/* The far side will send no more: is that an answer? */
static void world_ended(struct web *w, short what) {
        struct err err = { 0 };
        struct http_event ev;
        int code = w->tls ? tls_error(w->world, what, &err) : what & BEV_EVENT_EOF ? -ENODATA : -ECONNRESET;

        if (w->state == WEB_RAW) {
                web_move(w, WEB_LAST);
                web_world_close(w, false);
                web_flow(w);
        } else if (w->state != WEB_EXCHANGE) {
                web_world_close(w, false);
        } else if (code == -ENODATA && http_eof(w->response, &ev, &err) == 0 && ev.type == HTTP_EV_END) {
                answer_end(w);
        } else if (code == -EKEYREJECTED) {
                web_fail(w, "upstream: certificate not accepted");
        } else if (!w->answer_begun && !w->fresh_world && !http_parser_is_busy(w->response)) {
                web_note_end(w, "upstream: closed before the request came");
                conn_end(w->conn, NULL, false);
        } else {
                web_fail(w, code == -EPROTO ? "upstream: TLS failed" : "upstream: connection lost");
        }
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct web *w = arg;

        (void) bev;
        if (w->conn->state != CONN_WEB || (what & BEV_EVENT_CONNECTED))
                return;
        /* What came before the end is read first; then the end is looked at again, if it is still there. */
        if (w->state == WEB_EXCHANGE)
                world_bytes(w);
        if (w->conn->state == CONN_WEB && w->world)
                world_ended(w, what);
}

/* --- the request --- */

static int write_request(struct web *w, struct evbuffer *out, struct err *err) {
        const struct http_head *h = http_parser_head(w->request);
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX), target = BUF_INIT(HTTP_LINE_MAX);
        int r;

        buf_addf(&target, "%s%s%s", h->path, h->query ? "?" : "", h->query ? h->query : "");
        http_add_forwarded(&lines, h, NULL, h->upgrade);
        w->request_how = http_add_framing(&lines, h, 1);
        r = target.bad ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory")
                       : http_write_request_head(out, h->method, buf_str(&target), &lines, err);
        buf_done(&lines);
        buf_done(&target);
        return r;
}

static void send_head(struct web *w) {
        struct conn *c = w->conn;
        struct evbuffer *head = evbuffer_new();
        struct err err = { 0 };
        int r = head ? write_request(w, head, &err) : -ENOMEM;
        size_t n = r == 0 ? evbuffer_get_length(head) : 0;

        w->last_exchange = !http_parser_head(w->request)->keep_alive;
        if (r == 0 && !w->response)
                r = http_parser_new_response(&w->response, w->method, &err);
        else if (r == 0)
                http_parser_next(w->response, w->method);
        if (r < 0) {
                web_fail(w, "the request cannot be passed on");
        } else if (conn_may_spend(c, n)) {
                c->sandbox->bytes_out += n;
                c->flows[CONN_CLIENT].bytes += n;
                c->moved_ms = egress_now_ms();
                (void) bufferevent_write_buffer(w->world, head);
                web_move(w, WEB_EXCHANGE);
                web_kick(w);
                web_flow(w);
        }
        if (head)
                evbuffer_free(head);
}

static void dialled(struct web *w, const struct dial_result *res) {
        struct conn *c = w->conn;
        struct err err = { 0 };

        if (res->address.family != ADDR_NONE)
                c->address = res->address;
        if (res->fd >= 0 && web_world_open(w, res->fd, &err) == 0) {
                send_head(w);
        } else if (res->denied) {
                w->begin_ns = 0; /* what becomes a denial is no allowed request */
                web_deny(w, res->verdict.code, res->verdict.rule, policy_net_side_name(res->verdict.side), NULL, NULL);
        } else {
                web_fail(w, res->problem ? res->problem : "upstream: TLS failed");
        }
}

static void on_dialled(const struct dial_result *res, void *arg) {
        struct web *w = arg;

        w->dial = NULL;
        dialled(w, res);
}

void web_world_send(struct web *w) {
        struct conn *c = w->conn;
        const struct dial_to to = { .name = c->name, .address = &c->address, .port = c->port };
        struct dial_result res;

        if (w->world) {
                send_head(w);
                return;
        }
        web_move(w, WEB_DIAL);
        web_flow(w);
        if (dial_start(c->sandbox, &to, on_dialled, w, &res, &w->dial) > 0)
                dialled(w, &res);
}

int web_world_open(struct web *w, int fd, struct err *err) {
        struct egress *e = w->conn->egress;
        int r = 0;

        if (w->tls)
                r = tls_connect_fd(e->client, e->base, fd, w->conn->name, &w->world, err);
        else if (!(w->world = bufferevent_socket_new(e->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)))
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        w->world_fd = fd;
        w->fresh_world = true;
        bufferevent_setcb(w->world, on_read, on_write, on_event, w);
        bufferevent_setwatermark(w->world, EV_READ, 0, HTTP_READ_HIGH);
        bufferevent_setwatermark(w->world, EV_WRITE, 0, 0);
        return bufferevent_enable(w->world, EV_READ | EV_WRITE) < 0
                       ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory")
                       : 0;
}

void web_world_close(struct web *w, bool reset) {
        static const struct linger at_once = { .l_onoff = 1 };

        if (!w->world)
                return;
        if (reset)
                (void) setsockopt(w->world_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        if (w->tls && !reset)
                tls_close(w->world);
        else
                bufferevent_free(w->world);
        w->world = NULL;
        w->world_fd = -1;
        w->response = http_parser_free(w->response);
}
