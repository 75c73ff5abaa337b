/* cache.h - results by name for as long as they are good. Pure (the caller has the clock); private to src/dns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dns/dns.h"

enum { CACHE_KEY = 1 + HOST_NAME };

struct cache;

/* What a result is kept by: the families wanted, then the name. Returns the length. */
size_t cache_key(char dst[CACHE_KEY], const char *name, unsigned want);

/* 0, -ENOMEM, or no randomness. max 0: remembers nothing. */
int cache_new(size_t max, struct cache **ret);
/* Accepts NULL. */
struct cache *cache_free(struct cache *c);
/* Puts res in, for res->ttl_s from now on; the oldest makes room. Does nothing if memory is short. */
void cache_put(struct cache *c, const char *name, unsigned want, const struct dns_result *res, uint64_t now_ns);
/* False: unknown, or no longer good. ret->ttl_s is what is left. */
bool cache_get(struct cache *c, const char *name, unsigned want, uint64_t now_ns, struct dns_result *ret);
