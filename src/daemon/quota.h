/*
 * quota.h - how much a tenant may have at once, and how fast. Sums are kept here, so that no request waits for a query.
 * Pure: the caller gives the time. What the machine can take is admit.h's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "store/store.h"

struct quota;

struct quota_need {
        uint32_t cpu_milli;
        uint64_t memory_bytes, disk_bytes;
};

struct quota_refusal {
        const char *code;       /* "quota.sandboxes", ... */
        unsigned retry_after_s; /* when asking again may make sense */
        char message[160];
};

void quota_add(struct store_sums *s, const struct quota_need *n);
void quota_take_off(struct store_sums *s, const struct quota_need *n);

int quota_new(struct quota **ret);
struct quota *quota_free(struct quota *q);
void quota_freep(struct quota **q);

/* Counts one sandbox more. 0; -EDQUOT and *ret; -ENOMEM. */
int quota_take(struct quota *q, const struct store_tenant *t, const struct quota_need *n, uint64_t now_ms,
               struct quota_refusal *ret);
/* The same without asking, for what runs already. */
int quota_count(struct quota *q, const char *tenant, const struct quota_need *n);
void quota_give(struct quota *q, const char *tenant, const struct quota_need *n);
void quota_sums(const struct quota *q, const char *tenant, struct store_sums *ret);
/* Tenants that have anything, for metrics. */
void quota_each(const struct quota *q, void (*fn)(void *arg, const char *tenant, const struct store_sums *sums),
                void *arg);
