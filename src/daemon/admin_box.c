/* admin_box.c - what is behind a sandbox: its policy, the evidence of its walls, what was refused, what it used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/compose.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/view.h"
#include "daemon/warden.h"
#include "ipc/ipc.h"
#include "json/json.h"

enum { EVENTS_MAX = 10000, EVIDENCE_MAX = 1 << 20 };

static void set_parsed(struct json *o, const char *key, const char *text) {
        struct json *v = NULL;
        struct err err;

        if (text && json_parse(key, text, strlen(text), &v, &err) == 0)
                json_set(o, key, v);
        else
                json_set_str(o, key, NULL);
}

void admin_policy(struct request *q) {
        AUTO_FREE char *ceiling = NULL;
        struct store_sandbox row;
        struct err err = { 0 };
        struct json *o;

        if (request_row(q, &row) < 0)
                return;
        if (compose_ceiling(q->d, row.tenant, &ceiling, &err) < 0) {
                reply_err(q, &err);
        } else {
                o = json_new_object();
                json_set_str(o, "sandbox", row.id);
                json_set_str(o, "hash", row.policy_hash);
                set_parsed(o, "policy", row.policy);
                set_parsed(o, "requested", row.network);
                set_parsed(o, "ceiling", ceiling);
                reply_json(q, 200, o);
        }
        store_sandbox_done(&row);
}

/* --- evidence: from the warden, while the sandbox lives --- */

struct asking {
        struct request *q;
};

static void on_evidence(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct asking *a = arg;
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        size_t n;

        if (!a->q)
                return;
        a->q->holder = NULL;
        if (failed)
                reply_error(
                        a->q, failed->code == -ENOENT ? 404 : 503,
                        failed->code == -ENOENT ? "not_found" : "unavailable", "evidence: %s",
                        failed->code == -ENOENT
                                ? "there is none: the sandbox is gone, or the warden was killed right after its start"
                                : "the warden is not there");
        else if (ipc_blob_read(reply->fd, EVIDENCE_MAX, &text, &n, &err) < 0)
                reply_err(a->q, &err);
        else
                reply_text(a->q, 200, "application/json", text);
}

void admin_evidence(struct request *q) {
        struct box *b = request_box(q);
        struct asking *a = b ? calloc(1, sizeof(*a)) : NULL;

        if (a) {
                request_hold(q, &a->q);
                warden_ask(q->d->warden, WP_EVIDENCE, b->id, on_evidence, a);
        } else if (b) {
                reply_error(q, 500, "internal", "out of memory");
        }
}

/* --- usage --- */

struct using {
        struct request *q;
        struct json *o;
};

static void set_usage(struct json *o, const struct wp_usage *u) {
        json_set_int(o, "cpu_us", (int64_t) u->cpu_us);
        json_set_int(o, "memory_bytes", (int64_t) u->memory_bytes);
        json_set_int(o, "memory_cache_bytes", (int64_t) u->memory_cache_bytes);
        json_set_int(o, "memory_peak_bytes", (int64_t) u->memory_peak_bytes);
        json_set_int(o, "memory_limit_bytes", (int64_t) u->memory_limit_bytes);
        json_set_int(o, "tasks", (int64_t) u->tasks);
        json_set_int(o, "pids_refused", (int64_t) u->pids_refused);
        json_set_int(o, "oom_kills", (int64_t) u->oom_kills);
        json_set_int(o, "disk_bytes", (int64_t) u->disk_bytes);
        json_set_int(o, "disk_limit_bytes", (int64_t) u->disk_limit_bytes);
}

static void on_usage(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct using *u = arg;

        if (!u->q) {
                (void) json_free(u->o);
                return;
        }
        u->q->holder = NULL;
        if (failed) {
                (void) json_free(u->o);
                reply_header(u->q, "Retry-After", "1");
                reply_error(u->q, 503, "unavailable", "usage: the warden is not there");
                return;
        }
        set_usage(u->o, &reply->usage);
        reply_json(u->q, 200, u->o);
}

static int on_ended(void *arg, const struct store_event *e) {
        struct json **last = arg, *data = NULL;
        struct err err;

        if (str_eq(e->kind, "sandbox.ended") && json_parse("event", e->data, strlen(e->data), &data, &err) == 0) {
                (void) json_free(*last);
                *last = data;
        }
        return 0;
}

/* Of one that has ended: what was counted then. */
static void set_final(struct request *q, struct json *o, const char *tenant, const char *id) {
        static const char *const keys[] = { "cpu_us", "memory_peak_bytes", "oom_kills" };
        CLEANUP(json_freep) struct json *last = NULL;
        struct err err;

        (void) store_event_each(q->d->store, &(const struct store_event_filter){ tenant, id, 0, EVENTS_MAX }, on_ended,
                                &last, &err);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (json_get(last, keys[i]))
                        json_set(o, keys[i], json_share(json_get(last, keys[i])));
}

void admin_usage(struct request *q) {
        struct store_sandbox row;
        struct using *u;
        uint64_t end;
        struct json *o;

        if (request_row(q, &row) < 0)
                return;
        end = row.state == STORE_GONE ? row.ended_ms : clock_real_ms();
        o = json_new_object();
        json_set_str(o, "sandbox", row.id);
        json_set_str(o, "state", view_state(row.state));
        json_set_int(o, "lived_ms", (int64_t) (end > row.created_ms ? end - row.created_ms : 0));
        json_set_real(o, "cpu_limit", (double) row.cpu_milli / 1000);
        if (!box_find(q->d, row.tenant, row.id)) {
                set_final(q, o, row.tenant, row.id);
                reply_json(q, 200, o);
        } else if ((u = calloc(1, sizeof(*u)))) {
                u->o = o;
                request_hold(q, &u->q);
                warden_ask(q->d->warden, WP_USAGE, row.id, on_usage, u);
        } else {
                (void) json_free(o);
                reply_error(q, 500, "internal", "out of memory");
        }
        store_sandbox_done(&row);
}
