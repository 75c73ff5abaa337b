/* options.h - the network half of the words of `gabion run`. Private to cli/. */
#pragma once

#include <stddef.h>

#include "policy/net.h"

struct err;
struct policy;
struct run_options;

enum {
        CLI_NET = 512,
        CLI_ALLOW,
        CLI_CEILING,
        CLI_RESOLVE,
        CLI_UPSTREAM,
        CLI_BIND,
        CLI_CA_BUNDLE,
        CLI_EGRESS_LOG,
        CLI_NET_END,
};

struct net_words {
        const char *net, *ceiling;
        const char *allow[POLICY_NET_RULES];
        size_t n_allow;
        const char *resolve[POLICY_NET_RESOLVE];
        size_t n_resolve;
};

/* One option, CLI_NET to CLI_NET_END. -1: go on; else an exit code, and the error is said. */
int cli_net_take(int key, const char *arg, struct net_words *w, struct run_options *o);
/* What the words mean, over what the policy file said. */
int cli_net_fill(const struct net_words *w, struct policy *p, struct run_options *o, struct err *err);
/* Where the egress log of this machine (root) or user is. */
const char *cli_egress_log(void);
