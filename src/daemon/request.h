/*
 * request.h - one request of a client to the control plane, from its head to its reply.
 *
 * The HTTP layer owns the moment: request_head() makes it, on_done() ends it. A handler replies before it returns, or
 * keeps the request in a variable whose address it leaves in request_hold(); that variable becomes NULL when the client
 * goes away first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "daemon/auth.h"
#include "daemon/limits.h"

struct box;
struct daemon;
struct err;
struct evbuffer;
struct http_conn;
struct http_head;
struct json;
struct route;
struct store_sandbox;

enum { REQUEST_ID = 4 + ID_TEXT };

struct request {
        struct daemon *d;
        struct http_conn *conn;
        const struct route *route; /* NULL: none fits */
        struct request **holder;
        struct auth auth;
        char id[REQUEST_ID]; /* "req_..." */
        char args[REQUEST_ARGS][REQUEST_ARG];
        char sandbox[ID_TEXT]; /* that it is about, for errors and the log; "" */
        struct buf body, headers;
        struct json *json; /* of the body; NULL: it was empty */
        uint64_t began_ns;
        unsigned status; /* 0: not answered yet */
        /* of a handler that streams */
        void (*on_room)(struct request *q);
        void *data;
        void (*data_free)(void *data);
};

/* The server's on_head(). */
void request_head(struct http_conn *c, const struct http_head *head, void *daemon);
/* The server's on_refused(). */
void request_refused(struct http_conn *c, unsigned status, const struct err *err, void *daemon);

/* The reply comes later: *holder is the request until the client is gone. */
void request_hold(struct request *q, struct request **holder);
/* The reply is written piece by piece; on_room() is called when there is room again, data_free(data) at the end. */
int request_stream(struct request *q, const char *type, void (*on_room)(struct request *q), void *data,
                   void (*data_free)(void *data));

/* --- replies; each answers the request, and the handler is done with it. They add X-Request-Id. --- */
/* Takes body. */
void reply_json(struct request *q, unsigned status, struct json *body);
void reply_text(struct request *q, unsigned status, const char *type, const char *text);
void reply_empty(struct request *q, unsigned status);
/* code: a dotted or plain word for programs. Shape by path: E2B's, or ours below /gabion/v1. */
void reply_error(struct request *q, unsigned status, const char *code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* By the error's kind. What is internal is logged and not told. */
void reply_err(struct request *q, const struct err *err);
/* 404 with what is known: never there (or not this tenant's), or ended, when and why. */
void reply_no_sandbox(struct request *q, const char *id);
/* State and last event of a tenant's sandbox, which every error about it has. NULL: there is none; id may be "". */
struct json *reply_facts(struct daemon *d, const char *tenant, const char *id);
/* A line for the head of the reply, before it. */
void reply_header(struct request *q, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The live sandbox that a path names (by id or name, of this tenant and a template that the key may use), or NULL, and
 * then the request is answered. */
struct box *request_box(struct request *q);
/* The same for one that may have ended. 0 and *ret (store_sandbox_done()), or negative and answered. */
int request_row(struct request *q, struct store_sandbox *ret);
/* The body as an object; an empty one counts as {}. NULL: it is something else, and the request is answered. */
struct json *request_object(struct request *q);
