/* test_frames.c - every frame but AP_SPAWN: what is written is read back, and everything else is refused. */
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

/* Takes the head off the one frame that must be in bytes[0..n). */
static const uint8_t *body_of(const struct wr *w, enum ap_type type, uint32_t id, size_t *ret_n) {
        struct ap_head h;

        assert_false(w->bad);
        assert_int_equal(ap_frame(bytes, w->len, &h), 1);
        assert_int_equal(h.length, w->len);
        assert_int_equal(h.type, type);
        assert_int_equal(h.id, id);
        *ret_n = w->len - AP_HEAD;
        return bytes + AP_HEAD;
}

static void frame_waits_for_its_last_byte(void **state) {
        struct wr w = wr_to(bytes, sizeof(bytes));
        struct ap_head h = { 0 };

        (void) state;
        ap_put_u32(&w, AP_CREDIT, 0xfffffffe, 0x01020304);
        for (size_t n = 0; n < w.len; n++)
                assert_int_equal(ap_frame(bytes, n, &h), 0);
        assert_int_equal(h.length, 0);
        assert_int_equal(ap_frame(bytes, w.len + 1, &h), 1); /* more behind it is no matter */
        assert_int_equal(h.length, 14);
        assert_int_equal(h.id, 0xfffffffe);
}

static void frame_of_impossible_length_is_refused_at_once(void **state) {
        static const uint32_t bad[] = { 0, 5, AP_FRAME_MAX - 3, 0x7fffffff, 0xffffffff };
        struct ap_head h;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct wr w = wr_to(bytes, sizeof(bytes));

                wr_u32(&w, bad[i]);
                assert_int_equal(ap_frame(bytes, 4, &h), -EBADMSG);
        }
}

static void frame_of_the_greatest_length_passes(void **state) {
        struct ap_head h;

        (void) state;
        ap_head_put(bytes, AP_SPAWN, 1, AP_FRAME_MAX - AP_HEAD);
        assert_int_equal(ap_frame(bytes, AP_FRAME_MAX - 1, &h), 0);
        assert_int_equal(ap_frame(bytes, AP_FRAME_MAX, &h), 1);
        assert_int_equal(h.length, AP_FRAME_MAX);
}

static void frame_of_unknown_type_is_refused(void **state) {
        static const unsigned bad[] = { 0, 28, 31, 45, 63, 67, 65535 };
        struct ap_head h;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                ap_head_put(bytes, (enum ap_type) bad[i], 1, 0);
                assert_int_equal(ap_frame(bytes, AP_HEAD, &h), -EBADMSG);
                assert_int_equal(ap_frame(bytes, 6, &h), -EBADMSG);
        }
}

static void numbers_are_read_back_at_their_own_size_only(void **state) {
        struct wr w = wr_to(bytes, sizeof(bytes));
        uint16_t rows = 1, columns = 1;
        const uint8_t *body;
        uint64_t caps = 0;
        uint32_t v = 0;
        size_t n;

        (void) state;
        ap_put_u32(&w, AP_STARTED, 7, 0xdeadbeef);
        body = body_of(&w, AP_STARTED, 7, &n);
        assert_int_equal(ap_get_u32(body, n, &v), 0);
        assert_int_equal(v, 0xdeadbeef);
        assert_int_equal(ap_get_u32(body, n - 1, &v), -EBADMSG);
        assert_int_equal(ap_get_u32(body, n + 1, &v), -EBADMSG);

        w = wr_to(bytes, sizeof(bytes));
        ap_put_configure(&w, 0x123456789abcdef0);
        body = body_of(&w, AP_CONFIGURE, 0, &n);
        assert_int_equal(ap_get_configure(body, n, &caps), 0);
        assert_true(caps == 0x123456789abcdef0);
        assert_int_equal(ap_get_configure(body, n - 1, &caps), -EBADMSG);
        assert_int_equal(ap_get_configure(body, n + 1, &caps), -EBADMSG);

        w = wr_to(bytes, sizeof(bytes));
        ap_put_resize(&w, 3, 0xfffe, 80);
        body = body_of(&w, AP_RESIZE, 3, &n);
        assert_int_equal(ap_get_resize(body, n - 1, &rows, &columns), -EBADMSG);
        assert_int_equal(ap_get_resize(body, n + 1, &rows, &columns), -EBADMSG);
        assert_int_equal(rows, 1);
        assert_int_equal(ap_get_resize(body, n, &rows, &columns), 0);
        assert_int_equal(rows, 0xfffe);
        assert_int_equal(columns, 80);

        w = wr_to(bytes, sizeof(bytes));
        ap_put_empty(&w, AP_STDIN_EOF, 9);
        (void) body_of(&w, AP_STDIN_EOF, 9, &n);
        assert_int_equal(n, 0);
}

