/* test_file.c - policy files: kinds of files, sizes, and where relative sources start. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "policy/net.h"
#include "policy/net_flags.h"
#include "policy/policy.h"

static struct policy p, before;
static char folder[64];

static int setup(void **state) {
        (void) state;
        (void) snprintf(folder, sizeof(folder), "/tmp/gabion-policy-XXXXXX");
        return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state) {
        static const char *const names[] = { "p.yaml",   "p.json",     "link.yaml",   "pipe",
                                             "big.yaml", "sub/p.yaml", "sub/a/p.yaml" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                (void) unlink(names[i]);
        (void) rmdir("sub/a");
        (void) rmdir("sub");
        return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text) {
        AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void says(const char *name, int code, const char *want) {
        struct err err = { 0 };

        memset(&p, 0x5a, sizeof(p));
        policy_default(&p);
        before = p;
        assert_int_equal(policy_read_file(name, &p, &err), code);
        assert_string_equal(err.msg, want);
        assert_int_equal(err.code, code);
        assert_memory_equal(&p, &before, sizeof(p));
}

static void accepts(const char *name) {
        struct err err = { 0 };

        policy_default(&p);
        if (policy_read_file(name, &p, &err) < 0)
                fail_msg("%s", err.msg);
}

static void source_is(size_t i, const char *tail) {
        char want[POLICY_PATH];

        (void) snprintf(want, sizeof(want), "%s%s", folder, tail);
        assert_string_equal(p.mounts[i].source, want);
}

static void the_example_of_the_documentation_is_valid(void **state) {
        (void) state;
        accepts(EXAMPLES "/python-agent.yaml");
        assert_string_equal(p.name, "python-agent");
        assert_int_equal(p.n_mounts, 2);
        assert_string_equal(p.mounts[0].source, EXAMPLES "/repo");
        assert_string_equal(p.mounts[1].target, "/out");
        assert_true(p.mounts[1].writable);
        assert_int_equal(p.limits.cpu_milli, 1500);
        assert_int_equal(p.limits.time_ms, 1800000);
}

static void the_examples_of_a_network_are_valid(void **state) {
        struct err err = { 0 };

        (void) state;
        accepts(EXAMPLES "/network-agent.yaml");
        assert_true(policy_net_any(&p));
        assert_true(policy_net_opens_tls(&p, NULL));
        policy_done(&p);
        policy_default(&p);
        assert_int_equal(policy_read_ceiling(EXAMPLES "/ceiling.yaml", &p, &err), 0);
        assert_true(policy_net_is_public(&p));
        policy_done(&p);
}

static void errors_name_file_and_line(void **state) {
        (void) state;
        put("p.yaml", "# first\nversion: 1\nlimits:\n  memory: 512M\n  memroy: 1G\n");
        says("p.yaml", -EINVAL,
             "p.yaml:5: limits.memroy: unknown key; did you mean 'memory'? "
             "allowed: memory cpu pids disk time output files io");
        put("p.yaml", "version: 1\nname: [\n");
        says("p.yaml", -EINVAL, "p.yaml:3: not YAML: did not find expected node content");
        put("p.yaml", "");
        says("p.yaml", -EINVAL, "p.yaml: the document is empty");
}

static void relative_sources_start_at_the_file(void **state) {
        static const char text[] = "version: 1\nfilesystem:\n  mounts:\n"
                                   "    - {source: a, target: /1}\n    - {source: ./b/c, target: /2}\n"
                                   "    - {source: ., target: /3}\n    - {source: ../d, target: /4}\n"
                                   "    - {source: /e, target: /5}\n    - {source: ./, target: /6}\n";
        char absolute[128];

        (void) state;
        assert_int_equal(mkdir("sub", 0700), 0);
        assert_int_equal(mkdir("sub/a", 0700), 0);
        put("p.yaml", text);
        accepts("p.yaml");
        source_is(0, "/a");
        source_is(1, "/b/c");
        source_is(2, "");
        source_is(3, "/../d");
        assert_string_equal(p.mounts[4].source, "/e");
        source_is(5, "");
        accepts("./p.yaml");
        source_is(0, "/a");
        put("sub/a/p.yaml", text);
        accepts("sub/a/p.yaml");
        source_is(0, "/sub/a/a");
        source_is(3, "/sub/a/../d");
        (void) snprintf(absolute, sizeof(absolute), "%s/sub/a/p.yaml", folder);
        accepts(absolute);
        source_is(1, "/sub/a/b/c");
}

static void links_are_followed(void **state) {
        (void) state;
        put("p.yaml", "version: 1\nname: linked\nfilesystem: {mounts: [{source: a, target: /1}]}\n");
        (void) mkdir("sub", 0700);
        assert_int_equal(symlink("../p.yaml", "sub/p.yaml"), 0);
        accepts("sub/p.yaml");
        assert_string_equal(p.name, "linked");
        source_is(0, "/sub/a"); /* the name that was given counts */
}

