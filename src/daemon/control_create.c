/*
 * control_create.c - POST /sandboxes: decode, compose, quota, admission, warden and notary, row, reply.
 *
 * Warden and notary are asked at the same time. The row is committed when the notary has answered, while the warden
 * still works: so what has a row was recorded. Nobody can use the sandbox before all three are done, for it has no box,
 * and one that cannot be recorded or committed is ended again.
 *
 * A create outlives its request: if the client goes away, what was not begun is dropped, and what was made is ended,
 * because nobody would know that it is there. One that was cut off by a crash is kept if it has a row and runs, because
 * it may have been promised; else it is ended (reconcile.h).
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/admit.h"
#include "daemon/box.h"
#include "daemon/compose.h"
#include "daemon/control.h"
#include "daemon/create.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/metrics.h"
#include "daemon/quota.h"
#include "daemon/record.h"
#include "daemon/request.h"
#include "daemon/scribe.h"
#include "daemon/template.h"
#include "daemon/view.h"
#include "daemon/warden.h"
#include "http/server.h"
#include "json/json.h"

struct making {
        struct admit_op op;
        struct daemon *d;
        struct request *q; /* NULL: the client is gone */
        struct create create;
        struct composed composed;
        const struct template *template;
        char *network; /* as stored */
        LIST_ENTRY(making) link;
        char id[ID_TEXT], tenant[ID_TEXT], key[ID_TEXT], socket[STORE_SOCKET]; /* socket: of its agent */
        const char *bind;                                                      /* of the tenant, for its connections */
        uint64_t created_ms;
        bool starting, recording, committing; /* under way: warden, notary, store */
        bool listed, has_row;
        struct err failed, unrecorded, uncommitted; /* code 0: it was not */
        bool made;
        struct wp_created created; /* then */
};

static void making_free(struct making *m) {
        if (m->q)
                m->q->holder = NULL;
        if (m->listed)
                LIST_REMOVE(m, link);
        create_done(&m->create);
        composed_done(&m->composed);
        free(m->network);
        free(m);
}

/* Nothing came of it. */
static void give_up(struct making *m) {
        quota_give(m->d->quota, m->tenant, &m->composed.need);
        making_free(m);
}

static void on_refused(struct admit_op *op, const struct quota_refusal *why) {
        struct making *m = (struct making *) ((char *) op - offsetof(struct making, op));

        metrics_count(m->d->metrics, METRIC_REFUSED_QUOTA);
        if (m->q) {
                reply_header(m->q, "Retry-After", "%u", why->retry_after_s);
                reply_error(m->q, 429, why->code, "%s", why->message);
        }
        give_up(m);
}

/* --- made, or not --- */

static void name_taken(const struct making *m) {
        reply_error(m->q, 409, "conflict", "name: '%s' belongs to another sandbox", m->create.name);
}

static void fail(struct making *m, const struct err *err) {
        struct json *data = json_new_object();
        struct err later = { 0 };

        json_set_str(data, "reason", "failed");
        if (m->has_row && store_sandbox_move(m->d->store, m->id, STORE_GONE, "failed", clock_real_ms(), &later) < 0)
                log_error(&m->d->log, "create", &later);
        event_note(m->d, m->tenant, m->id, "sandbox.failed", data);
        metrics_count(m->d->metrics, METRIC_CREATE_FAILED);
        admit_started(m->d->admit, &m->op, false);
        log_error(&m->d->log, "a sandbox could not be made", err);
        if (!m->q) {
                give_up(m);
                return;
        }
        (void) str_copy(m->q->sandbox, sizeof(m->q->sandbox), m->id);
        if (err == &m->uncommitted && err->code == -EEXIST) {
                name_taken(m);
        } else if (err->code == -ECONNREFUSED || err->code == -EPIPE || err->code == -ECANCELED) {
                reply_header(m->q, "Retry-After", "1");
                reply_error(m->q, 503, "unavailable", "the sandbox could not be made: %s; try again", err->msg);
        } else if (err->kind == ERR_LIMIT || err->kind == ERR_BUSY) {
                reply_header(m->q, "Retry-After", "1");
                reply_error(m->q, 503, "busy", "the sandbox could not be made now; try again");
        } else {
                reply_error(m->q, 500, "internal", "the sandbox could not be made; the server's log has the reason");
        }
        give_up(m);
}

static void row_of(const struct making *m, struct store_sandbox *ret) {
        *ret = (struct store_sandbox){ .state = STORE_RUNNING,
                                       .created_ms = m->created_ms,
                                       .ends_ms = m->created_ms + (uint64_t) m->create.timeout_s * 1000,
                                       .cpu_milli = m->composed.need.cpu_milli,
                                       .memory_bytes = m->composed.need.memory_bytes,
                                       .disk_bytes = m->composed.need.disk_bytes,
                                       .metadata = m->create.metadata,
                                       .policy = m->composed.policy,
                                       .network = m->network };
        (void) str_copy(ret->id, sizeof(ret->id), m->id);
        (void) str_copy(ret->tenant, sizeof(ret->tenant), m->tenant);
        (void) str_copy(ret->name, sizeof(ret->name), m->create.name);
        (void) str_copy(ret->template, sizeof(ret->template), m->template->id);
        (void) str_copy(ret->policy_hash, sizeof(ret->policy_hash), m->composed.hash);
        (void) str_copy(ret->socket, sizeof(ret->socket), m->socket);
}

