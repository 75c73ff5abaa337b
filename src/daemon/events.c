/*
 * events.c - see events.h.
 *
 * Events are committed together, SETTLE_MS after the first of them at the latest: one commit costs more than several
 * events. Followers are brought up from the store then, so that nobody has seen what a crash takes back; and again when
 * there is room in a connection that was full, so that nothing is kept in memory for the slow.
 */
#include "daemon/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/record.h"
#include "daemon/request.h"
#include "http/server.h"
#include "json/json.h"

enum { MESSAGE_MAX = 64 * 1024, SETTLE_MS = 10 };

struct follower {
        TAILQ_ENTRY(follower) link;
        struct events *events;
        struct request *q;
        char tenant[ID_TEXT], sandbox[ID_TEXT]; /* "": all */
        char owner[ID_TEXT];                    /* the tenant that follows, for its limit */
        uint64_t last;                          /* seq of the last one sent */
        bool behind;
};

struct events {
        struct daemon *d;
        TAILQ_HEAD(, follower) followers;
        size_t n;
        struct event *alive, *settle;
        uint64_t newest, last; /* seq: of all, and of what is committed */
};

static struct json *event_json(const struct store_event *e) {
        struct json *o = json_new_object(), *data = NULL;
        char time[CLOCK_TEXT];
        struct err err;

        clock_rfc3339_at(time, e->time_ms);
        json_set_int(o, "seq", (int64_t) e->seq);
        json_set_str(o, "time", time);
        json_set_str(o, "tenant", e->tenant);
        json_set_str(o, "sandbox", e->sandbox[0] ? e->sandbox : NULL);
        json_set_str(o, "kind", e->kind);
        if (json_parse("event", e->data, strlen(e->data), &data, &err) == 0)
                json_set(o, "data", data);
        return o;
}

static void send_one(struct follower *f, const struct store_event *e) {
        CLEANUP(json_freep) struct json *o = event_json(e);
        struct buf text = BUF_INIT(MESSAGE_MAX);
        AUTO_FREE char *line = NULL;
        struct err err;

        f->last = e->seq;
        if (json_text(o, false, &line, &err) == 0)
                buf_addf(&text, "id: %llu\nevent: %s\ndata: %s\n\n", (unsigned long long) e->seq, e->kind, line);
        if (!text.bad && text.len > 0)
                (void) http_reply_body(f->q->conn, text.p, text.len, &err); /* failure: on_done() comes */
        buf_done(&text);
}

static int on_stored(void *arg, const struct store_event *e) {
        struct follower *f = arg;

        send_one(f, e);
        return http_reply_is_full(f->q->conn) ? 1 : 0;
}

/* From the store, as far as there is room. */
static void catch_up(struct follower *f) {
        struct daemon *d = f->events->d;
        struct err err = { 0 };

        f->behind = true;
        while (f->last < f->events->last && !http_reply_is_full(f->q->conn)) {
                const struct store_event_filter page = { .tenant = f->tenant[0] ? f->tenant : NULL,
                                                         .sandbox = f->sandbox[0] ? f->sandbox : NULL,
                                                         .after = f->last,
                                                         .limit = FOLLOW_PAGE };
                uint64_t before = f->last;
                int r = store_event_each(d->store, &page, on_stored, f, &err);

                if (r < 0) {
                        log_error(&d->log, "events", &err);
                        http_reply_abort(f->q->conn);
                        return;
                }
                if (f->last == before)
                        f->last = f->events->last; /* what is newer concerns others */
        }
        f->behind = f->last < f->events->last;
}

static void on_room(struct request *q) {
        catch_up(q->data);
}

static void follower_free(void *data) {
        struct follower *f = data;

        TAILQ_REMOVE(&f->events->followers, f, link);
        f->events->n--;
        free(f);
}

static void settle(struct events *e) {
        struct follower *f;
        struct err err = { 0 };

        if (e->last == e->newest)
                return;
        if (store_settle(e->d->store, &err) < 0)
                log_error(&e->d->log, "events are lost", &err);
        e->last = e->newest;
        TAILQ_FOREACH(f, &e->followers, link)
        catch_up(f);
}

static void on_settle(int fd, short what, void *arg) {
        (void) fd, (void) what;
        settle(arg);
}

static void on_alive(int fd, short what, void *arg) {
        struct events *e = arg;
        struct follower *f;
        struct err err;

        (void) fd, (void) what;
        TAILQ_FOREACH(f, &e->followers, link)
        if (!f->behind)
                (void) http_reply_body(f->q->conn, ": alive\n\n", 9, &err);
}

int events_new(struct daemon *d, struct events **ret, struct err *err) {
        static const struct timeval every = { .tv_sec = FOLLOW_ALIVE_S };
        struct events *e = calloc(1, sizeof(*e));
        struct store_last newest = { 0 };
        int r;

        if (!e)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "events");
        e->d = d;
        TAILQ_INIT(&e->followers);
        r = store_event_last(d->store, NULL, &newest, err);
        if (r == -ENOENT)
                r = 0;
        e->newest = e->last = newest.seq;
        e->settle = evtimer_new(d->base, on_settle, e);
        e->alive = event_new(d->base, -1, EV_PERSIST, on_alive, e);
        if (r == 0 && (!e->settle || !e->alive || event_add(e->alive, &every) < 0))
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "events");
        if (r < 0) {
                (void) events_free(e);
                return r;
        }
        *ret = e;
        return 0;
}

