/* config.c - which servers to ask, from resolv.conf. Search lists are not used: every name is asked as it is. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dns/dns.h"
#include "text.h"

enum { WORDS = 16, TIMEOUT_MAX_S = 30, TRIES_MAX = 5, PORT = 53 };

void dns_config_default(struct dns_config *c) {
        *c = (struct dns_config){
                .timeout_ms = 2000,
                .tries = 2,
                .max_pending = 1024,
                .max_cached = 4096,
                .ttl_min_s = 5,
                .ttl_max_s = 300,
                .ttl_negative_s = 5,
        };
}

static void server(struct dns_config *c, const struct text_word *w) {
        char text[ADDR_TEXT];
        struct addr a;

        text_copy(w, text, sizeof(text));
        if (c->n_servers < DNS_SERVERS && addr_parse(text, &a) == 0)
                c->servers[c->n_servers++] = (struct dns_server){ .addr = a, .port = PORT };
}

/* "key:NUMBER" with a number from 1 to max, or 0. */
static unsigned option(const struct text_word *w, const char *key, unsigned max) {
        char text[32];
        uint64_t v;

        text_copy(w, text, sizeof(text));
        if (!str_has_prefix(text, key) || str_to_u64(text + strlen(key), UINT64_MAX, &v) < 0)
                return 0;
        return v < max ? (unsigned) v : max;
}

int dns_config_parse(struct dns_config *c, const char *text, size_t n, struct err *err) {
        const char *at = text, *end = text + n;
        struct text_word w[WORDS];
        struct dns_config new = *c;
        int n_words;

        new.n_servers = 0;
        while ((n_words = text_line(&at, end, w, WORDS)) >= 0) {
                if (n_words >= 2 && text_is(&w[0], "nameserver"))
                        server(&new, &w[1]);
                for (int i = 1; i < n_words && text_is(&w[0], "options"); i++) {
                        unsigned seconds = option(&w[i], "timeout:", TIMEOUT_MAX_S);
                        unsigned tries = option(&w[i], "attempts:", TRIES_MAX);

                        new.timeout_ms = seconds > 0 ? seconds * 1000 : new.timeout_ms;
                        new.tries = tries > 0 ? tries : new.tries;
                }
        }
        if (new.n_servers == 0)
                return err_set(err, -ENOENT, ERR_INVALID, "resolver: no usable nameserver line");
        *c = new;
        return 0;
}

int dns_config_read(struct dns_config *c, const char *path, struct err *err) {
        AUTO_FREE char *text = NULL;
        int n = text_read(path, &text);

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "resolver: %.150s: %s", path, strerror(-n));
        n = dns_config_parse(c, text, (size_t) n, err);
        return n < 0 ? err_wrap(err, "%.150s", path) : 0;
}
