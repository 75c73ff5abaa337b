/* test_host.c - who may make groups: root, an ordinary user on a delegated subtree, and nobody else. Needs root. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "cgroup/parse.h"
#include "groups.h"

enum { NOBODY = 65534 };

/* The subtree of one test: a directory in each hierarchy that is given away. */
struct subtree {
        char name[CGROUP_NAME];
        struct cgroup_layout layout;
        int dirs[CGROUP_MOUNTS]; /* -1: not given away */
        int (*as_user)(void);
        bool without_pids;
};

static void give(int dir_fd, const char *file) {
        if (fchownat(dir_fd, file, NOBODY, NOBODY, 0) < 0)
                assert_int_equal(errno, ENOENT);
}

static void subtree_make(struct subtree *t) {
        static char text[1 << 20];

        assert_true(fd_read_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text)) > 0);
        cgroup_parse_mountinfo(text, &t->layout);
        (void) snprintf(t->name, sizeof(t->name), "unit-user-%d", (int) getpid());
        for (size_t i = 0; i < t->layout.n; i++) {
                const struct cgroup_mount *m = &t->layout.mounts[i];
                AUTO_FD int fd = open(m->point, O_PATH | O_DIRECTORY | O_CLOEXEC);

                t->dirs[i] = -1;
                if (m->ctls & BIT(CGROUP_IO))
                        continue;
                assert_int_equal(mkdirat(fd, t->name, 0755), 0);
                t->dirs[i] = openat(fd, t->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
                assert_true(t->dirs[i] >= 0);
                if (t->without_pids && (m->ctls & BIT(CGROUP_PIDS)))
                        continue;
                give(fd, t->name);
                give(t->dirs[i], "cgroup.procs");
                give(t->dirs[i], "tasks");
                give(t->dirs[i], "cgroup.threads");
                give(t->dirs[i], "cgroup.subtree_control");
        }
}

static void subtree_remove(struct subtree *t) {
        for (size_t i = 0; i < t->layout.n; i++) {
                AUTO_FD int fd = open(t->layout.mounts[i].point, O_PATH | O_DIRECTORY | O_CLOEXEC);

                if (t->dirs[i] < 0)
                        continue;
                (void) unlinkat(t->dirs[i], "gabion", AT_REMOVEDIR);
                (void) unlinkat(t->dirs[i], CGROUP_SUPERVISOR, AT_REMOVEDIR);
                (void) close(t->dirs[i]);
                assert_int_equal(unlinkat(fd, t->name, AT_REMOVEDIR), 0);
        }
}

