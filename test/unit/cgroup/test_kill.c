/* test_kill.c - processes inside real groups: limits that bite, counters that count, freeze and kill. Needs root. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "groups.h"

enum { FORKED_ALL = 3, REFUSED = 4, SPIN_MS = 800, MANY = 8 };

static bool hide_cgroup_kill;

/* The names are the linker's (--wrap). NOLINTBEGIN(bugprone-reserved-identifier) */
int __real_fd_write_at(int dir_fd, const char *path, const char *text);
int __wrap_fd_write_at(int dir_fd, const char *path, const char *text);

/* A kernel before 5.14 for the tests that ask for one. */
int __wrap_fd_write_at(int dir_fd, const char *path, const char *text) {
        if (hide_cgroup_kill && strcmp(path, "cgroup.kill") == 0)
                return -ENOENT;
        return __real_fd_write_at(dir_fd, path, text);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int eat_memory(void *arg) {
        size_t n = *(size_t *) arg;
        char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                return 1;
        for (size_t i = 0; i < n; i += 4096)
                ((volatile char *) p)[i] = 1;
        return 0;
}

static int fork_often(void *arg) {
        (void) arg;
        for (int i = 0; i < 64; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        return errno == EAGAIN ? REFUSED : 1;
                if (pid == 0) {
                        pause();
                        _exit(0);
                }
        }
        return FORKED_ALL;
}

static int spin(void *arg) {
        uint64_t until = clock_mono_ns() + (uint64_t) SPIN_MS * 1000000;

        (void) arg;
        while (clock_mono_ns() < until)
                ;
        return 0;
}

static int count_up(void *arg) {
        atomic_ulong *counter = arg;

        for (int i = 1; i < MANY && fork() > 0; i++)
                ;
        while (atomic_fetch_add(counter, 1) < ULONG_MAX)
                ;
        return 0;
}

/* Processes that no polite signal ends. */
static int ignore_everything(void *arg) {
        atomic_ulong *ready = arg;
        sigset_t all;

        sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        for (int i = 1; i < MANY && fork() > 0; i++)
                ;
        atomic_fetch_add(ready, 1);
        while (pause() < 0)
                ;
        return 0;
}

/* Every child makes another before it ends: a list of pids is out of date as soon as it was read. */
static int fork_chain(void *arg) {
        atomic_ulong *ready = arg;

        for (;;) {
                pid_t pid = fork();

                atomic_fetch_add(ready, 1);
                if (pid > 0)
                        _exit(0);
        }
}

static pid_t start_stubborn(const struct groups *g, atomic_ulong *ready) {
        pid_t pid = groups_start(&g->c, ignore_everything, ready);

        for (int i = 0; i < 500 && atomic_load(ready) < MANY; i++)
                groups_sleep_ms(10);
        assert_int_equal(atomic_load(ready), MANY);
        return pid;
}

static void memory_over_the_limit_kills_and_is_counted(void **state) {
        struct groups *g = *state;
        struct cgroup_usage u;
        struct err err = { 0 };
        size_t n = 96u << 20;
        int status = groups_wait(groups_start(&g->c, eat_memory, &n));

        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(cgroup_usage(&g->c, CGROUP_ALL, &u, &err), 0);
        assert_true(u.oom_kills >= 1);
        assert_in_range(u.memory_peak_bytes, 24u << 20, g->limits.memory_bytes);
}

static void memory_below_the_limit_is_free(void **state) {
        struct groups *g = *state;
        struct cgroup_usage u;
        struct err err = { 0 };
        size_t n = 24u << 20;

        assert_int_equal(groups_wait(groups_start(&g->c, eat_memory, &n)), 0);
        assert_int_equal(cgroup_usage(&g->c, CGROUP_ALL, &u, &err), 0);
        assert_int_equal(u.oom_kills, 0);
        assert_int_equal(u.pids_refused, 0);
}

static void forks_over_the_limit_fail_and_are_counted(void **state) {
        struct groups *g = *state;
        struct cgroup_usage u;
        struct err err = { 0 };
        int status = groups_wait(groups_start(&g->c, fork_often, NULL));

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), REFUSED);
        assert_int_equal(cgroup_usage(&g->c, CGROUP_ALL, &u, &err), 0);
        assert_true(u.pids_refused >= 1);
}

