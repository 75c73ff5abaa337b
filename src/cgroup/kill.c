/*
 * kill.c - stops a group for a while, or for good.
 *
 * Theory of operation. Linux 5.14 and later kill a whole v2 group at one write, frozen or not, and no fork escapes it.
 * Where that file is missing (older kernels, pure v1) the group is frozen so that it cannot fork and no pid in the list
 * can be given to a stranger; then everybody in the list gets SIGKILL, and the group is thawed, because a task frozen
 * by v1 does not even die. That is repeated until the lists are empty.
 *
 * On a hybrid machine a sandbox has no v2 group until one is needed: a start would pay for it, and most sandboxes end
 * with their pid 1. It is made here, frozen, and everybody is moved into it; whoever has moved cannot fork any more, so
 * that the rest becomes smaller with every round.
 *
 * Invariant: 0 is returned only after the kernel itself said that the state was reached. All waiting has a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "tree.h"

enum { WAIT_MS = 5000, POLL_MS = 10, STEP_NS = 100 * 1000, FREEZE_MS = 200, PIDS_TEXT = 64 * 1024 };

static uint64_t deadline_in(unsigned ms) {
        return clock_mono_ns() + (uint64_t) ms * 1000000;
}

static void wait_step(void) {
        static const struct timespec step = { .tv_nsec = STEP_NS };

        (void) nanosleep(&step, NULL);
}

/* Waits until a key of the v2 file cgroup.events has a value. The kernel signals every change as POLLPRI. */
static int wait_event(const struct cgroup *c, const char *key, uint64_t value, uint64_t deadline) {
        AUTO_FD int fd = openat(c->v2_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        char text[256];

        if (fd < 0)
                return -errno;
        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLPRI };
                uint64_t now = 0;
                int r;

                if (lseek(fd, 0, SEEK_SET) < 0)
                        return -errno;
                r = fd_read_upto(fd, text, sizeof(text));
                if (r >= 0)
                        r = cgroup_parse_key(text, key, &now);
                if (r < 0)
                        return r;
                if (now == value)
                        return 0;
                if (clock_mono_ns() > deadline)
                        return -ETIMEDOUT;
                (void) poll(&p, 1, POLL_MS);
        }
}

static int freeze_v1(const struct cgroup *c, const struct cgroup_hier *h, bool frozen, uint64_t deadline) {
        const char *want = frozen ? "FROZEN" : "THAWED";

        for (;;) {
                char state[32];
                int r = cgroup_file_write(c, h, "freezer.state", want); /* again: new members make it FREEZING */

                if (r == 0)
                        r = cgroup_file_read(c, h, "freezer.state", state, sizeof(state));
                if (r < 0)
                        return r;
                state[strcspn(state, "\n")] = '\0';
                if (str_eq(state, want))
                        return 0;
                if (clock_mono_ns() > deadline)
                        return -ETIMEDOUT;
                wait_step();
        }
}

/* Calls fn, if any, for everybody in one list. Returns how many there were. */
static int each_listed(const struct cgroup *c, const struct cgroup_hier *h,
                       void (*fn)(const struct cgroup *c, pid_t pid)) {
        AUTO_FREE char *text = malloc(PIDS_TEXT);
        AUTO_FD int fd = cgroup_file_open(c, h, "cgroup.procs", O_RDONLY);
        pid_t self = getpid();
        int n = 0;
        ssize_t got;
        char *at, *end;

        if (!text)
                return -ENOMEM;
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        /* One read: if the list is longer, the rest is met in the next round. */
        got = read(fd, text, PIDS_TEXT - 1);
        if (got < 0)
                return errno == ENODEV ? 0 : -errno;
        text[got] = '\0';
        for (at = text; (end = strchr(at, '\n')); at = end + 1, n++) {
                uint64_t pid;

                *end = '\0';
                /* 0 is a process that cannot be seen from our pid namespace; kill(0) and kill(1) would hit us. */
                if (!fn || str_to_u64(at, INT32_MAX, &pid) < 0 || pid <= 1 || (pid_t) pid == self)
                        continue;
                fn(c, (pid_t) pid);
        }
        return n;
}

static void move_to_v2(const struct cgroup *c, pid_t pid) {
        char text[16];

        (void) snprintf(text, sizeof(text), "%d", (int) pid);
        (void) fd_write_at(c->v2_fd, "cgroup.procs", text); /* it may have ended meanwhile; the counts decide */
}

