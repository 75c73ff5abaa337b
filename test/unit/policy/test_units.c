/* test_units.c - sizes, durations and CPU counts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/policy.h"
#include "policy/units.h"

static uint64_t size(const char *text, int want) {
        uint64_t v = 77;
        struct err err = { 0 };

        assert_int_equal(policy_parse_size("f", text, 0, UINT64_MAX, &v, &err), want);
        if (want < 0) {
                assert_int_equal(v, 77);
                assert_memory_equal(err.msg, "f: ", 3);
        }
        return v;
}

static uint64_t ms(const char *text, int want) {
        uint64_t v = 77;
        struct err err = { 0 };

        assert_int_equal(policy_parse_duration_ms("f", text, 0, UINT64_MAX, &v, &err), want);
        if (want < 0) {
                assert_int_equal(v, 77);
                assert_memory_equal(err.msg, "f: ", 3);
        }
        return v;
}

static uint32_t cpus(const char *text, int want) {
        uint32_t v = 77;
        struct err err = { 0 };

        assert_int_equal(policy_parse_cpus("f", text, &v, &err), want);
        if (want < 0) {
                assert_int_equal(v, 77);
                assert_memory_equal(err.msg, "f: ", 3);
        }
        return v;
}

static void sizes_are_bytes_or_powers_of_1024(void **state) {
        (void) state;
        assert_int_equal(size("0", 0), 0);
        assert_int_equal(size("4096", 0), 4096);
        assert_int_equal(size("4K", 0), 4096);
        assert_int_equal(size("512M", 0), 512u << 20);
        assert_int_equal(size("3G", 0), 3ull << 30);
        assert_int_equal(size("18446744073709551615", 0), UINT64_MAX);
}

static void other_forms_of_sizes_are_refused(void **state) {
        static const char *const bad[] = { "",    "M",  "-1",   "+1",   "1.5M", "1 M", " 1",  "1k", "1m",
                                           "1KB", "1T", "1KiB", "0x10", "1e3",  "1M ", "1MM", "٣",  "1G1" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                (void) size(bad[i], -EINVAL);
}

static void sizes_cannot_wrap(void **state) {
        (void) state;
        (void) size("18446744073709551616", -ERANGE);
        (void) size("18014398509481984K", -ERANGE);
        assert_int_equal(size("18014398509481983K", 0), 18446744073709550592ull);
        (void) size("17179869184G", -ERANGE);
        (void) size("000000000000000000000000000000000000000000001", -ERANGE);
}

static void range_is_named_in_units(void **state) {
        struct err err = { 0 };
        uint64_t v;

        (void) state;
        assert_int_equal(policy_parse_size("--memory", "8M", 16 << 20, 1ull << 40, &v, &err), -ERANGE);
        assert_string_equal(err.msg, "--memory: 8M is out of range; allowed: 16M to 1024G");
        assert_int_equal(policy_parse_duration_ms("--time", "31d", 10, 30 * 86400000ull, &v, &err), -ERANGE);
        assert_string_equal(err.msg, "--time: 31d is out of range; allowed: 10ms to 30d");
}

static void durations_need_a_unit(void **state) {
        static const char *const bad[] = { "", "60", "s", "1.5h", "1 s", "-1s", "1S", "1sec", "1w", "1us", "1h30m" };

        (void) state;
        assert_int_equal(ms("250ms", 0), 250);
        assert_int_equal(ms("2s", 0), 2000);
        assert_int_equal(ms("3m", 0), 180000);
        assert_int_equal(ms("1h", 0), 3600000);
        assert_int_equal(ms("30d", 0), 2592000000);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                (void) ms(bad[i], -EINVAL);
        (void) ms("213503982335d", -ERANGE);
}

static void no_duration_is_zero(void **state) {
        (void) state;
        (void) ms("0s", -ERANGE);
        (void) ms("0ms", -ERANGE);
        (void) ms("0", -EINVAL);
}

static void cpus_have_three_decimals(void **state) {
        static const char *const bad[] = {
                "", ".5", "1.", "0.0001", "1.2345", "-1", "1,5", "1e3", "2x", "0x1", "1.2.3"
        };

        (void) state;
        assert_int_equal(cpus("2", 0), 2000);
        assert_int_equal(cpus("0.5", 0), 500);
        assert_int_equal(cpus("0.01", 0), 10);
        assert_int_equal(cpus("1.125", 0), 1125);
        assert_int_equal(cpus("1024", 0), 1024000);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                (void) cpus(bad[i], -EINVAL);
        (void) cpus("0.009", -ERANGE);
        (void) cpus("0", -ERANGE);
        (void) cpus("1024.001", -ERANGE);
        (void) cpus("18446744073709551617", -ERANGE);
        (void) cpus("99999999999999999999999999999999999999999", -ERANGE);
}

static void text_uses_the_largest_exact_unit(void **state) {
        char text[POLICY_UNIT_TEXT];

        (void) state;
        policy_units_size_text(text, 1536);
        assert_string_equal(text, "1536");
        policy_units_size_text(text, 0);
        assert_string_equal(text, "0");
        policy_units_size_text(text, 5 << 20);
        assert_string_equal(text, "5M");
        policy_units_duration_text(text, 90000);
        assert_string_equal(text, "90s");
        policy_units_cpus_text(text, 10);
        assert_string_equal(text, "0.01");
        policy_units_cpus_text(text, 10000);
        assert_string_equal(text, "10");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(sizes_are_bytes_or_powers_of_1024),
                cmocka_unit_test(other_forms_of_sizes_are_refused),
                cmocka_unit_test(sizes_cannot_wrap),
                cmocka_unit_test(range_is_named_in_units),
                cmocka_unit_test(durations_need_a_unit),
                cmocka_unit_test(no_duration_is_zero),
                cmocka_unit_test(cpus_have_three_decimals),
                cmocka_unit_test(text_uses_the_largest_exact_unit),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
