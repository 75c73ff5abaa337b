/*
 * ingress.c - HTTP to a port of a sandbox: a request is read and written anew, and so is its answer, both as they come.
 *
 * Each request has a stream of its own through the agent. Back-pressure goes through: a client that does not read stops
 * the server inside, and the other way round. If the server inside answers 101, both sides become one raw stream
 * (relay.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "agentproto/agentproto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/relay.h"
#include "envd/text.h"
#include "http/server.h"

static const char token_header[] = "e2b-traffic-access-token", id_header[] = "E2b-Sandbox-Id",
                  port_header[] = "E2b-Sandbox-Port";

struct ingress {
        struct call call; /* first */
        uint16_t port;
        struct agent *agent;     /* until the stream is there */
        struct bufferevent *bev; /* then */
        struct http_parser *parser;
        enum http_body how;       /* of the request's body, on the way in */
        bool started, over, full; /* the client has a head; all was said; the server's side is */
        bool ended, eof;          /* the client's body is whole; the server said its last */
        struct evbuffer *body;
};

/* Before the answer began the client can be told; afterwards only by cutting it short. */
static void fail(struct ingress *i, const char *why) {
        if (i->over)
                return;
        i->over = true;
        if (i->started)
                http_reply_abort(i->call.conn);
        else
                answer_gateway(i->call.envd, i->call.box->target, i->call.conn, 502, i->call.box->target->id, why,
                               i->port);
}

/* --- the answer --- */

static const char *const ours[] = { "Date", NULL }; /* the http layer writes it */

static void become_raw(struct ingress *i, const struct http_head *answer) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct bufferevent *client = NULL;
        struct envd_box *box = i->call.box;
        struct err err = { 0 };

        http_add_forwarded(&lines, answer, ours, true);
        i->over = true;
        if (http_hand_over(i->call.conn, 101, &lines, &client, &err) < 0)
                http_reply_abort(i->call.conn);
        else
                relay_new(box, client, TAKE_PTR(i->bev));
        buf_done(&lines);
}

static void on_answer(struct ingress *i, const struct http_head *answer) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };
        bool asks_head = str_eq(http_conn_head(i->call.conn)->method, "HEAD");
        bool known = answer->has_length || (answer->body == HTTP_BODY_NONE && !asks_head);

        if (answer->interim)
                return;
        if (answer->upgrade) {
                become_raw(i, answer);
                return;
        }
        http_add_forwarded(&lines, answer, ours, false);
        i->started = true;
        if (http_reply_start(i->call.conn, answer->status, &lines, known ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED,
                             answer->length, &err) < 0) {
                i->over = true;
                http_reply_abort(i->call.conn);
        }
        buf_done(&lines);
}

static void on_whole(struct ingress *i) {
        struct err err = { 0 };

        if (http_parser_head(i->parser)->interim) {
                http_parser_next(i->parser, http_conn_head(i->call.conn)->method);
                return;
        }
        i->over = true;
        (void) http_reply_end(i->call.conn, &err);
}

/* One event of the answer; false: more bytes are needed, or it is over. */
static bool on_piece(struct ingress *i, const struct http_event *ev) {
        struct err err = { 0 };

        switch (ev->type) {
        case HTTP_EV_MORE:
                return false;
        case HTTP_EV_HEAD:
                on_answer(i, http_parser_head(i->parser));
                break;
        case HTTP_EV_BODY:
                if (http_reply_buffer(i->call.conn, i->body, &err) < 0)
                        i->over = true;
                break;
        case HTTP_EV_END:
                on_whole(i);
                break;
        }
        return !i->over;
}

static void pull(struct ingress *i) {
        struct http_event ev;
        struct err err = { 0 };

        while (!i->over && !http_reply_is_full(i->call.conn)) {
                if (http_pull(i->parser, bufferevent_get_input(i->bev), i->body, &ev, &err) < 0) {
                        fail(i, "The sandbox's port did not answer in HTTP");
                        return;
                }
                if (!on_piece(i, &ev))
                        return;
        }
}

static void on_read(struct bufferevent *bev, void *arg) {
        (void) bev;
        pull(arg);
}

static void on_written(struct bufferevent *bev, void *arg) {
        struct ingress *i = arg;

        (void) bev;
        if (!i->full)
                return;
        i->full = false;
        if (!i->ended)
                http_resume(i->call.conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct ingress *i = arg;
        struct http_event ev = { .type = HTTP_EV_MORE };
        struct err err = { 0 };

        (void) bev;
        if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) || i->over)
                return;
        pull(i);
        if (i->over)
                return;
        if ((what & BEV_EVENT_EOF) && evbuffer_get_length(bufferevent_get_input(i->bev)) == 0 &&
            http_eof(i->parser, &ev, &err) == 0 && ev.type == HTTP_EV_END)
                on_whole(i);
        else if ((what & BEV_EVENT_ERROR) || evbuffer_get_length(bufferevent_get_input(i->bev)) == 0)
                fail(i, "The sandbox's port closed the connection");
        else
                i->eof = true; /* the client reads slowly; what is left comes first */
}

/* --- the request --- */

static void put_host(struct buf *lines, const struct ingress *i, const struct http_head *head) {
        const char *mask = i->call.box->target->mask_host, *given = http_header(head, "Host", NULL), *hole;

        if (!mask) {
                http_add(lines, "Host", given ? given : head->host);
                return;
        }
        hole = strstr(mask, "${PORT}");
        if (hole)
                http_addf(lines, "Host", "%.*s%u%s", (int) (hole - mask), mask, i->port, hole + 7);
        else
                http_add(lines, "Host", mask);
}

