/* test_err.c - the error value: filled, wrapped, and never written past its end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* The guard notices a byte too many even in a build without sanitizers. */
struct guarded {
        struct err err;
        char guard[16];
};

static void guarded_init(struct guarded *g) {
        memset(g, 0, sizeof(*g));
        memset(g->guard, 'G', sizeof(g->guard));
}

static void guarded_check(const struct guarded *g) {
        assert_memory_equal(g->guard, "GGGGGGGGGGGGGGGG", sizeof(g->guard));
        assert_non_null(memchr(g->err.msg, '\0', sizeof(g->err.msg)));
}

static void set_fills_everything_and_returns_the_code(void **state) {
        struct err err = { 0 };

        (void) state;
        assert_int_equal(err_set(&err, -EPERM, ERR_DENIED, "open %s: %d", "x", 7), -EPERM);
        assert_int_equal(err.code, -EPERM);
        assert_int_equal(err.kind, ERR_DENIED);
        assert_string_equal(err.msg, "open x: 7");
}

static void wrap_puts_context_in_front_and_keeps_code_and_kind(void **state) {
        struct err err = { 0 };

        (void) state;
        (void) err_set(&err, -EBUSY, ERR_BUSY, "inner");
        assert_int_equal(err_wrap(&err, "middle %d", 2), -EBUSY);
        assert_int_equal(err_wrap(&err, "outer"), -EBUSY);
        assert_string_equal(err.msg, "outer: middle 2: inner");
        assert_int_equal(err.kind, ERR_BUSY);
}

static void a_long_message_is_cut(void **state) {
        struct guarded g;
        char text[1000];

        (void) state;
        guarded_init(&g);
        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        (void) err_set(&g.err, -EIO, ERR_INTERNAL, "%s", text);
        guarded_check(&g);
        assert_int_equal(strlen(g.err.msg), sizeof(g.err.msg) - 1);
}

static void wrapping_a_full_message_keeps_the_context(void **state) {
        struct guarded g;
        char text[1000];

        (void) state;
        guarded_init(&g);
        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        (void) err_set(&g.err, -EIO, ERR_INTERNAL, "%s", text);
        assert_int_equal(err_wrap(&g.err, "context"), -EIO);
        guarded_check(&g);
        assert_memory_equal(g.err.msg, "context: aaa", 12);
        assert_int_equal(err_wrap(&g.err, "%s", text), -EIO); /* no room is left even for ": " */
        guarded_check(&g);
        assert_int_equal(strlen(g.err.msg), sizeof(g.err.msg) - 1);
}

static void context_one_short_of_full_is_safe(void **state) {
        struct guarded g;
        char text[sizeof(g.err.msg)];

        (void) state;
        for (size_t n = sizeof(text) - 4; n < sizeof(text); n++) {
                guarded_init(&g);
                memset(text, 'a', sizeof(text));
                text[n] = '\0';
                (void) err_set(&g.err, -EIO, ERR_INTERNAL, "inner");
                (void) err_wrap(&g.err, "%s", text);
                guarded_check(&g);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(set_fills_everything_and_returns_the_code),
                cmocka_unit_test(wrap_puts_context_in_front_and_keeps_code_and_kind),
                cmocka_unit_test(a_long_message_is_cut),
                cmocka_unit_test(wrapping_a_full_message_keeps_the_context),
                cmocka_unit_test(context_one_short_of_full_is_safe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
