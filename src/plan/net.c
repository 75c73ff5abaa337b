/* net.c - the namespace of every sandbox with a network, as tables. Pure. */
#include "plan/net.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "json/json.h"

#define OWN4 "10.200.0.2"
#define OWN6 "fd00:6e77::2"
#define DNS4 "127.53.53.53"
#define DNS6 "fd00:6e77:1::53"

enum { PROXY_PORT = 15001, DNS_PORT = 53, HTTP_PORT = 80, HTTPS_PORT = 443 };

/*
 * Loopback and own addresses belong to the sandbox. TCP to whatever else is taken to the proxy, literal addresses too:
 * it refuses with a reason and a record, which the kernel could not. DNS is taken to the resolver, whichever one the
 * program wanted. Everything else is refused to its sender at once (EPERM), and nothing waits for a time-out.
 */
static const struct plan_net net = {
        .addresses = { { 4, OWN4 }, { 6, OWN6 } },
        .routes = { 4, 6 },
        .chains = { [PLAN_NET_ARRIVING] = { "arriving", "prerouting", -150, "mangle", "accept" },
                    [PLAN_NET_LEAVING] = { "leaving", "output", 0, "filter", "drop" } },
        .rules = {
                { PLAN_NET_ARRIVING, 4, "127.0.0.0", 8, 0, 0, NULL, 0 },
                { PLAN_NET_ARRIVING, 4, OWN4, 32, 0, 0, NULL, 0 },
                { PLAN_NET_ARRIVING, 6, "::1", 128, 0, 0, NULL, 0 },
                { PLAN_NET_ARRIVING, 6, OWN6, 128, 0, 0, NULL, 0 },
                { PLAN_NET_ARRIVING, 4, NULL, 0, IPPROTO_TCP, 0, "127.0.0.1", PROXY_PORT },
                { PLAN_NET_ARRIVING, 6, NULL, 0, IPPROTO_TCP, 0, "::1", PROXY_PORT },
                { PLAN_NET_ARRIVING, 4, NULL, 0, IPPROTO_UDP, DNS_PORT, DNS4, DNS_PORT },
                { PLAN_NET_ARRIVING, 6, NULL, 0, IPPROTO_UDP, DNS_PORT, DNS6, DNS_PORT },
                { PLAN_NET_LEAVING, 4, "127.0.0.0", 8, 0, 0, NULL, 0 },
                { PLAN_NET_LEAVING, 4, OWN4, 32, 0, 0, NULL, 0 },
                { PLAN_NET_LEAVING, 6, "::1", 128, 0, 0, NULL, 0 },
                { PLAN_NET_LEAVING, 6, OWN6, 128, 0, 0, NULL, 0 },
                { PLAN_NET_LEAVING, 0, NULL, 0, IPPROTO_TCP, 0, NULL, 0 },
                { PLAN_NET_LEAVING, 0, NULL, 0, IPPROTO_UDP, DNS_PORT, NULL, 0 },
        },
        .sockets = { [PLAN_NET_TCP] = { "tcp", 6, IPPROTO_TCP, "::", PROXY_PORT },
                     [PLAN_NET_DNS4] = { "dns4", 4, IPPROTO_UDP, DNS4, DNS_PORT },
                     [PLAN_NET_DNS6] = { "dns6", 6, IPPROTO_UDP, DNS6, DNS_PORT } },
        .canaries = { { 4, IPPROTO_TCP, "192.0.2.1", HTTPS_PORT },
                      { 4, IPPROTO_TCP, "169.254.169.254", HTTP_PORT },
                      { 6, IPPROTO_TCP, "2001:db8::1", HTTPS_PORT },
                      { 4, IPPROTO_UDP, PLAN_NET_NAMESERVER, DNS_PORT },
                      { 4, IPPROTO_UDP, "192.0.2.1", HTTPS_PORT } },
};

const struct plan_net *plan_net(void) {
        return &net;
}

static const char *protocol_name(uint8_t protocol) {
        return protocol == IPPROTO_TCP ? "tcp" : "udp";
}

/* The family and the address, or what follows makes the family plain. */
static int match_text(const struct plan_net_rule *r, char *dst, size_t cap) {
        const char *ip = r->family == 4 ? "ip" : "ip6";
        bool whole = r->prefix == (r->family == 4 ? 32 : 128);

        if (r->address)
                return whole ? snprintf(dst, cap, "%s daddr %s ", ip, r->address)
                             : snprintf(dst, cap, "%s daddr %s/%u ", ip, r->address, r->prefix);
        return r->family ? snprintf(dst, cap, "meta nfproto ipv%u ", r->family) : 0;
}

