/*
 * request.c - from the head of a request to its handler, and its end. Replies are in reply.c.
 *
 * Order: what goes to a sandbox is not ours (bound.h); then the route; then the key and what it may do; only then is
 * the body read. So strangers cost a look-up, not memory.
 */
#include "daemon/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/bound.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/metrics.h"
#include "daemon/record.h"
#include "daemon/route.h"
#include "http/server.h"
#include "json/json.h"

static struct request *request_new(struct daemon *d, struct http_conn *c) {
        struct request *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        q->d = d;
        q->conn = c;
        q->began_ns = clock_mono_ns();
        q->body = BUF_INIT(REQUEST_BODY);
        q->headers = BUF_INIT(REQUEST_HEADERS);
        (void) str_copy(q->id, sizeof(q->id), "req_");
        (void) id_new(q->id + 4); /* without randomness ids are empty, and no key or sandbox can be made either */
        return q;
}

static void client_text(const struct http_conn *c, char dst[ADDR_TEXT]) {
        struct sockaddr_storage s = { 0 };
        socklen_t n = sizeof(s);
        struct addr a;

        (void) str_copy(dst, ADDR_TEXT, "local");
        if (getpeername(http_conn_fd(c), (struct sockaddr *) &s, &n) == 0 &&
            addr_from_sockaddr((const struct sockaddr *) &s, &a, NULL) == 0)
                addr_text(&a, dst);
}

/* The path itself is not logged: it may carry what nobody should see. Its pattern tells as much. */
static void log_request(const struct request *q, const char *client, const char *method, int result) {
        uint64_t us = (clock_mono_ns() - q->began_ns) / 1000;
        struct json *more = json_new_object();

        json_set_str(more, "request", q->id);
        json_set_str(more, "client", client);
        json_set_str(more, "method", method);
        json_set_str(more, "route", q->route ? q->route->pattern : NULL);
        json_set_int(more, "status", q->status);
        json_set_real(more, "ms", (double) us / 1000);
        if (q->auth.tenant.id[0]) {
                json_set_str(more, "tenant", q->auth.tenant.name);
                json_set_str(more, "key", q->auth.key.id);
        }
        if (q->sandbox[0])
                json_set_str(more, "sandbox", q->sandbox);
        if (result < 0)
                json_set_str(more, "cut", strerrorname_np(-result));
        log_write(&q->d->log, LOG_INFO, "request", more);
}

static void request_end(struct request *q, int result) {
        char client[ADDR_TEXT];

        metrics_request(q->d->metrics, q->route, q->status, clock_mono_ns() - q->began_ns);
        client_text(q->conn, client);
        log_request(q, client, http_conn_head(q->conn)->method, result);
        if (q->holder)
                *q->holder = NULL;
        if (q->data_free)
                q->data_free(q->data);
        buf_done(&q->body);
        buf_done(&q->headers);
        (void) json_free(q->json);
        free(q);
}

static bool takes_body(const struct request *q) {
        return !str_eq(q->route->method, "GET");
}

static void on_body(struct http_conn *c, struct evbuffer *body, void *data) {
        struct request *q = data;
        size_t n = evbuffer_get_length(body);

        (void) c;
        if (takes_body(q) && n > 0)
                buf_add(&q->body, evbuffer_pullup(body, -1), n);
        (void) evbuffer_drain(body, n);
}

static void on_end(struct http_conn *c, void *data) {
        struct request *q = data;
        struct err err = { 0 };
        int r = 0;

        (void) c;
        if (q->body.bad)
                r = err_set(&err, -EMSGSIZE, ERR_INVALID, "request: the body is too large");
        else if (q->body.len > 0)
                r = json_parse("request", buf_str(&q->body), q->body.len, &q->json, &err);
        if (r < 0)
                reply_err(q, &err);
        else
                record_request(q);
}

static void on_room(struct http_conn *c, void *data) {
        struct request *q = data;

        (void) c;
        if (q->on_room)
                q->on_room(q);
}

static void on_done(struct http_conn *c, int result, void *data) {
        (void) c;
        request_end(data, result);
}

