/*
 * rpc.c - Connect-RPC over HTTP/1.1: unary calls and streams, in JSON. See rpc.h.
 *
 * Invariant: every call is answered once. A stream's status is always 200 and its failure the last message; what cannot
 * be told any more, because the sandbox is gone, is told by cutting the connection.
 */
#include "envd/rpc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"
#include "http/server.h"
#include "json/json.h"
#include "sign/sign.h"

enum { FLAG_END = 2, PIECE = 128 << 10 };

static const char json_type[] = "application/json", stream_type[] = "application/connect+json";

/* --- answers --- */

static void stop(struct rpc *q) {
        if (q->beat)
                (void) event_del(q->beat);
        if (q->deadline)
                (void) event_del(q->deadline);
        if (q->method->stop && !q->answered)
                q->method->stop(q);
        q->answered = true;
}

static void again(struct rpc *q) {
        struct timeval tv = { .tv_sec = q->beat_s };

        if (q->beat)
                (void) event_add(q->beat, &tv);
}

/* False: the client is gone. */
static bool begin(struct rpc *q, enum http_body how, uint64_t length) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };
        bool ok = true;

        if (!q->started) {
                answer_lines(q->call.envd, q->call.box->target, q->call.conn, 200,
                             q->method->kind == RPC_UNARY ? json_type : stream_type, &lines);
                ok = http_reply_start(q->call.conn, 200, &lines, how, length, &err) == 0;
                q->started = true;
                buf_done(&lines);
        }
        return ok;
}

static void put_envelope(char dst[ENVD_ENVELOPE], uint8_t flag, size_t n) {
        struct wr w = wr_to(dst, ENVD_ENVELOPE);

        wr_u8(&w, flag);
        wr_u32(&w, (uint32_t) n);
}

void rpc_send(struct rpc *q, char *message, size_t n) {
        struct err err = { 0 };

        put_envelope(message, 0, n);
        if (begin(q, HTTP_BODY_CHUNKED, 0))
                (void) http_reply_body(q->call.conn, message, n + ENVD_ENVELOPE, &err);
        again(q);
}

static void send_text(struct rpc *q, uint8_t flag, const char *text) {
        struct evbuffer *message = evbuffer_new();
        char envelope[ENVD_ENVELOPE];
        struct err err = { 0 };

        put_envelope(envelope, flag, strlen(text));
        if (!message || evbuffer_add(message, envelope, sizeof(envelope)) < 0 ||
            evbuffer_add(message, text, strlen(text)) < 0)
                http_reply_abort(q->call.conn);
        else if (begin(q, HTTP_BODY_CHUNKED, 0))
                (void) http_reply_buffer(q->call.conn, message, &err);
        if (message)
                evbuffer_free(message);
}

void rpc_send_text(struct rpc *q, const char *json) {
        send_text(q, 0, json);
        again(q);
}

void rpc_send_json(struct rpc *q, struct json *message) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        if (json_text(message, false, &text, &err) < 0)
                http_reply_abort(q->call.conn);
        else
                rpc_send_text(q, text);
        (void) json_free(message);
}

static void finish_with(struct rpc *q, const char *end) {
        struct err err = { 0 };

        stop(q);
        send_text(q, FLAG_END, end);
        (void) http_reply_end(q->call.conn, &err);
}

void rpc_finish(struct rpc *q) {
        if (!q->answered)
                finish_with(q, "{}");
}

bool rpc_is_full(struct rpc *q) {
        return http_reply_is_full(q->call.conn);
}

/* As much as the client takes now; the rest when on_room() comes. */
static void push(struct rpc *q) {
        struct err err = { 0 };

        while (evbuffer_get_length(q->body) > 0 && !http_reply_is_full(q->call.conn)) {
                size_t n = evbuffer_get_length(q->body);
                const void *p;

                n = n < PIECE ? n : PIECE;
                p = evbuffer_pullup(q->body, (ev_ssize_t) n);
                if (!p || http_reply_body(q->call.conn, p, n, &err) < 0)
                        return;
                (void) evbuffer_drain(q->body, n);
        }
        if (evbuffer_get_length(q->body) == 0)
                (void) http_reply_end(q->call.conn, &err);
}