void plan_net_rule_text(const struct plan_net_rule *r, char dst[PLAN_NET_RULE_TEXT]) {
        char match[64] = "", protocol[48] = "", steer[80] = "accept";

        (void) match_text(r, match, sizeof(match));
        if (r->protocol && r->port)
                (void) snprintf(protocol, sizeof(protocol), "%s dport %u ", protocol_name(r->protocol), r->port);
        else if (r->protocol)
                (void) snprintf(protocol, sizeof(protocol), "meta l4proto %s ", protocol_name(r->protocol));
        if (r->steer)
                (void) snprintf(steer, sizeof(steer), r->family == 4 ? "tproxy ip to %s:%u" : "tproxy ip6 to [%s]:%u",
                                r->steer, r->steer_port);
        (void) snprintf(dst, PLAN_NET_RULE_TEXT, "%s%s%s", match, protocol, steer);
}

void plan_net_rules_text(const struct plan_net *n, struct buf *into) {
        char text[PLAN_NET_RULE_TEXT];

        buf_addf(into, "table inet %s {\n", PLAN_NET_TABLE);
        for (size_t c = 0; c < PLAN_NET_CHAINS; c++) {
                const struct plan_net_chain_of *chain = &n->chains[c];

                buf_addf(into, "%s\tchain %s {\n\t\ttype filter hook %s priority %s; policy %s;\n", c ? "\n" : "",
                         chain->name, chain->hook, chain->priority_name, chain->policy);
                for (size_t i = 0; i < PLAN_NET_RULES; i++)
                        if (n->rules[i].chain == (enum plan_net_chain) c) {
                                plan_net_rule_text(&n->rules[i], text);
                                buf_addf(into, "\t\t%s\n", text);
                        }
                buf_addf(into, "\t}\n");
        }
        buf_addf(into, "}\n");
}

static struct json *rules_json(const struct plan_net *n) {
        struct json *o = json_new_object();
        char text[PLAN_NET_RULE_TEXT];

        for (size_t c = 0; c < PLAN_NET_CHAINS; c++) {
                struct json *a = json_new_array();

                for (size_t i = 0; i < PLAN_NET_RULES; i++)
                        if (n->rules[i].chain == (enum plan_net_chain) c) {
                                plan_net_rule_text(&n->rules[i], text);
                                json_add_str(a, text);
                        }
                (void) snprintf(text, sizeof(text), "policy %s", n->chains[c].policy);
                json_add_str(a, text);
                json_set(o, n->chains[c].name, a);
        }
        return o;
}

static void add_place(struct json *a, uint8_t family, uint8_t protocol, const char *address, uint16_t port) {
        char text[80];

        (void) snprintf(text, sizeof(text), family == 4 ? "%s %s:%u" : "%s [%s]:%u", protocol_name(protocol), address,
                        port);
        json_add_str(a, text);
}

struct json *plan_net_json(const struct plan_net *n) {
        struct json *o = json_new_object(), *addresses = json_new_array(), *routes = json_new_array();
        struct json *sockets = json_new_array(), *canaries = json_new_array();
        char text[64];

        json_set_str(o, "interfaces", "lo");
        for (size_t i = 0; i < PLAN_NET_ADDRESSES; i++) {
                (void) snprintf(text, sizeof(text), "%s/%d", n->addresses[i].address,
                                n->addresses[i].family == 4 ? 32 : 128);
                json_add_str(addresses, text);
        }
        json_set(o, "addresses", addresses);
        for (size_t i = 0; i < PLAN_NET_ROUTES; i++) {
                (void) snprintf(text, sizeof(text), "local %s dev lo table local",
                                n->routes[i] == 4 ? "0.0.0.0/0" : "::/0");
                json_add_str(routes, text);
        }
        json_set(o, "routes", routes);
        json_set(o, "rules", rules_json(n));
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++)
                add_place(sockets, n->sockets[i].family, n->sockets[i].protocol, n->sockets[i].address,
                          n->sockets[i].port);
        json_set(o, "held_by_egress", sockets);
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++)
                add_place(canaries, n->canaries[i].family, n->canaries[i].protocol, n->canaries[i].address,
                          n->canaries[i].port);
        json_set(o, "canaries", canaries);
        json_set_str(o, "canary_name", PLAN_NET_CANARY_NAME);
        json_set_str(o, "sysctl", "net.ipv4.ip_unprivileged_port_start=0");
        return o;
}
