/* test_buf.c - the growable buffer: grows up to its ceiling, stays a string, is sticky after a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"

static void empty_is_the_empty_string(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(16);

        (void) state;
        assert_string_equal(buf_str(&b), "");
        buf_eat(&b, 3);
        assert_string_equal(buf_str(&b), "");
        buf_add(&b, NULL, 0);
        assert_string_equal(buf_str(&b), "");
        assert_false(b.bad);
}

static void grows_and_stays_terminated(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(100000);

        (void) state;
        for (int i = 0; i < 5000; i++) {
                buf_addf(&b, "%04d", i);
                assert_int_equal(strlen(buf_str(&b)), b.len);
        }
        assert_false(b.bad);
        assert_int_equal(b.len, 20000);
        assert_memory_equal(b.p, "000000010002", 12);
        assert_string_equal(b.p + b.len - 4, "4999");
}

static void the_ceiling_can_be_reached_but_not_crossed(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(5);

        (void) state;
        buf_add(&b, "abc", 3);
        buf_addf(&b, "%s", "de");
        assert_false(b.bad);
        buf_add(&b, "f", 1);
        assert_true(b.bad);
        assert_string_equal(buf_str(&b), "abcde");
        buf_eat(&b, 5);
        buf_add(&b, "g", 1); /* sticky, although there is room again */
        assert_string_equal(buf_str(&b), "");
}

static void a_huge_length_does_not_wrap(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(64);

        (void) state;
        buf_add(&b, "abc", 3);
        buf_add(&b, "x", SIZE_MAX - 1);
        assert_true(b.bad);
        assert_string_equal(buf_str(&b), "abc");
}

static void a_formatted_text_that_is_too_long_is_left_out_whole(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(8);

        (void) state;
        buf_addf(&b, "%s", "123456789");
        assert_true(b.bad);
        assert_int_equal(b.len, 0);
}

static void eating_drops_from_the_front(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(64);

        (void) state;
        buf_add(&b, "abcdef", 6);
        buf_eat(&b, 2);
        assert_string_equal(buf_str(&b), "cdef");
        buf_eat(&b, 100);
        assert_string_equal(buf_str(&b), "");
        assert_int_equal(b.len, 0);
}

static void bytes_may_hold_nul(void **state) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(64);

        (void) state;
        buf_add(&b, "a\0b", 3);
        assert_int_equal(b.len, 3);
        assert_memory_equal(b.p, "a\0b", 4);
}

static void done_makes_it_usable_again_with_the_same_ceiling(void **state) {
        struct buf b = BUF_INIT(4);

        (void) state;
        buf_add(&b, "12345", 5);
        assert_true(b.bad);
        buf_done(&b);
        buf_add(&b, "1234", 4);
        assert_string_equal(buf_str(&b), "1234");
        buf_done(&b);
        buf_done(&b);
        assert_int_equal(b.max, 4);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(empty_is_the_empty_string),
                cmocka_unit_test(grows_and_stays_terminated),
                cmocka_unit_test(the_ceiling_can_be_reached_but_not_crossed),
                cmocka_unit_test(a_huge_length_does_not_wrap),
                cmocka_unit_test(a_formatted_text_that_is_too_long_is_left_out_whole),
                cmocka_unit_test(eating_drops_from_the_front),
                cmocka_unit_test(bytes_may_hold_nul),
                cmocka_unit_test(done_makes_it_usable_again_with_the_same_ceiling),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
