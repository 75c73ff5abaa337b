/* test_map.c - the table agrees with a list, whatever is put in and taken out, and its hash with the published one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/own.h"

/* The first rows of vectors_sip64 in the reference: key 00..0f, message 00 01 02 ... */
static void siphash_vectors(void **state) {
        static const struct {
                size_t n;
                uint64_t hash;
        } rows[] = { { 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },  { 7, 0xab0200f58b01d137 },
                     { 8, 0x93f5f5799a932462 }, { 15, 0xa129ca6149be45e5 }, { 63, 0x958a324ceb064572 } };
        uint8_t key[16], in[64];

        (void) state;
        for (unsigned i = 0; i < sizeof(in); i++)
                in[i] = (uint8_t) i;
        memcpy(key, in, sizeof(key));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_true(map_siphash(key, in, rows[i].n) == rows[i].hash);
}

static void puts_gets_and_deletes(void **state) {
        CLEANUP(map_freep) struct map *m = NULL;
        int a = 1, b = 2;
        size_t at = 0;

        (void) state;
        assert_int_equal(map_new(2, &m), 0);
        assert_null(map_get(m, "a", 1));
        assert_null(map_del(m, "a", 1));
        assert_null(map_next(m, &at));
        assert_int_equal(map_put(m, "a", 1, &a), 0);
        assert_int_equal(map_put(m, "a", 1, &b), -EEXIST);
        assert_int_equal(map_put(m, "a\0", 2, &b), 0); /* keys are bytes */
        assert_int_equal(map_put(m, "c", 1, &b), -ENOSPC);
        assert_ptr_equal(map_get(m, "a", 1), &a);
        assert_ptr_equal(map_get(m, "a\0", 2), &b);
        assert_ptr_equal(map_del(m, "a", 1), &a);
        assert_null(map_get(m, "a", 1));
        assert_int_equal(map_count(m), 1);
        assert_ptr_equal(map_next(m, &at), &b);
        assert_null(map_next(m, &at));
}

/* A fixed pseudo-random walk: dense runs, wrap-around and growth, checked against an array after each step. */
static void agrees_with_an_array(void **state) {
        enum { KEYS = 600, STEPS = 30000 };
        static char keys[KEYS][8];
        static bool in[KEYS];
        CLEANUP(map_freep) struct map *m = NULL;
        uint32_t rnd = 12345;
        size_t n = 0;

        (void) state;
        assert_int_equal(map_new(KEYS, &m), 0);
        for (int i = 0; i < KEYS; i++)
                (void) snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        for (int step = 0; step < STEPS; step++) {
                unsigned i;

                rnd = rnd * 1664525 + 1013904223;
                i = (rnd >> 8) % KEYS;
                assert_ptr_equal(map_get(m, keys[i], strlen(keys[i])), in[i] ? keys[i] : NULL);
                if (in[i])
                        assert_ptr_equal(map_del(m, keys[i], strlen(keys[i])), keys[i]);
                else
                        assert_int_equal(map_put(m, keys[i], strlen(keys[i]), keys[i]), 0);
                n = in[i] ? n - 1 : n + 1;
                in[i] = !in[i];
                assert_int_equal(map_count(m), n);
        }
        for (int i = 0; i < KEYS; i++)
                assert_ptr_equal(map_get(m, keys[i], strlen(keys[i])), in[i] ? keys[i] : NULL);
        for (size_t at = 0, seen = 0;; seen++)
                if (!map_next(m, &at)) {
                        assert_int_equal(seen, n);
                        break;
                }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(siphash_vectors),
                cmocka_unit_test(puts_gets_and_deletes),
                cmocka_unit_test(agrees_with_an_array),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
