/* test_shim.c - the real gabion-agent with listening sockets: commands that outlive who started them. argv[1]: its
 * file. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/wr.h"
#include "process.h"
#include "shim.h"

static void command_runs_and_ends(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("cat; echo err >&2; exit 7"));
        struct ap_running run = start(c, &s);
        struct seen *o;

        conn_expect(c, AP_STDIN_CREDIT);
        conn_bytes(c, AP_STDIN, run.number, "some input\n", 11);
        conn_empty(c, AP_STDIN_EOF, run.number);
        o = finish(c, run.number);
        assert_string_equal(o->text, "some input\nerr\n");
        assert_int_equal(o->exit.code, 7);
        conn_close(c);
}

static void command_outlives_its_connection(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("echo one; read x; echo $x; exit 3"));
        struct ap_running run = start(c, &s), again;
        struct seen *o;

        do
                assert_true(conn_next(c, 5000));
        while (c->head.type != AP_OUTPUT);
        conn_close(c);
        c = conn_open(*state);
        again = attach(c, run.number, 0, 0);
        assert_int_equal(again.pid, run.pid);
        assert_int_equal(again.at, 0);
        conn_bytes(c, AP_STDIN, run.number, "two\n", 4); /* the grant is on its way; see the agent's window */
        o = finish(c, run.number);
        assert_string_equal(o->text, "one\ntwo\n");
        assert_int_equal(o->exit.code, 3);
        conn_close(c);
}

static void only_new_output_follows_unless_asked(void **state) {
        struct conn *c = conn_open(*state), *d = conn_open(*state);
        struct ap_start s = start_of(SHELL("echo one; read x; echo two"));
        struct ap_running run = start(c, &s), again;

        do
                assert_true(conn_next(c, 5000));
        while (c->head.type != AP_OUTPUT);
        again = attach(d, run.number, AP_NOW, 0);
        assert_int_equal(again.at, 4);
        conn_expect(d, AP_STDIN_CREDIT);
        conn_empty(d, AP_STDIN_EOF, run.number);
        assert_string_equal(finish(d, run.number)->text, "two\n");
        do
                assert_true(conn_next(c, 5000));
        while (c->head.type == AP_STDIN_CREDIT);
        assert_int_equal(c->head.type, AP_DETACHED); /* it was taken over */
        assert_int_equal(c->head.id, run.number);
        conn_close(c);
        conn_close(d);
}

static void exit_is_kept_for_who_comes_late(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("echo out; sleep 0.05; echo err >&2; sleep 0.05; echo more; exit 5"));
        struct ap_running run = start(c, &s);
        struct seen *o;

        assert_int_equal(finish(c, run.number)->exit.code, 5);
        conn_close(c);
        c = conn_open(*state);
        for (int i = 0; i < 2; i++) {
                (void) attach(c, run.number, 0, 0);
                o = finish(c, run.number);
                assert_string_equal(o->text, "out\nerr\nmore\n");
                assert_int_equal(o->exit.code, 5);
        }
        (void) attach(c, run.number, 0, AP_QUIET);
        o = finish(c, run.number);
        assert_int_equal(o->n, 0);
        assert_int_equal(o->exit.code, 5);
        conn_close(c);
}

static void lost_output_is_counted(void **state) {
        enum { ALL = 300000 };
        struct conn *c = conn_open(*state);
        char mark[] = "/tmp/gabion-shim-XXXXXX", line[128];
        struct ap_start s;
        struct ap_running run;
        struct seen *o;
        int fd = mkstemp(mark);

        assert_true(fd >= 0 && close(fd) == 0);
        (void) snprintf(line, sizeof(line), "head -c 299998 /dev/zero | tr '\\0' x; rm %s; read y; echo; echo z", mark);
        s = start_of(SHELL(line));
        s.credit = 0; /* no output before the connection leaves it */
        run = start(c, &s);
        conn_expect(c, AP_STDIN_CREDIT);
        conn_empty(c, AP_DETACH, run.number);
        for (int i = 0; i < 1000 && access(mark, F_OK) == 0; i++)
                (void) usleep(10000); /* all is written; what is still in the pipe is read before the end is told */
        (void) attach(c, run.number, 0, AP_QUIET);
        conn_expect(c, AP_STDIN_CREDIT);
        conn_empty(c, AP_STDIN_EOF, run.number);
        assert_int_equal(finish(c, run.number)->n, 0);
        (void) attach(c, run.number, 100, 0);
        o = finish(c, run.number);
        assert_int_equal(o->n, AP_KEPT);
        assert_int_equal(o->lost, ALL + 1 - AP_KEPT - 100);
        assert_int_equal(o->text[0], 'x');
        assert_string_equal(o->text + AP_KEPT - 4, "x\nz\n");
        conn_close(c);
}

