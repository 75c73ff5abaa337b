/*
 * resolver.c - names of the world outside, without a blocking call.
 *
 * A lookup is what a caller waits for. Lookups of the same name share one job; a job has a question per address family
 * and ends when both are answered, or shortly after the first one brought addresses. Results reach callers through an
 * event of each lookup, so that no caller is called from within dns_resolve() or from a frame that still uses the job.
 */
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "ask.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "cache.h"
#include "dns/dns.h"
#include "hosts.h"
#include "text.h"

enum { PARTS = 2, GRACE_US = 50000 }; /* RFC 8305: how long the second family is waited for */

struct dns_lookup {
        TAILQ_ENTRY(dns_lookup) link; /* in the resolver's list: its only owner */
        struct dns_resolver *resolver;
        struct job *job; /* NULL once there is a result */
        struct event *ready;
        struct dns_result result;
        dns_done_fn done;
        void *arg;
};

struct part {
        struct ask *ask; /* NULL: not wanted, or answered */
        uint16_t type;
        bool wanted;
        int code;
        struct reply reply;
};

struct job {
        struct dns_resolver *resolver;
        struct part parts[PARTS];
        struct event *grace;
        unsigned want, n_waiting;
        size_t n_key;
        char key[CACHE_KEY]; /* the name stands behind the first byte */
};

struct dns_resolver {
        struct event_base *base;
        struct dns_config config;
        struct hosts *hosts;
        struct cache *cache;
        struct map *jobs; /* by key */
        TAILQ_HEAD(, dns_lookup) lookups;
        size_t n_lookups;
};

static void lookup_free(struct dns_lookup *l) {
        TAILQ_REMOVE(&l->resolver->lookups, l, link);
        l->resolver->n_lookups--;
        event_free(l->ready);
        free(l);
}

static void job_free(struct job *j) {
        for (size_t i = 0; i < PARTS; i++)
                ask_free(j->parts[i].ask);
        if (j->grace)
                event_free(j->grace);
        (void) map_del(j->resolver->jobs, j->key, j->n_key);
        free(j);
}

static void on_ready(int fd, short what, void *arg) {
        struct dns_lookup *l = arg;
        struct dns_result result = l->result;
        dns_done_fn done = l->done;
        void *done_arg = l->arg;

        (void) fd;
        (void) what;
        lookup_free(l);
        done(&result, done_arg);
}

static void lookup_ready(struct dns_lookup *l, const struct dns_result *res) {
        l->result = *res;
        l->job = NULL;
        event_active(l->ready, EV_TIMEOUT, 0);
}

/* No such name is said by one family for both; of the other failures, one that may pass counts most. */
static int code_merge(int a, int b) {
        if (a == 0 || b == 0)
                return 0;
        if (a == -ENOENT || b == -ENOENT)
                return -ENOENT;
        return a == -ENODATA ? b : a;
}

static struct dns_result job_result(const struct job *j) {
        const struct dns_config *c = &j->resolver->config;
        struct dns_result res = { .code = -ENODATA, .ttl_s = UINT32_MAX, .from = DNS_FROM_SERVER };

        for (size_t i = 0; i < PARTS; i++) {
                const struct part *p = &j->parts[i];

                if (!p->wanted || p->ask)
                        continue;
                res.code = code_merge(res.code, p->code);
                if (p->code != 0)
                        continue;
                for (size_t k = 0; k < p->reply.n_addrs && res.n_addrs < DNS_ADDRS; k++)
                        res.addrs[res.n_addrs++] = p->reply.addrs[k];
                res.ttl_s = p->reply.ttl_s < res.ttl_s ? p->reply.ttl_s : res.ttl_s;
        }
        if (res.code < 0)
                res.ttl_s = c->ttl_negative_s;
        else if (res.ttl_s < c->ttl_min_s)
                res.ttl_s = c->ttl_min_s;
        else if (res.ttl_s > c->ttl_max_s)
                res.ttl_s = c->ttl_max_s;
        return res;
}

static void job_end(struct job *j) {
        struct dns_resolver *r = j->resolver;
        struct dns_result res = job_result(j);
        struct dns_lookup *l;

        if (res.code == 0 || res.code == -ENOENT || res.code == -ENODATA)
                cache_put(r->cache, j->key + 1, j->want, &res, clock_mono_ns());
        for (l = TAILQ_FIRST(&r->lookups); l; l = TAILQ_NEXT(l, link))
                if (l->job == j)
                        lookup_ready(l, &res);
        job_free(j);
}

static void on_grace(int fd, short what, void *arg) {
        (void) fd;
        (void) what;
        job_end(arg);
}

static void on_answer(struct ask *a, int code, const struct reply *rep, void *arg) {
        static const struct timeval grace = { .tv_usec = GRACE_US };
        struct job *j = arg;
        bool open = false;

        for (size_t i = 0; i < PARTS; i++) {
                struct part *p = &j->parts[i];

                if (p->ask == a) {
                        p->ask = ask_free(a);
                        p->code = code;
                        if (rep)
                                p->reply = *rep;
                }
                open |= p->ask != NULL;
        }
        if (!open || code == -ENOENT || (code == 0 && event_add(j->grace, &grace) < 0))
                job_end(j);
}

