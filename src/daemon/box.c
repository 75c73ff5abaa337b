/*
 * box.c - see box.h.
 *
 * Life: box_add() -> [timer or box_end() -> ending] -> finish(). finish() is the only way out: it moves the row, gives
 * the share back, tells the waiters and frees. Ending a sandbox never waits for a record of it: what is killed can do
 * no more harm.
 */
#include "daemon/box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/admit.h"
#include "daemon/bound.h"
#include "daemon/events.h"
#include "daemon/found.h"
#include "daemon/metrics.h"
#include "daemon/query.h"
#include "daemon/record.h"
#include "daemon/warden.h"
#include "json/json.h"

enum { RETRY_MS = 1000 };

static void arm(struct box *b, uint64_t ms) {
        const struct timeval tv = { .tv_sec = (time_t) (ms / 1000), .tv_usec = (suseconds_t) (ms % 1000) * 1000 };

        (void) event_add(b->timer, &tv);
}

static void arm_end(struct box *b) {
        uint64_t now = clock_real_ms();

        arm(b, b->ends_ms > now ? b->ends_ms - now : 0);
}

static void on_timer(int fd, short what, void *arg);

static void box_free(struct box *b) {
        bound_close(b);
        if (b->timer)
                event_free(b->timer);
        free(b->env);
        free(b->env_text);
        free(b);
}

static int box_new(struct daemon *d, const struct store_sandbox *row, const char *socket, struct box **ret) {
        struct box *b = calloc(1, sizeof(*b));

        if (!b)
                return -ENOMEM;
        b->d = d;
        b->timer = evtimer_new(d->base, on_timer, b);
        b->created_ms = row->created_ms;
        b->ends_ms = row->ends_ms;
        b->need = (struct quota_need){ row->cpu_milli, row->memory_bytes, row->disk_bytes };
        if (!b->timer || str_copy(b->socket, sizeof(b->socket), socket) < 0) {
                box_free(b);
                return -ENOMEM;
        }
        (void) str_copy(b->id, sizeof(b->id), row->id);
        (void) str_copy(b->tenant, sizeof(b->tenant), row->tenant);
        (void) str_copy(b->name, sizeof(b->name), row->name);
        (void) str_copy(b->template, sizeof(b->template), row->template);
        bound_open(b, row->network);
        *ret = b;
        return 0;
}

int box_add(struct daemon *d, const struct store_sandbox *row, const char *socket, struct box **ret, struct err *err) {
        struct box *b = NULL;
        int r = box_new(d, row, socket, &b);

        if (r == 0)
                r = map_put(d->boxes, b->id, strlen(b->id), b);
        if (r < 0) {
                if (b)
                        box_free(b);
                return err_set(err, r, ERR_INTERNAL, "sandbox %s: %s", row->id, strerror(-r));
        }
        arm_end(b);
        *ret = b;
        return 0;
}

int box_restore(struct daemon *d, const struct store_sandbox *row, struct err *err) {
        struct box *b;
        int r = box_add(d, row, row->socket, &b, err);

        if (r < 0)
                return r;
        r = quota_count(d->quota, b->tenant, &b->need);
        if (r < 0) {
                (void) map_del(d->boxes, b->id, strlen(b->id));
                box_free(b);
                return err_set(err, r, ERR_INTERNAL, "out of memory");
        }
        admit_count(d->admit, &b->need);
        return 0;
}

struct box *box_find(const struct daemon *d, const char *tenant, const char *id_or_name) {
        struct box *b = map_get(d->boxes, id_or_name, strlen(id_or_name));
        struct store_sandbox row;
        struct err err;

        if (!b && tenant && !query_is_id(id_or_name) &&
            store_sandbox_get(d->store, tenant, id_or_name, &row, &err) == 0) {
                b = map_get(d->boxes, row.id, strlen(row.id));
                store_sandbox_done(&row);
        }
        return b && !b->ending && (!tenant || str_eq(b->tenant, tenant)) ? b : NULL;
}

