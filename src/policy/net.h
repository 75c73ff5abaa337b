/*
 * net.h - the network half of a policy: rules, presets, budgets, and the pure decision about one connection.
 *
 * A decision has stages, since less is known early: the name of a DNS query, then name and port, then the address that
 * the name resolved to, then method and path of a request. A later stage repeats the earlier ones. Order within a
 * stage: floor, deny, allow, default; once for the sandbox's policy and once for the ceiling. Both must allow; nothing
 * is merged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/host.h"

struct err;
struct json;
struct policy;
struct policy_net; /* the rules; opaque. A policy without network rules has none (NULL): everything is denied */

enum {
        POLICY_NET_RULES = 256,            /* of one list, after presets */
        POLICY_NET_PORTS = 16,             /* ranges of one rule */
        POLICY_NET_METHODS = 16,           /* of one rule */
        POLICY_NET_PATHS = 16,             /* of one rule */
        POLICY_NET_PATH = 256,             /* one path prefix with its NUL */
        POLICY_NET_RULE = 48,              /* "ceiling:allow[255]", with its NUL */
        POLICY_NET_RESOLVE = 64,           /* --resolve options */
        POLICY_EGRESS_BYTES = 1024 * 1024, /* an egress document */
};

/* --- a decision --- */

enum policy_net_stage {
        POLICY_NET_NAME,    /* name: may it be resolved, for whatever port */
        POLICY_NET_CONNECT, /* name and port; or, for a literal address, name = NULL, address and port */
        POLICY_NET_ADDRESS, /* as before, with the address that is about to be dialled */
        POLICY_NET_HTTP,    /* as before, with method and path; the address may be NULL if it was judged already */
};

struct policy_net_request {
        enum policy_net_stage stage;
        const char *name; /* host_canonical(); NULL: the sandbox dialled a literal address */
        uint16_t port;
        const struct addr *address;
        const char *method, *path; /* as in the request; path with or without query */
};

enum policy_net_side { POLICY_NET_SANDBOX, POLICY_NET_CEILING, POLICY_NET_FLOOR };

struct policy_net_verdict {
        bool allowed;
        bool needs_http;            /* allowed so far, but requests have to be judged: HTTP, or TLS that is opened */
        enum policy_net_side side;  /* who denied; SANDBOX when allowed */
        const char *code;           /* denied: "net.name_not_allowed", ...; allowed: "" */
        char rule[POLICY_NET_RULE]; /* "default" "allow[2]" "deny[0]" "floor:metadata" "ceiling:default" ... */
        char ceiling_rule[POLICY_NET_RULE]; /* allowed: what the ceiling said, "" without one */
        const char *path; /* HTTP: the prefix of the rule that decided; NULL: none. Borrowed from the policy */
};

const char *policy_net_side_name(enum policy_net_side s); /* "sandbox" "ceiling" "floor" */

/* --- what decides about one sandbox: the egress document --- */

/* The operator's --resolve: connections to name:port go to address:to_port, whatever the floor says of that address;
 * deny rules still apply. A deviation. */
struct policy_resolve {
        char name[HOST_NAME]; /* canonical */
        uint16_t port, to_port;
        struct addr address;
};

struct policy_egress {
        struct policy_net *net; /* NULL: nothing is allowed */
        bool has_ceiling;
        struct policy_net *ceiling; /* with has_ceiling, NULL means a ceiling that allows nothing */
        struct policy_resolve *resolve;
        size_t n_resolve;
        struct addr bind; /* whence its connections come; ADDR_NONE: as all others */
        char policy_hash[HASH_TEXT];
};

/* Copies what it needs. ceiling may be NULL: none. The caller owns *ret. */
int policy_egress_new(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                      size_t n, struct policy_egress **ret, struct err *err);
/* Accepts NULL; returns NULL. */
struct policy_egress *policy_egress_free(struct policy_egress *e);
void policy_egress_freep(struct policy_egress **e);
/* The document {policy, ceiling, resolve, policy_hash} that is handed to gabion-egress in a memfd. The caller frees
 * *ret. */
int policy_egress_text(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                       size_t n, char **ret, struct err *err);
/* The same with a source address of this sandbox's own. */
int policy_egress_text_from(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                            size_t n, const struct addr *bind, char **ret, struct err *err);
/* The same document decoded: strict, at most POLICY_EGRESS_BYTES; the hash must be that of the policy. */
int policy_egress_read(const char *text, size_t n, struct policy_egress **ret, struct err *err);

/* Pure and total: always fills *ret. Whatever it cannot judge (no name, a path with "..") it denies. */
void policy_net_eval(const struct policy_egress *e, const struct policy_net_request *q, struct policy_net_verdict *ret);
/* The operator's --resolve for this canonical name and port, or NULL. Not a permission: name and port are judged first.
 */
const struct policy_resolve *policy_egress_resolve(const struct policy_egress *e, const char *name, uint16_t port);

/* --- budgets: values only; egress counts --- */

enum policy_net_counter {
        POLICY_NET_CONNECTIONS, /* open at the same time */
        POLICY_NET_RATE,        /* new connections per second */
        POLICY_NET_BYTES_OUT,   /* from the sandbox, over its life */
        POLICY_NET_NAMES,       /* different names that were answered, over its life */
        POLICY_NET_COUNTERS,
};

struct policy_net_budget {
        uint64_t max[POLICY_NET_COUNTERS];
        char rule[POLICY_NET_COUNTERS]
                 [POLICY_NET_RULE]; /* "budget:names", or "ceiling:budget:names" if that is lower */
};

/* The lower of both sides for each counter. */
void policy_net_budget(const struct policy_egress *e, struct policy_net_budget *ret);

/* --- what the supervisor asks --- */

/* False: no connection can be allowed, so no egress process is needed. */
bool policy_net_any(const struct policy *p);
/* Some rule of either side needs TLS opened, so a certificate authority is needed. ceiling may be NULL. */
bool policy_net_opens_tls(const struct policy *p, const struct policy *ceiling);
/* Preset public: whatever is not denied is allowed. A deviation. */
bool policy_net_is_public(const struct policy *p);
/* The "network" member of the canonical form, {"default":"deny"} without rules; for plan and evidence. NULL: no memory.
 */
struct json *policy_net_json(const struct policy *p);

/* Where the rules of preset packages come from, a list of strings for people. NULL: no memory. */
struct json *policy_net_notes(const struct policy *p);
