/* test_start.c - frames of a sandbox that lives on: read back whole, refused when cut, stretched or impossible. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agentproto/agentproto.h"
#include "base/own.h"
#include "base/wr.h"

static uint8_t bytes[AP_FRAME_MAX + 16];
static const char *vectors[2 * AP_ARGS_MAX + 2];
static const char *args[] = { "sh", "", "a b\n\xff", NULL };
static const char *env[] = { "PATH=/bin", "EMPTY=", NULL };

static struct ap_start sample(void) {
        return (struct ap_start){ .flags = AP_TTY,
                                  .uid = 1000,
                                  .credit = 0xfffffffe,
                                  .rows = 24,
                                  .columns = 80,
                                  .tag = "a tag",
                                  .cwd = "/home/user",
                                  .argv = args,
                                  .argc = 3,
                                  .envp = env,
                                  .envc = 2 };
}

static size_t put_start(const struct ap_start *s) {
        struct wr w = wr_to(bytes, AP_FRAME_MAX);

        ap_put_start(&w, 6, s);
        assert_false(w.bad);
        return w.len - AP_HEAD;
}

static int get_start(size_t n, struct ap_start *ret) {
        return ap_get_start(bytes + AP_HEAD, n, ret, vectors, ARRAY_SIZE(vectors));
}

static void start_is_read_back_whole_and_at_its_own_length_only(void **state) {
        struct ap_start in = sample(), out = { 0 };
        size_t n = put_start(&in);

        (void) state;
        for (size_t k = 0; k < n; k++)
                assert_int_equal(get_start(k, &out), -EBADMSG);
        assert_int_equal(get_start(n + 1, &out), -EBADMSG);
        assert_null(out.cwd);
        assert_int_equal(get_start(n, &out), 0);
        assert_int_equal(out.flags, in.flags);
        assert_int_equal(out.uid, in.uid);
        assert_int_equal(out.credit, in.credit);
        assert_int_equal(out.rows, in.rows);
        assert_int_equal(out.columns, in.columns);
        assert_string_equal(out.tag, in.tag);
        assert_string_equal(out.cwd, in.cwd);
        assert_string_equal(out.argv[2], args[2]);
        assert_null(out.argv[3]);
        assert_string_equal(out.envp[1], env[1]);
        assert_null(out.envp[2]);
}

static void start_refuses_what_no_host_says(void **state) {
        struct ap_start bad[6], out;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                bad[i] = sample();
        bad[0].flags = AP_LAUNCHER;
        bad[1].cwd = "relative";
        bad[2].cwd = "";
        bad[3].argc = 0;
        bad[4].flags = 0x80000000;
        memset(bytes, 'x', sizeof(bytes));
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(get_start(put_start(&bad[i]), &out), -EBADMSG);
        assert_int_equal(get_start(put_start(&bad[5]), &out), 0);
        assert_int_equal(ap_get_start(bytes + AP_HEAD, put_start(&bad[5]), &out, vectors, 6), -EBADMSG); /* 7 needed */
}

static void environment_is_read_back_and_bounded(void **state) {
        static char big[AP_ENV_MAX];
        const char *large[] = { big };
        struct wr w = wr_to(bytes, sizeof(bytes));
        size_t n;

        (void) state;
        ap_put_env(&w, env, 2);
        n = w.len - AP_HEAD;
        for (size_t k = 0; k < n; k++)
                assert_int_equal(ap_get_env(bytes + AP_HEAD, k, vectors, ARRAY_SIZE(vectors)), -EBADMSG);
        assert_int_equal(ap_get_env(bytes + AP_HEAD, n, vectors, 2), -EBADMSG);
        assert_int_equal(ap_get_env(bytes + AP_HEAD, n, vectors, 3), 0);
        assert_string_equal(vectors[1], "EMPTY=");
        assert_null(vectors[2]);
        memset(big, 'x', sizeof(big) - 1);
        w = wr_to(bytes, sizeof(bytes));
        ap_put_env(&w, large, 1);
        assert_true(w.bad);
}

static void attach_is_read_back_and_names_one_thing(void **state) {
        struct ap_attach in = { .by = AP_BY_TAG, .flags = AP_QUIET, .tag = "t", .from = 1ull << 40, .credit = 9 }, out;
        struct wr w = wr_to(bytes, sizeof(bytes));
        size_t n;

        (void) state;
        ap_put_attach(&w, 1, &in);
        n = w.len - AP_HEAD;
        for (size_t k = 0; k < n; k++)
                assert_int_equal(ap_get_attach(bytes + AP_HEAD, k, &out), -EBADMSG);
        assert_int_equal(ap_get_attach(bytes + AP_HEAD, n, &out), 0);
        assert_string_equal(out.tag, "t");
        assert_true(out.from == in.from && out.credit == 9 && out.flags == AP_QUIET);
        for (int i = 0; i < 4; i++) {
                struct ap_attach bad = in;

                bad.by = i == 0 ? 3 : i == 1 ? AP_BY_PID : AP_BY_TAG; /* a tag, but not to be found by it */
                bad.flags = i == 2 ? 2 : 0;
                if (i == 3)
                        bad.tag[0] = '\0';
                w = wr_to(bytes, sizeof(bytes));
                ap_put_attach(&w, 1, &bad);
                assert_int_equal(ap_get_attach(bytes + AP_HEAD, w.len - AP_HEAD, &out), -EBADMSG);
        }
}

