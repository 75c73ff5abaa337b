/*
 * attempts.c - see attempts.h.
 *
 * One request is always with the warden, which answers when there is something; the next is sent when this has been
 * written. So a slow disk slows down the sandboxes that make the records, and nothing else.
 */
#include "daemon/attempts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/found.h"
#include "daemon/record.h"
#include "daemon/request.h"
#include "daemon/warden.h"
#include "json/json.h"
#include "store/store.h"

enum { EVENTS_MAX = 10000 };

/* Takes one record. True: it is an attempt, for the store. */
static bool take(struct daemon *d, const char *sandbox, const char *text, struct store_attempt *ret) {
        CLEANUP(json_freep) struct json *o = NULL;
        const char *decision;
        struct err err;

        if (json_parse("attempt", text, strlen(text), &o, &err) < 0 || found_take(d, sandbox, o))
                return false;
        record_attempt(d, sandbox, o);
        decision = json_get_str(o, "decision");
        *ret = (struct store_attempt){ .sandbox = sandbox,
                                       .denied = decision && str_eq(decision, "deny"),
                                       .data = text };
        return true;
}

static void on_records(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct store_attempt all[WP_RECORDS_MAX];
        struct daemon *d = arg;
        struct err err = { 0 };
        struct json *more;
        size_t n = 0;

        if (failed)
                return; /* it has gone away: whoever finds it again asks again */
        for (uint32_t i = 0; i < reply->records->n; i++)
                n += take(d, reply->records->at[i].id, reply->records->at[i].json, &all[n]);
        if (n > 0 && store_egress_add(d->store, all, n, ATTEMPTS_KEPT, &err) < 0)
                log_error(&d->log, "attempts of sandboxes could not be written", &err);
        if (reply->records->lost > 0) {
                more = json_new_object();
                json_set_int(more, "lost", reply->records->lost);
                log_write(&d->log, LOG_WARNING, "attempts of sandboxes were forgotten while nobody asked", more);
        }
        attempts_follow(d);
}

void attempts_follow(struct daemon *d) {
        warden_records(d->warden, on_records, d);
}

/* --- what is asked --- */

/* "name:port", the address if it has no name, and no port if it is a question for a name. */
static void set_what(struct json *o) {
        const char *name = json_get_str(o, "name"), *address = json_get_str(o, "address");
        const char *what = name ? name : address ? address : "";
        int port = (int) json_get_int(o, "port", 0);
        char text[320];

        if (port == 0)
                (void) snprintf(text, sizeof(text), "%.300s", what);
        else
                (void) snprintf(text, sizeof(text), strchr(what, ':') ? "[%.300s]:%d" : "%.300s:%d", what, port);
        json_set_str(o, "what", text);
}

static int on_attempt(void *arg, uint64_t n, const char *data) {
        struct json *list = arg, *o = NULL;
        struct err err;

        if (json_parse("attempt", data, strlen(data), &o, &err) < 0)
                return 0;
        set_what(o);
        json_set_int(o, "seq", (int64_t) n);
        json_add(list, o);
        return 0;
}

static int on_event(void *arg, const struct store_event *e) {
        struct json *list = arg, *o = NULL;
        char time[CLOCK_TEXT];
        struct err err;

        if (!str_has_prefix(e->kind, "denied") || json_parse("event", e->data, strlen(e->data), &o, &err) < 0)
                return 0;
        clock_rfc3339_at(time, e->time_ms);
        json_set_str(o, "time", time);
        json_set_int(o, "seq", (int64_t) e->seq);
        json_add(list, o);
        return 0;
}

/* Two lists, each oldest first, as one. Times of this form sort as text. */
static struct json *merged(const struct json *a, const struct json *b) {
        struct json *all = json_new_array();
        size_t i = 0, j = 0;

        while (i < json_len(a) || j < json_len(b)) {
                const char *s = i < json_len(a) ? json_get_str(json_at(a, i), "time") : NULL;
                const char *t = j < json_len(b) ? json_get_str(json_at(b, j), "time") : NULL;
                bool first = j == json_len(b) || (i < json_len(a) && s && t && strcmp(s, t) <= 0);

                json_add(all, json_share(first ? json_at(a, i++) : json_at(b, j++)));
        }
        return all;
}

static void answer(struct request *q, const char *id, const char *key, struct json *list) {
        struct json *o = json_new_object();

        json_set_str(o, "sandbox", id);
        json_set(o, key, list);
        reply_json(q, 200, o);
}

void admin_egress(struct request *q) {
        CLEANUP(json_freep) struct json *list = json_new_array();
        struct store_sandbox row;
        struct err err = { 0 };

        if (request_row(q, &row) < 0)
                return;
        if (store_egress_each(q->d->store, row.id, false, on_attempt, list, &err) < 0)
                reply_err(q, &err);
        else
                answer(q, row.id, "egress", TAKE_PTR(list));
        store_sandbox_done(&row);
}

void admin_denials(struct request *q) {
        CLEANUP(json_freep) struct json *calls = json_new_array(), *attempts = json_new_array();
        struct store_sandbox row;
        struct err err = { 0 };
        int r;

        if (request_row(q, &row) < 0)
                return;
        r = store_event_each(q->d->store, &(const struct store_event_filter){ row.tenant, row.id, 0, EVENTS_MAX },
                             on_event, calls, &err);
        if (r >= 0)
                r = store_egress_each(q->d->store, row.id, true, on_attempt, attempts, &err);
        if (r < 0)
                reply_err(q, &err);
        else
                answer(q, row.id, "denials", merged(calls, attempts));
        store_sandbox_done(&row);
}