static void processor_time_is_held_to_the_quota(void **state) {
        struct groups *g = *state;
        struct rusage use;
        struct cgroup_usage u;
        struct err err = { 0 };
        long used_ms;

        g->limits.cpu_milli = 100;
        assert_int_equal(cgroup_limit(&g->c, &g->limits, &err), 0);
        assert_true(wait4(groups_start(&g->c, spin, NULL), NULL, 0, &use) > 0);
        used_ms = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
                  (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
        assert_in_range(used_ms, 10, SPIN_MS / 2); /* 80 are due; unlimited it would be 800 */
        assert_int_equal(cgroup_usage(&g->c, CGROUP_ALL, &u, &err), 0);
        if (u.cpu_us > 0)
                assert_in_range(u.cpu_us, 10 * 1000, SPIN_MS / 2 * 1000);
        else
                assert_true(g->c.v2_fd < 0); /* what counts it is a v2 group */
}

/* What the kernel says, asked at once. */
static bool is_frozen(const struct groups *g) {
        char text[256];

        if (g->c.v2_fd >= 0)
                return groups_peek(g, "cgroup.events", text, sizeof(text)) && strstr(text, "frozen 1");
        return groups_peek(g, "freezer.state", text, sizeof(text)) && strstr(text, "FROZEN");
}

static void frozen_group_stands_still(void **state) {
        struct groups *g = *state;
        atomic_ulong *counter = groups_shared(sizeof(*counter));
        struct err err = { 0 };
        unsigned long at;
        pid_t pid = groups_start(&g->c, count_up, counter);

        for (int round = 0; round < 3; round++) {
                at = atomic_load(counter);
                for (int i = 0; i < 500 && atomic_load(counter) == at; i++)
                        groups_sleep_ms(10);
                assert_true(atomic_load(counter) > at);
                assert_int_equal(cgroup_freeze(&g->c, true, &err), 0);
                assert_true(is_frozen(g));
                at = atomic_load(counter);
                groups_sleep_ms(50);
                assert_int_equal(atomic_load(counter), at);
                assert_int_equal(cgroup_freeze(&g->c, false, &err), 0);
        }
        assert_int_equal(cgroup_kill(&g->c, &err), 0);
        groups_wait(pid);
        (void) munmap(counter, sizeof(*counter));
}

/* Kills a group of stubborn processes and checks that the kernel agrees that they are gone. */
static void expect_killed(struct groups *g, bool frozen) {
        atomic_ulong *ready = groups_shared(sizeof(*ready));
        struct err err = { 0 };
        pid_t pid = start_stubborn(g, ready);
        char procs[256];
        int status;

        if (frozen)
                assert_int_equal(cgroup_freeze(&g->c, true, &err), 0);
        assert_int_equal(cgroup_kill(&g->c, &err), 0);
        assert_true(groups_peek(g, "cgroup.procs", procs, sizeof(procs)));
        assert_string_equal(procs, ""); /* not a moment later */
        status = groups_wait(pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(cgroup_remove(&g->c, &err), 0);
        (void) munmap(ready, sizeof(*ready));
}

static void kill_ends_processes_that_ignore_signals(void **state) {
        expect_killed(*state, false);
}

static void kill_ends_a_frozen_group(void **state) {
        expect_killed(*state, true);
}

static int show_cgroup_kill(void **state) {
        hide_cgroup_kill = false;
        return groups_teardown(state);
}

static void kill_works_without_cgroup_kill(void **state) {
        hide_cgroup_kill = true;
        expect_killed(*state, false);
}

static void kill_of_a_frozen_group_works_without_cgroup_kill(void **state) {
        hide_cgroup_kill = true;
        expect_killed(*state, true);
}

static void kill_without_cgroup_kill_outruns_a_fork_chain(void **state) {
        struct groups *g = *state;
        atomic_ulong *ready = groups_shared(sizeof(*ready));
        struct err err = { 0 };
        pid_t pid = groups_start(&g->c, fork_chain, ready);

        for (int i = 0; i < 500 && atomic_load(ready) < 20; i++)
                groups_sleep_ms(10);
        assert_true(atomic_load(ready) >= 20);
        hide_cgroup_kill = true;
        assert_int_equal(cgroup_kill(&g->c, &err), 0);
        groups_wait(pid);
        assert_int_equal(cgroup_remove(&g->c, &err), 0);
        (void) munmap(ready, sizeof(*ready));
}

static void killing_an_empty_group_is_no_error(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };

        assert_int_equal(cgroup_kill(&g->c, &err), 0);
        hide_cgroup_kill = true;
        assert_int_equal(cgroup_kill(&g->c, &err), 0);
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, groups_setup, show_cgroup_kill)

int main(void) {
        static const struct CMUnitTest tests[] = {
                REAL(memory_over_the_limit_kills_and_is_counted),
                REAL(memory_below_the_limit_is_free),
                REAL(forks_over_the_limit_fail_and_are_counted),
                REAL(processor_time_is_held_to_the_quota),
                REAL(frozen_group_stands_still),
                REAL(kill_ends_processes_that_ignore_signals),
                REAL(kill_ends_a_frozen_group),
                REAL(kill_works_without_cgroup_kill),
                REAL(kill_of_a_frozen_group_works_without_cgroup_kill),
                REAL(kill_without_cgroup_kill_outruns_a_fork_chain),
                REAL(killing_an_empty_group_is_no_error),
        };
        return groups_main("processes", tests, ARRAY_SIZE(tests));
}
