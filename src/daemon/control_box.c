/* control_box.c - one sandbox: look, kill, time-outs, connect. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/control.h"
#include "daemon/create.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/request.h"
#include "daemon/view.h"
#include "json/json.h"

void control_get(struct request *q) {
        struct box *b = request_box(q);
        struct store_sandbox row;
        struct err err = { 0 };

        if (!b)
                return;
        if (store_sandbox_get(q->d->store, b->tenant, b->id, &row, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        reply_json(q, 200, view_detail(q, &row));
        store_sandbox_done(&row);
}

/* --- kill --- */

struct killing {
        struct request *q; /* NULL: the client is gone */
};

static void on_ended(void *arg, const struct err *failed) {
        AUTO_FREE struct killing *k = arg;

        if (!k->q)
                return;
        k->q->holder = NULL;
        if (!failed) {
                reply_empty(k->q, 204);
                return;
        }
        reply_header(k->q, "Retry-After", "1");
        reply_error(k->q, 503, "unavailable", "the sandbox is not ended yet, but will be: %s", failed->msg);
}

void control_kill(struct request *q) {
        struct box *b = request_box(q);
        struct killing *k;

        if (!b)
                return;
        k = calloc(1, sizeof(*k));
        if (!k) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        request_hold(q, &k->q);
        box_end(b, "killed", q->auth.key.id, on_ended, k);
}

/* --- how long it lives --- */

static int move_end(struct request *q, struct box *b, uint64_t ends_ms) {
        struct json *data;
        struct err err = { 0 };
        char time[CLOCK_TEXT];

        if (box_set_end(b, ends_ms, &err) < 0) {
                reply_err(q, &err);
                return -1;
        }
        data = json_new_object();
        clock_rfc3339_at(time, ends_ms);
        json_set_str(data, "ends", time);
        json_set_str(data, "key", q->auth.key.id);
        event_note(q->d, b->tenant, b->id, "sandbox.timeout", data);
        return 0;
}

void control_timeout(struct request *q) {
        struct json *doc = request_object(q);
        struct box *b = doc ? request_box(q) : NULL;
        struct err err = { 0 };
        uint32_t s = 0;

        if (!b)
                return;
        if (create_decode_timeout(doc, 0, q->d->config.timeout_max_s, true, &s, &err) < 0)
                reply_err(q, &err);
        else if (move_end(q, b, clock_real_ms() + (uint64_t) s * 1000) == 0)
                reply_empty(q, 204);
}

void control_refresh(struct request *q) {
        struct json *doc = request_object(q);
        struct box *b = doc ? request_box(q) : NULL;
        uint32_t s = CREATE_TIMEOUT_V1;
        struct err err = { 0 };
        uint64_t ends;

        if (!b)
                return;
        if (create_decode_refresh(doc, &s, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        ends = clock_real_ms() + (uint64_t) s * 1000;
        if (ends <= b->ends_ms || move_end(q, b, ends) == 0)
                reply_empty(q, 204);
}

static void connect_box(struct request *q, bool v2) {
        struct json *doc = request_object(q);
        struct box *b = doc ? request_box(q) : NULL;
        uint32_t s = CREATE_TIMEOUT_V2;
        struct err err = { 0 };
        uint64_t ends;

        if (!b)
                return;
        if (create_decode_timeout(doc, 1, q->d->config.timeout_max_s, !v2, &s, &err) < 0) {
                reply_err(q, &err);
                return;
        }
        ends = clock_real_ms() + (uint64_t) s * 1000;
        if (ends > b->ends_ms && move_end(q, b, ends) < 0) /* it only ever lives longer by this */
                return;
        reply_json(q, 200, view_sandbox(q->d, b));
}

void control_connect_v1(struct request *q) {
        connect_box(q, false);
}

void control_connect_v2(struct request *q) {
        connect_box(q, true);
}
