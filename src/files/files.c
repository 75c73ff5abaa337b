/*
 * files.c - the connection of a worker, and its requests.
 *
 * One request after the other, with calls that block: the socket is the flow control, and a host that stops reading or
 * writing stops this process and nothing else. Nothing here is more than the sandbox's own user may do, under the same
 * filter and Landlock domain; so paths are used as they are.
 */
#include "files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/own.h"
#include "base/rd.h"
#include "base/wr.h"
#include "worker.h"

static struct {
        int fd;
        size_t out_len;
        uint8_t in[FP_FRAME_MAX], out[FP_FRAME_MAX];
} worker;

int worker_fd(void) {
        return worker.fd;
}

static void receive_all(uint8_t *p, size_t n) {
        while (n > 0) {
                ssize_t k = recv(worker.fd, p, n, MSG_WAITALL);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        _exit(0);
                p += k;
                n -= (size_t) k;
        }
}

struct ap_head worker_receive(uint8_t **ret_body, size_t *ret_n) {
        struct ap_head head = { 0 };
        struct rd length = rd_from(worker.in, sizeof(uint32_t));
        size_t n;

        worker_flush();
        receive_all(worker.in, AP_HEAD);
        n = sizeof(uint32_t) + rd_u32(&length);
        if (ap_frame(worker.in, AP_HEAD, &head) < 0 || n > sizeof(worker.in))
                _exit(1);
        receive_all(worker.in + AP_HEAD, n - AP_HEAD);
        if (ap_frame(worker.in, n, &head) != 1)
                _exit(1);
        *ret_body = worker.in + AP_HEAD;
        *ret_n = head.length - AP_HEAD;
        return head;
}

void worker_flush(void) {
        size_t at = 0;

        while (at < worker.out_len) {
                ssize_t k = send(worker.fd, worker.out + at, worker.out_len - at, MSG_NOSIGNAL);

                if (k < 0 && errno != EINTR)
                        _exit(0);
                at += k > 0 ? (size_t) k : 0;
        }
        worker.out_len = 0;
}

struct wr worker_begin(size_t n) {
        if (n > sizeof(worker.out) - worker.out_len)
                worker_flush();
        return wr_to(worker.out + worker.out_len, sizeof(worker.out) - worker.out_len);
}

void worker_commit(const struct wr *w) {
        if (w->bad)
                __builtin_trap(); /* our bug: callers ask for the room that they need */
        worker.out_len += w->len;
}

void worker_done(uint32_t id) {
        struct wr w = worker_begin(AP_HEAD);

        ap_put_empty(&w, AP_DONE, id);
        worker_commit(&w);
}

void worker_error(uint32_t id, int r, const char *step) {
        struct wr w = worker_begin(AP_HEAD + sizeof(uint32_t) + sizeof(uint16_t) + strlen(step));

        ap_put_error(&w, id, (uint32_t) -r, step);
        worker_commit(&w);
}

/* Each answers, or returns why it could not; *step may be made more precise. */
typedef int (*request_fn)(uint32_t id, const struct fp_request *q, const char **step);

static int on_stat(uint32_t id, const struct fp_request *q, const char **step) {
        (void) step;
        return entry_send(id, q->path, q->flags);
}

static int on_list(uint32_t id, const struct fp_request *q, const char **step) {
        (void) step;
        return tree_list(id, q);
}

static int on_mkdir(uint32_t id, const struct fp_request *q, const char **step) {
        struct stat st;
        int r = stat(q->path, &st) == 0 ? (S_ISDIR(st.st_mode) ? -EEXIST : -ENOTDIR) : 0;

        *step = r < 0 ? "exists" : "mkdir";
        if (r == 0)
                r = entry_make_parents(q->path, true);
        return r < 0 ? r : entry_send(id, q->path, q->flags);
}

static int on_move(uint32_t id, const struct fp_request *q, const char **step) {
        struct stat st;
        int r;

        *step = "source";
        if (lstat(q->path, &st) < 0)
                return -errno;
        *step = "move";
        r = entry_make_parents(q->other, false);
        if (r == 0 && rename(q->path, q->other) < 0)
                r = -errno;
        return r < 0 ? r : entry_send(id, q->other, q->flags);
}

static int on_remove(uint32_t id, const struct fp_request *q, const char **step) {
        int r = tree_remove(q->path, step);

        if (r < 0)
                return r;
        worker_done(id);
        return 0;
}

static int on_read(uint32_t id, const struct fp_request *q, const char **step) {
        (void) step;
        data_read(id, q);
        return 0;
}

static int on_write(uint32_t id, const struct fp_request *q, const char **step) {
        (void) step;
        data_write(id, q);
        return 0;
}

static int on_watch(uint32_t id, const struct fp_request *q, const char **step) {
        (void) step;
        return watch_run(id, q);
}

static int on_disk(uint32_t id, const struct fp_request *q, const char **step) {
        struct statfs st;
        struct wr w;

        (void) step;
        if (statfs(q->path, &st) < 0)
                return -errno;
        w = worker_begin(AP_HEAD + 2 * sizeof(uint64_t));
        fp_put_usage(&w, id, (uint64_t) st.f_blocks * (uint64_t) st.f_bsize,
                     (uint64_t) (st.f_blocks - st.f_bfree) * (uint64_t) st.f_bsize);
        worker_commit(&w);
        return 0;
}

static const struct {
        request_fn fn;
        const char *step;
} requests[] = {
        [AP_STAT] = { on_stat, "stat" },    [AP_LIST_DIR] = { on_list, "list" },   [AP_MKDIR] = { on_mkdir, "mkdir" },
        [AP_MOVE] = { on_move, "move" },    [AP_REMOVE] = { on_remove, "remove" }, [AP_READ] = { on_read, "read" },
        [AP_WRITE] = { on_write, "write" }, [AP_WATCH] = { on_watch, "watch" },    [AP_DISK] = { on_disk, "disk" },
};

static void serve(const struct ap_head *head, const uint8_t *body, size_t n) {
        struct fp_request q;
        struct fp_xattrs x;
        const char *step = "xattr";
        int r;

        if (head->type == AP_SET_XATTRS && fp_get_xattrs(body, n, &x) == 0) {
                r = entry_set_xattrs(&x);
                if (r == 0)
                        r = entry_send(head->id, x.path, FP_WITH_XATTRS);
        } else if (head->type < ARRAY_SIZE(requests) && requests[head->type].fn &&
                   fp_get_request(head->type, body, n, &q) == 0) {
                step = requests[head->type].step;
                r = requests[head->type].fn(head->id, &q, &step);
        } else {
                _exit(1);
        }
        if (r < 0)
                worker_error(head->id, r, step);
}

_Noreturn void files_run(int fd) {
        worker.fd = fd;
        for (;;) {
                uint8_t *body;
                size_t n;
                struct ap_head head = worker_receive(&body, &n);

                serve(&head, body, n);
        }
}
