/* entry.c - what a path is: kind, owner, time, where a link leads, attributes; and the making of directories. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "worker.h"

/* Greatest AP_ENTRY: two paths, attributes with their lengths, fixed fields. */
enum { FD_NAME = 32, ENTRY_MAX = AP_HEAD + 2 * AP_PATH_MAX + FP_XATTR_BYTES + FP_XATTRS * 8 + 64 };
_Static_assert((int) ENTRY_MAX < (int) FP_FRAME_MAX, "an entry fits into a frame");

static const char owned[] = "user.", fd_dir[] = "/proc/self/fd/";

/* The attributes user.*, as many as are allowed; the others are somebody else's business. */
static void xattrs_read(const char *path, struct fp_entry *e) {
        static char names[FP_XATTR_BYTES];
        static uint8_t values[FP_XATTR_BYTES];
        ssize_t n = listxattr(path, names, sizeof(names));
        size_t used = 0, k;

        for (ssize_t at = 0; at < n && e->n_xattrs < FP_XATTRS; at += (ssize_t) k + 1) {
                const char *name = names + at;
                ssize_t len;

                k = strlen(name);
                if (!str_has_prefix(name, owned) || k >= FP_XATTR_NAME || used + k > sizeof(values))
                        continue;
                used += k; /* names count too */
                len = getxattr(path, name, values + used, sizeof(values) - used);
                if (len < 0)
                        continue;
                e->xattrs[e->n_xattrs++] = (struct fp_xattr){ name, values + used, (uint16_t) len };
                used += (size_t) len;
        }
}

/* By hand: printf would be a third of the agent's program. */
static const char *fd_name(int fd, char name[FD_NAME]) {
        char digits[12];
        size_t n = 0, at = sizeof(fd_dir) - 1;

        memcpy(name, fd_dir, at);
        do
                digits[n++] = (char) ('0' + fd % 10);
        while ((fd /= 10) > 0);
        while (n > 0)
                name[at++] = digits[--n];
        name[at] = '\0';
        return name;
}

/* Where a link leads in the end, as the kernel says. */
static void link_read(const char *path, struct fp_entry *e) {
        static char target[AP_PATH_MAX];
        AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
        char name[FD_NAME];
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        n = readlink(fd_name(fd, name), target, sizeof(target));
        if (n <= 0 || (size_t) n >= sizeof(target) || target[0] != '/')
                return;
        target[n] = '\0';
        e->target = target;
        e->target_mode = st.st_mode;
}

int entry_read(const char *path, uint32_t flags, struct fp_entry *ret) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return -errno;
        *ret = (struct fp_entry){
                .mode = st.st_mode,
                .uid = st.st_uid,
                .gid = st.st_gid,
                .size = (uint64_t) st.st_size,
                .mtime_s = st.st_mtim.tv_sec,
                .mtime_ns = (uint32_t) st.st_mtim.tv_nsec,
                .path = path,
                .target = "",
        };
        if (S_ISLNK(st.st_mode))
                link_read(path, ret);
        else if (flags & FP_WITH_XATTRS)
                xattrs_read(path, ret);
        return 0;
}

void entry_put(uint32_t id, const struct fp_entry *e) {
        struct wr w = worker_begin(ENTRY_MAX);

        fp_put_entry(&w, id, e);
        worker_commit(&w);
}

int entry_send(uint32_t id, const char *path, uint32_t flags) {
        static struct fp_entry e;
        int r = entry_read(path, flags, &e);

        if (r == 0)
                entry_put(id, &e);
        return r;
}

int entry_set_xattrs(const struct fp_xattrs *x) {
        static struct fp_entry e;
        int r = entry_read(x->path, FP_WITH_XATTRS, &e);

        if (r < 0)
                return r;
        for (size_t i = 0; i < e.n_xattrs; i++)
                if (str_has_prefix(e.xattrs[i].name, x->prefix) && removexattr(x->path, e.xattrs[i].name) < 0)
                        return -errno;
        for (size_t i = 0; i < x->n_xattrs; i++)
                if (setxattr(x->path, x->xattrs[i].name, x->xattrs[i].value, x->xattrs[i].n, 0) < 0)
                        return -errno;
        return 0;
}

int entry_make_parents(const char *path, bool all) {
        static char part[AP_PATH_MAX];
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                n--;
        for (size_t i = 1; i <= n; i++) {
                bool last = i == n;

                if (last ? !all : path[i] != '/')
                        continue;
                memcpy(part, path, i);
                part[i] = '\0';
                if (mkdir(part, 0777) < 0 && (errno != EEXIST || last))
                        return -errno;
        }
        return 0;
}
