/* reply.c - replies and errors of the control plane. Every error names its request; one about a sandbox tells its state
 * and what happened to it last. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/found.h"
#include "daemon/request.h"
#include "daemon/view.h"
#include "http/server.h"
#include "json/json.h"

void reply_header(struct request *q, const char *name, const char *fmt, ...) {
        char value[256];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(value, sizeof(value), fmt, ap);
        va_end(ap);
        http_add(&q->headers, name, value);
}

void reply_text(struct request *q, unsigned status, const char *type, const char *text) {
        struct err err = { 0 };
        int r;

        if (!q->conn || q->status)
                return;
        q->status = status;
        http_add(&q->headers, "X-Request-Id", q->id);
        http_add(&q->headers, "Cache-Control", "no-store");
        if (type)
                http_add(&q->headers, "Content-Type", type);
        r = http_reply(q->conn, status, &q->headers, text, text ? strlen(text) : 0, &err);
        if (r == -EINVAL || r == -EMSGSIZE) { /* our own bug: a header that cannot be sent */
                log_error(&q->d->log, "reply", &err);
                (void) http_reply(q->conn, q->status = 500, NULL, NULL, 0, &err);
        }
}

int request_stream(struct request *q, const char *type, void (*on_room)(struct request *q), void *data,
                   void (*data_free)(void *data)) {
        struct err err = { 0 };
        int r;

        q->on_room = on_room;
        q->data = data;
        q->data_free = data_free;
        q->status = 200;
        http_add(&q->headers, "X-Request-Id", q->id);
        http_add(&q->headers, "Cache-Control", "no-store");
        http_add(&q->headers, "Content-Type", type);
        r = http_reply_start(q->conn, 200, &q->headers, HTTP_BODY_CHUNKED, 0, &err);
        if (r < 0)
                http_reply_abort(q->conn);
        return r;
}

void reply_empty(struct request *q, unsigned status) {
        reply_text(q, status, NULL, NULL);
}

void reply_json(struct request *q, unsigned status, struct json *body) {
        CLEANUP(json_freep) struct json *owned = body;
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        if (json_text(owned, false, &text, &err) < 0) {
                log_error(&q->d->log, "reply", &err);
                reply_text(q, 500, "application/json", "{\"code\":500,\"message\":\"out of memory\"}");
                return;
        }
        reply_text(q, status, "application/json", text);
}

struct json *reply_facts(struct daemon *d, const char *tenant, const char *id) {
        struct store_sandbox row;
        struct store_last last;
        struct json *o, *e, *why;
        const char *ending;
        char time[CLOCK_TEXT];
        struct err err;

        if (!id[0] || store_sandbox_get(d->store, tenant, id, &row, &err) < 0)
                return NULL;
        o = json_new_object();
        json_set_str(o, "id", row.id);
        ending = box_ending(d, row.id);
        why = ending ? NULL : found_why(box_any(d, row.id));
        json_set_str(o, "state", ending ? "ending" : why ? "frozen" : view_state(row.state));
        if (why)
                json_set(o, "frozen", why);
        if (ending || row.reason[0])
                json_set_str(o, "reason", ending ? ending : row.reason);
        if (store_event_last(d->store, row.id, &last, &err) == 0) {
                clock_rfc3339_at(time, last.time_ms);
                e = json_new_object();
                json_set_str(e, "kind", last.kind);
                json_set_str(e, "time", time);
                json_set_int(e, "seq", (int64_t) last.seq);
                json_set(o, "last_event", e);
        }
        store_sandbox_done(&row);
        return o;
}

static bool is_ours(const struct request *q) {
        return str_has_prefix(http_conn_head(q->conn)->path, "/gabion/");
}

void reply_error(struct request *q, unsigned status, const char *code, const char *fmt, ...) {
        struct json *o = json_new_object(), *facts, *outer;
        char message[sizeof(((struct err *) 0)->msg) + 64];
        bool ours = q->conn && is_ours(q);
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        if (ours)
                json_set_str(o, "code", code);
        else
                json_set_int(o, "code", status);
        if (!ours)
                json_set_str(o, "error_code", code);
        json_set_str(o, "message", message);
        json_set_str(o, "request", q->id);
        facts = reply_facts(q->d, q->auth.tenant.id, q->sandbox);
        if (facts)
                json_set(o, "sandbox", facts);
        if (ours) {
                outer = json_new_object();
                json_set(outer, "error", o);
                o = outer;
        }
        reply_json(q, status, o);
}

void reply_err(struct request *q, const struct err *err) {
        static const struct {
                unsigned status;
                const char *code;
        } kinds[] = {
                [ERR_INTERNAL] = { 500, "internal" }, [ERR_INVALID] = { 400, "invalid" },
                [ERR_DENIED] = { 403, "forbidden" },  [ERR_NOT_FOUND] = { 404, "not_found" },
                [ERR_BUSY] = { 409, "conflict" },     [ERR_LIMIT] = { 429, "limit" },
                [ERR_PEER] = { 502, "bad_gateway" },
        };
        unsigned kind = (unsigned) err->kind < ARRAY_SIZE(kinds) ? (unsigned) err->kind : ERR_INTERNAL;
        struct json *more;

        if (err->code == -ENOSYS) {
                reply_error(q, 501, "not_implemented", "%s", err->msg);
                return;
        }
        if (kind != ERR_INTERNAL) {
                reply_error(q, kinds[kind].status, kinds[kind].code, "%s", err->msg);
                return;
        }
        more = json_new_object();
        json_set_str(more, "request", q->id);
        json_set_str(more, "error", err->msg);
        log_write(&q->d->log, LOG_ERROR, "request failed", more);
        reply_error(q, 500, "internal", "something failed here; the server's log has the reason under this request");
}

void reply_no_sandbox(struct request *q, const char *id) {
        struct store_sandbox row;
        char time[CLOCK_TEXT];
        struct err err;

        if (store_sandbox_get(q->d->store, q->auth.tenant.id, id, &row, &err) < 0) {
                reply_error(q, 404, "not_found", "sandbox %.64s was not found", id);
                return;
        }
        if (!auth_may_template(&q->auth, row.template)) {
                reply_error(q, 404, "not_found", "sandbox %.64s was not found", id);
        } else {
                (void) str_copy(q->sandbox, sizeof(q->sandbox), row.id);
                clock_rfc3339_at(time, row.ended_ms);
                if (row.state == STORE_GONE)
                        reply_error(q, 404, "not_found", "sandbox %s was not found: it ended at %s (%s)", row.id, time,
                                    row.reason);
                else
                        reply_error(q, 404, "not_found", "sandbox %s was not found: it is %s", row.id,
                                    box_ending(q->d, row.id) ? "ending" : view_state(row.state));
        }
        store_sandbox_done(&row);
}
