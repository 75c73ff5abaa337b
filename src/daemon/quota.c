/*
 * quota.c - see quota.h.
 *
 * Creates per second: a token bucket that holds one second's worth. An account stays for the life of the process:
 * operators make tenants, strangers do not.
 */
#include "daemon/quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/limits.h"

enum { SECOND_MS = 1000, RETRY_ENDS_S = 5 };

struct account {
        char tenant[ID_TEXT];
        struct store_sums sums;
        uint64_t milli_tokens, filled_ms; /* of the bucket */
        bool seen;                        /* the bucket is in use */
};

struct quota {
        struct map *accounts;
};

int quota_new(struct quota **ret) {
        CLEANUP(quota_freep) struct quota *q = calloc(1, sizeof(*q));
        int r = q ? map_new(QUOTA_TENANTS, &q->accounts) : -ENOMEM;

        if (r == 0)
                *ret = TAKE_PTR(q);
        return r;
}

struct quota *quota_free(struct quota *q) {
        struct account *a;
        size_t at = 0;

        if (!q)
                return NULL;
        while (q->accounts && (a = map_next(q->accounts, &at)))
                free(a);
        q->accounts = map_free(q->accounts);
        free(q);
        return NULL;
}

void quota_freep(struct quota **q) {
        *q = quota_free(*q);
}

static struct account *find(const struct quota *q, const char *tenant) {
        return map_get(q->accounts, tenant, strlen(tenant));
}

static struct account *find_or_make(struct quota *q, const char *tenant) {
        struct account *a = find(q, tenant);

        if (a)
                return a;
        a = calloc(1, sizeof(*a));
        if (!a || str_copy(a->tenant, sizeof(a->tenant), tenant) < 0 ||
            map_put(q->accounts, a->tenant, strlen(a->tenant), a) < 0) {
                free(a);
                return NULL;
        }
        return a;
}

void quota_add(struct store_sums *s, const struct quota_need *n) {
        s->sandboxes++;
        s->cpu_milli += n->cpu_milli;
        s->memory_bytes += n->memory_bytes;
        s->disk_bytes += n->disk_bytes;
}

void quota_take_off(struct store_sums *s, const struct quota_need *n) {
        if (s->sandboxes == 0 || s->cpu_milli < n->cpu_milli || s->memory_bytes < n->memory_bytes ||
            s->disk_bytes < n->disk_bytes)
                abort(); /* our own bug: given back twice */
        s->sandboxes--;
        s->cpu_milli -= n->cpu_milli;
        s->memory_bytes -= n->memory_bytes;
        s->disk_bytes -= n->disk_bytes;
}

static int refuse(struct quota_refusal *ret, const char *code, unsigned after_s, const char *what, uint64_t max,
                  const char *unit) {
        ret->code = code;
        ret->retry_after_s = after_s;
        (void) snprintf(ret->message, sizeof(ret->message), "the tenant's quota of %s is used up: %llu%s", what,
                        (unsigned long long) max, unit);
        return -EDQUOT;
}

static int check_sums(const struct store_sums *has, const struct store_quota *max, const struct quota_need *n,
                      struct quota_refusal *ret) {
        enum { MIB = 1024 * 1024 };

        if (max->sandboxes && has->sandboxes >= max->sandboxes)
                return refuse(ret, "quota.sandboxes", RETRY_ENDS_S, "concurrent sandboxes", max->sandboxes, "");
        if (max->cpu_milli && has->cpu_milli + n->cpu_milli > max->cpu_milli)
                return refuse(ret, "quota.cpu", RETRY_ENDS_S, "CPU", max->cpu_milli, " thousandths");
        if (max->memory_bytes && has->memory_bytes + n->memory_bytes > max->memory_bytes)
                return refuse(ret, "quota.memory", RETRY_ENDS_S, "memory", max->memory_bytes / MIB, " MiB");
        if (max->disk_bytes && has->disk_bytes + n->disk_bytes > max->disk_bytes)
                return refuse(ret, "quota.disk", RETRY_ENDS_S, "disk", max->disk_bytes / MIB, " MiB");
        return 0;
}

/* Takes a token, if there is a limit. */
static int take_token(struct account *a, uint32_t per_s, uint64_t now_ms, struct quota_refusal *ret) {
        uint64_t full = (uint64_t) per_s * SECOND_MS, passed = now_ms > a->filled_ms ? now_ms - a->filled_ms : 0;

        if (per_s == 0)
                return 0;
        if (!a->seen || passed >= SECOND_MS || a->milli_tokens + passed * per_s > full)
                a->milli_tokens = full;
        else
                a->milli_tokens += passed * per_s;
        a->seen = true;
        a->filled_ms = now_ms;
        if (a->milli_tokens < SECOND_MS)
                return refuse(ret, "quota.rate", 1, "creates per second", per_s, "");
        a->milli_tokens -= SECOND_MS;
        return 0;
}

int quota_take(struct quota *q, const struct store_tenant *t, const struct quota_need *n, uint64_t now_ms,
               struct quota_refusal *ret) {
        struct account *a = find_or_make(q, t->id);
        int r;

        if (!a)
                return -ENOMEM;
        r = check_sums(&a->sums, &t->quota, n, ret);
        if (r == 0) /* last, so that what is refused for another reason costs no token */
                r = take_token(a, t->quota.creates_per_s, now_ms, ret);
        if (r < 0)
                return r;
        quota_add(&a->sums, n);
        return 0;
}

int quota_count(struct quota *q, const char *tenant, const struct quota_need *n) {
        struct account *a = find_or_make(q, tenant);

        if (!a)
                return -ENOMEM;
        quota_add(&a->sums, n);
        return 0;
}

void quota_give(struct quota *q, const char *tenant, const struct quota_need *n) {
        struct account *a = find(q, tenant);

        if (!a)
                abort(); /* our own bug: it was never taken */
        quota_take_off(&a->sums, n);
}

void quota_sums(const struct quota *q, const char *tenant, struct store_sums *ret) {
        const struct account *a = find(q, tenant);

        *ret = a ? a->sums : (struct store_sums){ 0 };
}

void quota_each(const struct quota *q, void (*fn)(void *arg, const char *tenant, const struct store_sums *sums),
                void *arg) {
        const struct account *a;
        size_t at = 0;

        while ((a = map_next(q->accounts, &at)))
                if (a->sums.sandboxes > 0)
                        fn(arg, a->tenant, &a->sums);
}
