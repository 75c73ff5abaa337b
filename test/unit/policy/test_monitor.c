/* What is watched is read as written, survives the canonical form, and wrong values name their key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/policy.h"

static struct policy p, again;

static int decode(const char *yaml, struct policy *into, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;

        policy_default(into);
        if (json_parse_yaml("p.yaml", yaml, strlen(yaml), &doc, NULL, err) < 0)
                return err->code;
        return policy_decode(doc, into, err);
}

static void says(const char *yaml, const char *want) {
        struct err err = { 0 };

        assert_int_equal(decode(yaml, &p, &err), -EINVAL);
        if (!strstr(err.msg, want))
                fail_msg("'%s' is said, not '%s'", err.msg, want);
}

static const char all[] = "version: 1\n"
                          "filesystem: { watch: [ /out, /home/user/.ssh ] }\n"
                          "monitor:\n"
                          "  on_drift: kill\n"
                          "  interval: 500ms\n"
                          "  refused_calls: { over: 5, within: 3s, action: freeze }\n"
                          "  programs: { expect: [ sh, python3 ], action: kill }\n"
                          "  hosts: { expect: [ api.example.com ] }\n"
                          "  writes: { action: freeze }\n"
                          "  resources: { memory: 400M, pids: 50, action: log }\n";

static void everything_is_read_as_written(void **state) {
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode(all, &p, &err), 0);
        assert_int_equal(p.n_watch, 2);
        assert_string_equal(p.watch[1], "/home/user/.ssh");
        assert_int_equal(p.monitor.on_drift, POLICY_KILL);
        assert_int_equal(p.monitor.interval_ms, 500);
        assert_true(p.monitor.refused_calls.on && p.monitor.refused_calls.over == 5);
        assert_int_equal(p.monitor.refused_calls.within_ms, 3000);
        assert_int_equal(p.monitor.refused_calls.action, POLICY_FREEZE);
        assert_int_equal(p.monitor.programs.expect.n, 2);
        assert_string_equal(p.monitor.programs.expect.names[1], "python3");
        assert_int_equal(p.monitor.programs.action, POLICY_KILL);
        assert_int_equal(p.monitor.hosts.action, POLICY_LOG);
        assert_int_equal(p.monitor.resources.memory_bytes, 400 << 20);
        assert_int_equal(p.monitor.resources.pids, 50);
}

static void defaults_watch_for_drift_and_nothing_else(void **state) {
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode("version: 1\nmonitor: { refused_calls: {} }\n", &p, &err), 0);
        assert_int_equal(p.monitor.on_drift, POLICY_FREEZE);
        assert_int_equal(p.monitor.interval_ms, 1000);
        assert_true(p.monitor.refused_calls.on && p.monitor.refused_calls.action == POLICY_LOG);
        assert_false(p.monitor.programs.on || p.monitor.hosts.on || p.monitor.writes.on || p.monitor.resources.on);
        assert_int_equal(decode("version: 1\nmonitor: { on_drift: warn }\n", &p, &err), 0);
        assert_int_equal(p.monitor.on_drift, POLICY_LOG);
}

static void canonical_form_comes_back(void **state) {
        AUTO_FREE char *text = NULL;
        char a[HASH_TEXT], b[HASH_TEXT];
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode(all, &p, &err), 0);
        assert_int_equal(policy_canonical(&p, &text, &err), 0);
        assert_int_equal(decode(text, &again, &err), 0);
        assert_int_equal(policy_hash(&p, a, &err) | policy_hash(&again, b, &err), 0);
        assert_string_equal(a, b);
        policy_default(&again);
        assert_int_equal(policy_hash(&again, b, &err), 0);
        assert_string_not_equal(a, b); /* the hash covers it */
}

static void wrong_values_name_their_key(void **state) {
        (void) state;
        says("version: 1\nmonitor: off\n", "monitor: must be a mapping");
        says("version: 1\nmonitor: { on_drift: ignore }\n", "monitor.on_drift: must be one of: warn freeze kill");
        says("version: 1\nmonitor: { interval: 1ms }\n", "monitor.interval: a duration");
        says("version: 1\nmonitor: { calls: {} }\n", "monitor.calls: unknown key");
        says("version: 1\nmonitor: { refused_calls: { over: 0 } }\n", "monitor.refused_calls.over: must be between");
        says("version: 1\nmonitor: { refused_calls: { action: stop } }\n",
             "monitor.refused_calls.action: must be one of");
        says("version: 1\nmonitor: { programs: { action: log } }\n", "monitor.programs.expect: is required");
        says("version: 1\nmonitor: { programs: { expect: [ /bin/sh ] } }\n", "monitor.programs.expect[0]: a name");
        says("version: 1\nmonitor: { programs: { expect: [ { a: 1 } ] } }\n", "monitor.programs.expect[0]: a name");
        says("version: 1\nmonitor: { resources: {} }\n", "monitor.resources: memory or pids is expected");
        says("version: 1\nmonitor: { resources: { memory: 1K } }\n", "monitor.resources.memory: a size");
        says("version: 1\nmonitor: { writes: { action: log } }\n", "monitor.writes: filesystem.watch must name");
        says("version: 1\nfilesystem: { watch: [ out ] }\n", "filesystem.watch[0]: an absolute path");
        says("version: 1\nfilesystem: { watch: [ /a/../b ] }\n", "filesystem.watch[0]: an absolute path");
        says("version: 1\nfilesystem: { watch: [ / ] }\n", "filesystem.watch[0]: an absolute path");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_is_read_as_written),
                cmocka_unit_test(defaults_watch_for_drift_and_nothing_else),
                cmocka_unit_test(canonical_form_comes_back),
                cmocka_unit_test(wrong_values_name_their_key),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
