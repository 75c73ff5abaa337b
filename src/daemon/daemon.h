/*
 * daemon.h - gabiond: one loop, one thread. What its parts share. Private to daemon/.
 *
 * A part is a struct of its own with its own header; the daemon owns them all, and they find each other through it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/id.h"
#include "daemon/config.h"
#include "daemon/log.h"

/* What our envd claims to be: SDKs choose their calls by it. */
#define DAEMON_ENVD_VERSION "0.6.13"
/* The tenant of the first start; its administrators are the operators of this server. */
#define DAEMON_OPERATORS "default"

struct admit;
struct box;
struct envd;
struct event;
struct event_base;
struct events;
struct http_server;
struct map;
struct metrics;
struct quota;
struct reconcile;
struct composed_list;
struct scribe;
struct store;
struct tls_server;
struct warden;

struct daemon {
        struct config config;
        struct log log;
        struct event_base *base;
        struct store *store;
        struct http_server *http;
        struct tls_server *tls; /* NULL: nobody speaks it */
        struct map *boxes;      /* live sandboxes by id */
        struct envd *envd;      /* what is said to them */
        struct quota *quota;
        struct admit *admit;
        struct events *events;
        struct metrics *metrics;
        struct warden *warden;
        struct reconcile *reconcile;
        struct composed_list *composed; /* compose.c */
        LIST_HEAD(, making) makings;    /* control_create.c */
        struct scribe *scribe;          /* NULL: no audit log */
        uint8_t key[HASH_BYTES];        /* of tokens */
        int meminfo_fd;                 /* /proc/meminfo, opened while that was possible */
        uint64_t started_ms;
        bool stopping;
};

/* Everything but the listeners. The store and the keys must be there already. daemon_done() frees what there is. */
int daemon_open(struct daemon *d, struct err *err);
void daemon_done(struct daemon *d);
/* Serves until SIGTERM or SIGINT, and until what was under way then is over. */
int daemon_run(struct daemon *d, struct err *err);
