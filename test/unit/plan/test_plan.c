/* test_plan.c - what a policy and a machine become: mounts, nodes, limits, Landlock's rights, deviations. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan.h"

enum { EXECUTE = 1, WRITE_FILE = 2, READ_FILE = 4, READ_DIR = 8, MAKE_CHAR = 64, MAKE_BLOCK = 2048, IOCTL_DEV = 32768 };

static struct policy policy;
static struct plan_request request;
static struct plan_facts facts;
static struct plan plan;

static int reset(void **state) {
        (void) state;
        policy_default(&policy);
        request = (struct plan_request){ 0 };
        facts = (struct plan_facts){ .landlock_abi = 6, .usr_links = { "/bin", "/lib", "/lib64" } };
        return 0;
}

static void compile(void) {
        struct err err = { 0 };

        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &err), 0);
}

static void refuses(int code, const char *want) {
        struct err err = { 0 };

        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &err), code);
        assert_string_equal(err.msg, want);
}

static void add_mount(const char *source, const char *target, bool writable) {
        struct policy_mount *m = &policy.mounts[policy.n_mounts++];

        assert_int_equal(str_copy(m->source, sizeof(m->source), source), 0);
        assert_int_equal(str_copy(m->target, sizeof(m->target), target), 0);
        m->writable = writable;
}

static const struct plan_mount *mount_at(const char *target) {
        for (size_t i = 0; i < plan.n_mounts; i++)
                if (str_eq(plan.mounts[i].target, target))
                        return &plan.mounts[i];
        return NULL;
}

static const struct plan_node *node_at(const char *path) {
        for (size_t i = 0; i < plan.n_nodes; i++)
                if (str_eq(plan.nodes[i].path, path))
                        return &plan.nodes[i];
        return NULL;
}

static uint64_t rlimit_of(int resource) {
        for (size_t i = 0; i < plan.n_rlimits; i++)
                if (plan.rlimits[i].resource == resource)
                        return plan.rlimits[i].value;
        return UINT64_MAX;
}

static bool deviates(const char *text) {
        for (size_t i = 0; i < plan.n_deviations; i++)
                if (str_eq(plan.deviations[i], text))
                        return true;
        return false;
}

static void the_default_has_no_deviation_and_only_its_own_places_writable(void **state) {
        (void) state;
        compile();
        assert_int_equal(plan.n_deviations, 0);
        assert_int_equal(plan.uid, 1000);
        assert_int_equal(plan.gid, 1000);
        assert_string_equal(plan.home, "/home/user");
        assert_string_equal(plan.hostname, "gabion");
        assert_int_equal(plan.profile, SECCOMP_AGENT);
        assert_int_equal(plan.off, 0);
        for (size_t i = 0; i < plan.n_mounts; i++) {
                const struct plan_mount *m = &plan.mounts[i];

                assert_true(m->writable == (m->kind == PLAN_WRITABLE));
                assert_true((m->source[0] != '\0') == (m->kind == PLAN_BIND || m->kind == PLAN_OPTIONAL));
                assert_int_equal(m->fd, -1);
        }
        assert_non_null(mount_at("/tmp"));
        assert_non_null(mount_at("/dev/shm"));
        assert_int_equal(mount_at("/home/user")->kind, PLAN_WRITABLE);
        assert_int_equal(mount_at("/usr")->kind, PLAN_BIND);
}

static void nothing_of_the_hosts_accounts_is_shown(void **state) {
        (void) state;
        compile();
        assert_null(mount_at("/etc"));
        assert_null(mount_at("/etc/passwd"));
        assert_null(node_at("etc/shadow"));
        assert_int_equal(node_at("etc/passwd")->kind, PLAN_FILE);
        assert_non_null(strstr(node_at("etc/passwd")->text, "user:x:1000:1000:"));
}

static void every_path_is_planned_once(void **state) {
        (void) state;
        compile();
        for (size_t i = 0; i < plan.n_nodes; i++)
                assert_ptr_equal(node_at(plan.nodes[i].path), &plan.nodes[i]);
        for (size_t i = 0; i < plan.n_mounts; i++)
                assert_ptr_equal(mount_at(plan.mounts[i].target), &plan.mounts[i]);
        for (size_t i = 0; i < plan.n_nodes; i++)
                assert_true(plan.nodes[i].path[0] != '/'); /* relative: they are made before there is a root */
}

