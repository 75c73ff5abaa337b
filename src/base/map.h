/*
 * map.h - the one hash table: bytes to pointers. Keyed with a secret of the process's own (SipHash-2-4), so that nobody
 * who chooses names can choose collisions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map;

/* 0, -ENOMEM, or negative errno when the kernel gives no randomness. max: entries, a ceiling for map_put(). */
int map_new(size_t max, struct map **ret);
/* Frees the table, not what it points to. Accepts NULL. */
struct map *map_free(struct map *m);
void map_freep(struct map **m);

/* Borrows key until the entry is deleted. value is not NULL. -EEXIST, -ENOSPC (max reached), -ENOMEM. */
int map_put(struct map *m, const void *key, size_t n, void *value);
/* NULL: not there. */
void *map_get(const struct map *m, const void *key, size_t n);
/* Takes the entry out and returns its value, or NULL. */
void *map_del(struct map *m, const void *key, size_t n);
size_t map_count(const struct map *m);
/* Walks all values in no order: starts at *at = 0; NULL at the end. The table must not change meanwhile. */
void *map_next(const struct map *m, size_t *at);

/* The function itself, for tests against its published vectors. */
uint64_t map_siphash(const uint8_t key[16], const void *p, size_t n);
