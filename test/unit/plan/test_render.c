/* test_render.c - the plan's document and its hash: the same input gives the same hash, another input another. */
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
#include "plan/plan.h"

static struct policy policy;
static struct plan_request request;
static struct plan_facts facts;

static int reset(void **state) {
        (void) state;
        policy_default(&policy);
        request = (struct plan_request){ 0 };
        facts = (struct plan_facts){ .landlock_abi = 6, .usr_links = { "/bin", "/lib" } };
        return 0;
}

static void hash(char dst[HASH_TEXT]) {
        static struct plan plan;
        struct err err = { 0 };

        memset(&plan, 0x5a, sizeof(plan)); /* nothing of what was there before may matter */
        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &err), 0);
        assert_int_equal(plan_hash(&plan, dst, &err), 0);
}

static void the_same_input_has_the_same_hash(void **state) {
        static struct policy copy;
        char first[HASH_TEXT], second[HASH_TEXT];

        (void) state;
        hash(first);
        copy = policy;
        policy = copy;
        hash(second);
        assert_string_equal(first, second);
        assert_int_equal(strlen(first), HASH_TEXT - 1);
}

static void descriptors_are_no_part_of_the_hash(void **state) {
        static struct plan plan;
        char first[HASH_TEXT], second[HASH_TEXT];
        struct err err = { 0 };

        (void) state;
        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &err), 0);
        assert_int_equal(plan_hash(&plan, first, &err), 0);
        plan.mounts[0].fd = 17;
        assert_int_equal(plan_hash(&plan, second, &err), 0);
        assert_string_equal(first, second);
}

/* One small change each. */
static void name_changes(void) {
        request.hostname = "other";
}
static void cgroup_off(void) {
        request.off = PLAN_OFF_CGROUP;
}
static void io_off(void) {
        request.off = PLAN_OFF_IO;
}
static void landlock_off(void) {
        request.off = PLAN_OFF_LANDLOCK;
}
static void older_landlock(void) {
        facts.landlock_abi = 5;
}
static void newer_landlock(void) {
        facts.landlock_abi = 7;
}
static void fewer_links(void) {
        facts.usr_links[1] = NULL;
}
static void own_directory(void) {
        facts.usr_dirs[0] = "/lib64";
}
static void rootless(void) {
        facts.rootless = true;
}
static void user_root(void) {
        policy.user = POLICY_USER_ROOT;
}
static void strict(void) {
        policy.syscalls = POLICY_SYSCALLS_STRICT;
}
static void debug(void) {
        policy.syscalls = POLICY_SYSCALLS_DEBUG;
}
static void memory(void) {
        policy.limits.memory_bytes += 4096;
}
static void cpus(void) {
        policy.limits.cpu_milli++;
}
static void pids(void) {
        policy.limits.pids++;
}
static void disk(void) {
        policy.limits.disk_bytes += 4096;
}
static void duration(void) {
        policy.limits.time_ms++;
}
static void output(void) {
        policy.limits.output_bytes++;
}
static void files(void) {
        policy.limits.files++;
}
static void throughput(void) {
        policy.limits.io_bytes_per_s++;
}
static void policy_name(void) {
        policy.name[0] = 'D';
}
static void one_mount(void) {
        policy.n_mounts = 1;
        assert_int_equal(str_copy(policy.mounts[0].source, POLICY_PATH, "/srv/a"), 0);
        assert_int_equal(str_copy(policy.mounts[0].target, POLICY_PATH, "/a"), 0);
        policy.mounts[0].writable = false;
        facts.caller_uid = 5; /* so that a writable mount differs by its mode alone */
}
static void writable_mount(void) {
        one_mount();
        policy.mounts[0].writable = true;
}
static void other_source(void) {
        one_mount();
        policy.mounts[0].source[5] = 'b';
}
static void other_target(void) {
        one_mount();
        policy.mounts[0].target[1] = 'b';
}

