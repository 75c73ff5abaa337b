/* test_launcher.c - the real gabion-agent with listening sockets: what a launcher gives its commands. argv[1]: its
 * file. */
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
#include "base/sys.h"
#include "base/wr.h"
#include "process.h"
#include "shim.h"

static void agent_is_the_parent_and_the_pid_is_real(void **state) {
        struct shim *m = *state;
        struct conn *c = conn_open(m);
        struct ap_start s = start_of(SHELL("echo $$ $PPID"));
        struct ap_running run = start(c, &s);
        char want[64];

        (void) snprintf(want, sizeof(want), "%u %d\n", run.pid, (int) m->pid);
        assert_string_equal(finish(c, run.number)->text, want);
        conn_close(c);
}

static void command_holds_three_descriptors_and_leads_its_session(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s =
                start_of(SHELL("for i in 0 1 2 3 4 5 6 7 8 9 10; do [ -e /proc/self/fd/$i ] && echo $i; done;"
                               "grep -E 'SigBlk|SigIgn' /proc/self/status; ps -o sid= -p $$ | tr -d ' '"));
        char want[128];
        struct ap_running run = start(c, &s);

        (void) snprintf(want, sizeof(want), "0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n%u\n",
                        run.pid);
        assert_string_equal(finish(c, run.number)->text, want);
        conn_close(c);
}

static void environment_of_the_sandbox_gives_way_to_the_commands_own(void **state) {
        static const char *const first[] = { "A=sandbox", "B=sandbox", "PATH=/nowhere" };
        static const char *own[] = { "PATH=/usr/bin:/bin", "A=own", "AB=c", NULL };
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(SHELL("echo $A $B $AB"));

        s.envp = own, s.envc = 3;
        shim_env(*state, first, ARRAY_SIZE(first));
        assert_string_equal(finish(c, start(c, &s).number)->text, "own sandbox c\n");
        shim_env(*state, NULL, 0);
        assert_string_equal(finish(c, start(c, &s).number)->text, "own c\n");
        conn_close(c);
}

static void launcher_may_die_and_come_again(void **state) {
        struct shim *m = *state;
        struct conn *c = conn_open(m);
        struct ap_start s = start_of(ARGS("cat")), t = start_of(ARGS("echo", "again"));
        struct ap_running run = start(c, &s);
        static uint8_t b[4096];
        struct wr w = wr_to(b, sizeof(b));
        uint32_t e = 0;
        char step[32];

        assert_int_equal(shim_launch(m, 0, &e), 0);
        assert_int_equal(e, EEXIST);
        conn_expect(c, AP_STDIN_CREDIT);
        assert_int_equal(kill(m->launcher, SIGKILL), 0);
        (void) usleep(50000);
        ap_put_start(&w, 9, &t);
        conn_send(c, b, w.len);
        assert_int_equal(conn_error(c, step), ENOTCONN);
        assert_string_equal(step, "launcher");
        assert_true(shim_launch(m, AP_CLOSE_FDS, NULL) > 0);
        assert_string_equal(finish(c, start(c, &t).number)->text, "again\n");
        conn_empty(c, AP_STDIN_EOF, run.number); /* the first command did not notice */
        assert_int_equal(finish(c, run.number)->exit.code, 0);
        conn_close(c);
}

static void commands_of_one_launcher_share_a_landlock_domain(void **state) {
        struct sys_landlock_attr attr = { .scoped = 2 }; /* signals */
        AUTO_FD int rules = sys_landlock_create(&attr, sizeof(attr));
        struct ap_start s = start_of(ARGS("sleep", "100")), t;
        struct ap_running run;
        struct shim *m;
        struct conn *c, *d;
        char text[64];

        (void) state;
        if (rules < 0 || geteuid() != 0) {
                print_message("needs root and Landlock with scopes\n");
                skip();
        }
        m = shim_start(rules);
        assert_true(shim_launch(m, AP_NO_NEW_PRIVS | AP_LANDLOCK | AP_CLOSE_FDS, NULL) > 0);
        c = conn_open(m);
        d = conn_open(m);
        run = start(c, &s);
        (void) snprintf(text, sizeof(text), "kill -0 %d || kill %u", (int) m->pid,
                        run.pid); /* the agent is out of reach */
        t = start_of(SHELL(text));
        assert_int_equal(finish(d, start(d, &t).number)->exit.code, 0);
        assert_int_equal(finish(c, run.number)->exit.code, SIGTERM);
        conn_close(c);
        conn_close(d);
        shim_stop(m);
}

static void what_cannot_start_is_told(void **state) {
        struct conn *c = conn_open(*state);
        struct ap_start s = start_of(ARGS("no-such-program"));
        static uint8_t b[4096];
        struct wr w = wr_to(b, sizeof(b));
        struct seen *o = finish(c, start(c, &s).number);
        char step[32];

        assert_int_equal(o->exec_errno, ENOENT);
        assert_int_equal(o->exit.code, 127);
        s = start_of(ARGS("true"));
        s.cwd = "/no/such/directory";
        ap_put_start(&w, 5, &s);
        s.cwd = "/", s.uid = 4711;
        ap_put_start(&w, 6, &s);
        conn_send(c, b, w.len);
        assert_int_equal(conn_error(c, step), ENOTCONN);
        assert_string_equal(step, "launcher");
        assert_int_equal(c->head.id, 6);
        assert_int_equal(conn_error(c, step), ENOENT);
        assert_string_equal(step, "chdir");
        assert_int_equal(c->head.id, 5);
        conn_close(c);
}

/* A command may start and end between any two steps of the agent. */
static void ends_of_many_short_commands_are_all_told(void **state) {
        enum { ROUNDS = 60, AT_ONCE = 24 };
        struct conn *c = conn_open(*state);
        struct ap_start runs = start_of(ARGS("true")), fails = start_of(ARGS("no-such-program"));
        static uint8_t b[AT_ONCE * 512];

        runs.flags = fails.flags = AP_NO_STDIN;
        for (int i = 0; i < ROUNDS; i++) {
                struct wr w = wr_to(b, sizeof(b));
                int ended = 0, failed = 0;

                for (uint32_t k = 0; k < AT_ONCE; k++)
                        ap_put_start(&w, k, k % 2 ? &runs : &fails);
                assert_false(w.bad);
                conn_send(c, b, w.len);
                while (ended < AT_ONCE) {
                        if (!conn_next(c, 10000))
                                fail_msg("round %d: %d of %d ended", i, ended, AT_ONCE);
                        ended += c->head.type == AP_EXITED;
                        failed += c->head.type == AP_EXEC_FAILED;
                }
                assert_int_equal(failed, AT_ONCE / 2);
        }
        conn_close(c);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                SHIM_TEST(agent_is_the_parent_and_the_pid_is_real),
                SHIM_TEST(command_holds_three_descriptors_and_leads_its_session),
                SHIM_TEST(environment_of_the_sandbox_gives_way_to_the_commands_own),
                SHIM_TEST(launcher_may_die_and_come_again),
                cmocka_unit_test(commands_of_one_launcher_share_a_landlock_domain),
                SHIM_TEST(what_cannot_start_is_told),
                SHIM_TEST(ends_of_many_short_commands_are_all_told),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