static void encoder_without_room_turns_bad(void **state) {
        const struct ap_exit e = { 0 };

        (void) state;
        for (size_t cap = 0; cap < AP_HEAD + 29; cap++) {
                struct wr w = wr_to(bytes, cap);

                ap_put_exit(&w, 1, &e);
                assert_true(w.bad);
        }
}

static void exit_is_read_back_and_impossible_ones_refused(void **state) {
        static const struct {
                struct ap_exit e;
                int r;
        } cases[] = {
                { { 0, 0, 0, 0, 0 }, 0 },          { { 0, 255, 1, 2, 3 }, 0 },
                { { 0, 256, 0, 0, 0 }, -EBADMSG }, { { 1, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX }, 0 },
                { { 1, 64, 0, 0, 0 }, 0 },         { { 1, 0, 0, 0, 0 }, -EBADMSG },
                { { 1, 65, 0, 0, 0 }, -EBADMSG },  { { 2, 1, 0, 0, 0 }, -EBADMSG },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wr w = wr_to(bytes, sizeof(bytes));
                struct ap_exit got = { .code = 77 };
                const uint8_t *body;
                size_t n;

                ap_put_exit(&w, 4, &cases[i].e);
                body = body_of(&w, AP_EXITED, 4, &n);
                assert_int_equal(ap_get_exit(body, n - 1, &got), -EBADMSG);
                assert_int_equal(ap_get_exit(body, n + 1, &got), -EBADMSG);
                assert_int_equal(ap_get_exit(body, n, &got), cases[i].r);
                assert_int_equal(got.code, cases[i].r ? 77 : cases[i].e.code);
                if (cases[i].r == 0) {
                        assert_int_equal(got.signalled, cases[i].e.signalled);
                        assert_true(got.user_us == cases[i].e.user_us && got.system_us == cases[i].e.system_us &&
                                    got.max_rss_kib == cases[i].e.max_rss_kib);
                }
        }
}

static void error_refuses_control_characters_and_odd_numbers(void **state) {
        static const struct {
                uint32_t e;
                const char *step;
                int r;
        } cases[] = {
                { ENOENT, "chdir", 0 },
                { 4095, "", 0 },
                { 0, "chdir", -EBADMSG },
                { 4096, "chdir", -EBADMSG },
                { 1, "a\033[2Jb", -EBADMSG },
                { 1, "a\nb", -EBADMSG },
                { 1, "\x80", -EBADMSG },
                { 1, "123456789012345", 0 },
                { 1, "1234567890123456", -EBADMSG },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct wr w = wr_to(bytes, sizeof(bytes));
                char step[16] = "before";
                uint32_t e = 0;
                const uint8_t *body;
                size_t n;

                ap_put_error(&w, 5, cases[i].e, cases[i].step);
                body = body_of(&w, AP_ERROR, 5, &n);
                assert_int_equal(ap_get_error(body, n, &e, step, sizeof(step)), cases[i].r);
                assert_string_equal(step, cases[i].r ? "" : cases[i].step);
                assert_int_equal(e, cases[i].r ? 0 : cases[i].e);
                assert_int_equal(ap_get_error(body, n + 1, &e, step, sizeof(step)), -EBADMSG);
        }
}

static void output_has_a_known_stream_and_one_to_chunk_bytes(void **state) {
        static const size_t lengths[] = { 1, 2, 4095, AP_CHUNK - 1, AP_CHUNK };
        const void *p = NULL;
        unsigned stream = 0;
        size_t n = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                bytes[0] = (uint8_t) (1 + i % 2);
                assert_int_equal(ap_get_output(bytes, lengths[i] + 1, &stream, &p, &n), 0);
                assert_int_equal(stream, 1 + i % 2);
                assert_ptr_equal(p, bytes + 1);
                assert_int_equal(n, lengths[i]);
        }
        assert_int_equal(ap_get_output(bytes, AP_CHUNK + 2, &stream, &p, &n), -EBADMSG);
        assert_int_equal(ap_get_output(bytes, 1, &stream, &p, &n), -EBADMSG);
        assert_int_equal(ap_get_output(bytes, 0, &stream, &p, &n), -EBADMSG);
        for (unsigned s = 0; s < 256; s += s == 0 ? 3 : 1) {
                bytes[0] = (uint8_t) s;
                assert_int_equal(ap_get_output(bytes, 2, &stream, &p, &n), -EBADMSG);
        }
}

