/* test_group.c - real groups: making, limiting, verifying, removing. Needs root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "groups.h"
#include "json/json.h"

static int wait_for_ever(void *arg) {
        (void) arg;
        while (pause() < 0)
                ;
        return 0;
}

/* In how many hierarchies a group of this name exists. */
static size_t count_groups(const struct groups *g, const char *name) {
        int fds[CGROUP_V1_MAX];
        size_t n = groups_parents(g->host, fds, CGROUP_V1_MAX), found = 0;

        for (size_t i = 0; i < n; i++)
                found += faccessat(fds[i], name, F_OK, 0) == 0;
        return found;
}

static void limits_read_back_as_written(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };

        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
}

static void limits_can_be_raised_and_lowered(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };

        g->limits = (struct cgroup_limits){ .memory_bytes = 512u << 20, .cpu_milli = 4000, .pids = 100 };
        assert_int_equal(cgroup_limit(&g->c, &g->limits, &err), 0);
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
        g->limits = (struct cgroup_limits){ .memory_bytes = 8u << 20, .cpu_milli = 50, .pids = 1 };
        assert_int_equal(cgroup_limit(&g->c, &g->limits, &err), 0);
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
}

static void limit_of_zero_is_refused(void **state) {
        struct groups *g = *state;
        struct cgroup_limits zero[3] = { g->limits, g->limits, g->limits };
        struct err err = { 0 };

        zero[0].memory_bytes = 0;
        zero[1].cpu_milli = 0;
        zero[2].pids = 0;
        for (size_t i = 0; i < ARRAY_SIZE(zero); i++)
                assert_int_equal(cgroup_limit(&g->c, &zero[i], &err), -EINVAL);
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
}

/* Changes one file behind the library's back (the name on v2, or the one on v1) and expects to be told. */
static void expect_detected(struct groups *g, const char *v2_file, const char *v1_file, const char *text,
                            const char *control) {
        struct err err = { 0 };

        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
        if (!groups_poke(g, v2_file, text) && !groups_poke(g, v1_file, text)) {
                print_message("this kernel's control groups have no %s\n", v1_file ? v1_file : v2_file);
                skip();
        }
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), -ESTALE);
        assert_non_null(strstr(err.msg, control));
}

static void changed_memory_limit_is_detected(void **state) {
        expect_detected(*state, "memory.max", "memory.limit_in_bytes", "16777216", "cgroup.memory: memory.");
}

static void changed_swap_limit_is_detected(void **state) {
        expect_detected(*state, "memory.swap.max", "memory.memsw.limit_in_bytes", "1073741824",
                        "cgroup.memory: memory.");
}

static void changed_oom_group_is_detected(void **state) {
        expect_detected(*state, "memory.oom.group", "memory.oom.group", "0", "cgroup.memory: memory.oom.group");
}

static void changed_cpu_quota_is_detected(void **state) {
        expect_detected(*state, "cpu.max", "cpu.cfs_quota_us", "150000", "cgroup.cpu: cpu.");
}

static void changed_cpu_period_is_detected(void **state) {
        struct groups *g = *state;
        bool v2 = cgroup_host_mode(g->host) == CGROUP_V2;

        expect_detected(g, "cpu.max", "cpu.cfs_period_us", v2 ? "200000 50000" : "50000", "cgroup.cpu: cpu.");
}

static void changed_pids_limit_is_detected(void **state) {
        expect_detected(*state, "pids.max", "pids.max", "17", "cgroup.pids: pids.max");
}

static void removed_pids_limit_is_detected(void **state) {
        expect_detected(*state, "pids.max", "pids.max", "max", "cgroup.pids: pids.max");
}

