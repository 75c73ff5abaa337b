/*
 * netpool.c - see netpool.h.
 *
 * Theory of operation. Places form a ring. The filler process writes a whole place, then counts it in `made`; the owner
 * takes places up to that count. Nobody else writes either number, and the filler stops before it could meet a place
 * that is not taken yet. Like every process that shares our memory it uses no libc.
 */
#include "sandbox/netpool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "sandbox/janitor.h"
#include "sandbox/netns.h"

enum { FILLER_STACK = 16384 };

struct netpool {
        unsigned size;
        uint32_t made, taken; /* since the beginning; the difference is ready */
        uint32_t want;        /* the filler stops when `made` is this */
        pid_t pid;            /* the filler; 0 = none */
        int pid_fd;
        struct netns_job job;
        char stack[FILLER_STACK] __attribute__((aligned(16)));
        struct netns places[];
};

int netpool_new(unsigned size, struct netpool **ret, struct err *err) {
        struct netpool *p;
        int r;

        if (size < 1 || size > NETPOOL_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "network pool: 1 to %d namespaces", NETPOOL_MAX);
        p = calloc(1, sizeof(*p) + size * sizeof(p->places[0]));
        if (!p)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        p->size = size;
        p->pid_fd = -1;
        for (unsigned i = 0; i < size; i++)
                netns_none(&p->places[i]);
        r = netns_prepare(plan_net(), WEAKEN_NONE, &p->places[0], &p->job, err);
        if (r < 0)
                return free(p), r;
        *ret = p;
        return 0;
}

struct netpool *netpool_free(struct netpool *p) {
        struct err e = { 0 };

        if (!p)
                return NULL;
        (void) netpool_collect(p, &e);
        for (unsigned i = 0; i < p->size; i++)
                netns_close(&p->places[i]);
        free(p);
        return NULL;
}

/* Each unshare() leaves the namespace before for the descriptors that hold it. */
static int filler_main(void *arg) {
        struct netpool *p = arg;
        int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

        for (uint32_t i = p->made; r == 0 && i != p->want; i++) {
                p->job.made = &p->places[i % p->size];
                r = sys_unshare(SYS_CLONE_NEWNET);
                if (r == 0)
                        r = netns_build(&p->job);
                if (r == 0)
                        __atomic_store_n(&p->made, i + 1, __ATOMIC_RELEASE);
        }
        p->job.code = r;
        return r != 0;
}

int netpool_fill(struct netpool *p, struct err *err) {
        struct sys_clone_args args = {
                .flags = SYS_CLONE_VM | SYS_CLONE_FILES | SYS_CLONE_PIDFD,
                .pidfd = (uint64_t) (uintptr_t) &p->pid_fd,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t) (uintptr_t) p->stack,
                .stack_size = sizeof(p->stack),
        };
        long pid;

        if (p->pid > 0 || netpool_ready(p) == p->size)
                return 0;
        p->want = p->taken + p->size;
        p->job.step = "new namespace";
        pid = sys_clone_run(&args, filler_main, p);
        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL, "network pool: %s", strerror((int) -pid));
        p->pid = (pid_t) pid;
        return 0;
}

int netpool_fd(const struct netpool *p) {
        return p->pid > 0 ? p->pid_fd : -1;
}

int netpool_collect(struct netpool *p, struct err *err) {
        if (p->pid <= 0)
                return 0;
        (void) end_reap(p->pid);
        p->pid = 0;
        (void) close(TAKE_FD(p->pid_fd));
        if (p->made == p->want)
                return 0;
        netns_close(&p->places[p->made % p->size]); /* the one at which it stopped */
        return err_set(err, p->job.code ? p->job.code : -EIO, ERR_INTERNAL, "network pool: %s: %s", p->job.step,
                       strerror(p->job.code ? -p->job.code : EIO));
}

unsigned netpool_ready(const struct netpool *p) {
        return __atomic_load_n(&p->made, __ATOMIC_ACQUIRE) - p->taken;
}

int netpool_take(struct netpool *p, struct netns *ret) {
        struct netns *from = &p->places[p->taken % p->size];

        if (netpool_ready(p) == 0)
                return -EAGAIN;
        *ret = *from;
        netns_none(from);
        p->taken++;
        return 0;
}

void netpool_drop(struct netns *n) {
        netns_close(n);
}
