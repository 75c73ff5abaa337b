/*
 * netns_msg.c - what is sent to the kernel to make the namespace of a plan: links, addresses and routes in one send,
 * the rules in one batch, which takes effect whole or not at all. Pure.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "sandbox/child.h"
#include "sandbox/netns.h"
#include "sandbox/nl.h"

enum { LOOPBACK = 1, CREATE = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK };

static int family_of(uint8_t four_or_six) {
        return four_or_six == 4 ? AF_INET : AF_INET6;
}

/* The bytes of an address; returns how many. The plan's own addresses always parse. */
static size_t address_bytes(uint8_t four_or_six, const char *text, uint8_t dst[16]) {
        (void) inet_pton(family_of(four_or_six), text, dst);
        return four_or_six == 4 ? 4 : 16;
}

static void link_up(struct nl *n) {
        const struct ifinfomsg up = { .ifi_index = LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };

        nl_message(n, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &up, sizeof(up));
}

static void address_add(struct nl *n, const struct plan_net_address *a) {
        uint8_t bytes[16];
        size_t len = address_bytes(a->family, a->address, bytes);
        const struct ifaddrmsg head = {
                .ifa_family = (uint8_t) family_of(a->family),
                .ifa_prefixlen = (uint8_t) (len * 8),
                .ifa_flags = IFA_F_NODAD,
                .ifa_scope = RT_SCOPE_UNIVERSE,
                .ifa_index = LOOPBACK,
        };

        nl_message(n, RTM_NEWADDR, CREATE | NLM_F_EXCL, &head, sizeof(head));
        nl_put(n, IFA_LOCAL, bytes, len);
        nl_put(n, IFA_ADDRESS, bytes, len);
}

/* Table local, and no other: elsewhere the kernel would drop its own resets (docs/decisions/014). */
static void route_add(struct nl *n, uint8_t family, const struct plan_net_address *source) {
        const struct rtmsg head = {
                .rtm_family = (uint8_t) family_of(family),
                .rtm_table = RT_TABLE_LOCAL,
                .rtm_protocol = RTPROT_STATIC,
                .rtm_scope = family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                .rtm_type = RTN_LOCAL,
        };
        uint8_t bytes[16];

        nl_message(n, RTM_NEWROUTE, CREATE | NLM_F_EXCL, &head, sizeof(head));
        nl_put_u32(n, RTA_OIF, LOOPBACK);
        if (family == 4)
                nl_put(n, RTA_PREFSRC, bytes, address_bytes(4, source->address, bytes));
}

/* Test hook: something that is not in the plan. */
static void links_weaken(struct nl *n, const struct netns_job *job) {
        const struct ifinfomsg link = { 0 };
        const struct rtmsg route = {
                .rtm_family = AF_INET,
                .rtm_dst_len = 24,
                .rtm_table = RT_TABLE_MAIN,
                .rtm_protocol = RTPROT_STATIC,
                .rtm_type = RTN_UNICAST,
        };
        static const uint8_t somewhere[4] = { 192, 0, 2, 0 };
        size_t at;

        if (WEAK(job, WEAKEN_NET_ADDRESS))
                address_add(n, &(struct plan_net_address){ 4, "10.200.0.77" });
        if (WEAK(job, WEAKEN_NET_ROUTE)) {
                nl_message(n, RTM_NEWROUTE, CREATE, &route, sizeof(route));
                nl_put(n, RTA_DST, somewhere, sizeof(somewhere));
                nl_put_u32(n, RTA_OIF, LOOPBACK);
        }
        if (WEAK(job, WEAKEN_NET_LINK)) {
                nl_message(n, RTM_NEWLINK, CREATE, &link, sizeof(link));
                nl_put_str(n, IFLA_IFNAME, "extra");
                at = nl_nest(n, IFLA_LINKINFO);
                nl_put_str(n, IFLA_INFO_KIND, "bridge");
                nl_end(n, at);
        }
}

static void links_fill(const struct plan_net *net, const struct netns_job *job, struct nl *n) {
        link_up(n);
        for (size_t i = 0; i < PLAN_NET_ADDRESSES; i++)
                address_add(n, &net->addresses[i]);
        for (size_t i = 0; i < PLAN_NET_ROUTES - (WEAK(job, WEAKEN_NET_ANYIP) ? 1 : 0); i++)
                route_add(n, net->routes[i], &net->addresses[i]);
        links_weaken(n, job);
}

/* --- rules --- */

static void filter_message(struct nl *n, uint16_t type, uint16_t flags) {
        const struct nfgenmsg head = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

        nl_message(n, (uint16_t) (NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_REQUEST | flags, &head, sizeof(head));
}

static void batch_message(struct nl *n, uint16_t type) {
        const struct nfgenmsg head = { .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES) };

        nl_message(n, type, NLM_F_REQUEST, &head, sizeof(head));
}

