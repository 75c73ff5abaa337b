/* queue.h - what waits for the disk. Private to notary/. */
#pragma once

#include "base/err.h"
#include "notary/notary.h"

enum job_kind { JOB_EVENT, JOB_STATEMENT, JOB_ROTATE, JOB_READ /* nothing: all before it is on disk */ };

struct job {
        enum job_kind kind;
        uint64_t peer; /* 0: nobody waits for it */
        bool part;     /* of the request that the next job completes, and fails if this one does */
        bool lazy;     /* nobody waits: it may wait for others */
        uint32_t serial;
        struct audit_event ev; /* JOB_STATEMENT, JOB_READ: tenant and sandbox */
        char what[8];          /* of a statement */
        char *text;
        size_t n;     /* JOB_READ: how many */
        uint64_t seq; /* JOB_READ: the first */
        int fd;       /* JOB_READ: where to */
        struct err result;
};

struct queue;

/* Borrows the settings. */
int queue_new(const struct notary_settings *s, struct queue **ret, struct err *err);
/* Writes what is queued. */
struct queue *queue_free(struct queue *q);
/* Makes a batch durable, if one is due; its jobs are done then. */
void queue_turn(struct queue *q);
/* When those are answered: documents, and what is to be done now and then. */
void queue_tidy(struct queue *q);
/* Until one of both wants to be called, at most. */
int queue_wait_ms(const struct queue *q);
/* A free place to fill, or NULL when all are taken; then queue_push() hands it over. _at: the one
 * behind i others that are free. */
struct job *queue_place(struct queue *q);
struct job *queue_place_at(struct queue *q, size_t i);
void queue_push(struct queue *q);
/* The next job that is done, or NULL; queue_release() when it was answered. */
struct job *queue_done(struct queue *q);
void queue_release(struct queue *q);
bool queue_idle(const struct queue *q);     /* nothing queued, nothing to answer */
bool queue_is_quiet(const struct queue *q); /* nobody has waited for anything lately */
