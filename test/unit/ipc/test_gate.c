/* A handler sees only requests that the table allows now; every request has one reply, typed when it failed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "ipc/ipc.h"

enum { SETUP, RUNNING };
enum { ECHO = 1, START, REFUSE, LATER, TAKES_FD, FLOOD };

static unsigned calls;

static int on_echo(struct ipc_call *c, struct err *err) {
        char text[64];

        calls++;
        rd_str(&c->body, text, sizeof(text));
        if (!rd_done(&c->body))
                return err_set(err, -EBADMSG, ERR_PEER, "malformed echo");
        wr_str(c->reply, text);
        return IPC_REPLY_NOW;
}

static int on_start(struct ipc_call *c, struct err *err) {
        (void) err;
        calls++;
        c->gate->state = RUNNING;
        return IPC_REPLY_NOW;
}

static int on_refuse(struct ipc_call *c, struct err *err) {
        (void) c;
        return err_set(err, -ENOSPC, ERR_LIMIT, "the disk is full");
}

static int on_later(struct ipc_call *c, struct err *err) {
        (void) err;
        *(uint32_t *) c->gate->owner = c->serial;
        return IPC_REPLY_LATER;
}

static int on_fd(struct ipc_call *c, struct err *err) {
        (void) err;
        c->reply_fd = TAKE_FD(c->fds[0]);
        return IPC_REPLY_NOW;
}

static int on_flood(struct ipc_call *c, struct err *err) {
        static const char zeros[IPC_MAX];

        (void) err;
        wr_bytes(c->reply, zeros, sizeof(zeros));
        return IPC_REPLY_NOW;
}

static const struct ipc_op ops[] = {
        [ECHO] = { "echo", on_echo, BIT(SETUP) | BIT(RUNNING), 66, 0, false },
        [START] = { "start", on_start, BIT(SETUP) | BIT(RUNNING), 0, 0, true },
        [REFUSE] = { "refuse", on_refuse, BIT(RUNNING), 0, 0, false },
        [LATER] = { "later", on_later, BIT(SETUP), 0, 0, false },
        [TAKES_FD] = { "fd", on_fd, BIT(SETUP), 0, 1, false },
        [FLOOD] = { "flood", on_flood, BIT(SETUP), 0, 0, false },
};

static int ask(struct ipc_gate *g, const void *bytes, size_t n, struct wr *reply) {
        struct ipc_msg m = { .n = n };
        struct err err = { 0 };
        int fd;

        memcpy(m.bytes, bytes, n);
        return ipc_dispatch(g, &m, reply, &fd, &err);
}

static void what_the_table_does_not_allow_never_reaches_a_handler(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
                int want;
        } cases[] = {
                { "", 0, -EBADMSG },                      /* nothing */
                { "\0\1\0\0\0", 5, -EBADMSG },            /* cut head */
                { "\0\0\0\0\0\1", 6, -EBADMSG },          /* row without a handler */
                { "\0\7\0\0\0\1", 6, -EBADMSG },          /* beyond the table */
                { "\xff\xff\0\0\0\1", 6, -EBADMSG },      /* far beyond */
                { "\0\3\0\0\0\1", 6, -EPROTO },           /* not in this state */
                { "\0\2\0\0\0\1x", 7, -EBADMSG },         /* longer than allowed */
                { "\0\5\0\0\0\1", 6, -EBADMSG },          /* descriptor missing */
                { "\0\1\0\0\0\1\0\5abc", 11, -EBADMSG },  /* handler: string cut short */
                { "\0\1\0\0\0\1\0\3abcd", 12, -EBADMSG }, /* handler: trailing byte */
        };
        struct ipc_gate g = { .ops = ops, .n_ops = ARRAY_SIZE(ops) };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        (void) state;
        calls = 0;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(ask(&g, cases[i].bytes, cases[i].n, &w), cases[i].want);
        assert_int_equal(calls, 2); /* the two whose text only the handler can judge */
}

static void once_is_once_and_states_move(void **state) {
        struct ipc_gate g = { .ops = ops, .n_ops = ARRAY_SIZE(ops) };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        (void) state;
        assert_int_equal(ask(&g, "\0\2\0\0\0\1", 6, &w), IPC_REPLY_NOW);
        assert_int_equal(ask(&g, "\0\2\0\0\0\1", 6, &w), -EPROTO);
        assert_int_equal(ask(&g, "\0\4\0\0\0\1", 6, &w), -EPROTO);
        assert_int_equal(ask(&g, "\0\3\0\0\0\1", 6, &w), IPC_REPLY_NOW);
}

