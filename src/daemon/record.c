/* record.c - see record.h. Events of the store and of envd become events of the audit log; requests wait for theirs. */
#include "daemon/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/request.h"
#include "daemon/route.h"
#include "daemon/scribe.h"
#include "envd/envd.h"
#include "json/json.h"
#include "notary/notary.h"
#include "store/store.h"

enum { STRANGERS_MS = 1000 };

static void begin(struct audit_event *ev, enum audit_kind kind, const char *tenant, const char *sandbox) {
        audit_event_init(ev, kind, tenant[0] ? tenant : NOTARY_TENANT, sandbox);
}

static void note(struct daemon *d, const struct audit_event *ev) {
        scribe_note(d->scribe, ev);
}

/* --- requests --- */

static void request_event(const struct request *q, struct audit_event *ev) {
        const struct box *b =
                strstr(q->route->pattern, "{sandboxID}") ? box_find(q->d, q->auth.tenant.id, q->args[0]) : NULL;
        char text[AUDIT_OBJECT];

        begin(ev, AUDIT_ADMIN, q->auth.tenant.id, b ? b->id : "");
        (void) str_copy(ev->actor, sizeof(ev->actor), q->auth.key.id);
        (void) snprintf(text, sizeof(text), "%s %s", q->route->method, q->route->pattern);
        audit_object(ev, text);
        audit_text(ev, "request", q->id);
        audit_text(ev, "verb", verb_name(q->route->verb));
        if (q->auth.tenant.id[0])
                audit_text(ev, "role", store_role_name(q->auth.key.role));
        ev->decision = AUDIT_ALLOWED;
}

struct waiting {
        struct request *q; /* NULL: the client is gone */
};

static void on_recorded(void *arg, const struct err *failed, int fd) {
        AUTO_FREE struct waiting *w = arg;
        struct request *q = w->q;

        (void) fd;
        if (!q)
                return;
        q->holder = NULL;
        if (!failed) {
                q->route->fn(q);
                return;
        }
        log_error(&q->d->log, "a request was refused because it cannot be recorded", failed);
        reply_header(q, "Retry-After", "1");
        reply_error(q, 503, "audit", "the audit log cannot be written now, so this is not done; try again");
}

void record_request(struct request *q) {
        enum verb v = q->route->verb;
        bool told = v == VERB_AUDIT || v == VERB_KILL;
        bool waits = v == VERB_CONNECT || v == VERB_UPDATE || v == VERB_KEYS || v == VERB_TENANTS;
        struct waiting *w = q->d->scribe && waits ? calloc(1, sizeof(*w)) : NULL;
        struct audit_event ev;

        if (!q->d->scribe || (!told && !waits)) {
                q->route->fn(q);
                return;
        }
        if (waits && !w) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        request_event(q, &ev);
        if (told) {
                note(q->d, &ev);
                q->route->fn(q);
                return;
        }
        request_hold(q, &w->q);
        scribe_ask(q->d->scribe, &ev, on_recorded, w);
}

/* Anybody can send a wrong key, as often as he likes: one a second is told, with the number of the others. */
static bool may_tell(uint64_t *ret_others) {
        static uint64_t next_ms, others;
        uint64_t now = clock_mono_ns() / 1000000;

        if (now < next_ms) {
                others++;
                return false;
        }
        next_ms = now + STRANGERS_MS;
        *ret_others = others;
        others = 0;
        return true;
}

void record_refused(struct request *q, const char *code) {
        uint64_t others = 0;
        struct audit_event ev;

        if (!q->d->scribe || (!q->auth.tenant.id[0] && !may_tell(&others)))
                return;
        request_event(q, &ev);
        ev.decision = AUDIT_DENIED;
        (void) snprintf(ev.code, sizeof(ev.code), "api.%.40s", code);
        (void) str_copy(ev.rule, sizeof(ev.rule), verb_name(q->route->verb));
        if (others)
                audit_number(&ev, "count", (int64_t) others + 1);
        note(q->d, &ev);
}

/* --- commands --- */

static void command_event(const struct box *b, enum audit_kind kind, const struct envd_event *from,
                          struct audit_event *ev) {
        begin(ev, kind, b->tenant, b->id);
        audit_program(ev, from->text);
        if (from->user[0])
                audit_text(ev, "user", from->user);
        if (from->pid)
                audit_number(ev, "pid", from->pid);
}

struct permitting {
        struct daemon *d;
        char id[ID_TEXT];
        uint64_t call;
};

static void on_command(void *arg, const struct err *failed, int fd) {
        AUTO_FREE struct permitting *p = arg;
        struct box *b = box_find(p->d, NULL, p->id);

        (void) fd;
        if (failed)
                log_error(&p->d->log, "a command was refused because it cannot be recorded", failed);
        if (b)
                envd_permitted(p->d->envd, &b->target, p->call, failed ? -EACCES : 0);
}