void rpc_reply_text(struct rpc *q, struct evbuffer *text) {
        if (q->answered)
                return;
        (void) evbuffer_drain(q->body, SIZE_MAX);
        (void) evbuffer_add_buffer(q->body, text);
        stop(q);
        if (begin(q, HTTP_BODY_LENGTH, evbuffer_get_length(q->body)))
                push(q);
}

void rpc_reply(struct rpc *q, struct json *body) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        if (q->answered) {
                (void) json_free(body);
                return;
        }
        if (body && json_text(body, false, &text, &err) < 0) {
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "out of memory");
        } else if (q->method->kind != RPC_UNARY) {
                rpc_send_text(q, text ? text : "{}");
                finish_with(q, "{}");
        } else {
                stop(q);
                if (begin(q, HTTP_BODY_LENGTH, text ? strlen(text) : 2) &&
                    http_reply_body(q->call.conn, text ? text : "{}", text ? strlen(text) : 2, &err) == 0)
                        (void) http_reply_end(q->call.conn, &err);
        }
        (void) json_free(body);
}

void rpc_fail(struct rpc *q, enum rpc_code code, const char *fmt, ...) {
        struct json *error = json_new_object(), *end = NULL;
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        char why[sizeof(err.msg)];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(why, sizeof(why), fmt, ap);
        va_end(ap);
        json_set_str(error, "code", rpc_code_name(code));
        json_set_str(error, "message", why);
        if (q->answered) {
                (void) json_free(error);
                return;
        }
        answer_describe(q->call.envd, q->call.box->target, q->call.conn, error);
        if (q->method->kind == RPC_UNARY) {
                stop(q);
                answer_json(q->call.envd, q->call.box->target, q->call.conn, rpc_code_status(code), error);
        } else {
                end = json_new_object();
                json_set(end, "error", error);
                if (json_text(end, false, &text, &err) < 0)
                        http_reply_abort(q->call.conn);
                else
                        finish_with(q, text);
                (void) json_free(end);
        }
}

/* --- requests --- */

ssize_t rpc_envelope(struct evbuffer *in) {
        uint8_t head[ENVD_ENVELOPE];
        struct rd r;
        uint32_t n;

        if (evbuffer_copyout(in, head, sizeof(head)) < (ev_ssize_t) sizeof(head))
                return 0;
        r = rd_from(head, sizeof(head));
        if (rd_u8(&r) != 0)
                return -EPROTO;
        n = rd_u32(&r);
        if (n > ENVD_MESSAGE)
                return -EMSGSIZE;
        return evbuffer_get_length(in) - ENVD_ENVELOPE < n ? 0 : (ssize_t) n + ENVD_ENVELOPE;
}

/* One message of n bytes from the front of the body; false: the call was answered. */
static bool take_message(struct rpc *q, size_t n, struct json **ret) {
        const char *text = n ? (const char *) evbuffer_pullup(q->body, (ev_ssize_t) n) : "{}";
        struct err err = { 0 };
        int r = text ? json_parse("request", text, n ? n : 2, ret, &err) : -ENOMEM;

        (void) evbuffer_drain(q->body, n);
        if (r < 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "%s", err.msg);
        return r == 0;
}

/* A stream's next message, if it is whole. 1, 0, or -1: the call was answered. */
static int next_message(struct rpc *q, struct json **ret) {
        ssize_t n = rpc_envelope(q->body);

        if (n == 0)
                return 0;
        if (n < 0) {
                rpc_fail(q, n == -EMSGSIZE ? RPC_RESOURCE_EXHAUSTED : RPC_INVALID_ARGUMENT,
                         n == -EMSGSIZE ? "message is too long" : "compressed messages are not supported");
                return -1;
        }
        (void) evbuffer_drain(q->body, ENVD_ENVELOPE);
        return take_message(q, (size_t) n - ENVD_ENVELOPE, ret) ? 1 : -1;
}