static void reader_without_credit_stops_the_command(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("head -c 400000 /dev/zero; echo end >&2"));
        struct ap_running run;

        s.credit = 1000;
        run = start(c, &s);
        conn_expect(c, AP_STDIN_CREDIT);
        conn_expect(c, AP_OUTPUT);
        assert_int_equal(c->n, 1001);
        assert_false(conn_next(c, 100));
        conn_u32(c, AP_CREDIT, run.number, 1000000);
        assert_int_equal(finish(c, run.number)->n, 400000 - 1000 + 4);
        conn_close(c);
}

static void connection_that_is_not_read_stops_only_its_commands(void **state) {
        struct conn *c = conn_open(*state), *d = conn_open(*state);
        struct ap_start s = start_of(ARGS("yes")), t = start_of(ARGS("echo", "hi"));
        struct ap_running run = start(c, &s);

        (void) usleep(50000);
        assert_string_equal(finish(d, start(d, &t).number)->text, "hi\n");
        conn_close(c); /* now nobody reads, and it goes on */
        assert_string_equal(finish(d, start(d, &t).number)->text, "hi\n");
        (void) attach(d, run.number, AP_NOW, AP_QUIET);
        conn_u32(d, AP_SIGNAL, run.number, SIGTERM);
        assert_int_equal(finish(d, run.number)->exit.code, SIGTERM);
        conn_close(d);
}

static void many_at_once_and_the_oldest_end_makes_room(void **state) {
        struct conn *c = conn_open(*state), *d = conn_open(*state);
        struct ap_start s = start_of(ARGS("cat")), t = start_of(ARGS("true"));
        static uint8_t b[4096];
        struct wr w = wr_to(b, sizeof(b));
        uint32_t numbers[AP_COMMANDS];
        char step[32];

        for (size_t i = 0; i < AP_COMMANDS; i++) {
                numbers[i] = start(c, &s).number;
                conn_expect(c, AP_STDIN_CREDIT);
        }
        ap_put_start(&w, 1, &t);
        conn_send(d, b, w.len);
        assert_int_equal(conn_error(d, step), EBUSY);
        assert_string_equal(step, "spawn");
        conn_empty(c, AP_STDIN_EOF, numbers[9]);
        assert_int_equal(finish(c, numbers[9])->exit.code, 0);
        for (int i = 0; i < 3; i++) /* each takes the place of the one before it */
                assert_int_equal(finish(d, start(d, &t).number)->exit.code, 0);
        conn_close(c);
        conn_close(d);
}

static void list_names_what_runs(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(ARGS("sleep", "100")), t = start_of(SHELL("exit 1"));
        struct ap_command found;
        struct ap_running run;
        const char *cwd, *argv[8];
        bool cut;

        (void) strcpy(s.tag, "first");
        s.flags = AP_NO_STDIN;
        s.cwd = "/usr";
        run = start(c, &s);
        (void) finish(c, start(c, &t).number);
        conn_empty(c, AP_LIST, 77);
        conn_expect(c, AP_COMMAND);
        assert_int_equal(c->head.id, 77);
        assert_int_equal(ap_get_command(c->body, c->n, &found), 0);
        assert_int_equal(found.number, run.number);
        assert_int_equal(found.pid, run.pid);
        assert_int_equal(found.flags, 0);
        assert_string_equal(found.tag, "first");
        assert_int_equal(ap_get_what(found.what, found.n_what, &cwd, argv, ARRAY_SIZE(argv), &cut), 0);
        assert_string_equal(cwd, "/usr");
        assert_string_equal(argv[1], "100");
        assert_null(argv[2]);
        assert_false(cut);
        conn_expect(c, AP_COMMAND);
        assert_int_equal(ap_get_command(c->body, c->n, &found), 0);
        assert_int_equal(found.flags, AP_HAS_EXITED);
        conn_expect(c, AP_DONE);
        assert_int_equal(c->head.id, 77);
        conn_close(c);
}

