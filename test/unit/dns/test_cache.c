/* test_cache.c - what is remembered, for how long, and what goes first. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dns/cache.h"

#define S 1000000000ull

static struct dns_result result(uint32_t v4, uint32_t ttl_s) {
        return (struct dns_result){ .addrs = { addr_v4(v4) }, .n_addrs = 1, .ttl_s = ttl_s };
}

static void results_live_as_long_as_their_ttl(void **state) {
        struct cache *c = NULL;
        struct dns_result res = result(7, 10), got;

        (void) state;
        assert_int_equal(cache_new(4, &c), 0);
        assert_false(cache_get(c, "a", 1, 0, &got));
        cache_put(c, "a", 1, &res, 100 * S);
        assert_true(cache_get(c, "a", 1, 100 * S, &got));
        assert_int_equal(addr_to_u32(&got.addrs[0]), 7);
        assert_int_equal(got.ttl_s, 10);
        assert_int_equal(got.from, DNS_FROM_CACHE);
        assert_true(cache_get(c, "a", 1, 110 * S - 1, &got));
        assert_int_equal(got.ttl_s, 1);
        assert_false(cache_get(c, "a", 1, 110 * S, &got));
        assert_false(cache_get(c, "a", 1, 0, &got)); /* it is gone for good */
        cache_free(c);
}

static void families_are_kept_apart(void **state) {
        struct cache *c = NULL;
        struct dns_result res = result(7, 10), got;

        (void) state;
        assert_int_equal(cache_new(4, &c), 0);
        cache_put(c, "a", DNS_WANT_V4, &res, 0);
        assert_false(cache_get(c, "a", DNS_WANT_V4 | DNS_WANT_V6, 0, &got));
        cache_free(c);
}

static void failures_are_kept_and_replaced(void **state) {
        struct cache *c = NULL;
        struct dns_result no = { .code = -ENOENT, .ttl_s = 5 }, yes = result(7, 10), got;

        (void) state;
        assert_int_equal(cache_new(4, &c), 0);
        cache_put(c, "a", 1, &no, 0);
        assert_true(cache_get(c, "a", 1, 0, &got));
        assert_int_equal(got.code, -ENOENT);
        cache_put(c, "a", 1, &yes, 0);
        assert_true(cache_get(c, "a", 1, 0, &got));
        assert_int_equal(got.code, 0);
        cache_free(c);
}

static void the_oldest_makes_room(void **state) {
        struct cache *c = NULL;
        struct dns_result res = result(7, 10), got;

        (void) state;
        assert_int_equal(cache_new(2, &c), 0);
        cache_put(c, "a", 1, &res, 0);
        cache_put(c, "b", 1, &res, 0);
        cache_put(c, "c", 1, &res, 0);
        assert_false(cache_get(c, "a", 1, 0, &got));
        assert_true(cache_get(c, "b", 1, 0, &got));
        assert_true(cache_get(c, "c", 1, 0, &got));
        cache_free(c);
        assert_int_equal(cache_new(0, &c), 0);
        cache_put(c, "a", 1, &res, 0);
        assert_false(cache_get(c, "a", 1, 0, &got));
        cache_free(c);
        assert_null(cache_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(results_live_as_long_as_their_ttl),
                cmocka_unit_test(families_are_kept_apart),
                cmocka_unit_test(failures_are_kept_and_replaced),
                cmocka_unit_test(the_oldest_makes_room),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
