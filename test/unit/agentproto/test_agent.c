/* test_agent.c - the real gabion-agent: how commands start and end, and what makes the agent itself end. argv[1]: its
 * file. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host.h"
#include "process.h"

static void commands_follow_each_other(void **state) {
        for (int i = 0; i < 20; i++) {
                char text[32];
                struct ap_spawn s = host_command(SHELL(text));
                struct outcome *o;

                (void) snprintf(text, sizeof(text), "exit %d", i * 13);
                o = host_run(*state, &s, NULL);
                assert_int_equal(o->exit.code, i * 13);
        }
}

static void command_holds_three_descriptors_and_no_signal_settings(void **state) {
        struct ap_spawn s = host_command(SHELL(
                "for i in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$i ] && echo $i; done; grep -E 'Sig(Blk|Ign|Pnd)|ShdPnd' /proc/self/status"));
        struct outcome *o = host_run(*state, &s, NULL);

        assert_string_equal(o->text[1], "0\n1\n2\n"
                                        "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
                                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void signal_reaches_the_whole_group(void **state) {
        struct host *h = *state;
        /* The shell ends only after its child did, and that does so only if it was told too. */
        struct ap_spawn s = host_command(SHELL("trap 'wait; exit 9' TERM; (echo up; exec sleep 30) & wait"));
        static struct outcome o;
        struct answer a;
        struct ap_head head;
        const uint8_t *body;
        size_t n;

        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);
        do
                assert_true(host_next(h, 5000, &head, &body, &n));
        while (head.type != AP_OUTPUT);
        host_u32(h, AP_SIGNAL, 1, SIGTERM);
        host_finish(h, 1, &o);
        assert_int_equal(o.exit.signalled, 0);
        assert_int_equal(o.exit.code, 9);
}

static void death_by_signal_is_reported(void **state) {
        struct ap_spawn s = host_command(SHELL("kill -9 $$"));
        struct outcome *o = host_run(*state, &s, NULL);

        assert_int_equal(o->exit.signalled, 1);
        assert_int_equal(o->exit.code, SIGKILL);
}

/* path may be NULL. */
static uint32_t exec_errno(struct host *h, const char *name, const char *path) {
        struct ap_spawn s = host_command(ARGS(name));
        const char *env[] = { path, NULL };
        static struct outcome o;
        uint8_t frame[64];
        struct answer a;
        uint32_t e = 0;
        ssize_t n;

        if (path)
                s.envp = env;
        host_spawn(h, 1, &s);
        a = host_gate(h);
        assert_int_equal(a.err_no, 0);
        assert_int_equal(write(a.pair, "g", 1), 1);
        n = read(a.pair, frame, sizeof(frame));
        assert_true(n > 0);
        assert_int_equal(ap_get_exec_failed(frame, (size_t) n, &e), 0);
        (void) close(a.pair);
        host_finish(h, 1, &o);
        assert_int_equal(o.exit.code, 127);
        return e;
}

static void program_that_cannot_start_is_named_as_shells_do(void **state) {
        char file[] = "/tmp/gabion-test-XXXXXX";
        int fd = mkstemp(file);

        assert_true(fd >= 0);
        assert_int_equal(exec_errno(*state, file, NULL), EACCES);
        assert_int_equal(fchmod(fd, 0755), 0);
        (void) close(fd);
        assert_int_equal(exec_errno(*state, file, NULL), ENOEXEC);
        (void) unlink(file);
        assert_int_equal(exec_errno(*state, "no-such-program", NULL), ENOENT);
        assert_int_equal(exec_errno(*state, "/no/such/program", NULL), ENOENT);
        assert_int_equal(exec_errno(*state, "/etc/passwd/program", NULL), ENOTDIR);
        assert_int_equal(exec_errno(*state, "/usr", NULL), EACCES);
        assert_int_equal(exec_errno(*state, "", NULL), ENOENT);
}

static void path_is_taken_from_the_commands_environment(void **state) {
        const char *cwd[] = { "A=b", "PATH=", NULL }, *empty[] = { NULL };
        struct ap_spawn s = host_command(ARGS("true"));

        s.envp = empty, s.envc = 0; /* the default path */
        assert_int_equal(host_run(*state, &s, NULL)->exit.code, 0);
        s.envp = cwd, s.envc = 2, s.cwd = "/usr/bin";
        assert_int_equal(host_run(*state, &s, NULL)->exit.code, 0);
        assert_int_equal(exec_errno(*state, "true", "PATH=/no:/such"), ENOENT);
        assert_int_equal(exec_errno(*state, "passwd", "PATH=/no:/etc:/such"), EACCES); /* there, but no program */
}

static void directory_that_is_not_there_is_told_over_the_gate(void **state) {
        struct ap_spawn s = host_command(ARGS("true"));
        static struct outcome o;
        struct answer a;

        s.cwd = "/no/such/directory";
        host_spawn(*state, 1, &s);
        a = host_gate(*state);
        assert_int_equal(a.err_no, ENOENT);
        assert_string_equal(a.step, "chdir");
        assert_int_equal(a.pair, -1);
        host_finish(*state, 1, &o);
        assert_int_equal(o.exit.code, 125);
}