struct events *events_free(struct events *e) {
        if (!e)
                return NULL;
        if (e->alive)
                event_free(e->alive);
        if (e->settle)
                event_free(e->settle);
        free(e);
        return NULL;
}

void events_end(struct events *e) {
        struct follower *f;
        struct err err;

        TAILQ_FOREACH(f, &e->followers, link)
        (void) http_reply_end(f->q->conn, &err);
}

int event_emit(struct daemon *d, const char *tenant, const char *sandbox, const char *kind, struct json *data,
               struct err *err) {
        static const struct timeval soon = { .tv_usec = SETTLE_MS * 1000L };
        CLEANUP(json_freep) struct json *owned = data ? data : json_new_object();
        struct store_event e = { .time_ms = clock_real_ms(), .tenant = tenant, .sandbox = sandbox, .kind = kind };
        AUTO_FREE char *text = NULL;
        int r = json_text(owned, false, &text, err);

        if (r < 0)
                return r;
        e.data = text;
        r = store_event_add(d->store, &e, &e.seq, err);
        if (r < 0)
                return r;
        if (d->events->newest == d->events->last)
                (void) event_add(d->events->settle, &soon);
        d->events->newest = e.seq;
        log_event(&d->log, &e, owned);
        record_event(d, tenant, sandbox, kind, owned);
        return 0;
}

void event_note(struct daemon *d, const char *tenant, const char *sandbox, const char *kind, struct json *data) {
        struct err err = { 0 };

        if (event_emit(d, tenant, sandbox, kind, data, &err) < 0)
                log_error(&d->log, kind, &err);
}

/* --- over HTTP --- */

static int on_listed(void *arg, const struct store_event *e) {
        json_add(arg, event_json(e));
        return 0;
}

static void serve_list(struct request *q, const char *tenant, const char *sandbox, const struct query_events *w) {
        const struct store_event_filter page = { tenant, sandbox, w->after, w->limit };
        struct json *o = json_new_object(), *list = json_new_array();
        struct err err = { 0 };

        if (store_event_each(q->d->store, &page, on_listed, list, &err) < 0) {
                (void) json_free(list);
                (void) json_free(o);
                reply_err(q, &err);
                return;
        }
        json_set(o, "events", list);
        json_set_int(o, "last", (int64_t) q->d->events->last);
        reply_json(q, 200, o);
}

static size_t count_of(const struct events *e, const char *owner) {
        const struct follower *f;
        size_t n = 0;

        TAILQ_FOREACH(f, &e->followers, link)
        n += str_eq(f->owner, owner);
        return n;
}

static void serve_stream(struct request *q, const char *tenant, const char *sandbox, const struct query_events *w) {
        struct events *e = q->d->events;
        struct follower *f;

        if (e->n >= FOLLOWERS || count_of(e, q->auth.tenant.id) >= FOLLOWERS_TENANT) {
                reply_header(q, "Retry-After", "5");
                reply_error(q, 429, "quota.followers", "too many follow events at once; at most %d of one tenant",
                            FOLLOWERS_TENANT);
                return;
        }
        f = calloc(1, sizeof(*f));
        if (!f) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        f->events = e;
        f->q = q;
        f->last = w->has_after ? w->after : e->last;
        (void) str_copy(f->tenant, sizeof(f->tenant), tenant ? tenant : "");
        (void) str_copy(f->sandbox, sizeof(f->sandbox), sandbox ? sandbox : "");
        (void) str_copy(f->owner, sizeof(f->owner), q->auth.tenant.id);
        TAILQ_INSERT_TAIL(&e->followers, f, link);
        e->n++;
        if (request_stream(q, "text/event-stream", on_room, f, follower_free) == 0)
                catch_up(f);
}

/* Whose events: the caller's own, or for operators any tenant's, "*" being all. 0, or answered. */
static int choose_tenant(struct request *q, const char *wanted, char dst[ID_TEXT]) {
        struct store_tenant t;
        struct err err = { 0 };

        (void) str_copy(dst, ID_TEXT, q->auth.tenant.id);
        if (!wanted[0] || str_eq(wanted, q->auth.tenant.id) || str_eq(wanted, q->auth.tenant.name))
                return 0;
        if (!q->auth.sees_all) {
                reply_error(q, 403, "forbidden", "tenant: only operators may look at others");
                return -EPERM;
        }
        if (str_eq(wanted, "*")) {
                dst[0] = '\0';
                return 0;
        }
        if (store_tenant_get(q->d->store, wanted, &t, &err) < 0) {
                reply_err(q, &err);
                return -ENOENT;
        }
        return str_copy(dst, ID_TEXT, t.id);
}

void events_serve(struct request *q) {
        const struct http_head *head = http_conn_head(q->conn);
        const char *accept = http_header(head, "accept", NULL);
        bool stream = accept && http_list_has(accept, "text/event-stream");
        struct query_events w;
        struct err err = { 0 };
        char tenant[ID_TEXT];
        const char *whose, *box;

        if (query_events(head->query, http_header(head, "last-event-id", NULL), &w, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        if (choose_tenant(q, w.tenant, tenant) < 0)
                return;
        settle(q->d->events);
        whose = tenant[0] ? tenant : NULL;
        box = w.sandbox[0] ? w.sandbox : NULL;
        if (stream)
                serve_stream(q, whose, box, &w);
        else
                serve_list(q, whose, box, &w);
}
