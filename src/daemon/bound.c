/*
 * bound.c - see bound.h. What is said to a sandbox is envd's matter (src/envd); here is who it belongs to, and what of
 * it is recorded.
 *
 * Nobody is asked for an API key: the sandbox's own token is checked by envd. So what a stranger can learn from an
 * answer is that a sandbox runs whose id he knew, and no more.
 */
#include "daemon/bound.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/events.h"
#include "daemon/metrics.h"
#include "daemon/record.h"
#include "daemon/request.h"
#include "daemon/warden.h"
#include "envd/envd.h"
#include "http/server.h"
#include "json/json.h"

static const struct envd_user users[] = { { "user", "/home/user", 1000, 1000 }, { "root", "/root", 0, 0 } };

/* --- what envd tells --- */

static int note_command(struct box *b, const char *kind, const struct envd_event *ev) {
        struct json *data = json_new_object();
        struct err err = { 0 };
        int r;

        json_set_str(data, "program", ev->text);
        json_set_str(data, "user", ev->user);
        if (ev->pid)
                json_set_int(data, "pid", ev->pid);
        if (ev->kind == ENVD_EXITED)
                json_set_int(data, ev->code < 0 ? "signal" : "status", ev->code < 0 ? -ev->code : ev->code);
        r = event_emit(b->d, b->tenant, b->id, kind, data, &err);
        if (r < 0)
                log_error(&b->d->log, kind, &err);
        return r;
}

static void log_bound(struct box *b, enum log_level level, const char *message, const struct envd_event *ev) {
        struct json *more = json_new_object();

        json_set_str(more, "sandbox", b->id);
        json_set_str(more, "why", ev->text);
        if (ev->code)
                json_set_int(more, "status", ev->code);
        log_write(&b->d->log, level, message, more);
}

static int on_event(struct envd_target *t, const struct envd_event *ev, void *arg) {
        struct box *b = t->owner;
        int r;

        (void) arg;
        switch (ev->kind) {
        case ENVD_EXEC: /* no record, no command */
                metrics_count(b->d->metrics, METRIC_COMMANDS);
                r = record_command(b, ev);
                return r < 0 || note_command(b, "command.start", ev) == 0 ? r : -EIO;
        case ENVD_EXITED:
                (void) note_command(b, "command.end", ev);
                record_command_ended(b, ev);
                break;
        case ENVD_REFUSED:
                metrics_count(b->d->metrics, METRIC_BOUND_REFUSED);
                log_bound(b, LOG_INFO, "a request to a sandbox was refused", ev);
                break;
        case ENVD_AGENT:
                log_bound(b, LOG_WARNING, "an agent broke its protocol", ev);
                break;
        case ENVD_STARTED: /* the same as EXEC, a little later */
        case ENVD_FILE:
        case ENVD_LOST: /* the warden tells why, and whether it has ended */
                break;
        }
        return 0;
}

struct launching {
        struct daemon *d;
        char id[ID_TEXT];
        uint32_t uid;
};

static void on_launched(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct launching *l = arg;
        struct box *b = box_find(l->d, NULL, l->id);

        (void) reply;
        if (failed && failed->code != -EEXIST)
                log_error(&l->d->log, "a user's launcher could not be made", failed);
        if (b)
                envd_launched(l->d->envd, &b->target, l->uid, !failed || failed->code == -EEXIST ? 0 : failed->code);
}

static void launch(struct envd_target *t, uint32_t uid, void *arg) {
        struct launching *l = calloc(1, sizeof(*l));
        struct box *b = t->owner;

        (void) arg;
        if (!l) {
                envd_launched(b->d->envd, t, uid, -ENOMEM);
                return;
        }
        l->d = b->d;
        l->uid = uid;
        (void) str_copy(l->id, sizeof(l->id), b->id);
        warden_launch(b->d->warden, b->id, uid, on_launched, l);
}

static void on_usage(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct launching *l = arg;
        struct box *b = failed ? NULL : box_find(l->d, NULL, l->id);

        if (b)
                box_look(b, &reply->usage);
}

/* The numbers of the last look; another is under way for whoever asks next. */
static int usage(struct envd_target *t, struct envd_usage *ret, void *arg) {
        struct launching *l = calloc(1, sizeof(*l));
        struct box *b = t->owner;

        (void) arg;
        *ret = (struct envd_usage){ .cpu_count = (double) b->need.cpu_milli / 1000,
                                    .cpu_used_pct = b->looked.cpu_pct,
                                    .mem_total = b->need.memory_bytes,
                                    .mem_used = b->looked.memory_bytes,
                                    .mem_cache = b->looked.cache_bytes };
        if (l) {
                l->d = b->d;
                (void) str_copy(l->id, sizeof(l->id), b->id);
                warden_ask(b->d->warden, WP_USAGE, b->id, on_usage, l);
        }
        return 0;
}

