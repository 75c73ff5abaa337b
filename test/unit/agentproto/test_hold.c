/* test_hold.c - the real gabion-agent with listening sockets: a start that waits for AP_GO. argv[1]: its file. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/wr.h"
#include "process.h"
#include "shim.h"

enum { QUIET_MS = 100, MANY = 20 }; /* more at once than a launcher has places for */

static char mark[64], make_mark[128];

static int set_up(void **state) {
        (void) snprintf(mark, sizeof(mark), "/tmp/gabion-hold-%d", (int) getpid());
        (void) snprintf(make_mark, sizeof(make_mark), "echo ran; : >%s", mark);
        (void) unlink(mark);
        return shim_set_up(state);
}

static int tear_down(void **state) {
        (void) unlink(mark);
        return shim_tear_down(state);
}

#define HOLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static bool has_run(void) {
        return access(mark, F_OK) == 0;
}

static void send_held(struct conn *c, uint32_t id, const char **argv, const char *cwd) {
        struct ap_start s = start_of(argv);
        static uint8_t b[4096];
        struct wr w = wr_to(b, sizeof(b));

        s.flags |= AP_HOLD;
        s.cwd = cwd;
        ap_put_start(&w, id, &s);
        assert_false(w.bad);
        conn_send(c, b, w.len);
}

static struct ap_running go(struct conn *c, uint32_t id) {
        struct ap_running run;

        conn_u32(c, AP_GO, id, 1);
        conn_expect(c, AP_RUNNING);
        assert_int_equal(c->head.id, id);
        assert_int_equal(ap_get_running(c->body, c->n, &run), 0);
        return run;
}

/* The agent's children beside the launcher; *ret is one of them. */
static int count_held(const struct shim *m, pid_t *ret) {
        char path[64], line[1024] = "", *at = line;
        FILE *f;
        int n = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) m->pid, (int) m->pid);
        f = fopen(path, "re");
        assert_non_null(f);
        (void) !fgets(line, sizeof(line), f);
        (void) fclose(f);
        for (char *end; (end = strchr(at, ' ')); at = end + 1) {
                pid_t pid = (pid_t) strtol(at, NULL, 10);

                if (pid != m->launcher)
                        *ret = pid, n++;
        }
        return n;
}

static pid_t wait_held(const struct shim *m, int wanted) {
        pid_t pid = 0;

        for (int i = 0; count_held(m, &pid) != wanted; i++) {
                assert_true(i < 500);
                (void) usleep(10000);
        }
        return pid;
}

static void nothing_runs_and_nothing_is_told_before_go(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start other = start_of(ARGS("echo", "other"));

        send_held(c, 7, SHELL(make_mark), "/");
        (void) wait_held(*state, 1);
        assert_false(conn_next(c, QUIET_MS));
        conn_empty(c, AP_LIST, 8);
        conn_expect(c, AP_DONE);
        assert_string_equal(finish(c, start(c, &other).number)->text, "other\n"); /* it holds up nobody */
        assert_false(has_run());
        assert_string_equal(finish(c, go(c, 7).number)->text, "ran\n");
        assert_true(has_run());
        conn_close(c);
}

static void refused_start_ends_before_its_program(void **state) {
        struct conn *c = conn_open(*state);
        char step[32];

        send_held(c, 7, SHELL(make_mark), "/");
        (void) wait_held(*state, 1);
        conn_u32(c, AP_GO, 7, 0);
        assert_int_equal(conn_error(c, step), ECANCELED);
        assert_string_equal(step, "hold");
        (void) wait_held(*state, 0);
        conn_u32(c, AP_GO, 7, 1); /* too late: about nothing any more */
        assert_false(conn_next(c, QUIET_MS));
        assert_false(has_run());
        conn_close(c);
}

static void held_start_ends_with_its_connection(void **state) {
        struct conn *c = conn_open(*state), *d = conn_open(*state);

        send_held(c, 7, SHELL(make_mark), "/");
        (void) wait_held(*state, 1);
        conn_u32(d, AP_GO, 7, 1); /* not theirs */
        assert_false(conn_next(d, QUIET_MS));
        conn_close(c);
        (void) wait_held(*state, 0);
        conn_empty(d, AP_LIST, 8);
        conn_expect(d, AP_DONE);
        assert_false(has_run());
        conn_close(d);
}

static void many_are_held_at_once_each_with_its_own(void **state) {
        struct conn *c = conn_open(*state);
        char words[MANY][32], want[40];

        for (uint32_t i = 0; i < MANY; i++) {
                (void) snprintf(words[i], sizeof(words[i]), "number %u of many", i);
                send_held(c, 100 + i, ARGS("echo", words[i]), "/");
        }
        (void) wait_held(*state, MANY);
        assert_false(conn_next(c, QUIET_MS));
        for (uint32_t i = MANY; i-- > 0;) {
                (void) snprintf(want, sizeof(want), "%s\n", words[i]);
                assert_string_equal(finish(c, go(c, 100 + i).number)->text, want);
        }
        conn_close(c);
}

