/*
 * metrics.c - see metrics.h. Labels are routes, states and tenants' names: all bounded, none chosen by a stranger.
 * What concerns other tenants, or the machine as a whole, is for operators only.
 */
#include "daemon/metrics.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "daemon/admit.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/quota.h"
#include "daemon/request.h"
#include "daemon/route.h"
#include "daemon/warden.h"
#include "http/server.h"

enum { ROUTES_MAX = 128, CLASSES = 6, TEXT_MAX = 1 << 20, BUCKETS = 12 };

static const struct {
        const char *name, *help;
} names[METRICS] = {
        [METRIC_CREATED] = { "gabion_sandboxes_created_total", "Sandboxes that began to run." },
        [METRIC_CREATE_FAILED] = { "gabion_sandbox_create_failures_total", "Creates that failed after admission." },
        [METRIC_ENDED] = { "gabion_sandboxes_ended_total", "Sandboxes that ended, for whatever reason." },
        [METRIC_EXPIRED] = { "gabion_sandboxes_expired_total", "Sandboxes that ended by their time-out." },
        [METRIC_LOST] = { "gabion_sandboxes_lost_total", "Sandboxes that were gone without our doing." },
        [METRIC_REFUSED_QUOTA] = { "gabion_quota_refusals_total", "Creates refused with 429." },
        [METRIC_WARDEN_LOST] = { "gabion_warden_disconnects_total", "Times the warden went away." },
        [METRIC_BOUND] = { "gabion_sandbox_requests_total", "Requests that went to a sandbox." },
        [METRIC_BOUND_REFUSED] = { "gabion_sandbox_requests_refused_total", "Such requests that were refused." },
        [METRIC_AUDIT] = { "gabion_audit_acknowledged_total", "Records that the notary has made durable." },
        [METRIC_AUDIT_FAILED] = { "gabion_audit_failures_total", "Records that it refused." },
        [METRIC_COMMANDS] = { "gabion_commands_total", "Commands that clients started in sandboxes." },
};

static const double bounds[BUCKETS] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30 };

struct metrics {
        uint64_t counts[METRICS];
        uint64_t by_route[ROUTES_MAX][CLASSES]; /* the last row: paths that are none */
        uint64_t buckets[BUCKETS + 1], sum_ns, refused;
};

struct metrics *metrics_new(void) {
        return calloc(1, sizeof(struct metrics));
}

struct metrics *metrics_free(struct metrics *m) {
        free(m);
        return NULL;
}

void metrics_request(struct metrics *m, const struct route *route, unsigned status, uint64_t ns) {
        size_t row = route ? (size_t) (route - route_at(0)) : ROUTES_MAX - 1, i = 0;

        if (row >= ROUTES_MAX)
                row = ROUTES_MAX - 1;
        m->by_route[row][status / 100 < CLASSES ? status / 100 : 0]++;
        while (i < BUCKETS && (double) ns / 1e9 > bounds[i])
                i++;
        m->buckets[i]++;
        m->sum_ns += ns;
}

void metrics_refused(struct metrics *m) {
        m->refused++;
}

void metrics_count(struct metrics *m, enum metric what) {
        m->counts[what]++;
}

static void head(struct buf *to, const char *name, const char *type, const char *help) {
        buf_addf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct buf *to, const char *name, const char *type, const char *help, uint64_t v) {
        head(to, name, type, help);
        buf_addf(to, "%s %llu\n", name, (unsigned long long) v);
}

