/*
 * envd.c - boxes, and the life of a request: whom it goes to, who may ask, what remains when client or sandbox go.
 * See state.h.
 */
#include "envd/envd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "envd/command.h"
#include "envd/rpc.h"
#include "envd/text.h"
#include "http/server.h"

static void on_reap(int fd, short what, void *arg) {
        (void) fd, (void) what;
        agent_reap(arg);
}

int envd_new(struct envd **ret, const struct envd_config *config, struct err *err) {
        struct envd *e = calloc(1, sizeof(*e));

        if (e)
                e->reaper = evtimer_new(config->base, on_reap, e);
        if (!e || !e->reaper) {
                free(e);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "envd");
        }
        e->config = *config;
        TAILQ_INIT(&e->dead);
        *ret = e;
        return 0;
}

struct envd *envd_free(struct envd *e) {
        if (!e)
                return NULL;
        agent_reap(e);
        event_free(e->reaper);
        free(e);
        return NULL;
}

/* --- boxes --- */

static struct envd_box *box_of(struct envd *e, struct envd_target *t) {
        struct envd_box *box = t->box;

        if (box)
                return box;
        box = calloc(1, sizeof(*box));
        if (!box)
                return NULL;
        box->envd = e;
        box->target = t;
        box->launched[0] = true;
        TAILQ_INIT(&box->calls);
        TAILQ_INIT(&box->watchers);
        TAILQ_INIT(&box->relays);
        if (pool_new(box) < 0) {
                free(box);
                return NULL;
        }
        t->box = box;
        return box;
}

void envd_box_count(struct envd_box *box) {
        const struct envd_config *cfg = &box->envd->config;

        if (cfg->on_activity)
                cfg->on_activity(box->target, box->n_calls + box->n_relays, cfg->arg);
}

int envd_box_tell(struct envd_box *box, const struct envd_event *ev) {
        const struct envd_config *cfg = &box->envd->config;

        return cfg->on_event ? cfg->on_event(box->target, ev, cfg->arg) : 0;
}

void call_tell(struct call *c, const char *what, const char *path, int r) {
        char text[AP_PATH_MAX + 32];
        struct envd_event ev = { .kind = ENVD_FILE, .user = c->user->name, .text = text, .code = r };

        (void) snprintf(text, sizeof(text), "%s %s", what, path);
        (void) envd_box_tell(c->box, &ev);
}

const struct envd_user *envd_box_user(const struct envd_box *box, const char *name) {
        for (size_t i = 0; i < box->target->n_users; i++)
                if (str_eq(box->target->users[i].name, name))
                        return &box->target->users[i];
        return NULL;
}

/* The call lets go of the box. */
static void detach(struct envd_box *box, struct call *c) {
        c->ops->on_free(c);
        TAILQ_REMOVE(&box->calls, c, link);
        box->n_calls--;
        c->box = NULL;
        envd_box_count(box);
}

void envd_drop(struct envd *e, struct envd_target *t) {
        struct envd_box *box = TAKE_PTR(t->box);
        struct call *c;

        (void) e;
        if (!box)
                return;
        while ((c = TAILQ_FIRST(&box->calls))) {
                detach(box, c);
                http_reply_abort(c->conn); /* the http layer frees it, by on_done() */
        }
        relay_drop(box);
        watch_drop(box);
        box->control = commands_free(box->control);
        box->pool = pool_free(box->pool);
        free(box);
}

/* --- launchers --- */

static size_t user_index(const struct call *c) {
        return (size_t) (c->user - c->box->target->users);
}

bool call_is_launched(const struct call *c) {
        return c->box->launched[user_index(c)] || !c->envd->config.launch;
}

void call_launch(struct call *c) {
        const struct envd_config *cfg = &c->envd->config;
        bool *launching = &c->box->launching[user_index(c)];

        if (!cfg->launch) {
                c->ops->on_launched(c, -ENOTCONN);
                return;
        }
        c->wants_launcher = true;
        if (*launching)
                return;
        *launching = true;
        cfg->launch(c->box->target, c->user->uid, cfg->arg);
}

bool call_relaunch(struct call *c, int r, const char *step) {
        if ((r != -ENOTCONN && r != -EPIPE) || !str_eq(step, "launcher") || !c->envd->config.launch ||
            c->relaunches == ENVD_RELAUNCHES)
                return false;
        c->relaunches++;
        c->box->launched[user_index(c)] = false;
        call_launch(c);
        return true;
}

void envd_launched(struct envd *e, struct envd_target *t, uint32_t uid, int result) {
        struct call *c, *next;

        (void) e;
        for (size_t i = 0; t->box && i < t->n_users; i++)
                if (t->users[i].uid == uid) {
                        t->box->launched[i] = result >= 0;
                        t->box->launching[i] = false;
                }
        for (c = t->box ? TAILQ_FIRST(&t->box->calls) : NULL; c; c = next) {
                next = TAILQ_NEXT(c, link);
                if (c->wants_launcher && c->user->uid == uid) {
                        c->wants_launcher = false;
                        c->ops->on_launched(c, result);
                }
        }
}

