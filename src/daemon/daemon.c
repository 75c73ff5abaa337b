/* daemon.c - the parts of gabiond, made in order and freed in the opposite one, and its loop. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "daemon/admit.h"
#include "daemon/attempts.h"
#include "daemon/bound.h"
#include "daemon/box.h"
#include "daemon/compose.h"
#include "daemon/events.h"
#include "daemon/metrics.h"
#include "daemon/quota.h"
#include "daemon/reconcile.h"
#include "daemon/request.h"
#include "daemon/scribe.h"
#include "daemon/template.h"
#include "daemon/warden.h"
#include "http/server.h"
#include "json/json.h"
#include "tls/tls.h"

enum { HOUR_S = 3600, DAY_MS = 24 * HOUR_S * 1000, STOP_TICK_MS = 100 };

static void on_pooled(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct daemon *d = arg;

        (void) reply;
        if (failed)
                log_error(&d->log, "the pool of ready sandboxes", failed);
}

/* Ready sandboxes of the kind that most requests get. */
static void on_up(struct daemon *d) {
        struct composed c;
        struct err err = { 0 };

        attempts_follow(d);
        if (compose(d, "", template_at(0), NULL, true, &c, &err) < 0) {
                log_error(&d->log, "the pool of ready sandboxes", &err);
                return;
        }
        warden_pool(d->warden, d->config.pool, c.policy, c.ceiling, on_pooled, d);
        composed_done(&c);
}

int daemon_open(struct daemon *d, struct err *err) {
        const struct http_server_config config = {
                .on_head = request_head, .on_refused = request_refused, .arg = d, .max_conns = DAEMON_CONNS
        };
        int r = map_new(CAPACITY_SANDBOXES_MAX, &d->boxes);

        if (r == 0)
                r = quota_new(&d->quota);
        d->metrics = metrics_new();
        d->base = event_base_new();
        if (r < 0 || !d->metrics || !d->base)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        d->started_ms = clock_real_ms();
        r = events_new(d, &d->events, err);
        if (r == 0)
                r = scribe_new(d, &d->scribe, err);
        if (r == 0)
                r = bound_new(d, err);
        if (r == 0)
                r = admit_new(d, &d->admit, err);
        if (r == 0)
                r = reconcile_new(d, &d->reconcile, err);
        if (r == 0)
                r = warden_new(d, on_up, &d->warden, err);
        if (r == 0)
                r = http_server_new(&d->http, d->base, &config, err);
        return r;
}

/* Clients first: they hold on to what the other parts are asked for. Then the warden, whose answers end what is under
 * way; then the queue and the table. */
void daemon_done(struct daemon *d) {
        d->stopping = true;
        d->http = http_server_free(d->http);
        d->tls = tls_server_free(d->tls);
        d->warden = warden_free(d->warden);
        d->reconcile = reconcile_free(d->reconcile);
        d->admit = admit_free(d->admit);
        box_free_all(d);
        compose_forget(d);
        d->scribe = scribe_free(d->scribe);
        bound_free(d);
        d->events = events_free(d->events);
        d->metrics = metrics_free(d->metrics);
        d->quota = quota_free(d->quota);
        d->store = store_close(d->store);
        if (d->base)
                event_base_free(TAKE_PTR(d->base));
        own_closep(&d->meminfo_fd);
        explicit_bzero(d->key, sizeof(d->key));
        config_done(&d->config);
}

/* --- stopping --- */

struct stop {
        struct daemon *d;
        struct event *term, *interrupt, *tick, *prune;
        uint64_t until_ns;
};

/* Sandboxes end with the service unless they are to be kept, and replies that were begun are finished, but nobody waits
 * for ever. */
static void on_tick(int fd, short what, void *arg) {
        struct stop *s = arg;
        bool over = box_count(s->d) == 0 || s->d->config.keep;

        (void) fd, (void) what;
        if ((over && http_server_count(s->d->http) == 0 && scribe_is_idle(s->d->scribe)) ||
            clock_mono_ns() >= s->until_ns)
                (void) event_base_loopbreak(s->d->base);
}

static void on_stop(int fd, short what, void *arg) {
        static const struct timeval every = { .tv_usec = STOP_TICK_MS * 1000L };
        struct stop *s = arg;

        (void) fd, (void) what;
        if (s->d->stopping) {
                (void) event_base_loopbreak(s->d->base); /* asked twice: now */
                return;
        }
        s->d->stopping = true;
        s->until_ns = clock_mono_ns() + UINT64_C(1000000000) * STOP_S;
        log_write(&s->d->log, LOG_INFO, "stopping", NULL);
        if (s->d->config.keep)
                box_cut_all(s->d); /* clients that follow a command come back later */
        else
                box_end_all(s->d, "shutdown");
        events_end(s->d->events);
        http_server_drain(s->d->http);
        (void) event_add(s->tick, &every);
}

static void on_prune(int fd, short what, void *arg) {
        struct daemon *d = ((struct stop *) arg)->d;
        struct err err = { 0 };

        (void) fd, (void) what;
        if (store_prune(d->store, clock_real_ms() - (uint64_t) GONE_KEPT_DAYS * DAY_MS, EVENTS_KEPT, &err) < 0)
                log_error(&d->log, "pruning the store", &err);
}

static void log_ready(struct daemon *d) {
        struct json *more = json_new_object(), *at = json_new_array();

        for (size_t i = 0; i < d->config.n_listen; i++)
                json_add_str(at, d->config.listen[i]);
        json_set(more, "listen", at);
        json_set_str(more, "version", GABION_VERSION);
        log_write(&d->log, LOG_INFO, "ready", more);
}

int daemon_run(struct daemon *d, struct err *err) {
        static const struct timeval hourly = { .tv_sec = HOUR_S };
        struct stop s = { .d = d };
        struct event **all[] = { &s.term, &s.interrupt, &s.tick, &s.prune };
        int r = 0;

        s.term = evsignal_new(d->base, SIGTERM, on_stop, &s);
        s.interrupt = evsignal_new(d->base, SIGINT, on_stop, &s);
        s.tick = event_new(d->base, -1, EV_PERSIST, on_tick, &s);
        s.prune = event_new(d->base, -1, EV_PERSIST, on_prune, &s);
        if (!s.term || !s.interrupt || !s.tick || !s.prune || event_add(s.term, NULL) < 0 ||
            event_add(s.interrupt, NULL) < 0 || event_add(s.prune, &hourly) < 0)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        on_prune(-1, 0, &s);
        if (r == 0)
                log_ready(d);
        if (r == 0 && event_base_dispatch(d->base) < 0)
                r = err_set(err, -EIO, ERR_INTERNAL, "the loop has failed");
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (*all[i])
                        event_free(*all[i]);
        return r;
}
