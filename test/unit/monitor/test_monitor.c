/* What happens in a sandbox goes in, what breaks a rule comes out: once, with its rule, and not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "cgroup/cgroup.h"
#include "json/json.h"
#include "monitor/monitor.h"

static struct policy policy;
static struct monitor m;
static unsigned n_found;
static char last[128];
static enum policy_action action;

static void on_found(void *arg, const struct monitor_finding *f) {
        (void) arg;
        n_found++;
        action = f->action;
        (void) snprintf(last, sizeof(last), "%s %s", f->rule, f->object);
}

static void on_file(void *arg, bool written, const char *path) {
        (void) arg, (void) written, (void) path;
        fail_msg("no file is watched");
}

static void begin(const char *yaml) {
        static const struct monitor_to to = { .found = on_found, .file = on_file };
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };

        policy_default(&policy);
        assert_int_equal(json_parse_yaml("p.yaml", yaml, strlen(yaml), &doc, NULL, &err), 0);
        assert_int_equal(policy_decode(doc, &policy, &err), 0);
        assert_int_equal(monitor_start(&m, &policy, 1, -1, &to, &err), 0);
        assert_int_equal(monitor_fd(&m), -1);
        n_found = 0;
}

static void nothing_is_watched_by_default(void **state) {
        (void) state;
        begin("version: 1\nmonitor: { on_drift: kill }\n");
        assert_false(monitor_any(&policy));
        assert_false(monitor_call(&m));
        monitor_host(&m, "evil.example");
        monitor_usage(&m, &(struct cgroup_usage){ .tasks = 1000, .memory_peak_bytes = 1ull << 40 });
        assert_int_equal(n_found, 0);
        monitor_done(&m);
}

static void a_burst_is_one_more_than_allowed(void **state) {
        (void) state;
        begin("version: 1\nmonitor: { refused_calls: { over: 3, within: 10s, action: kill } }\n");
        assert_true(monitor_any(&policy));
        for (int i = 0; i < 3; i++)
                assert_false(monitor_call(&m));
        assert_true(monitor_call(&m));
        assert_int_equal(n_found, 1);
        assert_int_equal(action, POLICY_KILL);
        assert_string_equal(last, "monitor.refused_calls refused calls");
        for (int i = 0; i < 100; i++) /* at most once a second */
                assert_false(monitor_call(&m));
        monitor_done(&m);
}

static void old_calls_do_not_count(void **state) {
        (void) state;
        begin("version: 1\nmonitor: { refused_calls: { over: 3, within: 1s } }\n");
        for (int i = 0; i < 3; i++)
                (void) monitor_call(&m);
        for (int i = 0; i < 4; i++) /* as if they had been a while ago */
                m.calls_ns[i] = m.calls_ns[i] > 2000000000 ? m.calls_ns[i] - 2000000000 : 0;
        for (int i = 0; i < 3; i++)
                assert_false(monitor_call(&m));
        assert_true(monitor_call(&m));
        monitor_done(&m);
}

static void more_than_can_be_counted_is_the_most_that_can(void **state) {
        unsigned n = 0;

        (void) state;
        begin("version: 1\nmonitor: { refused_calls: { over: 100000, within: 60s } }\n");
        while (!monitor_call(&m))
                n++;
        assert_int_equal(n, MONITOR_CALLS - 1);
        monitor_done(&m);
}

static void hosts_that_are_expected_are_silent(void **state) {
        (void) state;
        begin("version: 1\nmonitor: { hosts: { expect: [ a.example, b.example ], action: freeze } }\n");
        monitor_host(&m, "a.example");
        monitor_host(&m, "b.example");
        assert_int_equal(n_found, 0);
        monitor_host(&m, "sub.a.example");
        assert_int_equal(n_found, 1);
        assert_int_equal(action, POLICY_FREEZE);
        assert_string_equal(last, "monitor.hosts sub.a.example");
        monitor_host(&m, "c.example");
        assert_int_equal(n_found, 1);
        monitor_done(&m);
}

static void a_spike_is_told_once(void **state) {
        (void) state;
        begin("version: 1\nmonitor: { resources: { memory: 100M, pids: 10, action: log } }\n");
        monitor_usage(&m, &(struct cgroup_usage){ .tasks = 10, .memory_peak_bytes = 100 << 20 });
        assert_int_equal(n_found, 0);
        monitor_usage(&m, &(struct cgroup_usage){ .tasks = 11 });
        monitor_usage(&m, &(struct cgroup_usage){ .tasks = 1, .memory_peak_bytes = 200 << 20 });
        assert_int_equal(n_found, 1);
        monitor_done(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_watched_by_default),
                cmocka_unit_test(a_burst_is_one_more_than_allowed),
                cmocka_unit_test(old_calls_do_not_count),
                cmocka_unit_test(more_than_can_be_counted_is_the_most_that_can),
                cmocka_unit_test(hosts_that_are_expected_are_silent),
                cmocka_unit_test(a_spike_is_told_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