static void running_and_gap_are_read_back(void **state) {
        struct ap_running in = { .number = 3, .pid = 77, .at = 1ull << 33 }, out;
        struct wr w = wr_to(bytes, sizeof(bytes));
        uint64_t lost;

        (void) state;
        ap_put_running(&w, 1, &in);
        assert_int_equal(ap_get_running(bytes + AP_HEAD, w.len - AP_HEAD - 1, &out), -EBADMSG);
        assert_int_equal(ap_get_running(bytes + AP_HEAD, w.len - AP_HEAD, &out), 0);
        assert_true(out.number == 3 && out.pid == 77 && out.at == in.at);
        w = wr_to(bytes, sizeof(bytes));
        ap_put_gap(&w, 1, 5);
        assert_int_equal(ap_get_gap(bytes + AP_HEAD, w.len - AP_HEAD, &lost), 0);
        assert_int_equal(lost, 5);
        w = wr_to(bytes, sizeof(bytes));
        ap_put_gap(&w, 1, 0); /* nothing lost is nothing to tell */
        assert_int_equal(ap_get_gap(bytes + AP_HEAD, w.len - AP_HEAD, &lost), -EBADMSG);
}

static void command_is_read_back_with_its_arguments(void **state) {
        uint8_t what[AP_WHAT];
        struct ap_command in = { .number = 1,
                                 .pid = 2,
                                 .uid = 3,
                                 .flags = AP_IS_TTY,
                                 .kept = 4,
                                 .end = 5,
                                 .tag = "t",
                                 .what = what },
                          out;
        struct wr w = wr_to(bytes, sizeof(bytes));
        const char *cwd, *argv[8];
        bool cut;

        (void) state;
        in.n_what = ap_put_what(what, "/dir", args, 3);
        ap_put_command(&w, 1, &in);
        assert_int_equal(ap_get_command(bytes + AP_HEAD, w.len - AP_HEAD, &out), 0);
        assert_true(out.number == 1 && out.pid == 2 && out.uid == 3 && out.kept == 4 && out.end == 5);
        assert_int_equal(ap_get_what(out.what, out.n_what, &cwd, argv, ARRAY_SIZE(argv), &cut), 0);
        assert_string_equal(cwd, "/dir");
        assert_string_equal(argv[2], args[2]);
        assert_null(argv[3]);
        assert_false(cut);
        assert_int_equal(ap_get_what(out.what, out.n_what, &cwd, argv, 3, &cut), -EBADMSG); /* four needed */
        in.kept = 6;
        w = wr_to(bytes, sizeof(bytes));
        ap_put_command(&w, 1, &in);
        assert_int_equal(ap_get_command(bytes + AP_HEAD, w.len - AP_HEAD, &out), -EBADMSG);
}

static void arguments_too_long_to_keep_are_cut(void **state) {
        static char long_arg[AP_WHAT], long_dir[AP_WHAT];
        const char *many[] = { "first", long_arg, "last" }, *cwd, *argv[8];
        uint8_t what[AP_WHAT];
        uint16_t n;
        bool cut;

        (void) state;
        memset(long_arg, 'x', sizeof(long_arg) - 1);
        memset(long_dir, '/', sizeof(long_dir) - 1);
        n = ap_put_what(what, "/", many, 3);
        assert_int_equal(ap_get_what(what, n, &cwd, argv, ARRAY_SIZE(argv), &cut), 0);
        assert_string_equal(argv[0], "first");
        assert_null(argv[1]);
        assert_true(cut);
        n = ap_put_what(what, long_dir, many, 1);
        assert_int_equal(ap_get_what(what, n, &cwd, argv, ARRAY_SIZE(argv), &cut), 0);
        assert_string_equal(cwd, "");
        assert_string_equal(argv[0], "first");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(start_is_read_back_whole_and_at_its_own_length_only),
                cmocka_unit_test(start_refuses_what_no_host_says),
                cmocka_unit_test(environment_is_read_back_and_bounded),
                cmocka_unit_test(attach_is_read_back_and_names_one_thing),
                cmocka_unit_test(running_and_gap_are_read_back),
                cmocka_unit_test(command_is_read_back_with_its_arguments),
                cmocka_unit_test(arguments_too_long_to_keep_are_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
