/*
 * merkle.h - the hash tree of RFC 6962: a log proves with a few hashes that it holds an entry, or that it only grew.
 *
 * Leaf = SHA-256(0x00 data), node = SHA-256(0x01 left right). `struct merkle` is all that appending needs: the roots of
 * the full subtrees, largest first, one per bit of the size. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

enum { MERKLE_PEAKS = 48, MERKLE_PATH = 64 };

struct merkle {
        uint64_t size;
        uint8_t peaks[MERKLE_PEAKS][HASH_BYTES];
};

void merkle_leaf(uint8_t dst[HASH_BYTES], const void *data, size_t n);
/* How many peaks a tree of that size has. */
size_t merkle_peaks(uint64_t size);
void merkle_add(struct merkle *m, const uint8_t leaf[HASH_BYTES]);
void merkle_root(const struct merkle *m, uint8_t dst[HASH_BYTES]);

/*
 * All levels at once, for paths: nodes[0..n) are the leaves, merkle_build() fills the rest of merkle_nodes(n). A path
 * then is the siblings on the way up; merkle_path() returns its length. i < n.
 */
size_t merkle_nodes(size_t n);
void merkle_build(uint8_t (*nodes)[HASH_BYTES], size_t n);
size_t merkle_path(const uint8_t (*nodes)[HASH_BYTES], size_t n, size_t i, uint8_t (*ret)[HASH_BYTES]);
/* 0 when leaf i of a tree of n leaves with that root has the given path; else -EBADMSG. Untrusted input. */
int merkle_check(const uint8_t leaf[HASH_BYTES], uint64_t i, uint64_t n, const uint8_t (*path)[HASH_BYTES],
                 size_t n_path, const uint8_t root[HASH_BYTES]);