int record_command(struct box *b, const struct envd_event *from) {
        struct permitting *p;
        struct audit_event ev;

        if (!b->d->scribe)
                return 0;
        p = scribe_is_up(b->d->scribe) ? calloc(1, sizeof(*p)) : NULL;
        if (!p)
                return -EAGAIN;
        p->d = b->d;
        p->call = from->call;
        (void) str_copy(p->id, sizeof(p->id), b->id);
        command_event(b, AUDIT_EXEC_STARTED, from, &ev);
        scribe_ask(b->d->scribe, &ev, on_command, p);
        return 1;
}

void record_command_ended(struct box *b, const struct envd_event *from) {
        struct audit_event ev;

        if (!b->d->scribe)
                return;
        command_event(b, AUDIT_EXEC_ENDED, from, &ev);
        audit_text(&ev, "reason", from->code < 0 ? "signalled" : "exited");
        audit_number(&ev, "exit_code", from->code < 0 ? 128 - from->code : from->code);
        audit_number(&ev, "signal", from->code < 0 ? -from->code : 0);
        if (from->lived_ms)
                audit_number(&ev, "duration_ms", (int64_t) from->lived_ms);
        audit_number(&ev, "cpu_ms", (int64_t) (from->cpu_us / 1000));
        audit_number(&ev, "memory_peak_bytes", (int64_t) (from->max_rss_kib * 1024));
        note(b->d, &ev);
}

/* --- attempts --- */

void record_attempt(struct daemon *d, const char *sandbox, const struct json *attempt) {
        const struct box *b = d->scribe ? box_any(d, sandbox) : NULL;
        struct audit_event ev;

        if (!b)
                return;
        begin(&ev, audit_attempt_kind(attempt), b->tenant, b->id);
        audit_attempt(&ev, attempt);
        note(d, &ev);
}

/* --- events of the store --- */

struct copying {
        struct audit_event *ev;
        const struct json *from;
};

static int field_add(void *arg, const char *key, const struct json *value) {
        const struct copying *c = arg;
        struct audit_event *ev = c->ev;
        int64_t number = json_get_int(c->from, key, INT64_MIN);
        const char *text = json_str(value);

        if (str_eq(key, "by") || (str_eq(key, "key") && !ev->actor[0] && ev->kind == AUDIT_POLICY_CHANGED))
                (void) snprintf(ev->actor, sizeof(ev->actor), "%.63s", text ? text : "");
        else if (str_eq(key, "policy") && text)
                (void) str_copy(ev->policy, sizeof(ev->policy), text);
        else if (text)
                audit_text(ev, key, text);
        else if (number != INT64_MIN)
                audit_number(ev, key, number);
        return 0;
}

/* Keys, tenants, policies: what changed, by whom. The members of these events are ours, and names only. */
static void changed(struct daemon *d, struct audit_event *ev, const char *kind, const struct json *data) {
        audit_object(ev, kind);
        (void) json_each(data, field_add, &(struct copying){ ev, data });
        note(d, ev);
}

static void refused_call(struct daemon *d, struct audit_event *ev, const struct json *data) {
        const char *what = json_get_str(data, "what");

        ev->decision = AUDIT_DENIED;
        (void) str_copy(ev->code, sizeof(ev->code), "sys.call_refused");
        (void) str_copy(ev->rule, sizeof(ev->rule), "syscalls");
        audit_object(ev, what ? what : "?");
        if (json_get_int(data, "suppressed", 0) > 0)
                audit_text(ev, "note", "a flood: further ones are refused without a record");
        note(d, ev);
}

void record_event(struct daemon *d, const char *tenant, const char *sandbox, const char *kind,
                  const struct json *data) {
        static const char *const admin[] = { "key.created", "key.revoked", "tenant.created", "tenant.changed",
                                             "sandbox.timeout" };
        struct audit_event ev;

        if (!d->scribe)
                return;
        if (str_eq(kind, "denied")) {
                begin(&ev, AUDIT_CALL_REFUSED, tenant, sandbox);
                refused_call(d, &ev, data);
        } else if (str_eq(kind, "policy.changed")) {
                begin(&ev, AUDIT_POLICY_CHANGED, tenant, sandbox);
                changed(d, &ev, "network", data);
        } else if (str_eq(kind, "sandbox.failed")) {
                begin(&ev, AUDIT_SANDBOX_ENDED, tenant, sandbox);
                audit_text(&ev, "reason", "not_started");
                note(d, &ev);
        }
        for (size_t i = 0; i < ARRAY_SIZE(admin); i++)
                if (str_eq(admin[i], kind)) {
                        begin(&ev, AUDIT_ADMIN, tenant, sandbox);
                        changed(d, &ev, kind, data);
                }
}
