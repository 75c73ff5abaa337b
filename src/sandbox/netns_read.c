/*
 * netns_read.c - links, addresses, routes and rules of a namespace, compared with the plan.
 *
 * Invariant: everything that is there is either planned or made by the kernel for loopback itself; and everything
 * planned is there once. Rules are compared attribute by attribute with those that were sent, because only the kernel
 * knows what it made of them.
 */
#include "sandbox/netns_read.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

enum { LOOPBACK = 1, DEPTH = 6, FAMILY_ROUTERS = 128 }; /* multicast routers have families of their own from there */

struct comparison {
        struct nl_bytes left; /* messages not yet looked at */
        const struct plan_net *net;
        struct nl_bytes planned;
        struct err *err;
};

static int differs(const struct comparison *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int differs(const struct comparison *c, const char *fmt, ...) {
        char text[160];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        return err_set(c->err, -EBADE, ERR_DENIED, "%s", text);
}

/* The next message; its head, of the size that this kind has, and its attributes. 1, 0 or negative. */
static int next(struct comparison *c, void *head, size_t n_head, struct nl_bytes *ret) {
        uint16_t type;
        int r = nl_next_message(&c->left, &type, ret);

        memset(head, 0, n_head);
        if (r <= 0)
                return r == 0 ? 0 : differs(c, "the kernel's answer is malformed");
        if (ret->n < n_head)
                return differs(c, "the kernel's answer is too short");
        memcpy(head, ret->p, n_head);
        (void) nl_skip(ret, n_head);
        return 1;
}

static int links(struct comparison *c) {
        struct ifinfomsg head;
        struct nl_bytes attrs;
        unsigned n = 0;
        int r;

        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                struct nl_bytes name = nl_find(attrs, IFLA_IFNAME);

                if (head.ifi_index != LOOPBACK || !(head.ifi_flags & IFF_LOOPBACK))
                        return differs(c, "there is an interface '%.*s'", (int) (name.n < 16 ? name.n : 15),
                                       name.p ? (const char *) name.p : "?");
                if (!(head.ifi_flags & IFF_UP))
                        return differs(c, "loopback is down");
                n++;
        }
        return r < 0 ? r : n == 1 ? 0 : differs(c, "%u loopback interfaces", n);
}

static void address_text(int family, struct nl_bytes a, char dst[INET6_ADDRSTRLEN]) {
        size_t want = family == AF_INET ? 4 : 16;

        if (!a.p || a.n != want || !inet_ntop(family, a.p, dst, INET6_ADDRSTRLEN))
                (void) str_copy(dst, INET6_ADDRSTRLEN, "?");
}

static int addresses(struct comparison *c) {
        struct {
                int family, bits;
                const char *text;
                unsigned seen;
        } want[PLAN_NET_ADDRESSES + 2] = { { AF_INET, 8, "127.0.0.1", 0 }, { AF_INET6, 128, "::1", 0 } };
        char text[INET6_ADDRSTRLEN];
        struct ifaddrmsg head;
        struct nl_bytes attrs;
        int r;

        for (size_t i = 0; i < PLAN_NET_ADDRESSES; i++) {
                want[i + 2].family = c->net->addresses[i].family == 4 ? AF_INET : AF_INET6;
                want[i + 2].bits = c->net->addresses[i].family == 4 ? 32 : 128;
                want[i + 2].text = c->net->addresses[i].address;
        }
        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                size_t i = 0;

                address_text(head.ifa_family, nl_find(attrs, IFA_ADDRESS), text);
                while (i < ARRAY_SIZE(want) && !(want[i].family == head.ifa_family &&
                                                 want[i].bits == head.ifa_prefixlen && str_eq(want[i].text, text)))
                        i++;
                if (i == ARRAY_SIZE(want) || head.ifa_index != LOOPBACK || want[i].seen++)
                        return differs(c, "there is an address %s/%u", text, head.ifa_prefixlen);
        }
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(want); i++)
                if (want[i].seen == 0)
                        return differs(c, "there is no address %s", want[i].text);
        return r;
}

static bool route_is_planned(const struct rtmsg *head, struct nl_bytes attrs) {
        return head->rtm_dst_len == 0 && head->rtm_src_len == 0 && head->rtm_type == RTN_LOCAL &&
               nl_u32(nl_find(attrs, RTA_TABLE), head->rtm_table) == RT_TABLE_LOCAL;
}

