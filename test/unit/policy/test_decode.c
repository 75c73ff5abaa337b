/* test_decode.c - the schema: what is enforced, and every refusal with its message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/policy.h"

static int decode(const char *yaml, struct policy *p, struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        struct field_ctx ctx = { .what = "p.yaml" };

        if (json_parse_yaml("p.yaml", yaml, strlen(yaml), &doc, &lines, err) < 0)
                fail_msg("%s", err->msg);
        ctx.lines = lines;
        return policy_decode_at(&ctx, doc, p, err);
}

/* Also: a failure leaves the policy unchanged, byte for byte. */
static void says(const char *yaml, const char *want) {
        static struct policy p, before;
        struct err err = { 0 };

        memset(&p, 0x5a, sizeof(p));
        policy_default(&p);
        before = p;
        assert_int_equal(decode(yaml, &p, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.msg, want);
        assert_memory_equal(&p, &before, sizeof(p));
}

static void accepts(const char *yaml, struct policy *p) {
        struct err err = { 0 };

        policy_default(p);
        if (decode(yaml, p, &err) < 0)
                fail_msg("%s", err.msg);
}

static void every_member_is_read(void **state) {
        static struct policy p;

        (void) state;
        accepts("version: 1\nname: a.b-C_9\ntier: ns\ntemplate: host\nuser: root\nsyscalls: strict\n"
                "filesystem:\n  storage: memory\n  mounts:\n    - {source: a, target: /x}\n"
                "    - {source: /b, target: /x/y, mode: rw}\n"
                "network: {default: deny}\n"
                "limits: {memory: 16M, cpu: 0.5, pids: 4, disk: 2G, time: 10ms, output: 4096, files: 16, io: 0}\n",
                &p);
        assert_string_equal(p.name, "a.b-C_9");
        assert_int_equal(p.tier, POLICY_TIER_NS);
        assert_string_equal(p.template, "host");
        assert_int_equal(p.user, POLICY_USER_ROOT);
        assert_int_equal(p.syscalls, POLICY_SYSCALLS_STRICT);
        assert_int_equal(p.n_mounts, 2);
        assert_string_equal(p.mounts[0].source, "a");
        assert_false(p.mounts[0].writable);
        assert_string_equal(p.mounts[1].target, "/x/y");
        assert_true(p.mounts[1].writable);
        assert_int_equal(p.limits.memory_bytes, 16 << 20);
        assert_int_equal(p.limits.cpu_milli, 500);
        assert_int_equal(p.limits.pids, 4);
        assert_int_equal(p.limits.disk_bytes, 2ull << 30);
        assert_int_equal(p.limits.time_ms, 10);
        assert_int_equal(p.limits.output_bytes, 4096);
        assert_int_equal(p.limits.files, 16);
        assert_int_equal(p.limits.io_bytes_per_s, 0);
}

static void what_is_not_said_keeps_its_value(void **state) {
        static struct policy p;
        struct err err = { 0 };

        (void) state;
        accepts("version: 1\nfilesystem: {mounts: [{source: a, target: /x}]}\nlimits: {pids: 9}", &p);
        assert_int_equal(decode("version: 1\nlimits: {files: 99}", &p, &err), 0);
        assert_int_equal(p.limits.pids, 9);
        assert_int_equal(p.limits.files, 99);
        assert_int_equal(p.n_mounts, 1);
        assert_int_equal(decode("version: 1\nfilesystem: {mounts: [{source: b, target: /x}]}", &p, &err), 0);
        assert_int_equal(p.n_mounts, 1); /* a list replaces a list */
        assert_string_equal(p.mounts[0].source, "b");
        assert_int_equal(decode("version: 1\nfilesystem: {mounts: []}", &p, &err), 0);
        assert_int_equal(p.n_mounts, 0);
}

static void version_must_be_one(void **state) {
        (void) state;
        says("name: x", "p.yaml:1: version: is required");
        says("name: x\nversion: 2", "p.yaml:2: version: must be 1");
        says("version: '1'", "p.yaml:1: version: must be 1");
        says("version: 1.0", "p.yaml:1: version: must be 1");
        says("[1]", "p.yaml:1: must be a mapping (key: value)");
}

static void tiers_are_never_downgraded(void **state) {
        (void) state;
        says("version: 1\ntier: gvisor",
             "p.yaml:2: tier: gvisor is not available in this build; the tier is never downgraded silently");
        says("version: 1\ntier: microvm",
             "p.yaml:2: tier: microvm is not available in this build; the tier is never downgraded silently");
        says("version: 1\ntier: vm", "p.yaml:2: tier: unknown tier 'vm'; allowed: ns");
        says("version: 1\ntier: 1", "p.yaml:2: tier: must be a string");
}

static void names_are_plain(void **state) {
        static const char want[] =
                "p.yaml:2: name: must be 1 to 63 letters, digits, '.', '_' and '-', the first a letter or digit";

        (void) state;
        says("version: 1\nname: ''", want);
        says("version: 1\nname: a b", want);
        says("version: 1\nname: ../x", want);
        says("version: 1\nname: \"a\\e\"", want);
        says("version: 1\nname: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", want);
        says("version: 1\nname: 5", "p.yaml:2: name: must be a string");
}

static void fixed_choices_are_listed(void **state) {
        (void) state;
        says("version: 1\ntemplate: debian",
             "p.yaml:2: template: 'debian' is not available in this build; allowed: host");
        says("version: 1\nuser: alice", "p.yaml:2: user: unknown user 'alice'; allowed: user root");
        says("version: 1\nsyscalls: all",
             "p.yaml:2: syscalls: unknown syscalls profile 'all'; allowed: agent strict debug");
        says("version: 1\nuser:", "p.yaml:2: user: must be a string");
        says("version: 1\nsyscalls: [agent]", "p.yaml:2: syscalls: must be a string");
        says("version: 1\nfilesystem:\n  storage: disk",
             "p.yaml:3: filesystem.storage: 'disk' is not available in this build; allowed: memory");
        says("version: 1\nfilesystem:\n  storage: 5", "p.yaml:3: filesystem.storage: must be a string");
}

static void parts_that_are_not_built_are_refused_by_name(void **state) {
        (void) state;
        says("version: 1\nsecrets: [{name: K}]", "p.yaml:2: secrets: not available in this build");
        says("version: 1\nlifecycle: {ttl: 1h}", "p.yaml:2: lifecycle: not available in this build");
        says("version: 1\nsecrets:", "p.yaml:2: secrets: not available in this build");
        says("version: 1\nnetwork:\n  publish: [{port: 1}]", "p.yaml:3: network.publish: not available in this build");
        says("version: 1\nnetwork: {publish: }", "p.yaml:2: network.publish: not available in this build");
        says("version: 1\npackages:\n  mode: gateway",
             "p.yaml:3: packages.mode: 'gateway' is not available in this build; allowed: off");
        says("version: 1\npackages: off", "p.yaml:2: packages: must be a mapping (key: value)");
        says("version: 1\npackages: {index: x}", "p.yaml:2: packages.index: unknown key; allowed: mode");
}

static void values_that_ask_for_nothing_pass(void **state) {
        static struct policy p;

        (void) state;
        accepts("version: 1\npackages: {mode: off}\nsecrets: []\nlifecycle: {}\nmonitor: {}\n"
                "filesystem: {watch: [], mounts: []}\n"
                "network: {default: deny, allow: [], deny: [], budget: {}, publish: []}\nlimits: {}\n",
                &p);
        accepts("version: 1\npackages: {}\nnetwork: {}\nfilesystem: {}\n", &p);
}

static void limits_are_ranged_and_named(void **state) {
        (void) state;
        says("version: 1\nlimits:\n  memory: 8M", "p.yaml:3: limits.memory: 8M is out of range; allowed: 16M to 1024G");
        says("version: 1\nlimits:\n  memory: 8MB",
             "p.yaml:3: limits.memory: '8MB' is not a size; write bytes, or a number with K, M or G");
        says("version: 1\nlimits: {cpu: 0.0001}", "p.yaml:2: limits.cpu: '0.0001' is not a number of CPUs; write for "
                                                  "example 0.5 or 2, with at most 3 decimals");
        says("version: 1\nlimits: {cpu: -1}", "p.yaml:2: limits.cpu: '-1' is not a number of CPUs; write for "
                                              "example 0.5 or 2, with at most 3 decimals");
        says("version: 1\nlimits: {pids: 3}", "p.yaml:2: limits.pids: 3 is out of range; allowed: 4 to 1000000");
        says("version: 1\nlimits: {time: 60}",
             "p.yaml:2: limits.time: '60' is not a duration; write a number with ms, s, m, h or d");
        says("version: 1\nlimits: {time: 0s}", "p.yaml:2: limits.time: 0s is out of range; allowed: 10ms to 30d");
        says("version: 1\nlimits: {files: null}", "p.yaml:2: limits.files: must be a string or a number");
        says("version: 1\nlimits: {io: 1}", "p.yaml:2: limits.io: 1 is out of range; allowed: 1M to 1024G");
        says("version: 1\nlimits: [1]", "p.yaml:2: limits: must be a mapping (key: value)");
        says("version: 1\nlimits:\n  pids: 5\n\n  memroy: 512M",
             "p.yaml:5: limits.memroy: unknown key; did you mean 'memory'? "
             "allowed: memory cpu pids disk time output files io");
        says("version: 1\nlimits: {gpu_count: 1}",
             "p.yaml:2: limits.gpu_count: unknown key; allowed: memory cpu pids disk time output files io");
        says("version: 1\nlimits: {disk: 00000000000000000000000000000000000000"
             "00000000000000000000000000000000000000x}",
             "p.yaml:2: limits.disk: must be shorter than 64 characters");
}

static void cpu_is_what_was_written(void **state) {
        static const struct {
                const char *text;
                uint32_t milli;
        } cases[] = { { "0.1", 100 }, { "1.0", 1000 },   { "2", 2000 },
                      { "0.3", 300 }, { "1.005", 1005 }, { "'0.25'", 250 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                static struct policy p;
                char yaml[64];

                (void) snprintf(yaml, sizeof(yaml), "version: 1\nlimits: {cpu: %s}", cases[i].text);
                accepts(yaml, &p);
                assert_int_equal(p.limits.cpu_milli, cases[i].milli);
        }
}

static void mounts_are_checked_at_their_line(void **state) {
        (void) state;
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: a, target: /x}\n    - {source: b, target: /x}\n",
             "p.yaml:5: filesystem.mounts[1]: '/x' is mounted twice");
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: a, target: /x/y}\n    - {source: b, target: /x}\n",
             "p.yaml:5: filesystem.mounts[1]: '/x' would hide '/x/y'; list the outer one first");
        says("version: 1\nfilesystem:\n  mounts:\n    - source: a\n      target: /usr/local\n",
             "p.yaml:5: filesystem.mounts[0].target: '/usr/local' is reserved; not allowed: anything in /proc /sys "
             "/dev /etc /usr /bin /sbin /lib* /run /boot");
        says("version: 1\nfilesystem:\n  mounts:\n    - target: /x\n",
             "p.yaml:4: filesystem.mounts[0].source: is required");
        says("version: 1\nfilesystem:\n  mounts:\n    - source: x\n",
             "p.yaml:4: filesystem.mounts[0].target: is required");
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: a, target: /x, mode: rx}\n",
             "p.yaml:4: filesystem.mounts[0].mode: must be ro or rw");
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: a, target: /x, mode: true}\n",
             "p.yaml:4: filesystem.mounts[0].mode: must be a string");
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: 5, target: /x}\n",
             "p.yaml:4: filesystem.mounts[0].source: must be a string");
        says("version: 1\nfilesystem:\n  mounts:\n    - {source: \"a\\nb\", target: /x}\n",
             "p.yaml:4: filesystem.mounts[0].source: a path must not have control characters");
        says("version: 1\nfilesystem:\n  mounts:\n    - a:/x\n",
             "p.yaml:4: filesystem.mounts[0]: must be a mapping (key: value)");
        says("version: 1\nfilesystem: {mounts: {}}", "p.yaml:2: filesystem.mounts: must be a list");
}

