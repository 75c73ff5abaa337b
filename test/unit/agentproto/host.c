/* host.c - see host.h. Everything waits with a deadline, so that a hanging agent is a failed test and not a hanging
 * one. */
#include "host.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wr.h"
#include "process.h"

struct host *host_start(int landlock_fd) {
        struct host *h = calloc(1, sizeof(*h));
        int control[2], gate[2], one = 1;

        assert_non_null(h);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate), 0);
        assert_int_equal(setsockopt(gate[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
        h->pid = fork();
        assert_true(h->pid >= 0);
        if (h->pid == 0)
                process_exec(control[1], gate[1], landlock_fd);
        (void) close(control[1]);
        (void) close(gate[1]);
        h->control = control[0];
        h->gate = gate[0];
        return h;
}

void host_send(struct host *h, const void *p, size_t n) {
        process_send(h->control, p, n);
}

static void send_frame(struct host *h, const struct wr *w) {
        assert_false(w->bad);
        host_send(h, w->p, w->len);
}

void host_configure(struct host *h) {
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));

        ap_put_configure(&w, PROCESS_CAPS);
        send_frame(h, &w);
}

void host_u32(struct host *h, enum ap_type type, uint32_t id, uint32_t v) {
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));

        ap_put_u32(&w, type, id, v);
        send_frame(h, &w);
}

void host_stdin(struct host *h, uint32_t id, const void *p, size_t n) {
        uint8_t head[AP_HEAD];

        ap_head_put(head, AP_STDIN, id, n);
        host_send(h, head, sizeof(head));
        host_send(h, p, n);
}

void host_eof(struct host *h, uint32_t id) {
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));

        ap_put_empty(&w, AP_STDIN_EOF, id);
        send_frame(h, &w);
}

void host_spawn(struct host *h, uint32_t id, const struct ap_spawn *s) {
        static uint8_t b[AP_FRAME_MAX];
        struct wr w = wr_to(b, sizeof(b));

        ap_put_spawn(&w, id, s);
        send_frame(h, &w);
}

struct ap_spawn host_command(const char **argv) {
        static const char *env[] = { "PATH=/usr/bin:/bin", NULL };
        struct ap_spawn s = { .cwd = "/", .argv = argv, .envp = env, .envc = 1, .output_credit = UINT32_MAX };

        while (argv[s.argc])
                s.argc++;
        return s;
}

struct answer host_gate(struct host *h) {
        static uint8_t frame[8192];
        struct answer a = { .pair = -1, .listener = -1 };
        struct iovec iov = { .iov_base = frame, .iov_len = sizeof(frame) };
        union {
                struct cmsghdr align;
                char bytes[256];
        } control;
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = 256 };
        struct ap_head head;
        struct ucred cred;
        ssize_t n;

        process_await(h->gate, "gate");
        n = recvmsg(h->gate, &msg, MSG_CMSG_CLOEXEC);
        if (n <= 0)
                fail_msg("the agent ended with status %d", host_wait(h));
        assert_int_equal(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
                if (c->cmsg_type == SCM_CREDENTIALS) {
                        memcpy(&cred, CMSG_DATA(c), sizeof(cred));
                        a.pid = cred.pid;
                } else if (c->cmsg_type == SCM_RIGHTS) {
                        memcpy(&a.pair, CMSG_DATA(c), sizeof(int));
                        if (c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
                                memcpy(&a.listener, CMSG_DATA(c) + sizeof(int), sizeof(int));
                }
        }
        assert_int_equal(ap_frame(frame, (size_t) n, &head), 1);
        a.here = head.type == AP_HERE;
        if (a.here)
                return a;
        if (head.type == AP_ERROR)
                assert_int_equal(ap_get_error(frame + AP_HEAD, (size_t) n - AP_HEAD, &a.err_no, a.step, sizeof(a.step)),
                                 0);
        else
                assert_int_equal(ap_get_ready(frame, (size_t) n, &a.ready), 0);
        if (a.pair >= 0) {
                char settled = 0;

                process_await(a.pair, "pair");
                assert_int_equal(read(a.pair, &settled, 1), 1);
                assert_int_equal(settled, 's');
        }
        return a;
}

