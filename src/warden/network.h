/*
 * network.h - the network of sandboxes that have one: the egress process, what it is told of each, and what it tells.
 * Private to src/warden.
 *
 * One gabion-egress serves all sandboxes of the warden. It is started when the first one needs it, and again when it
 * dies; meanwhile nothing listens in the sandboxes' namespaces, so connections are refused. A sandbox without a network
 * has no netbox, and none of this is done for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "state.h"

struct evidence;
struct sandbox;

/* Of a box: what egress knows. */
struct netbox {
        char id[ID_TEXT];                  /* its name at egress: the first one it had, also after a claim */
        char *document;                    /* its rules, as egress gets them */
        uint64_t netns;                    /* number of its namespace; 0: not made yet */
        uint64_t inodes[PLAN_NET_SOCKETS]; /* of the listeners */
        struct addr bind;
        unsigned canaries;     /* refusals that were recorded before it was released */
        bool own_certificates; /* it trusts egress: TLS can be opened */
        bool told;             /* egress has its listeners */
        bool live;             /* what is recorded is its own doing */
        uint64_t retry_ns;     /* not to be told before */
};

/* --- network.c --- */
/* An option of the command line, of those that begin in run/ with the same name. */
int network_option(const char *name, const char *value, struct err *err);
/* What the plan of a sandbox has to know; ceiling may be NULL. */
struct plan_way_out network_way_out(const struct policy *ceiling, const char *bind);
/* There is an egress process, or will be again. */
int network_start(struct err *err);
/* What is due: restarts, sandboxes to be told, namespaces to be made. Milliseconds until it is to be called again, -1.
 */
int network_turn(void);
/* A box gets a network: its rules, copied. */
int network_give(struct box *b, const char *document, bool own_certificates, struct err *err);
/* Of a record: the same for a sandbox that lives. */
int network_adopt(struct box *b, const struct record *rec, struct err *err);
/* Nothing may go out any more; the last records come before this returns. Safe for any box. */
void network_leave(struct box *b);
/* New rules of a living one. */
int network_update(struct box *b, const struct policy *policy, const struct policy *ceiling, bool drop,
                   char ret_hash[HASH_TEXT], struct err *err);

/* --- netorder.c: from an order to a sandbox at the gate --- */
/* The descriptor of a ceiling, and an address or "": the order's rules, and whom its sandbox trusts. */
int network_order(struct order *o, int ceiling_fd, const char *bind, struct err *err);
/* The order's box gets what the order says. */
int network_give_order(struct order *o, struct err *err);
/* For a pool: a network in which everything is denied. */
int network_order_closed(struct order *o, struct err *err);
/* Before the fork: certificates into the plan, a ready namespace into the order; and its descriptors, for the child. */
enum { NETWORK_FDS = 3 + PLAN_NET_SOCKETS + PLAN_NET_CANARIES };
int network_prepare(struct order *o, struct plan *plan, int *fds[NETWORK_FDS], size_t *ret_n, struct err *err);
/* After it: the parent's copies go. */
void network_prepared(struct order *o);
/* In the maker; each returns 0 at once without a network. Listeners to egress; refusals recorded. */
int network_hand_over(const struct plan *plan, struct sandbox *sb, struct record *rec, struct err *err);
int network_proven(const struct plan *plan, struct err *err);
/* In the warden: what the maker asks in these two. */
void network_asked(struct job *j, struct ipc_msg *m);
/* A claim: the order's rules are in force, and everything that must be refused was tried. */
int network_claim(struct box *b, const struct order *o, const struct plan *plan, struct sandbox *sb,
                  struct evidence *ev, struct err *err);

/* --- for netorder.c, of network.c --- */
struct egressctl;
struct egressctl *network_egress(void);
struct netns;
int network_namespace(struct netns *ret);
int network_certificates(struct plan *plan, struct err *err);
int network_document(const struct policy *policy, const struct policy *ceiling, const struct addr *bind, char **ret,
                     struct err *err);

/* --- netrecord.c: attempts, until the daemon has asked for them --- */
void record_keep(const char id[ID_TEXT], const char *json);
/* True while egress should wait: the daemon is there, but slow. */
bool record_full(void);
void record_ask(struct asker asker);
/* Answers whoever asked, if there is something. */
void record_pump(void);