static void failure_is_told_after_go(void **state) {
        struct conn *c = conn_open(*state);
        char step[32];

        send_held(c, 7, SHELL(make_mark), "/no/such/directory");
        assert_false(conn_next(c, QUIET_MS));
        conn_u32(c, AP_GO, 7, 1);
        assert_int_equal(conn_error(c, step), ENOENT);
        assert_string_equal(step, "chdir");
        send_held(c, 8, ARGS("no-such-program"), "/");
        assert_int_equal(finish(c, go(c, 8).number)->exec_errno, ENOENT);
        conn_close(c);
}

static void signals_wait_for_go_but_one(void **state) {
        struct conn *c = conn_open(*state);
        static const int signals[] = { SIGTERM, SIGKILL };

        for (uint32_t i = 0; i < ARRAY_SIZE(signals); i++) {
                struct seen *o;

                send_held(c, 7 + i, SHELL(make_mark), "/");
                (void) wait_held(*state, 1);
                assert_false(conn_next(c, 5 * QUIET_MS)); /* by then it has told the agent its number, too */
                assert_int_equal(kill(wait_held(*state, 1), signals[i]), 0);
                assert_false(conn_next(c, QUIET_MS));
                o = finish(c, go(c, 7 + i).number);
                assert_true(o->exit.signalled);
                assert_int_equal(o->exit.code, signals[i]);
                assert_false(has_run());
        }
        conn_close(c);
}

/* At any moment, also before the child has told its number: whoever says go is answered. */
static void killed_while_it_is_held_is_told_at_go(void **state) {
        struct conn *c = conn_open(*state);

        for (uint32_t i = 0; i < MANY; i++) {
                pid_t pid = 0;

                send_held(c, 7 + i, SHELL(make_mark), "/");
                while (count_held(*state, &pid) == 0)
                        ;
                assert_int_equal(kill(pid, SIGKILL), 0);
                for (int ms = 0; ms < PROCESS_MS && kill(pid, 0) == 0; ms++) /* on a busy machine it dies later */
                        (void) usleep(1000);
                (void) usleep(20000);
                conn_u32(c, AP_GO, 7 + i, 1);
                assert_true(conn_next(c, PROCESS_MS));
                if (c->head.type == AP_RUNNING) {
                        struct ap_running run;

                        assert_int_equal(ap_get_running(c->body, c->n, &run), 0);
                        assert_true(finish(c, run.number)->exit.signalled);
                } else {
                        assert_int_equal(c->head.type, AP_ERROR);
                }
                assert_false(has_run());
        }
        conn_close(c);
}

static void new_variables_do_not_change_what_is_held(void **state) {
        static const char *const first[] = { "A=first" }, *const second[] = { "A=second" };
        struct ap_start s = start_of(SHELL("echo $A"));
        const struct shim *m = *state;
        struct conn *c = conn_open(m);
        static uint8_t b[4096];
        struct wr w = wr_to(b, sizeof(b));
        char step[32];
        uint32_t e;

        shim_env(*state, first, 1);
        send_held(c, 7, SHELL("echo $A"), "/");
        (void) wait_held(*state, 1);
        shim_env(*state, second, 1);
        for (int i = 0; kill(m->launcher, 0) == 0 && i < 500; i++)
                (void) usleep(10000); /* it ends rather than change what is in use */
        assert_string_equal(finish(c, go(c, 7).number)->text, "first\n");
        ap_put_start(&w, 9, &s);
        conn_send(c, b, w.len);
        e = conn_error(c, step);
        assert_true(e == ENOTCONN || e == EPIPE);
        assert_string_equal(step, "launcher");
        assert_true(shim_launch(*state, AP_CLOSE_FDS, NULL) > 0);
        assert_string_equal(finish(c, start(c, &s).number)->text, "second\n");
        conn_close(c);
}

static void malformed_go_ends_the_connection(void **state) {
        struct conn *c = conn_open(*state), *d = conn_open(*state);

        send_held(c, 7, SHELL(make_mark), "/");
        conn_u32(c, AP_GO, 7, 2);
        assert_true(conn_has_ended(c));
        conn_empty(d, AP_GO, 7);
        assert_true(conn_has_ended(d));
        (void) wait_held(*state, 0);
        assert_false(has_run());
        conn_close(c);
        conn_close(d);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                HOLD_TEST(nothing_runs_and_nothing_is_told_before_go),
                HOLD_TEST(refused_start_ends_before_its_program),
                HOLD_TEST(held_start_ends_with_its_connection),
                HOLD_TEST(many_are_held_at_once_each_with_its_own),
                HOLD_TEST(failure_is_told_after_go),
                HOLD_TEST(signals_wait_for_go_but_one),
                HOLD_TEST(killed_while_it_is_held_is_told_at_go),
                HOLD_TEST(new_variables_do_not_change_what_is_held),
                HOLD_TEST(malformed_go_ends_the_connection),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
