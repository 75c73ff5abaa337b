/*
 * map.c - see map.h. Open addressing with linear probing; at most three quarters full. A deletion moves later entries
 * of the same run back, so there are no tombstones, and a table that churns stays as fast as a new one.
 */
#include "base/map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SLOTS_MIN = 16 };

struct slot {
        uint64_t hash;
        const void *key;
        size_t n;
        void *value; /* NULL: free */
};

struct map {
        uint8_t secret[16];
        struct slot *slots;
        size_t n_slots; /* power of two */
        size_t count;
        size_t max;
};

static uint64_t rotl(uint64_t v, unsigned by) {
        return v << by | v >> (64 - by);
}

static uint64_t load_le(const uint8_t *p, size_t n) {
        uint64_t v = 0;

        for (size_t i = 0; i < n; i++)
                v |= (uint64_t) p[i] << (8 * i);
        return v;
}

static void sip_rounds(uint64_t v[4], unsigned n) {
        while (n-- > 0) {
                v[0] += v[1];
                v[2] += v[3];
                v[1] = rotl(v[1], 13) ^ v[0];
                v[3] = rotl(v[3], 16) ^ v[2];
                v[0] = rotl(v[0], 32) + v[3];
                v[2] += v[1];
                v[3] = rotl(v[3], 21) ^ v[0];
                v[1] = rotl(v[1], 17) ^ v[2];
                v[2] = rotl(v[2], 32);
        }
}

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF". */
uint64_t map_siphash(const uint8_t key[16], const void *p, size_t n) {
        static const uint64_t start[4] = { 0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
                                           0x7465646279746573 };
        const uint8_t *at = p;
        uint64_t k[2] = { load_le(key, 8), load_le(key + 8, 8) };
        uint64_t v[4], m;

        for (unsigned i = 0; i < 4; i++)
                v[i] = start[i] ^ k[i % 2];
        for (size_t left = n;; left -= 8, at += 8) {
                bool last = left < 8;

                m = last ? load_le(at, left) | (uint64_t) n << 56 : load_le(at, 8);
                v[3] ^= m;
                sip_rounds(v, 2);
                v[0] ^= m;
                if (last)
                        break;
        }
        v[2] ^= 0xff;
        sip_rounds(v, 4);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int map_new(size_t max, struct map **ret) {
        struct map *m = calloc(1, sizeof(*m));

        if (!m)
                return -ENOMEM;
        m->max = max;
        if (getrandom(m->secret, sizeof(m->secret), 0) != (ssize_t) sizeof(m->secret)) {
                int r = -errno;

                free(m);
                return r;
        }
        *ret = m;
        return 0;
}

struct map *map_free(struct map *m) {
        if (m)
                free(m->slots);
        free(m);
        return NULL;
}

void map_freep(struct map **m) {
        *m = map_free(*m);
}

/* The slot that holds the key, or the free one where it belongs. There is always a free one. */
static struct slot *find(const struct map *m, uint64_t hash, const void *key, size_t n) {
        for (size_t i = hash & (m->n_slots - 1);; i = (i + 1) & (m->n_slots - 1)) {
                struct slot *s = &m->slots[i];

                if (!s->value || (s->hash == hash && s->n == n && memcmp(s->key, key, n) == 0))
                        return s;
        }
}

static int grow(struct map *m) {
        struct slot *old = m->slots;
        size_t n_old = m->n_slots;
        size_t n = n_old > 0 ? 2 * n_old : SLOTS_MIN;
        struct slot *slots = calloc(n, sizeof(*slots));

        if (!slots)
                return -ENOMEM;
        m->slots = slots;
        m->n_slots = n;
        for (size_t i = 0; i < n_old; i++)
                if (old[i].value)
                        *find(m, old[i].hash, old[i].key, old[i].n) = old[i];
        free(old);
        return 0;
}

int map_put(struct map *m, const void *key, size_t n, void *value) {
        uint64_t hash = map_siphash(m->secret, key, n);
        struct slot *s = m->n_slots > 0 ? find(m, hash, key, n) : NULL;

        if (s && s->value)
                return -EEXIST;
        if (m->count >= m->max)
                return -ENOSPC;
        if (!s || m->count + 1 > m->n_slots / 4 * 3) {
                if (grow(m) < 0)
                        return -ENOMEM;
                s = find(m, hash, key, n);
        }
        *s = (struct slot){ .hash = hash, .key = key, .n = n, .value = value };
        m->count++;
        return 0;
}

void *map_get(const struct map *m, const void *key, size_t n) {
        return m->n_slots > 0 ? find(m, map_siphash(m->secret, key, n), key, n)->value : NULL;
}

void *map_del(struct map *m, const void *key, size_t n) {
        size_t mask = m->n_slots - 1, hole;
        void *value;

        if (m->n_slots == 0)
                return NULL;
        hole = (size_t) (find(m, map_siphash(m->secret, key, n), key, n) - m->slots);
        value = m->slots[hole].value;
        if (!value)
                return NULL;
        for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
                size_t home = m->slots[i].hash & mask;

                /* It may move back unless its home lies behind the hole. */
                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        m->slots[hole] = m->slots[i];
                        hole = i;
                }
        }
        m->slots[hole] = (struct slot){ 0 };
        m->count--;
        return value;
}

size_t map_count(const struct map *m) {
        return m->count;
}

void *map_next(const struct map *m, size_t *at) {
        while (*at < m->n_slots) {
                void *value = m->slots[(*at)++].value;

                if (value)
                        return value;
        }
        return NULL;
}
