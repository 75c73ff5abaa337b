/*
 * host.c - finds out where this process may make control groups, and prepares the shared group "gabion" there.
 *
 * Theory of operation. For each hierarchy there are two candidates: the group seen at its mount point (for root: the
 * root of the hierarchy), and, where that may not be written, the group this process is in (a delegated subtree). In
 * the first that works the directory "gabion" is made; the groups of sandboxes are made below it. Several processes may
 * do this at once: every step is one that may already have been done by another, and none is ever undone.
 *
 * A v2 group either holds processes or passes controllers on to children, not both. A delegated scope holds this very
 * process, so it is moved to a leaf beside "gabion" first. That is the only write to cgroup.procs in this component; it
 * happens when the kernel refuses otherwise, once in the life of a scope, and never for a sandbox.
 *
 * Invariant: a host that is returned can limit memory, cpu and pids. If one of them is out of reach there is no host,
 * and the error says which one and what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "tree.h"

enum {
        MAGIC_V1 = 0x27e0eb,
        MAGIC_V2 = 0x63677270,
        MOUNTINFO_USUAL = 32 * 1024,
        MOUNTINFO_MAX = 4 * 1024 * 1024,
        MEMBER_MAX = 16 * 1024,
};

#define OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PARENT "gabion"

static const unsigned required = BIT(CGROUP_MEMORY) | BIT(CGROUP_CPU) | BIT(CGROUP_PIDS);

static bool is_refusal(int r) {
        return r == -EACCES || r == -EPERM || r == -EROFS;
}

/* The name of one controller of a set, for messages. */
static const char *ctls_name(unsigned ctls, bool v2) {
        for (unsigned i = 0; i < CGROUP_CTLS; i++)
                if ((ctls & BIT(i)) && cgroup_ctl_name(i, v2))
                        return cgroup_ctl_name(i, v2);
        return "v2 (kill and freeze)";
}

/* mountinfo grows with the mounts of the machine; the room for many is on the heap. */
static int read_layout(struct cgroup_layout *ret, struct err *err) {
        static const char file[] = "/proc/self/mountinfo";
        static char usual[MOUNTINFO_USUAL];
        AUTO_FREE char *large = NULL;
        int r = fd_read_at(AT_FDCWD, file, usual, sizeof(usual));

        if (r == -EFBIG) {
                large = malloc(MOUNTINFO_MAX);
                r = large ? fd_read_at(AT_FDCWD, file, large, MOUNTINFO_MAX) : -ENOMEM;
        }
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "read %s: %s", file, strerrorname_np(-r));
        cgroup_parse_mountinfo(large ? large : usual, ret);
        return 0;
}

/* Where the own group is below a mount. Asked for only when the mount's root will not do: most runs never need it. */
static int find_home(const struct cgroup_mount *m, enum cgroup_ctl ctl, char dst[CGROUP_PATH]) {
        AUTO_FREE char *text = malloc(MEMBER_MAX);
        char own[CGROUP_PATH];
        int r;

        if (!text)
                return -ENOMEM;
        r = fd_read_at(AT_FDCWD, "/proc/self/cgroup", text, MEMBER_MAX);
        if (r >= 0)
                r = cgroup_parse_member(text, m->v2, ctl, own, sizeof(own));
        return r < 0 ? r : cgroup_parse_home(m->root, own, dst, CGROUP_PATH);
}

/* A directory in which "gabion" may be made: one candidate. */
struct base {
        const struct cgroup_mount *mount;
        const char *below; /* relative to the mount; "" is the mount itself */
};

/* The path of the group "gabion" there, into the host's room for paths; NULL if that is full. */
static const char *path_add(struct cgroup_host *h, const char *top, const struct base *b) {
        size_t room = sizeof(h->paths) - h->used;
        char *at = h->paths + h->used;
        int n = snprintf(at, room, "%s/%s%s" PARENT, top, b->below, b->below[0] ? "/" : "");

        if (n < 0 || (size_t) n >= room)
                return NULL;
        h->used += (size_t) n + 1;
        return at;
}

