/* test_quota.c - sums and rates of tenants. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "daemon/quota.h"

static const struct quota_need one = { .cpu_milli = 1000, .memory_bytes = 100, .disk_bytes = 10 };

static int set_up(void **state) {
        return quota_new((struct quota **) state);
}

static int tear_down(void **state) {
        *state = quota_free(*state);
        return 0;
}

static int take(struct quota *q, const struct store_tenant *t, uint64_t now_ms, const char *code) {
        struct quota_refusal why = { 0 };
        int r = quota_take(q, t, &one, now_ms, &why);

        if (r < 0) {
                assert_string_equal(why.code, code);
                assert_true(why.retry_after_s > 0 && why.message[0]);
        }
        return r;
}

static void each_sum_has_its_limit(void **state) {
        static const struct {
                struct store_quota quota;
                const char *code;
        } cases[] = {
                { { .sandboxes = 2 }, "quota.sandboxes" },
                { { .cpu_milli = 2999 }, "quota.cpu" },
                { { .memory_bytes = 200 }, "quota.memory" },
                { { .disk_bytes = 29 }, "quota.disk" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store_tenant t = { .id = { (char) ('a' + i) }, .quota = cases[i].quota };

                assert_int_equal(take(*state, &t, 0, ""), 0);
                assert_int_equal(take(*state, &t, 0, ""), 0);
                assert_int_equal(take(*state, &t, 0, cases[i].code), -EDQUOT);
                quota_give(*state, t.id, &one);
                assert_int_equal(take(*state, &t, 0, ""), 0);
        }
}

static void tenants_do_not_share(void **state) {
        struct store_tenant a = { .id = "a", .quota = { .sandboxes = 1 } },
                            b = { .id = "b", .quota = { .sandboxes = 1 } };
        struct store_sums sums;

        assert_int_equal(take(*state, &a, 0, ""), 0);
        assert_int_equal(take(*state, &b, 0, ""), 0);
        assert_int_equal(take(*state, &a, 0, "quota.sandboxes"), -EDQUOT);
        quota_sums(*state, "a", &sums);
        assert_int_equal(sums.sandboxes, 1);
        assert_int_equal(sums.cpu_milli, 1000);
        quota_sums(*state, "nobody", &sums);
        assert_int_equal(sums.sandboxes, 0);
}

static void rate_is_a_bucket_of_one_second(void **state) {
        struct store_tenant t = { .id = "a", .quota = { .creates_per_s = 4 } };
        uint64_t now = 1000000;

        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(take(*state, &t, now, ""), 0);
        assert_int_equal(take(*state, &t, now, "quota.rate"), -EDQUOT);
        assert_int_equal(take(*state, &t, now + 249, "quota.rate"), -EDQUOT);
        assert_int_equal(take(*state, &t, now + 250, ""), 0);
        assert_int_equal(take(*state, &t, now + 251, "quota.rate"), -EDQUOT);
        now += 1000000; /* a long rest fills it once, not many times */
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(take(*state, &t, now, ""), 0);
        assert_int_equal(take(*state, &t, now, "quota.rate"), -EDQUOT);
}

static void what_is_refused_costs_no_token(void **state) {
        struct store_tenant t = { .id = "a", .quota = { .creates_per_s = 2, .sandboxes = 1 } };

        assert_int_equal(take(*state, &t, 5000, ""), 0);
        for (unsigned i = 0; i < 5; i++)
                assert_int_equal(take(*state, &t, 5000, "quota.sandboxes"), -EDQUOT);
        quota_give(*state, t.id, &one);
        assert_int_equal(take(*state, &t, 5000, ""), 0);
}

static void found_again_counts_without_asking(void **state) {
        struct store_tenant t = { .id = "a", .quota = { .sandboxes = 1 } };
        struct store_sums sums;

        assert_int_equal(quota_count(*state, "a", &one), 0);
        assert_int_equal(quota_count(*state, "a", &one), 0); /* the quota was lowered meanwhile */
        assert_int_equal(take(*state, &t, 0, "quota.sandboxes"), -EDQUOT);
        quota_sums(*state, "a", &sums);
        assert_int_equal(sums.sandboxes, 2);
}

static void huge_sums_do_not_wrap(void **state) {
        struct store_tenant t = { .id = "a", .quota = { .memory_bytes = INT64_MAX } };
        const struct quota_need huge = { .memory_bytes = INT64_MAX };
        struct quota_refusal why;

        assert_int_equal(quota_take(*state, &t, &huge, 0, &why), 0);
        assert_int_equal(quota_take(*state, &t, &huge, 0, &why), -EDQUOT);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WITH(each_sum_has_its_limit),
                WITH(tenants_do_not_share),
                WITH(rate_is_a_bucket_of_one_second),
                WITH(what_is_refused_costs_no_token),
                WITH(found_again_counts_without_asking),
                WITH(huge_sums_do_not_wrap),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
