/* test_weaken.c - the names of the test hook: each control has one, and no other word leaves anything out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"
#include "sandbox/sandbox.h"

static const struct {
        const char *name;
        enum sandbox_weaken value;
} rows[] = {
        { "net", WEAKEN_NET },
        { "ipc", WEAKEN_IPC },
        { "uts", WEAKEN_UTS },
        { "cgroup-ns", WEAKEN_CGROUP_NS },
        { "time", WEAKEN_TIME },
        { "pid-ns", WEAKEN_PID },
        { "uid-map", WEAKEN_UID_MAP },
        { "gid-map", WEAKEN_GID_MAP },
        { "root-rw", WEAKEN_ROOT_RW },
        { "usr-rw", WEAKEN_USR_RW },
        { "shared", WEAKEN_SHARED },
        { "mask", WEAKEN_MASK },
        { "extra-mount", WEAKEN_EXTRA_MOUNT },
        { "memory", WEAKEN_MEMORY },
        { "pids", WEAKEN_PIDS },
        { "cpu", WEAKEN_CPU },
        { "io", WEAKEN_IO },
        { "tasks", WEAKEN_TASKS },
        { "caps", WEAKEN_CAPS },
        { "nnp", WEAKEN_NNP },
        { "seccomp", WEAKEN_SECCOMP },
        { "seccomp-other", WEAKEN_SECCOMP_OTHER },
        { "landlock", WEAKEN_LANDLOCK },
        { "scope", WEAKEN_SCOPE },
        { "securebits", WEAKEN_SECUREBITS },
        { "rlimit", WEAKEN_RLIMIT },
        { "ids", WEAKEN_IDS },
        { "fds", WEAKEN_FDS },
        { "agent-env", WEAKEN_AGENT_ENV },
        { "agent-caps", WEAKEN_AGENT_CAPS },
        { "oom-score", WEAKEN_OOM_SCORE },
        { "tmpfs-size", WEAKEN_TMPFS_SIZE },
        { "terminals", WEAKEN_TERMINALS },
        { "user-namespaces", WEAKEN_WALL },
};

static void every_control_has_a_name(void **state) {
        (void) state;
        assert_int_equal(ARRAY_SIZE(rows), WEAKEN_COUNT - 1);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(rows[i].value, i + 1);
                assert_int_equal(sandbox_weaken_parse(rows[i].name), rows[i].value);
        }
}

static void other_words_weaken_nothing(void **state) {
        static const char *const words[] = { "", "none", "NET", "net ", " net", "net,ipc", "n", "everything" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                assert_int_equal(sandbox_weaken_parse(words[i]), WEAKEN_NONE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_control_has_a_name),
                cmocka_unit_test(other_words_weaken_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
