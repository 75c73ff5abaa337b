/* The tree is RFC 6962's, however it is built; a path proves its leaf and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "merkle/merkle.h"

enum { MOST = 70 };

static uint8_t leaves[MOST][HASH_BYTES];

static int set_up(void **state) {
        (void) state;
        for (unsigned i = 0; i < MOST; i++)
                merkle_leaf(leaves[i], &(char){ (char) i }, 1);
        return 0;
}

/* The definition itself: split at the largest power of two below n. */
static void by_definition(const uint8_t (*l)[HASH_BYTES], size_t n, uint8_t dst[HASH_BYTES]) {
        uint8_t both[2 * HASH_BYTES + 1] = { 1 };
        size_t k = 1;
        const struct hash_part part = { both, sizeof(both) };

        if (n == 1) {
                memcpy(dst, l[0], HASH_BYTES);
                return;
        }
        while (k * 2 < n)
                k *= 2;
        by_definition(l, k, both + 1);
        by_definition(l + k, n - k, both + 1 + HASH_BYTES);
        hash_parts(dst, &part, 1);
}

static void assert_hex(const uint8_t hash[HASH_BYTES], const char *want) {
        char text[HASH_HEX];

        str_hex(text, hash, HASH_BYTES);
        assert_string_equal(text, want);
}

static void known_vectors(void **state) {
        struct merkle m = { 0 };
        uint8_t h[HASH_BYTES];

        (void) state;
        merkle_root(&m, h);
        assert_hex(h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        merkle_leaf(h, "", 0);
        assert_hex(h, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
        for (const char *c = "abc"; *c; c++) {
                merkle_leaf(h, c, 1);
                merkle_add(&m, h);
        }
        merkle_root(&m, h);
        assert_hex(h, "36642e73c2540ab121e3a6bf9545b0a24982cd830eb13d3cd19de3ce6c021ec1");
}

static void adding_leaf_by_leaf_gives_the_tree_of_the_definition(void **state) {
        struct merkle m = { 0 };
        uint8_t a[HASH_BYTES], b[HASH_BYTES];

        (void) state;
        for (size_t n = 1; n <= MOST; n++) {
                merkle_add(&m, leaves[n - 1]);
                merkle_root(&m, a);
                by_definition((const uint8_t(*)[HASH_BYTES]) leaves, n, b);
                assert_memory_equal(a, b, HASH_BYTES);
        }
}

static void paths_prove_their_leaf_and_nothing_else(void **state) {
        uint8_t nodes[2 * MOST + 8][HASH_BYTES], path[MERKLE_PATH][HASH_BYTES], root[HASH_BYTES];
        const uint8_t(*p)[HASH_BYTES] = (const uint8_t(*)[HASH_BYTES]) path;

        (void) state;
        for (size_t n = 1; n <= 40; n++) {
                by_definition((const uint8_t(*)[HASH_BYTES]) leaves, n, root);
                memcpy(nodes, leaves, n * HASH_BYTES);
                merkle_build(nodes, n);
                assert_memory_equal(nodes[merkle_nodes(n) - 1], root, HASH_BYTES);
                for (size_t i = 0; i < n; i++) {
                        size_t len = merkle_path((const uint8_t(*)[HASH_BYTES]) nodes, n, i, path);

                        assert_int_equal(merkle_check(leaves[i], i, n, p, len, root), 0);
                        assert_int_equal(merkle_check(leaves[(i + 1) % MOST], i, n, p, len, root), -EBADMSG);
                        assert_int_equal(merkle_check(leaves[i], i + 1, n, p, len, root), -EBADMSG);
                        assert_int_equal(merkle_check(leaves[i], n, n, p, len, root), -EBADMSG);
                        assert_int_equal(merkle_check(leaves[i], i, n, p, len + 1, root), -EBADMSG);
                        if (len > 0) {
                                assert_int_equal(merkle_check(leaves[i], i, n, p, len - 1, root), -EBADMSG);
                                path[len / 2][7] ^= 1;
                                assert_int_equal(merkle_check(leaves[i], i, n, p, len, root), -EBADMSG);
                        }
                }
        }
        assert_int_equal(merkle_check(leaves[0], 0, 0, p, 0, root), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(known_vectors),
                cmocka_unit_test(adding_leaf_by_leaf_gives_the_tree_of_the_definition),
                cmocka_unit_test(paths_prove_their_leaf_and_nothing_else),
        };
        return cmocka_run_group_tests(tests, set_up, NULL);
}