/* Hybrid: makes the v2 group now, frozen, and moves everybody there. 0 also where there is nothing to do. */
static int join_v2(struct cgroup *c, uint64_t deadline) {
        const struct cgroup_hier *v2 = &c->host->hiers[0], *v1 = cgroup_host_of(c->host, CGROUP_PIDS);
        struct err e;
        int r;

        if (c->mode != CGROUP_HYBRID || c->v2_fd >= 0)
                return 0;
        r = cgroup_group_add(c, 0, &e);
        if (r == 0)
                r = fd_write_at(c->v2_fd, "cgroup.freeze", "1");
        while (r == 0) {
                /* Counted before the others are listed: only then does "as many" mean that nobody is outside. */
                int there = each_listed(c, v2, NULL), all = there < 0 ? there : each_listed(c, v1, move_to_v2);

                if (all < 0)
                        r = all;
                else if (all <= there)
                        return 0;
                else if (clock_mono_ns() > deadline)
                        r = -ETIMEDOUT;
        }
        return r;
}

/* -ENOSYS where nothing can freeze. */
static int freeze(struct cgroup *c, bool frozen, uint64_t deadline) {
        const struct cgroup_hier *v1 = cgroup_host_of(c->host, CGROUP_FREEZER);
        int r = frozen ? join_v2(c, deadline) : 0;

        if (r < 0)
                return r;
        if (c->v2_fd >= 0) {
                r = fd_write_at(c->v2_fd, "cgroup.freeze", frozen ? "1" : "0");
                return r < 0 ? r : wait_event(c, "frozen", frozen, deadline);
        }
        if (!frozen && c->mode == CGROUP_HYBRID)
                return 0; /* it never was frozen */
        if (!v1 || v1->parent_fd < 0)
                return -ENOSYS;
        return freeze_v1(c, v1, frozen, deadline);
}

int cgroup_freeze(struct cgroup *c, bool frozen, struct err *err) {
        int r = freeze(c, frozen, deadline_in(WAIT_MS));

        if (r == 0)
                return 0;
        if (frozen)
                (void) freeze(c, false, deadline_in(FREEZE_MS)); /* half frozen is the worst of both */
        return err_set(err, r, ERR_INTERNAL, "%s control group %s: %s", frozen ? "freeze" : "thaw", c->name,
                       r == -ENOSYS ? "no freezer is mounted here" : strerrorname_np(-r));
}

bool cgroup_is_frozen(const struct cgroup *c) {
        const struct cgroup_hier *v1 = cgroup_host_of(c->host, CGROUP_FREEZER);
        char text[32] = "";

        if (c->v2_fd >= 0)
                return fd_read_at(c->v2_fd, "cgroup.freeze", text, sizeof(text)) > 0 && text[0] == '1';
        return v1 && v1->parent_fd >= 0 && cgroup_file_read(c, v1, "freezer.state", text, sizeof(text)) > 0 &&
               !str_has_prefix(text, "THAWED");
}

static void kill_one(const struct cgroup *c, pid_t pid) {
        (void) c;
        (void) sys_kill(pid, SIGKILL);
}

static int kill_round(const struct cgroup *c) {
        int sum = 0;

        for (size_t i = 0; i < c->host->n; i++) {
                int n;

                if (!(c->made & BIT(i)))
                        continue;
                n = each_listed(c, &c->host->hiers[i], kill_one);
                if (n < 0)
                        return n;
                sum += n;
        }
        return sum;
}

static int kill_by_list(struct cgroup *c, uint64_t deadline) {
        for (;;) {
                int n;

                /* A group that will not freeze (a task in the middle of a vfork, say) must die all the same. */
                (void) freeze(c, true, deadline_in(FREEZE_MS));
                n = kill_round(c);
                (void) freeze(c, false, deadline_in(FREEZE_MS));
                if (n <= 0)
                        return n;
                if (clock_mono_ns() > deadline)
                        return -ETIMEDOUT;
                wait_step();
        }
}

int cgroup_kill(struct cgroup *c, struct err *err) {
        uint64_t deadline = deadline_in(WAIT_MS);
        int r = c->mode == CGROUP_HYBRID && c->v2_fd < 0 ? kill_round(c) : 1;

        if (r == 0)
                return 0; /* nobody is left, as nearly always */
        if (r > 0)
                r = join_v2(c, deadline);
        if (r == 0)
                r = c->v2_fd < 0 ? -ENOENT : fd_write_at(c->v2_fd, "cgroup.kill", "1");
        if (r == 0)
                r = wait_event(c, "populated", 0, deadline);
        else if (r == -ENOENT)
                r = kill_by_list(c, deadline);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "kill control group %s: %s", c->name, strerrorname_np(-r));
        return 0;
}