static void on_orphan_ended(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct daemon *d = arg;

        (void) reply;
        if (failed && failed->code != -ENOENT)
                log_error(&d->log, "a sandbox that could not be registered could not be ended", failed);
}

static int adopt(struct making *m, struct box **ret, struct err *err) {
        const struct wp_created *made = &m->created;
        struct store_sandbox row;

        row_of(m, &row);
        if (!str_eq(made->policy, m->composed.hash))
                return err_set(err, -EPROTO, ERR_PEER, "sandbox %s has the policy %s, not %s", m->id, made->policy,
                               m->composed.hash);
        if (!str_eq(made->socket, m->socket)) /* after a restart it would not be found */
                return err_set(err, -EPROTO, ERR_PEER, "sandbox %s has its socket at %s, not at %s", m->id,
                               made->socket, m->socket);
        return box_add(m->d, &row, m->socket, ret, err);
}

/* What is to be told beside the reply. */
static void note(const struct making *m, const struct box *b) {
        const struct wp_created *made = &m->created;
        struct json *data = json_new_object();

        json_set_bool(data, "from_pool", made->from_pool);
        json_set_int(data, "took_us", (int64_t) made->took_us);
        event_note(m->d, m->tenant, m->id, "sandbox.running", data);
        record_running(b, made->policy);
}

static void finish(struct making *m) {
        struct box *b = NULL;
        struct err err = { 0 };
        bool gone = !m->q;

        if (adopt(m, &b, &err) < 0) {
                warden_ask(m->d->warden, WP_KILL, m->id, on_orphan_ended, m->d);
                fail(m, &err);
                return;
        }
        metrics_count(m->d->metrics, METRIC_CREATED);
        admit_started(m->d->admit, &m->op, true);
        if (m->create.n_vars > 0)
                box_set_env(b, TAKE_PTR(m->create.env), m->create.n_vars);
        if (m->q) {
                (void) str_copy(m->q->sandbox, sizeof(m->q->sandbox), b->id);
                reply_json(m->q, 201, view_sandbox(m->d, b));
                gone = m->q && m->q->conn && http_flush(m->q->conn) < 0; /* who waits need not wait for the rest */
        }
        note(m, b);
        if (gone)
                box_end(b, "abandoned", "", NULL, NULL); /* its share is the box's now */
        making_free(m);
}

/* Goes on when all three are done. */
static void when_all(struct making *m) {
        static const struct err why = { .code = -ECONNREFUSED,
                                        .kind = ERR_BUSY,
                                        .msg = "the audit log cannot be written now" };

        if (m->starting || m->recording || m->committing)
                return;
        if (m->unrecorded.code == 0 && m->uncommitted.code == 0 && m->failed.code == 0) {
                finish(m);
                return;
        }
        if (m->made)
                warden_ask(m->d->warden, WP_KILL, m->id, on_orphan_ended, m->d);
        if (m->unrecorded.code < 0)
                log_error(&m->d->log, "audit", &m->unrecorded);
        fail(m, m->unrecorded.code < 0 ? &why : m->uncommitted.code < 0 ? &m->uncommitted : &m->failed);
}

static void on_made(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct making *m = arg;

        m->starting = false;
        m->made = !failed;
        if (failed)
                m->failed = *failed;
        else
                m->created = reply->created;
        when_all(m);
}

/* The row and its event. */
static int commit(struct making *m, struct err *err) {
        struct json *data = json_new_object();
        struct store_sandbox row;
        struct err later = { 0 };
        int r, settled;

        json_set_str(data, "template", m->template->id);
        json_set_str(data, "policy", m->composed.hash);
        json_set_str(data, "key", m->key);
        json_set_int(data, "timeout_s", m->create.timeout_s);
        row_of(m, &row);
        r = store_begin(m->d->store, err);
        if (r == 0)
                r = store_sandbox_add(m->d->store, &row, err);
        m->has_row = r == 0;
        if (r == 0)
                r = event_emit(m->d, m->tenant, m->id, "sandbox.create", data, err);
        else
                json_free(data);
        settled = store_settle(m->d->store, r < 0 ? &later : err);
        return r < 0 ? r : settled;
}

static void make(struct making *m) {
        struct warden_order ask = { .create = { .from = WP_ANY },
                                    .policy = m->composed.policy,
                                    .ceiling = m->composed.ceiling,
                                    .bind = m->bind,
                                    .env = m->create.env,
                                    .n_env = m->create.n_env };

        (void) str_copy(ask.create.id, sizeof(ask.create.id), m->id);
        (void) str_copy(ask.create.tenant, sizeof(ask.create.tenant), m->tenant);
        warden_create(m->d->warden, &ask, on_made, m);
}