/* --- answers --- */

/* The same for every part of one answer. */
static void request_id(const struct daemon *d, const struct http_conn *c, char dst[REQUEST_ID]) {
        char text[48], token[AUTH_TOKEN];

        (void) snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu64, d->started_ms, http_conn_serial(c));
        auth_token(d, "request", text, token);
        (void) snprintf(dst, REQUEST_ID, "req_%.*s", ID_LEN, token);
}

static void on_reply(struct envd_target *t, struct http_conn *c, unsigned status, struct buf *lines, void *arg) {
        char id[REQUEST_ID];

        (void) t, (void) status;
        request_id(arg, c, id);
        http_add(lines, "X-Request-Id", id);
}

/* State and last event are for those who hold the sandbox's token. */
static void on_error(struct envd_target *t, struct http_conn *c, struct json *error, void *arg) {
        struct box *b = t ? t->owner : NULL;
        struct json *facts = NULL;
        char id[REQUEST_ID];

        request_id(arg, c, id);
        json_set_str(error, "request", id);
        if (b && envd_is_trusted(http_conn_head(c), t))
                facts = reply_facts(b->d, b->tenant, b->id);
        if (facts)
                json_set(error, "sandbox", facts);
}

/* t NULL: of no sandbox. */
static void answer(struct daemon *d, struct http_conn *c, struct envd_target *t, unsigned status, const char *message) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        metrics_count(d->metrics, METRIC_BOUND_REFUSED);
        json_set_int(o, "code", status);
        json_set_str(o, "message", message);
        on_error(t, c, o, d);
        on_reply(NULL, c, status, &lines, d);
        http_add(&lines, "Content-Type", "application/json");
        http_add(&lines, "Access-Control-Allow-Origin", "*");
        if (json_text(o, false, &text, &err) < 0)
                http_reply_abort(c);
        else
                (void) http_reply(c, status, &lines, text, strlen(text), &err);
        buf_done(&lines);
}

/* --- requests --- */

/* Addresses with a signature name no sandbox where there is one port for all; the signature does. */
static struct box *find_signed(const struct daemon *d, const struct http_head *head) {
        struct box *b;
        size_t at = 0;

        while ((b = map_next(d->boxes, &at)))
                if (!b->ending && envd_is_signed(head, b->token))
                        return b;
        return NULL;
}

bool bound_serve(struct daemon *d, struct http_conn *c, const struct http_head *head) {
        uint16_t port = ENVD_PORT;
        char id[ID_TEXT];
        int r = envd_route(head, id, &port);
        struct box *b;

        if (r < 0) {
                answer(d, c, NULL, 400, "the sandbox's id or port is malformed");
                return true;
        }
        if (r == 0 && !str_eq(head->path, "/files"))
                return false;
        metrics_count(d->metrics, METRIC_BOUND);
        b = r > 0 ? box_find(d, NULL, id) : find_signed(d, head);
        if (b && b->frozen.since_ms)
                answer(d, c, &b->target, 409,
                       "the sandbox stands still: it broke a rule of its policy, or is not as planned any more");
        else if (b)
                envd_serve(d->envd, c, head, &b->target, port);
        else if (r > 0)
                envd_serve_gone(d->envd, c, head, id);
        else
                answer(d, c, NULL, 401, "no sandbox that runs has made this signature");
        return true;
}

/* --- boxes --- */

void bound_open(struct box *b, const char *network) {
        CLEANUP(json_freep) struct json *o = NULL;
        const char *mask = NULL;
        struct err err;

        if (network && json_parse("network", network, strlen(network), &o, &err) == 0) {
                b->private_ports = !json_get_bool(o, "allowPublicTraffic", true);
                mask = json_str(json_get(o, "maskRequestHost"));
        }
        auth_token(b->d, "envd", b->id, b->token);
        auth_token(b->d, "traffic", b->id, b->traffic);
        b->target = (struct envd_target){ .id = b->id,
                                          .socket = b->socket,
                                          .n_users = ARRAY_SIZE(users),
                                          .token = b->token,
                                          .traffic_token = b->private_ports ? b->traffic : NULL,
                                          .owner = b };
        memcpy(b->target.users, users, sizeof(users));
        if (mask && str_copy(b->mask_host, sizeof(b->mask_host), mask) == 0)
                b->target.mask_host = b->mask_host;
}

void bound_close(struct box *b) {
        if (b->d->envd)
                envd_drop(b->d->envd, &b->target);
}

int bound_new(struct daemon *d, struct err *err) {
        return envd_new(&d->envd,
                        &(struct envd_config){ .base = d->base,
                                               .on_event = on_event,
                                               .launch = launch,
                                               .usage = usage,
                                               .on_reply = on_reply,
                                               .on_error = on_error,
                                               .arg = d },
                        err);
}

void bound_free(struct daemon *d) {
        d->envd = envd_free(d->envd);
}
