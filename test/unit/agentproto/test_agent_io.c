/* test_agent_io.c - the real gabion-agent: input, output, terminals, credit. argv[1]: its file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/wr.h"
#include "host.h"
#include "process.h"

static void input_comes_back_as_output(void **state) {
        struct ap_spawn s = host_command(ARGS("cat"));
        struct outcome *o = host_run(*state, &s, "hello\n");

        assert_string_equal(o->text[1], "hello\n");
        assert_int_equal(o->n[2], 0);
        assert_int_equal(o->exit.signalled, 0);
        assert_int_equal(o->exit.code, 0);
        assert_true(o->exit.max_rss_kib > 0);
}

static void streams_are_told_apart(void **state) {
        struct ap_spawn s = host_command(SHELL("echo out; echo err >&2; exit 7"));
        struct outcome *o = host_run(*state, &s, "");

        assert_string_equal(o->text[1], "out\n");
        assert_string_equal(o->text[2], "err\n");
        assert_int_equal(o->exit.code, 7);
}

static void command_without_input_reads_the_null_device(void **state) {
        struct ap_spawn s = host_command(SHELL("cat; readlink /proc/self/fd/0"));
        struct outcome *o;

        s.flags = AP_NO_STDIN;
        o = host_run(*state, &s, NULL);
        assert_string_equal(o->text[1], "/dev/null\n");
}

static void output_stops_where_credit_ends(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("head", "-c", "1000000", "/dev/zero"));
        struct answer a;
        struct ap_head head;
        const uint8_t *body;
        size_t n, total = 0, granted = 1000;
        bool ended = false;

        s.output_credit = (uint32_t) granted;
        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);
        while (!ended) {
                while (!ended && host_next(h, total < granted && total < 1000000 ? PROCESS_MS : 20, &head, &body, &n)) {
                        total += head.type == AP_OUTPUT ? n - 1 : 0;
                        ended = head.type == AP_EXITED;
                        assert_true(total <= granted);
                }
                assert_int_equal(total, granted < 1000000 ? granted : 1000000);
                host_u32(h, AP_CREDIT, 1, 99999);
                granted += 99999;
        }
        assert_int_equal(total, 1000000);
}

static void end_needs_no_credit_beyond_the_output(void **state) {
        struct ap_spawn s = host_command(SHELL("echo hello"));
        struct outcome *o;

        s.output_credit = 6;
        o = host_run(*state, &s, NULL);
        assert_int_equal(o->n[1], 6);
        s.flags = AP_TTY;
        s.output_credit = 7;
        o = host_run(*state, &s, NULL);
        assert_int_equal(o->n[1], 7);
}

static void host_that_does_not_read_is_waited_for(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("head", "-c", "5000000", "/dev/zero"));
        static struct outcome o;
        struct answer a;

        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);
        (void) usleep(200000); /* both the socket and the pipe fill up meanwhile */
        host_finish(h, 1, &o);
        assert_int_equal(o.n[1], 5000000);
}

/* Sends total bytes as they are granted, reads everything back; the number that came out. */
static size_t feed(struct host *h, size_t total) {
        static char chunk[AP_CHUNK];
        size_t sent = 0, granted = 0, out = 0, n;
        struct ap_head head;
        const uint8_t *body;

        for (;;) {
                size_t k = granted - sent < sizeof(chunk) ? granted - sent : sizeof(chunk);
                uint32_t more;

                if (k > total - sent)
                        k = total - sent;
                for (size_t i = 0; i < k; i++)
                        chunk[i] = (char) ((sent + i) % 251);
                if (k > 0)
                        host_stdin(h, 1, chunk, k);
                sent += k;
                if (k > 0 && sent == total)
                        host_eof(h, 1);
                if (k > 0)
                        continue;
                assert_true(host_next(h, 5000, &head, &body, &n));
                if (head.type == AP_EXITED) {
                        assert_int_equal(sent, total);
                        return out;
                }
                if (head.type == AP_STDIN_CREDIT) {
                        assert_int_equal(ap_get_u32(body, n, &more), 0);
                        granted += more;
                        assert_true(granted - sent <= 65536); /* the agent's promise is bounded */
                }
                for (size_t i = 1; head.type == AP_OUTPUT && i < n; i++, out++)
                        assert_int_equal(body[i], out % 251);
        }
}

static void much_input_arrives_whole_and_in_order(void **state) {
        struct ap_spawn s = host_command(ARGS("cat"));
        struct answer a;

        host_spawn(*state, 1, &s);
        a = host_gate(*state);
        host_go(&a);
        assert_int_equal(feed(*state, 1000003), 1000003);
}

