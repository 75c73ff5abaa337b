/* test_clock.c - time: one never runs backwards, the other has the text form the records use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

static void monotonic_time_advances_in_nanoseconds(void **state) {
        static const struct timespec nap = { .tv_nsec = 5000000 };
        uint64_t before = clock_mono_ns();
        uint64_t after;

        (void) state;
        (void) nanosleep(&nap, NULL);
        after = clock_mono_ns();
        assert_in_range(after - before, 4500000, 10000000000);
}

static void monotonic_time_is_the_kernels(void **state) {
        struct timespec ts;
        uint64_t now;

        (void) state;
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
        now = clock_mono_ns();
        assert_in_range(now - (uint64_t) ts.tv_nsec - (uint64_t) ts.tv_sec * 1000000000u, 0, 1000000000);
}

static void text_is_rfc3339_utc_with_milliseconds(void **state) {
        char text[CLOCK_TEXT];
        struct tm tm = { 0 };
        time_t now = time(NULL);

        (void) state;
        clock_rfc3339(text);
        assert_int_equal(strlen(text), strlen("2026-11-15T02:05:28.123Z"));
        assert_string_equal(strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) + 4, "Z");
        assert_in_range(timegm(&tm) - now + 5, 4, 15);
}

static void given_times_have_the_same_form(void **state) {
        char text[CLOCK_TEXT];

        (void) state;
        clock_rfc3339_at(text, 1767225602007);
        assert_string_equal(text, "2026-01-01T00:00:02.007Z");
        assert_in_range(clock_real_ms() / 1000 - (uint64_t) time(NULL) + 5, 3, 8);
}

static void text_is_read_back(void **state) {
        static const struct {
                const char *text;
                uint64_t ms;
        } good[] = {
                { "2026-01-01T00:00:02.007Z", 1767225602007 },
                { "2026-01-01T00:00:02Z", 1767225602000 },
                { "2026-01-01T02:00:02.5+02:00", 1767225602500 },
                { "2025-12-31T19:30:02.0079999-04:30", 1767225602007 },
                { "2024-02-29T00:00:00Z", 1709164800000 },
                { "1970-01-01T00:00:00Z", 0 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                uint64_t ms = 1;

                assert_int_equal(clock_parse(good[i].text, &ms), 0);
                assert_int_equal(ms, good[i].ms);
        }
}

static void what_is_no_time_is_refused(void **state) {
        static const char *const bad[] = {
                "",
                "now",
                "2026-01-01",
                "2026-01-01T00:00:02",
                "2026-01-01 00:00:02Z",
                "2026-01-01T00:00:02.Z",
                "2026-01-01T00:00:02z ",
                "2026-13-01T00:00:02Z",
                "2026-02-30T00:00:02Z",
                "2025-02-29T00:00:02Z",
                "2026-01-01T24:00:02Z",
                "2026-01-01T00:00:61Z",
                "2026-01-01T00:00:02+2:00",
                "2026-01-01T00:00:02+24:00",
                "2026-01-01T00:00:02+02:00Z",
                "1969-12-31T23:59:59Z",
                "1970-01-01T00:00:00+01:00",
                "+026-01-01T00:00:02Z",
                "2026-01-01T00:00:02ZZ",
        };
        uint64_t ms;

        (void) state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (clock_parse(bad[i], &ms) != -EINVAL)
                        fail_msg("accepted: %s", bad[i]);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(monotonic_time_advances_in_nanoseconds),
                cmocka_unit_test(monotonic_time_is_the_kernels),
                cmocka_unit_test(text_is_rfc3339_utc_with_milliseconds),
                cmocka_unit_test(given_times_have_the_same_form),
                cmocka_unit_test(text_is_read_back),
                cmocka_unit_test(what_is_no_time_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