static void links_into_usr_follow_the_machine(void **state) {
        (void) state;
        compile();
        assert_string_equal(node_at("lib64")->text, "usr/lib64");
        assert_null(node_at("sbin"));
        facts.usr_links[2] = NULL;
        facts.usr_dirs[0] = "/lib64";
        compile();
        assert_int_equal(node_at("lib64")->kind, PLAN_DIR);
        assert_int_equal(mount_at("/lib64")->kind, PLAN_BIND);
        assert_false(mount_at("/lib64")->writable);
}

static void the_largest_request_fits(void **state) {
        static const char *const all[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
        char target[32];

        (void) state;
        facts = (struct plan_facts){ .landlock_abi = 7, .rootless = true };
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                facts.usr_dirs[i] = all[i];
        for (int i = 0; i < POLICY_MOUNTS; i++) {
                (void) snprintf(target, sizeof(target), "/m/%d", i);
                add_mount("/srv", target, false);
        }
        compile();
        assert_true(plan.n_mounts <= PLAN_MOUNTS);
        assert_true(plan.n_nodes <= PLAN_NODES);
        assert_non_null(mount_at("/m/31"));
}

static void root_inside_has_its_own_home_and_is_a_deviation(void **state) {
        (void) state;
        policy.user = POLICY_USER_ROOT;
        compile();
        assert_int_equal(plan.uid, 0);
        assert_int_equal(mount_at("/root")->kind, PLAN_WRITABLE);
        assert_null(mount_at("/home/user"));
        assert_int_equal(plan.n_deviations, 1);
        assert_non_null(strstr(plan.deviations[0], "uid 0 inside"));
}

static void root_has_a_home_where_it_has_commands(void **state) {
        (void) state;
        compile();
        assert_null(mount_at("/root"));
        request.many_users = true;
        compile();
        assert_true(mount_at("/root")->writable && !mount_at("/root")->user_owned);
        assert_true(mount_at("/home/user")->user_owned);
}

static void devices_are_nodes_for_root_and_mounts_for_a_user(void **state) {
        (void) state;
        compile();
        assert_int_equal(node_at("dev/null")->kind, PLAN_CHAR);
        assert_int_equal(node_at("dev/null")->major, 1);
        assert_int_equal(node_at("dev/null")->minor, 3);
        assert_null(mount_at("/dev/null"));
        facts.rootless = true;
        compile();
        assert_int_equal(node_at("dev/null")->kind, PLAN_FILE);
        assert_int_equal(mount_at("/dev/null")->kind, PLAN_DEVICE);
        assert_false(mount_at("/dev/null")->writable);
}

static void files_stay_below_seven_eighths_of_memory(void **state) {
        static const struct {
                uint64_t disk, memory, want;
        } rows[] = {
                { 1ull << 30, 512ull << 20, 448ull << 20 }, /* the default: memory is the smaller one */
                { 64ull << 20, 512ull << 20, 64ull << 20 }, /* disk is */
                { 448ull << 20, 512ull << 20, 448ull << 20 },
                { (64ull << 20) + 4095, 512ull << 20, 64ull << 20 }, /* whole pages */
                { 1ull << 40, 1ull << 40, (1ull << 40) / 8 * 7 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                policy.limits.disk_bytes = rows[i].disk;
                policy.limits.memory_bytes = rows[i].memory;
                compile();
                assert_int_equal(plan.tmpfs_bytes, rows[i].want);
                assert_true(plan.tmpfs_inodes > 0 && plan.tmpfs_inodes <= 262144);
                assert_true(plan.tmpfs_inodes <= plan.tmpfs_bytes / 4096);
                assert_int_equal(rlimit_of(RLIMIT_FSIZE), rows[i].disk);
        }
}

static void rlimits_stand_in_for_the_cgroup_only_when_it_is_off(void **state) {
        (void) state;
        compile();
        assert_int_equal(rlimit_of(RLIMIT_CORE), 0);
        assert_int_equal(rlimit_of(RLIMIT_NOFILE), policy.limits.files);
        assert_int_equal(rlimit_of(RLIMIT_AS), UINT64_MAX);
        assert_int_equal(rlimit_of(RLIMIT_NPROC), UINT64_MAX);
        request.off = PLAN_OFF_CGROUP;
        compile();
        assert_int_equal(rlimit_of(RLIMIT_AS), policy.limits.memory_bytes);
        assert_int_equal(rlimit_of(RLIMIT_NPROC), policy.limits.pids);
        assert_int_equal(rlimit_of(RLIMIT_CPU), 3601);
        assert_int_equal(plan.n_deviations, 1);
        assert_non_null(strstr(plan.deviations[0], "no control group"));
}

static void landlock_rights_are_those_of_the_abi(void **state) {
        static const uint64_t want[] = { 0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff, 0xffff, 0xffff };

        (void) state;
        for (int abi = 0; abi < (int) ARRAY_SIZE(want); abi++)
                assert_int_equal(plan_landlock_rights(abi), want[abi]);
        assert_int_equal(plan_landlock_rights(-1), 0);
        assert_int_equal(plan_landlock_rights(1000), 0xffff);
}

static void no_rule_gives_a_right_that_is_not_handled(void **state) {
        (void) state;
        add_mount("/srv/a", "/a", true);
        add_mount("/srv/b", "/b", false);
        for (int abi = 1; abi <= 8; abi++) {
                uint64_t all = plan_landlock_rights(abi);

                facts.landlock_abi = abi;
                compile();
                assert_int_equal(plan.landlock_fs, all);
                assert_int_equal(plan.landlock_scoped, abi >= 6 ? 3 : 0);
                assert_int_equal(plan.landlock_root, READ_DIR);
                assert_int_equal((plan.landlock_proc | plan.landlock_etc | plan.landlock_dev) & ~all, 0);
                for (size_t i = 0; i < plan.n_mounts; i++)
                        assert_int_equal(plan.mounts[i].landlock & ~all, 0);
        }
}

static void writable_places_hold_no_devices_and_the_rest_is_not_written(void **state) {
        (void) state;
        add_mount("/srv/a", "/a", true);
        add_mount("/srv/b", "/b", false);
        compile();
        assert_int_equal(mount_at("/b")->landlock, EXECUTE | READ_FILE | READ_DIR);
        assert_int_equal(mount_at("/usr")->landlock, EXECUTE | READ_FILE | READ_DIR);
        assert_int_equal(plan.landlock_proc & (EXECUTE | WRITE_FILE), 0);
        assert_int_equal(plan.landlock_etc & (EXECUTE | WRITE_FILE), 0);
        for (size_t i = 0; i < plan.n_mounts; i++)
                assert_int_equal(plan.mounts[i].landlock & (MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV), 0);
        assert_true(mount_at("/a")->landlock & WRITE_FILE);
        assert_true(mount_at("/tmp")->landlock & WRITE_FILE);
}

static void mounts_of_the_policy_come_last_and_in_order(void **state) {
        (void) state;
        add_mount("/srv/out", "/out", false);
        add_mount("/srv/in", "/out/in", true);
        facts.caller_uid = 1234;
        compile();
        assert_string_equal(plan.mounts[plan.n_mounts - 2].target, "/out");
        assert_string_equal(plan.mounts[plan.n_mounts - 1].target, "/out/in");
        assert_true(plan.mounts[plan.n_mounts - 1].writable);
        assert_true(plan.mounts[plan.n_mounts - 1].user_owned);
        assert_int_equal(plan.n_deviations, 0);
}

static void each_weakness_is_a_deviation_of_its_own(void **state) {
        (void) state;
        policy.syscalls = POLICY_SYSCALLS_DEBUG;
        policy.limits.io_bytes_per_s = 0;
        request.off = PLAN_OFF_LANDLOCK;
        request.sensitive_mounts = true;
        add_mount("/etc/ssh", "/keys", true);
        compile();
        assert_true(deviates("syscalls: profile debug allows ptrace and reading other processes' memory"));
        assert_true(deviates("landlock: off"));
        assert_true(deviates("limits.io: off"));
        assert_true(deviates("mount /keys: it holds the host's keys (overridden)"));
        assert_true(deviates("mount /keys: writable and caller is root: its files belong to root"));
        assert_int_equal(plan.n_deviations, 5);
        assert_int_equal(plan.landlock_abi, 0);
        assert_int_equal(plan.landlock_fs | plan.landlock_scoped, 0);
        assert_true(plan.off & PLAN_OFF_IO);

        facts = (struct plan_facts){ .landlock_abi = 6, .rootless = true, .caller_uid = 77 };
        compile();
        assert_true(deviates("rootless: the sandbox's user is the caller's own uid 77, so that mounts can be used"));
}

static void what_cannot_be_had_is_refused_with_the_remedy(void **state) {
        static char name[PLAN_HOSTNAME + 1];

        (void) state;
        policy.tier = POLICY_TIER_MICROVM;
        refuses(-EOPNOTSUPP, "tier: microvm is not available in this build; use ns");
        policy.tier = POLICY_TIER_NS;
        facts.landlock_abi = 0;
        refuses(-EOPNOTSUPP, "landlock: this kernel has none; boot with lsm=landlock,... or pass --off landlock");
        request.off = PLAN_OFF_LANDLOCK;
        compile();
        memset(name, 'n', PLAN_HOSTNAME);
        request.hostname = name;
        refuses(-ENAMETOOLONG, "--name: at most 63 characters");
        name[PLAN_HOSTNAME - 1] = '\0';
        compile();
        assert_string_equal(plan.hostname, name);
        assert_non_null(strstr(plan.etc_hosts, name));
        assert_ptr_equal(node_at("etc/hosts")->text, plan.etc_hosts);
        assert_int_equal(strlen(plan.etc_hostname), PLAN_HOSTNAME);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(the_default_has_no_deviation_and_only_its_own_places_writable, reset),
                cmocka_unit_test_setup(nothing_of_the_hosts_accounts_is_shown, reset),
                cmocka_unit_test_setup(every_path_is_planned_once, reset),
                cmocka_unit_test_setup(links_into_usr_follow_the_machine, reset),
                cmocka_unit_test_setup(the_largest_request_fits, reset),
                cmocka_unit_test_setup(root_has_a_home_where_it_has_commands, reset),
                cmocka_unit_test_setup(root_inside_has_its_own_home_and_is_a_deviation, reset),
                cmocka_unit_test_setup(devices_are_nodes_for_root_and_mounts_for_a_user, reset),
                cmocka_unit_test_setup(files_stay_below_seven_eighths_of_memory, reset),
                cmocka_unit_test_setup(rlimits_stand_in_for_the_cgroup_only_when_it_is_off, reset),
                cmocka_unit_test_setup(landlock_rights_are_those_of_the_abi, reset),
                cmocka_unit_test_setup(no_rule_gives_a_right_that_is_not_handled, reset),
                cmocka_unit_test_setup(writable_places_hold_no_devices_and_the_rest_is_not_written, reset),
                cmocka_unit_test_setup(mounts_of_the_policy_come_last_and_in_order, reset),
                cmocka_unit_test_setup(each_weakness_is_a_deviation_of_its_own, reset),
                cmocka_unit_test_setup(what_cannot_be_had_is_refused_with_the_remedy, reset),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