void envd_permitted(struct envd *e, struct envd_target *t, uint64_t call, int result) {
        struct call *c;

        (void) e;
        if (!t->box || call == 0)
                return;
        TAILQ_FOREACH(c, &t->box->calls, link) {
                if (c->asked != call || c->permitted)
                        continue;
                c->permitted = result >= 0;
                c->ops->on_permitted(c, result);
                return;
        }
}

/* --- requests --- */

static void on_body(struct http_conn *conn, struct evbuffer *body, void *data) {
        struct call *c = data;

        (void) conn;
        if (c->box && c->ops->on_body)
                c->ops->on_body(c, body);
}

static void on_end(struct http_conn *conn, void *data) {
        struct call *c = data;

        (void) conn;
        if (c->box && c->ops->on_end)
                c->ops->on_end(c);
}

static void on_room(struct http_conn *conn, void *data) {
        struct call *c = data;

        (void) conn;
        if (c->box && c->ops->on_room)
                c->ops->on_room(c);
}

static void on_done(struct http_conn *conn, int result, void *data) {
        struct call *c = data;

        (void) conn, (void) result;
        if (c->box)
                detach(c->box, c);
        free(c);
}

void *call_new(struct envd_box *box, struct http_conn *conn, const struct call_ops *ops) {
        static const struct http_handler handler = { on_body, on_end, on_room, on_done };
        struct call *c = box->n_calls < ENVD_CALLS ? calloc(1, ops->size) : NULL;

        if (!c) {
                answer_error(box->envd, box->target, conn, 429, "too many requests at once for this sandbox");
                return NULL;
        }
        c->envd = box->envd;
        c->box = box;
        c->conn = conn;
        c->ops = ops;
        c->user = &box->target->users[0];
        TAILQ_INSERT_TAIL(&box->calls, c, link);
        box->n_calls++;
        http_accept(conn, &handler, c, ops->body_max);
        envd_box_count(box);
        return c;
}

/* --- whom a request goes to --- */

/* RFC 9110 and Fetch: a browser asks before it sends. */
static void serve_preflight(struct envd *e, struct envd_target *t, struct http_conn *c, const struct http_head *head) {
        const char *wanted = http_header(head, "Access-Control-Request-Headers", NULL);
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };

        answer_lines(e, t, c, 204, NULL, &lines);
        http_add(&lines, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
        http_add(&lines, "Access-Control-Allow-Headers", wanted ? wanted : "*");
        http_add(&lines, "Access-Control-Max-Age", "7200");
        if (http_reply(c, 204, &lines, NULL, 0, &err) < 0)
                http_reply_abort(c);
        buf_done(&lines);
}

bool envd_is_trusted(const struct http_head *head, const struct envd_target *t) {
        const char *token = http_header(head, "X-Access-Token", NULL);

        return token && text_is_secret(token, t->token);
}

static void serve_envd(struct envd_box *box, struct http_conn *c, const struct http_head *head) {
        const struct rpc_method *m;
        bool get = str_eq(head->method, "GET");

        if (str_eq(head->method, "OPTIONS"))
                serve_preflight(box->envd, box->target, c, head);
        else if (get && str_eq(head->path, "/health"))
                answer_empty(box->envd, box->target, c, 204);
        else if (str_eq(head->path, "/files"))
                files_serve(box, c, head, envd_is_trusted(head, box->target));
        else if (!envd_is_trusted(head, box->target))
                answer_error(box->envd, box->target, c, 401, "X-Access-Token is missing or wrong");
        else if (get && str_eq(head->path, "/metrics"))
                plain_metrics(box, c);
        else if (get && str_eq(head->path, "/envs"))
                plain_envs(box, c);
        else if ((m = rpc_find(head->path)))
                rpc_serve(box, c, head, m);
        else
                answer_error(box->envd, box->target, c, 404, "there is nothing at this path");
}

void envd_serve(struct envd *e, struct http_conn *c, const struct http_head *head, struct envd_target *t,
                uint16_t port) {
        struct envd_box *box = box_of(e, t);

        if (!box)
                answer_error(e, t, c, 503, "out of memory");
        else if (port == ENVD_PORT)
                serve_envd(box, c, head);
        else
                ingress_serve(box, c, head, port);
}

void envd_serve_gone(struct envd *e, struct http_conn *c, const struct http_head *head, const char *id) {
        (void) head;
        answer_gateway(e, NULL, c, 502, id, "The sandbox was not found", 0);
}
