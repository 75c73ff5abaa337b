/*
 * net.h - the network namespace of a sandbox that may reach something: no wire, every address is local, and what is
 * sent to one lands on sockets that egress holds.
 *
 * One constant value for all sandboxes: what differs between them is egress' policy, never the namespace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct policy;
struct policy_resolve;

enum {
        PLAN_NET_ADDRESSES = 2,
        PLAN_NET_ROUTES = 2,
        PLAN_NET_RULES = 14,
        PLAN_NET_SOCKETS = 3,
        PLAN_NET_CANARIES = 5,
        PLAN_NET_RULE_TEXT = 160,
};

/* What egress gets, in the order in which it gets them. */
enum { PLAN_NET_TCP, PLAN_NET_DNS4, PLAN_NET_DNS6 };

/* Where programs look for certificates; with own ones, covered by .gabion/certificates. */
#define PLAN_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

/* The same for Java, a file of the sandbox's own; and where the Java of this distribution looks, covered by it. */
#define PLAN_JAVA "etc/ssl/java.jks"
#define PLAN_JAVA_BUNDLE "/etc/ssl/certs/java/cacerts"

#define PLAN_NET_TABLE "gabion"
#define PLAN_NET_NAMESERVER "10.200.0.53"
#define PLAN_NET_CANARY_NAME "canary.gabion.invalid"

struct plan_net_address {
        uint8_t family; /* 4 or 6; all of one address only */
        const char *address;
};

enum plan_net_chain { PLAN_NET_ARRIVING, PLAN_NET_LEAVING, PLAN_NET_CHAINS };

struct plan_net_chain_of {
        const char *name, *hook;
        int priority;
        const char *priority_name, *policy;
};

/* Family and address, then protocol and port must match; 0 or NULL: whatever it is. */
struct plan_net_rule {
        enum plan_net_chain chain;
        uint8_t family;      /* 4 or 6 */
        const char *address; /* destination */
        uint8_t prefix;      /* whole bytes, as bits */
        uint8_t protocol;    /* IPPROTO_TCP, IPPROTO_UDP */
        uint16_t port;       /* destination */
        const char *steer;   /* to the socket bound there, whatever the destination; NULL: accept */
        uint16_t steer_port;
};

struct plan_net_socket {
        const char *name;
        uint8_t family, protocol;
        const char *address;
        uint16_t port;
};

/* Tried before the command starts, from sockets made in the namespace: nobody may answer. */
struct plan_net_canary {
        uint8_t family, protocol;
        const char *address;
        uint16_t port;
};

struct plan_net {
        struct plan_net_address addresses[PLAN_NET_ADDRESSES];
        uint8_t routes[PLAN_NET_ROUTES]; /* families whose every address is local, in table local */
        struct plan_net_chain_of chains[PLAN_NET_CHAINS];
        struct plan_net_rule rules[PLAN_NET_RULES];
        struct plan_net_socket sockets[PLAN_NET_SOCKETS];
        struct plan_net_canary canaries[PLAN_NET_CANARIES];
};

/* How egress goes out, and who else decides. All borrowed. */
struct plan_way_out {
        const struct policy *ceiling;         /* NULL: none */
        const struct policy_resolve *resolve; /* names that lead elsewhere: deviations */
        size_t n_resolve;
        const char *upstream_proxy, *bind, *ca_bundle; /* NULL: none */
};

const struct plan_net *plan_net(void);

/* One rule as nft(8) writes it; and all of them, as `nft list ruleset` prints them. */
void plan_net_rule_text(const struct plan_net_rule *r, char dst[PLAN_NET_RULE_TEXT]);
void plan_net_rules_text(const struct plan_net *n, struct buf *into);
/* For the plan's document. NULL: no memory. */
struct json *plan_net_json(const struct plan_net *n);
