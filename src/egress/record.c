/*
 * record.c - see record.h.
 *
 * Invariant of the ledger: every attempt is in exactly one record, by itself or in a count, and the event that a client
 * was told is the event of that record.
 */
#include "egress/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egress/limits.h"
#include "egressproto/egressproto.h"
#include "json/json.h"

enum { DETAIL_MAX = 200, METHOD_MAX = 24, NS_PER_US = 1000 };

static void set_text(struct json *o, const char *key, const char *s) {
        if (s && s[0])
                json_set_str(o, key, s);
}

int record_text(const struct record *r, const char *sandbox, uint64_t count, char **ret, struct err *err) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        AUTO_FREE char *text = NULL;
        char time[CLOCK_TEXT], address[ADDR_TEXT] = "", detail[DETAIL_MAX];
        int n;

        clock_rfc3339(time);
        if (r->address.family != ADDR_NONE)
                addr_text(&r->address, address);
        /* Only detail can be long: names, rules and prefixes have limits that leave room in EGP_RECORD_MAX. */
        (void) snprintf(detail, sizeof(detail), "%s", r->detail ? r->detail : "");
        set_text(o, "event", r->event);
        set_text(o, "time", time);
        set_text(o, "sandbox", sandbox);
        set_text(o, "kind", r->kind);
        set_text(o, "name", r->name);
        set_text(o, "address", address);
        if (r->port > 0)
                json_set_int(o, "port", r->port);
        set_text(o, "protocol", r->protocol);
        set_text(o, "decision", r->allowed ? "allow" : "deny");
        set_text(o, "code", r->code);
        set_text(o, "rule", r->rule);
        set_text(o, "side", r->side);
        if (r->with_bytes) {
                uint64_t us = r->duration_ns / NS_PER_US;

                json_set_int(o, "bytes_out", (int64_t) r->bytes_out);
                json_set_int(o, "bytes_in", (int64_t) r->bytes_in);
                json_set_real(o, "duration_ms", (double) us / 1000.0);
        }
        set_text(o, "method", r->method);
        set_text(o, "path", r->path);
        set_text(o, "phase", r->phase);
        if (count > 0)
                json_set_int(o, "count", (int64_t) count);
        set_text(o, "policy", r->policy);
        set_text(o, "detail", detail);
        n = json_text(o, false, &text, err);
        if (n < 0)
                return n;
        if (strlen(text) > EGP_RECORD_MAX)
                return err_set(err, -EMSGSIZE, ERR_INTERNAL, "record: longer than %d bytes", EGP_RECORD_MAX);
        *ret = TAKE_PTR(text);
        return 0;
}

const char *record_side(const char *rule) {
        return str_has_prefix(rule, "ceiling:") ? "ceiling" : str_has_prefix(rule, "floor:") ? "floor" : "sandbox";
}

/* What a record must share with an earlier one to be counted with it. Strings are copies. */
struct repeat {
        struct record r; /* its strings point below, or to constants */
        char event[RECORD_EVENT];
        char name[HOST_NAME], rule[POLICY_NET_RULE], policy[HASH_TEXT], detail[DETAIL_MAX], method[METHOD_MAX];
        uint64_t until_ms, count; /* count: not told yet */
        bool used;
};

struct ledger {
        const char *sandbox;
        ledger_send_fn send;
        void *arg;
        struct repeat repeats[EGRESS_REPEATS];
};

int ledger_new(const char *sandbox, ledger_send_fn send, void *arg, struct ledger **ret, struct err *err) {
        struct ledger *l = calloc(1, sizeof(*l));

        if (!l)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "ledger: out of memory");
        *l = (struct ledger){ .sandbox = sandbox, .send = send, .arg = arg };
        *ret = l;
        return 0;
}

