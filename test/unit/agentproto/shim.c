/* shim.c - see shim.h. Everything waits with a deadline. */
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wr.h"
#include "process.h"

static struct sockaddr_un address(const struct shim *s, const char *name) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };

        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", s->dir, name);
        return a;
}

static int listen_at(const struct shim *s, const char *name, int type) {
        struct sockaddr_un a = address(s, name);
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 64), 0);
        return fd;
}

static int connect_to(const struct shim *s, const char *name, int type) {
        struct sockaddr_un a = address(s, name);
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        return fd;
}

struct shim *shim_start(int landlock_fd) {
        struct shim *s = calloc(1, sizeof(*s));
        int control, gate, one = 1;
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));

        assert_non_null(s);
        (void) snprintf(s->dir, sizeof(s->dir), "/tmp/gabion-test-XXXXXX");
        assert_non_null(mkdtemp(s->dir));
        control = listen_at(s, "agent", SOCK_STREAM);
        gate = listen_at(s, "gate", SOCK_SEQPACKET);
        s->pid = fork();
        assert_true(s->pid >= 0);
        if (s->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would outlive a test that crashes */
                process_exec(control, gate, landlock_fd);
        }
        (void) close(control);
        (void) close(gate);
        s->gate = connect_to(s, "gate", SOCK_SEQPACKET);
        assert_int_equal(setsockopt(s->gate, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
        ap_put_configure(&w, PROCESS_CAPS);
        assert_int_equal(send(s->gate, b, w.len, 0), w.len);
        return s;
}

void shim_stop(struct shim *s) {
        char path[64];

        (void) close(s->gate);
        (void) kill(s->pid, SIGKILL);
        (void) waitpid(s->pid, NULL, 0);
        process_end_orphans();
        for (int i = 0; i < 2; i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", s->dir, i ? "gate" : "agent");
                (void) unlink(path);
        }
        (void) rmdir(s->dir);
        free(s);
}

int shim_set_up(void **state) {
        if (geteuid() != 0) {
                print_message("needs root\n");
                skip();
        }
        *state = shim_start(-1);
        assert_true(shim_launch(*state, AP_CLOSE_FDS | AP_RLIMIT, NULL) > 0);
        return 0;
}

int shim_tear_down(void **state) {
        shim_stop(*state);
        return 0;
}

pid_t shim_launch(struct shim *s, uint32_t controls, uint32_t *ret_errno) {
        static uint8_t b[8192];
        static struct ap_ready ready;
        struct ap_spawn spawn = { .flags = AP_LAUNCHER,
                                  .controls = controls,
                                  .cwd = "/",
                                  .argv = ARGS("launcher"),
                                  .argc = 1,
                                  .envp = ARGS(NULL) };
        struct wr w = wr_to(b, sizeof(b));
        struct iovec iov = { .iov_base = b, .iov_len = sizeof(b) };
        union {
                struct cmsghdr align;
                char bytes[256];
        } control;
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = 256 };
        struct ucred cred = { 0 };
        struct ap_head head;
        char step[32], byte;
        int pair = -1;
        ssize_t n;

        if (controls & AP_RLIMIT) {
                spawn.rlimits[0] = (struct ap_rlimit){ RLIMIT_FSIZE, SHIM_FILE_MAX, SHIM_FILE_MAX };
                spawn.n_rlimits = 1;
        }
        ap_put_spawn(&w, ++s->last, &spawn);
        assert_int_equal(send(s->gate, b, w.len, 0), w.len);
        process_await(s->gate, "gate");
        n = recvmsg(s->gate, &msg, MSG_CMSG_CLOEXEC);
        assert_true(n > 0);
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
                if (c->cmsg_type == SCM_CREDENTIALS)
                        memcpy(&cred, CMSG_DATA(c), sizeof(cred));
                else if (c->cmsg_type == SCM_RIGHTS)
                        memcpy(&pair, CMSG_DATA(c), sizeof(int));
        assert_int_equal(ap_frame(b, (size_t) n, &head), 1);
        if (head.type == AP_ERROR && ret_errno) {
                assert_int_equal(ap_get_error(b + AP_HEAD, (size_t) n - AP_HEAD, ret_errno, step, sizeof(step)), 0);
                return 0;
        }
        assert_int_equal(ap_get_ready(b, (size_t) n, &ready), 0);
        assert_int_equal(ready.id, s->last);
        process_await(pair, "pair");
        assert_int_equal(read(pair, &byte, 1), 1);
        assert_int_equal(byte, 's');
        assert_int_equal(write(pair, "g", 1), 1);
        (void) close(pair);
        s->launcher = cred.pid;
        return cred.pid;
}

void shim_env(struct shim *s, const char *const *env, uint16_t n) {
        static uint8_t b[AP_ENV_MAX];
        struct wr w = wr_to(b, sizeof(b));
        struct ap_head head;

        ap_put_env(&w, env, n);
        assert_false(w.bad);
        assert_int_equal(send(s->gate, b, w.len, 0), w.len);
        process_await(s->gate, "gate");
        assert_int_equal(recv(s->gate, b, sizeof(b), 0), AP_HEAD);
        assert_int_equal(ap_frame(b, AP_HEAD, &head), 1);
        assert_int_equal(head.type, AP_DONE);
}

