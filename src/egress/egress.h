/* egress.h - this process: one loop, what all sandboxes share, and who is whose. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "egress/config.h"

struct conn;
struct control;
struct dns_resolver;
struct err;
struct event;
struct event_base;
struct keep;
struct pipes;
struct sandbox;
struct tls_ca;
struct tls_client;
struct tls_inspector;
struct tls_mint;

TAILQ_HEAD(conn_list, conn);
TAILQ_HEAD(sandbox_list, sandbox);

struct egress {
        struct config config;
        struct event_base *base;
        struct control *control;
        struct keep *keep;
        struct dns_resolver *resolver;
        struct tls_inspector *inspector;
        struct tls_ca *ca;  /* these three: NULL unless config.open_tls */
        int certificate_fd; /* sealed memory with the CA's certificate, or -1 */
        struct tls_mint *mint;
        struct tls_client *client;
        struct pipes *pipes;
        struct sandbox_list sandboxes; /* owned */
        size_t n_sandboxes;
        size_t n_open, max_open; /* connections of all sandboxes */
        struct conn_list dead;   /* owned: to be freed by the reaper, from the top of the loop */
        struct event *reaper, *sweeper, *waker;
        const struct sandbox *last; /* that had a turn, and when it was another one before */
        uint64_t switched_ns;
        int status; /* of the process */
};

/*
 * Makes everything that the configuration in config_fd asks for. old_keep_fd: -1, or that of the process before, taken
 * on success. control_fd is taken on success. This is the last time that files are opened.
 */
int egress_new(int control_fd, int config_fd, int old_keep_fd, struct egress **ret, struct err *err);
/* Ends all connections without records: nobody is there to read them. */
struct egress *egress_free(struct egress *e);
/* Answers EGP_CONFIG. */
void egress_ready(struct egress *e, uint32_t request);
/* Runs until the supervisor goes. Returns the status of the process. */
int egress_run(struct egress *e);

/* A connection is dead: the reaper will free it. It is on no other list. */
void egress_bury(struct egress *e, struct conn *c);
/* A sandbox rests: wake it in a moment. */
void egress_rest(struct egress *e);
uint64_t egress_now_ms(void);