/* 0, or the request is answered. */
static int authorise(struct request *q, const struct http_head *head) {
        struct err err = { 0 };
        int r;

        if (q->route->verb == VERB_OPEN)
                return 0;
        r = auth_request(q->d, head, &q->auth, &err);
        if (r == -EACCES) {
                reply_header(q, "WWW-Authenticate", "Bearer realm=\"gabion\"");
                reply_error(q, 401, "unauthorized", "%s", err.msg);
                q->auth = (struct auth){ 0 };
                record_refused(q, "unauthorized");
                return r;
        }
        if (r < 0) {
                reply_err(q, &err);
                return r;
        }
        if (!auth_may(&q->auth, q->route->verb)) {
                reply_error(q, 403, "forbidden", "this API key (role %s) may not %s here",
                            store_role_name(q->auth.key.role), verb_name(q->route->verb));
                record_refused(q, "forbidden");
                return -EPERM;
        }
        return 0;
}

void request_head(struct http_conn *c, const struct http_head *head, void *daemon) {
        static const struct http_handler handler = {
                .on_body = on_body, .on_end = on_end, .on_room = on_room, .on_done = on_done
        };
        struct daemon *d = daemon;
        struct request *q;
        char allow[ROUTE_ALLOW];
        struct err err;

        if (bound_serve(d, c, head))
                return;
        q = request_new(d, c);
        if (!q) {
                (void) http_reply(c, 503, NULL, NULL, 0, &err);
                return;
        }
        q->route = route_find(head->method, head->path, q->args, allow);
        if (!q->route && allow[0]) {
                reply_header(q, "Allow", "%s", allow);
                reply_error(q, 405, "method_not_allowed", "%s is not possible here; allowed: %s", head->method, allow);
        } else if (!q->route) {
                reply_error(q, 404, "no_such_path", "there is nothing at this path");
        } else if (authorise(q, head) == 0) {
                http_accept(c, &handler, q, REQUEST_BODY);
                return;
        }
        request_end(q, 0);
}

void request_refused(struct http_conn *c, unsigned status, const struct err *err, void *daemon) {
        struct json *more = json_new_object();
        struct daemon *d = daemon;
        char client[ADDR_TEXT];

        metrics_refused(d->metrics);
        client_text(c, client);
        json_set_str(more, "client", client);
        json_set_int(more, "status", status);
        json_set_str(more, "why", err->msg);
        log_write(&d->log, LOG_INFO, "refused", more);
}

void request_hold(struct request *q, struct request **holder) {
        *holder = q;
        q->holder = holder;
}

/* An id may carry what old SDKs append to it: "-" and a client's id. */
static void short_id(const char *arg, char dst[REQUEST_ARG]) {
        (void) str_copy(dst, REQUEST_ARG, arg);
        if (strspn(arg, "abcdefghijklmnopqrstuvwxyz0123456789") == ID_LEN && arg[ID_LEN] == '-')
                dst[ID_LEN] = '\0';
}

int request_row(struct request *q, struct store_sandbox *ret) {
        char name[REQUEST_ARG];
        struct err err = { 0 };
        int r;

        short_id(q->args[0], name);
        r = store_sandbox_get(q->d->store, q->auth.tenant.id, name, ret, &err);
        if (r == 0 && !auth_may_template(&q->auth, ret->template)) {
                store_sandbox_done(ret);
                r = -ENOENT;
        }
        if (r == 0)
                (void) str_copy(q->sandbox, sizeof(q->sandbox), ret->id);
        else if (r == -ENOENT)
                reply_no_sandbox(q, name);
        else
                reply_err(q, &err);
        return r;
}

struct box *request_box(struct request *q) {
        char name[REQUEST_ARG];
        struct box *b;

        short_id(q->args[0], name);
        b = box_find(q->d, q->auth.tenant.id, name);
        if (b && auth_may_template(&q->auth, b->template)) {
                (void) str_copy(q->sandbox, sizeof(q->sandbox), b->id);
                return b;
        }
        reply_no_sandbox(q, name);
        return NULL;
}

struct json *request_object(struct request *q) {
        if (!q->json)
                q->json = json_new_object();
        if (json_is_object(q->json))
                return q->json;
        if (q->json)
                reply_error(q, 400, "invalid", "request: must be a JSON object");
        else
                reply_error(q, 500, "internal", "out of memory");
        return NULL;
}
