/* cache.c - see cache.h. Entries stand in a queue by age; what has expired goes when it is met or becomes the oldest.
 */
#include "cache.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/own.h"
#include "base/str.h"

#define SECOND_NS 1000000000ull

struct entry {
        TAILQ_ENTRY(entry) link;
        uint64_t end_ns;
        int code;
        size_t n_addrs, n_key;
        struct addr *addrs;
        char key[];
};

struct cache {
        struct map *by_key;
        TAILQ_HEAD(, entry) by_age;
        size_t max;
};

size_t cache_key(char dst[CACHE_KEY], const char *name, unsigned want) {
        dst[0] = (char) want;
        (void) str_copy(dst + 1, HOST_NAME, name);
        return 1 + strlen(dst + 1);
}

int cache_new(size_t max, struct cache **ret) {
        AUTO_FREE struct cache *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        r = map_new(max, &c->by_key);
        if (r < 0)
                return r;
        TAILQ_INIT(&c->by_age);
        c->max = max;
        *ret = TAKE_PTR(c);
        return 0;
}

static void entry_drop(struct cache *c, struct entry *e) {
        (void) map_del(c->by_key, e->key, e->n_key);
        TAILQ_REMOVE(&c->by_age, e, link);
        free(e->addrs);
        free(e);
}

struct cache *cache_free(struct cache *c) {
        struct entry *e;

        if (!c)
                return NULL;
        while ((e = TAILQ_FIRST(&c->by_age)))
                entry_drop(c, e);
        map_free(c->by_key);
        free(c);
        return NULL;
}

void cache_put(struct cache *c, const char *name, unsigned want, const struct dns_result *res, uint64_t now_ns) {
        char key[CACHE_KEY];
        size_t n_key = cache_key(key, name, want), n_bytes = res->n_addrs * sizeof(res->addrs[0]);
        struct entry *e = map_get(c->by_key, key, n_key);

        if (e)
                entry_drop(c, e);
        if (c->max == 0 || res->ttl_s == 0)
                return;
        while (map_count(c->by_key) >= c->max)
                entry_drop(c, TAILQ_FIRST(&c->by_age));
        e = calloc(1, sizeof(*e) + n_key);
        if (!e)
                return;
        e->addrs = malloc(n_bytes > 0 ? n_bytes : 1);
        memcpy(e->key, key, n_key);
        e->n_key = n_key;
        if (!e->addrs || map_put(c->by_key, e->key, n_key, e) < 0) {
                free(e->addrs);
                free(e);
                return;
        }
        memcpy(e->addrs, res->addrs, n_bytes);
        e->n_addrs = res->n_addrs;
        e->code = res->code;
        e->end_ns = now_ns + res->ttl_s * SECOND_NS;
        TAILQ_INSERT_TAIL(&c->by_age, e, link);
}

bool cache_get(struct cache *c, const char *name, unsigned want, uint64_t now_ns, struct dns_result *ret) {
        char key[CACHE_KEY];
        size_t n_key = cache_key(key, name, want);
        struct entry *e = map_get(c->by_key, key, n_key);

        if (!e)
                return false;
        if (e->end_ns <= now_ns) {
                entry_drop(c, e);
                return false;
        }
        *ret = (struct dns_result){ .code = e->code,
                                    .n_addrs = e->n_addrs,
                                    .ttl_s = (uint32_t) ((e->end_ns - now_ns + SECOND_NS - 1) / SECOND_NS),
                                    .from = DNS_FROM_CACHE };
        memcpy(ret->addrs, e->addrs, e->n_addrs * sizeof(e->addrs[0]));
        return true;
}
