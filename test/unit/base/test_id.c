/* test_id.c - ids: the right shape, never twice, every character as likely as any other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"

enum { MANY = 20000 };

static void ids_have_twenty_characters_of_the_set(void **state) {
        (void) state;
        for (int i = 0; i < 1000; i++) {
                char id[ID_TEXT + 1];

                memset(id, 'G', sizeof(id));
                assert_int_equal(id_new(id), 0);
                assert_int_equal(strlen(id), ID_LEN);
                assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), ID_LEN);
                assert_int_equal(id[ID_TEXT], 'G');
        }
}

static int compare(const void *a, const void *b) {
        return memcmp(a, b, ID_TEXT);
}

static void ids_do_not_repeat(void **state) {
        char(*ids)[ID_TEXT] = calloc(MANY, ID_TEXT);

        (void) state;
        assert_non_null(ids);
        for (int i = 0; i < MANY; i++)
                assert_int_equal(id_new(ids[i]), 0);
        qsort(ids, MANY, ID_TEXT, compare);
        for (int i = 1; i < MANY; i++)
                assert_string_not_equal(ids[i - 1], ids[i]);
        free(ids);
}

/* 400,000 characters over 36 values: 11,111 each, sigma 104. Ten sigma is far beyond chance, while a modulo of a whole
 * byte would favour the first four by 14 percent. */
static void characters_are_uniform(void **state) {
        unsigned n[256] = { 0 };

        (void) state;
        for (int i = 0; i < MANY; i++) {
                char id[ID_TEXT];

                assert_int_equal(id_new(id), 0);
                for (int k = 0; k < ID_LEN; k++)
                        n[(unsigned char) id[k]]++;
        }
        for (const char *c = "abcdefghijklmnopqrstuvwxyz0123456789"; *c; c++)
                assert_in_range(n[(unsigned char) *c], 11111 - 1040, 11111 + 1040);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(ids_have_twenty_characters_of_the_set),
                cmocka_unit_test(ids_do_not_repeat),
                cmocka_unit_test(characters_are_uniform),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