static int routes(struct comparison *c) {
        unsigned seen[PLAN_NET_ROUTES] = { 0 };
        char text[INET6_ADDRSTRLEN];
        struct nl_bytes attrs;
        struct rtmsg head;
        int r;

        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                size_t i = 0;

                address_text(head.rtm_family, nl_find(attrs, RTA_DST), text);
                if (nl_u32(nl_find(attrs, RTA_OIF), 0) != LOOPBACK || nl_find(attrs, RTA_GATEWAY).p ||
                    nl_find(attrs, RTA_VIA).p || nl_find(attrs, RTA_MULTIPATH).p || nl_find(attrs, RTA_ENCAP).p)
                        return differs(c, "there is a route to %s/%u by another way", text, head.rtm_dst_len);
                if (head.rtm_protocol == RTPROT_KERNEL || (head.rtm_flags & RTM_F_CLONED))
                        continue; /* made by itself for loopback */
                while (i < PLAN_NET_ROUTES && (c->net->routes[i] == 4 ? AF_INET : AF_INET6) != head.rtm_family)
                        i++;
                if (i == PLAN_NET_ROUTES || !route_is_planned(&head, attrs) || seen[i]++)
                        return differs(c, "there is a route to %s/%u", text, head.rtm_dst_len);
        }
        for (size_t i = 0; r == 0 && i < PLAN_NET_ROUTES; i++)
                if (seen[i] == 0)
                        return differs(c, "addresses of IPv%u are not local", c->net->routes[i]);
        return r;
}

/* The kernel's own: first the table local, then main, then, for IPv4, default. */
static int routing_rules(struct comparison *c) {
        static const struct {
                uint32_t priority, table;
        } own[] = { { 0, RT_TABLE_LOCAL }, { 32766, RT_TABLE_MAIN }, { 32767, RT_TABLE_DEFAULT } };
        struct fib_rule_hdr head;
        struct nl_bytes attrs;
        int r;

        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                uint32_t priority = nl_u32(nl_find(attrs, FRA_PRIORITY), 0);
                uint32_t table = nl_u32(nl_find(attrs, FRA_TABLE), head.table);
                size_t i = 0;

                if (head.family >= FAMILY_ROUTERS)
                        continue;
                while (i < ARRAY_SIZE(own) && (own[i].priority != priority || own[i].table != table))
                        i++;
                if (i == ARRAY_SIZE(own) || head.action != FR_ACT_TO_TBL || head.src_len || head.dst_len || head.tos)
                        return differs(c, "there is a routing rule %u to table %u", priority, table);
        }
        return r;
}

/* --- rules of nftables --- */

static int tables(struct comparison *c) {
        struct nfgenmsg head;
        struct nl_bytes attrs;
        unsigned n = 0;
        int r;

        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                struct nl_bytes name = nl_find(attrs, NFTA_TABLE_NAME);

                if (head.nfgen_family != NFPROTO_INET || !nl_is_str(name, PLAN_NET_TABLE))
                        return differs(c, "there is a table '%.*s'", (int) (name.n < 32 ? name.n : 31),
                                       name.p ? (const char *) name.p : "?");
                /* In use by its chains and by nothing else: no set, object or flow table hides in it. */
                if (nl_be32(nl_find(attrs, NFTA_TABLE_FLAGS), 0) != 0 ||
                    nl_be32(nl_find(attrs, NFTA_TABLE_USE), 0) != PLAN_NET_CHAINS)
                        return differs(c, "the table is switched off, or holds more than the planned chains");
                n++;
        }
        return r < 0 ? r : n == 1 ? 0 : differs(c, "the table is missing");
}

static bool chain_is(const struct plan_net_chain_of *want, struct nl_bytes attrs) {
        struct nl_bytes hook = nl_find(attrs, NFTA_CHAIN_HOOK);
        uint32_t number = str_eq(want->hook, "prerouting") ? NF_INET_PRE_ROUTING : NF_INET_LOCAL_OUT;

        return nl_is_str(nl_find(attrs, NFTA_CHAIN_TABLE), PLAN_NET_TABLE) &&
               nl_is_str(nl_find(attrs, NFTA_CHAIN_NAME), want->name) &&
               nl_is_str(nl_find(attrs, NFTA_CHAIN_TYPE), "filter") &&
               nl_be32(nl_find(hook, NFTA_HOOK_HOOKNUM), UINT32_MAX) == number &&
               nl_be32(nl_find(hook, NFTA_HOOK_PRIORITY), INT32_MAX) == (uint32_t) want->priority &&
               nl_be32(nl_find(attrs, NFTA_CHAIN_POLICY), UINT32_MAX) ==
                       (str_eq(want->policy, "drop") ? NF_DROP : NF_ACCEPT);
}