static void input_nobody_reads_does_not_hang_the_host(void **state) {
        struct ap_spawn s = host_command(SHELL("exec 0<&-; sleep 0.3"));
        struct answer a;

        host_spawn(*state, 1, &s);
        a = host_gate(*state);
        host_go(&a);
        assert_int_equal(feed(*state, 400000), 0);
}

static void terminal_is_the_commands_own(void **state) {
        struct host *h = *state;
        struct ap_spawn s =
                host_command(SHELL("tty | sed 's/[0-9]//g'; stty size; ps -o tty= -p $$ | grep -c pts; cat"));
        struct outcome *o;
        const char *echo;

        s.flags = AP_TTY, s.rows = 33, s.columns = 101;
        o = host_run(h, &s, "typed\n");
        assert_int_equal(o->exit.code, 0);
        assert_non_null(strstr(o->text[1], "/dev/pts/\r\n"));
        assert_non_null(strstr(o->text[1], "33 101\r\n"));
        echo = strstr(o->text[1], "typed\r\n"); /* at once, maybe before the rest; ^D then ended cat */
        assert_non_null(echo);
        assert_non_null(strstr(echo + 1, "typed\r\n"));
        assert_int_equal(o->n[2], 0);
}

static void terminal_changes_size(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(SHELL("trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.01; done"));
        static struct outcome o;
        struct answer a;
        struct ap_head head;
        const uint8_t *body;
        uint8_t b[32];
        struct wr w = wr_to(b, sizeof(b));
        size_t n;

        s.flags = AP_TTY;
        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);
        do /* the line's end may come by itself */
                assert_true(host_next(h, 5000, &head, &body, &n));
        while (head.type != AP_OUTPUT || body[n - 1] != '\n');
        ap_put_resize(&w, 1, 44, 55);
        host_send(h, b, w.len);
        host_finish(h, 1, &o);
        assert_string_equal(o.text[1], "44 55\r\n");
}

static void much_output_of_a_terminal_arrives_whole(void **state) {
        struct ap_spawn s = host_command(SHELL("head -c 300000 /dev/zero | tr '\\0' x"));
        struct outcome *o;

        s.flags = AP_TTY;
        o = host_run(*state, &s, NULL);
        assert_int_equal(o->n[1], 300000);
}

static void orphan_delays_nothing(void **state) {
        struct ap_spawn s = host_command(SHELL("sleep 30 & (while echo noise; do :; done) & echo last"));
        uint64_t begin = clock_mono_ns();
        struct outcome *o = host_run(*state, &s, NULL);

        assert_true(clock_mono_ns() - begin < 3000000000ull);
        assert_int_equal(o->exit.code, 0);
        assert_non_null(strstr(o->text[1], "last\n"));
}

static void memory_stays_small(void **state) {
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("head", "-c", "100000000", "/dev/zero"));
        char path[64], text[4096] = "", *at;
        struct outcome *o = host_run(h, &s, NULL);
        unsigned long kib;
        int fd;

        assert_int_equal(o->n[1], 100000000);
        (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) h->pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        (void) close(fd);
        at = strstr(text, "VmHWM:");
        assert_non_null(at);
        kib = strtoul(at + 6, NULL, 10);
        print_message("VmHWM after 100 MB of output: %lu KiB\n", kib);
        assert_true(kib < 400);
}

static void agent_refuses_input_it_did_not_grant(void **state) {
        static const char chunk[AP_CHUNK];
        struct host *h = *state;
        struct ap_spawn s = host_command(ARGS("sleep", "1"));
        struct answer a;

        host_spawn(h, 1, &s);
        a = host_gate(h);
        host_go(&a);                /* until then the agent waits with the command and reads nothing */
        for (int i = 0; i < 4; i++) /* what the pipe and the agent can hold while nobody reads */
                host_stdin(h, 1, chunk, AP_CHUNK);
        host_stdin(h, 1, "x", 1);
        assert_int_equal(host_wait(h), 20);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                HOST_TEST(input_comes_back_as_output),
                HOST_TEST(streams_are_told_apart),
                HOST_TEST(command_without_input_reads_the_null_device),
                HOST_TEST(output_stops_where_credit_ends),
                HOST_TEST(end_needs_no_credit_beyond_the_output),
                HOST_TEST(host_that_does_not_read_is_waited_for),
                HOST_TEST(much_input_arrives_whole_and_in_order),
                HOST_TEST(input_nobody_reads_does_not_hang_the_host),
                HOST_TEST(terminal_is_the_commands_own),
                HOST_TEST(terminal_changes_size),
                HOST_TEST(much_output_of_a_terminal_arrives_whole),
                HOST_TEST(orphan_delays_nothing),
                HOST_TEST(memory_stays_small),
                HOST_TEST(agent_refuses_input_it_did_not_grant),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
