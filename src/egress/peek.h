/* peek.h - what a client speaks, by its first bytes. Pure. */
#pragma once

#include <stddef.h>

enum peek_kind {
        PEEK_MORE,  /* cannot be told yet */
        PEEK_TLS,   /* a handshake record begins; tls_peek_look() goes on */
        PEEK_HTTP,  /* the first line is a request line of HTTP/1 */
        PEEK_OTHER, /* anything else, HTTP/2 without TLS included */
};

enum { PEEK_LINE_MAX = 8192 }; /* a longer first line is no request line */

enum peek_kind peek_kind(const void *bytes, size_t n);
