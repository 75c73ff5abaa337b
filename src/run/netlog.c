/* netlog.c - see netlog.h. */
#include "run/netlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

static int file_open(const char *path) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : fd;
}

/* mkdir -p of what is above the file. */
static void folders_make(const char *path) {
        char part[NETLOG_PATH];

        (void) str_copy(part, sizeof(part), path);
        for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = '\0';
                (void) mkdir(part, 0700); /* what cannot be made shows when the file is opened */
                *at = '/';
        }
}

int netlog_open(const char *path, struct netlog *ret, struct err *err) {
        struct stat st;

        ret->fd = -1;
        if (str_copy(ret->path, sizeof(ret->path), path) < 0)
                return err_set(err, -ENAMETOOLONG, ERR_INVALID, "--egress-log: the path is too long");
        ret->fd = file_open(path);
        if (ret->fd == -ENOENT) {
                folders_make(path);
                ret->fd = file_open(path);
        }
        if (ret->fd < 0)
                return err_set(err, ret->fd, ERR_INVALID, "egress log %.150s: %s; --egress-log FILE chooses another",
                               path, strerror(-ret->fd));
        if (fstat(ret->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                netlog_close(ret);
                return err_set(err, -EINVAL, ERR_INVALID, "egress log %.150s: it is no regular file", path);
        }
        return 0;
}

/*
 * Whoever finds the file full renames it, unless somebody else was faster: then the name leads to another file already.
 * The lock is on the full file, so two cannot both find that the name is still its own.
 */
static int rotate(struct netlog *l, const struct stat *mine) {
        char old[NETLOG_PATH + 4];
        struct stat now;
        int fd;

        if (flock(l->fd, LOCK_EX) < 0)
                return -errno;
        (void) snprintf(old, sizeof(old), "%s.1", l->path);
        if (stat(l->path, &now) == 0 && now.st_dev == mine->st_dev && now.st_ino == mine->st_ino &&
            rename(l->path, old) < 0)
                return -errno;
        fd = file_open(l->path);
        if (fd < 0)
                return fd;
        (void) close(l->fd);
        l->fd = fd;
        return 0;
}

int netlog_add(struct netlog *l, const char *line, size_t n) {
        const struct iovec whole[] = { { (void *) (uintptr_t) line, n }, { (void *) (uintptr_t) "\n", 1 } };
        struct stat st;
        ssize_t k;
        int r;

        if (fstat(l->fd, &st) < 0)
                return -errno;
        r = st.st_size >= NETLOG_BYTES ? rotate(l, &st) : 0;
        if (r < 0)
                return r;
        k = writev(l->fd, whole, ARRAY_SIZE(whole)); /* one call: lines of several runs never mix */
        if (k < 0)
                return -errno;
        return (size_t) k == n + 1 ? 0 : -ENOSPC;
}

void netlog_close(struct netlog *l) {
        if (l->fd >= 0)
                (void) close(TAKE_FD(l->fd));
}
