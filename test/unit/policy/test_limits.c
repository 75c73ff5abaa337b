/* test_limits.c - limits by name: both ends of every range. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/limits.h"
#include "policy/policy.h"

static const struct range {
        const char *name;
        const char *low, *high;    /* the ends, allowed */
        const char *below, *above; /* one step outside, refused */
        size_t offset, size;
        uint64_t low_value, high_value;
} ranges[] = {
#define AT(m) offsetof(struct policy_limits, m), sizeof(((struct policy_limits *) 0)->m)
        { "memory", "16M", "1024G", "16777215", "1099511627777", AT(memory_bytes), 16ull << 20, 1ull << 40 },
        { "cpu", "0.01", "1024", "0.009", "1024.001", AT(cpu_milli), 10, 1024000 },
        { "pids", "4", "1000000", "3", "1000001", AT(pids), 4, 1000000 },
        { "disk", "1M", "1024G", "1023K", "1099511627777", AT(disk_bytes), 1ull << 20, 1ull << 40 },
        { "time", "10ms", "30d", "9ms", "2592000001ms", AT(time_ms), 10, 2592000000 },
        { "output", "4K", "1024G", "4095", "1099511627777", AT(output_bytes), 4096, 1ull << 40 },
        { "files", "16", "1048576", "15", "1048577", AT(files), 16, 1048576 },
        { "io", "1M", "1024G", "1048575", "1099511627777", AT(io_bytes_per_s), 1ull << 20, 1ull << 40 },
#undef AT
};

static void defaults(struct policy_limits *l) {
        struct policy p;

        policy_default(&p);
        *l = p.limits;
}

static uint64_t member(const struct policy_limits *l, const struct range *r) {
        const char *at = (const char *) l + r->offset;

        return r->size == 4 ? *(const uint32_t *) at : *(const uint64_t *) at;
}

static void both_ends_of_every_range_hold(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
                const struct range *r = &ranges[i];
                struct policy_limits l;
                struct err err = { 0 };

                defaults(&l);
                assert_int_equal(policy_set_limit(&l, r->name, r->low, &err), 0);
                assert_int_equal(member(&l, r), r->low_value);
                assert_int_equal(policy_limits_check(&l, &err), 0);
                assert_int_equal(policy_set_limit(&l, r->name, r->high, &err), 0);
                assert_int_equal(member(&l, r), r->high_value);
                assert_int_equal(policy_limits_check(&l, &err), 0);
                assert_int_equal(policy_set_limit(&l, r->name, r->below, &err), -ERANGE);
                assert_memory_equal(err.msg, r->name, strlen(r->name));
                assert_int_equal(policy_set_limit(&l, r->name, r->above, &err), -ERANGE);
                assert_int_equal(policy_set_limit(&l, r->name, "x", &err), -EINVAL);
                assert_int_equal(member(&l, r), r->high_value);
        }
}

static void the_check_sees_values_set_directly(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                for (int above = 0; above < 2; above++) {
                        struct policy_limits l;
                        struct err err = { 0 };
                        uint64_t v = above ? ranges[i].high_value + 1 : ranges[i].low_value - 1;

                        defaults(&l);
                        memcpy((char *) &l + ranges[i].offset, &v, ranges[i].size); /* little-endian for u32 */
                        assert_int_equal(policy_limits_check(&l, &err), -ERANGE);
                        assert_memory_equal(err.msg, "limits.", 7);
                        assert_memory_equal(err.msg + 7, ranges[i].name, strlen(ranges[i].name));
                }
}

static void only_io_may_be_without_limit(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
                struct policy_limits l;
                struct err err = { 0 };
                int r;

                defaults(&l);
                r = policy_set_limit(&l, ranges[i].name, "0", &err);
                assert_int_equal(r == 0, strcmp(ranges[i].name, "io") == 0);
        }
}

static void counts_are_plain_numbers(void **state) {
        static const char *const bad[] = { "", "1K", "12.5", "-4", " 8", "0x10" };
        struct policy_limits l;
        struct err err = { 0 };

        (void) state;
        defaults(&l);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(policy_set_limit(&l, "pids", bad[i], &err), -EINVAL);
}

static void an_unknown_limit_lists_the_known(void **state) {
        struct policy_limits l;
        struct err err = { 0 };

        (void) state;
        defaults(&l);
        assert_int_equal(policy_set_limit(&l, "gpu", "1", &err), -EINVAL);
        assert_string_equal(err.msg, "gpu: unknown limit; allowed: memory cpu pids disk time output files io");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(both_ends_of_every_range_hold),
                cmocka_unit_test(the_check_sees_values_set_directly),
                cmocka_unit_test(only_io_may_be_without_limit),
                cmocka_unit_test(counts_are_plain_numbers),
                cmocka_unit_test(an_unknown_limit_lists_the_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
