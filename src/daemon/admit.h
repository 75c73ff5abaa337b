/*
 * admit.h - how many sandboxes the machine starts and holds at once. What does not fit waits in a queue with an end,
 * and is refused with a time to come back after that. Tenants take turns: one that floods the queue does not hold up
 * others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/quota.h"

struct admit;
struct daemon;
struct err;

/* One create; embedded in what its owner knows of it. From admit_submit() on, exactly one of start() and refuse() is
 * called, at once or later, unless admit_cancel() comes first. */
struct admit_op {
        TAILQ_ENTRY(admit_op) link;
        char tenant[ID_TEXT];
        struct quota_need need;
        uint64_t since_ms;
        bool waiting, started;
        void (*start)(struct admit_op *op);
        void (*refuse)(struct admit_op *op, const struct quota_refusal *why);
};

struct admit_state { /* for people */
        uint64_t waiting, starting, memory_free_bytes;
        struct store_sums used;
};

int admit_new(struct daemon *d, struct admit **ret, struct err *err);
struct admit *admit_free(struct admit *a);

void admit_submit(struct admit *a, struct admit_op *op);
/* Nobody wants it any more. Only while it waits. */
void admit_cancel(struct admit *a, struct admit_op *op);
/* What was started has come to its end: a sandbox runs (its share stays taken), or it failed (the share is free). */
void admit_started(struct admit *a, struct admit_op *op, bool runs);
/* A sandbox that runs, found again; and one that is gone. */
void admit_count(struct admit *a, const struct quota_need *n);
void admit_give(struct admit *a, const struct quota_need *n);
void admit_look(struct admit *a, struct admit_state *ret);
/* "MemAvailable:" of /proc/meminfo in bytes; 0 if it is not there. Pure. */
uint64_t admit_parse_meminfo(const char *text);