void host_go(struct answer *a) {
        if (a->err_no)
                fail_msg("step %s failed with errno %u", a->step, a->err_no);
        assert_int_equal(write(a->pair, "g", 1), 1);
        (void) close(a->pair);
        if (a->listener >= 0)
                (void) close(a->listener);
}

bool host_next(struct host *h, int ms, struct ap_head *head, const uint8_t **body, size_t *n) {
        static uint8_t frame[AP_FRAME_MAX];
        int r;

        while ((r = ap_frame(h->in, h->len, head)) == 0) {
                struct pollfd p = { .fd = h->control, .events = POLLIN };
                ssize_t k;

                if (poll(&p, 1, ms) != 1)
                        return false;
                k = read(h->control, h->in + h->len, sizeof(h->in) - h->len);
                if (k <= 0)
                        fail_msg("the agent ended with status %d", host_wait(h));
                h->len += (size_t) k;
        }
        assert_int_equal(r, 1);
        memcpy(frame, h->in, head->length);
        h->len -= head->length;
        memmove(h->in, h->in + head->length, h->len);
        *body = frame + AP_HEAD;
        *n = head->length - AP_HEAD;
        return true;
}

static void keep(struct outcome *o, unsigned stream, const void *p, size_t n) {
        size_t at = o->n[stream], room = at < sizeof(o->text[0]) - 1 ? sizeof(o->text[0]) - 1 - at : 0;

        memcpy(o->text[stream] + (room ? at : 0), p, n < room ? n : room);
        o->n[stream] += n;
}

void host_finish(struct host *h, uint32_t id, struct outcome *o) {
        struct ap_head head;
        const uint8_t *body;
        size_t n;

        memset(o, 0, sizeof(*o));
        for (;;) {
                if (!host_next(h, PROCESS_MS, &head, &body, &n))
                        fail_msg("command %u does not end", id);
                assert_int_equal(head.id, id);
                if (head.type == AP_OUTPUT) {
                        unsigned stream;
                        const void *p;
                        size_t k;

                        assert_int_equal(ap_get_output(body, n, &stream, &p, &k), 0);
                        keep(o, stream, p, k);
                } else if (head.type == AP_EXITED) {
                        assert_int_equal(ap_get_exit(body, n, &o->exit), 0);
                        return;
                } else if (head.type != AP_STARTED && head.type != AP_STDIN_CREDIT) {
                        fail_msg("frame %d instead of the end", (int) head.type);
                }
        }
}

struct outcome *host_run(struct host *h, struct ap_spawn *s, const char *input) {
        static struct outcome o;
        struct answer a;

        host_spawn(h, 1, s);
        a = host_gate(h);
        host_go(&a);
        if (input) {
                struct ap_head head;
                const uint8_t *body;
                size_t n;

                do /* no byte of input before it was granted */
                        assert_true(host_next(h, PROCESS_MS, &head, &body, &n));
                while (head.type != AP_STDIN_CREDIT);
                if (input[0])
                        host_stdin(h, 1, input, strlen(input));
                host_eof(h, 1);
        }
        host_finish(h, 1, &o);
        return &o;
}

int host_set_up(void **state) {
        *state = host_start(-1);
        host_configure(*state);
        return 0;
}

int host_tear_down(void **state) {
        host_stop(*state);
        return 0;
}

int host_wait(struct host *h) {
        for (int i = 0; i < PROCESS_MS; i++) {
                int status;

                if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
                        h->pid = -1;
                        if (WIFEXITED(status) && WEXITSTATUS(status) == PROCESS_NOT_ROOT) {
                                print_message("needs root or user namespaces\n");
                                skip();
                        }
                        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
                }
                (void) usleep(1000);
        }
        return -1;
}

void host_stop(struct host *h) {
        if (h->control >= 0)
                (void) close(h->control);
        (void) close(h->gate);
        if (h->pid > 0) {
                (void) kill(h->pid, SIGKILL);
                (void) waitpid(h->pid, NULL, 0);
        }
        process_end_orphans();
        free(h);
}