static void command_starts_only_on_the_word_go(void **state) {
        static const char *const words[] = { "x", "gg", NULL };
        struct ap_spawn s = host_command(ARGS("echo", "ran"));
        static struct outcome o;

        for (size_t i = 0; i < 3; i++) {
                struct answer a;

                host_spawn(*state, 1, &s);
                a = host_gate(*state);
                if (words[i])
                        assert_true(write(a.pair, words[i], strlen(words[i])) > 0);
                (void) close(a.pair);
                host_finish(*state, 1, &o);
                assert_int_equal(o.exit.code, 125);
                assert_int_equal(o.n[1], 0);
        }
}

static void many_commands_run_at_once_and_one_too_many_is_refused(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("cat"));
        struct answer a;
        unsigned ended = 0;

        for (uint32_t id = 1; id <= AP_COMMANDS; id++) {
                host_spawn(h, id, &s);
                a = host_gate(h);
                host_go(&a);
        }
        host_spawn(h, AP_COMMANDS + 1, &s);
        a = host_gate(h);
        assert_int_equal(a.err_no, EBUSY);
        assert_string_equal(a.step, "spawn");
        for (uint32_t id = 1; id <= AP_COMMANDS; id++)
                host_eof(h, id);
        while (ended < AP_COMMANDS) {
                struct ap_head head;
                const uint8_t *body;
                size_t n;

                assert_true(host_next(h, 5000, &head, &body, &n));
                ended += head.type == AP_EXITED;
        }
}

static void long_and_many_arguments_arrive(void **state) {
        static char one[100001], piece[121];
        static const char *many[2004] = { "sh", "-c", "echo $# ${1999}" };
        struct ap_spawn s = host_command(ARGS("printf", "%s", one));
        struct outcome *o;

        memset(one, 'y', 10000);
        o = host_run(*state, &s, NULL);
        assert_int_equal(o->n[1], 10000);
        assert_string_equal(o->text[1], one);
        memset(one, 'y', sizeof(one) - 1);
        o = host_run(*state, &s, NULL);
        assert_int_equal(o->n[1], sizeof(one) - 1);

        memset(piece, 'z', sizeof(piece) - 1);
        for (size_t i = 3; i < 2003; i++)
                many[i] = piece;
        s = host_command(many); /* 2,000 * 125 bytes = 250,000 on the wire */
        o = host_run(*state, &s, NULL);
        assert_int_equal(strncmp(o->text[1], "1999 zzz", 8), 0);
        assert_int_equal(o->n[1], 5 + 120 + 1);
}

static void agent_ends_with_its_host(void **state) {
        struct host *h = *state;

        (void) close(h->control);
        h->control = -1;
        assert_int_equal(host_wait(h), 0);
}

static void agent_ends_when_its_host_says_no_more(void **state) {
        struct host *h = *state;

        assert_int_equal(shutdown(h->control, SHUT_WR), 0);
        assert_int_equal(host_wait(h), 0);
}

static void agent_ends_with_its_host_while_a_command_runs(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("yes"));
        struct answer a;

        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);
        (void) usleep(50000);
        (void) close(h->control);
        h->control = -1;
        assert_int_equal(host_wait(h), 0); /* yes itself ends by SIGPIPE */
}

static void agent_refuses_bad_frames(void **state) {
        struct host *h = *state;
        static const struct {
                const char *bytes;
                size_t n;
        } bad[] = {
                { "\0\0\0\0", 4 },                               /* impossible length */
                { "\0\0\0\6\0\143\0\0\0\1", 10 },                /* unknown type */
                { "\0\0\0\16\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 18 }, /* a second AP_CONFIGURE */
                { "\0\0\0\12\0\40\0\0\0\1\0\0\0\1", 14 },        /* AP_STARTED: the agent's to say */
                { "\0\0\0\7\0\2\0\0\0\1\0", 11 },                /* AP_SPAWN that ends too early */
                { "\0\0\0\12\0\5\0\0\0\1\0\0\0\101", 14 },       /* signal 65 */
                { "\0\0\0\7\0\4\0\0\0\1\0", 11 },                /* end of input with a body */
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                if (i > 0) {
                        h = host_start(-1);
                        host_configure(h);
                }
                host_send(h, bad[i].bytes, bad[i].n);
                if (host_wait(h) != 20)
                        fail_msg("bad frame %zu was accepted", i);
                if (i > 0)
                        host_stop(h);
        }
        h = host_start(-1);
        host_u32(h, AP_SIGNAL, 1, 15); /* before AP_CONFIGURE */
        assert_int_equal(host_wait(h), 20);
        host_stop(h);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                HOST_TEST(commands_follow_each_other),
                HOST_TEST(command_holds_three_descriptors_and_no_signal_settings),
                HOST_TEST(signal_reaches_the_whole_group),
                HOST_TEST(death_by_signal_is_reported),
                HOST_TEST(program_that_cannot_start_is_named_as_shells_do),
                HOST_TEST(path_is_taken_from_the_commands_environment),
                HOST_TEST(directory_that_is_not_there_is_told_over_the_gate),
                HOST_TEST(command_starts_only_on_the_word_go),
                HOST_TEST(many_commands_run_at_once_and_one_too_many_is_refused),
                HOST_TEST(long_and_many_arguments_arrive),
                HOST_TEST(agent_ends_with_its_host),
                HOST_TEST(agent_ends_when_its_host_says_no_more),
                HOST_TEST(agent_ends_with_its_host_while_a_command_runs),
                HOST_TEST(agent_refuses_bad_frames),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