/* A server in a child for the tests of the client. */
static int served(int *ret_pid) {
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        *ret_pid = fork();
        if (*ret_pid == 0) {
                uint32_t serial = 0;
                struct ipc_gate g = { .ops = ops, .n_ops = ARRAY_SIZE(ops), .owner = &serial };
                struct err err = { 0 };

                (void) close(ends[0]);
                while (ipc_serve(&g, ends[1], &err) == 0)
                        if (serial) {
                                (void) ipc_reply(ends[1], serial, "late", 4, -1, NULL);
                                serial = 0;
                        }
                _exit(0);
        }
        (void) close(ends[1]);
        return ends[0];
}

static int call(int fd, uint16_t type, const char *text, int with_fd, struct ipc_msg *reply, struct err *err) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        ipc_begin(&w, type, 0);
        if (text)
                wr_str(&w, text);
        return ipc_call(fd, &w, &with_fd, with_fd >= 0, 2000, reply, err);
}

static void client_gets_replies_errors_and_descriptors(void **state) {
        struct ipc_msg m = { 0 };
        struct err err = { 0 };
        char text[64];
        int pid, fd = served(&pid);

        (void) state;
        assert_int_equal(call(fd, ECHO, "hello", -1, &m, &err), 0);
        rd_str(&m.body, text, sizeof(text));
        assert_true(rd_done(&m.body));
        assert_string_equal(text, "hello");
        assert_int_equal(call(fd, LATER, NULL, -1, &m, &err), 0);
        assert_memory_equal(rd_bytes(&m.body, 4), "late", 4);
        assert_int_equal(call(fd, TAKES_FD, NULL, STDIN_FILENO, &m, &err), 0);
        assert_int_equal(m.n_fds, 1);
        ipc_msg_done(&m);
        assert_int_equal(call(fd, FLOOD, NULL, -1, &m, &err), -EMSGSIZE);
        assert_int_equal(call(fd, START, NULL, -1, &m, &err), 0);
        assert_int_equal(call(fd, REFUSE, NULL, -1, &m, &err), -ENOSPC);
        assert_int_equal(err.kind, ERR_LIMIT);
        assert_string_equal(err.msg, "the disk is full");
        assert_int_equal(call(fd, START, NULL, -1, &m, &err), -EPIPE); /* cut off: once was once */
        (void) close(fd);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void silent_server_costs_the_deadline_and_no_more(void **state) {
        int ends[2];
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct ipc_msg m;
        struct err err = { 0 };
        uint64_t start = clock_mono_ns();

        (void) state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        ipc_begin(&w, ECHO, 0);
        assert_int_equal(ipc_call(ends[0], &w, NULL, 0, 50, &m, &err), -ETIMEDOUT);
        assert_true(clock_mono_ns() - start < 2000000000);
        while (send(ends[0], space, sizeof(space), MSG_DONTWAIT) > 0) /* also when it does not even read */
                ;
        assert_int_equal(ipc_call(ends[0], &w, NULL, 0, 50, &m, &err), -ETIMEDOUT);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

static void reply_to_something_else_is_refused(void **state) {
        struct ipc_msg m = { .n = 6 };
        struct err err = { 0 };

        (void) state;
        memcpy(m.bytes, "\0\0\0\0\0\7", 6);
        assert_int_equal(ipc_result(&m, 7, &err), 0);
        assert_int_equal(ipc_result(&m, 8, &err), -EPROTO);
        memcpy(m.bytes, "\0\x09\0\0\0\7", 6);
        assert_int_equal(ipc_result(&m, 7, &err), -EPROTO);
        memcpy(m.bytes, "\0\1\0\0\0\7\0\0\0\0\0\0", m.n = 12); /* a failure without a code */
        assert_int_equal(ipc_result(&m, 7, &err), -EPROTO);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_table_does_not_allow_never_reaches_a_handler),
                cmocka_unit_test(once_is_once_and_states_move),
                cmocka_unit_test(client_gets_replies_errors_and_descriptors),
                cmocka_unit_test(silent_server_costs_the_deadline_and_no_more),
                cmocka_unit_test(reply_to_something_else_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
