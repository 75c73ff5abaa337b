/* A stranger's program: includes the public header alone and links the one archive. Needs root or a rootless set-up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/gabion.h"

/* Each call in a process of its own: as an ordinary user a call changes the process it is made in. */
static int exit_code_of(const char *policy, const char *const argv[], int refused) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct gabion_result res = { 0 };
                char why[GABION_ERROR];
                int r = gabion_run(policy, argv, &res, why);

                if (r < 0)
                        _exit(strlen(why) > 0 ? refused : 98);
                _exit(strlen(res.sandbox) == 20 ? res.exit_code : 97);
        }
        assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void a_command_runs_and_its_code_comes_back(void **state) {
        const char *const argv[] = { "/bin/sh", "-c", "exit 7", NULL };

        (void) state;
        assert_int_equal(exit_code_of(NULL, argv, 99), 7);
}

static void a_policy_is_obeyed(void **state) {
        const char *const argv[] = { "/bin/sleep", "10", NULL };

        (void) state;
        assert_int_equal(exit_code_of("{\"version\":1,\"limits\":{\"time\":\"200ms\"}}", argv, 99), 124);
}

static void a_bad_policy_is_refused_with_a_reason(void **state) {
        const char *const argv[] = { "/bin/true", NULL };

        (void) state;
        assert_int_equal(exit_code_of("{\"version\":1,\"limts\":{}}", argv, 99), 99);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_runs_and_its_code_comes_back),
                cmocka_unit_test(a_policy_is_obeyed),
                cmocka_unit_test(a_bad_policy_is_refused_with_a_reason),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
