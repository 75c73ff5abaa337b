/* bound.h - requests that go to a sandbox, not to us: by header, host name, or the signature of a file's address. */
#pragma once

#include <stdbool.h>

struct box;
struct daemon;
struct err;
struct http_conn;
struct http_head;

int bound_new(struct daemon *d, struct err *err);
/* Every box must be gone. */
void bound_free(struct daemon *d);

/* Serves the request, if it is one. */
bool bound_serve(struct daemon *d, struct http_conn *c, const struct http_head *head);

/* What clients may reach of a new box. network: as stored (compose.h), or NULL. */
void bound_open(struct box *b, const char *network);
/* Cuts every connection to it. */
void bound_close(struct box *b);