static void put_requests(const struct metrics *m, struct buf *to) {
        static const char name[] = "gabion_request_duration_seconds";
        uint64_t total = 0;

        head(to, "gabion_requests_total", "counter", "Requests by route and class of status; 0xx: the client left.");
        for (size_t i = 0; i < ROUTES_MAX; i++) {
                const struct route *r = i < ROUTES_MAX - 1 ? route_at(i) : NULL;

                for (unsigned c = 0; c < CLASSES; c++)
                        if (m->by_route[i][c])
                                buf_addf(to, "gabion_requests_total{method=\"%s\",route=\"%s\",code=\"%uxx\"} %llu\n",
                                         r ? r->method : "", r ? r->pattern : "", c,
                                         (unsigned long long) m->by_route[i][c]);
        }
        head(to, name, "histogram", "From the head of a request to the end of its reply.");
        for (size_t i = 0; i < BUCKETS; i++) {
                total += m->buckets[i];
                buf_addf(to, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long) total);
        }
        total += m->buckets[BUCKETS];
        buf_addf(to, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name, (unsigned long long) total,
                 name, (double) m->sum_ns / 1e9, name, (unsigned long long) total);
}

static void put_machine(struct daemon *d, struct buf *to) {
        struct admit_state s;

        admit_look(d->admit, &s);
        number(to, "gabion_sandboxes", "gauge", "Sandboxes that run.", box_count(d));
        number(to, "gabion_sandboxes_max", "gauge", "Sandboxes that may run at once.", d->config.capacity.sandboxes);
        number(to, "gabion_creates_waiting", "gauge", "Creates that wait for the machine.", s.waiting);
        number(to, "gabion_creates_starting", "gauge", "Creates that the warden works on.", s.starting);
        number(to, "gabion_memory_available_bytes", "gauge", "Memory of the machine that is free.",
               s.memory_free_bytes);
        number(to, "gabion_connections", "gauge", "Connections of clients.", http_server_count(d->http));
        number(to, "gabion_http_refused_total", "counter", "Requests that were no HTTP.", d->metrics->refused);
        number(to, "gabion_log_dropped_total", "counter", "Log lines that nobody took.", d->log.dropped);
        number(to, "gabion_warden_up", "gauge", "Is the warden there?", warden_is_up(d->warden));
        number(to, "gabion_start_time_seconds", "gauge", "When this process began.", d->started_ms / 1000);
        for (size_t i = 0; i < METRICS; i++)
                number(to, names[i].name, "counter", names[i].help, d->metrics->counts[i]);
}

struct tenants {
        struct daemon *d;
        struct buf *to;
};

static void put_one(struct buf *to, const char *name, const struct store_sums *s) {
        buf_addf(to, "gabion_tenant_sandboxes{tenant=\"%s\"} %llu\n", name, (unsigned long long) s->sandboxes);
        buf_addf(to, "gabion_tenant_cpus{tenant=\"%s\"} %.3f\n", name, (double) s->cpu_milli / 1000);
        buf_addf(to, "gabion_tenant_memory_limit_bytes{tenant=\"%s\"} %llu\n", name,
                 (unsigned long long) s->memory_bytes);
        buf_addf(to, "gabion_tenant_disk_limit_bytes{tenant=\"%s\"} %llu\n", name, (unsigned long long) s->disk_bytes);
}

static void put_tenant(void *arg, const char *tenant, const struct store_sums *sums) {
        struct tenants *t = arg;
        struct store_tenant row;
        struct err err;

        if (store_tenant_get(t->d->store, tenant, &row, &err) == 0)
                put_one(t->to, row.name, sums);
}

void metrics_serve(struct request *q) {
        struct buf to = BUF_INIT(TEXT_MAX);
        struct tenants all = { .d = q->d, .to = &to };
        struct store_sums own;

        if (q->auth.sees_all) {
                put_machine(q->d, &to);
                put_requests(q->d->metrics, &to);
                quota_each(q->d->quota, put_tenant, &all);
        } else {
                quota_sums(q->d->quota, q->auth.tenant.id, &own);
                put_one(&to, q->auth.tenant.name, &own);
        }
        if (to.bad)
                reply_error(q, 500, "internal", "out of memory");
        else
                reply_text(q, 200, "text/plain; version=0.0.4", buf_str(&to));
        buf_done(&to);
}
