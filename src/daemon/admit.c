/* admit.c - see admit.h. */
#include "daemon/admit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"

enum { MEMINFO = 4096, LOOK_NS = 100 * 1000 * 1000, RETRY_FULL_S = 2, TICK_MS = 500 };

TAILQ_HEAD(op_list, admit_op);

struct admit {
        struct daemon *d;
        struct op_list waiting, starting; /* the oldest first */
        size_t n_waiting, n_starting;
        struct store_sums used; /* running and starting */
        uint64_t free_bytes, looked_ns;
        struct event *tick; /* while some wait: of memory that became free nobody tells, nor of the end of patience */
        struct event *kick; /* look for the next from the top of the loop */
};

uint64_t admit_parse_meminfo(const char *text) {
        const char *s = strstr(text, "MemAvailable:");
        uint64_t kib = 0;

        if (!s)
                return 0;
        for (s += strlen("MemAvailable:"); *s == ' '; s++)
                ;
        for (; *s >= '0' && *s <= '9' && kib < UINT64_MAX >> 20; s++)
                kib = kib * 10 + (uint64_t) (*s - '0');
        return kib * 1024;
}

static uint64_t memory_free(struct admit *a) {
        uint64_t now = clock_mono_ns();
        char text[MEMINFO];
        ssize_t n;

        if (a->looked_ns && now - a->looked_ns < LOOK_NS)
                return a->free_bytes;
        n = pread(a->d->meminfo_fd, text, sizeof(text) - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        a->free_bytes = admit_parse_meminfo(text);
        a->looked_ns = now;
        return a->free_bytes;
}

/* Is there room for one more of this size? */
static bool has_room(struct admit *a, const struct quota_need *n) {
        const struct config *c = &a->d->config;

        if (a->n_starting >= c->queue.starting || a->used.sandboxes >= c->capacity.sandboxes)
                return false;
        if (c->capacity.cpu_milli && a->used.cpu_milli + n->cpu_milli > c->capacity.cpu_milli)
                return false;
        if (c->capacity.memory_bytes && a->used.memory_bytes + n->memory_bytes > c->capacity.memory_bytes)
                return false;
        if (c->capacity.disk_bytes && a->used.disk_bytes + n->disk_bytes > c->capacity.disk_bytes)
                return false;
        return !c->capacity.reserve_bytes || memory_free(a) > c->capacity.reserve_bytes;
}

static size_t count(const struct op_list *list, const char *tenant) {
        const struct admit_op *op;
        size_t n = 0;

        TAILQ_FOREACH(op, list, link)
        n += str_eq(op->tenant, tenant);
        return n;
}

static void arm(struct admit *a) {
        const struct admit_op *first = TAILQ_FIRST(&a->waiting);
        uint64_t now = clock_mono_ns() / 1000000, end;
        struct timeval tv;

        if (!first) {
                (void) event_del(a->tick);
                return;
        }
        end = first->since_ms + a->d->config.queue.wait_ms;
        end = end <= now ? 0 : end - now < TICK_MS ? end - now : TICK_MS;
        tv = (struct timeval){ .tv_sec = (time_t) (end / 1000), .tv_usec = (suseconds_t) (end % 1000) * 1000 };
        (void) event_add(a->tick, &tv);
}

static void unqueue(struct admit *a, struct admit_op *op) {
        TAILQ_REMOVE(&a->waiting, op, link);
        op->waiting = false;
        a->n_waiting--;
        arm(a);
}

static void begin(struct admit *a, struct admit_op *op) {
        TAILQ_INSERT_TAIL(&a->starting, op, link);
        op->started = true;
        a->n_starting++;
        quota_add(&a->used, &op->need);
        op->start(op);
}

static void refuse(struct admit_op *op, const char *code, const char *message) {
        struct quota_refusal why = { .code = code, .retry_after_s = RETRY_FULL_S };

        (void) str_copy(why.message, sizeof(why.message), message);
        op->refuse(op, &why);
}

/* The one that waits whose tenant has the fewest starts under way; among equals, the oldest. */
static struct admit_op *next(const struct admit *a) {
        struct admit_op *best = NULL, *op;
        size_t fewest = SIZE_MAX;

        TAILQ_FOREACH(op, &a->waiting, link) {
                size_t n = count(&a->starting, op->tenant);

                if (n < fewest) {
                        fewest = n;
                        best = op;
                }
        }
        return best;
}

static void on_kick(int fd, short what, void *arg) {
        struct admit *a = arg;
        struct admit_op *op;

        (void) fd, (void) what;
        while ((op = next(a)) && has_room(a, &op->need)) {
                unqueue(a, op);
                begin(a, op);
        }
}

static void on_tick(int fd, short what, void *arg) {
        struct admit *a = arg;
        struct admit_op *op;
        uint64_t now = clock_mono_ns() / 1000000;

        (void) fd, (void) what;
        on_kick(-1, 0, a);
        while ((op = TAILQ_FIRST(&a->waiting)) && op->since_ms + a->d->config.queue.wait_ms <= now) {
                unqueue(a, op);
                refuse(op, "quota.capacity", "the machine is full, and nothing became free in time");
        }
        arm(a);
}

int admit_new(struct daemon *d, struct admit **ret, struct err *err) {
        struct admit *a = calloc(1, sizeof(*a));

        if (!a)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "admission");
        a->d = d;
        TAILQ_INIT(&a->waiting);
        TAILQ_INIT(&a->starting);
        a->tick = evtimer_new(d->base, on_tick, a);
        a->kick = evtimer_new(d->base, on_kick, a);
        if (!a->tick || !a->kick) {
                (void) admit_free(a);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "admission");
        }
        *ret = a;
        return 0;
}

