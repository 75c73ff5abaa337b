/*
 * client.h - a server's API from the other side: HTTP/1.1 over TCP, TLS and Unix sockets, Connect-RPC, event streams.
 *
 * Calls run on the client's own libevent loop; client_ask() and its like turn that loop until the answer is there, so
 * they must not be used from callbacks. What the server says is a stranger's word: everything is bounded and checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/limits.h"
#include "http/http.h"

struct buf;
struct bufferevent;
struct client;
struct client_call;
struct err;
struct event_base;
struct evbuffer;
struct json;

/* --- where the server is --- */

enum client_scheme { CLIENT_HTTP, CLIENT_HTTPS, CLIENT_UNIX };
struct client_url {
        enum client_scheme scheme;
        char host[HTTP_HOST_MAX + 1]; /* brackets of IPv6 kept; "localhost" for a Unix socket */
        uint16_t port;
        char path[108]; /* of a Unix socket */
        char text[CLIENT_URL_TEXT];
};
/* http://HOST[:PORT], https://HOST[:PORT], unix:PATH. */
int client_url_parse(const char *text, struct client_url *ret, struct err *err);

struct client_config {
        const char *server;    /* of the API */
        const char *sandboxes; /* of what goes to sandboxes; NULL: the same */
        const char *key;       /* API key; "" is none */
        const char *ca_file;   /* NULL: the system's */
};
int client_new(struct client **ret, const struct client_config *config, struct err *err);
/* Ends what is under way without a word. */
struct client *client_free(struct client *c);
void client_freep(struct client **c);
struct event_base *client_base(const struct client *c);
const struct client_url *client_server(const struct client *c);

/* --- one exchange --- */

struct client_box {
        char id[CLIENT_NAME_TEXT], name[CLIENT_NAME_TEXT];
        char token[CLIENT_TOKEN_TEXT], traffic[CLIENT_TOKEN_TEXT]; /* "": none */
        char domain[HTTP_HOST_MAX + 8];                            /* "": none */
};

struct client_request {
        const char *method, *target;
        const struct client_box *box; /* NULL: for the server itself */
        uint16_t port;                /* of the sandbox; 0: commands and files */
        const struct buf *lines;      /* more headers; NULL: none */
        const char *type;             /* of the body; NULL: JSON */
        enum http_body body; /* HTTP_BODY_LENGTH with `length`, or HTTP_BODY_CHUNKED: client_call_write() follows */
        uint64_t length;
        const char *host;  /* Host, of what is passed on; NULL: the server's */
        bool upgrade;      /* lines ask for one */
        const char *text;  /* a whole body instead; NULL: none */
        unsigned quiet_ms; /* how long the server may say nothing; 0: CLIENT_ANSWER_MS */
};
/* All but on_done may be NULL. */
struct client_ops {
        void (*on_head)(struct client_call *q, const struct http_head *head, void *data);
        /* The owner takes what it can from `body`. If some stays, no more is read until client_call_resume(). */
        void (*on_body)(struct client_call *q, struct evbuffer *body, void *data);
        /* client_call_is_full() was true and is no longer. */
        void (*on_room)(struct client_call *q, void *data);
        /* The last. 0: the answer is whole. -ECONNRESET: it was cut off. The call is gone when this returns. */
        void (*on_done)(struct client_call *q, int result, const struct err *err, void *data);
};
/* Names and lengths are copied; ops and box are borrowed. Callbacks come from the loop only. */
int client_call_new(struct client *c, const struct client_request *request, const struct client_ops *ops, void *data,
                    struct client_call **ret, struct err *err);
void client_call_write(struct client_call *q, const void *p, size_t n);
/* Moves all of from. */
void client_call_write_buffer(struct client_call *q, struct evbuffer *from);
void client_call_end(struct client_call *q);
bool client_call_is_full(const struct client_call *q);
void client_call_resume(struct client_call *q);
/* The head of the answer said upgrade: the caller owns the connection now, and the call ends without on_done(). */
struct bufferevent *client_call_take(struct client_call *q);
/* Ends it without on_done(). Accepts NULL; always returns NULL. */
struct client_call *client_call_cancel(struct client_call *q);

/* --- whole answers --- */

struct client_reply {
        unsigned status;
        struct json *body;                 /* NULL: none, or no JSON */
        char next_page[CLIENT_TOKEN_TEXT]; /* X-Next-Token; "": this was the last */
};
void client_reply_done(struct client_reply *r);
/* Anything but 2xx is a failure with what the server said; *ret has its status and body all the same. */
int client_ask(struct client *c, const struct client_request *request, struct client_reply *ret, struct err *err);
/* A unary call of Connect, such as "process.Process/List"; takes message. user: NULL is the sandbox's own. */
int client_rpc(struct client *c, const struct client_box *box, const char *method, const char *user,
               struct json *message, struct client_reply *ret, struct err *err);
/* Finds a sandbox by id or name, with what is needed to talk to it. */
int client_box_find(struct client *c, const char *id_or_name, struct client_box *ret, struct err *err);
/* Is this how a sandbox may be called? */
bool client_is_name(const char *s);
/* Adds ?name=value or &name=value, encoded. */
void client_query_add(struct buf *target, const char *name, const char *value);
/* The header that names the user of a call in a sandbox; nothing for NULL. */
void client_add_user(struct buf *lines, const char *user);
/* What the server says of a failure, as one line: from its status and body. Returns a negative errno. */
int client_refusal(struct err *err, unsigned status, const struct json *body);

/* --- event streams --- */

/* The next event's JSON at the front of in, taken from it. 1: *ret is the caller's; 0: more is needed; -EPROTO. */
int client_event_next(struct evbuffer *in, struct json **ret, struct err *err);
