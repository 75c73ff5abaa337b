/*
 * fan.c - see fan.h.
 *
 * The mounts of the sandbox are marked, not file systems: what the host does with the same files through its own mounts
 * is not seen. They are opened below the agent's root while the command still waits at the gate, or by a warden that
 * finds a running sandbox again: a path leads over no link, and nobody inside can mount anything. Events carry an open
 * descriptor; only its name is looked at.
 */
#include "monitor/fan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "evidence/evidence.h"

enum { EVENTS = 8192, AGAIN_S = 1 };

static const uint64_t exec_mask = FAN_OPEN_EXEC, file_mask = FAN_CLOSE_WRITE | FAN_CLOSE_NOWRITE;

/* Where the sandbox has mounts. */
struct places {
        char text[sizeof(((struct evidence *) 0)->mount_text)];
        struct evidence_mount mounts[EVIDENCE_MOUNTS];
        size_t n;
};

static int places_read(const struct fan *f, pid_t pid, struct places *ret) {
        char path[32];
        int n;

        (void) snprintf(path, sizeof(path), "%d/mountinfo", (int) pid);
        n = fd_read_at(f->proc_fd, path, ret->text, sizeof(ret->text));
        if (n >= 0)
                n = evidence_parse_mounts(ret->text, ret->mounts, EVIDENCE_MOUNTS);
        if (n < 0)
                return n;
        ret->n = (size_t) n;
        return 0;
}

static int root_open(const struct fan *f, pid_t pid) {
        char path[32];
        int fd;

        (void) snprintf(path, sizeof(path), "%d/root", (int) pid);
        fd = openat(f->proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int mark(const struct fan *f, int root_fd, const char *target, uint64_t mask) {
        const char *below = target[1] ? target + 1 : ".";
        AUTO_FD int at = sys_openat2(root_fd, below, O_PATH | O_CLOEXEC, 0,
                                     SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_NO_SYMLINKS);
        char path[48];

        if (at < 0)
                return at;
        /* An O_PATH descriptor cannot be marked itself. */
        (void) snprintf(path, sizeof(path), "self/fd/%d", at);
        if (fanotify_mark(f->fd, FAN_MARK_ADD | FAN_MARK_MOUNT, mask, f->proc_fd, path) < 0)
                return -errno;
        return 0;
}

static bool is_below(const char *path, const char *dir) {
        size_t n = strlen(dir);

        return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0' || n == 1);
}

/* Which mount holds a path: the one with the longest name that it is below. */
static const struct evidence_mount *mount_of(const struct places *p, const char *path) {
        const struct evidence_mount *best = NULL;

        for (size_t i = 0; i < p->n; i++)
                if (is_below(path, p->mounts[i].target) &&
                    (!best || strlen(p->mounts[i].target) >= strlen(best->target)))
                        best = &p->mounts[i];
        return best;
}

static bool is_kernels(const char *target) {
        return is_below(target, "/proc") || is_below(target, "/dev");
}

static int marks_make(const struct fan *f, const struct places *at, int root_fd, struct err *err) {
        const struct policy *p = f->policy;
        int r = 0;

        for (size_t i = 0; r == 0 && p->monitor.programs.on && i < at->n; i++)
                if (!is_kernels(at->mounts[i].target))
                        r = mark(f, root_fd, at->mounts[i].target, exec_mask);
        for (size_t i = 0; r == 0 && i < p->n_watch; i++) {
                const struct evidence_mount *m = mount_of(at, p->watch[i]);

                if (!m || is_kernels(m->target))
                        return err_set(err, -EINVAL, ERR_INVALID, "filesystem.watch: %.100s cannot be watched",
                                       p->watch[i]);
                r = mark(f, root_fd, m->target, file_mask);
        }
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "monitor: the sandbox's mounts cannot be watched: %s",
                               strerror(-r))
                     : 0;
}

/* The expected programs as files: a name can be given to anything later. */
static void expected_find(struct fan *f, int root_fd) {
        static const char *const dirs[] = { "usr/local/bin", "usr/local/sbin", "usr/bin", "usr/sbin" };
        const struct policy_names *names = &f->policy->monitor.programs.expect;

        for (size_t i = 0; i < names->n; i++)
                for (size_t k = 0; k < ARRAY_SIZE(dirs); k++) {
                        char path[POLICY_EXPECTED_NAME + 24];
                        struct stat st;
                        AUTO_FD int fd = -1;

                        (void) snprintf(path, sizeof(path), "%s/%s", dirs[k], names->names[i]);
                        fd = sys_openat2(root_fd, path, O_PATH | O_CLOEXEC, 0,
                                         SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_MAGICLINKS);
                        if (fd < 0 || fstat(fd, &st) < 0)
                                continue;
                        f->expected[i].dev = st.st_dev;
                        f->expected[i].ino = st.st_ino;
                        break;
                }
}

int fan_start(struct fan *f, const struct policy *policy, pid_t pid, int proc_fd, struct err *err) {
        static struct places at; /* large */
        AUTO_FD int root_fd = -1;
        int r;

        *f = (struct fan){ .fd = -1, .policy = policy, .proc_fd = proc_fd };
        if (!policy->monitor.programs.on && policy->n_watch == 0)
                return 0;
        f->fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_LARGEFILE | O_CLOEXEC);
        if (f->fd < 0 && errno == EMFILE)
                return err_set(err, -EBUSY, ERR_LIMIT,
                               "filesystem.watch and monitor.programs: no more sandboxes can be watched; raise "
                               "fs.fanotify.max_user_groups");
        if (f->fd < 0)
                return err_set(err, -errno, ERR_DENIED,
                               "filesystem.watch and monitor.programs: fanotify: %s; they need root", strerror(errno));
        root_fd = root_open(f, pid);
        r = root_fd < 0 ? root_fd : places_read(f, pid, &at);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "monitor: the sandbox's root: %s", strerror(-r));
        if (policy->monitor.programs.on)
                expected_find(f, root_fd);
        return marks_make(f, &at, root_fd, err);
}

