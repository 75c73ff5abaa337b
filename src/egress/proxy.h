/* proxy.h - what is said to an upstream proxy before it passes bytes on: HTTP CONNECT or SOCKS5. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct buf;
struct config;
struct err;
struct proxy;

enum proxy_step {
        PROXY_MORE,   /* wait for more bytes; nothing was used */
        PROXY_SAY,    /* *used bytes are done with; send what is in out, then feed again */
        PROXY_OPEN,   /* *used bytes are done with; the next one comes from the destination */
        PROXY_FAILED, /* err says why */
};

/* For name:port, or address:port if name is NULL. Writes the first words to out. */
int proxy_new(const struct config *c, const char *name, const struct addr *address, uint16_t port, struct buf *out,
              struct proxy **ret, struct err *err);
struct proxy *proxy_free(struct proxy *p);
/* p holds all bytes from the proxy that were not used yet. */
enum proxy_step proxy_feed(struct proxy *x, const void *p, size_t n, struct buf *out, size_t *used, struct err *err);
