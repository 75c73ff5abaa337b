/* test_str.c - numbers are whole and in range, copies are whole or nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"

static void whole_decimal_numbers_are_read(void **state) {
        uint64_t v = 7;

        (void) state;
        assert_int_equal(str_to_u64("0", UINT64_MAX, &v), 0);
        assert_true(v == 0);
        assert_int_equal(str_to_u64("007", UINT64_MAX, &v), 0);
        assert_true(v == 7);
        assert_int_equal(str_to_u64("18446744073709551615", UINT64_MAX, &v), 0);
        assert_true(v == UINT64_MAX);
        assert_int_equal(str_to_u64("256", 256, &v), 0);
        assert_true(v == 256);
}

static void anything_else_is_refused_and_leaves_the_result_alone(void **state) {
        static const char *const odd[] = { "", " 1", "1 ", "+1", "-1", "0x10", "1e3", "1.0", "one", "1\n", "\xb2" };
        uint64_t v = 42;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
                assert_int_equal(str_to_u64(odd[i], UINT64_MAX, &v), -EINVAL);
        assert_true(v == 42);
}

static void numbers_out_of_range_are_refused(void **state) {
        static const char *const big[] = { "18446744073709551616", "18446744073709551620", "99999999999999999999",
                                           "184467440737095516150" };
        uint64_t v = 42;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(big); i++)
                assert_int_equal(str_to_u64(big[i], UINT64_MAX, &v), -ERANGE);
        assert_int_equal(str_to_u64("257", 256, &v), -ERANGE);
        assert_true(v == 42);
}

static void copies_are_whole_or_nothing(void **state) {
        char s[4] = "old";

        (void) state;
        assert_int_equal(str_copy(s, sizeof(s), "abc"), 0);
        assert_string_equal(s, "abc");
        assert_int_equal(str_copy(s, sizeof(s), "abcd"), -ENAMETOOLONG);
        assert_string_equal(s, "");
        assert_int_equal(str_copy(s, sizeof(s), ""), 0);
        assert_string_equal(s, "");
}

static void equality_is_of_the_whole_string(void **state) {
        (void) state;
        assert_true(str_eq("abc", "abc"));
        assert_false(str_eq("abc", "ab"));
        assert_false(str_eq("ab", "abc"));
        assert_false(str_eq("abc", "Abc"));
}

static void prefixes(void **state) {
        (void) state;
        assert_true(str_has_prefix("abc", "ab"));
        assert_true(str_has_prefix("abc", "abc"));
        assert_true(str_has_prefix("abc", ""));
        assert_false(str_has_prefix("ab", "abc"));
        assert_false(str_has_prefix("xab", "ab"));
}

static void hex_is_lower_case_and_terminated(void **state) {
        char s[9] = "zzzzzzzz";

        (void) state;
        str_hex(s, "\x00\x1f\xa0\xff", 4);
        assert_string_equal(s, "001fa0ff");
        str_hex(s, "", 0);
        assert_string_equal(s, "");
}

static void base64_is_padded(void **state) {
        static const char *const cases[][2] = {
                { "", "" },
                { "f", "Zg==" },
                { "fo", "Zm8=" },
                { "foo", "Zm9v" },
                { "foob", "Zm9vYg==" },
                { "fooba", "Zm9vYmE=" },
                { "foobar", "Zm9vYmFy" },
                { "\xff\xfe\xfd", "//79" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char code[STR_BASE64(8)];

                str_base64(code, cases[i][0], strlen(cases[i][0]));
                assert_string_equal(code, cases[i][1]);
        }
}

static void hex_comes_back_and_nothing_else_does(void **state) {
        uint8_t b[2] = { 0 };

        (void) state;
        assert_int_equal(str_unhex(b, 2, "a01f and more"), 0);
        assert_int_equal(b[0] << 8 | b[1], 0xa01f);
        assert_int_equal(str_unhex(b, 2, "A01f"), -22);
        assert_int_equal(str_unhex(b, 2, "a01"), -22); /* stops at the end of the text */
        assert_int_equal(str_unhex(b, 2, ""), -22);
        assert_int_equal(str_unhex(b, 1, "g0"), -22);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(base64_is_padded),
                cmocka_unit_test(whole_decimal_numbers_are_read),
                cmocka_unit_test(anything_else_is_refused_and_leaves_the_result_alone),
                cmocka_unit_test(numbers_out_of_range_are_refused),
                cmocka_unit_test(copies_are_whole_or_nothing),
                cmocka_unit_test(equality_is_of_the_whole_string),
                cmocka_unit_test(prefixes),
                cmocka_unit_test(hex_is_lower_case_and_terminated),
                cmocka_unit_test(hex_comes_back_and_nothing_else_does),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
