/*
 * wardenproto.h - requests to the warden, and what it answers: bodies of src/ipc messages. Pure.
 *
 * docs/protocol/warden.md says what each does. Everything is fixed in size or bounded here; a policy and the variables
 * of a sandbox come as sealed memory (ipc_blob_make()). Strings are `str` of base/wr.h. Sandbox ids are the daemon's:
 * ID_LEN characters of a-z and 0-9.
 * layers: allow-long every message, and what each has
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/id.h"

struct rd;
struct wr;

enum {
        WP_TENANT = 64, /* with its NUL, like the next three */
        WP_HOSTNAME = 64,
        WP_PATH = 108,
        WP_TEXT = 96,
        WP_FOUND = 200,
        WP_POLICY_BYTES = 262144, /* blob: canonical JSON */
        WP_ENV_BYTES = 60 * 1024, /* blob: NAME=value, each with its NUL */
        WP_LISTED = 24,           /* in one reply */
        WP_POOL_MAX = 256,        /* ready sandboxes of one kind */
        WP_ADDRESS = 48,          /* with its NUL */
        WP_RECORDS_MAX = 32,      /* in one reply */
        WP_RECORD = 3200,         /* one attempt of a sandbox, JSON, with its NUL */
};

enum wp_type {
        /* wp_create; descriptors: policy, variables. Reply: wp_created, when it is ready; of one from a pool with
         * sealed memory as of WP_STATEMENT, if that was asked for */
        WP_CREATE = 1,
        WP_KILL = 2,      /* id. Reply: wp_end, when everything of it is gone */
        WP_FREEZE = 3,    /* id. Reply: empty, when it has reached that state */
        WP_THAW = 4,      /* id */
        WP_USAGE = 5,     /* id. Reply: wp_usage */
        WP_LIST = 6,      /* u32 first slot. Reply: wp_list */
        WP_EVIDENCE = 7,  /* id. Reply: empty, with sealed memory: the statement, canonical JSON */
        WP_SUBSCRIBE = 8, /* empty, once. Replies: wp_event, one each, from now on */
        WP_LAUNCH = 9,    /* id, u32 uid inside. Reply: empty, when commands of that user can start */
        WP_POOL = 10,     /* u32 how many; descriptor: policy. Reply: empty. 0 ends that pool */
        WP_STATUS = 11,   /* empty. Reply: wp_status */
        /* With a network; the ceiling is a policy document of which only the network counts. */
        WP_CREATE_NET = 12, /* wp_create, address; descriptors: policy, variables, ceiling. Reply as of WP_CREATE */
        WP_POOL_NET = 13,   /* u32 how many; descriptors: policy, ceiling. Reply: empty */
        WP_NETWORK = 14,    /* wp_network; descriptors: policy, ceiling. Reply: hash of the policy that is in force */
        WP_RECORDS = 15,    /* empty. Reply, when there are some: attempts of sandboxes */
        WP_STATEMENT = 20,  /* id. Reply: wp_hashes, with sealed memory: evidence, plan and policy as one JSON object */
        WP_CHECK = 21,      /* id. Reply: wp_check, when it was read and compared with its plan */
        WP_TYPES
};

enum wp_from { WP_ANY, WP_POOL_ONLY, WP_COLD_ONLY, WP_FROMS };
enum wp_state { WP_MAKING, WP_POOLED, WP_RUNNING, WP_FROZEN, WP_ENDING, WP_STATES };
/* By request; its memory; nobody knows; it broke a rule of its policy. */
enum wp_reason { WP_KILLED, WP_OOM, WP_LOST, WP_POLICY, WP_REASONS };
enum wp_kind { WP_ENDED, WP_DENIED, WP_DRIFTED, WP_KINDS };
enum wp_action { WP_WARNS, WP_FREEZES, WP_KILLS, WP_ACTIONS }; /* what was done about a drift */

struct wp_create {
        char id[ID_TEXT], tenant[WP_TENANT];
        char hostname[WP_HOSTNAME]; /* "": the default */
        uint8_t from;               /* a ready one if there is, or only that, or none of those */
};

struct wp_hashes {
        char evidence[HASH_TEXT], plan[HASH_TEXT];
};

struct wp_created {
        bool from_pool;
        uint32_t slot, pid; /* pid of the agent, on the host */
        uint64_t took_us;
        char socket[WP_PATH]; /* of the agent; belongs to the user that asked */
        char policy[HASH_TEXT];
        struct wp_hashes read_back;
};