static void any_change_has_a_hash_of_its_own(void **state) {
        static void (*const changes[])(void) = {
                name_changes,  cgroup_off,     io_off,       landlock_off, older_landlock, newer_landlock, fewer_links,
                own_directory, rootless,       user_root,    strict,       debug,          memory,         cpus,
                pids,          disk,           duration,     output,       files,          throughput,     policy_name,
                one_mount,     writable_mount, other_source, other_target,
        };
        char seen[ARRAY_SIZE(changes) + 1][HASH_TEXT];

        hash(seen[0]);
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                assert_int_equal(reset(state), 0);
                changes[i]();
                hash(seen[i + 1]);
                for (size_t k = 0; k <= i; k++)
                        if (str_eq(seen[k], seen[i + 1]))
                                fail_msg("change %zu and %zu give the same hash (0 = none)", i + 1, k);
        }
}

static const char *text_at(const struct json *o, const char *array, size_t i, const char *key) {
        return json_get_str(json_at(json_get(o, array), i), key);
}

static void the_document_says_what_will_be_done(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        static struct plan plan;
        struct err err = { 0 };
        const struct json *landlock, *limits;

        (void) state;
        writable_mount();
        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &err), 0);
        assert_int_equal(plan_json(&plan, &doc, &err), 0);
        assert_int_equal(json_len(json_get(doc, "namespaces")), 8);
        assert_int_equal(json_len(json_get(doc, "mounts")), plan.n_mounts + 2); /* and the root, and proc */
        assert_string_equal(text_at(doc, "mounts", 0, "target"), "/");
        assert_string_equal(text_at(doc, "mounts", 0, "mode"), "ro");
        assert_string_equal(text_at(doc, "mounts", plan.n_mounts + 1, "source"), "/srv/a");
        assert_string_equal(text_at(doc, "mounts", plan.n_mounts + 1, "mode"), "rw");
        assert_int_equal(json_len(json_get(doc, "proc_masks")), plan.n_masks);
        assert_false(json_get_bool(json_get(doc, "ids"), "host_root_mapped", true));
        limits = json_get(doc, "limits");
        assert_string_equal(json_get_str(limits, "enforced_by"), "cgroup");
        assert_int_equal(json_get_int(limits, "memory_bytes", 0), 512 << 20);
        assert_int_equal(json_get_int(limits, "swap_bytes", -1), 0);
        assert_int_equal(json_get_int(limits, "disk_bytes_in_memory", 0), 448 << 20);
        assert_int_equal(json_get_int(limits, "pids", 0), 256);
        assert_int_equal(json_get_int(limits, "time_ms", 0), 3600000);
        assert_int_equal(json_get_int(limits, "output_bytes", 0), 64 << 20);
        assert_int_equal(json_get_int(limits, "io_bytes_per_s", 0), 256 << 20);
        assert_int_equal(json_get_int(json_get(limits, "rlimits"), "nofile", 0), 1024);
        landlock = json_get(doc, "landlock");
        assert_int_equal(json_len(json_get(landlock, "scopes")), 2);
        assert_int_equal(json_len(json_get(landlock, "handled")), 16);
        assert_int_equal(json_len(json_get(json_get(landlock, "rules"), "/")), 1);
        assert_non_null(json_get(json_get(landlock, "rules"), "/a"));
        assert_true(json_len(json_get(json_get(doc, "seccomp"), "allowed")) > 150);
        assert_string_equal(json_get_str(json_get(json_get(doc, "seccomp"), "refused"), "mount"), "notify");
        assert_int_equal(json_len(json_get(doc, "deviations")), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_same_input_has_the_same_hash, reset),
                cmocka_unit_test_setup(descriptors_are_no_part_of_the_hash, reset),
                cmocka_unit_test_setup(any_change_has_a_hash_of_its_own, reset),
                cmocka_unit_test_setup(the_document_says_what_will_be_done, reset),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