static void on_recorded(void *arg, const struct err *failed, int fd) {
        struct making *m = arg;

        (void) fd;
        m->recording = false;
        if (failed)
                m->unrecorded = *failed;
        else
                (void) commit(m, &m->uncommitted);
        m->committing = false;
        when_all(m);
}

/* Of two that come at the same moment, the other learns it from the store. */
static bool name_is_free(const struct making *m) {
        struct store_sandbox row;
        struct err err;

        if (!m->create.name[0] || store_sandbox_get(m->d->store, m->tenant, m->create.name, &row, &err) < 0)
                return true;
        store_sandbox_done(&row);
        return false;
}

static void on_start(struct admit_op *op) {
        struct making *m = (struct making *) ((char *) op - offsetof(struct making, op));
        struct store_sandbox row;
        struct audit_event ev;

        if (!m->q || !name_is_free(m)) {
                admit_started(m->d->admit, op, false);
                if (m->q)
                        name_taken(m);
                give_up(m);
                return;
        }
        m->created_ms = clock_real_ms();
        LIST_INSERT_HEAD(&m->d->makings, m, link);
        m->listed = m->starting = m->recording = m->committing = true;
        make(m);
        if (m->d->scribe) {
                row_of(m, &row);
                record_create(&ev, &row, m->key);
                scribe_ask(m->d->scribe, &ev, on_recorded, m);
        } else {
                on_recorded(m, NULL, -1);
        }
}

bool control_is_making(const struct daemon *d, const char *id) {
        const struct making *m;

        LIST_FOREACH(m, &d->makings, link) {
                if (str_eq(m->id, id))
                        return true;
        }
        return false;
}

/* --- the request --- */

/* Everything about the network that has to be known again later, in one object. */
static int store_network(struct making *m, struct err *err) {
        CLEANUP(json_freep) struct json *o = m->create.network ? json_clone(m->create.network) : json_new_object();

        json_set_bool(o, "allow_internet_access", m->create.internet);
        return json_text(o, false, &m->network, err);
}

/* Beside the warden's own, so that it is known before it is made. */
static int place_socket(struct making *m, struct err *err) {
        const char *warden = m->d->config.warden, *end = strrchr(warden, '/');
        int n = snprintf(m->socket, sizeof(m->socket), "%.*s/agents/%s", end ? (int) (end - warden) : 0, warden, m->id);

        return n < 0 || (size_t) n >= sizeof(m->socket)
                       ? err_set(err, -ENAMETOOLONG, ERR_INTERNAL, "the warden's directory has too long a name")
                       : 0;
}

static int prepare(struct making *m, struct request *q, bool v2, struct err *err) {
        int r = create_decode(q->json, v2, q->d->config.timeout_max_s, &m->create, err);

        if (r < 0)
                return r;
        m->template = template_find(m->create.template);
        if (!m->template || !auth_may_template(&q->auth, m->template->id))
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "templateID: there is no template '%.64s'",
                               m->create.template);
        r = compose(q->d, q->auth.tenant.id, m->template, m->create.network, m->create.internet, &m->composed, err);
        if (r == 0)
                r = store_network(m, err);
        if (r == 0 && id_new(m->id) < 0)
                r = err_set(err, -EIO, ERR_INTERNAL, "no random numbers");
        return r < 0 ? r : place_socket(m, err);
}

static void create(struct request *q, bool v2) {
        struct making *m = calloc(1, sizeof(*m));
        struct quota_refusal why = { 0 };
        struct err err = { 0 };
        int r;

        if (!m) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        m->d = q->d;
        r = prepare(m, q, v2, &err);
        if (r < 0) {
                making_free(m);
                reply_err(q, &err);
                return;
        }
        (void) str_copy(m->tenant, sizeof(m->tenant), q->auth.tenant.id);
        (void) str_copy(m->key, sizeof(m->key), q->auth.key.id);
        (void) str_copy(m->op.tenant, sizeof(m->op.tenant), q->auth.tenant.id);
        m->bind = config_source(&q->d->config, q->auth.tenant.name);
        m->op.need = m->composed.need;
        m->op.start = on_start;
        m->op.refuse = on_refused;
        if (!warden_is_up(q->d->warden)) {
                making_free(m);
                reply_header(q, "Retry-After", "1");
                reply_error(q, 503, "unavailable", "sandboxes cannot be made now: the warden is not there; try again");
                return;
        }
        r = quota_take(q->d->quota, &q->auth.tenant, &m->composed.need, clock_mono_ns() / 1000000, &why);
        if (r < 0) {
                making_free(m);
                metrics_count(q->d->metrics, METRIC_REFUSED_QUOTA);
                reply_header(q, "Retry-After", "%u", r == -ENOMEM ? 1 : why.retry_after_s);
                reply_error(q, r == -ENOMEM ? 500 : 429, r == -ENOMEM ? "internal" : why.code, "%s",
                            r == -ENOMEM ? "out of memory" : why.message);
                return;
        }
        request_hold(q, &m->q);
        admit_submit(q->d->admit, &m->op);
}

void control_create_v1(struct request *q) {
        if (request_object(q))
                create(q, false);
}

void control_create_v2(struct request *q) {
        if (request_object(q))
                create(q, true);
}