static int send_head(struct ingress *i, const struct http_head *head, struct err *err) {
        static const char *const drop[] = { "Host", token_header, id_header, port_header, NULL };
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX), target = BUF_INIT(HTTP_LINE_MAX);
        int r;

        put_host(&lines, i, head);
        http_add_forwarded(&lines, head, drop, head->upgrade);
        i->how = http_add_framing(&lines, head, 1);
        if (!head->upgrade)
                http_add(&lines, "Connection", "close"); /* one request for each stream */
        buf_addf(&target, "%s%s%s", head->path, head->query ? "?" : "", head->query ? head->query : "");
        r = target.bad ? err_set(err, -EMSGSIZE, ERR_INVALID, "target is too long")
                       : http_write_request_head(bufferevent_get_output(i->bev), head->method, buf_str(&target), &lines,
                                                 err);
        buf_done(&lines);
        buf_done(&target);
        return r;
}

static int on_frame(void *data, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct ingress *i = data;
        uint32_t err_no;
        char step[32];

        if (head->type == AP_ERROR && ap_get_error(body, n, &err_no, step, sizeof(step)) == 0) {
                i->agent = agent_close(i->agent);
                fail(i, err_no == EBUSY ? "The sandbox has too many connections to its ports"
                                        : "The sandbox is running but port is not open");
                return 0;
        }
        if (head->type != AP_DONE || n != 0)
                return err_set(err, -EPROTO, ERR_PEER, "no answer about a port");
        i->bev = agent_take(TAKE_PTR(i->agent));
        bufferevent_setcb(i->bev, on_read, on_written, on_event, i);
        bufferevent_setwatermark(i->bev, EV_READ, 0, ENVD_RELAY);
        bufferevent_setwatermark(i->bev, EV_WRITE, ENVD_AGENT_LOW, 0);
        if (send_head(i, http_conn_head(i->call.conn), err) < 0) {
                fail(i, "The request cannot be passed on");
                return 0;
        }
        if (i->ended)
                (void) http_write_end(bufferevent_get_output(i->bev), i->how, err);
        else
                http_resume(i->call.conn);
        bufferevent_trigger(i->bev, EV_READ, BEV_OPT_DEFER_CALLBACKS); /* for what came together with the answer */
        return 0;
}

static void on_down(void *data, const struct err *err) {
        struct ingress *i = data;

        (void) err;
        i->agent = NULL;
        fail(i, "The sandbox cannot be reached");
}

static const struct agent_ops port_ops = { .frame_max = AP_CHUNK, .on_frame = on_frame, .on_down = on_down };

static void on_body(struct call *c, struct evbuffer *body) {
        struct ingress *i = (struct ingress *) c;
        struct err err = { 0 };

        if (i->over) {
                (void) evbuffer_drain(body, SIZE_MAX);
                return;
        }
        if (!i->bev || i->full)
                return; /* stays with the http layer */
        if (http_write_buffer(bufferevent_get_output(i->bev), i->how, body, &err) < 0)
                fail(i, "The request cannot be passed on");
        else
                i->full = evbuffer_get_length(bufferevent_get_output(i->bev)) >= ENVD_AGENT_HIGH;
}

static void on_end(struct call *c) {
        struct ingress *i = (struct ingress *) c;
        struct err err = { 0 };

        i->ended = true;
        if (i->bev && !i->over)
                (void) http_write_end(bufferevent_get_output(i->bev), i->how, &err);
}

static void on_room(struct call *c) {
        struct ingress *i = (struct ingress *) c;

        if (!i->bev || i->over)
                return;
        pull(i);
        if (i->eof)
                on_event(i->bev, BEV_EVENT_EOF, i);
}

static void on_free(struct call *c) {
        struct ingress *i = (struct ingress *) c;

        i->over = true;
        i->agent = agent_close(i->agent);
        if (i->bev)
                bufferevent_free(TAKE_PTR(i->bev));
        i->parser = http_parser_free(i->parser);
        if (i->body)
                evbuffer_free(TAKE_PTR(i->body));
}

static const struct call_ops ingress_ops = {
        .size = sizeof(struct ingress),
        .body_max = UINT64_MAX,
        .on_body = on_body,
        .on_end = on_end,
        .on_room = on_room,
        .on_free = on_free,
};

static bool may_enter(const struct envd_target *t, const struct http_head *head) {
        const char *token = http_header(head, token_header, NULL);

        return !t->traffic_token || (token && text_is_secret(token, t->traffic_token));
}

void ingress_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, uint16_t port) {
        struct wr w = agent_frame();
        struct err err = { 0 };
        struct ingress *i;

        if (!may_enter(box->target, head)) {
                answer_gateway(box->envd, box->target, c, 403, box->target->id,
                               "The header e2b-traffic-access-token is missing or wrong", 0);
                return;
        }
        i = call_new(box, c, &ingress_ops);
        if (!i)
                return;
        i->port = port;
        i->body = evbuffer_new();
        if (!i->body || http_parser_new_response(&i->parser, head->method, &err) < 0 ||
            agent_open(box->envd, box->target->socket, &port_ops, i, &i->agent, &err) < 0) {
                fail(i, "The sandbox cannot be reached");
                return;
        }
        ap_put_u32(&w, AP_PORT, 0, port);
        (void) agent_send(i->agent, &w);
}
