/* pair.h - both ends of a connection in one loop, with what happened at each of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tls/tls.h"

struct bufferevent;

struct end {
        struct bufferevent *bev; /* NULL: not there, or taken by tls_close() */
        bool connected, over;
        struct err err; /* how it ended, by tls_error() */
        char version[16];
        size_t n_read;
        char first[64]; /* of what was read, as text */
};

struct pair {
        struct event_base *base;
        int fds[2]; /* of the server and of the client, until somebody takes them */
        struct end server, client;
};

void pair_start(struct pair *p);
void pair_done(struct pair *p);
/* The server and the client on their ends, watched. */
void pair_serve(struct pair *p, struct tls_mint *m, const char *name);
void pair_dial(struct pair *p, struct tls_client *c, const char *name);
void end_say(struct end *e, const char *text);
/* A plain bufferevent on one of fds, which it takes. */
struct bufferevent *pair_plain(struct pair *p, int which);
/* Callbacks that fill *e. */
void pair_watch(struct end *e, struct bufferevent *bev);
/* Runs the loop until both ends are over or both are connected (and one has read n bytes), at most two seconds. */
void pair_run(struct pair *p, size_t n_read);
/* Runs for ms milliseconds, whatever happens. */
void pair_idle(struct pair *p, unsigned ms);
