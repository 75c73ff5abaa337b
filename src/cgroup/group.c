/*
 * group.c - the groups of one sandbox: make, open, join, compare, remove.
 *
 * Invariant: c->made has one bit for each hierarchy (index into host->hiers) in which the directory exists because of
 * this object; what is in there is removed again on every failing path.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "tree.h"

enum {
        REMOVE_NS = 1000 * 1000 * 1000,
        REMOVE_STEP_NS = 200 * 1000,
        FILE_PATH = CGROUP_NAME + 64,
        MEMBER_MAX = 16 * 1024,
};

/* A name is one path component that needs no thought anywhere: in mkdir, in messages, in a shell. */
static bool is_name(const char *name) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
        size_t n = strlen(name);

        return n > 0 && n < CGROUP_NAME && name[0] != '.' && strspn(name, allowed) == n;
}

static int group_start(const struct cgroup_host *h, const char *name, struct cgroup *c, struct err *err) {
        if (!is_name(name))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.60s' cannot be the name of a control group", name);
        *c = (struct cgroup){ .mode = h->mode, .v2_fd = -1, .host = h };
        return str_copy(c->name, sizeof(c->name), name);
}

static void close_plus_one(int *fds, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int fd = fds[i] - 1;

                own_closep(&fd);
                fds[i] = 0;
        }
}

void cgroup_close_start(struct cgroup *c) {
        for (size_t i = 0; i < c->n_tasks; i++)
                own_closep(&c->tasks_fds[i]);
        c->n_tasks = 0;
        close_plus_one(c->limit_fds, CGROUP_SETTINGS);
}

void cgroup_close(struct cgroup *c) {
        own_closep(&c->v2_fd);
        c->v2_fd = -1;
        cgroup_close_start(c);
        close_plus_one(c->usage_fds, CGROUP_COUNTERS);
}