struct admit *admit_free(struct admit *a) {
        struct admit_op *op;

        if (!a)
                return NULL;
        while ((op = TAILQ_FIRST(&a->waiting))) {
                TAILQ_REMOVE(&a->waiting, op, link);
                refuse(op, "quota.stopping", "the service is stopping");
        }
        if (a->tick)
                event_free(a->tick);
        if (a->kick)
                event_free(a->kick);
        free(a);
        return NULL;
}

void admit_submit(struct admit *a, struct admit_op *op) {
        const struct config *c = &a->d->config;

        op->since_ms = clock_mono_ns() / 1000000;
        op->waiting = op->started = false;
        if (a->d->stopping) {
                refuse(op, "quota.stopping", "the service is stopping");
        } else if (a->n_waiting == 0 && has_room(a, &op->need)) {
                begin(a, op);
        } else if (a->n_waiting >= c->queue.waiting) {
                refuse(op, "quota.queue", "the machine is full, and so is the queue");
        } else if (count(&a->waiting, op->tenant) >= c->queue.waiting_tenant) {
                refuse(op, "quota.queue", "the machine is full, and so is the tenant's part of the queue");
        } else {
                TAILQ_INSERT_TAIL(&a->waiting, op, link);
                op->waiting = true;
                if (a->n_waiting++ == 0)
                        arm(a);
        }
}

void admit_cancel(struct admit *a, struct admit_op *op) {
        if (op->waiting)
                unqueue(a, op);
}

static void kick(struct admit *a) {
        if (a->n_waiting > 0)
                event_active(a->kick, EV_TIMEOUT, 0);
}

void admit_started(struct admit *a, struct admit_op *op, bool runs) {
        TAILQ_REMOVE(&a->starting, op, link);
        op->started = false;
        a->n_starting--;
        if (!runs)
                quota_take_off(&a->used, &op->need);
        kick(a);
}

void admit_count(struct admit *a, const struct quota_need *n) {
        quota_add(&a->used, n);
}

void admit_give(struct admit *a, const struct quota_need *n) {
        quota_take_off(&a->used, n);
        kick(a);
}

void admit_look(struct admit *a, struct admit_state *ret) {
        *ret = (struct admit_state){
                .waiting = a->n_waiting, .starting = a->n_starting, .memory_free_bytes = memory_free(a), .used = a->used
        };
}
