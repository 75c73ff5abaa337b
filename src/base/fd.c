/* fd.c - see fd.h. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

int fd_write_all(int fd, const void *p, size_t n) {
        const char *at = p;

        while (n > 0) {
                ssize_t k = write(fd, at, n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                at += k;
                n -= (size_t) k;
        }
        return 0;
}

int fd_read_upto(int fd, char *dst, size_t cap) {
        size_t n = 0;

        if (cap > INT_MAX)
                cap = INT_MAX;
        for (;;) {
                ssize_t k = read(fd, dst + n, cap - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
                if (n == cap)
                        return -EFBIG;
        }
        dst[n] = '\0';
        return (int) n;
}

int fd_read_at(int dir_fd, const char *path, char *dst, size_t cap) {
        AUTO_FD int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : fd_read_upto(fd, dst, cap);
}

int fd_write_at(int dir_fd, const char *path, const char *text) {
        AUTO_FD int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
        ssize_t k;

        if (fd < 0)
                return -errno;
        k = write(fd, text, strlen(text));
        if (k < 0)
                return -errno;
        return (size_t) k == strlen(text) ? 0 : -EIO;
}
