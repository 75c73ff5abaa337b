/* admin_server.c - the server itself: is it well, and how much fits. */
#include <stdio.h>

#include "base/err.h"
#include "base/own.h"
#include "daemon/admit.h"
#include "daemon/box.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/quota.h"
#include "daemon/request.h"
#include "daemon/warden.h"
#include "json/json.h"

void admin_alive(struct request *q) {
        reply_text(q, 200, "text/plain; charset=utf-8", "Health check successful\n");
}

void admin_health(struct request *q) {
        struct json *o = json_new_object();
        bool up = warden_is_up(q->d->warden);

        json_set_str(o, "status", up && !q->d->stopping ? "ok" : "degraded");
        json_set_bool(o, "warden", up);
        json_set_bool(o, "stopping", q->d->stopping);
        json_set_str(o, "version", GABION_VERSION);
        reply_json(q, up && !q->d->stopping ? 200 : 503, o);
}

static struct json *numbers(const struct store_sums *s) {
        struct json *o = json_new_object();

        json_set_int(o, "sandboxes", (int64_t) s->sandboxes);
        json_set_real(o, "cpu", (double) s->cpu_milli / 1000);
        json_set_int(o, "memory_bytes", (int64_t) s->memory_bytes);
        json_set_int(o, "disk_bytes", (int64_t) s->disk_bytes);
        return o;
}

/* A limit of 0 is none: null. */
static void set_limit(struct json *o, const char *key, uint64_t v) {
        if (v)
                json_set_int(o, key, (int64_t) v);
        else
                json_set_str(o, key, NULL);
}

static struct json *limits(const struct store_quota *l) {
        struct json *o = json_new_object();

        set_limit(o, "sandboxes", l->sandboxes);
        set_limit(o, "creates_per_s", l->creates_per_s);
        if (l->cpu_milli)
                json_set_real(o, "cpu", (double) l->cpu_milli / 1000);
        else
                json_set_str(o, "cpu", NULL);
        set_limit(o, "memory_bytes", l->memory_bytes);
        set_limit(o, "disk_bytes", l->disk_bytes);
        return o;
}

static struct json *machine(struct daemon *d) {
        const struct store_quota max = { .sandboxes = d->config.capacity.sandboxes,
                                         .cpu_milli = d->config.capacity.cpu_milli,
                                         .memory_bytes = d->config.capacity.memory_bytes,
                                         .disk_bytes = d->config.capacity.disk_bytes };
        struct json *o = json_new_object(), *queue = json_new_object();
        struct admit_state s;

        admit_look(d->admit, &s);
        json_set(o, "used", numbers(&s.used));
        json_set(o, "limits", limits(&max));
        json_set_int(o, "memory_available_bytes", (int64_t) s.memory_free_bytes);
        json_set_int(o, "memory_reserve_bytes", (int64_t) d->config.capacity.reserve_bytes);
        json_set_int(queue, "waiting", (int64_t) s.waiting);
        json_set_int(queue, "waiting_max", d->config.queue.waiting);
        json_set_int(queue, "starting", (int64_t) s.starting);
        json_set_int(queue, "starting_max", d->config.queue.starting);
        json_set_int(queue, "wait_ms", d->config.queue.wait_ms);
        json_set(o, "queue", queue);
        return o;
}

/* What the caller can still have. The machine's numbers would tell about other tenants: they are for operators. */
void admin_capacity(struct request *q) {
        struct json *o = json_new_object(), *t = json_new_object();
        struct admit_state s;
        struct store_sums own;

        admit_look(q->d->admit, &s);
        quota_sums(q->d->quota, q->auth.tenant.id, &own);
        json_set(t, "used", numbers(&own));
        json_set(t, "limits", limits(&q->auth.tenant.quota));
        json_set(o, "tenant", t);
        json_set_bool(o, "accepting",
                      warden_is_up(q->d->warden) && !q->d->stopping && s.waiting < q->d->config.queue.waiting);
        if (q->auth.sees_all)
                json_set(o, "machine", machine(q->d));
        reply_json(q, 200, o);
}
