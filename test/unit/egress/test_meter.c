/* test_meter.c - tokens come back at their rate and no faster, and a sandbox is heavy only while it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/limits.h"
#include "egress/meter.h"

#define US 1000ull
#define MS (1000 * US)
#define S (1000 * MS)

static unsigned take_all(struct meter_bucket *b, uint64_t now) {
        unsigned n = 0;

        while (meter_bucket_take(b, now))
                n++;
        return n;
}

static void tokens_come_back_at_their_rate(void **state) {
        struct meter_bucket b;

        (void) state;
        meter_bucket_set(&b, 20, 40, 7 * S);
        assert_int_equal(take_all(&b, 7 * S), 40);
        assert_int_equal(take_all(&b, 7 * S + 49 * MS), 0);
        assert_int_equal(take_all(&b, 7 * S + 50 * MS), 1);
        assert_int_equal(take_all(&b, 8 * S), 19);
        assert_int_equal(take_all(&b, 1000 * S), 40); /* never more than the burst */
}

static void slow_rates_do_not_vanish_in_rounding(void **state) {
        struct meter_bucket b;
        unsigned n = 0;

        (void) state;
        meter_bucket_set(&b, 1, 1, 0);
        for (uint64_t t = 0; t < 10 * S; t += MS / 2)
                n += meter_bucket_take(&b, t);
        assert_int_equal(n, 10);
}

static void rate_of_nothing_gives_nothing(void **state) {
        struct meter_bucket b;

        (void) state;
        meter_bucket_set(&b, 0, 0, 0);
        assert_false(meter_bucket_take(&b, 3600 * S));
}

static void endless_rate_does_not_overflow(void **state) {
        struct meter_bucket b;

        (void) state;
        meter_bucket_set(&b, UINT32_MAX, UINT32_MAX, 0);
        b.milli = 0;
        assert_true(meter_bucket_take(&b, UINT64_MAX / 2));
        assert_int_equal(b.milli, (uint64_t) UINT32_MAX * 1000 - 1000);
}

static void sandbox_is_heavy_while_it_takes_more_than_its_share(void **state) {
        struct meter_share s = { 0 };
        uint64_t t = 100 * S, window = EGRESS_SHARE_US * US;

        (void) state;
        assert_false(meter_share_add(&s, t, t + EGRESS_SHARE_HEAVY_US * US));
        assert_false(meter_share_is_spent(&s, t + EGRESS_SHARE_HEAVY_US * US));
        assert_true(meter_share_add(&s, t + 600 * US, t + 700 * US));
        assert_true(meter_share_is_spent(&s, t + 700 * US));
        assert_false(meter_share_is_spent(&s, t + window + 1));
        /* One more window, in which it does little: it is remembered, then forgotten. */
        assert_true(meter_share_add(&s, t + window + US, t + window + US + 1));
        assert_false(meter_share_is_spent(&s, t + window + US + 1));
        assert_false(meter_share_add(&s, t + 3 * window, t + 3 * window + 1));
}

static void sandbox_that_was_heavy_long_ago_is_not(void **state) {
        struct meter_share s = { 0 };

        (void) state;
        assert_true(meter_share_add(&s, S, S + 10 * MS));
        assert_false(meter_share_add(&s, 9 * S, 9 * S + 1));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(tokens_come_back_at_their_rate),
                cmocka_unit_test(slow_rates_do_not_vanish_in_rounding),
                cmocka_unit_test(rate_of_nothing_gives_nothing),
                cmocka_unit_test(endless_rate_does_not_overflow),
                cmocka_unit_test(sandbox_is_heavy_while_it_takes_more_than_its_share),
                cmocka_unit_test(sandbox_that_was_heavy_long_ago_is_not),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
