/* test_clock.c - time: one never runs backwards, the other has the text form the records use. */
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

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(monotonic_time_advances_in_nanoseconds),
                cmocka_unit_test(monotonic_time_is_the_kernels),
                cmocka_unit_test(text_is_rfc3339_utc_with_milliseconds),
                cmocka_unit_test(given_times_have_the_same_form),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