/* The first disk of this machine. */
static bool find_disk(uint32_t ret[2]) {
        DIR *dir = opendir("/sys/block");
        bool found = false;

        for (struct dirent *e = dir ? readdir(dir) : NULL; e && !found; e = readdir(dir)) {
                char path[300], text[32], *colon;
                uint64_t v[2];

                (void) snprintf(path, sizeof(path), "/sys/block/%s/dev", e->d_name);
                if (e->d_name[0] == '.' || fd_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
                        continue;
                text[strcspn(text, "\n")] = '\0';
                colon = strchr(text, ':');
                if (!colon)
                        continue;
                *colon = '\0';
                found = str_to_u64(text, UINT32_MAX, &v[0]) == 0 && str_to_u64(colon + 1, UINT32_MAX, &v[1]) == 0;
                ret[0] = (uint32_t) v[0];
                ret[1] = (uint32_t) v[1];
        }
        if (dir)
                (void) closedir(dir);
        return found;
}

static void changed_io_limit_is_detected(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };
        char text[64];

        if (!find_disk(g->limits.io_devices[0])) {
                print_message("no disk to limit\n");
                skip();
        }
        g->limits.n_io_devices = 1;
        g->limits.io_bytes_per_s = 5000000;
        assert_true(cgroup_verify(&g->c, &g->limits, &err) < 0); /* not written yet */
        assert_int_equal(cgroup_limit(&g->c, &g->limits, &err), 0);
        (void) snprintf(text, sizeof(text), "%u:%u %s", g->limits.io_devices[0][0], g->limits.io_devices[0][1],
                        cgroup_host_mode(g->host) == CGROUP_V2 ? "wbps=6000000" : "6000000");
        expect_detected(g, "io.max", "blkio.throttle.write_bps_device", text, "cgroup.io: ");
}

static void io_limit_without_disks_is_nothing_to_do(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };
        size_t before = count_groups(g, g->c.name);

        g->limits.io_bytes_per_s = 5000000;
        assert_int_equal(cgroup_limit(&g->c, &g->limits, &err), 0);
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
        assert_int_equal(count_groups(g, g->c.name), before);
}

static void taken_name_is_refused_and_untouched(void **state) {
        struct groups *g = *state;
        struct cgroup other;
        struct err err = { 0 };
        size_t before = count_groups(g, g->c.name);

        assert_int_equal(groups_make(g->host, g->c.name, &other, &err), -EEXIST);
        assert_int_equal(count_groups(g, g->c.name), before);
        assert_int_equal(cgroup_verify(&g->c, &g->limits, &err), 0);
}

static void half_taken_name_leaves_nothing_new(void **state) {
        struct groups *g = *state;
        struct cgroup other;
        struct err err = { 0 };
        int fds[CGROUP_V1_MAX];
        size_t n = groups_parents(g->host, fds, CGROUP_V1_MAX), last = n - 1;
        char name[CGROUP_NAME];

        (void) snprintf(name, sizeof(name), "half-%d", (int) getpid());
        /* The last one in which a group is really made: io on v1 waits until it is needed. */
        while (faccessat(fds[last], g->c.name, F_OK, 0) < 0)
                last--;
        assert_int_equal(mkdirat(fds[last], name, 0755), 0);
        assert_int_equal(groups_make(g->host, name, &other, &err), -EEXIST);
        assert_int_equal(count_groups(g, name), 1);
        assert_int_equal(unlinkat(fds[last], name, AT_REMOVEDIR), 0);
}

static void names_that_are_paths_are_refused(void **state) {
        static const char *const bad[] = { "",    ".",   "..",
                                           "a/b", "/a",  ".hidden",
                                           "a b", "a\n", "0123456789012345678901234567890123456789012345678" };
        struct groups *g = *state;
        struct cgroup other;
        struct err err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(groups_make(g->host, bad[i], &other, &err), -EINVAL);
                assert_int_equal(cgroup_open(g->host, bad[i], &other, &err), -EINVAL);
        }
}

static void process_is_a_member_only_if_in_every_group(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };
        AUTO_FD int proc_fd = open("/proc", O_PATH | O_CLOEXEC);
        pid_t inside = groups_start(&g->c, wait_for_ever, NULL);
        struct cgroup nothing = g->c;
        pid_t half;

        groups_sleep_ms(50);
        assert_int_equal(cgroup_verify_member(&g->c, proc_fd, inside, &err), 0);
        assert_int_equal(cgroup_verify_member(&g->c, proc_fd, getpid(), &err), -EXDEV);
        nothing.n_tasks = nothing.n_tasks > 0 ? nothing.n_tasks - 1 : 0; /* one hierarchy is not joined */
        if (nothing.n_tasks < g->c.n_tasks) {
                half = groups_start(&nothing, wait_for_ever, NULL);
                groups_sleep_ms(50);
                assert_int_equal(cgroup_verify_member(&g->c, proc_fd, half, &err), -EXDEV);
                assert_int_equal(kill(half, SIGKILL), 0);
                groups_wait(half);
        }
        assert_int_equal(cgroup_kill(&g->c, &err), 0);
        groups_wait(inside);
        assert_true(cgroup_verify_member(&g->c, proc_fd, inside, &err) < 0);
}

