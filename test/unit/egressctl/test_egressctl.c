/* test_egressctl.c - whatever the process on the other end does, the caller gets an answer, a reason, and nothing left
 * behind. The programs that are started here is odd_egress.c; the real one is in test/integration. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "egressctl/egressctl.h"

#define ID "aaaaaaaaaaaaaaaaaaaa"

static unsigned records;

static void on_record(void *arg, const char *json, size_t n) {
        assert_ptr_equal(arg, &records);
        assert_memory_equal(json, "{\"decision\":\"deny\"}", n);
        records++;
}

static struct egressctl *start(const char *mode) {
        struct egressctl_config c = { .upstream_proxy = mode };
        struct egressctl *e = NULL;
        struct err err = { 0 };

        records = 0;
        assert_int_equal(egressctl_start(&c, on_record, &records, &e, &err), 0);
        return e;
}

static void no_child_is_left(void) {
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static void requests_are_answered(void **state) {
        struct egressctl *e = start("well");
        struct err err = { 0 };
        const int fds[] = { 0, 1, 2 };

        (void) state;
        assert_int_equal(egressctl_wait_ready(e, &err), 0);
        assert_null(egressctl_certificate(e));
        assert_int_equal(egressctl_add(e, ID, fds, "{}", &err), 0);
        assert_int_equal(egressctl_update(e, ID, "{}", true, &err), 0);
        assert_int_equal(egressctl_ping(e, &err), 0);
        assert_int_equal(egressctl_remove(e, ID, &err), 0);
        assert_int_equal(egressctl_serve(e, &err), 0);
        assert_null(egressctl_free(e));
        no_child_is_left();
}

static void records_come_before_the_answer_that_follows_them(void **state) {
        struct egressctl *e = start("records");
        struct err err = { 0 };

        (void) state;
        assert_int_equal(egressctl_ping(e, &err), 0);
        assert_int_equal(records, 100);
        assert_null(egressctl_free(e));
        no_child_is_left();
}

/* A supervisor of many reaps whoever ends: the number may be another's by the time that the end is noticed. */
static void one_that_somebody_else_reaped_is_not_looked_for(void **state) {
        struct egressctl *e = start("well");
        struct err err = { 0 };
        pid_t pid = egressctl_pid(e);

        (void) state;
        assert_int_equal(egressctl_wait_ready(e, &err), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(egressctl_serve(e, &err), -EPIPE);
        assert_string_equal(err.msg, "gabion-egress has ended");
        assert_int_equal(egressctl_pid(e), 0);
        assert_int_equal(egressctl_restart(e, &err), 0);
        assert_int_equal(egressctl_ping(e, &err), 0);
        assert_null(egressctl_free(e));
        no_child_is_left();
}

static void what_must_outlive_us_is_kept_at_a_path(void **state) {
        char path[] = "/tmp/gabion-keep-XXXXXX/keep", *slash = strrchr(path, '/');
        struct egressctl_config c = { .upstream_proxy = "well", .keep_path = path };
        struct egressctl *e = NULL;
        struct err err = { 0 };
        struct stat st;

        (void) state;
        *slash = '\0';
        assert_non_null(mkdtemp(path));
        *slash = '/';
        assert_int_equal(egressctl_start(&c, on_record, &records, &e, &err), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_null(egressctl_free(e));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/dev/null", path), 0);
        assert_true(egressctl_start(&c, on_record, &records, &e, &err) < 0);
        (void) unlink(path);
        *slash = '\0';
        (void) rmdir(path);
        no_child_is_left();
}

static void a_refusal_is_told_and_is_no_death(void **state) {
        struct egressctl *e = start("refuse");
        struct err err = { 0 };

        (void) state;
        assert_int_equal(egressctl_wait_ready(e, &err), -EREMOTEIO);
        assert_non_null(strstr(err.msg, "no such place"));
        assert_true(egressctl_pid(e) > 0);
        assert_null(egressctl_free(e));
        no_child_is_left();
}

static void odd_words_end_the_process(void **state) {
        static const char *const modes[] = { "nonsense", "ask", "ready-again", "killed" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                struct egressctl *e = start(modes[i]);
                struct err err = { 0 };

                assert_int_equal(egressctl_wait_ready(e, &err), 0);
                assert_int_equal(egressctl_ping(e, &err), -EPIPE);
                assert_true(err.msg[0]);
                assert_int_equal(egressctl_fd(e), -1);
                assert_int_equal(egressctl_pid(e), 0);
                no_child_is_left();
                assert_int_equal(egressctl_ping(e, &err), -EPIPE); /* and stays dead */
                assert_null(egressctl_free(e));
        }
}

static void a_death_is_named_and_can_be_mended(void **state) {
        struct egressctl *e = start("die");
        struct err err = { 0 };

        (void) state;
        assert_int_equal(egressctl_wait_ready(e, &err), -EPIPE);
        assert_non_null(strstr(err.msg, "status 3"));
        assert_int_equal(egressctl_restart(e, &err), 0); /* it dies again, but as another one */
        assert_int_equal(egressctl_wait_ready(e, &err), -EPIPE);
        assert_null(egressctl_free(e));
        e = start("killed");
        assert_int_equal(egressctl_ping(e, &err), -EPIPE);
        assert_non_null(strstr(err.msg, "signal"));
        assert_int_equal(egressctl_restart(e, &err), 0);
        assert_int_equal(egressctl_wait_ready(e, &err), 0);
        assert_null(egressctl_free(e));
        no_child_is_left();
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_answered),
                cmocka_unit_test(records_come_before_the_answer_that_follows_them),
                cmocka_unit_test(one_that_somebody_else_reaped_is_not_looked_for),
                cmocka_unit_test(what_must_outlive_us_is_kept_at_a_path),
                cmocka_unit_test(a_refusal_is_told_and_is_no_death),
                cmocka_unit_test(odd_words_end_the_process),
                cmocka_unit_test(a_death_is_named_and_can_be_mended),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