static void chain_add(struct nl *n, const struct plan_net_chain_of *c) {
        bool arriving = str_eq(c->hook, "prerouting");
        size_t at;

        filter_message(n, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
        nl_put_str(n, NFTA_CHAIN_TABLE, PLAN_NET_TABLE);
        nl_put_str(n, NFTA_CHAIN_NAME, c->name);
        at = nl_nest(n, NFTA_CHAIN_HOOK);
        nl_put_be32(n, NFTA_HOOK_HOOKNUM, arriving ? NF_INET_PRE_ROUTING : NF_INET_LOCAL_OUT);
        nl_put_be32(n, NFTA_HOOK_PRIORITY, (uint32_t) c->priority);
        nl_end(n, at);
        nl_put_be32(n, NFTA_CHAIN_POLICY, str_eq(c->policy, "drop") ? NF_DROP : NF_ACCEPT);
        nl_put_str(n, NFTA_CHAIN_TYPE, "filter");
}

struct expression {
        size_t element, data;
};

static struct expression expression_begin(struct nl *n, const char *name) {
        struct expression e;

        e.element = nl_nest(n, NFTA_LIST_ELEM);
        nl_put_str(n, NFTA_EXPR_NAME, name);
        e.data = nl_nest(n, NFTA_EXPR_DATA);
        return e;
}

static void expression_end(struct nl *n, struct expression e) {
        nl_end(n, e.data);
        nl_end(n, e.element);
}

static void data_put(struct nl *n, uint16_t type, const void *p, size_t len) {
        size_t at = nl_nest(n, type);

        nl_put(n, NFTA_DATA_VALUE, p, len);
        nl_end(n, at);
}

static void compare(struct nl *n, const void *p, size_t len) {
        struct expression e = expression_begin(n, "cmp");

        nl_put_be32(n, NFTA_CMP_SREG, NFT_REG_1);
        nl_put_be32(n, NFTA_CMP_OP, NFT_CMP_EQ);
        data_put(n, NFTA_CMP_DATA, p, len);
        expression_end(n, e);
}

static void match_meta(struct nl *n, uint32_t key, uint8_t value) {
        struct expression e = expression_begin(n, "meta");

        nl_put_be32(n, NFTA_META_DREG, NFT_REG_1);
        nl_put_be32(n, NFTA_META_KEY, key);
        expression_end(n, e);
        compare(n, &value, 1);
}

static void match_payload(struct nl *n, uint32_t base, uint32_t offset, const void *p, size_t len) {
        struct expression e = expression_begin(n, "payload");

        nl_put_be32(n, NFTA_PAYLOAD_DREG, NFT_REG_1);
        nl_put_be32(n, NFTA_PAYLOAD_BASE, base);
        nl_put_be32(n, NFTA_PAYLOAD_OFFSET, offset);
        nl_put_be32(n, NFTA_PAYLOAD_LEN, (uint32_t) len);
        expression_end(n, e);
        compare(n, p, len);
}

static void load(struct nl *n, uint32_t reg, const void *p, size_t len) {
        struct expression e = expression_begin(n, "immediate");

        nl_put_be32(n, NFTA_IMMEDIATE_DREG, reg);
        data_put(n, NFTA_IMMEDIATE_DATA, p, len);
        expression_end(n, e);
}

static void steer(struct nl *n, const struct plan_net_rule *r) {
        uint16_t port = htons(r->steer_port);
        struct expression e;
        uint8_t bytes[16];

        load(n, NFT_REG_1, bytes, address_bytes(r->family, r->steer, bytes));
        load(n, NFT_REG_2, &port, sizeof(port));
        e = expression_begin(n, "tproxy");
        nl_put_be32(n, NFTA_TPROXY_FAMILY, r->family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
        nl_put_be32(n, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
        nl_put_be32(n, NFTA_TPROXY_REG_PORT, NFT_REG_2);
        expression_end(n, e);
}

static void accept_packet(struct nl *n) {
        struct expression e = expression_begin(n, "immediate");
        size_t data, verdict;

        nl_put_be32(n, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = nl_nest(n, NFTA_IMMEDIATE_DATA);
        verdict = nl_nest(n, NFTA_DATA_VERDICT);
        nl_put_be32(n, NFTA_VERDICT_CODE, NF_ACCEPT);
        nl_end(n, verdict);
        nl_end(n, data);
        expression_end(n, e);
}

static void rule_add(struct nl *n, const struct plan_net *net, const struct plan_net_rule *r, bool last) {
        enum { DESTINATION4 = 16, DESTINATION6 = 24, DESTINATION_PORT = 2 }; /* offsets in their headers */
        uint16_t port = htons(r->port);
        uint8_t bytes[16];
        size_t list;

        filter_message(n, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | (last ? NLM_F_ACK : 0));
        nl_put_str(n, NFTA_RULE_TABLE, PLAN_NET_TABLE);
        nl_put_str(n, NFTA_RULE_CHAIN, net->chains[r->chain].name);
        list = nl_nest(n, NFTA_RULE_EXPRESSIONS);
        if (r->family)
                match_meta(n, NFT_META_NFPROTO, r->family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
        if (r->address) {
                (void) address_bytes(r->family, r->address, bytes);
                match_payload(n, NFT_PAYLOAD_NETWORK_HEADER, r->family == 4 ? DESTINATION4 : DESTINATION6, bytes,
                              r->prefix / 8);
        }
        if (r->protocol)
                match_meta(n, NFT_META_L4PROTO, r->protocol);
        if (r->port)
                match_payload(n, NFT_PAYLOAD_TRANSPORT_HEADER, DESTINATION_PORT, &port, sizeof(port));
        if (r->steer)
                steer(n, r);
        else
                accept_packet(n);
        nl_end(n, list);
}

static void rules_fill(const struct plan_net *net, const struct netns_job *job, struct nl *n) {
        batch_message(n, NFNL_MSG_BATCH_BEGIN);
        filter_message(n, NFT_MSG_NEWTABLE, NLM_F_CREATE);
        nl_put_str(n, NFTA_TABLE_NAME, PLAN_NET_TABLE);
        for (size_t i = 0; i < PLAN_NET_CHAINS; i++) {
                struct plan_net_chain_of chain = net->chains[i];

                if (WEAK(job, WEAKEN_NET_CHAIN))
                        chain.policy = "accept";
                chain_add(n, &chain);
        }
        for (size_t i = 0; i < PLAN_NET_RULES; i++) {
                struct plan_net_rule rule = net->rules[i];

                if (WEAK(job, WEAKEN_NET_RULE) && i + 1 == PLAN_NET_RULES)
                        rule.port = 0;
                rule_add(n, net, &rule, i + 1 == PLAN_NET_RULES);
        }
}

/* --- sockets --- */

static struct netns_socket socket_of(uint8_t family, uint8_t protocol, const char *address, uint16_t port) {
        struct netns_socket s = {
                .family = family_of(family),
                .type = protocol == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM,
        };

        if (family == 4) {
                s.n_address = sizeof(s.address.v4);
                s.address.v4.sin_family = AF_INET;
                s.address.v4.sin_port = htons(port);
                (void) inet_pton(AF_INET, address, &s.address.v4.sin_addr);
        } else {
                s.n_address = sizeof(s.address.v6);
                s.address.v6.sin6_family = AF_INET6;
                s.address.v6.sin6_port = htons(port);
                (void) inet_pton(AF_INET6, address, &s.address.v6.sin6_addr);
        }
        return s;
}

int netns_prepare(const struct plan_net *net, enum sandbox_weaken weaken, struct netns *made, struct netns_job *ret,
                  struct err *err) {
        struct nl links = nl_to(ret->links, sizeof(ret->links)), rules = nl_to(ret->rules, sizeof(ret->rules));

        ret->weaken = weaken;
        ret->step = "";
        ret->made = made;
        netns_none(made);
        links_fill(net, ret, &links);
        ret->link_messages = links.seq;
        rules_fill(net, ret, &rules);
        ret->rule_messages = rules.seq;
        batch_message(&rules, NFNL_MSG_BATCH_END);
        if (links.bad || rules.bad)
                return err_set(err, -ENOBUFS, ERR_INTERNAL, "network namespace: the plan's rules do not fit");
        ret->n_links = links.len;
        ret->n_rules = rules.len;
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++) {
                const struct plan_net_socket *s = &net->sockets[i];

                ret->sockets[i] = socket_of(s->family, s->protocol, s->address, s->port);
                ret->sockets[i].listens = s->protocol == IPPROTO_TCP;
                if (WEAK(ret, WEAKEN_NET_LISTENER) && i == PLAN_NET_TCP)
                        ret->sockets[i].address.v6.sin6_port = htons(1);
        }
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++) {
                const struct plan_net_canary *c = &net->canaries[i];

                ret->canaries[i] = socket_of(c->family, c->protocol, c->address, c->port);
                if (WEAK(ret, WEAKEN_NET_CANARY) && i == 0)
                        ret->canaries[i] = socket_of(4, IPPROTO_TCP, "127.0.0.1", NETNS_WEAK_PORT);
        }
        return 0;
}
