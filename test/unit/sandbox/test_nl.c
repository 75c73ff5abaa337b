/* test_nl.c - netlink messages: what is written can be read again, and nothing is read beyond its end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "sandbox/nl.h"

static void what_is_written_can_be_read(void **state) {
        uint8_t space[256] __attribute__((aligned(4)));
        struct nl n = nl_to(space, sizeof(space));
        struct nl_bytes all, body, nest;
        uint16_t type;
        size_t at;

        (void) state;
        nl_message(&n, 16, 1, "head", 4);
        nl_put_str(&n, 1, "name");
        at = nl_nest(&n, 2);
        nl_put_be32(&n, 3, 0x01020304);
        nl_put_u32(&n, 4, 7);
        nl_end(&n, at);
        nl_message(&n, 17, 1, NULL, 0);
        assert_false(n.bad);
        assert_int_equal(n.seq, 2);
        all = (struct nl_bytes){ space, n.len };
        assert_int_equal(nl_next_message(&all, &type, &body), 1);
        assert_int_equal(type, 16);
        assert_int_equal(nl_skip(&body, 4), 0);
        assert_true(nl_is_str(nl_find(body, 1), "name"));
        nest = nl_find(body, 2); /* the mark of a nest is no part of its type */
        assert_int_equal(nl_be32(nl_find(nest, 3), 0), 0x01020304);
        assert_int_equal(nl_u32(nl_find(nest, 4), 0), 7);
        assert_int_equal(nl_u32(nl_find(nest, 5), 9), 9);
        assert_int_equal(nl_next_message(&all, &type, &body), 1);
        assert_int_equal(type, 17);
        assert_int_equal(body.n, 0);
        assert_int_equal(nl_next_message(&all, &type, &body), 0);
}

static void what_does_not_fit_is_bad_and_stays_bad(void **state) {
        uint8_t space[32] __attribute__((aligned(4)));
        struct nl n = nl_to(space, sizeof(space));

        (void) state;
        nl_message(&n, 16, 1, NULL, 0);
        nl_put(&n, 1, "123456789012", 12);
        assert_false(n.bad);
        assert_int_equal(n.len, 32);
        nl_put(&n, 1, NULL, 0);
        assert_true(n.bad);
        nl_put_u32(&n, 1, 1);
        assert_int_equal(n.len, 32);
}

static void lengths_that_lie_are_errors(void **state) {
        static const uint8_t messages[][16] = {
                { 15, 0, 0, 0 }, /* shorter than its head */
                { 17, 0, 0, 0 }, /* longer than what is there */
                { 255, 255, 255, 255 },
        };
        static const uint8_t attributes[][8] = { { 3, 0, 1, 0 }, { 9, 0, 1, 0 }, { 255, 255, 1, 0 } };
        struct nl_bytes b, got;
        uint16_t type;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
                b = (struct nl_bytes){ messages[i], sizeof(messages[i]) };
                assert_int_equal(nl_next_message(&b, &type, &got), -EBADMSG);
        }
        for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
                b = (struct nl_bytes){ attributes[i], sizeof(attributes[i]) };
                assert_int_equal(nl_next(&b, &type, &got), -EBADMSG);
                assert_null(nl_find((struct nl_bytes){ attributes[i], sizeof(attributes[i]) }, 1).p);
        }
        b = (struct nl_bytes){ messages[0], 3 };
        assert_int_equal(nl_next_message(&b, &type, &got), -EBADMSG);
        b = (struct nl_bytes){ attributes[0], 3 };
        assert_int_equal(nl_next(&b, &type, &got), -EBADMSG);
        assert_int_equal(nl_skip(&b, 4), -EBADMSG);
}

static void a_value_of_another_size_is_not_there(void **state) {
        static const uint8_t two[] = { 1, 2 };
        struct nl_bytes a = { two, sizeof(two) };

        (void) state;
        assert_int_equal(nl_u32(a, 42), 42);
        assert_int_equal(nl_be32(a, 42), 42);
        assert_false(nl_is(a, "\1\2\3", 3));
        assert_false(nl_is((struct nl_bytes){ NULL, 0 }, "", 0));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_can_be_read),
                cmocka_unit_test(what_does_not_fit_is_bad_and_stays_bad),
                cmocka_unit_test(lengths_that_lie_are_errors),
                cmocka_unit_test(a_value_of_another_size_is_not_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