/* Messages of a client stream, as far as they are wanted. */
static void take_messages(struct rpc *q) {
        while (!q->paused && !q->answered) {
                CLEANUP(json_freep) struct json *message = NULL;

                if (next_message(q, &message) <= 0)
                        return;
                q->taking = true;
                q->paused = !q->method->start(q, message);
                q->taking = false;
        }
}

/* The client has said all, and so much of it was taken as can be. */
static void end_messages(struct rpc *q) {
        if (q->paused || q->answered)
                return;
        if (evbuffer_get_length(q->body) > 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "message is cut short");
        else
                q->method->on_end(q);
}

void rpc_more(struct rpc *q) {
        if (q->taking || q->answered) /* start() says it itself */
                return;
        q->paused = false;
        take_messages(q);
        if (q->ended)
                end_messages(q);
        else if (!q->paused && !q->answered)
                http_resume(q->call.conn);
}

static bool count_held(struct rpc *q, size_t n) {
        q->call.envd->held += n - q->held;
        q->held = n;
        return q->call.envd->held <= ENVD_HELD;
}

static void on_body(struct call *c, struct evbuffer *body) {
        struct rpc *q = (struct rpc *) c;

        if (q->answered) {
                (void) evbuffer_drain(body, SIZE_MAX);
                return;
        }
        if (q->paused)
                return;
        (void) http_move(q->body, body);
        if (!count_held(q, evbuffer_get_length(q->body)))
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "too many messages at once; try again later");
        else if (q->method->kind == RPC_CLIENT_STREAM)
                take_messages(q);
        else if (evbuffer_get_length(q->body) > ENVD_MESSAGE + ENVD_ENVELOPE)
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "message is longer than %d bytes", ENVD_MESSAGE);
}

static void on_end(struct call *c) {
        struct rpc *q = (struct rpc *) c;
        int r = 1;

        if (q->answered)
                return;
        if (q->method->kind == RPC_CLIENT_STREAM) {
                q->ended = true;
                end_messages(q);
                return;
        }
        if (q->method->kind == RPC_SERVER_STREAM)
                r = next_message(q, &q->request);
        else if (!take_message(q, evbuffer_get_length(q->body), &q->request))
                r = -1;
        if (r == 0 || (r > 0 && evbuffer_get_length(q->body) > 0))
                rpc_fail(q, RPC_INVALID_ARGUMENT, "a call has one message");
        else if (r > 0)
                (void) q->method->start(q, q->request);
}

static void on_room(struct call *c) {
        struct rpc *q = (struct rpc *) c;

        if (q->answered && q->method->kind == RPC_UNARY)
                push(q);
        else if (!q->answered && q->method->on_room)
                q->method->on_room(q);
}

static void on_launched(struct call *c, int r) {
        struct rpc *q = (struct rpc *) c;

        if (!q->answered)
                q->method->on_launched(q, r);
}

static void on_permitted(struct call *c, int r) {
        struct rpc *q = (struct rpc *) c;

        if (!q->answered)
                process_permitted(q, r); /* nobody else asks */
}

static void on_free(struct call *c) {
        struct rpc *q = (struct rpc *) c;

        stop(q);
        (void) count_held(q, 0);
        if (q->beat)
                event_free(q->beat);
        if (q->deadline)
                event_free(q->deadline);
        if (q->body)
                evbuffer_free(q->body);
        q->request = json_free(q->request);
}

static const struct call_ops rpc_ops = {
        .size = sizeof(struct rpc),
        .body_max = UINT64_MAX, /* our own limit is told in Connect's way */
        .on_body = on_body,
        .on_end = on_end,
        .on_room = on_room,
        .on_launched = on_launched,
        .on_permitted = on_permitted,
        .on_free = on_free,
};

static void on_beat(int fd, short what, void *arg) {
        struct rpc *q = arg;

        (void) fd, (void) what;
        if (!q->answered)
                rpc_send_text(q, q->method->beat);
}

static void on_deadline(int fd, short what, void *arg) {
        struct rpc *q = arg;

        (void) fd, (void) what;
        rpc_fail(q, RPC_DEADLINE_EXCEEDED, "the call took longer than it may");
}

