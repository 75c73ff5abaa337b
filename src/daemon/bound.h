/* bound.h - requests that go to a sandbox, not to us. */
#pragma once

#include <stdbool.h>

struct daemon;
struct http_conn;
struct http_head;

/* Serves the request, if it is one. */
bool bound_serve(struct daemon *d, struct http_conn *c, const struct http_head *head);
