/*
 * control_usage.c - what a sandbox uses, and what happened to it.
 *
 * Usage is read when somebody asks: a sandbox that nobody looks at costs nothing. The share of CPU is that between two
 * looks, or since the sandbox began.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/request.h"
#include "daemon/warden.h"
#include "http/server.h"
#include "json/json.h"

static struct json *metric(struct box *b, const struct wp_usage *u) {
        uint64_t now = clock_real_ms();
        struct json *o = json_new_object();
        char time[CLOCK_TEXT];

        box_look(b, u);
        clock_rfc3339_at(time, now);
        json_set_str(o, "timestamp", time);
        json_set_int(o, "timestampUnix", (int64_t) (now / 1000));
        json_set_int(o, "cpuCount", (b->need.cpu_milli + 999) / 1000);
        json_set_real(o, "cpuUsedPct", b->looked.cpu_pct);
        json_set_int(o, "memUsed", (int64_t) u->memory_bytes);
        json_set_int(o, "memTotal", (int64_t) u->memory_limit_bytes);
        json_set_int(o, "memCache", (int64_t) u->memory_cache_bytes);
        json_set_int(o, "diskUsed", (int64_t) u->disk_bytes);
        json_set_int(o, "diskTotal", (int64_t) u->disk_limit_bytes);
        return o;
}

/* One or several sandboxes that are being asked for; the reply is written when the last has answered. */
struct looking {
        struct daemon *d;
        struct request *q;
        struct json *into; /* an array, or for many an object by id */
        bool many;
        size_t n_open;
};

struct look {
        struct looking *all;
        char id[ID_TEXT];
};

static void look_done(struct looking *all) {
        struct json *o;

        if (--all->n_open > 0)
                return;
        if (all->q) {
                all->q->holder = NULL;
                o = all->many ? json_new_object() : NULL;
                if (all->many)
                        json_set(o, "sandboxes", TAKE_PTR(all->into));
                reply_json(all->q, 200, all->many ? o : TAKE_PTR(all->into));
        }
        (void) json_free(all->into);
        free(all);
}

static void on_usage(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct look *l = arg;
        struct box *b = failed ? NULL : box_find(l->all->d, NULL, l->id);

        if (b && l->all->many)
                json_set(l->all->into, l->id, metric(b, &reply->usage));
        else if (b)
                json_add(l->all->into, metric(b, &reply->usage));
        look_done(l->all);
}

static void look_at(struct looking *all, const struct box *b) {
        struct look *l = calloc(1, sizeof(*l));

        if (!l)
                return; /* one fewer in the answer */
        l->all = all;
        all->n_open++;
        (void) str_copy(l->id, sizeof(l->id), b->id);
        warden_ask(all->d->warden, WP_USAGE, b->id, on_usage, l);
}

static struct looking *looking_new(struct request *q, bool many) {
        struct looking *all = calloc(1, sizeof(*all));

        if (!all) {
                reply_error(q, 500, "internal", "out of memory");
                return NULL;
        }
        all->d = q->d;
        all->many = many;
        all->into = many ? json_new_object() : json_new_array();
        all->n_open = 1; /* ours, until all are asked */
        request_hold(q, &all->q);
        return all;
}

void control_metrics(struct request *q) {
        struct box *b = request_box(q);
        uint64_t now = clock_real_ms() / 1000;
        struct query_span span;
        struct looking *all;
        struct err err = { 0 };

        if (!b)
                return;
        if (query_span(http_conn_head(q->conn)->query, &span, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        all = looking_new(q, false);
        if (!all)
                return;
        if (span.start_s <= now && (!span.end_s || span.end_s >= now)) /* there is no past to show */
                look_at(all, b);
        look_done(all);
}

void control_metrics_many(struct request *q) {
        AUTO_FREE struct query_ids *w = malloc(sizeof(*w));
        struct looking *all;
        struct err err = { 0 };

        if (!w || query_ids(http_conn_head(q->conn)->query, w, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        all = looking_new(q, true);
        for (size_t i = 0; all && i < w->n; i++) {
                struct box *b = box_find(q->d, q->auth.tenant.id, w->ids[i]);

                if (b && auth_may_template(&q->auth, b->template))
                        look_at(all, b);
        }
        if (all)
                look_done(all);
}

/* --- logs: the events of one sandbox in the form that E2B's tools expect --- */

struct lines {
        const struct query_logs *w;
        struct json *logs, *entries;
};

static const char *level_of(const char *kind, int *ret) {
        *ret = str_eq(kind, "denied") || str_eq(kind, "sandbox.failed") ? 2 : 1;
        return *ret == 2 ? "warn" : "info";
}

static int on_event(void *arg, const struct store_event *e) {
        struct lines *l = arg;
        struct json *entry, *line, *fields = NULL;
        char time[CLOCK_TEXT], text[512];
        struct err err;
        int level;
        const char *name = level_of(e->kind, &level);

        (void) snprintf(text, sizeof(text), "%s %s", e->kind, e->data);
        if (level < l->w->level || e->time_ms < l->w->from_ms || (l->w->search[0] && !strstr(text, l->w->search)))
                return 0;
        clock_rfc3339_at(time, e->time_ms);
        entry = json_new_object();
        json_set_str(entry, "timestamp", time);
        json_set_str(entry, "level", name);
        json_set_str(entry, "message", e->kind);
        if (json_parse("event", e->data, strlen(e->data), &fields, &err) == 0)
                json_set(entry, "fields", fields);
        json_add(l->entries, entry);
        line = json_new_object();
        json_set_str(line, "timestamp", time);
        json_set_str(line, "line", text);
        json_add(l->logs, line);
        return 0;
}

/* The last n of a list, or the first; backward: the newest first. */
static struct json *cut(struct json *list, const struct query_logs *w) {
        struct json *o = json_new_array();
        size_t n = json_len(list), k = n < w->limit ? n : w->limit;

        for (size_t i = 0; i < k; i++)
                json_add(o, json_share(json_at(list, w->backward ? n - 1 - i : i)));
        (void) json_free(list);
        return o;
}

static void logs(struct request *q, bool v2) {
        struct query_logs w;
        struct lines l = { .w = &w };
        struct store_sandbox row;
        struct err err = { 0 };
        struct json *o;

        if (query_logs(http_conn_head(q->conn)->query, &w, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        if (request_row(q, &row) < 0)
                return;
        l.logs = json_new_array();
        l.entries = json_new_array();
        if (store_event_each(q->d->store, &(const struct store_event_filter){ row.tenant, row.id, 0, LOGS_MAX * 10 },
                             on_event, &l, &err) < 0) {
                (void) json_free(l.logs);
                (void) json_free(l.entries);
                reply_err(q, &err);
        } else {
                o = json_new_object();
                json_set(o, v2 ? "logs" : "logEntries", cut(l.entries, &w));
                if (v2)
                        (void) json_free(l.logs);
                else
                        json_set(o, "logs", cut(l.logs, &w));
                reply_json(q, 200, o);
        }
        store_sandbox_done(&row);
}

void control_logs_v1(struct request *q) {
        logs(q, false);
}

void control_logs_v2(struct request *q) {
        logs(q, true);
}
