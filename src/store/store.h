/*
 * store.h - what the server must know after a restart: tenants, API keys, sandboxes, events. One SQLite file.
 *
 * Times are milliseconds since 1970. Secrets are not in here: of an API key there is its SHA-256, tokens of sandboxes
 * are derived from the server's own key. Texts are JSON where a comment says so; the store does not look into them but
 * for metadata, by which sandboxes are listed. One thread.
 * layers: allow-long four tables, and what is asked of each
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/id.h"

struct err;
struct store;

enum {
        STORE_NAME = 64,
        STORE_LIST = 256, /* a comma-separated list of names */
        STORE_HASH = 32,
        STORE_MASK = 16,
        STORE_REASON = 32,
        STORE_KIND = 32,
        STORE_PAIRS = 16, /* metadata pairs of one filter */
        STORE_SOCKET = 108,
};

/* Opens or makes the file (0600) and brings its schema up to date. A file of a newer program is refused. */
int store_open(const char *path, struct store **ret, struct err *err);
struct store *store_close(struct store *s);
void store_closep(struct store **s);
/* What changes from here on is committed together, by store_settle(). On failure nothing of it has happened. */
int store_begin(struct store *s, struct err *err);
int store_settle(struct store *s, struct err *err);
/* --- tenants --- */
struct store_quota { /* 0 = no limit of its own */
        uint32_t sandboxes, creates_per_s, cpu_milli;
        uint64_t memory_bytes, disk_bytes;
};
struct store_tenant {
        char id[ID_TEXT], name[STORE_NAME];
        bool disabled;
        uint64_t created_ms;
        struct store_quota quota;
};
typedef int (*store_tenant_fn)(void *arg, const struct store_tenant *t);
/* -EEXIST: the name is taken. */
int store_tenant_add(struct store *s, const struct store_tenant *t, struct err *err);
/* Changes everything but id and creation. -ENOENT. */
int store_tenant_update(struct store *s, const struct store_tenant *t, struct err *err);
/* By id or by name. -ENOENT. */
int store_tenant_get(struct store *s, const char *id_or_name, struct store_tenant *ret, struct err *err);
/* Stops when fn returns non-zero, and returns that. */
int store_tenant_each(struct store *s, store_tenant_fn fn, void *arg, struct err *err);
/* The ceiling is a policy document, or NULL for the operator's default. The caller frees *ret. */
int store_tenant_set_ceiling(struct store *s, const char *id, const char *json, struct err *err);
int store_tenant_ceiling(struct store *s, const char *id, char **ret, struct err *err);

/* --- API keys --- */
enum store_role { STORE_ADMIN, STORE_DEVELOPER, STORE_AUDITOR, STORE_ROLES };
struct store_key {
        char id[ID_TEXT], tenant[ID_TEXT], name[STORE_NAME];
        enum store_role role;
        char mask[STORE_MASK];                    /* what a person may see of the key */
        char verbs[STORE_LIST];                   /* "" = all of the role */
        char templates[STORE_LIST];               /* "" = all */
        uint64_t created_ms, expires_ms, used_ms; /* 0 = never */
        bool revoked;
};
typedef int (*store_key_fn)(void *arg, const struct store_key *k);
int store_key_add(struct store *s, const struct store_key *k, const uint8_t hash[STORE_HASH], struct err *err);
/* Whatever its state; the caller looks at expiry and revocation. -ENOENT. */
int store_key_find(struct store *s, const uint8_t hash[STORE_HASH], struct store_key *ret, struct err *err);
int store_key_used(struct store *s, const char *id, uint64_t now_ms, struct err *err);
/* -ENOENT if this tenant has no such key. */
int store_key_revoke(struct store *s, const char *tenant, const char *id, struct err *err);
int store_key_each(struct store *s, const char *tenant, store_key_fn fn, void *arg, struct err *err);
const char *store_role_name(enum store_role r);
/* -EINVAL. */
int store_role_parse(const char *name, enum store_role *ret);