void box_set_env(struct box *b, char *text, size_t n) {
        const char **list = calloc(n + 1, sizeof(*list)), *at = text;

        for (size_t i = 0; list && i < n; i++, at += strlen(at) + 1)
                list[i] = at;
        if (!list) { /* commands have them; only the list of them stays empty */
                free(text);
                return;
        }
        b->env_text = text;
        b->env = list;
        b->target.env = list;
}

void box_look(struct box *b, const struct wp_usage *u) {
        uint64_t now = clock_real_ms(), since = b->looked.ms ? b->looked.ms : b->created_ms;
        uint64_t used = u->cpu_us > b->looked.cpu_us ? u->cpu_us - b->looked.cpu_us : 0;

        b->looked.cpu_pct = now > since ? (double) used / 10 / (double) (now - since) : 0;
        b->looked.ms = now;
        b->looked.cpu_us = u->cpu_us;
        b->looked.memory_bytes = u->memory_bytes;
        b->looked.cache_bytes = u->memory_cache_bytes;
}

struct box *box_any(const struct daemon *d, const char *id) {
        return map_get(d->boxes, id, strlen(id));
}

const char *box_ending(const struct daemon *d, const char *id) {
        const struct box *b = map_get(d->boxes, id, strlen(id));

        return b && b->ending ? b->reason : NULL;
}

int box_set_end(struct box *b, uint64_t ends_ms, struct err *err) {
        int r = store_sandbox_set_end(b->d->store, b->id, ends_ms, err);

        if (r < 0)
                return r;
        b->ends_ms = ends_ms;
        arm_end(b);
        return 0;
}

static void tell_waiters(struct box *b, const struct err *failed) {
        struct box_waiter *w;

        while ((w = b->waiters)) {
                b->waiters = w->next;
                if (w->fn)
                        w->fn(w->arg, failed);
                free(w);
        }
}

/* end: what the warden counted; NULL: not known. */
static void finish(struct box *b, const char *reason, const struct wp_end *end) {
        struct daemon *d = b->d;
        struct json *data = json_new_object();
        struct err err = { 0 };

        (void) map_del(d->boxes, b->id, strlen(b->id));
        if (store_sandbox_move(d->store, b->id, STORE_GONE, reason, clock_real_ms(), &err) < 0)
                log_error(&d->log, "the end of a sandbox", &err);
        json_set_str(data, "reason", reason);
        json_set_int(data, "lived_ms", (int64_t) (clock_real_ms() - b->created_ms));
        if (end) {
                json_set_int(data, "cpu_us", (int64_t) end->cpu_us);
                json_set_int(data, "memory_peak_bytes", (int64_t) end->memory_peak_bytes);
                json_set_int(data, "oom_kills", (int64_t) end->oom_kills);
        }
        record_ended(d, b->tenant, b->id, data, end != NULL);
        event_note(d, b->tenant, b->id, "sandbox.ended", data);
        metrics_count(d->metrics, METRIC_ENDED);
        if (str_eq(reason, "expired"))
                metrics_count(d->metrics, METRIC_EXPIRED);
        else if (str_eq(reason, "lost"))
                metrics_count(d->metrics, METRIC_LOST);
        quota_give(d->quota, b->tenant, &b->need);
        admit_give(d->admit, &b->need);
        tell_waiters(b, NULL);
        box_free(b);
}

struct kill {
        struct daemon *d;
        char id[ID_TEXT];
};

static void on_killed(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct kill *k = arg;
        struct box *b = map_get(k->d->boxes, k->id, strlen(k->id));

        if (!b || !b->ending)
                return; /* it was gone by itself before */
        if (!failed || failed->code == -ENOENT) {
                finish(b, b->reason, reply ? &reply->end : NULL);
                return;
        }
        /* It stays out of reach, and is tried again: whoever asked is told that it is not over yet. */
        log_error(&k->d->log, "a sandbox could not be ended yet", failed);
        tell_waiters(b, failed);
        arm(b, RETRY_MS);
}

static void kill_now(struct box *b) {
        struct kill *k = calloc(1, sizeof(*k));

        if (!k) {
                arm(b, RETRY_MS);
                return;
        }
        k->d = b->d;
        (void) str_copy(k->id, sizeof(k->id), b->id);
        warden_ask(b->d->warden, WP_KILL, b->id, on_killed, k);
}

