/*
 * envd.h - what a client says to one sandbox: commands, files and watches (E2B's envd, port 49983), and HTTP to any
 * other port of it. Everything goes through the sandbox's agent; nothing here opens a path of a sandbox.
 *
 * The owner has a struct envd_target for each live sandbox and gives it with every request. It calls envd_drop() before
 * the target or one of its texts goes away or changes. One loop, one thread. docs/internals/envd.md has the details.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct buf;
struct envd;
struct envd_box;
struct err;
struct event_base;
struct http_conn;
struct http_head;
struct json;

enum {
        ENVD_PORT = 49983,
        ENVD_USERS = 4,
        ENVD_NAME = 32,    /* a user's name, with its NUL */
        ENVD_SOCKET = 108, /* path of a socket, with its NUL */
};

/* A user of the sandbox. Only the first has a launcher from the beginning. */
struct envd_user {
        const char *name, *home;
        uint32_t uid, gid;
};

/* A live sandbox. The owner zeroes it first; texts are borrowed until envd_drop(). */
struct envd_target {
        const char *id;
        const char *socket;                 /* where its agent listens */
        struct envd_user users[ENVD_USERS]; /* [0] is the default user */
        size_t n_users;
        const char *workdir;       /* of commands that name none; NULL: the user's home */
        const char *const *env;    /* the sandbox's variables, NAME=value, as the agent has them; NULL: none */
        const char *token;         /* X-Access-Token, and the key of signatures; never NULL */
        const char *traffic_token; /* for ports other than ENVD_PORT; NULL: they are public */
        const char *mask_host;     /* Host for those ports, with ${PORT}; NULL: as the client wrote it */
        void *owner;               /* not looked at */
        struct envd_box *box;      /* envd's own */
};

/* For logs and audit: what was asked for and what came of it. Texts are borrowed for the call. */
enum envd_kind {
        ENVD_EXEC,    /* a command is about to be started: pid 0, text = program; call names it for envd_permitted() */
        ENVD_STARTED, /* pid inside; text = program */
        ENVD_EXITED,  /* the same; code: exit status, or -signal. user "": it is older than this process */
        ENVD_FILE,    /* a file call: text = its name and path; code: 0 or negative errno */
        ENVD_REFUSED, /* text = why a request was not served; code = HTTP status */
        ENVD_AGENT,   /* the agent broke its protocol: text = how. The connection was cut */
        ENVD_LOST,    /* the agent ended the connection about commands: the sandbox has probably ended */
};
struct envd_event {
        enum envd_kind kind;
        const char *user, *text; /* user: "" = none */
        uint32_t pid;
        int code;
        uint64_t call;
        uint64_t lived_ms, cpu_us, max_rss_kib; /* ENVD_EXITED; 0 = not known */
};

/* What the owner knows of a sandbox's usage, for /metrics. */
struct envd_usage {
        double cpu_count, cpu_used_pct;
        uint64_t mem_total, mem_used, mem_cache;
};

struct envd_config {
        struct event_base *base; /* borrowed */
        /* All may be NULL. None may call back into envd, but for envd_launched(). */
        /* How many requests are being served for the sandbox now; called on each change. */
        void (*on_activity)(struct envd_target *t, unsigned n_active, void *arg);
        /* ENVD_EXEC: negative refuses the command (and is told as permission_denied), 1 puts it off until
         * envd_permitted(): all but its exec is done meanwhile. Otherwise the result is ignored. */
        int (*on_event)(struct envd_target *t, const struct envd_event *ev, void *arg);
        /* The user needs a launcher (or another one): the owner asks the warden, and says how that went with
         * envd_launched(), now or later. */
        void (*launch)(struct envd_target *t, uint32_t uid, void *arg);
        /* 0, or negative: not known. */
        int (*usage)(struct envd_target *t, struct envd_usage *ret, void *arg);
        /* A reply's head is about to be written: headers may be added (a request id). t as below. */
        void (*on_reply)(struct envd_target *t, struct http_conn *c, unsigned status, struct buf *lines, void *arg);
        /* An error is about to be told: members may be added (a request id). t is NULL if there is no such sandbox. */
        void (*on_error)(struct envd_target *t, struct http_conn *c, struct json *error, void *arg);
        void *arg;
};

int envd_new(struct envd **ret, const struct envd_config *config, struct err *err);
/* Every target must have been dropped. */
struct envd *envd_free(struct envd *e);

/*
 * Whom a request is for. 1: the sandbox *id at *port, by a first label <port>-<id> of Host, else by the headers
 * E2b-Sandbox-Id and E2b-Sandbox-Port. 0: none. -EINVAL: the headers, or that label's port, are malformed: 400. Ids
 * are looked at by their letters only, so *id may be any.
 */
int envd_route(const struct http_head *head, char id[ID_TEXT], uint16_t *ret_port);
/* Is this /files with a signature (expired or not) that was made with token? For requests that envd_route() says 0 of.
 */
bool envd_is_signed(const struct http_head *head, const char *token);

/* Has the request the sandbox's own token? */
bool envd_is_trusted(const struct http_head *head, const struct envd_target *t);

/* Serves a request of on_head(): replies, or accepts it. port: as envd_route() says. */
void envd_serve(struct envd *e, struct http_conn *c, const struct http_head *head, struct envd_target *t,
                uint16_t port);
/* The same for a sandbox that does not run: 502, and CORS headers. */
void envd_serve_gone(struct envd *e, struct http_conn *c, const struct http_head *head, const char *id);

/* There is a launcher for the user now (also if there was one already), or negative: there will be none. */
void envd_launched(struct envd *e, struct envd_target *t, uint32_t uid, int result);

/* A command that was put off may start, or not (negative). */
void envd_permitted(struct envd *e, struct envd_target *t, uint64_t call, int result);

/* The sandbox has ended, or t changes: cuts every connection that is about it, in the middle (the client sees that
 * something is missing), and forgets it. The owner must answer further requests with envd_serve_gone() from before
 * this call on, if it has ended. */
void envd_drop(struct envd *e, struct envd_target *t);
