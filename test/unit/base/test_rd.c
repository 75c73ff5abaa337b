/* test_rd.c - the bounded reader: exact, sticky, and never past its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rd.h"

static void integers_are_big_endian(void **state) {
        static const char bytes[] = "\x01\x02\x03\x04\x05\x06\x07\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8";
        struct rd r = rd_from(bytes, 15);

        (void) state;
        assert_int_equal(rd_u8(&r), 0x01);
        assert_int_equal(rd_u16(&r), 0x0203);
        assert_int_equal(rd_u32(&r), 0x04050607);
        assert_true(rd_u64(&r) == 0xfffefdfcfbfaf9f8u);
        assert_true(rd_done(&r));
}

static void short_input_is_sticky(void **state) {
        struct rd r = rd_from("\x01", 1);

        (void) state;
        assert_int_equal(rd_u32(&r), 0);
        assert_int_equal(rd_u8(&r), 0); /* the byte is there, but the reader is already bad */
        assert_null(rd_bytes(&r, 0));
        assert_false(rd_done(&r));
}

static void leftovers_are_an_error(void **state) {
        struct rd r = rd_from("\x01\x02", 2);

        (void) state;
        assert_int_equal(rd_u8(&r), 1);
        assert_false(rd_done(&r));
}

static void bytes_are_borrowed_in_place(void **state) {
        static const char bytes[] = "abc";
        struct rd r = rd_from(bytes, 3);

        (void) state;
        assert_ptr_equal(rd_bytes(&r, 2), bytes);
        assert_null(rd_bytes(&r, 2));
        assert_true(r.bad);
}

static void a_huge_length_does_not_wrap(void **state) {
        struct rd r = rd_from("abc", 3);

        (void) state;
        assert_null(rd_bytes(&r, SIZE_MAX));
        assert_int_equal(r.left, 3);
        assert_true(r.bad);
}

static void str_is_copied_and_terminated(void **state) {
        struct rd r = rd_from("\0\3abcZ", 6);
        char s[8];

        (void) state;
        memset(s, 'x', sizeof(s));
        rd_str(&r, s, sizeof(s));
        assert_string_equal(s, "abc");
        assert_int_equal(rd_u8(&r), 'Z');
        assert_true(rd_done(&r));
}

static void str_fills_its_buffer_to_the_last_byte_and_no_further(void **state) {
        struct rd fits = rd_from("\0\3abc", 5);
        struct rd long_one = rd_from("\0\4abcd", 6);
        char s[4];

        (void) state;
        rd_str(&fits, s, sizeof(s));
        assert_string_equal(s, "abc");
        assert_true(rd_done(&fits));
        rd_str(&long_one, s, sizeof(s));
        assert_string_equal(s, "");
        assert_true(long_one.bad);
}

static void str_rejects_embedded_nul(void **state) {
        struct rd r = rd_from("\0\3a\0b", 5);
        char s[8] = "old";

        (void) state;
        rd_str(&r, s, sizeof(s));
        assert_string_equal(s, "");
        assert_false(rd_done(&r));
}

static void str_longer_than_the_input_yields_the_empty_string(void **state) {
        struct rd r = rd_from("\xff\xff"
                              "ab",
                              4);
        char s[8] = "old";

        (void) state;
        rd_str(&r, s, sizeof(s));
        assert_string_equal(s, "");
        assert_true(r.bad);
}

static void nothing_is_done_at_once(void **state) {
        struct rd r = rd_from("", 0);

        (void) state;
        assert_true(rd_done(&r));
        assert_non_null(rd_bytes(&r, 0));
        assert_true(rd_done(&r));
}

static void null_is_an_empty_input(void **state) {
        struct rd r = rd_from(NULL, 0);

        (void) state;
        assert_non_null(rd_bytes(&r, 0));
        assert_true(rd_done(&r));
        assert_int_equal(rd_u8(&r), 0);
        assert_true(r.bad);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(integers_are_big_endian),
                cmocka_unit_test(short_input_is_sticky),
                cmocka_unit_test(leftovers_are_an_error),
                cmocka_unit_test(bytes_are_borrowed_in_place),
                cmocka_unit_test(a_huge_length_does_not_wrap),
                cmocka_unit_test(str_is_copied_and_terminated),
                cmocka_unit_test(str_fills_its_buffer_to_the_last_byte_and_no_further),
                cmocka_unit_test(str_rejects_embedded_nul),
                cmocka_unit_test(str_longer_than_the_input_yields_the_empty_string),
                cmocka_unit_test(nothing_is_done_at_once),
                cmocka_unit_test(null_is_an_empty_input),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
