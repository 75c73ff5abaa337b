/* vectors.c - see vectors.h. */
#include "vectors.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/own.h"
#include "base/sys.h"
#include "model.h"

enum { MAX_VECTORS = 400000, MAX_CONSTANTS = 4096, RANDOM = 20000 };

struct constants {
        uint32_t v[MAX_CONSTANTS];
        size_t n;
};

static void put(struct vectors *v, const struct model *m, int32_t nr, const uint64_t args[6]) {
        struct sim_data *d = &v->v[v->n];

        if (v->n == MAX_VECTORS)
                abort();
        *d = (struct sim_data){ .nr = nr, .arch = model_arch(m) };
        for (unsigned i = 0; args && i < 6; i++)
                d->args[i] = args[i];
        v->n++;
}

static int by_value(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

static void constants_find(struct constants *c, const struct model *m, const struct sys_bpf_insn *insns, size_t n) {
        const char *name;
        uint32_t v;
        size_t kept = 0;

        for (size_t i = 0; i < n; i++)
                if (insns[i].code != 0x06 && insns[i].code != 0x05 && insns[i].code != 0x20)
                        for (uint32_t d = 0; d < 3; d++)
                                c->v[c->n++] = insns[i].k + d - 1;
        for (size_t i = 0; model_value(m, i, &name, &v); i++)
                for (uint32_t d = 0; d < 3; d++)
                        c->v[c->n++] = v + d - 1;
        if (c->n > MAX_CONSTANTS)
                abort();
        qsort(c->v, c->n, sizeof(c->v[0]), by_value);
        for (size_t i = 0; i < c->n; i++)
                if (i == 0 || c->v[i] != c->v[i - 1])
                        c->v[kept++] = c->v[i];
        c->n = kept;
}

static void all_numbers(struct vectors *v, const struct model *m) {
        static const uint64_t ones[6] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
        static const int32_t odd[] = { -1, -2, -599, INT32_MIN, INT32_MIN + 1, INT32_MAX, 0x3fffffff };

        for (int32_t nr = 0; nr < MODEL_NR; nr++) {
                put(v, m, nr, NULL);
                put(v, m, nr, ones);
                put(v, m, nr | 0x40000000, NULL);
        }
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
                put(v, m, odd[i], NULL);
}

/* Families, types and protocols decide together, so all combinations of small values are tried. */
static void all_sockets(struct vectors *v, const struct model *m) {
        static const uint64_t flags[] = { 0, 02000000, 02004000, UINT64_MAX << 32 };
        static const uint64_t protocols[] = { 0, 1, 2, 6, 17, 58, 132, 136, 255, 262, 1ull << 32 };

        for (uint64_t family = 0; family < 48; family++)
                for (uint64_t type = 0; type < 64; type++)
                        for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
                                uint64_t args[6] = { family, type % 16 | flags[type / 16], protocols[p] };

                                put(v, m, model_nr(m, "socket"), args);
                        }
}

static uint64_t next_random(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

struct vectors vectors_new(const struct model *m, unsigned profile, const struct sys_bpf_insn *insns, size_t n) {
        static const uint64_t upper[] = { 0, 1ull << 32, UINT64_MAX << 32 };
        static struct constants c;
        struct vectors v = { .n = 0 };
        uint64_t seed = 0x9e3779b97f4a7c15;
        int checked[MODEL_NR];
        size_t n_checked = 0;

        v.v = mmap(NULL, MAX_VECTORS * sizeof(v.v[0]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (v.v == MAP_FAILED)
                abort();
        c.n = 0;
        constants_find(&c, m, insns, n);
        all_numbers(&v, m);
        all_sockets(&v, m);
        for (int nr = 0; nr < MODEL_NR; nr++)
                if (model_has_rule(m, profile, nr))
                        checked[n_checked++] = nr;
        for (size_t i = 0; i < n_checked; i++)
                for (size_t k = 0; k < c.n * 3 * 6; k++) {
                        uint64_t args[6] = { 0 };

                        args[k % 6] = c.v[k / 18] | upper[k / 6 % 3];
                        put(&v, m, checked[i], args);
                }
        for (size_t i = 0; i < RANDOM; i++) {
                uint64_t args[6];
                int nr = checked[next_random(&seed) % n_checked];

                for (unsigned k = 0; k < 6; k++)
                        args[k] = c.v[next_random(&seed) % c.n] | upper[next_random(&seed) % 3];
                put(&v, m, nr, args);
        }
        return v;
}

void vectors_done(struct vectors *v) {
        (void) munmap(v->v, MAX_VECTORS * sizeof(v->v[0]));
}
