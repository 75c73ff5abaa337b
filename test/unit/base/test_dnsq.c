/* test_dnsq.c - one question and its answer; anything else is no answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/dnsq.h"
#include "base/own.h"
#include "base/wr.h"

static uint8_t space[DNSQ_MAX];

static size_t question(const char *name) {
        struct wr w = wr_to(space, sizeof(space));

        dnsq_write(&w, 7, name);
        return w.bad ? 0 : w.len;
}

static void a_question_is_what_resolvers_expect(void **state) {
        static const uint8_t want[] = "\0\7\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";

        (void) state;
        assert_int_equal(question("a.example"), sizeof(want) - 1);
        assert_memory_equal(space, want, sizeof(want) - 1);
}

static void names_without_sense_are_not_written(void **state) {
        static const char *const names[] = {
                ".", "a..b", ".a",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example", /* 64 in a label */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                assert_int_equal(question(names[i]), 0);
}

/* The question turned into a reply: flags, count of answers, and one record behind it. */
static size_t reply(uint16_t flags, uint8_t answers, const void *record, size_t n_record) {
        size_t n = question("a.example");

        space[2] = (uint8_t) (flags >> 8);
        space[3] = (uint8_t) flags;
        space[7] = answers;
        memcpy(space + n, record, n_record);
        return n + n_record;
}

#define RECORD_A "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\7"
#define RECORD_OTHER "\xc0\x0c\0\x10\0\1\0\0\0\x3c\0\2\1x"

static void the_first_address_is_taken(void **state) {
        struct addr a;
        char text[ADDR_TEXT];
        size_t n = reply(0x8180, 2, RECORD_OTHER RECORD_A, sizeof(RECORD_OTHER RECORD_A) - 1);

        (void) state;
        assert_int_equal(dnsq_read(space, n, 7, &a), 1);
        addr_text(&a, text);
        assert_string_equal(text, "198.18.0.7");
}

static void refusals_and_empty_answers_are_none(void **state) {
        struct addr a;

        (void) state;
        assert_int_equal(dnsq_read(space, reply(0x8185, 0, "", 0), 7, &a), 0);
        assert_int_equal(dnsq_read(space, reply(0x8183, 0, "", 0), 7, &a), 0);
        assert_int_equal(dnsq_read(space, reply(0x8180, 0, "", 0), 7, &a), 0);
        assert_int_equal(dnsq_read(space, reply(0x8180, 1, RECORD_OTHER, sizeof(RECORD_OTHER) - 1), 7, &a), 0);
}

static void what_is_no_reply_is_an_error(void **state) {
        struct addr a;
        size_t n;

        (void) state;
        assert_int_equal(dnsq_read(space, question("a.example"), 7, &a), -EBADMSG); /* a question */
        n = reply(0x8180, 1, RECORD_A, sizeof(RECORD_A) - 1);
        assert_int_equal(dnsq_read(space, n, 8, &a), -EBADMSG);
        for (size_t k = 0; k < n; k++)
                assert_int_not_equal(dnsq_read(space, k, 7, &a), 1);
        assert_int_equal(dnsq_read(space, reply(0x8185, 1, RECORD_A, sizeof(RECORD_A) - 1), 7, &a), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_question_is_what_resolvers_expect),
                cmocka_unit_test(names_without_sense_are_not_written),
                cmocka_unit_test(the_first_address_is_taken),
                cmocka_unit_test(refusals_and_empty_answers_are_none),
                cmocka_unit_test(what_is_no_reply_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