static void only_regular_files_are_read(void **state) {
        (void) state;
        assert_int_equal(mkfifo("pipe", 0600), 0);
        says("pipe", -EINVAL, "pipe: not a regular file");
        says(".", -EINVAL, ".: not a regular file");
        says("/dev/zero", -EINVAL, "/dev/zero: not a regular file");
        says("none.yaml", -ENOENT, "none.yaml: No such file or directory");
        says("", -ENOENT, ": No such file or directory");
}

static void large_files_are_refused_unread(void **state) {
        AUTO_FREE char *text = malloc(POLICY_FILE_BYTES + 2);

        (void) state;
        assert_non_null(text);
        put("big.yaml", "");
        assert_int_equal(truncate("big.yaml", 1 << 30), 0);
        says("big.yaml", -EFBIG, "big.yaml: too large for a policy; allowed: 256K");
        memset(text, '\n', POLICY_FILE_BYTES + 1);
        memcpy(text, "version: 1", 10);
        text[POLICY_FILE_BYTES + 1] = '\0';
        put("big.yaml", text);
        says("big.yaml", -EFBIG, "big.yaml: too large for a policy; allowed: 256K");
        text[POLICY_FILE_BYTES] = '\0';
        put("big.yaml", text);
        accepts("big.yaml");
}

static void files_named_json_are_json(void **state) {
        (void) state;
        put("p.json", "{\"version\": 1, \"name\": \"j\", \"limits\": {\"time\": \"5s\"}}");
        accepts("p.json");
        assert_int_equal(p.limits.time_ms, 5000);
        put("p.json", "version: 1");
        says("p.json", -EINVAL, "p.json:1: not JSON: '[' or '{' expected near 'version'");
        put("p.json", "{\"version\": 1, \"limits\": {\"pids\": 1}}");
        says("p.json", -EINVAL, "p.json: limits.pids: 1 is out of range; allowed: 4 to 1000000");
}

static void a_directory_with_control_characters_is_refused(void **state) {
        (void) state;
        assert_int_equal(mkdir("x\x1by", 0700), 0);
        put("x\x1by/p.yaml", "version: 1\nfilesystem: {mounts: [{source: a, target: /1}]}\n");
        says("x\x1by/p.yaml", -EINVAL,
             "x?y/p.yaml: filesystem.mounts[0].source: a path must not have control characters");
        assert_int_equal(unlink("x\x1by/p.yaml"), 0);
        assert_int_equal(rmdir("x\x1by"), 0);
}

static void a_source_that_becomes_too_long_is_refused(void **state) {
        char text[POLICY_PATH + 128], name[POLICY_PATH];

        (void) state;
        memset(name, 'a', sizeof(name));
        name[sizeof(name) - 5] = '\0';
        (void) snprintf(text, sizeof(text), "version: 1\nfilesystem: {mounts: [{source: %s, target: /1}]}\n", name);
        put("p.yaml", text);
        says("p.yaml", -ENAMETOOLONG, "p.yaml: a mount's source is too long with the file's directory");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_example_of_the_documentation_is_valid, setup, teardown),
                cmocka_unit_test_setup_teardown(the_examples_of_a_network_are_valid, setup, teardown),
                cmocka_unit_test_setup_teardown(errors_name_file_and_line, setup, teardown),
                cmocka_unit_test_setup_teardown(relative_sources_start_at_the_file, setup, teardown),
                cmocka_unit_test_setup_teardown(links_are_followed, setup, teardown),
                cmocka_unit_test_setup_teardown(only_regular_files_are_read, setup, teardown),
                cmocka_unit_test_setup_teardown(large_files_are_refused_unread, setup, teardown),
                cmocka_unit_test_setup_teardown(files_named_json_are_json, setup, teardown),
                cmocka_unit_test_setup_teardown(a_directory_with_control_characters_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(a_source_that_becomes_too_long_is_refused, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