static uint64_t number_of(const struct http_head *head, const char *name, uint64_t min, uint64_t max,
                          uint64_t otherwise) {
        const char *text = http_header(head, name, NULL);
        uint64_t v;
        int r = text ? str_to_u64(text, max, &v) : -EINVAL;

        return r == -ERANGE ? max : r < 0 || v < min ? otherwise : v;
}

static bool set_timers(struct rpc *q) {
        struct event_base *base = q->call.envd->config.base;
        uint64_t ms = q->timeout_ms;
        struct timeval tv;

        if (q->method->kind == RPC_UNARY && (ms == 0 || ms > ENVD_UNARY_MS))
                ms = ENVD_UNARY_MS;
        tv = (struct timeval){ .tv_sec = (time_t) (ms / 1000), .tv_usec = (suseconds_t) (ms % 1000) * 1000 };
        if (q->method->kind == RPC_SERVER_STREAM && !(q->beat = evtimer_new(base, on_beat, q)))
                return false;
        if (ms > 0 && !(q->deadline = evtimer_new(base, on_deadline, q)))
                return false;
        return ms == 0 || event_add(q->deadline, &tv) == 0;
}

const struct rpc_method *rpc_find(const char *path) {
        static const struct rpc_method *const tables[] = { process_methods, file_methods };

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
                for (const struct rpc_method *m = tables[i]; m->path; m++)
                        if (str_eq(m->path, path))
                                return m;
        return NULL;
}

/* -1: the request was answered. */
static int check_head(struct envd_box *box, struct http_conn *c, const struct http_head *head,
                      const struct rpc_method *m) {
        const char *given = http_header(head, "Content-Type", NULL),
                   *wanted = m->kind == RPC_UNARY ? json_type : stream_type;
        const char *coding =
                http_header(head, m->kind == RPC_UNARY ? "Content-Encoding" : "Connect-Content-Encoding", NULL);

        if (!str_eq(head->method, "POST"))
                answer_error(box->envd, box->target, c, 405, "only POST is served here");
        else if (!given || !http_media_is(given, wanted))
                answer_error(box->envd, box->target, c, 415, "Content-Type must be %s", wanted);
        else if (coding && !str_eq(coding, "identity"))
                answer_error(box->envd, box->target, c, 501, "compressed messages are not supported");
        else
                return 0;
        return -1;
}

/* Authorization: Basic, with a user's name and no password. NULL: there is none of that name. */
static const struct envd_user *find_user(const struct envd_box *box, const struct http_head *head) {
        static const char scheme[] = "Basic ";
        const char *given = http_header(head, "Authorization", NULL);
        char name[ENVD_NAME + 1];
        ssize_t n;

        if (!given)
                return &box->target->users[0];
        if (strncasecmp(given, scheme, sizeof(scheme) - 1) != 0)
                return NULL;
        n = sign_unbase64(name, sizeof(name) - 1, given + sizeof(scheme) - 1);
        if (n < 1 || name[n - 1] != ':' || memchr(name, '\0', (size_t) n))
                return NULL;
        name[n - 1] = '\0';
        return envd_box_user(box, name);
}

void rpc_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, const struct rpc_method *m) {
        struct rpc *q;

        if (check_head(box, c, head, m) < 0)
                return;
        q = call_new(box, c, &rpc_ops);
        if (!q)
                return;
        q->method = m;
        q->call.user = find_user(box, head);
        q->body = evbuffer_new();
        q->beat_s =
                (unsigned) number_of(head, "Keepalive-Ping-Interval", ENVD_BEAT_MIN_S, ENVD_BEAT_MAX_S, ENVD_BEAT_S);
        q->timeout_ms = number_of(head, "Connect-Timeout-Ms", 1, ENVD_TIMEOUT_MAX_MS, 0);
        if (!q->body || !set_timers(q))
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "out of memory");
        else if (!q->call.user)
                rpc_fail(q, RPC_UNAUTHENTICATED, "Authorization names no user of this sandbox");
}
