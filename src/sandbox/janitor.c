/*
 * janitor.c - one small process per sandbox of `gabion run`.
 *
 * Theory of operation. It shares the supervisor's memory and descriptors (so it costs a kernel stack and little else),
 * and sleeps until the supervisor says that it is done, or is gone: killed with SIGKILL it could say nothing. In both
 * cases the janitor kills what is left inside and removes the control groups and the slot, while the supervisor lets go
 * of the rest. Of a supervisor that is gone it lets go itself, first of all: nobody waits for that any more.
 *
 * It is born into the sandbox's user namespace and thereby holds it open until its maps are written. That leaves it
 * capabilities over what is inside, for the signal and the wall, and none outside, where it needs none: what it removes
 * belongs to its own uid. Nobody inside can name it, it is in the supervisor's pid namespace. Like the set-up child it
 * may use no libc.
 */
#include "sandbox/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "sandbox/slot.h"

enum {
        JANITOR_STACK = 8192,
        JANITOR_DIRS = CGROUP_V1_MAX + 1,
        JANITOR_TRIES = 2500,
        DEATH_WAIT_MS = 1000,
        WALL_TRIES = 200,
        WALL_WAIT_MS = 50
};

/* What is asked of it, added up in an eventfd. */
static const uint64_t ask_wall = 1, ask_end = 1ull << 32;

/* Written by the supervisor, read by the janitor; n_groups last. */
static struct {
        int parent_pidfd, proc_fd, ask_fd, run_fd, slot_fd;
        int agent_pidfd; /* -1: the agent is born later, into a group that can be killed as a whole */
        char groups[JANITOR_DIRS][512], kills[JANITOR_DIRS][512];
        uint32_t n_groups, left;
        uint32_t walled;    /* futex word: 0 not yet; 1: user namespaces are forbidden inside; else errno + 1 */
        uint32_t announced; /* 1: there is, or soon will be, a socket beside the slot */
        bool unwalled;      /* test hook */
        uint32_t keep;      /* 1: the sandbox goes on, and nothing is to be removed */
        char slot[CGROUP_NAME], socket[SLOT_SOCKET];
} job;

static char stack[JANITOR_STACK] __attribute__((aligned(16)));

/*
 * A second wall behind the filter: in the sandbox's user namespace no other may be made. Only a process inside that is
 * still privileged there can say so, which we are until the agent has its own, smaller set.
 */
static int forbid_user_namespaces(void) {
        int fd = sys_openat(job.proc_fd, "sys/user/max_user_namespaces", O_RDWR | O_CLOEXEC, 0);
        long r = fd < 0 ? fd : sys_write(fd, job.unwalled ? "9" : "0", 1);
        char now[2] = "";

        if (r > 0)
                r = SYS4(SYS_pread64, fd, now, sizeof(now), 0);
        (void) sys_close(fd);
        if (r >= 0 && (now[0] != '0' || now[1] != '\n'))
                return -EBADE; /* written, but not in force */
        return r < 0 ? (int) r : 0;
}

static uint32_t remove_all(uint32_t n) {
        uint32_t left = 0;

        for (uint32_t k = 0; k < n; k++) {
                int kill_fd, r = sys_unlinkat(AT_FDCWD, job.groups[k], AT_REMOVEDIR);

                if (r == 0 || r == -ENOENT)
                        continue;
                left++;
                kill_fd = sys_openat(AT_FDCWD, job.kills[k], O_WRONLY | O_CLOEXEC, 0);
                if (kill_fd >= 0) {
                        (void) sys_write(kill_fd, "1", 1);
                        (void) sys_close(kill_fd);
                }
        }
        return left;
}

static void raise_wall(void) {
        __atomic_store_n(&job.walled, 1u - (uint32_t) forbid_user_namespaces(), __ATOMIC_RELEASE);
        (void) sys_futex_wake(&job.walled);
}

/* Of what the supervisor left open nothing is kept, be it the caller's pipes or its end of the agent's socket; but the
 * slot, whose lock must last until it is clean. */
static void close_others(void) {
        unsigned from = 0;

        for (;;) {
                const int keep[] = { job.run_fd, job.slot_fd, job.agent_pidfd };
                unsigned next = ~0u;

                for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
                        if ((unsigned) keep[i] >= from && (unsigned) keep[i] < next)
                                next = (unsigned) keep[i];
                if (next > from)
                        (void) sys_close_range(from, next == ~0u ? next : next - 1, 0);
                if (next == ~0u)
                        return;
                from = next + 1;
        }
}

static void wait_for_end(void) {
        for (;;) {
                struct pollfd p[2] = { { job.parent_pidfd, POLLIN, 0 }, { job.ask_fd, POLLIN, 0 } };
                uint64_t asked = 0;

                if (SYS5(SYS_ppoll, p, 2, NULL, NULL, 8) < 0)
                        continue;
                if (p[0].revents) {
                        close_others();
                        return;
                }
                (void) sys_read(job.ask_fd, &asked, sizeof(asked));
                if (asked >= ask_end)
                        return;
                if (asked)
                        raise_wall();
        }
}

