/* site.h - a server on the client's own loop, which says what a test wants it to say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/client.h"
#include "http/server.h"

/* Answers one request; its body is whole. n: how many came before it. */
typedef void (*site_fn)(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n);

struct site {
        struct client *client;
        struct http_server *server;
        site_fn fn;
        void (*room)(struct http_conn *c); /* a reply was full and is no longer; NULL: nothing */
        unsigned n;
        char url[64];
};

/* A server on a port (or on a Unix socket below /tmp), and a client of it. */
void site_start(struct site *s, bool on_unix, site_fn fn);
void site_stop(struct site *s);
/* Cuts the reply off, once what was written so far has gone out. */
void site_abort(struct site *s, struct http_conn *c);
