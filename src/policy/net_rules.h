/* net_rules.h - what is behind struct policy_net, for the files of this component. Messages are only the problem; the
 * caller names the place. */
#pragma once

#include "policy/net.h"

enum net_kind { NET_EXACT, NET_BELOW, NET_TREE, NET_CIDR }; /* a.b, *.a.b, **.a.b, 192.0.2.0/24 */

struct net_ports {
        uint16_t first, last;
};

struct net_rule {
        enum net_kind kind;
        char *host;            /* canonical, without stars; NULL for CIDR */
        struct addr_cidr cidr; /* CIDR only */
        struct net_ports
                ports[POLICY_NET_PORTS]; /* ascending, neither touching nor overlapping; never none in a list */
        size_t n_ports;
        char *methods[POLICY_NET_METHODS]; /* n = 0: any */
        size_t n_methods;
        char *paths[POLICY_NET_PATHS]; /* as net_path_read() writes them; n = 0: any */
        size_t n_paths;
};

struct net_list {
        struct net_rule *at;
        size_t n;
};

struct policy_net {
        bool open;     /* preset public */
        bool packages; /* preset packages, not expanded yet: no canonical form, nothing is decided */
        struct net_list allow, deny;
        uint64_t budget[POLICY_NET_COUNTERS];
        char **notes; /* where the rules of preset packages come from; for people, not part of the policy */
        size_t n_notes;
};

/* With the default budgets. NULL: no memory. */
struct policy_net *net_new(void);
/* *ret = NULL if of is. 0 or -ENOMEM. */
int net_clone(const struct policy_net *of, struct policy_net **ret);
/* Accepts NULL; returns NULL. */
struct policy_net *net_free(struct policy_net *net);
void net_freep(struct policy_net **net);
/* Says nothing that "no network" does not say. */
bool net_is_idle(const struct policy_net *net);
/* Bounds that concern all rules together. */
int net_check(const struct policy_net *net, struct err *err);
/* Takes the contents of *rule if it succeeds. Without ports, an allow rule gets 80 and 443, a deny rule every port. */
int net_add(struct policy_net *net, bool allow, struct net_rule *rule, struct err *err);
/* Beyond some hundreds they are dropped. 0 or -ENOMEM. */
int net_note(struct policy_net *net, const char *text);

void net_rule_done(struct net_rule *r);
int net_rule_host(struct net_rule *r, const char *text, struct err *err);
int net_rule_cidr(struct net_rule *r, const char *text, struct err *err);
int net_rule_port(struct net_rule *r, const char *text, struct err *err); /* "443" or "8000-8100" */
int net_rule_method(struct net_rule *r, const char *text, struct err *err);
int net_rule_path(struct net_rule *r, const char *text, struct err *err);
/* 1 to 65535, decimal, without leading zeros. */
int net_port(const char *text, uint16_t *ret);
/* The host as it is written, with its stars, or the CIDR. */
void net_rule_text(const struct net_rule *r, char dst[HOST_NAME + 4]);
bool net_rule_has_port(const struct net_rule *r, uint16_t port);
bool net_rule_has_name(const struct net_rule *r, const char *name);
static inline bool net_rule_wants_http(const struct net_rule *r) {
        return r->n_methods > 0 || r->n_paths > 0;
}

/* --- paths --- */

/* A path in normal form: no query, escapes in upper case and only where they are needed. Longer ones are cut off. */
struct net_path {
        char kept[POLICY_NET_PATH + 1]; /* %2F and %3B as they are */
        char bare[POLICY_NET_PATH + 1]; /* the same with '/' for %2F and without parameters, as some servers read it */
        size_t n;                       /* of kept, before it was cut */
};

/* -EINVAL: servers would disagree about what it means (dot segments, "//", '\', "%25", "%00", ...). */
int net_path_read(const char *text, struct net_path *ret);
/* By whole segments: "/a" has /a and /a/b, but not /ab. Strict looks only at what is certain (allow rules); otherwise
 * at whatever a server might make of it (deny rules). */
bool net_path_below(const char *prefix, const struct net_path *path, bool strict);

/* --- documents --- */

struct field_ctx;

/* The member `network` of a policy; at is the struct policy_net ** that is replaced. */
int net_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err);
uint64_t net_budget_default(enum policy_net_counter c);
/* One member of `budget` by name. */
int net_budget_set(uint64_t budget[POLICY_NET_COUNTERS], const char *name, const char *text, struct err *err);
const char *net_budget_name(enum policy_net_counter c);