void fan_done(struct fan *f) {
        if (f->fd >= 0)
                (void) close(TAKE_FD(f->fd));
}

static bool is_expected(const struct fan *f, int fd, const char *name) {
        const struct policy_names *names = &f->policy->monitor.programs.expect;
        struct stat st;

        /* The loader is opened for execution with every dynamic program; it is none of its own. */
        if (str_has_prefix(name, "ld-") && strstr(name, ".so"))
                return true;
        if (fstat(fd, &st) < 0)
                return false;
        for (size_t i = 0; i < names->n; i++)
                if (f->expected[i].ino ? st.st_dev == f->expected[i].dev && st.st_ino == f->expected[i].ino
                                       : str_eq(name, names->names[i]))
                        return true;
        return false;
}

static bool is_watched(const struct fan *f, const char *path) {
        for (size_t i = 0; i < f->policy->n_watch; i++)
                if (is_below(path, f->policy->watch[i]))
                        return true;
        return false;
}

/* True the first time within a second. */
static bool is_news(struct fan *f, enum fan_kind kind, const char *path) {
        uint64_t hash = 1469598103934665603u + kind, now = clock_mono_ns();
        size_t oldest = 0;

        for (const char *c = path; *c; c++)
                hash = (hash ^ (unsigned char) *c) * 1099511628211u;
        for (size_t i = 0; i < FAN_RECENT; i++) {
                if (f->recent[i].hash == hash && f->recent[i].until_ns > now)
                        return false;
                if (f->recent[i].until_ns < f->recent[oldest].until_ns)
                        oldest = i;
        }
        f->recent[oldest].hash = hash;
        f->recent[oldest].until_ns = now + AGAIN_S * 1000000000ull;
        return true;
}

static void judge(struct fan *f, const struct fanotify_event_metadata *e, fan_fn fn, void *arg) {
        char where[32], found[FAN_PATH];
        const char *slash;
        ssize_t n;

        if (e->mask & FAN_Q_OVERFLOW) {
                fn(arg, FAN_LOST, "");
                return;
        }
        (void) snprintf(where, sizeof(where), "self/fd/%d", e->fd);
        n = readlinkat(f->proc_fd, where, found, sizeof(found) - 1);
        if (n <= 0)
                return;
        found[n] = '\0';
        slash = strrchr(found, '/');
        if ((e->mask & FAN_OPEN_EXEC) && f->policy->monitor.programs.on &&
            !is_expected(f, e->fd, slash ? slash + 1 : found) && is_news(f, FAN_EXECUTED, found))
                fn(arg, FAN_EXECUTED, found);
        if ((e->mask & file_mask) && is_watched(f, found)) {
                enum fan_kind kind = e->mask & FAN_CLOSE_WRITE ? FAN_WRITTEN : FAN_READ;

                if (is_news(f, kind, found))
                        fn(arg, kind, found);
        }
}

unsigned fan_read(struct fan *f, fan_fn fn, void *arg) {
        char text[EVENTS] __attribute__((aligned(8)));
        ssize_t n = read(f->fd, text, sizeof(text));
        const struct fanotify_event_metadata *e = (const void *) text;
        unsigned seen = 0;

        for (; n > 0 && FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n), seen++) {
                if (e->vers == FANOTIFY_METADATA_VERSION)
                        judge(f, e, fn, arg);
                if (e->fd >= 0)
                        (void) close(e->fd);
        }
        return seen;
}
