/* test_book.c - a name keeps its address, an address its name, and the budget holds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "dns/dns.h"

static void names_keep_their_address(void **state) {
        CLEANUP(dns_book_freep) struct dns_book *b = NULL;
        struct err err = { 0 };
        struct addr first, second, again;
        char text[ADDR_TEXT];

        (void) state;
        assert_int_equal(dns_book_new(10, &b, &err), 0);
        assert_false(dns_book_find(b, "a.example", &first));
        assert_int_equal(dns_book_give(b, "a.example", &first, &err), 0);
        assert_int_equal(dns_book_give(b, "b.example", &second, &err), 0);
        assert_true(dns_book_find(b, "a.example", &again));
        assert_true(addr_eq(&first, &again));
        assert_int_equal(dns_book_give(b, "a.example", &again, &err), 0);
        assert_true(addr_eq(&first, &again));
        assert_false(addr_eq(&first, &second));
        addr_text(&first, text);
        assert_string_equal(text, "198.18.0.1");
        assert_string_equal(dns_book_name(b, &first), "a.example");
        assert_string_equal(dns_book_name(b, &second), "b.example");
        assert_int_equal(dns_book_count(b), 2);
        assert_string_equal(dns_book_at(b, 1), "b.example");
        assert_null(dns_book_at(b, 2));
}

static void addresses_never_given_have_no_name(void **state) {
        static const char *const rows[] = {
                "198.18.0.0",      "198.18.0.2", "198.17.255.255",    "198.19.255.255", "0.0.0.0",
                "255.255.255.255", "::",         "::ffff:198.18.0.1", "198.20.0.1"
        };
        CLEANUP(dns_book_freep) struct dns_book *b = NULL;
        struct err err = { 0 };
        struct addr a;

        (void) state;
        assert_int_equal(dns_book_new(10, &b, &err), 0);
        assert_int_equal(dns_book_give(b, "a.example", &a, &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(addr_parse(rows[i], &a), 0);
                assert_null(dns_book_name(b, &a));
        }
}

static void the_budget_holds(void **state) {
        CLEANUP(dns_book_freep) struct dns_book *b = NULL;
        struct err err = { 0 };
        struct addr a;

        (void) state;
        assert_int_equal(dns_book_new(2, &b, &err), 0);
        assert_int_equal(dns_book_give(b, "a.example", &a, &err), 0);
        assert_int_equal(dns_book_give(b, "b.example", &a, &err), 0);
        assert_int_equal(dns_book_give(b, "c.example", &a, &err), -EDQUOT);
        assert_int_equal(err.kind, ERR_LIMIT);
        assert_int_equal(dns_book_give(b, "a.example", &a, &err), 0); /* known ones still work */
        assert_int_equal(dns_book_count(b), 2);
}

static void the_whole_range_can_be_used_and_no_more(void **state) {
        CLEANUP(dns_book_freep) struct dns_book *b = NULL;
        struct err err = { 0 };
        struct addr a = { 0 }, last;
        char name[32];

        (void) state;
        assert_int_equal(dns_book_new(SIZE_MAX, &b, &err), 0);
        for (unsigned i = 0; i < DNS_BOOK_MAX; i++) {
                (void) snprintf(name, sizeof(name), "n%u.example", i);
                if (dns_book_give(b, name, &a, &err) != 0 || addr_classify(&a) != ADDR_BENCHMARK)
                        fail_msg("name %u", i);
        }
        assert_int_equal(addr_parse("198.19.255.254", &last), 0);
        assert_true(addr_eq(&a, &last));
        assert_int_equal(dns_book_give(b, "more.example", &a, &err), -EDQUOT);
        assert_string_equal(dns_book_name(b, &last), name);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_keep_their_address),
                cmocka_unit_test(addresses_never_given_have_no_name),
                cmocka_unit_test(the_budget_holds),
                cmocka_unit_test(the_whole_range_can_be_used_and_no_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