static void the_number_of_mounts_is_limited(void **state) {
        char yaml[4096] = "version: 1\nfilesystem:\n  mounts:\n";
        static struct policy p;
        size_t n = strlen(yaml);

        (void) state;
        for (int i = 0; i < POLICY_MOUNTS; i++)
                n += (size_t) snprintf(yaml + n, sizeof(yaml) - n, "    - {source: a, target: /m%d}\n", i);
        accepts(yaml, &p);
        assert_int_equal(p.n_mounts, POLICY_MOUNTS);
        (void) snprintf(yaml + n, sizeof(yaml) - n, "    - {source: a, target: /more}\n");
        says(yaml, "p.yaml:3: filesystem.mounts: must have at most 32 elements");
}

static void unknown_keys_are_refused(void **state) {
        (void) state;
        says("version: 1\nnetwrok: {}",
             "p.yaml:2: netwrok: unknown key; did you mean 'network'? allowed: version name tier template user "
             "filesystem network packages secrets limits syscalls lifecycle monitor");
        says("version: 1\nfilesystem: {mount: []}",
             "p.yaml:2: filesystem.mount: unknown key; did you mean 'mounts'? allowed: mounts storage watch");
}

static void a_document_without_lines_is_named_policy(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        static const char text[] = "{\"version\":1,\"limits\":{\"pids\":2}}";
        static struct policy p;
        struct err err = { 0 };

        (void) state;
        policy_default(&p);
        assert_int_equal(json_parse("request", text, strlen(text), &doc, &err), 0);
        assert_int_equal(policy_decode(doc, &p, &err), -EINVAL);
        assert_string_equal(err.msg, "policy: limits.pids: 2 is out of range; allowed: 4 to 1000000");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_member_is_read),
                cmocka_unit_test(what_is_not_said_keeps_its_value),
                cmocka_unit_test(version_must_be_one),
                cmocka_unit_test(tiers_are_never_downgraded),
                cmocka_unit_test(names_are_plain),
                cmocka_unit_test(fixed_choices_are_listed),
                cmocka_unit_test(parts_that_are_not_built_are_refused_by_name),
                cmocka_unit_test(values_that_ask_for_nothing_pass),
                cmocka_unit_test(limits_are_ranged_and_named),
                cmocka_unit_test(cpu_is_what_was_written),
                cmocka_unit_test(mounts_are_checked_at_their_line),
                cmocka_unit_test(the_number_of_mounts_is_limited),
                cmocka_unit_test(unknown_keys_are_refused),
                cmocka_unit_test(a_document_without_lines_is_named_policy),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