static void leftovers_can_be_opened_killed_and_removed(void **state) {
        struct groups *g = *state;
        struct cgroup made, found;
        struct err err = { 0 };
        char name[CGROUP_NAME];
        pid_t pid;

        (void) snprintf(name, sizeof(name), "left-%d", (int) getpid());
        assert_int_equal(cgroup_open(g->host, name, &found, &err), -ENOENT);
        assert_int_equal(groups_make(g->host, name, &made, &err), 0);
        pid = groups_start(&made, wait_for_ever, NULL);
        assert_true(pid > 0);
        assert_int_equal(cgroup_open(g->host, name, &found, &err), 0);
        assert_int_equal(found.n_tasks, made.n_tasks);
        assert_int_equal(cgroup_kill(&found, &err), 0);
        assert_true(WIFSIGNALED(groups_wait(pid)));
        assert_int_equal(cgroup_remove(&found, &err), 0);
        assert_int_equal(count_groups(g, name), 0);
        assert_int_equal(cgroup_remove(&made, &err), 0); /* already gone is as good as removed */
}

static void group_with_a_process_is_not_removed(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };
        pid_t pid = groups_start(&g->c, wait_for_ever, NULL);

        groups_sleep_ms(20);
        assert_int_equal(cgroup_remove(&g->c, &err), -EBUSY);
        assert_int_equal(kill(pid, SIGKILL), 0);
        groups_wait(pid);
        assert_int_equal(cgroup_remove(&g->c, &err), 0);
        assert_int_equal(count_groups(g, g->c.name), 0);
}

static void description_has_the_paths_and_the_limits(void **state) {
        struct groups *g = *state;
        CLEANUP(buf_done) struct buf b = BUF_INIT(65536);
        struct json_emit e = { .to = &b };
        struct err err = { 0 };
        const char *text;

        assert_int_equal(cgroup_describe(&g->c, &e, NULL, &err), 0);
        text = buf_str(&b);
        assert_non_null(strstr(text, g->c.name));
        assert_non_null(strstr(text, "\"pids.max\":\"16\""));
        assert_non_null(strstr(text, cgroup_host_mode(g->host) == CGROUP_V2 ? "\"cpu.max\":\"200000 100000\""
                                                                            : "\"cpu.cfs_quota_us\":\"200000\""));
        assert_non_null(strstr(text, "50331648")); /* memory, rounded down to pages */
        assert_non_null(strstr(text, "\"swap\":\"limited to none\""));
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, groups_setup, groups_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                REAL(limits_read_back_as_written),
                REAL(limits_can_be_raised_and_lowered),
                REAL(limit_of_zero_is_refused),
                REAL(changed_memory_limit_is_detected),
                REAL(changed_swap_limit_is_detected),
                REAL(changed_oom_group_is_detected),
                REAL(changed_cpu_quota_is_detected),
                REAL(changed_cpu_period_is_detected),
                REAL(changed_pids_limit_is_detected),
                REAL(removed_pids_limit_is_detected),
                REAL(changed_io_limit_is_detected),
                REAL(io_limit_without_disks_is_nothing_to_do),
                REAL(taken_name_is_refused_and_untouched),
                REAL(half_taken_name_leaves_nothing_new),
                REAL(names_that_are_paths_are_refused),
                REAL(process_is_a_member_only_if_in_every_group),
                REAL(leftovers_can_be_opened_killed_and_removed),
                REAL(group_with_a_process_is_not_removed),
                REAL(description_has_the_paths_and_the_limits),
        };
        return groups_main("groups", tests, ARRAY_SIZE(tests));
}
