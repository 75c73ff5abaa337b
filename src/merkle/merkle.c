/* merkle.c - see merkle.h. */
#include "merkle/merkle.h"

#include <errno.h>
#include <string.h>

static void node(uint8_t dst[HASH_BYTES], const uint8_t *left, const uint8_t *right) {
        const struct hash_part parts[] = { { "\x01", 1 }, { left, HASH_BYTES }, { right, HASH_BYTES } };

        hash_parts(dst, parts, 3);
}

void merkle_leaf(uint8_t dst[HASH_BYTES], const void *data, size_t n) {
        const struct hash_part parts[] = { { "", 1 }, { data, n } }; /* "": its one byte is 0x00 */

        hash_parts(dst, parts, 2);
}

size_t merkle_peaks(uint64_t size) {
        return (size_t) __builtin_popcountll(size);
}

void merkle_add(struct merkle *m, const uint8_t leaf[HASH_BYTES]) {
        size_t n = merkle_peaks(m->size);

        memcpy(m->peaks[n++], leaf, HASH_BYTES);
        /* Each low one bit of the old size is a full subtree as large as the new one: they become one. */
        for (uint64_t s = m->size; s & 1; s >>= 1, n--)
                node(m->peaks[n - 2], m->peaks[n - 2], m->peaks[n - 1]);
        m->size++;
}

void merkle_root(const struct merkle *m, uint8_t dst[HASH_BYTES]) {
        size_t n = merkle_peaks(m->size);

        if (n == 0) {
                hash_parts(dst, NULL, 0);
                return;
        }
        memcpy(dst, m->peaks[n - 1], HASH_BYTES);
        for (size_t i = n - 1; i-- > 0;)
                node(dst, m->peaks[i], dst);
}

size_t merkle_nodes(size_t n) {
        size_t all = n;

        for (; n > 1; all += n)
                n = (n + 1) / 2;
        return all;
}

void merkle_build(uint8_t (*nodes)[HASH_BYTES], size_t n) {
        while (n > 1) {
                uint8_t(*up)[HASH_BYTES] = nodes + n;

                for (size_t i = 0; i + 1 < n; i += 2)
                        node(up[i / 2], nodes[i], nodes[i + 1]);
                if (n & 1) /* the last one has no partner here and moves up as it is */
                        memcpy(up[n / 2], nodes[n - 1], HASH_BYTES);
                nodes = up;
                n = (n + 1) / 2;
        }
}

size_t merkle_path(const uint8_t (*nodes)[HASH_BYTES], size_t n, size_t i, uint8_t (*ret)[HASH_BYTES]) {
        size_t len = 0;

        for (; n > 1; i /= 2, n = (n + 1) / 2) {
                if ((i ^ 1) < n)
                        memcpy(ret[len++], nodes[i ^ 1], HASH_BYTES);
                nodes += n;
        }
        return len;
}

int merkle_check(const uint8_t leaf[HASH_BYTES], uint64_t i, uint64_t n, const uint8_t (*path)[HASH_BYTES],
                 size_t n_path, const uint8_t root[HASH_BYTES]) {
        uint64_t at = i, last = n - 1;
        uint8_t r[HASH_BYTES];

        if (i >= n)
                return -EBADMSG;
        memcpy(r, leaf, HASH_BYTES);
        for (size_t k = 0; k < n_path; k++) {
                if (last == 0)
                        return -EBADMSG;
                if ((at & 1) || at == last) {
                        node(r, path[k], r);
                        while (!(at & 1) && at != 0) {
                                at >>= 1;
                                last >>= 1;
                        }
                } else {
                        node(r, r, path[k]);
                }
                at >>= 1;
                last >>= 1;
        }
        return last == 0 && memcmp(r, root, HASH_BYTES) == 0 ? 0 : -EBADMSG;
}
