/*
 * netns_read.h - what the kernel says of a network namespace, against the plan. Pure: bytes of netlink dumps in, the
 * first difference out. Private to sandbox/.
 */
#pragma once

#include "plan/plan.h"
#include "sandbox/nl.h"

struct err;

/* One after the other, in this order. */
enum netns_dump {
        NETNS_LINKS,
        NETNS_ADDRESSES,
        NETNS_ROUTES,
        NETNS_ROUTING_RULES,
        NETNS_TABLES,
        NETNS_CHAINS,
        NETNS_RULES,
        NETNS_DUMPS
};

/* What a difference in this dump is called. */
const char *netns_control(enum netns_dump which);
/* `all` holds the messages of the whole dump. planned: the batch that made the rules. 0, or -EBADE and what differs. */
int netns_compare(enum netns_dump which, struct nl_bytes all, const struct plan_net *net, struct nl_bytes planned,
                  struct err *err);
