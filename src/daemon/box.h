/*
 * box.h - live sandboxes: what gabiond must know of each while it lives, beside its row in the store.
 *
 * A box is there from the warden's word that the sandbox runs until its word that it is gone. It is found only while it
 * runs: from the moment its end has begun, nobody reaches it any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "daemon/auth.h"
#include "daemon/create.h"
#include "daemon/daemon.h"
#include "daemon/quota.h"
#include "envd/envd.h"
#include "store/store.h"

struct event;
struct wp_event;
struct wp_usage;

enum { BOX_SOCKET = 108 };

/* Who is told when a box is gone; failed = NULL, or why it could not be ended. */
typedef void (*box_ended_fn)(void *arg, const struct err *failed);

struct box_waiter {
        struct box_waiter *next;
        box_ended_fn fn;
        void *arg;
};

struct box {
        struct daemon *d;
        char id[ID_TEXT], tenant[ID_TEXT], name[STORE_NAME], template[STORE_NAME];
        char socket[BOX_SOCKET]; /* of its agent */
        uint64_t created_ms, ends_ms;
        struct quota_need need;
        struct {
                uint64_t ms, cpu_us, memory_bytes, cache_bytes;
                double cpu_pct;
        } looked;                  /* when its usage was read last, and what it was */
        bool private_ports;        /* connections to its ports need the traffic token */
        struct envd_target target; /* how clients reach it */
        char token[AUTH_TOKEN], traffic[AUTH_TOKEN], mask_host[CREATE_MASK_HOST];
        char *env_text; /* its variables, for those who ask; NULL after a restart */
        const char **env;
        struct {
                uint64_t since_ms; /* 0: it runs */
                char rule[64], object[256], found[200];
        } frozen; /* found.h */
        bool ending;
        char reason[STORE_REASON]; /* of its end */
        struct event *timer;
        struct box_waiter *waiters;
};

/* From a row of a sandbox that runs, whose share was taken already (quota.h, admit.h). -EEXIST, -ENOMEM. */
int box_add(struct daemon *d, const struct store_sandbox *row, const char *socket, struct box **ret, struct err *err);
/* Its variables, which are taken: n of them, each NAME=value with its NUL. */
void box_set_env(struct box *b, char *text, size_t n);
/* Its usage was read. */
void box_look(struct box *b, const struct wp_usage *u);
/* By id, or by name if a tenant is given. NULL: none that runs. tenant NULL: of any. */
struct box *box_find(const struct daemon *d, const char *tenant, const char *id_or_name);
/* By id, also one whose end has begun. */
struct box *box_any(const struct daemon *d, const char *id);
/* The reason, if its end has begun; else NULL. */
const char *box_ending(const struct daemon *d, const char *id);
/* Moves its end, in the store too. */
int box_set_end(struct box *b, uint64_t ends_ms, struct err *err);
/* Ends it: an event, then the warden, then the store. fn (may be NULL) hears of it, now or later; the box must not be
 * touched afterwards. */
void box_end(struct box *b, const char *reason, const char *by, box_ended_fn fn, void *arg);
/* Of a row that the warden confirms: a box again, which counts. */
int box_restore(struct daemon *d, const struct store_sandbox *row, struct err *err);
/* The warden does not know it: gone, whether there is a box or only a row. */
void box_lost(struct daemon *d, const char *id);
/* What the warden tells by itself. */
void box_on_event(struct daemon *d, const struct wp_event *e);
size_t box_count(const struct daemon *d);
void box_end_all(struct daemon *d, const char *reason);
/* Cuts what clients have open to sandboxes. */
void box_cut_all(struct daemon *d);
/* Forgets the table; sandboxes live on. */
void box_free_all(struct daemon *d);
