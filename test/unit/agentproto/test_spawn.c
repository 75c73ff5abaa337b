/* test_spawn.c - AP_SPAWN: read back whole, refused when cut, stretched or saying something no host of ours says. */
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
static const uint8_t filter[3 * 8] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
static const char *args[] = { "sh", "", "a b\n\xff", NULL };
static const char *env[] = { "PATH=/bin", "EMPTY=", NULL };

static struct ap_spawn sample(void) {
        return (struct ap_spawn){
                .flags = AP_TTY | AP_NO_STDIN,
                .controls = 511,
                .uid = 1000,
                .gid = 1001,
                .securebits = 0xef,
                .output_credit = 0xffffffff,
                .rows = 24,
                .columns = 80,
                .rlimits = { { 7, 64, 128 }, { 4, 0, UINT64_MAX } },
                .n_rlimits = 2,
                .filter = filter,
                .n_filter = 3,
                .probe = "/etc/probe",
                .cwd = "/home/user",
                .argv = args,
                .argc = 3,
                .envp = env,
                .envc = 2,
        };
}

static size_t put(const struct ap_spawn *s) {
        struct wr w = wr_to(bytes, AP_FRAME_MAX);

        ap_put_spawn(&w, 6, s);
        assert_false(w.bad);
        return w.len - AP_HEAD;
}

static int get(size_t n, struct ap_spawn *ret) {
        return ap_get_spawn(bytes + AP_HEAD, n, ret, vectors, ARRAY_SIZE(vectors));
}

static void spawn_is_read_back_whole(void **state) {
        struct ap_spawn in = sample(), out = { 0 };
        size_t n = put(&in);
        struct ap_head h;

        (void) state;
        assert_int_equal(ap_frame(bytes, n + AP_HEAD, &h), 1);
        assert_int_equal(h.id, 6);
        assert_int_equal(get(n, &out), 0);
        assert_int_equal(out.flags, in.flags);
        assert_int_equal(out.controls, in.controls);
        assert_int_equal(out.uid, in.uid);
        assert_int_equal(out.gid, in.gid);
        assert_int_equal(out.securebits, in.securebits);
        assert_int_equal(out.output_credit, in.output_credit);
        assert_int_equal(out.rows, in.rows);
        assert_int_equal(out.columns, in.columns);
        assert_int_equal(out.n_rlimits, 2);
        assert_int_equal(out.rlimits[0].resource, 7);
        assert_true(out.rlimits[0].soft == 64 && out.rlimits[0].hard == 128);
        assert_true(out.rlimits[1].soft == 0 && out.rlimits[1].hard == UINT64_MAX);
        assert_int_equal(out.n_filter, 3);
        assert_memory_equal(out.filter, filter, sizeof(filter));
        assert_string_equal(out.probe, in.probe);
        assert_string_equal(out.cwd, in.cwd);
        assert_int_equal(out.argc, 3);
        assert_int_equal(out.envc, 2);
        for (size_t i = 0; i < 3; i++)
                assert_string_equal(out.argv[i], args[i]);
        for (size_t i = 0; i < 2; i++)
                assert_string_equal(out.envp[i], env[i]);
        assert_null(out.argv[3]);
        assert_null(out.envp[2]);
}

static void spawn_of_any_other_length_is_refused(void **state) {
        struct ap_spawn in = sample(), out = { .cwd = "before" };
        size_t n = put(&in);

        (void) state;
        for (size_t k = 0; k < n; k++)
                assert_int_equal(get(k, &out), -EBADMSG);
        assert_int_equal(get(n + 1, &out), -EBADMSG);
        assert_string_equal(out.cwd, "before");
}

static void spawn_refuses_nul_inside_and_missing_nul(void **state) {
        struct ap_spawn in = sample(), out;
        size_t n = put(&in);

        (void) state;
        bytes[AP_HEAD + n - 1] = 'x'; /* the NUL of the last string */
        assert_int_equal(get(n, &out), -EBADMSG);
        bytes[AP_HEAD + n - 1] = '\0';
        assert_int_equal(get(n, &out), 0);
        bytes[AP_HEAD + n - 3] = '\0'; /* inside it */
        assert_int_equal(get(n, &out), -EBADMSG);
}

