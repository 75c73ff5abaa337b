/* test_mount.c - the paths of mounts, and SRC:DST[:ro|rw]. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/mount.h"
#include "policy/policy.h"

static void free_places_are_allowed(void **state) {
        static const char *const good[] = { "/workspace", "/out",   "/home/user/.cache", "/a/b/c", "/tmp/x",   "/...",
                                            "/.a/..b",    "/users", "/etcetera",         "/devel", "/\xc3\xa4" };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                if (policy_mount_check_target(good[i], &err) < 0)
                        fail_msg("%s: %s", good[i], err.msg);
}

static void reserved_places_are_refused(void **state) {
        static const char *const bad[] = {
                "/",        "/proc",   "/proc/self",  "/sys",   "/sys/fs/cgroup", "/dev",
                "/dev/shm", "/etc",    "/etc/passwd", "/usr",   "/usr/local",     "/usr/local/bin",
                "/bin",     "/bin/sh", "/sbin",       "/lib",   "/lib32",         "/lib64",
                "/libx32",  "/lib/x",  "/run",        "/run/x", "/boot"
        };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (policy_mount_check_target(bad[i], &err) != -EINVAL)
                        fail_msg("%s is allowed", bad[i]);
}

static void only_the_normal_form_is_allowed(void **state) {
        static const char *const bad[] = { "",     "out",   "./out", "/out/", "//out", "/a//b", "/a/./b",
                                           "/a/.", "/a/..", "/../a", "/..",   "/.",    "//",    "/a/../../etc" };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (policy_mount_check_target(bad[i], &err) != -EINVAL)
                        fail_msg("%s is allowed", bad[i]);
}

static void no_path_has_control_characters_or_bad_utf8(void **state) {
        static const char *const bad[] = { "/a\nb", "/a\x1b[2J", "/a\x7f", "/\xff", "/\xc2\x9b" };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(policy_mount_check_target(bad[i], &err), -EINVAL);
                assert_int_equal(policy_mount_check_source(bad[i], &err), -EINVAL);
        }
        assert_int_equal(policy_mount_check_source("../a b/\xc3\xa4", &err), 0);
        assert_int_equal(policy_mount_check_source("", &err), -EINVAL);
}

static void long_paths_are_refused(void **state) {
        char path[POLICY_PATH + 1];
        struct err err = { 0 };

        (void) state;
        memset(path, 'a', sizeof(path));
        path[0] = '/';
        path[POLICY_PATH] = '\0';
        assert_int_equal(policy_mount_check_target(path, &err), -EINVAL);
        path[POLICY_PATH - 1] = '\0';
        assert_int_equal(policy_mount_check_target(path, &err), 0);
}

static void a_later_mount_covers_no_earlier_one(void **state) {
        struct err err = { 0 };

        (void) state;
        assert_int_equal(policy_mount_check_pair("/a", "/a", &err), -EINVAL);
        assert_string_equal(err.msg, "'/a' is mounted twice");
        assert_int_equal(policy_mount_check_pair("/a/b", "/a", &err), -EINVAL);
        assert_string_equal(err.msg, "'/a' would hide '/a/b'; list the outer one first");
        assert_int_equal(policy_mount_check_pair("/a", "/a/b", &err), 0);
        assert_int_equal(policy_mount_check_pair("/ab", "/a", &err), 0);
}

static void command_line_form_is_read(void **state) {
        struct policy_mount m;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(policy_parse_mount("./repo:/workspace", &m, &err), 0);
        assert_string_equal(m.source, "./repo");
        assert_string_equal(m.target, "/workspace");
        assert_false(m.writable);
        assert_int_equal(policy_parse_mount("/o:/out:rw", &m, &err), 0);
        assert_true(m.writable);
        assert_int_equal(policy_parse_mount("/o:/out:ro", &m, &err), 0);
        assert_false(m.writable);
}

static void other_command_line_forms_are_refused(void **state) {
        static const char *const bad[] = { "",       "a",           ":",       "a:",       ":/b",
                                           "a:b",    "a:/b:",       "a:/b:rx", "a:/b:rw:", "a:/b:ro:rw",
                                           "a:/etc", "a:/b/../etc", "a\n:/b",  "a:/b\x1b", "\xff:/b" };
        struct policy_mount m = { .source = "kept" };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(policy_parse_mount(bad[i], &m, &err), -EINVAL);
                assert_string_equal(m.source, "kept");
                assert_memory_equal(err.msg, "mount", 5);
        }
}

static void long_command_line_forms_are_refused(void **state) {
        char text[3 * POLICY_PATH];
        struct policy_mount m;
        struct err err = { 0 };

        (void) state;
        memset(text, 'a', sizeof(text));
        memcpy(text + sizeof(text) - 3, ":/", 3);
        assert_int_equal(policy_parse_mount(text, &m, &err), -EINVAL);
        memcpy(text, "a:/", 3);
        text[sizeof(text) - 3] = 'a';
        assert_int_equal(policy_parse_mount(text, &m, &err), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(free_places_are_allowed),
                cmocka_unit_test(reserved_places_are_refused),
                cmocka_unit_test(only_the_normal_form_is_allowed),
                cmocka_unit_test(no_path_has_control_characters_or_bad_utf8),
                cmocka_unit_test(long_paths_are_refused),
                cmocka_unit_test(a_later_mount_covers_no_earlier_one),
                cmocka_unit_test(command_line_form_is_read),
                cmocka_unit_test(other_command_line_forms_are_refused),
                cmocka_unit_test(long_command_line_forms_are_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