static int chains(struct comparison *c) {
        unsigned seen[PLAN_NET_CHAINS] = { 0 };
        struct nfgenmsg head;
        struct nl_bytes attrs;
        int r;

        while ((r = next(c, &head, sizeof(head), &attrs)) == 1) {
                size_t i = 0;

                while (i < PLAN_NET_CHAINS &&
                       !(head.nfgen_family == NFPROTO_INET && chain_is(&c->net->chains[i], attrs)))
                        i++;
                if (i == PLAN_NET_CHAINS || seen[i]++)
                        return differs(c, "there is a chain that is not in the plan");
        }
        for (size_t i = 0; r == 0 && i < PLAN_NET_CHAINS; i++)
                if (seen[i] == 0)
                        return differs(c, "the chain '%s' is missing", c->net->chains[i].name);
        return r;
}

static size_t count(struct nl_bytes list) {
        struct nl_bytes a;
        uint16_t type;
        size_t n = 0;

        while (nl_next(&list, &type, &a) == 1)
                n++;
        return n;
}

static bool same(struct nl_bytes a, struct nl_bytes b, unsigned depth);

/* The same attributes with the same values, in whatever order. */
static bool same_set(struct nl_bytes a, struct nl_bytes b, unsigned depth) {
        struct nl_bytes rest = a, x;
        uint16_t type;
        int r;

        if (count(a) != count(b))
                return false;
        while ((r = nl_next(&rest, &type, &x)) == 1) {
                struct nl_bytes y = nl_find(b, type);

                if (!y.p || !same(x, y, depth))
                        return false;
        }
        return r == 0;
}

/* Bytes that are the same, or that are attributes and the same as such: the kernel may mark nests in its own way. */
static bool same(struct nl_bytes a, struct nl_bytes b, unsigned depth) {
        if (nl_is(a, b.p, b.n))
                return true;
        return depth > 0 && a.n == b.n && count(a) > 0 && same_set(a, b, depth - 1);
}

/* Expressions are a list: order matters. */
static bool same_expressions(struct nl_bytes a, struct nl_bytes b) {
        struct nl_bytes x, y;
        uint16_t type;
        int r;

        while ((r = nl_next(&a, &type, &x)) == 1)
                if (nl_next(&b, &type, &y) != 1 || !same_set(x, y, DEPTH))
                        return false;
        return r == 0 && b.n == 0;
}

/* The next rule of the batch that was sent. */
static bool planned_rule(struct nl_bytes *left, struct nl_bytes *ret) {
        uint16_t type;

        while (nl_next_message(left, &type, ret) == 1)
                if (type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
                        return nl_skip(ret, sizeof(struct nfgenmsg)) == 0;
        return false;
}

static int rules(struct comparison *c) {
        struct nl_bytes attrs, want;
        struct nfgenmsg head;
        unsigned n = 0;
        int r;

        for (; (r = next(c, &head, sizeof(head), &attrs)) == 1; n++) {
                struct nl_bytes chain = nl_find(attrs, NFTA_RULE_CHAIN);

                if (!planned_rule(&c->planned, &want))
                        return differs(c, "there is a rule more than planned");
                if (head.nfgen_family != NFPROTO_INET || !nl_is_str(nl_find(attrs, NFTA_RULE_TABLE), PLAN_NET_TABLE) ||
                    !same(chain, nl_find(want, NFTA_RULE_CHAIN), 0) ||
                    !same_expressions(nl_find(want, NFTA_RULE_EXPRESSIONS), nl_find(attrs, NFTA_RULE_EXPRESSIONS)))
                        return differs(c, "rule %u is another than planned", n + 1);
        }
        if (r == 0 && planned_rule(&c->planned, &want))
                return differs(c, "rule %u is missing", n + 1);
        return r;
}

static const struct {
        const char *control;
        int (*fn)(struct comparison *c);
} table[NETNS_DUMPS] = {
        [NETNS_LINKS] = { "network interfaces", links }, [NETNS_ADDRESSES] = { "network addresses", addresses },
        [NETNS_ROUTES] = { "network routes", routes },   [NETNS_ROUTING_RULES] = { "network routes", routing_rules },
        [NETNS_TABLES] = { "network rules", tables },    [NETNS_CHAINS] = { "network rules", chains },
        [NETNS_RULES] = { "network rules", rules },
};

const char *netns_control(enum netns_dump which) {
        return table[which].control;
}

int netns_compare(enum netns_dump which, struct nl_bytes all, const struct plan_net *net, struct nl_bytes planned,
                  struct err *err) {
        struct comparison c = { .left = all, .net = net, .planned = planned, .err = err };

        return table[which].fn(&c);
}
