/*
 * netns.c - what a network namespace costs a request: made on the spot, or taken from the pool while others are being
 * made and torn down. Prints one JSON object on standard output and a table on standard error. Needs root.
 */
#include "sandbox/netns.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "sandbox/netpool.h"

enum { ROUNDS = 400, POOL = 32, ALIVE = 100, FDS = 4096 };

struct series {
        const char *name, *what;
        double us[ROUNDS];
        size_t n;
};

static int by_size(const void *a, const void *b) {
        const double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void add(struct series *s, uint64_t from, uint64_t to) {
        if (s->n < ROUNDS)
                s->us[s->n++] = (double) (to - from) / 1e3;
}

static void print(struct series *s, bool first) {
        double p50, p99;

        qsort(s->us, s->n, sizeof(s->us[0]), by_size);
        p50 = s->us[s->n / 2];
        p99 = s->us[s->n * 99 / 100];
        (void) fprintf(stderr, "  %-52s %9.1f %9.1f\n", s->what, p50, p99);
        (void) printf("%s\"%s\": {\"p50_us\": %.1f, \"p99_us\": %.1f, \"n\": %zu}", first ? "{" : ", ", s->name, p50,
                      p99, s->n);
}

static void die(const struct err *e) {
        (void) fprintf(stderr, "netns: %s\n", e->msg);
        exit(1);
}

/* churn: each is torn down by the kernel while the next is made, as under requests; otherwise all stay. */
static void fresh(struct series *s, bool churn) {
        static struct netns_job job;
        static struct netns n[ALIVE];
        struct err e = { 0 };

        for (int i = 0; i < ALIVE; i++) {
                uint64_t t = clock_mono_ns();

                if (netns_prepare(plan_net(), WEAKEN_NONE, &n[i], &job, &e) < 0 || netns_make(&job, &e) < 0)
                        die(&e);
                add(s, t, clock_mono_ns());
                if (churn)
                        netpool_drop(&n[i]);
        }
        for (int i = 0; i < ALIVE; i++)
                netpool_drop(&n[i]);
}

/* Keeps the pool as a server would: what is missing is made when a request is over. */
static void refill(struct netpool *p, struct series *s) {
        struct pollfd f = { .fd = netpool_fd(p), .events = POLLIN };
        struct err e = { 0 };
        uint64_t t;

        if (f.fd >= 0 && poll(&f, 1, netpool_ready(p) == 0 ? 5000 : 0) == 1 && netpool_collect(p, &e) < 0)
                die(&e);
        if (netpool_fd(p) >= 0 || netpool_ready(p) > POOL / 2)
                return;
        t = clock_mono_ns();
        if (netpool_fill(p, &e) < 0)
                die(&e);
        add(s, t, clock_mono_ns());
}

static void pooled(struct series *take, struct series *enter, struct series *fill) {
        AUTO_FD int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        struct netpool *p = NULL;
        struct err e = { 0 };

        if (netpool_new(POOL, &p, &e) < 0 || netpool_fill(p, &e) < 0 || netpool_collect(p, &e) < 0)
                die(&e);
        while (take->n < ROUNDS) {
                uint64_t t0, t1, t2;
                struct netns n;

                refill(p, fill);
                t0 = clock_mono_ns();
                if (netpool_take(p, &n) < 0)
                        continue;
                t1 = clock_mono_ns();
                if (sys_setns(n.ns_fd, SYS_CLONE_NEWNET) < 0)
                        die(&(struct err){ .msg = "setns" });
                t2 = clock_mono_ns();
                if (sys_setns(home, SYS_CLONE_NEWNET) < 0)
                        exit(1);
                add(take, t0, t1);
                add(enter, t0, t2);
                netpool_drop(&n);
        }
        (void) netpool_free(p);
}

int main(void) {
        static const struct rlimit files = { FDS, FDS };
        static struct series made = { "fresh", "made on the spot", { 0 }, 0 };
        static struct series busy = { "fresh_churn", "made on the spot, others being torn down", { 0 }, 0 };
        static struct series take = { "take", "from the pool: taken", { 0 }, 0 };
        static struct series enter = { "hand_out", "from the pool: taken and entered", { 0 }, 0 };
        static struct series fill = { "refill_start", "starting to refill (beside requests)", { 0 }, 0 };

        (void) setrlimit(RLIMIT_NOFILE, &files);
        fresh(&made, false);
        fresh(&busy, true);
        pooled(&take, &enter, &fill);
        (void) fprintf(stderr, "network namespace                                       p50 us    p99 us\n");
        print(&made, true);
        print(&busy, false);
        print(&take, false);
        print(&enter, false);
        print(&fill, false);
        (void) printf("}\n");
        return 0;
}
