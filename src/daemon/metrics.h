/* metrics.h - counters of this process, and how they look to Prometheus. */
#pragma once

#include <stdint.h>

struct metrics;
struct request;
struct route;

enum metric {
        METRIC_CREATED,
        METRIC_CREATE_FAILED,
        METRIC_ENDED,
        METRIC_EXPIRED,
        METRIC_LOST,
        METRIC_REFUSED_QUOTA,
        METRIC_WARDEN_LOST,
        METRIC_BOUND,
        METRIC_BOUND_REFUSED,
        METRIC_COMMANDS,
        METRIC_AUDIT,
        METRIC_AUDIT_FAILED,
        METRICS
};

struct metrics *metrics_new(void); /* NULL: no memory */
struct metrics *metrics_free(struct metrics *m);
void metrics_request(struct metrics *m, const struct route *route, unsigned status, uint64_t ns);
void metrics_refused(struct metrics *m); /* by the HTTP layer */
void metrics_count(struct metrics *m, enum metric what);
/* GET /metrics: everything for operators, else what concerns the caller's tenant. */
void metrics_serve(struct request *q);