static int job_new(struct dns_resolver *r, const char *name, unsigned want, struct job **ret) {
        struct job *j = calloc(1, sizeof(*j));
        int code = 0;

        if (!j)
                return -ENOMEM;
        j->resolver = r;
        j->want = want;
        j->n_key = cache_key(j->key, name, want);
        j->parts[0] = (struct part){ .type = DNS_A, .wanted = want & DNS_WANT_V4 };
        j->parts[1] = (struct part){ .type = DNS_AAAA, .wanted = want & DNS_WANT_V6 };
        j->grace = event_new(r->base, -1, 0, on_grace, j);
        if (!j->grace)
                code = -ENOMEM;
        for (size_t i = 0; i < PARTS && code == 0; i++)
                if (j->parts[i].wanted)
                        code = ask_new(r->base, &r->config, j->key + 1, j->parts[i].type, on_answer, j,
                                       &j->parts[i].ask);
        if (code == 0)
                code = map_put(r->jobs, j->key, j->n_key, j);
        if (code < 0)
                job_free(j);
        else
                *ret = j;
        return code;
}

/* What is known already, or a job that finds out. */
static int lookup_start(struct dns_lookup *l, const char *name, unsigned want) {
        struct dns_resolver *r = l->resolver;
        struct dns_result res = { .from = DNS_FROM_HOSTS };
        char key[CACHE_KEY];
        size_t n_key = cache_key(key, name, want);

        if (hosts_find(r->hosts, name, want, &res)) {
                res.code = res.n_addrs > 0 ? 0 : -ENODATA;
                lookup_ready(l, &res);
                return 0;
        }
        if (cache_get(r->cache, name, want, clock_mono_ns(), &res)) {
                lookup_ready(l, &res);
                return 0;
        }
        l->job = map_get(r->jobs, key, n_key);
        if (!l->job && job_new(r, name, want, &l->job) < 0)
                return -ENOMEM;
        l->job->n_waiting++;
        return 0;
}

int dns_resolver_new(struct event_base *base, const struct dns_config *c, struct dns_resolver **ret, struct err *err) {
        CLEANUP(dns_resolver_freep) struct dns_resolver *r = calloc(1, sizeof(*r));
        int code;

        if (!r)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "resolver: out of memory");
        TAILQ_INIT(&r->lookups);
        r->base = base;
        r->config = *c;
        code = map_new(c->max_pending, &r->jobs);
        if (code == 0)
                code = cache_new(c->max_cached, &r->cache);
        if (code < 0)
                return err_set(err, code, ERR_INTERNAL, "resolver: %s", strerrorname_np(-code));
        *ret = TAKE_PTR(r);
        return 0;
}

struct dns_resolver *dns_resolver_free(struct dns_resolver *r) {
        struct dns_lookup *l;

        if (!r)
                return NULL;
        while ((l = TAILQ_FIRST(&r->lookups)))
                lookup_free(l);
        for (size_t at = 0; r->jobs && map_count(r->jobs) > 0; at = 0)
                job_free(map_next(r->jobs, &at));
        map_free(r->jobs);
        hosts_free(r->hosts);
        cache_free(r->cache);
        free(r);
        return NULL;
}

void dns_resolver_freep(struct dns_resolver **r) {
        *r = dns_resolver_free(*r);
}

int dns_resolver_hosts(struct dns_resolver *r, const char *text, size_t n, struct err *err) {
        struct hosts *hosts = NULL;

        if (hosts_parse(text, n, &hosts) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "resolver: out of memory");
        hosts_free(r->hosts);
        r->hosts = hosts;
        return 0;
}

int dns_resolver_hosts_read(struct dns_resolver *r, const char *path, struct err *err) {
        AUTO_FREE char *text = NULL;
        int n = text_read(path, &text);

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "resolver: %.150s: %s", path, strerror(-n));
        return dns_resolver_hosts(r, text, (size_t) n, err);
}

int dns_resolve(struct dns_resolver *r, const char *name, unsigned want, dns_done_fn done, void *arg,
                struct dns_lookup **ret, struct err *err) {
        char canonical[HOST_NAME];
        struct dns_lookup *l;

        if (host_canonical(name, strlen(name), canonical) < 0 || (want & ~(unsigned) (DNS_WANT_V4 | DNS_WANT_V6)) ||
            want == 0)
                return err_set(err, -EINVAL, ERR_INVALID, "resolver: '%.100s' is not a host name", name);
        if (r->n_lookups >= r->config.max_pending)
                return err_set(err, -EBUSY, ERR_BUSY, "resolver: %zu lookups are under way", r->n_lookups);
        l = calloc(1, sizeof(*l));
        if (!l)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "resolver: out of memory");
        *l = (struct dns_lookup){ .resolver = r, .done = done, .arg = arg };
        l->ready = event_new(r->base, -1, 0, on_ready, l);
        if (!l->ready) {
                free(l);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "resolver: out of memory");
        }
        TAILQ_INSERT_TAIL(&r->lookups, l, link);
        r->n_lookups++;
        if (lookup_start(l, canonical, want) < 0) {
                lookup_free(l);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "resolver: out of memory");
        }
        *ret = l;
        return 0;
}

void dns_lookup_cancel(struct dns_lookup *l) {
        /* Nobody may fill the table with questions that nobody waits for. */
        if (l->job && --l->job->n_waiting == 0)
                job_free(l->job);
        lookup_free(l);
}
