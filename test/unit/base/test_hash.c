/* test_hash.c - SHA-256 against the vectors of FIPS 180-2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void known_vectors(void **state) {
        static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        char text[HASH_TEXT];

        (void) state;
        hash_text(text, "", 0);
        assert_string_equal(text, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        hash_text(text, "abc", 3);
        assert_string_equal(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        hash_text(text, two_blocks, strlen(two_blocks));
        assert_string_equal(text, "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_a(void **state) {
        enum { MILLION = 1000000 };
        char *a = malloc(MILLION);
        char text[HASH_TEXT];

        (void) state;
        assert_non_null(a);
        memset(a, 'a', MILLION);
        hash_text(text, a, MILLION);
        free(a);
        assert_string_equal(text, "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_are_hashed_as_one(void **state) {
        static const struct hash_part parts[] = { { "a", 1 }, { "", 0 }, { "bc", 2 } };
        uint8_t digest[HASH_BYTES];

        (void) state;
        hash_parts(digest, parts, 3);
        assert_int_equal(digest[0], 0xba);
        assert_int_equal(digest[31], 0xad);
}

static void the_text_fits_its_array(void **state) {
        char text[HASH_TEXT + 1];

        (void) state;
        memset(text, 'G', sizeof(text));
        hash_text(text, "abc", 3);
        assert_int_equal(strlen(text), HASH_TEXT - 1);
        assert_int_equal(text[HASH_TEXT], 'G');
}

static void bytes_are_compared_whole(void **state) {
        (void) state;
        assert_true(hash_equal("abc", "abd", 2));
        assert_false(hash_equal("abc", "abd", 3));
        assert_false(hash_equal("xbc", "abc", 3));
        assert_true(hash_equal("a", "b", 0));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(known_vectors),
                cmocka_unit_test(a_million_a),
                cmocka_unit_test(pieces_are_hashed_as_one),
                cmocka_unit_test(bytes_are_compared_whole),
                cmocka_unit_test(the_text_fits_its_array),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
