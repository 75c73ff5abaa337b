/*
 * job.h - a request about files: it has a connection to a worker of its user for as long as it needs one. Private.
 *
 * A box has at most ENVD_WORKERS of them for requests, and others wait in line; a few stay open between requests.
 * Watches keep theirs and are counted apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "envd/message.h"
#include "envd/state.h"

struct ap_head;
struct fp_request;
struct worker;

struct job_ops {
        /* The connection is there: ask. May come a second time, if the first connection was refused. */
        void (*on_ready)(void *owner);
        /* A frame of it; negative cuts the connection, and on_failed() follows. */
        int (*on_frame)(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err);
        /* May be NULL. */
        void (*on_room)(void *owner);
        /* There is no connection, or no longer. */
        void (*on_failed)(void *owner, int r);
};

struct job {
        TAILQ_ENTRY(job) link; /* while it waits */
        struct call *call;     /* NULL: moved to an owner that is none */
        void *owner;
        const struct job_ops *ops;
        struct worker *worker;
        bool waiting, launching, is_watch;
        uint32_t id; /* of the last request */
};

/* Connects; on_ready() or on_failed() follows, now or later. The owner is the call. */
void job_start(struct job *j, struct call *c, const struct job_ops *ops, bool is_watch);
/* The call's on_launched(). */
void job_launched(struct job *j, int r);
/* clean: every answer has come, so that the connection may serve another. Does nothing without a connection. */
void job_end(struct job *j, bool clean);
/* Gives the connection of one to another. */
void job_move(struct job *from, struct job *to, void *owner, const struct job_ops *ops);
/* Sends a request and remembers its id. */
void job_ask(struct job *j, unsigned type, const struct fp_request *q);
/* An id for a request that the caller sends himself. */
uint32_t job_id(struct job *j);
struct agent *job_agent(const struct job *j);
/* AP_ERROR: the errno, negative; step: which part failed. -EPROTO: it is none. */
int job_error(const uint8_t *body, size_t n, char *step, size_t cap);

/* The connections of a box. */
int pool_new(struct envd_box *box);
struct pool *pool_free(struct pool *p);