static void send_record(struct ledger *l, const struct record *r, uint64_t count) {
        AUTO_FREE char *text = NULL;
        char small[256];
        struct err err = { 0 };

        if (record_text(r, l->sandbox, count, &text, &err) < 0)
                /* Memory ran out. The attempt must not vanish, so the smallest true record stands for it. */
                (void) snprintf(
                        small, sizeof(small),
                        "{\"decision\":\"%s\",\"detail\":\"out of memory\",\"event\":\"%s\",\"kind\":\"%s\",\"sandbox\":\"%s\"}",
                        r->allowed ? "allow" : "deny", r->event, r->kind, l->sandbox);
        l->send(l->arg, text ? text : small, !r->allowed);
}

static void repeat_end(struct ledger *l, struct repeat *p) {
        if (p->used && p->count > 0)
                send_record(l, &p->r, p->count);
        p->used = false;
}

struct ledger *ledger_free(struct ledger *l) {
        for (size_t i = 0; l && i < EGRESS_REPEATS; i++)
                repeat_end(l, &l->repeats[i]);
        free(l);
        return NULL;
}

void ledger_event(char event[RECORD_EVENT]) {
        memcpy(event, "evt_", 4);
        if (id_new(event + 4) < 0)
                abort(); /* a kernel without randomness: nothing this process does can be trusted */
}

static bool is_same(const struct repeat *p, const struct record *r) {
        return p->used && p->r.port == r->port && p->r.allowed == r->allowed && str_eq(p->r.kind, r->kind) &&
               str_eq(p->r.code, r->code) && addr_eq(&p->r.address, &r->address) &&
               str_eq(p->name, r->name ? r->name : "") && str_eq(p->method, r->method ? r->method : "");
}

/* Starts to count: the place that is free, or else the one that ends first. */
static void repeat_begin(struct ledger *l, const struct record *r, uint64_t now_ms, const char event[RECORD_EVENT]) {
        struct repeat *p = &l->repeats[0];

        for (size_t i = 0; i < EGRESS_REPEATS && p->used; i++)
                if (!l->repeats[i].used || l->repeats[i].until_ms < p->until_ms)
                        p = &l->repeats[i];
        repeat_end(l, p);
        *p = (struct repeat){ .r = *r, .used = true, .until_ms = now_ms + EGRESS_REPEAT_MS };
        memcpy(p->event, event, RECORD_EVENT);
        (void) snprintf(p->name, sizeof(p->name), "%s", r->name ? r->name : "");
        (void) snprintf(p->rule, sizeof(p->rule), "%s", r->rule ? r->rule : "");
        (void) snprintf(p->policy, sizeof(p->policy), "%s", r->policy ? r->policy : "");
        (void) snprintf(p->detail, sizeof(p->detail), "%s", r->detail ? r->detail : "");
        (void) snprintf(p->method, sizeof(p->method), "%s", r->method ? r->method : "");
        p->r.event = p->event;
        p->r.name = p->name;
        p->r.rule = p->rule;
        p->r.policy = p->policy;
        p->r.detail = p->detail;
        p->r.method = p->method;
        p->r.path = p->r.phase = NULL;
}

void ledger_note(struct ledger *l, struct record *r, uint64_t now_ms, char event[RECORD_EVENT]) {
        for (size_t i = 0; i < EGRESS_REPEATS; i++) {
                struct repeat *p = &l->repeats[i];

                if (!is_same(p, r) || p->until_ms <= now_ms)
                        continue;
                p->count++;
                memcpy(event, p->event, RECORD_EVENT);
                return;
        }
        ledger_event(event);
        r->event = event;
        send_record(l, r, 0);
        repeat_begin(l, r, now_ms, event);
}

void ledger_tell(struct ledger *l, const struct record *r) {
        send_record(l, r, 0);
}

void ledger_sweep(struct ledger *l, uint64_t now_ms) {
        for (size_t i = 0; i < EGRESS_REPEATS; i++)
                if (l->repeats[i].used && l->repeats[i].until_ms <= now_ms)
                        repeat_end(l, &l->repeats[i]);
}
