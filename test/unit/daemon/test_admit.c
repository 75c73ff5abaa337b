/* test_admit.c - the queue in front of the machine, on a real loop. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/admit.h"
#include "daemon/daemon.h"

enum { OPS = 8 };

struct fixture {
        struct daemon d;
        struct admit *admit;
        struct admit_op ops[OPS];
        char log[64]; /* which were started, as letters; refused ones as capitals */
        char code[32];
};

static struct fixture *fixture; /* callbacks have no argument of their own */

static void note(char c) {
        size_t n = strlen(fixture->log);

        assert_true(n + 1 < sizeof(fixture->log));
        fixture->log[n] = c;
        fixture->log[n + 1] = '\0';
}

static void on_start(struct admit_op *op) {
        note((char) ('a' + (op - fixture->ops)));
}

static void on_refuse(struct admit_op *op, const struct quota_refusal *why) {
        note((char) ('A' + (op - fixture->ops)));
        assert_true(why->retry_after_s > 0);
        (void) str_copy(fixture->code, sizeof(fixture->code), why->code);
}

static int set_up(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));
        struct err err = { 0 };

        config_default(&f->d.config);
        f->d.config.capacity.sandboxes = 2;
        f->d.config.capacity.reserve_bytes = 1;
        f->d.config.queue.starting = 2;
        f->d.config.queue.waiting = 3;
        f->d.config.queue.waiting_tenant = 2;
        f->d.config.queue.wait_ms = 50;
        f->d.base = event_base_new();
        f->d.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
        for (size_t i = 0; i < OPS; i++) {
                f->ops[i].start = on_start;
                f->ops[i].refuse = on_refuse;
                f->ops[i].need = (struct quota_need){ .cpu_milli = 1000 };
        }
        fixture = f;
        *state = f;
        return f->d.base && admit_new(&f->d, &f->admit, &err) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
        struct fixture *f = *state;

        f->admit = admit_free(f->admit);
        event_base_free(f->d.base);
        (void) close(f->d.meminfo_fd);
        config_done(&f->d.config);
        free(f);
        return 0;
}

static void submit(struct fixture *f, size_t i, const char *tenant) {
        (void) str_copy(f->ops[i].tenant, sizeof(f->ops[i].tenant), tenant);
        admit_submit(f->admit, &f->ops[i]);
}

static void turn(struct fixture *f) {
        (void) event_base_loop(f->d.base, EVLOOP_NONBLOCK);
}

static void room_is_given_at_once_and_then_in_turn(void **state) {
        struct fixture *f = *state;

        submit(f, 0, "x");
        submit(f, 1, "x");
        submit(f, 2, "x");
        assert_string_equal(f->log, "ab");
        admit_started(f->admit, &f->ops[0], true); /* it runs: its place stays taken */
        turn(f);
        assert_string_equal(f->log, "ab");
        admit_give(f->admit, &f->ops[0].need);
        turn(f);
        assert_string_equal(f->log, "abc");
        admit_started(f->admit, &f->ops[1], false); /* it failed: the place is free */
        submit(f, 3, "x");
        assert_string_equal(f->log, "abcd");
}

static void queues_have_an_end(void **state) {
        struct fixture *f = *state;

        submit(f, 0, "x");
        submit(f, 1, "x");
        submit(f, 2, "x");
        submit(f, 3, "x");
        submit(f, 4, "x"); /* the tenant's part */
        assert_string_equal(f->log, "abE");
        submit(f, 5, "y");
        submit(f, 6, "z"); /* the whole */
        assert_string_equal(f->log, "abEG");
        assert_string_equal(f->code, "quota.queue");
}

static void waiting_has_an_end(void **state) {
        struct fixture *f = *state;

        submit(f, 0, "x");
        submit(f, 1, "x");
        submit(f, 2, "x");
        for (unsigned i = 0; i < 100 && !strchr(f->log, 'C'); i++) {
                (void) usleep(5000);
                turn(f);
        }
        assert_string_equal(f->log, "abC");
        assert_string_equal(f->code, "quota.capacity");
}

static void tenants_take_turns(void **state) {
        struct fixture *f = *state;

        submit(f, 0, "greedy");
        submit(f, 1, "greedy");
        submit(f, 2, "greedy");
        submit(f, 3, "greedy");
        submit(f, 4, "modest");
        admit_started(f->admit, &f->ops[0], false);
        turn(f);
        assert_string_equal(f->log, "abe"); /* last to come, first to go: its tenant has nothing under way */
}

static void cancelled_ones_leave_no_trace(void **state) {
        struct fixture *f = *state;
        struct admit_state s;

        submit(f, 0, "x");
        submit(f, 1, "x");
        submit(f, 2, "x");
        admit_cancel(f->admit, &f->ops[2]);
        admit_started(f->admit, &f->ops[0], false);
        turn(f);
        assert_string_equal(f->log, "ab");
        admit_look(f->admit, &s);
        assert_true(s.waiting == 0 && s.starting == 1 && s.used.sandboxes == 1 && s.memory_free_bytes > 0);
}

static void sums_of_the_machine_count(void **state) {
        struct fixture *f = *state;

        f->d.config.capacity.cpu_milli = 1500;
        submit(f, 0, "x");
        submit(f, 1, "x");
        assert_string_equal(f->log, "a");
        f->d.config.capacity.cpu_milli = 0;
        admit_started(f->admit, &f->ops[0], true);
        turn(f);
        assert_string_equal(f->log, "ab");
}

static void low_memory_makes_wait(void **state) {
        struct fixture *f = *state;

        f->d.config.capacity.reserve_bytes = UINT64_MAX;
        submit(f, 0, "x");
        assert_string_equal(f->log, "");
}

static void nothing_begins_while_stopping(void **state) {
        struct fixture *f = *state;

        f->d.stopping = true;
        submit(f, 0, "x");
        assert_string_equal(f->log, "A");
        assert_string_equal(f->code, "quota.stopping");
}

static void meminfo_is_read(void **state) {
        (void) state;
        assert_int_equal(admit_parse_meminfo("MemTotal: 5 kB\nMemAvailable:   1024 kB\nX: 1 kB\n"), 1024 * 1024);
        assert_int_equal(admit_parse_meminfo("MemTotal: 5 kB\n"), 0);
        assert_int_equal(admit_parse_meminfo(""), 0);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WITH(room_is_given_at_once_and_then_in_turn),
                WITH(queues_have_an_end),
                WITH(waiting_has_an_end),
                WITH(tenants_take_turns),
                WITH(cancelled_ones_leave_no_trace),
                WITH(sums_of_the_machine_count),
                WITH(low_memory_makes_wait),
                WITH(nothing_begins_while_stopping),
                cmocka_unit_test(meminfo_is_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
