/*
 * state.h - what the files of src/envd share: the whole, a sandbox, a client's request. Private.
 *
 * A box has lists of everything that belongs to it, and is the one owner. A call is a request between envd_serve() and
 * the http layer's on_done(); it may outlive its box, and then it has none and does nothing any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "envd/agent.h"
#include "envd/envd.h"
#include "envd/limits.h"

struct call;
struct control;
struct err;
struct event;
struct job;
struct json;
struct pool;
struct relay;
struct watcher;
TAILQ_HEAD(agent_list, agent);
TAILQ_HEAD(call_list, call);
TAILQ_HEAD(relay_list, relay);
TAILQ_HEAD(watcher_list, watcher);

struct envd {
        struct envd_config config;
        struct event *reaper;
        struct agent_list dead;
        size_t held; /* bytes of messages from clients in memory */
        uint64_t last_asked;
};

struct envd_box {
        struct envd *envd;
        struct envd_target *target;
        struct call_list calls;
        unsigned n_calls;
        struct control *control; /* NULL: not connected */
        struct pool *pool;
        struct watcher_list watchers;
        struct relay_list relays;
        unsigned n_relays;
        bool launched[ENVD_USERS], launching[ENVD_USERS];
};

/* How a kind of request is served. All but on_free may be NULL. None is called once the box is gone, but on_free. */
struct call_ops {
        size_t size; /* of the struct that begins with struct call */
        uint64_t body_max;
        void (*on_body)(struct call *c, struct evbuffer *body);
        void (*on_end)(struct call *c);
        void (*on_room)(struct call *c);
        /* The user's launcher is there, or negative: it could not be made. */
        void (*on_launched)(struct call *c, int r);
        /* The command that the owner was asked about may run, or negative: not. */
        void (*on_permitted)(struct call *c, int r);
        /* Gives back what it holds of the box, and everything else; the call itself is freed later. Once. */
        void (*on_free)(struct call *c);
};
struct call {
        TAILQ_ENTRY(call) link;
        struct envd *envd;
        struct envd_box *box; /* NULL: gone */
        struct http_conn *conn;
        const struct call_ops *ops;
        const struct envd_user *user;
        bool wants_launcher;
        unsigned relaunches;
        uint64_t asked; /* the owner was asked under this number whether a command may start; 0: it was not */
        bool permitted;
};

/* --- envd.c --- */
/* Accepts the request, for the first user; NULL: it was answered with a failure. */
void *call_new(struct envd_box *box, struct http_conn *c, const struct call_ops *ops);
/* NULL: the sandbox has no such user. */
const struct envd_user *envd_box_user(const struct envd_box *box, const char *name);
/* Something that lives on without a call began or ended. */
void envd_box_count(struct envd_box *box);
/* Tells the owner. */
int envd_box_tell(struct envd_box *box, const struct envd_event *ev);
/* The same for a call about a file: what was done with it, and how that went. */
void call_tell(struct call *c, const char *what, const char *path, int r);
/* Asks the owner for the launcher of the call's user: on_launched() follows. */
void call_launch(struct call *c);
bool call_is_launched(const struct call *c);
/* The agent refused with r at that step. True: because the launcher is gone, and another was asked for. */
bool call_relaunch(struct call *c, int r, const char *step);

/* --- answer.c: replies that are not messages of Connect. A failure to send one ends the connection by itself. --- */
struct buf;
/* Headers of every reply: CORS, the owner's. type may be NULL. */
void answer_lines(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *type,
                  struct buf *lines);
/* Takes body. */
void answer_json(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, struct json *body);
void answer_empty(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status);
/* Lets the owner add to an error. */
void answer_describe(struct envd *e, struct envd_target *t, struct http_conn *c, struct json *error);
/* {"code":status,"message":...} */
void answer_error(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
/* The same for an accepted request. */
void call_error(struct call *c, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The proxy's own failures: {"sandboxId","message","port","code"}; port 0: left out. */
void answer_gateway(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *id,
                    const char *message, uint16_t port);
/* HTTP status and words for an errno that a file call ended with. */
unsigned answer_status(int r);
const char *answer_why(int r);

/* --- what envd_serve() passes requests to --- */
void plain_envs(struct envd_box *box, struct http_conn *c);
void plain_metrics(struct envd_box *box, struct http_conn *c);
/* trusted: the access token came with it, so no signature is needed. */
void files_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, bool trusted);
void ingress_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, uint16_t port);
/* Cuts every raw stream. */
void relay_drop(struct envd_box *box);
