/* test_wr.c - the bounded writer: what rd reads, never past its end, sticky. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rd.h"
#include "base/wr.h"

static void what_is_written_can_be_read(void **state) {
        uint8_t b[64];
        char s[8];
        struct wr w = wr_to(b, sizeof(b));
        struct rd r;

        (void) state;
        wr_u8(&w, 0xfe);
        wr_u16(&w, 0xfedc);
        wr_u32(&w, 0xfedcba98);
        wr_u64(&w, 0xfedcba9876543210u);
        wr_str(&w, "abc");
        wr_bytes(&w, "xy", 2);
        assert_false(w.bad);
        assert_int_equal(w.len, 1 + 2 + 4 + 8 + 5 + 2);
        r = rd_from(b, w.len);
        assert_int_equal(rd_u8(&r), 0xfe);
        assert_int_equal(rd_u16(&r), 0xfedc);
        assert_true(rd_u32(&r) == 0xfedcba98);
        assert_true(rd_u64(&r) == 0xfedcba9876543210u);
        rd_str(&r, s, sizeof(s));
        assert_string_equal(s, "abc");
        assert_memory_equal(rd_bytes(&r, 2), "xy", 2);
        assert_true(rd_done(&r));
}

static void overflow_writes_nothing_and_is_sticky(void **state) {
        uint8_t b[4] = { 9, 9, 9, 9 };
        struct wr w = wr_to(b, 3); /* the fourth byte is a guard */

        (void) state;
        wr_u16(&w, 0x0102);
        wr_u16(&w, 0x0304);
        assert_true(w.bad);
        assert_int_equal(w.len, 2);
        wr_u8(&w, 5); /* would fit, but the message already lacks something */
        assert_int_equal(w.len, 2);
        assert_memory_equal(b, "\1\2\11\11", 4);
}

static void the_last_byte_can_be_used(void **state) {
        uint8_t b[2];
        struct wr w = wr_to(b, sizeof(b));

        (void) state;
        wr_u16(&w, 0x0a0b);
        wr_bytes(&w, NULL, 0);
        assert_false(w.bad);
        wr_u8(&w, 1);
        assert_true(w.bad);
}

static void a_huge_length_does_not_wrap(void **state) {
        uint8_t b[4];
        struct wr w = wr_to(b, sizeof(b));

        (void) state;
        wr_u8(&w, 1);
        wr_bytes(&w, b, SIZE_MAX);
        assert_true(w.bad);
        assert_int_equal(w.len, 1);
}

static void str_longer_than_its_length_field_is_refused(void **state) {
        enum { TEXT = UINT16_MAX + 1, ROOM = TEXT + 16 };
        char *text = malloc(TEXT + 1);
        uint8_t *b = malloc(ROOM);
        struct wr w = wr_to(b, ROOM);

        (void) state;
        assert_non_null(text);
        assert_non_null(b);
        memset(text, 'a', TEXT);
        text[TEXT] = '\0';
        wr_str(&w, text);
        assert_true(w.bad);
        assert_int_equal(w.len, 0);
        w = wr_to(b, ROOM);
        wr_str(&w, text + 1); /* one less: the longest that fits */
        assert_false(w.bad);
        assert_int_equal(w.len, 2 + UINT16_MAX);
        free(text);
        free(b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_can_be_read),
                cmocka_unit_test(overflow_writes_nothing_and_is_sticky),
                cmocka_unit_test(the_last_byte_can_be_used),
                cmocka_unit_test(a_huge_length_does_not_wrap),
                cmocka_unit_test(str_longer_than_its_length_field_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
