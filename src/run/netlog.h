/*
 * netlog.h - the egress log: every attempt of every sandbox, one JSON line each. Private to run/.
 *
 * Several runs append to one file. It grows up to NETLOG_BYTES and is then kept once, as FILE.1.
 */
#pragma once

#include <stddef.h>

struct err;

enum { NETLOG_BYTES = 16 << 20, NETLOG_PATH = 1024 };

struct netlog {
        char path[NETLOG_PATH];
        int fd; /* -1: closed */
};

/* Opens for appending; folders above are made, for the owner alone. */
int netlog_open(const char *path, struct netlog *ret, struct err *err);
/* Appends one line (the newline is added). 0 or negative errno. */
int netlog_add(struct netlog *l, const char *line, size_t n);
void netlog_close(struct netlog *l);
