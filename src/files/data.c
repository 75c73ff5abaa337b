/* data.c - contents of files, in frames. Only regular files: nothing else has an end that can be waited for. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/wr.h"
#include "worker.h"

static int is_regular(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
}

void data_read(uint32_t id, const struct fp_request *q) {
        /* Not blocking: a FIFO would wait for somebody to write. */
        AUTO_FD int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        uint64_t left = q->length;
        int r = fd < 0 ? -errno : is_regular(fd);

        if (r == 0 && q->offset > 0 && lseek(fd, (off_t) q->offset, SEEK_SET) < 0)
                r = -errno;
        if (r == 0)
                r = entry_send(id, q->path, q->flags);
        while (r == 0 && left > 0) {
                struct wr w = worker_begin(AP_HEAD + AP_CHUNK);
                size_t most = left < AP_CHUNK ? (size_t) left : AP_CHUNK;
                ssize_t n = read(fd, w.p + AP_HEAD, most);

                if (n < 0)
                        r = -errno;
                if (n <= 0)
                        break;
                ap_head_put(w.p, AP_DATA, id, (size_t) n);
                w.len = AP_HEAD + (size_t) n;
                worker_commit(&w);
                left -= (uint64_t) n;
        }
        if (r == 0) {
                struct wr w = worker_begin(AP_HEAD);

                ap_put_empty(&w, AP_DATA_END, id);
                worker_commit(&w);
        } else {
                worker_error(id, r, "read");
        }
}

static int open_new(const char *path) {
        const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
        int fd = open(path, flags, 0666), r;

        if (fd < 0 && errno == ENOENT) {
                r = entry_make_parents(path, false);
                if (r < 0)
                        return r;
                fd = open(path, flags, 0666);
        }
        if (fd < 0)
                return -errno;
        r = is_regular(fd);
        if (r < 0)
                (void) close(fd);
        return r < 0 ? r : fd;
}

void data_write(uint32_t id, const struct fp_request *q) {
        char path[AP_PATH_MAX]; /* the request goes when the next frame comes */
        AUTO_FD int fd = -1;
        uint32_t flags = q->flags;
        int r;

        memcpy(path, q->path, strlen(q->path) + 1);
        fd = open_new(path);
        r = fd < 0 ? fd : 0;
        if (r < 0)
                worker_error(id, r, "write"); /* at once, so that the host may stop; what is on its way is dropped */
        for (;;) {
                uint8_t *body;
                size_t n;
                struct ap_head head = worker_receive(&body, &n);

                if (head.id != id || (head.type != AP_DATA && head.type != AP_DATA_END) || n > AP_CHUNK ||
                    (n == 0) != (head.type == AP_DATA_END))
                        _exit(1);
                if (head.type == AP_DATA_END)
                        break;
                if (r == 0) {
                        r = fd_write_all(fd, body, n);
                        if (r < 0)
                                worker_error(id, r, "write");
                }
        }
        if (r == 0) {
                r = entry_send(id, path, flags);
                if (r < 0)
                        worker_error(id, r, "write");
        }
}