struct conn *conn_open(const struct shim *s) {
        struct conn *c = calloc(1, sizeof(*c));

        assert_non_null(c);
        c->fd = connect_to(s, "agent", SOCK_STREAM);
        return c;
}

void conn_close(struct conn *c) {
        (void) close(c->fd);
        free(c);
}

void conn_send(struct conn *c, const void *p, size_t n) {
        process_send(c->fd, p, n);
}

static void send_frame(struct conn *c, const struct wr *w) {
        assert_false(w->bad);
        conn_send(c, w->p, w->len);
}

void conn_u32(struct conn *c, enum ap_type type, uint32_t id, uint32_t v) {
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));

        ap_put_u32(&w, type, id, v);
        send_frame(c, &w);
}

void conn_empty(struct conn *c, enum ap_type type, uint32_t id) {
        conn_bytes(c, type, id, NULL, 0);
}

void conn_bytes(struct conn *c, enum ap_type type, uint32_t id, const void *p, size_t n) {
        uint8_t head[AP_HEAD];

        ap_head_put(head, type, id, n);
        conn_send(c, head, sizeof(head));
        conn_send(c, p, n);
}

bool conn_next(struct conn *c, int ms) {
        int r;

        while ((r = ap_frame(c->in, c->len, &c->head)) == 0) {
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                ssize_t k;

                if (poll(&p, 1, ms) != 1)
                        return false;
                k = read(c->fd, c->in + c->len, sizeof(c->in) - c->len);
                if (k <= 0)
                        return false;
                c->len += (size_t) k;
        }
        assert_int_equal(r, 1);
        c->n = c->head.length - AP_HEAD;
        memcpy(c->body, c->in + AP_HEAD, c->n);
        c->len -= c->head.length;
        memmove(c->in, c->in + c->head.length, c->len);
        return true;
}

void conn_expect(struct conn *c, enum ap_type type) {
        char step[32];
        uint32_t e;

        if (!conn_next(c, PROCESS_MS))
                fail_msg("no frame came instead of %d", (int) type);
        if (c->head.type == AP_ERROR && type != AP_ERROR && ap_get_error(c->body, c->n, &e, step, sizeof(step)) == 0)
                fail_msg("error %u (%s) instead of frame %d", e, step, (int) type);
        assert_int_equal(c->head.type, type);
}

uint32_t conn_error(struct conn *c, char step[32]) {
        uint32_t e;

        conn_expect(c, AP_ERROR);
        assert_int_equal(ap_get_error(c->body, c->n, &e, step, 32), 0);
        return e;
}

bool conn_has_ended(struct conn *c) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        char byte;

        return poll(&p, 1, PROCESS_MS) == 1 && recv(c->fd, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN;
}

struct ap_start start_of(const char **argv) {
        static const char *env[] = { "PATH=/usr/bin:/bin", NULL };
        struct ap_start s = { .cwd = "/", .argv = argv, .envp = env, .envc = 1, .credit = UINT32_MAX };

        while (argv[s.argc])
                s.argc++;
        return s;
}

struct ap_running start(struct conn *c, const struct ap_start *s) {
        static uint8_t b[AP_FRAME_MAX];
        static uint32_t request = 1000;
        struct wr w = wr_to(b, sizeof(b));
        struct ap_running run;

        ap_put_start(&w, ++request, s);
        send_frame(c, &w);
        conn_expect(c, AP_RUNNING);
        assert_int_equal(c->head.id, request);
        assert_int_equal(ap_get_running(c->body, c->n, &run), 0);
        return run;
}

struct ap_running attach(struct conn *c, uint32_t number, uint64_t from, uint8_t flags) {
        uint8_t b[512];
        struct wr w = wr_to(b, sizeof(b));
        struct ap_running run;

        ap_put_attach(
                &w, 7,
                &(struct ap_attach){
                        .by = AP_BY_NUMBER, .value = number, .from = from, .flags = flags, .credit = UINT32_MAX });
        send_frame(c, &w);
        conn_expect(c, AP_RUNNING);
        assert_int_equal(ap_get_running(c->body, c->n, &run), 0);
        return run;
}

static void keep(struct seen *o, const struct conn *c) {
        unsigned stream;
        const void *p;
        size_t n;

        assert_int_equal(ap_get_output(c->body, c->n, &stream, &p, &n), 0);
        if (o->n + n < sizeof(o->text))
                memcpy(o->text + o->n, p, n);
        o->n += n;
}

struct seen *finish(struct conn *c, uint32_t number) {
        static struct seen o;

        memset(&o, 0, sizeof(o));
        for (;;) {
                if (!conn_next(c, PROCESS_MS))
                        fail_msg("command %u does not end", number);
                assert_int_equal(c->head.id, number);
                if (c->head.type == AP_OUTPUT)
                        keep(&o, c);
                else if (c->head.type == AP_GAP)
                        assert_int_equal(ap_get_gap(c->body, c->n, &o.lost), 0);
                else if (c->head.type == AP_EXEC_FAILED)
                        assert_int_equal(ap_get_u32(c->body, c->n, &o.exec_errno), 0);
                else if (c->head.type == AP_EXITED)
                        break;
                else
                        assert_int_equal(c->head.type, AP_STDIN_CREDIT);
        }
        assert_int_equal(ap_get_exit(c->body, c->n, &o.exit), 0);
        return &o;
}
