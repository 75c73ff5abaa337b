/* book.c - fake addresses, one per name, for the life of a sandbox. The n-th name has the n-th address of 198.18/15. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "dns/dns.h"

#define FIRST_ADDRESS 0xc6120001u /* 198.18.0.1; the first of the range is a network address to some */

struct page {
        size_t index;
        char name[];
};

struct dns_book {
        struct map *by_name;
        struct page **pages;
        size_t n, cap, max;
};

int dns_book_new(size_t max_names, struct dns_book **ret, struct err *err) {
        CLEANUP(dns_book_freep) struct dns_book *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "address book: out of memory");
        b->max = max_names < DNS_BOOK_MAX ? max_names : DNS_BOOK_MAX;
        r = map_new(b->max, &b->by_name);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "address book: %s", strerrorname_np(-r));
        *ret = TAKE_PTR(b);
        return 0;
}

struct dns_book *dns_book_free(struct dns_book *b) {
        if (!b)
                return NULL;
        for (size_t i = 0; i < b->n; i++)
                free(b->pages[i]);
        free(b->pages);
        map_free(b->by_name);
        free(b);
        return NULL;
}

void dns_book_freep(struct dns_book **b) {
        *b = dns_book_free(*b);
}

static int grow(struct dns_book *b) {
        size_t cap = b->cap > 0 ? 2 * b->cap : 16;
        struct page **pages = b->n < b->cap ? b->pages : reallocarray(b->pages, cap, sizeof(struct page *));

        if (!pages)
                return -ENOMEM;
        if (b->n == b->cap)
                b->cap = cap;
        b->pages = pages;
        return 0;
}

static int add(struct dns_book *b, const char *name, size_t len) {
        AUTO_FREE struct page *page = malloc(sizeof(*page) + len + 1);
        int r;

        if (!page || grow(b) < 0)
                return -ENOMEM;
        page->index = b->n;
        memcpy(page->name, name, len + 1);
        r = map_put(b->by_name, page->name, len, page);
        if (r < 0)
                return r;
        b->pages[b->n++] = TAKE_PTR(page);
        return 0;
}

bool dns_book_find(const struct dns_book *b, const char *name, struct addr *ret) {
        const struct page *page = map_get(b->by_name, name, strlen(name));

        if (page)
                *ret = addr_v4(FIRST_ADDRESS + (uint32_t) page->index);
        return page;
}

int dns_book_give(struct dns_book *b, const char *name, struct addr *ret, struct err *err) {
        if (dns_book_find(b, name, ret))
                return 0;
        if (b->n >= b->max)
                return err_set(err, -EDQUOT, ERR_LIMIT, "all %zu names of the budget are used", b->max);
        if (add(b, name, strlen(name)) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "address book: out of memory");
        *ret = addr_v4(FIRST_ADDRESS + (uint32_t) b->n - 1);
        return 0;
}

const char *dns_book_name(const struct dns_book *b, const struct addr *a) {
        uint32_t index = addr_to_u32(a) - FIRST_ADDRESS; /* wraps to something huge for lower ones */

        return a->family == ADDR_V4 ? dns_book_at(b, index) : NULL;
}

size_t dns_book_count(const struct dns_book *b) {
        return b->n;
}

const char *dns_book_at(const struct dns_book *b, size_t i) {
        return i < b->n ? b->pages[i]->name : NULL;
}