struct wp_usage {
        uint64_t memory_bytes, memory_cache_bytes, memory_peak_bytes, memory_limit_bytes;
        uint64_t cpu_us, tasks, oom_kills, pids_refused;
        uint64_t disk_bytes, disk_limit_bytes;
};

struct wp_listed {
        char id[ID_TEXT], tenant[WP_TENANT];
        uint8_t state;
        uint32_t slot, pid;
        uint64_t created_ms; /* since 1970 */
};

struct wp_list {
        uint16_t n;
        uint32_t next; /* slot to go on from; 0: that was all */
        struct wp_listed boxes[WP_LISTED];
};

struct wp_end {
        uint8_t reason;
        uint64_t memory_peak_bytes, cpu_us, oom_kills;
};

struct wp_event {
        uint8_t kind;
        char id[ID_TEXT], tenant[WP_TENANT];
        struct wp_end end;    /* WP_ENDED */
        char text[WP_TEXT];   /* WP_DENIED: the refused call. WP_DRIFTED: the control */
        uint32_t suppressed;  /* WP_DENIED: not told any more: the sandbox asked too often */
        char found[WP_FOUND]; /* WP_DRIFTED */
        uint8_t action;       /* WP_DRIFTED: enum wp_action */
};

struct wp_check {
        bool drift;
        char control[WP_TEXT], found[WP_FOUND]; /* then */
};

/* Rules of a living sandbox are replaced. */
struct wp_network {
        char id[ID_TEXT];
        bool drop; /* also for connections that are open */
};

struct wp_status {
        uint32_t running, making, queued, pooled, pool_wanted, ending;
};

/* Encoders write a body; w->bad if it does not fit. Decoders take all of it: 0, or -EBADMSG. */
void wp_put_id(struct wr *w, const char *id);
void wp_put_create(struct wr *w, const struct wp_create *c);
/* bind: the address its connections come from; "": the server's. */
void wp_put_create_net(struct wr *w, const struct wp_create *c, const char *bind);
void wp_put_created(struct wr *w, const struct wp_created *c);
void wp_put_usage(struct wr *w, const struct wp_usage *u);
void wp_put_list(struct wr *w, const struct wp_list *l);
void wp_put_launch(struct wr *w, const char *id, uint32_t uid);
void wp_put_end(struct wr *w, const struct wp_end *e);
void wp_put_event(struct wr *w, const struct wp_event *e);
void wp_put_check(struct wr *w, const struct wp_check *c);
void wp_put_status(struct wr *w, const struct wp_status *s);
void wp_put_network(struct wr *w, const struct wp_network *n);
void wp_put_hash(struct wr *w, const char hash[HASH_TEXT]);
void wp_put_hashes(struct wr *w, const struct wp_hashes *h);
/* How many attempts were forgotten because nobody asked; then each that fits: false, and nothing written, when one does
 * not. */
void wp_put_lost(struct wr *w, uint32_t lost);
bool wp_put_record(struct wr *w, const char id[ID_TEXT], const char *json);
int wp_get_id(struct rd *r, char id[ID_TEXT]);
int wp_get_u32(struct rd *r, uint32_t *ret);
int wp_get_create(struct rd *r, struct wp_create *ret);
int wp_get_create_net(struct rd *r, struct wp_create *ret, char bind[WP_ADDRESS]);
int wp_get_created(struct rd *r, struct wp_created *ret);
int wp_get_usage(struct rd *r, struct wp_usage *ret);
int wp_get_list(struct rd *r, struct wp_list *ret);
int wp_get_launch(struct rd *r, char id[ID_TEXT], uint32_t *ret_uid);
int wp_get_end(struct rd *r, struct wp_end *ret);
int wp_get_event(struct rd *r, struct wp_event *ret);
int wp_get_check(struct rd *r, struct wp_check *ret);
int wp_get_status(struct rd *r, struct wp_status *ret);
int wp_get_network(struct rd *r, struct wp_network *ret);
int wp_get_hash(struct rd *r, char hash[HASH_TEXT]);
int wp_get_hashes(struct rd *r, struct wp_hashes *ret);
struct wp_records {
        uint32_t lost, n;
        struct {
                char id[ID_TEXT];
                char json[WP_RECORD]; /* not looked at */
        } at[WP_RECORDS_MAX];
};
int wp_get_records(struct rd *r, struct wp_records *ret);

/* The variables in a blob: checks each NAME=value and calls fn, if any. Their number, or -EBADMSG. */
int wp_env_each(const char *p, size_t n, void (*fn)(void *arg, const char *var), void *arg);
