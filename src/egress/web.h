/*
 * web.h - HTTP/1.1 between a sandbox and the world, seen: plain, or inside TLS that is opened here.
 *
 * Both sides are read by the same strict parser and every head is built anew, so neither side can make the other see
 * another message than the one that was judged. Each request is judged by itself; a denial is an answer that says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct err;
struct web;

/* Takes the client's socket and that of the world (-1: dialled with the first request that is allowed), also on
 * failure. tls: the client begins with a ClientHello for c->name. */
int web_new(struct conn *c, int client_fd, int world_fd, bool tls, struct web **ret, struct err *err);
/* Closes both sides. reset: tell them by RST. */
void web_shut(struct web *w, bool reset);
/* Accepts NULL; returns NULL. Not from within its callbacks. */
struct web *web_free(struct web *w);
/* Its sandbox rested and may go on. */
void web_resume(struct web *w);
/* Time-outs; may end the connection. */
void web_sweep(struct web *w, uint64_t now_ms);
