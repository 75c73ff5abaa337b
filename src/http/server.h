/*
 * server.h - HTTP/1.1 connections from clients on libevent: one request at a time, bodies and replies streamed.
 *
 * A request goes: on_head() of the server; there the owner replies at once, or calls http_accept() and replies whenever
 * it wants. No function here calls back into the owner, but for http_server_free(): callbacks come from the loop.
 * Pipelined requests wait. A client that ends its sending side is gone: its request is given up.
 */
#pragma once

#include "http/http.h"

struct bufferevent;
struct event_base;
struct http_conn;
struct http_server;

struct http_server_config {
        void (*on_head)(struct http_conn *c, const struct http_head *head, void *arg);
        /* May be NULL. A client was refused by this layer and will be told status; for the log. */
        void (*on_refused)(struct http_conn *c, unsigned status, const struct err *err, void *arg);
        /* May be NULL. After http_server_drain(): the last connection is gone. */
        void (*on_empty)(void *arg);
        void *arg;
        size_t max_conns; /* here and below 0 means the default of limits.h */
        unsigned idle_ms, head_ms, read_ms, write_ms, linger_ms;
};

/* How a connection is more than a socket: TLS. Lives as long as the server. */
struct http_transport {
        /* Takes fd, also on failure (NULL). */
        struct bufferevent *(*wrap)(struct event_base *base, int fd, void *arg);
        /* May be NULL. All is written; a last chance to say good-bye in the transport's own way. */
        void (*finish)(struct bufferevent *bev, void *arg);
        void *arg;
};

/* What the owner of a request gets to hear. All but on_done may be NULL. */
struct http_handler {
        /* Bytes of the request's body; the handler takes what it can from `body`. If some stay, no more is read and
         * this is not called again until http_resume(). */
        void (*on_body)(struct http_conn *c, struct evbuffer *body, void *data);
        /* The request is whole and its body was taken. Not called once the reply is whole. */
        void (*on_end)(struct http_conn *c, void *data);
        /* http_reply_is_full() was true and is no longer. */
        void (*on_room)(struct http_conn *c, void *data);
        /* Always the last, once for each http_accept(). 0: the reply was passed to the kernel or waits to be; else the
         * client is gone or refused (-ECONNRESET, -ETIMEDOUT, -EPROTO, -EMSGSIZE, -ECANCELED). c must not be used
         * afterwards. */
        void (*on_done)(struct http_conn *c, int result, void *data);
};

/* Borrows base; copies config. */
int http_server_new(struct http_server **ret, struct event_base *base, const struct http_server_config *config,
                    struct err *err);
/* Takes fd: a listening stream socket of any family. transport: NULL is a plain socket. */
int http_server_listen(struct http_server *s, int fd, const struct http_transport *transport, struct err *err);
/* Takes bev, also on failure: a connection that somebody else accepted. It closes its socket when freed. */
int http_server_add(struct http_server *s, struct bufferevent *bev, const struct http_transport *transport,
                    struct err *err);
size_t http_server_count(const struct http_server *s);
/* Listens no more, ends idle connections, and the others after their replies. */
void http_server_drain(struct http_server *s);
/* Ends everything; each accepted request hears on_done(-ECANCELED). Of all callbacks only on_empty() may call this. */
struct http_server *http_server_free(struct http_server *s);

/* In on_head(): the reply comes later, or the body is wanted. body_max: largest body (0: HTTP_BODY_DEFAULT); what
 * exceeds it is answered with 413 here. Sends 100 Continue if the client waits for it. handler is borrowed. */
void http_accept(struct http_conn *c, const struct http_handler *handler, void *data, uint64_t body_max);
/* The handler can take more of the body. Not from on_body(). */
void http_resume(struct http_conn *c);

/*
 * Replies. Content-Length, Transfer-Encoding, Connection and Date are written here, not by the caller; bodies are left
 * out where HEAD or the status wants none. -EPIPE: the client is gone (on_done will say so). Other failures end the
 * connection as well, but for a head that could not be written (-EINVAL, -EMSGSIZE): then another may be tried.
 */
int http_reply(struct http_conn *c, unsigned status, const struct buf *lines, const void *body, size_t n,
               struct err *err);
/* how: HTTP_BODY_LENGTH with length, or HTTP_BODY_CHUNKED (for 1.0 clients the connection's end takes its place). */
int http_reply_start(struct http_conn *c, unsigned status, const struct buf *lines, enum http_body how, uint64_t length,
                     struct err *err);
int http_reply_body(struct http_conn *c, const void *p, size_t n, struct err *err);
/* Moves all of from. */
int http_reply_buffer(struct http_conn *c, struct evbuffer *from, struct err *err);
int http_reply_end(struct http_conn *c, struct err *err);
/* So much waits to be sent that the writer should stop until on_room(). */
bool http_reply_is_full(struct http_conn *c);
/* Passes to the kernel now, rather than from the loop, what it takes; for who has other work to do before he returns.
 * Negative: the client is gone, as the loop will tell too. */
int http_flush(struct http_conn *c);
/* Ends the connection in the middle, so that the client sees that something is missing. */
void http_reply_abort(struct http_conn *c);
/* Answers 101 (or 2xx to CONNECT) and gives the connection away, with whatever the client sent behind its request
 * still in its input. The caller owns *ret: no callbacks, no timeouts. Only for a request that is whole. */
int http_hand_over(struct http_conn *c, unsigned status, const struct buf *lines, struct bufferevent **ret,
                   struct err *err);

/* Until on_done(). */
const struct http_head *http_conn_head(const struct http_conn *c);
/* A number that no other request of this server has. */
uint64_t http_conn_serial(const struct http_conn *c);
/* Borrowed: for addresses, credentials, certificates; -1 if there is no socket below. */
int http_conn_fd(const struct http_conn *c);
struct bufferevent *http_conn_bev(const struct http_conn *c);