static int base_open(const struct base *b) {
        AUTO_FD int fd = open(b->mount->point, OPEN_DIR);
        int r;

        if (fd < 0)
                return -errno;
        if (!b->below[0])
                return TAKE_FD(fd);
        r = openat(fd, b->below, OPEN_DIR);
        return r < 0 ? -errno : r;
}

/* Opens the group "gabion", making it if it is not there. Nearly always it is, and then this is a single open(). */
static int open_parent(const struct base *b, const char *dir) {
        AUTO_FD int fd = open(dir, OPEN_DIR);
        struct statfs fs;

        if (fd < 0 && errno == ENOENT) {
                AUTO_FD int base_fd = base_open(b);

                if (base_fd < 0)
                        return base_fd;
                if (mkdirat(base_fd, PARENT, 0755) < 0 && errno != EEXIST)
                        return -errno;
                fd = openat(base_fd, PARENT, OPEN_DIR);
        }
        if (fd < 0)
                return -errno;
        /* What mountinfo said may be covered by another file system, where a file named memory.max limits nothing. */
        if (fstatfs(fd, &fs) < 0)
                return -errno;
        if ((unsigned long) fs.f_type != (b->mount->v2 ? MAGIC_V2 : MAGIC_V1))
                return -ENOTTY;
        if (faccessat(fd, "", W_OK | X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static unsigned read_controllers(int dir_fd, const char *file) {
        char text[256];

        return fd_read_at(dir_fd, file, text, sizeof(text)) < 0 ? 0 : cgroup_parse_controllers(text);
}

/* Moves this process out of its own group into a leaf of it, so that the group may pass controllers on. */
static int step_aside(int base_fd) {
        if (mkdirat(base_fd, CGROUP_SUPERVISOR, 0755) < 0 && errno != EEXIST)
                return -errno;
        return fd_write_at(base_fd, CGROUP_SUPERVISOR "/cgroup.procs", "0");
}

/* Passes one controller on, in the base and in "gabion". */
static int enable_one(int base_fd, int parent_fd, enum cgroup_ctl ctl, bool base_is_home) {
        char text[16];
        int r;

        (void) snprintf(text, sizeof(text), "+%s", cgroup_ctl_name(ctl, true));
        r = fd_write_at(base_fd, "cgroup.subtree_control", text);
        if (r == -EBUSY && base_is_home) {
                r = step_aside(base_fd);
                if (r == 0)
                        r = fd_write_at(base_fd, "cgroup.subtree_control", text);
        }
        return r < 0 ? r : fd_write_at(parent_fd, "cgroup.subtree_control", text);
}

static int enable_error(int r, enum cgroup_ctl ctl, const struct base *b, struct err *err) {
        const char *point = b->mount->point, *below = b->below;
        const char *name = cgroup_ctl_name(ctl, true);

        if (r == -ENOENT)
                return err_set(err, r, ERR_DENIED,
                               "the %s controller is not available in %.60s/%.60s: as root on a bare machine boot with "
                               "cgroup_enable=%s; for an ordinary user add it to Delegate= of user@.service",
                               name, point, below, name);
        if (r == -EBUSY)
                return err_set(
                        err, r, ERR_DENIED,
                        "the %s controller cannot be passed on: other processes are in %.60s/%.60s itself; start "
                        "gabion alone in a group: systemd-run [--user] --scope -p Delegate=yes gabion run ...",
                        name, point, below);
        return err_set(err, r, ERR_DENIED,
                       "the %s controller cannot be enabled in %.60s/%.60s: %s; run as root, or: systemd-run --user "
                       "--scope -p Delegate=yes gabion run ...",
                       name, point, below, strerrorname_np(-r));
}

/* v2: sees to it that groups below "gabion" have the wanted controllers. Returns those that they have. */
static int enable(const struct base *b, int parent_fd, unsigned want, struct err *err) {
        unsigned have = read_controllers(parent_fd, "cgroup.subtree_control");
        AUTO_FD int base_fd = -1;
        char home[CGROUP_PATH];
        bool base_is_home;

        if ((have & want) == want)
                return (int) have;
        base_fd = base_open(b);
        if (base_fd < 0)
                return base_fd;
        base_is_home = find_home(b->mount, CGROUP_CTLS, home) == 0 && str_eq(home, b->below);
        for (unsigned i = 0; i < CGROUP_CTLS; i++) {
                int r;

                if (!(want & ~have & BIT(i)))
                        continue;
                r = enable_one(base_fd, parent_fd, i, base_is_home);
                if (r == 0)
                        have |= BIT(i);
                else if (required & BIT(i))
                        return enable_error(r, i, b, err);
        }
        return (int) have;
}

/* Opens one candidate. *err is filled only where there is more to say than the return value does. */
static int hier_open(struct cgroup_host *h, struct cgroup_hier *hier, const struct base *b, struct err *err) {
        const char *dir = path_add(h, b->mount->point, b);
        const char *path = path_add(h, str_eq(b->mount->root, "/") ? "" : b->mount->root, b);
        AUTO_FD int parent_fd = dir && path ? open_parent(b, dir) : -ENAMETOOLONG;
        int r;

        if (parent_fd < 0)
                return parent_fd;
        if (hier->v2 && hier->ctls) {
                r = enable(b, parent_fd, hier->ctls, err);
                if (r < 0)
                        return r;
                hier->ctls &= (unsigned) r;
        }
        hier->path = path;
        hier->dir = dir;
        hier->parent_fd = TAKE_FD(parent_fd);
        return 0;
}

/* The same; one that was in vain leaves its paths' room to the next. */
static int hier_try(struct cgroup_host *h, struct cgroup_hier *hier, const struct base *b, struct err *err) {
        size_t used = h->used;
        int r = hier_open(h, hier, b, err);

        if (r < 0)
                h->used = used;
        return r;
}

static int hier_error(int r, const struct cgroup_mount *m, unsigned ctls, struct err *err) {
        const char *name = ctls_name(ctls, m->v2);

        if (!is_refusal(r))
                return err_set(err, r, ERR_INTERNAL, "%s: no control group can be made in %.80s: %s", name, m->point,
                               strerrorname_np(-r));
        if (r == -EROFS)
                return err_set(err, r, ERR_DENIED, "%s: %.80s is mounted read-only; as root: mount -o remount,rw %.80s",
                               name, m->point, m->point);
        if (m->v2)
                return err_set(err, r, ERR_DENIED,
                               "%s: %.80s may not be written, nor the group of this process; run as root, or: "
                               "systemd-run --user --scope -p Delegate=yes gabion run ...",
                               name, m->point);
        return err_set(err, r, ERR_DENIED,
                       "%s: %.80s (cgroup v1) may not be written, nor the group of this process; run as root, or have "
                       "root give you a group there (mkdir, chown) and start gabion in it",
                       name, m->point);
}

/* Fills hier from a mount; hier->ctls says what is wanted of it. */
static int hier_find(struct cgroup_host *h, struct cgroup_hier *hier, const struct cgroup_mount *m, struct err *err) {
        unsigned ctls = hier->ctls;
        char home[CGROUP_PATH];
        int r;

        err->code = 0;
        r = hier_try(h, hier, &(struct base){ m, "" }, err);
        if (is_refusal(r)) {
                int first = m->v2 ? CGROUP_CTLS : __builtin_ctz(ctls);

                if (find_home(m, (enum cgroup_ctl) first, home) == 0 && home[0]) {
                        err->code = 0;
                        r = hier_try(h, hier, &(struct base){ m, home }, err);
                }
        }
        if (r < 0 && err->code == 0)
                return hier_error(r, m, ctls, err);
        return r;
}

static const struct cgroup_mount *layout_v2(const struct cgroup_layout *l) {
        for (size_t i = 0; i < l->n; i++)
                if (l->mounts[i].v2)
                        return &l->mounts[i];
        return NULL;
}

static int host_add(struct cgroup_host *h, const struct cgroup_mount *m, unsigned ctls, struct err *err) {
        struct cgroup_hier *hier = &h->hiers[h->n];
        int r;

        *hier = (struct cgroup_hier){ .v2 = m->v2, .ctls = ctls, .parent_fd = -1, .path = "", .dir = "" };
        r = hier_find(h, hier, m, err);
        /* io and the v1 freezer are used only when asked for: that they are out of reach is told then. */
        if (r < 0 && (m->v2 || (ctls & required)))
                return r;
        h->n++;
        return 0;
}

static int host_fill(struct cgroup_host *h, const struct cgroup_layout *l, struct err *err) {
        const struct cgroup_mount *v2 = layout_v2(l);
        unsigned wanted = required | BIT(CGROUP_IO), on_v1 = 0, have = 0;
        int r;

        for (size_t i = 0; i < l->n; i++)
                on_v1 |= l->mounts[i].ctls & wanted;
        if (!v2)
                wanted |= BIT(CGROUP_FREEZER);
        if (v2) {
                r = host_add(h, v2, (required | BIT(CGROUP_IO)) & ~on_v1, err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < l->n; i++) {
                unsigned ctls = l->mounts[i].ctls & wanted;

                if (l->mounts[i].v2 || !ctls)
                        continue;
                /* Processor time is counted for free where the counter lives in the same hierarchy. */
                r = host_add(h, &l->mounts[i], ctls | (l->mounts[i].ctls & BIT(CGROUP_CPUACCT)), err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < h->n; i++)
                have |= h->hiers[i].ctls;
        if (required & ~have)
                return err_set(err, -ENOENT, ERR_DENIED,
                               "no mounted control group hierarchy has the %s controller; as root: mount -t cgroup2 "
                               "cgroup2 /sys/fs/cgroup",
                               ctls_name(required & ~have, true));
        h->mode = !v2 ? CGROUP_V1 : on_v1 & required ? CGROUP_HYBRID : CGROUP_V2;
        return 0;
}

/* As a rule a process has one: then the heap is not needed, whose first use is dear. */
static struct cgroup_host the_host;
static bool is_used;

static struct cgroup_host *host_new(void) {
        struct cgroup_host *h = is_used ? malloc(sizeof(*h)) : &the_host;

        if (!h)
                return NULL;
        is_used |= h == &the_host;
        h->n = h->used = 0;
        return h;
}

static void host_freep(struct cgroup_host **h) {
        *h = cgroup_host_free(*h);
}

int cgroup_host_find(struct cgroup_host **ret, struct err *err) {
        static struct cgroup_layout layout; /* large */
        CLEANUP(host_freep) struct cgroup_host *h = host_new();
        int r;

        if (!h)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "control groups: out of memory");
        r = read_layout(&layout, err);
        if (r >= 0)
                r = host_fill(h, &layout, err);
        if (r < 0)
                return r;
        err->code = 0; /* a refusal of something optional on the way is no error */
        *ret = TAKE_PTR(h);
        return 0;
}

struct cgroup_host *cgroup_host_free(struct cgroup_host *h) {
        for (size_t i = 0; h && i < h->n; i++)
                own_closep(&h->hiers[i].parent_fd);
        if (h == &the_host)
                is_used = false;
        else
                free(h);
        return NULL;
}

size_t cgroup_host_fds(struct cgroup_host *h, int *fds[]) {
        size_t n = 0;

        for (size_t i = 0; i < h->n; i++)
                if (h->hiers[i].parent_fd >= 0)
                        fds[n++] = &h->hiers[i].parent_fd;
        return n;
}

bool cgroup_is_by_birth(void) {
        struct statfs fs;

        return statfs("/sys/fs/cgroup", &fs) == 0 && (unsigned long) fs.f_type == MAGIC_V2;
}

enum cgroup_mode cgroup_host_mode(const struct cgroup_host *h) {
        return h->mode;
}

const struct cgroup_hier *cgroup_host_of(const struct cgroup_host *h, enum cgroup_ctl ctl) {
        for (size_t i = 0; i < h->n; i++)
                if (h->hiers[i].ctls & BIT(ctl))
                        return &h->hiers[i];
        return NULL;
}

int cgroup_host_has_swap(void) {
        char text[4096];
        int r = fd_read_at(AT_FDCWD, "/proc/swaps", text, sizeof(text));
        const char *first = r < 0 ? NULL : strchr(text, '\n');

        if (r == -ENOENT)
                return 0; /* a kernel without swap */
        if (r == -EFBIG)
                return 1;
        return r < 0 ? r : first && first[1] != '\0';
}

const char *cgroup_parent(const struct cgroup_host *h, size_t i) {
        return i < h->n ? h->hiers[i].dir : NULL;
}
