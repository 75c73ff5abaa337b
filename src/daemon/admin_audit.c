/* admin_audit.c - the audit log for those who may read it: their own tenant's chain, dossiers, a check on demand. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/request.h"
#include "daemon/scribe.h"
#include "daemon/warden.h"
#include "http/server.h"
#include "ipc/ipc.h"
#include "json/json.h"
#include "notary/notary.h"

struct reading {
        struct request *q; /* NULL: the client is gone */
};

/* Sealed now: the notary has written it, and nobody can change it any more. */
static void on_read(void *arg, const struct err *failed, int fd) {
        AUTO_FREE struct reading *a = arg;
        AUTO_FREE char *text = NULL;
        struct request *q = a->q;
        struct err err = { 0 };
        size_t n = 0;

        if (!q)
                return;
        q->holder = NULL;
        if (failed && failed->kind == ERR_NOT_FOUND) {
                reply_error(q, 404, "not_found", "the audit log has nothing about this");
        } else if (failed) {
                log_error(&q->d->log, "the audit log could not be read", failed);
                reply_header(q, "Retry-After", "1");
                reply_error(q, 503, "audit", "the audit log cannot be read now; try again");
        } else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
                   ipc_blob_read(fd, IPC_BLOB_MAX, &text, &n, &err) < 0) {
                reply_err(q, &err);
        } else {
                reply_text(q, 200, "application/json", text);
        }
}

static struct reading *reading_new(struct request *q) {
        struct reading *a = q->d->scribe ? calloc(1, sizeof(*a)) : NULL;

        if (a)
                request_hold(q, &a->q);
        else if (q->d->scribe)
                reply_error(q, 500, "internal", "out of memory");
        else
                reply_error(q, 404, "not_found", "this server keeps no audit log");
        return a;
}

void admin_audit(struct request *q) {
        struct query_events w = { 0 };
        struct reading *a;
        struct err err = { 0 };

        if (query_events(http_conn_head(q->conn)->query, NULL, &w, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        if (w.tenant[0] && !str_eq(w.tenant, q->auth.tenant.id) && !str_eq(w.tenant, q->auth.tenant.name)) {
                reply_error(q, 403, "forbidden", "tenant: everybody reads the own chain only");
                return;
        }
        a = reading_new(q);
        if (a)
                scribe_read(q->d->scribe, q->auth.tenant.id, w.after + 1,
                            w.limit < NOTARY_READ_MAX ? w.limit : NOTARY_READ_MAX, on_read, a);
}

void admin_dossier(struct request *q) {
        struct store_sandbox row;
        struct reading *a;

        if (request_row(q, &row) < 0)
                return;
        a = reading_new(q);
        if (a)
                scribe_dossier(q->d->scribe, row.tenant, row.id, on_read, a);
        store_sandbox_done(&row);
}

/* --- check --- */

static void on_checked(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct reading *a = arg;
        struct json *o;

        if (!a->q)
                return;
        a->q->holder = NULL;
        if (failed) {
                reply_header(a->q, "Retry-After", "1");
                reply_error(a->q, failed->code == -ENOENT ? 404 : 503,
                            failed->code == -ENOENT ? "not_found" : "unavailable", "check: %s",
                            failed->code == -ENOENT ? "the sandbox is gone" : "it cannot be read now; try again");
                return;
        }
        o = json_new_object();
        json_set_str(o, "sandbox", a->q->sandbox);
        json_set_bool(o, "drift", reply->check.drift);
        json_set_str(o, "control", reply->check.drift ? reply->check.control : NULL);
        json_set_str(o, "found", reply->check.drift ? reply->check.found : NULL);
        reply_json(a->q, 200, o);
}

void admin_check(struct request *q) {
        struct box *b = request_box(q);
        struct reading *a = b ? calloc(1, sizeof(*a)) : NULL;

        if (a) {
                (void) str_copy(q->sandbox, sizeof(q->sandbox), b->id);
                request_hold(q, &a->q);
                warden_ask(q->d->warden, WP_CHECK, b->id, on_checked, a);
        } else if (b) {
                reply_error(q, 500, "internal", "out of memory");
        }
}