int cgroup_file_open(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, int flags) {
        char path[FILE_PATH];
        int n = snprintf(path, sizeof(path), "%s/%s", c->name, file);
        int fd;

        if (n < 0 || (size_t) n >= sizeof(path))
                return -ENAMETOOLONG;
        fd = openat(hier->parent_fd, path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int cgroup_file_write(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, const char *text) {
        AUTO_FD int fd = cgroup_file_open(c, hier, file, O_WRONLY);

        return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

int cgroup_file_read(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, char *dst, size_t cap) {
        AUTO_FD int fd = cgroup_file_open(c, hier, file, O_RDONLY);

        return fd < 0 ? fd : fd_read_upto(fd, dst, cap);
}

/* Opens what a child needs to get into the group of one hierarchy. */
static int group_attach(struct cgroup *c, size_t hier) {
        const struct cgroup_hier *h = &c->host->hiers[hier];
        int fd;

        if (h->v2) {
                c->v2_fd = openat(h->parent_fd, c->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                return c->v2_fd < 0 ? -errno : 0;
        }
        if (c->n_tasks == CGROUP_V1_MAX)
                return -E2BIG;
        fd = cgroup_file_open(c, h, "tasks", O_WRONLY);
        if (fd < 0)
                return fd;
        c->tasks_fds[c->n_tasks++] = fd;
        return 0;
}

int cgroup_group_add(struct cgroup *c, size_t hier, struct err *err) {
        const struct cgroup_hier *h = &c->host->hiers[hier];
        int r;

        if (mkdirat(h->parent_fd, c->name, 0755) < 0) {
                r = -errno;
                return err_set(err, r, r == -EEXIST ? ERR_BUSY : ERR_INTERNAL, "make control group %s/%s: %s", h->path,
                               c->name, strerrorname_np(-r));
        }
        c->made |= BIT(hier);
        r = group_attach(c, hier);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "open control group %s/%s: %s", h->path, c->name,
                               strerrorname_np(-r));
        return 0;
}

/* io of v1 is a hierarchy of its own: a group there is made only when there is something to limit. A v2 hierarchy that
 * limits nothing counts processor time, and is there for kill and freeze: kill.c makes it when they need it. */
static bool is_on_demand(const struct cgroup *c, const struct cgroup_hier *h) {
        return h->parent_fd < 0 || (h->v2 ? h->ctls == 0 && !c->counted : h->ctls == BIT(CGROUP_IO));
}

/* Makes the group in the hierarchies that `first` chooses; on failure nothing of the group is left. */
static int make_some(struct cgroup *c, bool first, struct err *err) {
        const struct cgroup_host *h = c->host;

        for (size_t i = 0; i < h->n; i++) {
                bool is_first = h->mode == CGROUP_V1 || h->hiers[i].v2;
                int r = is_on_demand(c, &h->hiers[i]) || is_first != first ? 0 : cgroup_group_add(c, i, err);

                if (r < 0) {
                        struct err ignored; /* the first error is the one to tell */

                        (void) cgroup_remove(c, &ignored);
                        return r;
                }
        }
        return 0;
}

int cgroup_make_first(const struct cgroup_host *h, const char *name, bool counted, struct cgroup *ret,
                      struct err *err) {
        struct cgroup c;
        int r = group_start(h, name, &c, err);

        c.counted = counted;
        if (r == 0)
                r = make_some(&c, true, err);
        if (r == 0)
                *ret = c;
        return r;
}

int cgroup_make_rest(struct cgroup *c, struct err *err) {
        return make_some(c, false, err);
}

int cgroup_join_late(struct cgroup *c, struct err *err) {
        int fd = c->n_tasks == CGROUP_V1_MAX ? -E2BIG
                                             : cgroup_file_open(c, &c->host->hiers[0], "cgroup.procs", O_WRONLY);

        if (fd < 0)
                return err_set(err, fd, ERR_INTERNAL, "open cgroup.procs of %s: %s", c->name, strerrorname_np(-fd));
        c->tasks_fds[c->n_tasks++] = fd;
        return 0;
}

int cgroup_refer(const struct cgroup_host *h, const char *name, unsigned made, struct cgroup *ret, struct err *err) {
        int r = group_start(h, name, ret, err);

        for (size_t i = 0; r == 0 && i < h->n; i++)
                if (h->hiers[i].parent_fd >= 0 && (made == 0 || made & BIT(i)))
                        ret->made |= BIT(i);
        if (r == 0)
                ret->older = made != 0;
        return r;
}

int cgroup_open(const struct cgroup_host *h, const char *name, struct cgroup *ret, struct err *err) {
        struct cgroup c;
        int r = group_start(h, name, &c, err);

        if (r < 0)
                return r;
        for (size_t i = 0; i < h->n; i++) {
                if (h->hiers[i].parent_fd < 0)
                        continue;
                r = group_attach(&c, i);
                if (r == 0) {
                        c.made |= BIT(i);
                } else if (r != -ENOENT) {
                        cgroup_close(&c);
                        return err_set(err, r, ERR_INTERNAL, "open control group %s/%s: %s", h->hiers[i].path, name,
                                       strerrorname_np(-r));
                }
        }
        if (!c.made)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "no control group is named %s", name);
        *ret = c;
        return 0;
}

static int remove_one(const struct cgroup *c, const struct cgroup_hier *h, uint64_t deadline) {
        static const struct timespec step = { .tv_nsec = REMOVE_STEP_NS };

        /* A process that was just reaped may still be counted for a moment. */
        while (unlinkat(h->parent_fd, c->name, AT_REMOVEDIR) < 0) {
                if (errno == ENOENT)
                        return 0;
                if (errno != EBUSY || clock_mono_ns() > deadline)
                        return -errno;
                (void) nanosleep(&step, NULL);
        }
        return 0;
}

static int remove_until(struct cgroup *c, uint64_t deadline, struct err *err) {
        int result = 0;

        cgroup_close(c);
        for (size_t i = 0; i < c->host->n; i++) {
                const struct cgroup_hier *h = &c->host->hiers[i];
                int r;

                if (!(c->made & BIT(i)))
                        continue;
                r = remove_one(c, h, deadline);
                if (r == 0)
                        c->made &= ~BIT(i);
                else if (result == 0)
                        result = err_set(err, r, ERR_BUSY, "remove control group %s/%s: %s", h->path, c->name,
                                         strerrorname_np(-r));
        }
        return result;
}

int cgroup_remove(struct cgroup *c, struct err *err) {
        return remove_until(c, clock_mono_ns() + REMOVE_NS, err);
}

int cgroup_remove_now(struct cgroup *c, struct err *err) {
        return remove_until(c, 0, err);
}

int cgroup_verify_member(const struct cgroup *c, int proc_fd, int pid, struct err *err) {
        static char text[MEMBER_MAX]; /* on the stack it would be cleared, and its pages made, each time */
        char path[32], want[CGROUP_PATH + CGROUP_NAME], have[CGROUP_PATH + CGROUP_NAME];
        int r;

        (void) snprintf(path, sizeof(path), "%d/cgroup", pid);
        r = fd_read_at(proc_fd, path, text, sizeof(text));
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "cgroup.member: read /proc/%s: %s", path, strerrorname_np(-r));
        for (size_t i = 0; i < c->host->n; i++) {
                const struct cgroup_hier *h = &c->host->hiers[i];
                enum cgroup_ctl ctl = h->v2 ? CGROUP_CTLS : (enum cgroup_ctl) __builtin_ctz(h->ctls);

                if (!(c->made & BIT(i)))
                        continue;
                (void) snprintf(want, sizeof(want), "%s/%s", h->path, c->name);
                if (cgroup_parse_member(text, h->v2, ctl, have, sizeof(have)) < 0 || !str_eq(have, want))
                        return err_set(err, -EXDEV, ERR_INTERNAL, "cgroup.member: process %d is not in %s (%s)", pid,
                                       want, h->v2 ? "v2" : cgroup_ctl_name(ctl, false));
        }
        return 0;
}
