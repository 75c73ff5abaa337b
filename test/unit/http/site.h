/* site.h - a real server in a process of its own, for tests that talk to it over sockets; and such a client. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/server.h"

/* What the server's process tells; in shared memory. */
struct site_facts {
        unsigned n_heads, n_done, n_refused, n_empty;
        int last_result;     /* of on_done */
        size_t most_waiting; /* bytes of output, at a head or when /big writes */
        size_t n_conns, most_conns;
        bool freed;
        bool flushed; /* /flush had its answer received before it returned */
};

struct site {
        pid_t pid;
        int control_fd;
        uint16_t port;
        char unix_name[32]; /* abstract */
        size_t unix_len;
        volatile struct site_facts *facts;
};

/*
 * Routes: /hello, /echo (as it comes), /sum and /x (count), /big?bytes=N (streams), /slow (after 250 ms), /hold
 * (never), /none (nobody answers), /upgrade (then echoes raw bytes), /pause (takes 1000 bytes at a time, every 2 ms),
 * /bad (a header that cannot be written, then 500), /early (without reading), /abort, /short (less than announced),
 * /unasked (answers 204), /flush.
 */
void site_start(struct site *s, const struct http_server_config *config);
/* Asks for a drain. */
void site_drain(struct site *s);
/* Ends it; false if the process did not end well (a leak under ASan, for one). */
bool site_stop(struct site *s);

/* A client's socket, blocking, with a timeout of 10 s. */
int site_connect(const struct site *s);
int site_connect_unix(const struct site *s);
void site_send(int fd, const void *p, size_t n);
void site_say(int fd, const char *text);

struct site_reply {
        unsigned status; /* 0: the connection ended before a reply */
        bool keep_alive, has_date, cut;
        size_t n_body;
        char body[4096]; /* the beginning, NUL-terminated */
        char rest[256];  /* what came behind it with the same reads */
        size_t n_rest;
};

/* Reads one final reply (interim ones are skipped unless wanted). rest of an earlier one comes first. */
void site_read(int fd, const char *method, struct site_reply *reply);
/* True if the peer ends the connection within the timeout, without sending a byte. */
bool site_ended(int fd);

/* Waits for something the server's process does by itself. */
#define EVENTUALLY(condition)                                                                                          \
        do {                                                                                                           \
                for (int tries_ = 0; tries_ < 250 && !(condition); tries_++)                                           \
                        usleep(20 * 1000);                                                                             \
                assert_true(condition);                                                                                \
        } while (0)
