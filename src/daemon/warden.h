/*
 * warden.h - the link to gabion-warden, which makes and ends sandboxes.
 *
 * Every request is answered by its callback exactly once, from the loop. While the warden is away requests fail with
 * -ECONNREFUSED; what it had not answered when it went away fails with -EPIPE, and may or may not have happened. The
 * link looks for the warden by itself, and then first compares what runs with what the store says (reconcile.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wardenproto/wardenproto.h"

struct daemon;
struct err;
struct warden;

/* What came back, by the request's type. */
struct warden_reply {
        union {
                struct wp_created created;
                struct wp_end end;
                struct wp_usage usage;
                struct wp_list list;
                char policy[HASH_TEXT];           /* WP_NETWORK */
                const struct wp_records *records; /* borrowed */
                struct wp_check check;
                struct wp_hashes hashes; /* WP_STATEMENT */
        };
        int fd; /* WP_EVIDENCE, WP_STATEMENT: sealed memory, closed after the callback; else -1 */
};
/* failed is NULL on success, and only then there is a reply. */
typedef void (*warden_fn)(void *arg, const struct err *failed, const struct warden_reply *reply);

/* on_up: it is there, or there again, and may be asked. */
int warden_new(struct daemon *d, void (*on_up)(struct daemon *d), struct warden **ret, struct err *err);
/* What is still under way fails with -ECANCELED. */
struct warden *warden_free(struct warden *w);
/* Connected, and store and warden agree. */
bool warden_is_up(const struct warden *w);
/* The comparison is done; failed: try again from the start. */
void warden_agreed(struct warden *w, const struct err *failed);

/* Any request. Takes the descriptors, also on failure; body->bad: it fails like any other. */
struct wr;
void warden_send(struct warden *w, enum wp_type type, const struct wr *body, const int *fds, size_t n_fds, warden_fn fn,
                 void *arg);

/* --- warden_ask.c --- */
struct warden_order {
        struct wp_create create;
        const char *policy;         /* canonical JSON */
        const char *ceiling, *bind; /* NULL: without a network; bind "": the server's address */
        const char *env;            /* NAME=value, each with its NUL */
        size_t n_env;
};
void warden_create(struct warden *w, const struct warden_order *o, warden_fn fn, void *arg);
/* WP_KILL, WP_USAGE, WP_EVIDENCE, WP_FREEZE, WP_THAW, WP_STATEMENT, WP_CHECK */
void warden_ask(struct warden *w, enum wp_type type, const char *id, warden_fn fn, void *arg);
/* Makes it possible that a user of the sandbox starts commands. */
void warden_launch(struct warden *w, const char *id, uint32_t uid, warden_fn fn, void *arg);
/* How many ready sandboxes of a policy there should be. */
void warden_pool(struct warden *w, uint32_t n, const char *policy, const char *ceiling, warden_fn fn, void *arg);
/* Replaces the rules of a living sandbox. */
void warden_network(struct warden *w, const struct wp_network *n, const char *policy, const char *ceiling, warden_fn fn,
                    void *arg);
/* Answered when sandboxes have tried something. */
void warden_records(struct warden *w, warden_fn fn, void *arg);
void warden_list(struct warden *w, uint32_t from_slot, warden_fn fn, void *arg);