static void tag_and_pid_find_the_living(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("exit 1")), t = start_of(ARGS("cat"));
        uint8_t b[1024];
        struct wr w = wr_to(b, sizeof(b));
        struct ap_attach q = { .by = AP_BY_TAG, .tag = "twice", .from = AP_NOW };
        struct ap_running run, found;
        char step[32];

        (void) strcpy(s.tag, "twice");
        (void) strcpy(t.tag, "twice");
        (void) finish(c, start(c, &s).number);
        run = start(c, &t);
        conn_expect(c, AP_STDIN_CREDIT);
        (void) finish(c, start(c, &s).number);
        conn_close(c);
        c = conn_open(*state);
        ap_put_attach(&w, 1, &q);
        q = (struct ap_attach){ .by = AP_BY_PID, .value = run.pid, .from = AP_NOW };
        ap_put_attach(&w, 2, &q);
        q.value = 1; /* the agent is no command */
        ap_put_attach(&w, 3, &q);
        q = (struct ap_attach){ .by = AP_BY_NUMBER, .value = run.number, .from = 1 };
        ap_put_attach(&w, 4, &q);
        conn_send(c, b, w.len);
        for (int i = 0; i < 2;) {
                assert_true(conn_next(c, 5000));
                if (c->head.type != AP_RUNNING)
                        continue;
                assert_int_equal(ap_get_running(c->body, c->n, &found), 0);
                assert_int_equal(found.number, run.number);
                i++;
        }
        while (c->head.type != AP_ERROR)
                assert_true(conn_next(c, 5000));
        assert_int_equal(c->head.id, 3);
        assert_int_equal(conn_error(c, step), ERANGE);
        conn_close(c);
}

static void terminal_has_a_size_and_an_end(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("stty size; read x; stty size; tty >/dev/null && echo is a tty"));
        uint8_t b[64];
        struct wr w = wr_to(b, sizeof(b));
        struct ap_running run;
        struct seen *o;

        s.flags = AP_TTY;
        s.rows = 24, s.columns = 80;
        run = start(c, &s);
        do
                assert_true(conn_next(c, 5000));
        while (c->head.type != AP_OUTPUT);
        ap_put_resize(&w, run.number, 50, 132);
        conn_send(c, b, w.len);
        conn_bytes(c, AP_STDIN, run.number, "\n", 1);
        o = finish(c, run.number);
        assert_non_null(strstr(o->text, "50 132\r\nis a tty\r\n"));
        conn_close(c);
}

static void bad_frame_ends_its_connection_and_no_more(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } bad[] = {
                { "\0\0\0\0\0\0\0\0\0\0", 10 },                  /* impossible length */
                { "\0\0\0\16\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 18 }, /* AP_CONFIGURE is the gate's */
                { "\0\0\0\10\0\10\0\0\0\0\0\0", 12 },            /* AP_ENV too */
                { "\0\0\0\7\0\2\0\0\0\1\0", 11 },                /* AP_SPAWN that ends too early */
                { "\0\0\0\6\0\11\0\0\0\1", 10 },                 /* AP_START without a body */
                { "\0\0\0\12\0\40\0\0\0\1\0\0\0\1", 14 },        /* AP_STARTED: the agent's to say */
                { "\0\0\0\12\0\16\0\0\0\1\0\1\0\0", 14 },        /* AP_PORT 65536 */
                { "\0\0\0\6\0\15\0\0\0\1", 10 },                 /* AP_FILES of nobody */
        };
        struct conn *c = conn_open(*state), *d;
        struct ap_start s = start_of(ARGS("cat"));
        struct ap_running run = start(c, &s);

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                d = conn_open(*state);
                conn_send(d, bad[i].bytes, bad[i].n);
                if (!conn_has_ended(d))
                        fail_msg("bad frame %zu was accepted", i);
                conn_close(d);
        }
        d = conn_open(*state); /* more input than was granted */
        (void) attach(d, run.number, AP_NOW, 0);
        conn_expect(d, AP_STDIN_CREDIT);
        for (int i = 0; i < 6 && !conn_next(d, 0); i++) {
                static const char zeros[AP_CHUNK];
                uint8_t head[AP_HEAD];

                ap_head_put(head, AP_STDIN, run.number, sizeof(zeros));
                if (send(d->fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
                    send(d->fd, zeros, sizeof(zeros), MSG_NOSIGNAL) < 0)
                        break;
        }
        conn_close(d);
        c->len = 0;
        s = start_of(ARGS("echo", "alive"));
        d = conn_open(*state);
        assert_string_equal(finish(d, start(d, &s).number)->text, "alive\n");
        conn_close(d);
        conn_close(c);
}

