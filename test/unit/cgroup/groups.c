/* groups.c - see groups.h. */
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "cgroup/parse.h"

enum { SKIPPED = 77 };

struct start {
        const struct cgroup *c;
        int (*fn)(void *);
        void *arg;
        int joined[2]; /* pipe */
};

static bool uncounted; /* hybrid: the v2 group is left for later */

int groups_make(const struct cgroup_host *h, const char *name, struct cgroup *ret, struct err *err) {
        int r = cgroup_make_first(h, name, !uncounted, ret, err);

        return r < 0 ? r : cgroup_make_rest(ret, err);
}

int groups_setup(void **state) {
        static unsigned serial;
        struct groups *g = calloc(1, sizeof(*g));
        struct err err = { 0 };
        char name[CGROUP_NAME];

        (void) snprintf(name, sizeof(name), "unit-%d-%u", (int) getpid(), serial++);
        g->limits = (struct cgroup_limits){ .memory_bytes = (48u << 20) + 123, .cpu_milli = 2000, .pids = 16 };
        if (cgroup_host_find(&g->host, &err) < 0 || groups_make(g->host, name, &g->c, &err) < 0 ||
            cgroup_limit(&g->c, &g->limits, &err) < 0) {
                print_error("%s\n", err.msg);
                return -1;
        }
        *state = g;
        return 0;
}

int groups_teardown(void **state) {
        struct groups *g = *state;
        struct err err = { 0 };
        int r = 0;

        if (cgroup_kill(&g->c, &err) < 0 || cgroup_remove(&g->c, &err) < 0) {
                print_error("%s\n", err.msg);
                r = -1;
        }
        cgroup_host_free(g->host);
        free(g);
        return r;
}

static int start_child(void *arg) {
        struct start *s = arg;

        for (size_t i = 0; i < s->c->n_tasks; i++)
                if (write(s->c->tasks_fds[i], "0", 1) != 1)
                        return 100;
        if (write(s->joined[1], "", 1) != 1)
                return 101;
        (void) close(s->joined[0]);
        (void) close(s->joined[1]);
        return s->fn(s->arg);
}

pid_t groups_start(const struct cgroup *c, int (*fn)(void *), void *arg) {
        struct start s = { .c = c, .fn = fn, .arg = arg };
        struct sys_clone_args args = { .exit_signal = SIGCHLD };
        pid_t pid;
        char byte;

        if (c->v2_fd >= 0) {
                args.flags = SYS_CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t) c->v2_fd;
        }
        if (pipe2(s.joined, O_CLOEXEC) < 0)
                return -1;
        pid = (pid_t) sys_clone_run(&args, start_child, &s);
        (void) close(s.joined[1]);
        if (pid > 0 && read(s.joined[0], &byte, 1) != 1)
                print_error("the child did not get into its groups\n");
        (void) close(s.joined[0]);
        return pid;
}

int groups_wait(pid_t pid) {
        int status = -1;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

size_t groups_parents(const struct cgroup_host *h, int *dst, size_t cap) {
        size_t n = 0;

        for (size_t i = 0; cgroup_parent(h, i) && n < cap; i++)
                if (cgroup_parent(h, i)[0])
                        dst[n++] = open(cgroup_parent(h, i), O_PATH | O_DIRECTORY | O_CLOEXEC);
        return n;
}

bool groups_poke(const struct groups *g, const char *file, const char *text) {
        int fds[CGROUP_V1_MAX];
        size_t n = groups_parents(g->host, fds, CGROUP_V1_MAX);
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", g->c.name, file);
        for (size_t i = 0; i < n; i++)
                if (fd_write_at(fds[i], path, text) == 0)
                        return true;
        return false;
}

bool groups_peek(const struct groups *g, const char *file, char *dst, size_t cap) {
        int fds[CGROUP_V1_MAX];
        size_t n = groups_parents(g->host, fds, CGROUP_V1_MAX);
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", g->c.name, file);
        for (size_t i = 0; i < n; i++)
                if (fd_read_at(fds[i], path, dst, cap) >= 0)
                        return true;
        return false;
}

void *groups_shared(size_t n) {
        return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void groups_sleep_ms(long ms) {
        struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 };

        (void) nanosleep(&ts, NULL);
}

static enum cgroup_mode mode_now(void) {
        struct cgroup_host *h = NULL;
        struct err err = { 0 };
        enum cgroup_mode mode;

        if (cgroup_host_find(&h, &err) < 0) {
                print_error("%s\n", err.msg);
                exit(1);
        }
        mode = cgroup_host_mode(h);
        cgroup_host_free(h);
        return mode;
}

/* Takes the v2 mount out of this process's view. */
static int hide_v2(void) {
        AUTO_FREE char *text = malloc(1 << 20);
        AUTO_FREE struct cgroup_layout *l = malloc(sizeof(*l));

        if (!text || !l || fd_read_at(AT_FDCWD, "/proc/self/mountinfo", text, 1 << 20) < 0)
                return -1;
        cgroup_parse_mountinfo(text, l);
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -1;
        for (size_t i = 0; i < l->n; i++)
                if (l->mounts[i].v2 && umount2(l->mounts[i].point, MNT_DETACH) < 0)
                        return -1;
        return 0;
}

int groups_main(const char *name, const struct CMUnitTest *tests, size_t n) {
        static const char *const names[] = { [CGROUP_V2] = "v2", [CGROUP_HYBRID] = "hybrid", [CGROUP_V1] = "v1" };
        enum cgroup_mode mode;
        char title[64];
        int failed;

        if (geteuid() != 0) {
                print_message("skipped: needs root\n");
                return SKIPPED;
        }
        mode = mode_now();
        (void) snprintf(title, sizeof(title), "%s on %s", name, names[mode]);
        failed = _cmocka_run_group_tests(title, tests, n, NULL, NULL);
        if (mode != CGROUP_HYBRID)
                return failed;
        uncounted = true;
        (void) snprintf(title, sizeof(title), "%s on hybrid, v2 later", name);
        failed += _cmocka_run_group_tests(title, tests, n, NULL, NULL);
        uncounted = false;
        if (hide_v2() < 0 || mode_now() != CGROUP_V1) {
                print_error("cannot hide the v2 hierarchy\n");
                return failed + 1;
        }
        (void) snprintf(title, sizeof(title), "%s on v1", name);
        return failed + _cmocka_run_group_tests(title, tests, n, NULL, NULL);
}
