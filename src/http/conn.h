/* conn.h - a connection's inside, shared by conn.c (state), reply.c (output) and server.c (ownership). Private. */
#pragma once

#include <sys/queue.h>

#include "http/server.h"

struct event;

enum conn_state {
        CONN_IDLE,    /* no byte of a request has come; nothing is owed to anybody */
        CONN_HEAD,    /* a part of a head has come; the owner knows nothing of it */
        CONN_REQUEST, /* the owner has the head; body bytes come and go to the handler */
        CONN_REPLY,   /* the request is whole; the reply is not */
        CONN_DISCARD, /* the reply is whole and the owner released; the rest of the body is thrown away */
        CONN_CLOSING, /* nothing is parsed any more; output is sent, then the client's end is awaited */
        CONN_DEAD,    /* on the server's list of the dead; only the reaper touches it */
        CONN_STATES
};
enum conn_reply { CONN_REPLY_NONE, CONN_REPLY_OPEN, CONN_REPLY_WHOLE };

struct http_conn {
        TAILQ_ENTRY(http_conn) link; /* owned by one of the server's lists */
        struct http_server *server;
        const struct http_transport *transport;
        struct bufferevent *bev; /* NULL once handed over */
        struct event *timer, *wake;
        struct http_parser *parser;
        struct evbuffer *body; /* what the handler has not taken yet */
        enum conn_state state;
        bool running; /* conn_run() is below us on the stack */
        bool resumed; /* the handler asked for more */
        bool full;    /* the handler is to be told of room */
        bool lingers; /* our side is shut */
        bool eof;     /* theirs is */
        bool last;    /* the connection ends with this reply */
        bool waiting; /* on the list of those that may be dropped for others */
        /* the request under way */
        uint64_t serial; /* of all that the server has had */
        const struct http_handler *handler;
        void *data;
        uint64_t body_max, n_body, n_discarded;
        bool continued; /* 100 was sent */
        int result;
        /* its reply */
        enum conn_reply reply;
        enum http_body how;
        bool mute; /* the body is described but not sent */
        uint64_t reply_left;
};

TAILQ_HEAD(conn_list, http_conn);

/* conn.c */
int conn_new(struct http_server *s, struct bufferevent *bev, const struct http_transport *t, struct http_conn **ret,
             struct err *err);
void conn_free(struct http_conn *c);
/* Goes as far as the bytes at hand allow. From the top of the loop only. */
void conn_run(struct http_conn *c);
/* To be run from the top of the loop. */
void conn_wake(struct http_conn *c);
/* Ends it without a word; the reaper tells the handler `result`. */
void conn_kill(struct http_conn *c, int result);
/* No more requests: output is sent, then it ends. */
void conn_close(struct http_conn *c);

/* reply.c: answers status with why, and that this was the last; false if a reply had begun. */
bool conn_answer(struct http_conn *c, unsigned status, const char *why);

/* server.c: the lists follow the states. */
const struct http_server_config *server_config(const struct http_server *s);
struct event_base *server_base(const struct http_server *s);
bool server_is_draining(const struct http_server *s);
void server_file(struct http_conn *c);
uint64_t server_next_serial(struct http_server *s);