/* Frames with a good head and any body, and bytes that are nothing. */
static void any_bytes_end_a_connection_at_worst(void **state) {
        uint64_t seed = 42;
        struct ap_start s = start_of(ARGS("echo", "alive"));

        for (int i = 0; i < 400; i++) {
                uint8_t b[512];
                struct conn *c = conn_open(*state);

                for (size_t k = 0; k < sizeof(b); k++) {
                        seed = seed * 6364136223846793005u + 1442695040888963407u;
                        b[k] = seed >> 60 < 9 ? 0 : (uint8_t) (seed >> 33);
                }
                if (i % 4)
                        ap_head_put(b, (enum ap_type)(i % 29), 1, (size_t) b[AP_HEAD] % 64);
                (void) send(c->fd, b, sizeof(b), MSG_NOSIGNAL | MSG_DONTWAIT);
                conn_close(c);
        }
        for (int i = 0; i < 400; i++) { /* sooner or later all have left */
                struct conn *c = conn_open(*state);

                conn_empty(c, AP_LIST, 1);
                if (conn_next(c, 5000) && c->head.type == AP_DONE) {
                        assert_string_equal(finish(c, start(c, &s).number)->text, "alive\n");
                        conn_close(c);
                        return;
                }
                conn_close(c);
        }
        fail_msg("the agent takes no connection any more");
}

static void connections_are_bounded(void **state) {
        struct conn *c[20];
        struct ap_start s = start_of(ARGS("true"));
        unsigned refused = 0;
        char step[32];

        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                uint8_t head[AP_HEAD];

                c[i] = conn_open(*state);
                ap_head_put(head, AP_LIST, 1, 0);
                (void) send(c[i]->fd, head, sizeof(head), MSG_NOSIGNAL); /* fails if it was refused already */
                assert_true(conn_next(c[i], 5000));
                if (c[i]->head.type == AP_ERROR) {
                        refused++;
                        assert_int_equal(ap_get_error(c[i]->body, c[i]->n, &c[i]->head.id, step, sizeof(step)), 0);
                        assert_string_equal(step, "connections");
                }
        }
        assert_int_equal(refused, 4);
        for (size_t i = 0; i < ARRAY_SIZE(c); i++)
                conn_close(c[i]);
        c[0] = conn_open(*state);
        assert_int_equal(finish(c[0], start(c[0], &s).number)->exit.code, 0);
        conn_close(c[0]);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                SHIM_TEST(command_runs_and_ends),
                SHIM_TEST(command_outlives_its_connection),
                SHIM_TEST(only_new_output_follows_unless_asked),
                SHIM_TEST(exit_is_kept_for_who_comes_late),
                SHIM_TEST(lost_output_is_counted),
                SHIM_TEST(reader_without_credit_stops_the_command),
                SHIM_TEST(connection_that_is_not_read_stops_only_its_commands),
                SHIM_TEST(many_at_once_and_the_oldest_end_makes_room),
                SHIM_TEST(list_names_what_runs),
                SHIM_TEST(tag_and_pid_find_the_living),
                SHIM_TEST(terminal_has_a_size_and_an_end),
                SHIM_TEST(bad_frame_ends_its_connection_and_no_more),
                SHIM_TEST(any_bytes_end_a_connection_at_worst),
                SHIM_TEST(connections_are_bounded),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