/* Pid 1 of the namespace: with it everything inside ends, and when it is dead the groups are empty. */
static void kill_all(void) {
        if (job.agent_pidfd < 0)
                return;
        (void) sys_pidfd_send_signal(job.agent_pidfd, SIGKILL);
        (void) sys_poll_in(job.agent_pidfd, DEATH_WAIT_MS);
}

static int janitor_main(void *arg) {
        static const struct timespec pause = { .tv_nsec = 500000 };
        static const uint64_t all = ~0ull;
        uint32_t n;

        (void) arg;
        /* Out of the terminal's reach. A session of its own would be a group for the scheduler too, made and removed.
         */
        (void) SYS2(SYS_setpgid, 0, 0);
        (void) SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
        wait_for_end();
        if (__atomic_load_n(&job.keep, __ATOMIC_ACQUIRE))
                return 0;
        kill_all();
        n = __atomic_load_n(&job.n_groups, __ATOMIC_ACQUIRE);
        for (int i = 0; (job.left = remove_all(n)) > 0 && i < JANITOR_TRIES; i++)
                (void) SYS2(SYS_nanosleep, &pause, NULL);
        if (__atomic_load_n(&job.announced, __ATOMIC_ACQUIRE))
                (void) sys_unlinkat(job.run_fd, job.socket, 0);
        if (job.left == 0)
                (void) sys_unlinkat(job.run_fd, job.slot, 0);
        return 0;
}

int janitor_start(struct sandbox *sb, const struct child *c, struct err *err) {
        const struct sys_clone_args args = {
                .flags = SYS_CLONE_VM | SYS_CLONE_FILES | SYS_CLONE_NEWUSER,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t) (uintptr_t) stack,
                .stack_size = sizeof(stack),
        };
        long pid;

        sb->finish_fd = eventfd(0, EFD_CLOEXEC);
        if (sb->finish_fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "janitor process: %s", strerror(errno));
        job.parent_pidfd = c->parent_pidfd;
        job.proc_fd = sb->proc_fd;
        job.unwalled = WEAK(c, WEAKEN_WALL);
        job.ask_fd = sb->finish_fd;
        job.agent_pidfd = sb->agent_pidfd;
        job.run_fd = sb->run_fd;
        job.slot_fd = sb->slot_fd;
        job.n_groups = job.left = 0;
        job.walled = job.announced = job.keep = 0;
        slot_name(job.slot, sb->slot);
        pid = sys_clone_run(&args, janitor_main, NULL);
        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL, "janitor process: %s", strerror((int) -pid));
        sb->janitor_pid = (pid_t) pid;
        return 0;
}

int janitor_watch(const struct sandbox *sb, struct err *err) {
        uint32_t n = 0;

        for (size_t i = 0; cgroup_parent(sb->cgroup_host, i); i++) {
                const char *dir = cgroup_parent(sb->cgroup_host, i);

                if (!dir[0])
                        continue;
                if (n == JANITOR_DIRS || strlen(dir) + CGROUP_NAME + sizeof("/cgroup.kill") > sizeof(job.groups[0]))
                        return err_set(err, -ENAMETOOLONG, ERR_INTERNAL, "control groups: the path is too long");
                (void) snprintf(job.groups[n], sizeof(job.groups[n]), "%s/%s", dir, job.slot);
                (void) snprintf(job.kills[n], sizeof(job.kills[n]), "%s/%s/cgroup.kill", dir, job.slot);
                n++;
        }
        __atomic_store_n(&job.n_groups, n, __ATOMIC_RELEASE);
        return 0;
}

void janitor_announce(const char *socket_name) {
        (void) snprintf(job.socket, sizeof(job.socket), "%s", socket_name);
        __atomic_store_n(&job.announced, 1, __ATOMIC_RELEASE);
}

void janitor_wall(const struct sandbox *sb) {
        (void) eventfd_write(sb->finish_fd, ask_wall);
}

int janitor_walled(void) {
        uint32_t now;

        /* It was asked long ago, but on a busy machine it may not have run yet. */
        for (int i = 0; (now = __atomic_load_n(&job.walled, __ATOMIC_ACQUIRE)) == 0 && i < WALL_TRIES; i++)
                (void) sys_futex_wait(&job.walled, 0, WALL_WAIT_MS);
        return now == 0 ? -ETIMEDOUT : 1 - (int) now;
}

void janitor_keep(bool keep) {
        __atomic_store_n(&job.keep, keep, __ATOMIC_RELEASE);
}

void janitor_finish(struct sandbox *sb) {
        if (sb->janitor_pid > 0)
                (void) eventfd_write(sb->finish_fd, ask_end);
}

int janitor_wait(struct sandbox *sb) {
        int status;

        if (sb->janitor_pid <= 0)
                return 0;
        status = end_reap(sb->janitor_pid);
        sb->janitor_pid = 0;
        return WIFEXITED(status) && job.left == 0 ? 0 : -EBUSY; /* it may have been killed itself */
}
