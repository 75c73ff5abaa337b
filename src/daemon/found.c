/* found.c - see found.h. */
#include "daemon/found.h"

#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/scribe.h"
#include "json/json.h"
#include "store/store.h"
#include "wardenproto/wardenproto.h"

enum { EVENTS_MAX = 10000 };

static const char drift[] = "monitor.on_drift";

struct finding {
        const char *rule, *object, *found, *action;
        uint64_t ms;
};

static void note(struct daemon *d, struct audit_event *ev, uint64_t ms) {
        if (ms)
                ev->time_ms = ms;
        scribe_note(d->scribe, ev);
}

static void record(struct daemon *d, const char *tenant, const char *sandbox, const struct finding *f) {
        bool is_drift = f->rule == drift;
        struct audit_event ev, frozen;

        if (!d->scribe)
                return;
        audit_event_init(&ev, is_drift ? AUDIT_DRIFT : AUDIT_ALERT, tenant, sandbox);
        audit_object(&ev, f->object);
        (void) snprintf(ev.rule, sizeof(ev.rule), "%.63s", f->rule);
        audit_text(&ev, "expected", is_drift ? "as planned" : "not to happen");
        audit_text(&ev, "found", f->found);
        audit_text(&ev, "action", f->action);
        note(d, &ev, f->ms);
        if (!str_eq(f->action, "freeze"))
                return;
        audit_event_init(&frozen, AUDIT_SANDBOX_FROZEN, tenant, sandbox);
        audit_text(&frozen, "reason", ev.id);
        note(d, &frozen, f->ms);
}

static void frozen_set(struct box *b, const struct finding *f) {
        b->frozen.since_ms = f->ms ? f->ms : clock_real_ms();
        (void) snprintf(b->frozen.rule, sizeof(b->frozen.rule), "%s", f->rule);
        (void) snprintf(b->frozen.object, sizeof(b->frozen.object), "%s", f->object);
        (void) snprintf(b->frozen.found, sizeof(b->frozen.found), "%s", f->found);
}

/* b NULL: it has ended meanwhile. */
static void alert(struct daemon *d, const char *tenant, const char *sandbox, struct box *b, const struct finding *f) {
        struct json *data = json_new_object();

        record(d, tenant, sandbox, f);
        if (b && str_eq(f->action, "freeze"))
                frozen_set(b, f);
        json_set_str(data, "rule", f->rule);
        json_set_str(data, "object", f->object);
        json_set_str(data, "found", f->found);
        json_set_str(data, "action", f->action);
        event_note(d, tenant, sandbox, "alert", data);
}

static void file(struct daemon *d, const char *tenant, const char *sandbox, const struct json *o) {
        const char *how = json_get_str(o, "file"), *path = json_get_str(o, "path");
        int64_t others = json_get_int(o, "others", 0);
        struct audit_event ev;

        if (!d->scribe || !path)
                return;
        audit_event_init(&ev, str_eq(how, "written") ? AUDIT_FILE_WRITTEN : AUDIT_FILE_READ, tenant, sandbox);
        audit_object(&ev, path);
        (void) str_copy(ev.rule, sizeof(ev.rule), "filesystem.watch");
        if (others > 0)
                audit_number(&ev, "count", others + 1);
        note(d, &ev, (uint64_t) json_get_int(o, "ms", 0));
}

bool found_take(struct daemon *d, const char *sandbox, const struct json *o) {
        const struct finding f = { .rule = json_get_str(o, "alert"),
                                   .object = json_get_str(o, "object"),
                                   .found = json_get_str(o, "found"),
                                   .action = json_get_str(o, "action"),
                                   .ms = (uint64_t) json_get_int(o, "ms", 0) };
        struct box *b = box_any(d, sandbox);
        struct store_sandbox row;
        struct err err;

        if (!f.rule && !json_get_str(o, "file"))
                return false;
        if (store_sandbox_get(d->store, NULL, sandbox, &row, &err) < 0)
                return true; /* nobody's */
        if (!f.rule)
                file(d, row.tenant, sandbox, o);
        else if (f.object && f.found && f.action)
                alert(d, row.tenant, sandbox, b, &f);
        store_sandbox_done(&row);
        return true;
}

void found_drift(struct box *b, const struct wp_event *e) {
        static const char *const actions[WP_ACTIONS] = { "warn", "freeze", "kill" };
        const struct finding f = { drift, e->text, e->found, e->action == WP_WARNS ? "log" : actions[e->action], 0 };
        struct json *data = json_new_object();

        record(b->d, b->tenant, b->id, &f);
        if (e->action == WP_FREEZES)
                frozen_set(b, &f);
        json_set_str(data, "control", e->text);
        json_set_str(data, "found", e->found);
        json_set_str(data, "action", actions[e->action]);
        event_note(b->d, b->tenant, b->id, "drift", data);
        if (e->action == WP_KILLS)
                box_end(b, "drift", "", NULL, NULL);
}

/* --- why it stands still --- */

static int on_event(void *arg, const struct store_event *e) {
        struct box *b = arg;
        CLEANUP(json_freep) struct json *o = NULL;
        bool is_drift = str_eq(e->kind, "drift");
        const char *action, *rule, *object, *found;
        struct err err;

        if ((!is_drift && !str_eq(e->kind, "alert")) || json_parse("event", e->data, strlen(e->data), &o, &err) < 0)
                return 0;
        action = json_get_str(o, "action");
        rule = is_drift ? drift : json_get_str(o, "rule");
        object = json_get_str(o, is_drift ? "control" : "object");
        found = json_get_str(o, "found");
        if (action && str_eq(action, "freeze") && rule && object && found)
                frozen_set(b, &(const struct finding){ rule, object, found, action, e->time_ms });
        return 0;
}

void found_frozen(struct box *b) {
        const struct store_event_filter of = { b->tenant, b->id, 0, EVENTS_MAX };
        struct err err = { 0 };

        if (b->frozen.since_ms)
                return;
        if (store_event_each(b->d->store, &of, on_event, b, &err) < 0)
                log_error(&b->d->log, "why a sandbox is frozen", &err);
        if (!b->frozen.since_ms) /* by somebody else's hand */
                frozen_set(b, &(const struct finding){ "", "", "", "freeze", 0 });
}

struct json *found_why(const struct box *b) {
        struct json *o;
        char time[CLOCK_TEXT];

        if (!b || !b->frozen.since_ms)
                return NULL;
        o = json_new_object();
        clock_rfc3339_at(time, b->frozen.since_ms);
        json_set_str(o, "since", time);
        json_set_str(o, "rule", b->frozen.rule);
        json_set_str(o, "object", b->frozen.object);
        json_set_str(o, "found", b->frozen.found);
        return o;
}
