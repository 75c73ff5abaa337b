/* test_policy.c - the default, the final check, the canonical form and its hash. */
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

static struct policy p, q;

static void add_mount(const char *source, const char *target) {
        assert_int_equal(str_copy(p.mounts[p.n_mounts].source, POLICY_PATH, source), 0);
        assert_int_equal(str_copy(p.mounts[p.n_mounts].target, POLICY_PATH, target), 0);
        p.mounts[p.n_mounts].writable = true;
        p.n_mounts++;
}

static void check_says(const char *want) {
        struct err err = { 0 };

        assert_true(policy_check(&p, &err) < 0);
        assert_string_equal(err.msg, want);
        policy_default(&p);
        assert_int_equal(policy_check(&p, &err), 0);
}

static void the_default_is_the_documented_one(void **state) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        (void) state;
        memset(&p, 0xff, sizeof(p));
        policy_default(&p);
        assert_int_equal(policy_check(&p, &err), 0);
        assert_int_equal(policy_canonical(&p, &text, &err), 0);
        assert_string_equal(
                text,
                "{\"filesystem\":{\"mounts\":[],\"storage\":\"memory\",\"watch\":[]},\"limits\":{\"cpu\":\"1\","
                "\"disk\":1073741824,\"files\":1024,\"io\":268435456,\"memory\":536870912,"
                "\"output\":67108864,\"pids\":256,\"time\":\"3600000ms\"},\"monitor\":{\"interval\":\"1000ms\",\"on_drift\":\"freeze\"},\"name\":\"default\","
                "\"network\":{\"default\":\"deny\"},\"syscalls\":\"agent\",\"template\":\"host\","
                "\"tier\":\"ns\",\"user\":\"user\",\"version\":1}");
}

static void the_check_sees_what_no_decoder_saw(void **state) {
        (void) state;
        policy_default(&p);
        p.tier = POLICY_TIER_MICROVM;
        check_says("tier: microvm is not available in this build; the tier is never downgraded silently");
        p.name[0] = '\0';
        check_says("name: must be letters, digits, '.', '_' and '-'");
        p.template[0] = 'x';
        check_says("template: only 'host' is available in this build");
        p.user = (enum policy_user) 2;
        check_says("user or syscalls: no such value");
        p.syscalls = (enum policy_syscalls) 3;
        check_says("user or syscalls: no such value");
        p.limits.pids = 1;
        check_says("limits.pids: 1 is out of range");
        p.n_mounts = POLICY_MOUNTS + 1;
        check_says("filesystem.mounts: at most 32");
}

static void the_check_sees_all_mounts_together(void **state) {
        struct err err = { 0 };

        (void) state;
        policy_default(&p);
        add_mount("a", "/x");
        add_mount("b", "/y");
        add_mount("c", "/x");
        check_says("filesystem.mounts[2].target: '/x' is mounted twice");
        add_mount("a", "/x/y");
        add_mount("b", "/x");
        check_says("filesystem.mounts[1].target: '/x' would hide '/x/y'; list the outer one first");
        add_mount("a", "/etc/x");
        check_says("filesystem.mounts[0].target: '/etc/x' is reserved; not allowed: anything in /proc /sys /dev /etc "
                   "/usr /bin /sbin /lib* /run /boot");
        add_mount("", "/x");
        check_says("filesystem.mounts[0].source: a path must not be empty");
        add_mount("a", "/x");
        add_mount("b", "/x/y");
        assert_int_equal(policy_check(&p, &err), 0);
}

static void the_canonical_form_is_a_policy_with_the_same_hash(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL, *again = NULL;
        char first[HASH_TEXT], second[HASH_TEXT];
        struct err err = { 0 };

        (void) state;
        policy_default(&p);
        add_mount("/s \"ä\"", "/x");
        p.user = POLICY_USER_ROOT;
        p.syscalls = POLICY_SYSCALLS_DEBUG;
        p.limits = (struct policy_limits){ 1ull << 40, 1125, 7, 3ull << 20, 12345, 5000, 17, 0 };
        assert_int_equal(policy_canonical(&p, &text, &err), 0);
        assert_int_equal(json_parse("t", text, strlen(text), &doc, &err), 0);
        policy_default(&q);
        assert_int_equal(policy_decode(doc, &q, &err), 0);
        assert_int_equal(policy_canonical(&q, &again, &err), 0);
        assert_string_equal(again, text);
        assert_int_equal(q.limits.cpu_milli, 1125);
        assert_string_equal(q.mounts[0].source, p.mounts[0].source);
        assert_int_equal(policy_hash(&p, first, &err), 0);
        assert_int_equal(policy_hash(&q, second, &err), 0);
        assert_string_equal(first, second);
        assert_memory_equal(first, "sha256:", 7);
        assert_int_equal(strlen(first), 71);
}

static void every_member_changes_the_hash(void **state) {
        char hashes[14][HASH_TEXT];
        struct err err = { 0 };

        (void) state;
        for (int i = 0; i < 14; i++) {
                policy_default(&p);
                if (i >= 10)
                        add_mount(i == 11 ? "b" : "a", i == 12 ? "/y" : "/x");
                if (i == 13)
                        p.mounts[0].writable = false;
                p.limits.memory_bytes += i == 0;
                p.limits.cpu_milli += i == 1;
                p.limits.pids += i == 2;
                p.limits.disk_bytes += i == 3;
                p.limits.time_ms += i == 4;
                p.limits.output_bytes += i == 5;
                p.limits.files += i == 6;
                p.limits.io_bytes_per_s += i == 7;
                p.user = i == 8 ? POLICY_USER_ROOT : p.user;
                p.syscalls = i == 9 ? POLICY_SYSCALLS_STRICT : p.syscalls;
                assert_int_equal(policy_hash(&p, hashes[i], &err), 0);
                for (int k = 0; k < i; k++)
                        assert_string_not_equal(hashes[i], hashes[k]);
        }
}

static void names_and_parsers_agree(void **state) {
        enum policy_syscalls s = POLICY_SYSCALLS_DEBUG;
        enum policy_user u = POLICY_USER_ROOT;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(policy_parse_syscalls(policy_syscalls_name(POLICY_SYSCALLS_STRICT), &s, &err), 0);
        assert_int_equal(s, POLICY_SYSCALLS_STRICT);
        assert_int_equal(policy_parse_user(policy_user_name(POLICY_USER_USER), &u, &err), 0);
        assert_int_equal(u, POLICY_USER_USER);
        assert_int_equal(policy_parse_user("", &u, &err), -EINVAL);
        assert_string_equal(err.msg, "unknown user ''; allowed: user root");
        assert_int_equal(policy_parse_syscalls("Agent", &s, &err), -EINVAL);
        assert_string_equal(err.msg, "unknown syscalls profile 'Agent'; allowed: agent strict debug");
        assert_string_equal(policy_tier_name(POLICY_TIER_GVISOR), "gvisor");
        assert_string_equal(policy_tier_name((enum policy_tier) 9), "?");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_is_the_documented_one),
                cmocka_unit_test(the_check_sees_what_no_decoder_saw),
                cmocka_unit_test(the_check_sees_all_mounts_together),
                cmocka_unit_test(the_canonical_form_is_a_policy_with_the_same_hash),
                cmocka_unit_test(every_member_changes_the_hash),
                cmocka_unit_test(names_and_parsers_agree),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
