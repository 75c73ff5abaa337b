/*
 * control_network.c - PUT /sandboxes/ID/network: other rules for a living sandbox.
 *
 * The event comes first, then egress (through the warden), then the row: what is answered with success is in force, and
 * a crash in between leaves a row whose hash is not the one of the last event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/compose.h"
#include "daemon/control.h"
#include "daemon/create.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/request.h"
#include "daemon/warden.h"
#include "json/json.h"

struct changing {
        struct daemon *d;
        struct request *q; /* NULL: the client is gone */
        char id[ID_TEXT];
        struct composed composed;
        char *network; /* as it will be stored */
};

static void changing_free(struct changing *c) {
        if (c->q)
                c->q->holder = NULL;
        composed_done(&c->composed);
        free(c->network);
        free(c);
}

/* What is stored of the network has members that this call does not touch. */
static struct json *merged(const char *stored, const struct json *fresh, bool internet) {
        static const char *const kept[] = { "allowPublicTraffic", "maskRequestHost", "httpsPorts" };
        CLEANUP(json_freep) struct json *old = NULL;
        struct json *o = json_clone(fresh);
        struct err err;

        if (stored && json_parse("network", stored, strlen(stored), &old, &err) == 0)
                for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                        if (json_get(old, kept[i]))
                                json_set(o, kept[i], json_share(json_get(old, kept[i])));
        json_set_bool(o, "allow_internet_access", internet);
        return o;
}

static int store_it(struct changing *c, struct err *err) {
        return store_sandbox_set_network(c->d->store, c->id, c->network, c->composed.policy, c->composed.hash, err);
}

static void refuse(struct request *q, const struct err *failed) {
        switch (failed->code) {
        case -ENOENT:
                reply_error(q, 404, "not_found", "the sandbox is gone");
                break;
        case -ENETDOWN:
                reply_error(q, 409, "conflict",
                            "network: the sandbox was made without one, and cannot get one now; create it with the "
                            "rules it may need");
                break;
        case -EPIPE:
        case -ECONNREFUSED:
        case -ECANCELED:
                reply_header(q, "Retry-After", "1");
                reply_error(q, 503, "unavailable", "network: the warden is not there; try again");
                break;
        default:
                if (failed->kind == ERR_INVALID)
                        reply_error(q, 409, "conflict", "%s", failed->msg);
                else
                        reply_err(q, failed);
        }
}

static void on_changed(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct changing *c = arg;
        struct err err = { 0 };
        int r = failed ? failed->code : 0;

        if (r == 0 && !str_eq(reply->policy, c->composed.hash))
                r = err_set(&err, -EPROTO, ERR_PEER, "sandbox %s has the policy %s now, not %s", c->id, reply->policy,
                            c->composed.hash);
        else if (r == 0)
                r = store_it(c, &err);
        if (err.code < 0)
                log_error(&c->d->log, "rules of a network", &err);
        if (c->q && failed)
                refuse(c->q, failed);
        else if (c->q && r < 0)
                reply_err(c->q, &err);
        else if (c->q)
                reply_empty(c->q, 204);
        changing_free(c);
}

static int prepare(struct changing *c, const struct store_sandbox *row, const struct json *network, bool internet,
                   struct err *err) {
        CLEANUP(json_freep) struct json *whole = merged(row->network, network, internet), *data = NULL;
        int r = compose_again(c->d, row->tenant, row->policy, network, internet, &c->composed, err);

        if (r == 0)
                r = json_text(whole, false, &c->network, err);
        if (r < 0)
                return r;
        data = json_new_object();
        json_set_str(data, "policy", c->composed.hash);
        json_set_str(data, "key", c->q->auth.key.id);
        return event_emit(c->d, row->tenant, row->id, "policy.changed", TAKE_PTR(data), err);
}

static void change(struct changing *c, const struct store_sandbox *row, bool drop) {
        struct wp_network ask = { .drop = drop };
        AUTO_FREE char *ceiling = NULL;
        struct err err = { 0 };
        int r = 0;

        if (str_eq(c->composed.hash, row->policy_hash) && !c->composed.ceiling) {
                r = store_it(c, &err); /* it had no network, and has none */
                if (r < 0)
                        reply_err(c->q, &err);
                else
                        reply_empty(c->q, 204);
                changing_free(c);
                return;
        }
        if (!c->composed.ceiling) /* everything is closed by its own rules; the ceiling is told all the same */
                r = compose_ceiling(c->d, row->tenant, &ceiling, &err);
        if (r < 0) {
                reply_err(c->q, &err);
                changing_free(c);
                return;
        }
        (void) str_copy(ask.id, sizeof(ask.id), c->id);
        warden_network(c->d->warden, &ask, c->composed.policy, ceiling ? ceiling : c->composed.ceiling, on_changed, c);
}

void control_network(struct request *q) {
        CLEANUP(json_freep) struct json *network = NULL;
        struct json *doc = request_object(q);
        struct box *b = doc ? request_box(q) : NULL;
        bool internet, drop;
        struct changing *c;
        struct store_sandbox row = { 0 };
        struct err err = { 0 };
        int r;

        if (!b)
                return;
        c = calloc(1, sizeof(*c));
        if (!c) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        c->d = q->d;
        request_hold(q, &c->q);
        (void) str_copy(c->id, sizeof(c->id), b->id);
        r = create_decode_network(doc, &network, &internet, &drop, &err);
        if (r == 0)
                r = store_sandbox_get(q->d->store, b->tenant, b->id, &row, &err);
        if (r < 0) {
                changing_free(c);
                reply_err(q, &err);
                return;
        }
        r = prepare(c, &row, network, internet, &err);
        if (r < 0) {
                changing_free(c);
                reply_err(q, &err);
        } else {
                change(c, &row, drop);
        }
        store_sandbox_done(&row);
}