static void on_timer(int fd, short what, void *arg) {
        struct box *b = arg;

        (void) fd, (void) what;
        if (b->ending)
                kill_now(b);
        else if (b->ends_ms > clock_real_ms())
                arm_end(b); /* the clock was set back */
        else
                box_end(b, "expired", "", NULL, NULL);
}

void box_end(struct box *b, const char *reason, const char *by, box_ended_fn fn, void *arg) {
        static const struct err no_memory = { .code = -ENOMEM, .kind = ERR_INTERNAL, .msg = "out of memory" };
        struct box_waiter *w = fn ? calloc(1, sizeof(*w)) : NULL;
        struct json *data;

        if (w) {
                *w = (struct box_waiter){ .next = b->waiters, .fn = fn, .arg = arg };
                b->waiters = w;
        } else if (fn) {
                fn(arg, &no_memory);
        }
        if (b->ending)
                return;
        b->ending = true;
        bound_close(b); /* nobody finds it from here on, so clients learn that it has ended */
        (void) str_copy(b->reason, sizeof(b->reason), reason);
        (void) event_del(b->timer);
        data = json_new_object();
        json_set_str(data, "reason", reason);
        if (by[0])
                json_set_str(data, "by", by);
        event_note(b->d, b->tenant, b->id, "sandbox.ending", data);
        kill_now(b);
}

void box_lost(struct daemon *d, const char *id) {
        struct box *b = map_get(d->boxes, id, strlen(id));
        struct store_sandbox row;
        struct json *data;
        struct err err = { 0 };

        if (b) {
                finish(b, b->ending ? b->reason : "lost", NULL);
                return;
        }
        if (store_sandbox_get(d->store, NULL, id, &row, &err) < 0 ||
            store_sandbox_move(d->store, id, STORE_GONE, "lost", clock_real_ms(), &err) < 0) {
                log_error(&d->log, "a lost sandbox", &err);
                return;
        }
        data = json_new_object();
        json_set_str(data, "reason", "lost");
        record_ended(d, row.tenant, row.id, data, false);
        event_note(d, row.tenant, row.id, "sandbox.ended", data);
        metrics_count(d->metrics, METRIC_LOST);
        store_sandbox_done(&row);
}

static void on_denied(struct box *b, const struct wp_event *e) {
        struct json *data = json_new_object();

        json_set_str(data, "code", "sys.call_refused");
        json_set_str(data, "what", e->text);
        json_set_int(data, "suppressed", e->suppressed);
        event_note(b->d, b->tenant, b->id, "denied", data);
}

void box_on_event(struct daemon *d, const struct wp_event *e) {
        static const char *const reasons[WP_REASONS] = { "killed", "oom", "lost", "killed_by_policy" };
        struct box *b = map_get(d->boxes, e->id, strlen(e->id));

        if (!b)
                return; /* one of the pool, or one whose end we know */
        if (e->kind == WP_DENIED)
                on_denied(b, e);
        else if (e->kind == WP_DRIFTED)
                found_drift(b, e);
        else if (e->kind == WP_ENDED)
                finish(b, b->ending ? b->reason : reasons[e->end.reason], &e->end);
}

size_t box_count(const struct daemon *d) {
        return map_count(d->boxes);
}

void box_end_all(struct daemon *d, const char *reason) {
        struct box *b;
        size_t at = 0;

        while ((b = map_next(d->boxes, &at))) /* ending one changes nothing in the table yet */
                box_end(b, reason, "", NULL, NULL);
}

void box_cut_all(struct daemon *d) {
        struct box *b;
        size_t at = 0;

        while ((b = map_next(d->boxes, &at)))
                bound_close(b);
}

void box_free_all(struct daemon *d) {
        struct box *b;
        size_t at = 0;

        while (d->boxes && (b = map_next(d->boxes, &at))) {
                tell_waiters(b,
                             &(struct err){ .code = -ECANCELED, .kind = ERR_BUSY, .msg = "the service is stopping" });
                box_free(b);
        }
        d->boxes = map_free(d->boxes);
}
