/*
 * tree.c - listing and removing whole directories.
 *
 * Both walk depth first with one open directory per level, at most FP_DEPTH: memory is fixed however large the tree is,
 * and links are never followed below the start.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "worker.h"

static struct {
        struct level {
                struct names names;
                size_t path; /* length of the path without this directory's name */
                bool again;  /* something was removed since it was read from its start */
        } levels[FP_DEPTH];
        size_t n;
        size_t len;
        char path[AP_PATH_MAX];
} walk;

const struct dirent *names_next(struct names *d, int *ret) {
        const struct dirent *e;

        *ret = 0;
        do {
                if (d->at >= d->len) {
                        long n = syscall(SYS_getdents64, d->fd, d->bytes, sizeof(d->bytes));

                        if (n <= 0) {
                                *ret = n < 0 ? -errno : 0;
                                return NULL;
                        }
                        d->at = 0;
                        d->len = (size_t) n;
                }
                e = (const struct dirent *) (d->bytes + d->at); /* musl's has the kernel's layout */
                d->at += e->d_reclen;
        } while (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."));
        return e;
}

static int path_push(const char *name) {
        size_t n = strlen(name), slash = walk.len > 0 && walk.path[walk.len - 1] != '/';

        if (walk.len + slash + n >= sizeof(walk.path))
                return -ENAMETOOLONG;
        if (slash)
                walk.path[walk.len++] = '/';
        memcpy(walk.path + walk.len, name, n + 1);
        walk.len += n;
        return 0;
}

static void path_cut(size_t len) {
        walk.len = len;
        walk.path[len] = '\0';
}

/* Goes down into what walk.path names. */
static int enter(int dir_fd, const char *name, int flags, size_t path) {
        struct level *v;
        int fd;

        if (walk.n == FP_DEPTH)
                return -ELOOP;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
        if (fd < 0)
                return -errno;
        v = &walk.levels[walk.n++];
        v->names.fd = fd;
        v->names.at = v->names.len = 0;
        v->path = path;
        v->again = false;
        return 0;
}

static void leave(void) {
        struct level *v = &walk.levels[--walk.n];

        (void) close(v->names.fd);
        path_cut(v->path);
}

static int start(const char *path, int flags) {
        walk.n = 0;
        path_cut(0);
        (void) path_push(path); /* shorter than AP_PATH_MAX, as every path of a request */
        return enter(AT_FDCWD, path, flags, walk.len);
}

static void leave_all(void) {
        while (walk.n > 0)
                leave();
}

static bool is_directory(int dir_fd, const struct dirent *e) {
        struct stat st;

        if (e->d_type != DT_UNKNOWN)
                return e->d_type == DT_DIR;
        return fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* One name of the innermost directory: tells it, and goes down if that is wanted. */
static int list_one(uint32_t id, const struct fp_request *q, uint64_t depth) {
        struct level *v = &walk.levels[walk.n - 1];
        size_t here = walk.len;
        int r;
        const struct dirent *e = names_next(&v->names, &r);

        if (!e) {
                leave();
                return r;
        }
        r = path_push(e->d_name);
        if (r < 0)
                return r;
        r = entry_send(id, walk.path, q->flags);
        if (r == 0 && walk.n < depth && is_directory(v->names.fd, e)) {
                r = enter(v->names.fd, e->d_name, O_NOFOLLOW, here);
                if (r == 0)
                        return 0;
        }
        path_cut(here);
        /* Gone meanwhile, or not ours to look into: it was told that it is there. */
        return r == -ENOENT || r == -EACCES || r == -ENOTDIR ? 0 : r;
}

int tree_list(uint32_t id, const struct fp_request *q) {
        uint64_t depth = q->length == 0 ? 1 : q->length;
        int r = start(q->path, 0);

        while (r == 0 && walk.n > 0)
                r = list_one(id, q, depth);
        leave_all();
        if (r == 0)
                worker_done(id);
        return r;
}

/* The innermost directory is empty: read again if it was not while we read it, else removed. */
static int remove_level(void) {
        struct level *v = &walk.levels[walk.n - 1];

        if (v->again) {
                v->again = false;
                v->names.at = v->names.len = 0;
                return lseek(v->names.fd, 0, SEEK_SET) < 0 ? -errno : 0;
        }
        if (rmdir(walk.path) < 0 && errno != ENOENT)
                return -errno;
        leave();
        return 0;
}

static int remove_one(void) {
        struct level *v = &walk.levels[walk.n - 1];
        size_t here = walk.len;
        int r;
        const struct dirent *e = names_next(&v->names, &r);

        if (!e)
                return r < 0 ? r : remove_level();
        v->again = true;
        if (unlinkat(v->names.fd, e->d_name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR)
                return -errno;
        r = path_push(e->d_name);
        if (r == 0)
                r = enter(v->names.fd, e->d_name, O_NOFOLLOW, here);
        if (r < 0)
                path_cut(here);
        return r;
}

int tree_remove(const char *path, const char **ret_step) {
        int r;

        if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
                return 0;
        if (errno != EISDIR)
                return -errno;
        r = start(path, O_NOFOLLOW);
        while (r == 0 && walk.n > 0)
                r = remove_one();
        leave_all();
        *ret_step = r == -ELOOP ? "depth" : "remove";
        return r;
}
