/*
 * rpc.h - Connect-RPC: one call of a method, from its message to its reply. Private.
 *
 * A method's start() gets the message and answers with exactly one of rpc_reply(), rpc_fail(), rpc_finish(), now or
 * later. stop() gives back what it holds; it comes once, after the answer, or when client or sandbox are gone.
 */
#pragma once

#include <sys/types.h>

#include "envd/files.h"
#include "envd/process.h"
#include "envd/state.h"

enum rpc_code {
        RPC_CANCELED,
        RPC_UNKNOWN,
        RPC_INVALID_ARGUMENT,
        RPC_DEADLINE_EXCEEDED,
        RPC_NOT_FOUND,
        RPC_ALREADY_EXISTS,
        RPC_PERMISSION_DENIED,
        RPC_RESOURCE_EXHAUSTED,
        RPC_FAILED_PRECONDITION,
        RPC_ABORTED,
        RPC_OUT_OF_RANGE,
        RPC_UNIMPLEMENTED,
        RPC_INTERNAL,
        RPC_UNAVAILABLE,
        RPC_DATA_LOSS,
        RPC_UNAUTHENTICATED,
        RPC_CODES
};
enum rpc_kind { RPC_UNARY, RPC_SERVER_STREAM, RPC_CLIENT_STREAM };

struct http_head;
struct rpc;
struct rpc_method {
        const char *path;
        enum rpc_kind kind;
        const char *beat; /* streams: the message that says "still here" */
        /* request: the message, which lives as long as the call. Of a client stream: each message, for the call; false
         * stops the reading until rpc_more(). */
        bool (*start)(struct rpc *q, const struct json *request);
        void (*on_end)(struct rpc *q);  /* client streams: there was the last message */
        void (*on_room)(struct rpc *q); /* may be NULL; rpc_is_full() is no longer true */
        void (*on_launched)(struct rpc *q, int r);
        void (*stop)(struct rpc *q);
};
/* Both end with a row without path. */
extern const struct rpc_method process_methods[], file_methods[];

struct rpc {
        struct call call; /* first */
        const struct rpc_method *method;
        struct evbuffer *body;
        struct json *request;
        size_t held;
        bool started, answered, paused, taking, ended;
        unsigned beat_s;
        uint64_t timeout_ms; /* 0: none was given */
        struct event *beat, *deadline;
        union { /* what the method needs */
                struct process_call process;
                struct file_call file;
        };
};

/* Is this the path of a method? */
const struct rpc_method *rpc_find(const char *path);
void rpc_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, const struct rpc_method *m);

/* Takes body (may be NULL for {}). */
void rpc_reply(struct rpc *q, struct json *body);
/* The same for text that is there already; empties it. Long ones go as the client takes them. */
void rpc_reply_text(struct rpc *q, struct evbuffer *text);
void rpc_fail(struct rpc *q, enum rpc_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Streams: one message; n bytes of JSON behind ENVD_ENVELOPE bytes that are filled in here. */
void rpc_send(struct rpc *q, char *message, size_t n);
void rpc_send_text(struct rpc *q, const char *json);
void rpc_send_json(struct rpc *q, struct json *message); /* takes it */
void rpc_finish(struct rpc *q);
bool rpc_is_full(struct rpc *q);
/* Client streams: goes on with the messages. */
void rpc_more(struct rpc *q);

/* What an errno of the agent means. */
enum rpc_code rpc_code_of(int r);
const char *rpc_code_name(enum rpc_code code);
unsigned rpc_code_status(enum rpc_code code);
/* The length of the message that is whole at the front of in, envelope included. 0: not yet; -EPROTO: flags; -EMSGSIZE.
 */
ssize_t rpc_envelope(struct evbuffer *in);
