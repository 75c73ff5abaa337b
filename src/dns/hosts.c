/* hosts.c - see hosts.h. */
#include "hosts.h"

#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "base/own.h"
#include "text.h"

enum { WORDS = 32 };

struct host {
        struct addr addrs[DNS_ADDRS];
        size_t n_addrs;
        char name[];
};

struct hosts {
        struct map *by_name;
};

struct hosts *hosts_free(struct hosts *h) {
        struct host *host;
        size_t at = 0;

        if (!h)
                return NULL;
        while (h->by_name && (host = map_next(h->by_name, &at)))
                free(host);
        map_free(h->by_name);
        free(h);
        return NULL;
}

void hosts_freep(struct hosts **h) {
        *h = hosts_free(*h);
}

static int host_get(struct hosts *h, const char *name, struct host **ret) {
        size_t len = strlen(name);
        struct host *host = map_get(h->by_name, name, len);
        int r;

        if (!host) {
                host = calloc(1, sizeof(*host) + len + 1);
                if (!host)
                        return -ENOMEM;
                memcpy(host->name, name, len + 1);
                r = map_put(h->by_name, host->name, len, host);
                if (r < 0) {
                        free(host);
                        return r;
                }
        }
        *ret = host;
        return 0;
}

int hosts_parse(const char *text, size_t n, struct hosts **ret) {
        CLEANUP(hosts_freep) struct hosts *h = calloc(1, sizeof(*h));
        const char *at = text, *end = text + n;
        struct text_word w[WORDS];
        int n_words, r;

        if (!h || map_new(HOSTS_MAX, &h->by_name) < 0)
                return -ENOMEM;
        while ((n_words = text_line(&at, end, w, WORDS)) >= 0) {
                char address[ADDR_TEXT], name[HOST_NAME];
                struct host *host = NULL;
                struct addr a;

                if (n_words < 2)
                        continue;
                text_copy(&w[0], address, sizeof(address));
                if (addr_parse(address, &a) < 0)
                        continue;
                for (int i = 1; i < n_words; i++) {
                        if (host_canonical(w[i].p, w[i].n, name) < 0)
                                continue;
                        r = host_get(h, name, &host);
                        if (r == -ENOMEM)
                                return r;
                        if (r == 0 && host->n_addrs < DNS_ADDRS)
                                host->addrs[host->n_addrs++] = a;
                }
        }
        *ret = TAKE_PTR(h);
        return 0;
}

bool hosts_find(const struct hosts *h, const char *name, unsigned want, struct dns_result *res) {
        static const struct {
                unsigned want;
                enum addr_family family;
        } families[] = { { DNS_WANT_V4, ADDR_V4 }, { DNS_WANT_V6, ADDR_V6 } };
        const struct host *host = h ? map_get(h->by_name, name, strlen(name)) : NULL;

        if (!host)
                return false;
        for (size_t f = 0; f < ARRAY_SIZE(families); f++)
                for (size_t i = 0; i < host->n_addrs; i++)
                        if ((want & families[f].want) && host->addrs[i].family == families[f].family)
                                res->addrs[res->n_addrs++] = host->addrs[i];
        return true;
}