static int become_nobody(void) {
        /* Changing ids makes /proc/self root's, but the group test reads it: as in a program started by the user. */
        if (sys_setgroups_none() < 0 || sys_setresgid(NOBODY) < 0 || sys_setresuid(NOBODY) < 0)
                return -1;
        return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int complain(const char *what, const struct err *err) {
        (void) fprintf(stderr, "as user: %s: %s\n", what, err->msg);
        return 1;
}

static int spend_a_moment(void *arg) {
        (void) arg;
        groups_sleep_ms(2000);
        return 0;
}

/* The whole life of a group, as an ordinary user inside the subtree. */
static int user_life(void) {
        struct cgroup_limits l = { .memory_bytes = 32u << 20, .cpu_milli = 500, .pids = 8 };
        AUTO_FD int proc_fd = open("/proc", O_PATH | O_CLOEXEC);
        struct cgroup_host *h = NULL;
        struct cgroup_usage u;
        struct err err = { 0 };
        struct cgroup c;
        pid_t pid;

        if (cgroup_host_find(&h, &err) < 0)
                return complain("find", &err);
        if (groups_make(h, "mine", &c, &err) < 0 || cgroup_limit(&c, &l, &err) < 0 || cgroup_verify(&c, &l, &err) < 0)
                return complain("make", &err);
        pid = groups_start(&c, spend_a_moment, NULL);
        groups_sleep_ms(50);
        if (pid < 0 || cgroup_verify_member(&c, proc_fd, pid, &err) < 0)
                return complain("join", &err);
        if (cgroup_freeze(&c, true, &err) < 0 || cgroup_usage(&c, CGROUP_ALL, &u, &err) < 0 ||
            cgroup_kill(&c, &err) < 0)
                return complain("kill", &err);
        if (!WIFSIGNALED(groups_wait(pid)) || cgroup_remove(&c, &err) < 0)
                return complain("remove", &err);
        l.io_bytes_per_s = 1000000;
        l.n_io_devices = 1;
        if (groups_make(h, "mine", &c, &err) < 0)
                return complain("make again", &err);
        /* On v1 blkio was not given away: the limit must be refused, not forgotten. */
        if (cgroup_host_mode(h) != CGROUP_V2 && (cgroup_limit(&c, &l, &err) == 0 || !strstr(err.msg, "cgroup.io")))
                return complain("io", &err);
        if (cgroup_remove(&c, &err) < 0)
                return complain("remove again", &err);
        cgroup_host_free(h);
        return 0;
}

/* Without the group of pids there must be no host at all. */
static int user_is_told(void) {
        struct cgroup_host *h = NULL;
        struct err err = { 0 };

        if (cgroup_host_find(&h, &err) != -EACCES)
                return complain("found a host without pids", &err);
        return strstr(err.msg, "pids") && strstr(err.msg, "chown") ? 0 : complain("no remedy", &err);
}

/* v2: a group that other processes are in cannot pass controllers on, whatever this process does. */
static int user_is_not_alone(void) {
        struct cgroup_host *h = NULL;
        struct err err = { 0 };
        pid_t other = fork();

        if (other == 0) {
                groups_sleep_ms(10000);
                _exit(0);
        }
        if (cgroup_host_find(&h, &err) != -EBUSY || !strstr(err.msg, "systemd-run"))
                return complain("found a host in a crowded group", &err);
        (void) kill(other, SIGKILL);
        groups_wait(other);
        return 0;
}

static int inside(void *arg) {
        struct subtree *t = arg;

        for (size_t i = 0; i < t->layout.n; i++)
                if (t->dirs[i] >= 0 && !t->layout.mounts[i].v2 && fd_write_at(t->dirs[i], "tasks", "0") < 0)
                        return 2;
        if (become_nobody() < 0)
                return 3;
        return t->as_user();
}

/* Starts inside() in the subtree and returns its exit status. */
static int run_inside(struct subtree *t) {
        struct sys_clone_args args = { .exit_signal = SIGCHLD };

        for (size_t i = 0; i < t->layout.n; i++)
                if (t->layout.mounts[i].v2) {
                        args.flags = SYS_CLONE_INTO_CGROUP;
                        args.cgroup = (uint64_t) t->dirs[i];
                }
        return groups_wait((pid_t) sys_clone_run(&args, inside, t));
}

static void user_lives_on_a_delegated_subtree(void **state) {
        struct subtree t = { .as_user = user_life };

        (void) state;
        subtree_make(&t);
        assert_int_equal(run_inside(&t), 0);
        subtree_remove(&t);
}

static void missing_delegation_of_one_controller_is_an_error(void **state) {
        struct groups *g = *state;
        struct subtree t = { .as_user = user_is_told, .without_pids = true };

        if (cgroup_host_mode(g->host) == CGROUP_V2) {
                print_message("cgroup v2 is one tree, given as a whole\n");
                skip();
        }
        subtree_make(&t);
        assert_int_equal(run_inside(&t), 0);
        subtree_remove(&t);
}

static void crowded_group_is_an_error_on_v2(void **state) {
        struct groups *g = *state;
        struct subtree t = { .as_user = user_is_not_alone };

        if (cgroup_host_mode(g->host) != CGROUP_V2) {
                print_message("needs cgroup v2: the guest stage runs it there\n");
                skip();
        }
        subtree_make(&t);
        assert_int_equal(run_inside(&t), 0);
        subtree_remove(&t);
}

static int undelegated(void *arg) {
        const struct groups *g = arg;
        struct cgroup_host *h = NULL;
        struct err err = { 0 };
        const char *remedy = cgroup_host_mode(g->host) == CGROUP_V1 ? "run as root" : "systemd-run --user --scope";

        if (become_nobody() < 0)
                return 3;
        if (cgroup_host_find(&h, &err) != -EACCES)
                return complain("found a host", &err);
        return strstr(err.msg, remedy) ? 0 : complain("no remedy", &err);
}

static void user_without_delegation_is_told_the_remedy(void **state) {
        struct sys_clone_args args = { .exit_signal = SIGCHLD };

        assert_int_equal(groups_wait((pid_t) sys_clone_run(&args, undelegated, *state)), 0);
}

static void host_is_found_again_and_again(void **state) {
        (void) state;
        for (int i = 0; i < 20; i++) {
                struct cgroup_host *h = NULL;
                struct err err = { 0 };
                int fds[CGROUP_V1_MAX];

                assert_int_equal(cgroup_host_find(&h, &err), 0);
                assert_true(groups_parents(h, fds, CGROUP_V1_MAX) >= 1);
                assert_int_equal(groups_parents(h, fds, 1), 1);
                assert_null(cgroup_host_free(h));
        }
        assert_null(cgroup_host_free(NULL));
}

#define REAL(test) cmocka_unit_test_setup_teardown(test, groups_setup, groups_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                REAL(host_is_found_again_and_again),
                REAL(user_lives_on_a_delegated_subtree),
                REAL(missing_delegation_of_one_controller_is_an_error),
                REAL(crowded_group_is_an_error_on_v2),
                REAL(user_without_delegation_is_told_the_remedy),
        };
        return groups_main("host", tests, ARRAY_SIZE(tests));
}