/* --- sandboxes --- */
/* STORE_CREATING: only in what an older version has left. */
enum store_state { STORE_CREATING, STORE_RUNNING, STORE_PAUSED, STORE_GONE, STORE_STATES };
struct store_sandbox {
        char id[ID_TEXT], tenant[ID_TEXT];
        char template[STORE_NAME], name[STORE_NAME]; /* name: "" = none */
        enum store_state state;
        char reason[STORE_REASON]; /* why it is gone; "" before */
        uint64_t created_ms, ends_ms, ended_ms;
        uint32_t cpu_milli;
        uint64_t memory_bytes, disk_bytes;
        char policy_hash[HASH_TEXT];
        char socket[STORE_SOCKET]; /* of its agent */
        char *metadata;            /* JSON object of strings */
        char *policy;              /* JSON: the effective policy */
        char *network;             /* JSON: network as the client gave it, or NULL */
};
typedef int (*store_sandbox_fn)(void *arg, const struct store_sandbox *b);
/* -EEXIST: id, or a live sandbox's name of this tenant, is taken. Texts are borrowed. */
int store_sandbox_add(struct store *s, const struct store_sandbox *b, struct err *err);
/* tenant NULL: of any. A live sandbox's name, or an id in any state. -ENOENT. store_sandbox_done() frees. */
int store_sandbox_get(struct store *s, const char *tenant, const char *name_or_id, struct store_sandbox *ret,
                      struct err *err);
void store_sandbox_done(struct store_sandbox *b);
/* -ENOENT: there is none, or it is gone already: nothing leaves that state. */
int store_sandbox_move(struct store *s, const char *id, enum store_state state, const char *reason, uint64_t now_ms,
                       struct err *err);
int store_sandbox_set_end(struct store *s, const char *id, uint64_t ends_ms, struct err *err);
int store_sandbox_set_network(struct store *s, const char *id, const char *network, const char *policy,
                              const char *policy_hash, struct err *err);

struct store_filter {
        const char *tenant;   /* NULL: all */
        unsigned states;      /* BIT(enum store_state); 0: all */
        const char *template; /* NULL: any */
        uint64_t since_ms;    /* created at or after */
        bool oldest_first;
        struct {
                const char *key, *value;
        } pairs[STORE_PAIRS]; /* all must be there */
        size_t n_pairs;
        /* Where the page begins: behind this one, which need not exist any more. */
        uint64_t after_ms;
        const char *after_id; /* NULL: from the start */
        unsigned limit;       /* 0: no limit */
};
int store_sandbox_each(struct store *s, const struct store_filter *f, store_sandbox_fn fn, void *arg, struct err *err);
/* What live sandboxes of a tenant hold (NULL: of all). */
struct store_sums {
        uint64_t sandboxes, cpu_milli, memory_bytes, disk_bytes;
};
int store_sandbox_sums(struct store *s, const char *tenant, struct store_sums *ret, struct err *err);

/* --- events: what happened, for people and for followers --- */
struct store_event {
        uint64_t seq, time_ms;
        const char *tenant, *sandbox, *kind; /* sandbox: "" = none */
        const char *data;                    /* JSON object */
};
typedef int (*store_event_fn)(void *arg, const struct store_event *e);
/* seq is given by the store. It is committed with the next other change, or by store_settle(); readers see it before.
 * store_prune() keeps their number down. */
int store_event_add(struct store *s, const struct store_event *e, uint64_t *ret_seq, struct err *err);
struct store_event_filter {
        const char *tenant, *sandbox; /* NULL: all */
        uint64_t after;               /* seq of the last one known */
        unsigned limit;
};
/* Oldest first. */
int store_event_each(struct store *s, const struct store_event_filter *f, store_event_fn fn, void *arg,
                     struct err *err);
/* --- attempts of sandboxes to reach something --- */
struct store_attempt {
        const char *sandbox;
        bool denied;
        const char *data; /* JSON object */
};
/* All or none; of each sandbox the newest `keep` stay. Those of unknown sandboxes are passed over. */
int store_egress_add(struct store *s, const struct store_attempt *all, size_t n, unsigned keep, struct err *err);
typedef int (*store_egress_fn)(void *arg, uint64_t n, const char *data);
/* Oldest first; denied: only those. */
int store_egress_each(struct store *s, const char *sandbox, bool denied, store_egress_fn fn, void *arg,
                      struct err *err);

struct store_last {
        uint64_t seq, time_ms;
        char kind[STORE_KIND];
};
/* What happened last to a sandbox (NULL: at all). -ENOENT. */
int store_event_last(struct store *s, const char *sandbox, struct store_last *ret, struct err *err);
/* Drops old events and rows of sandboxes that ended before. Returns how many rows went. */
int store_prune(struct store *s, uint64_t ended_before_ms, unsigned keep_events, struct err *err);
