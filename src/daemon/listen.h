/* listen.h - sockets that clients come to. */
#pragma once

#include <stddef.h>

struct err;

enum { LISTEN_TEXT = 128 };

/* [tls:]ADDRESS:PORT (IPv6 in brackets; localhost; port 0: any) or unix:PATH. Returns a non-blocking listening
 * descriptor. shown: the address as it is now, with the port that was given. */
int listen_open(const char *text, char shown[LISTEN_TEXT], struct err *err);