static void ready_is_read_back_whole(void **state) {
        struct ap_ready in = { .id = 9, .securebits = 0xef, .landlock_errno = EACCES, .scope_errno = EPERM }, out;
        struct wr w = wr_to(bytes, sizeof(bytes));

        (void) state;
        memset(in.status, 'x', sizeof(in.status) - 1);
        in.status[5] = '\n';
        in.status[6] = '\t';
        ap_put_ready(&w, &in);
        assert_false(w.bad);
        memset(&out, 0xff, sizeof(out));
        assert_int_equal(ap_get_ready(bytes, w.len, &out), 0);
        assert_memory_equal(&in, &out, sizeof(in));
        assert_int_equal(ap_get_ready(bytes, w.len + 1, &out), -EBADMSG);
        for (size_t n = 0; n < w.len; n++)
                assert_int_equal(ap_get_ready(bytes, n, &out), -EBADMSG);
}

static void ready_refuses_odd_values(void **state) {
        struct ap_ready in = { .status = "Name:\tx\n" }, out = { .status = "before" };
        struct wr w = wr_to(bytes, sizeof(bytes));

        (void) state;
        in.landlock_errno = -1;
        ap_put_ready(&w, &in);
        assert_int_equal(ap_get_ready(bytes, w.len, &out), -EBADMSG);
        assert_string_equal(out.status, "");
        in.landlock_errno = 0;
        in.status[2] = '\033';
        w = wr_to(bytes, sizeof(bytes));
        ap_put_ready(&w, &in);
        assert_int_equal(ap_get_ready(bytes, w.len, &out), -EBADMSG);
        assert_string_equal(out.status, "");
        in.status[2] = 'm';
        w = wr_to(bytes, sizeof(bytes));
        ap_put_ready(&w, &in);
        assert_int_equal(ap_get_ready(bytes, w.len, &out), 0);
        bytes[5] = AP_EXEC_FAILED; /* the right body under the wrong name */
        assert_int_equal(ap_get_ready(bytes, w.len, &out), -EBADMSG);
}

static void exec_failed_is_one_whole_datagram(void **state) {
        struct wr w = wr_to(bytes, sizeof(bytes));
        uint32_t e = 0;

        (void) state;
        ap_put_u32(&w, AP_EXEC_FAILED, 2, ENOENT);
        assert_int_equal(ap_get_exec_failed(bytes, w.len - 1, &e), -EBADMSG);
        assert_int_equal(ap_get_exec_failed(bytes, w.len + 1, &e), -EBADMSG);
        assert_int_equal(e, 0);
        assert_int_equal(ap_get_exec_failed(bytes, w.len, &e), 0);
        assert_int_equal(e, ENOENT);
        w = wr_to(bytes, sizeof(bytes));
        ap_put_u32(&w, AP_EXEC_FAILED, 2, 0);
        assert_int_equal(ap_get_exec_failed(bytes, w.len, &e), -EBADMSG);
        w = wr_to(bytes, sizeof(bytes));
        ap_put_u32(&w, AP_STARTED, 2, ENOENT);
        assert_int_equal(ap_get_exec_failed(bytes, w.len, &e), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(frame_waits_for_its_last_byte),
                cmocka_unit_test(frame_of_impossible_length_is_refused_at_once),
                cmocka_unit_test(frame_of_the_greatest_length_passes),
                cmocka_unit_test(frame_of_unknown_type_is_refused),
                cmocka_unit_test(numbers_are_read_back_at_their_own_size_only),
                cmocka_unit_test(encoder_without_room_turns_bad),
                cmocka_unit_test(exit_is_read_back_and_impossible_ones_refused),
                cmocka_unit_test(error_refuses_control_characters_and_odd_numbers),
                cmocka_unit_test(output_has_a_known_stream_and_one_to_chunk_bytes),
                cmocka_unit_test(ready_is_read_back_whole),
                cmocka_unit_test(ready_refuses_odd_values),
                cmocka_unit_test(exec_failed_is_one_whole_datagram),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