static void spawn_needs_room_for_both_vectors(void **state) {
        struct ap_spawn in = sample(), out;
        size_t n = put(&in);

        (void) state;
        assert_int_equal(ap_get_spawn(bytes + AP_HEAD, n, &out, vectors, 6), -EBADMSG);
        assert_int_equal(ap_get_spawn(bytes + AP_HEAD, n, &out, vectors, 7), 0);
}

static void spawn_refuses_what_no_host_says(void **state) {
        static const char *many[AP_ARGS_MAX + 2];
        struct ap_spawn bad[14], out;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                bad[i] = sample();
        bad[0].flags = AP_HOLD;
        bad[1].controls = 512;
        bad[2].controls = AP_SECCOMP_NOTIFY;
        bad[3].controls = AP_SECCOMP, bad[3].n_filter = 0;
        bad[4].uid = UINT32_MAX;
        bad[5].gid = UINT32_MAX;
        bad[6].probe[0] = 'e';
        bad[7].cwd = "home";
        bad[8].cwd = "";
        bad[9].argc = 0;
        bad[10].argc = AP_ARGS_MAX + 1;
        bad[11].envc = AP_ARGS_MAX + 1;
        bad[12].flags = 0x80000000;
        bad[13].controls = 0x80000000;
        for (size_t i = 0; i < AP_ARGS_MAX + 2; i++)
                many[i] = "x";
        bad[10].argv = bad[11].envp = many;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                size_t n = put(&bad[i]);

                if (get(n, &out) != -EBADMSG)
                        fail_msg("case %zu was accepted", i);
        }
}

static void spawn_refuses_a_directory_longer_than_a_path(void **state) {
        static char cwd[AP_PATH_MAX + 1];
        struct ap_spawn in = sample(), out;

        (void) state;
        memset(cwd, '/', AP_PATH_MAX);
        in.cwd = cwd + 1; /* AP_PATH_MAX - 1 characters */
        assert_int_equal(get(put(&in), &out), 0);
        in.cwd = cwd;
        assert_int_equal(get(put(&in), &out), -EBADMSG);
}

static void encoder_refuses_what_does_not_fit(void **state) {
        static char big[AP_FRAME_MAX];
        struct ap_spawn in = sample();
        struct wr w = wr_to(bytes, sizeof(bytes));

        (void) state;
        memset(big, 'x', sizeof(big) - 1);
        args[1] = big;
        ap_put_spawn(&w, 1, &in); /* fits into the buffer, but not into a frame */
        args[1] = "";
        assert_true(w.bad);
        in.n_rlimits = AP_RLIMITS + 1;
        w = wr_to(bytes, sizeof(bytes));
        ap_put_spawn(&w, 1, &in);
        assert_true(w.bad);
}

static void limits_themselves_are_accepted(void **state) {
        static uint8_t insns[(AP_FILTER_MAX + 1) * 8];
        static const char *many[AP_ARGS_MAX + 1];
        struct ap_spawn in = sample(), out;

        (void) state;
        for (size_t i = 0; i < AP_ARGS_MAX; i++)
                many[i] = "0123456789";
        in.argv = in.envp = many;
        in.argc = in.envc = AP_ARGS_MAX;
        in.filter = insns;
        in.n_filter = AP_FILTER_MAX;
        in.n_rlimits = AP_RLIMITS;
        assert_int_equal(get(put(&in), &out), 0);
        assert_string_equal(out.envp[AP_ARGS_MAX - 1], "0123456789");
        in.n_filter = AP_FILTER_MAX + 1;
        assert_int_equal(get(put(&in), &out), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(spawn_is_read_back_whole),
                cmocka_unit_test(spawn_of_any_other_length_is_refused),
                cmocka_unit_test(spawn_refuses_nul_inside_and_missing_nul),
                cmocka_unit_test(spawn_needs_room_for_both_vectors),
                cmocka_unit_test(spawn_refuses_what_no_host_says),
                cmocka_unit_test(spawn_refuses_a_directory_longer_than_a_path),
                cmocka_unit_test(encoder_refuses_what_does_not_fit),
                cmocka_unit_test(limits_themselves_are_accepted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
