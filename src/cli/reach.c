/*
 * reach.c - `gabion reach`: what a running sandbox can reach, tried from sockets of its own namespace, and compared
 * with what its policy says.
 *
 * No byte of content is sent: a connection that egress would pass on stays open until we close it; one that it refuses
 * is reset. Names are resolved by the sandbox's own resolver.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/dnsq.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "cli/cli.h"
#include "json/json.h"
#include "policy/net.h"
#include "run/remote.h"

enum { PROBES = 64, OPEN_MS = 400, ANSWER_MS = 1000, DIFFERENT = 1, QUERY_ID = 0x7265, UNWANTED_PORT = 9 };

#define NAMESERVER "10.200.0.53"
#define OTHER_NAMESERVER "128.66.0.53" /* a range that was never given to anybody */

enum kind { BY_NAME, BY_ADDRESS, BY_DATAGRAM, BY_OTHER_RESOLVER };

struct probe {
        enum kind kind;
        char host[HOST_NAME]; /* a name, or the text of an address */
        uint16_t port;
        struct policy_net_verdict expected;
        bool reached;
        char seen[96]; /* what happened, for people */
};

struct list {
        struct probe probes[PROBES];
        size_t n;
};

static void add(struct list *l, enum kind kind, const char *host, uint16_t port) {
        struct probe *p = &l->probes[l->n];

        if (l->n == PROBES || str_copy(p->host, sizeof(p->host), host) < 0)
                return;
        p->kind = kind;
        p->port = port;
        l->n++;
}

/* A name that a pattern matches. */
static void example_of(const char *pattern, char dst[HOST_NAME]) {
        if (str_has_prefix(pattern, "**."))
                (void) str_copy(dst, HOST_NAME, pattern + 3);
        else if (str_has_prefix(pattern, "*."))
                (void) snprintf(dst, HOST_NAME, "gabion-reach.%.200s", pattern + 2);
        else
                (void) str_copy(dst, HOST_NAME, pattern);
}

/* The first port of "443", "8000-8100" or 443. */
static uint16_t port_of(const struct json *ports, uint16_t otherwise) {
        char text[32] = "";
        uint64_t v;

        if (json_len(ports) == 0 || field_text(json_at(ports, 0), text, sizeof(text)) < 0)
                return otherwise;
        text[strcspn(text, "-")] = '\0';
        return str_to_u64(text, UINT16_MAX, &v) == 0 ? (uint16_t) v : otherwise;
}

static void add_rule(struct list *l, const struct json *rule) {
        const char *host = json_get_str(rule, "host"), *cidr = json_get_str(rule, "cidr");
        uint16_t port = port_of(json_get(rule, "ports"), 443);
        char name[HOST_NAME] = "", text[ADDR_TEXT];
        struct addr_cidr c;

        if (host) {
                example_of(host, name);
                add(l, BY_NAME, name, port);
        } else if (cidr && addr_cidr_parse(cidr, &c) == 0) {
                addr_text(&c.base, text);
                add(l, BY_ADDRESS, text, port);
        }
}

static void list_fill(struct list *l, const struct json *network) {
        static const struct {
                enum kind kind;
                const char *host;
                uint16_t port;
        } always[] = {
                { BY_NAME, "gabion-reach.invalid", 443 },
                { BY_NAME, "metadata.google.internal", 80 },
                { BY_ADDRESS, "128.66.0.1", 443 },
                { BY_ADDRESS, "128.66.0.1", 853 },
                { BY_ADDRESS, "10.0.0.1", 80 },
                { BY_ADDRESS, "192.168.0.1", 80 },
                { BY_ADDRESS, "169.254.169.254", 80 },
                { BY_ADDRESS, "2001:db8::1", 443 },
                { BY_ADDRESS, "fd00:ec2::254", 80 },
                { BY_DATAGRAM, "128.66.0.1", 443 },
                { BY_DATAGRAM, "128.66.0.1", 123 },
                { BY_DATAGRAM, "2001:db8::1", 443 },
                { BY_OTHER_RESOLVER, "gabion-reach.invalid", 0 },
        };
        const struct json *allow = json_get(network, "allow"), *deny = json_get(network, "deny");
        const char *first = json_get_str(json_at(allow, 0), "host");
        char name[HOST_NAME];

        for (size_t i = 0; i < json_len(allow); i++)
                add_rule(l, json_at(allow, i));
        for (size_t i = 0; i < json_len(deny); i++)
                add_rule(l, json_at(deny, i));
        if (first) {
                example_of(first, name);
                add(l, BY_NAME, name, UNWANTED_PORT);
        }
        l->n = l->n > PROBES - ARRAY_SIZE(always) ? PROBES - ARRAY_SIZE(always) : l->n;
        for (size_t i = 0; i < ARRAY_SIZE(always); i++)
                add(l, always[i].kind, always[i].host, always[i].port);
}

static void expect(const struct policy_egress *e, struct probe *p) {
        struct policy_net_request q = { .stage = POLICY_NET_CONNECT, .port = p->port };
        struct addr a;

        switch (p->kind) {
        case BY_NAME:
                q.name = p->host;
                break;
        case BY_OTHER_RESOLVER:
                q.stage = POLICY_NET_NAME;
                q.name = p->host;
                break;
        case BY_ADDRESS:
                (void) addr_parse(p->host, &a);
                q.address = &a;
                break;
        case BY_DATAGRAM: /* below policy: there are none but to the resolver */
                p->expected = (struct policy_net_verdict){ .code = "net.protocol_not_allowed", .rule = "floor:udp" };
                return;
        }
        policy_net_eval(e, &q, &p->expected);
}

/* "name", "name:port", "address:port", "[address]:port": as in records. */
static void what_of(const struct probe *p, char *dst, size_t cap) {
        if (p->port == 0)
                (void) snprintf(dst, cap, "%s", p->host);
        else
                (void) snprintf(dst, cap, strchr(p->host, ':') ? "[%s]:%u" : "%s:%u", p->host, p->port);
}

static void see(struct probe *p, bool reached, const char *text) {
        p->reached = reached;
        (void) snprintf(p->seen, sizeof(p->seen), "%s", text);
}

static int wait_for(int fd, short events, int ms) {
        struct pollfd f = { .fd = fd, .events = events };

        return poll(&f, 1, ms) == 1 ? 1 : 0;
}

/* Asks a resolver for a name from inside. 1: an address; 0: refused; negative: the probe itself failed. */
static int resolve(int remote, const char *name, const char *nameserver, struct addr *ret, struct err *err) {
        AUTO_FD int fd = remote_socket(remote, false, true, name, err);
        struct sockaddr_storage to;
        struct addr server;
        uint8_t text[DNSQ_MAX];
        struct wr w = wr_to(text, sizeof(text));
        socklen_t len;
        ssize_t n;

        if (fd < 0)
                return fd;
        (void) addr_parse(nameserver, &server);
        len = (socklen_t) addr_to_sockaddr(&server, DNSQ_PORT, &to);
        dnsq_write(&w, QUERY_ID, name);
        if (w.bad || connect(fd, (struct sockaddr *) &to, len) < 0 || send(fd, text, w.len, 0) < 0)
                return 0;
        n = wait_for(fd, POLLIN, ANSWER_MS) ? recv(fd, text, sizeof(text), MSG_DONTWAIT) : -1;
        return n > 0 && dnsq_read(text, (size_t) n, QUERY_ID, ret) == 1;
}

/* Connects; true if the connection is still there after a moment. */
static int stays_open(int remote, const struct probe *p, const struct addr *to, struct err *err) {
        struct sockaddr_storage address;
        socklen_t len = (socklen_t) addr_to_sockaddr(to, p->port, &address);
        char what[HOST_NAME + 16], byte;
        AUTO_FD int fd = -1;

        what_of(p, what, sizeof(what));
        fd = remote_socket(remote, to->family == ADDR_V6, false, what, err);
        if (fd < 0)
                return fd;
        if (connect(fd, (struct sockaddr *) &address, len) < 0 && errno != EINPROGRESS)
                return 0;
        if (!wait_for(fd, POLLIN, OPEN_MS))
                return 1;
        return recv(fd, &byte, 1, MSG_DONTWAIT) > 0;
}

/* A connection that was closed may have been allowed, and failed further on: egress knows. */
static int verdict(int remote, struct probe *p, struct err *err) {
        CLEANUP(json_freep) struct json *record = NULL;
        AUTO_FREE char *text = NULL;
        const char *decision, *code, *side;
        char what[HOST_NAME + 16];
        int r;

        what_of(p, what, sizeof(what));
        r = remote_verdict(remote, what, &text, err);
        if (r == 0)
                r = json_parse("record", text, strlen(text), &record, err);
        if (r < 0)
                return r;
        decision = json_get_str(record, "decision");
        code = json_get_str(record, "code");
        side = json_get_str(record, "side");
        if (decision && str_eq(decision, "allow"))
                see(p, true, "allowed, but the other end does not answer");
        else if (p->expected.allowed && decision && side && str_eq(side, "floor")) {
                see(p, true, "name and port allowed; refused for the address that it resolves to");
        } else if (code)
                see(p, false, code);
        return 0;
}

static int try_tcp(int remote, struct probe *p, const struct addr *to, struct err *err) {
        int r = stays_open(remote, p, to, err);

        if (r < 0)
                return r;
        see(p, r == 1, r == 1 ? "open" : "reset");
        return r == 1 ? 0 : verdict(remote, p, err);
}

static int try_udp(int remote, struct probe *p, struct err *err) {
        struct sockaddr_storage address;
        struct addr to;
        AUTO_FD int fd = -1;
        char what[HOST_NAME + 16];
        socklen_t len;

        (void) addr_parse(p->host, &to);
        what_of(p, what, sizeof(what));
        fd = remote_socket(remote, to.family == ADDR_V6, true, what, err);
        if (fd < 0)
                return fd;
        len = (socklen_t) addr_to_sockaddr(&to, p->port, &address);
        if (sendto(fd, "", 0, 0, (struct sockaddr *) &address, len) < 0)
                see(p, false, errno == EPERM ? "refused at once (EPERM)" : strerror(errno));
        else
                see(p, true, "a datagram left");
        return 0;
}

static int try_one(int remote, struct probe *p, struct err *err) {
        struct addr to;
        int r;

        switch (p->kind) {
        case BY_DATAGRAM:
                return try_udp(remote, p, err);
        case BY_ADDRESS:
                (void) addr_parse(p->host, &to);
                return try_tcp(remote, p, &to, err);
        case BY_NAME:
        case BY_OTHER_RESOLVER:
                r = resolve(remote, p->host, p->kind == BY_NAME ? NAMESERVER : OTHER_NAMESERVER, &to, err);
                if (r < 0)
                        return r;
                if (r == 0 || p->kind == BY_OTHER_RESOLVER) {
                        see(p, r == 1, r == 1 ? "resolved" : "not resolved");
                        return 0;
                }
                return try_tcp(remote, p, &to, err);
        }
        return 0;
}

static const char *const kinds[] = { "name", "address", "datagram", "other resolver" };

static void print_table(const struct list *l) {
        (void) printf("%-15s %-44s %-8s %-24s %s\n", "KIND", "DESTINATION", "POLICY", "RULE", "SEEN");
        for (size_t i = 0; i < l->n; i++) {
                const struct probe *p = &l->probes[i];
                char what[HOST_NAME + 16];

                what_of(p, what, sizeof(what));
                (void) printf("%-15s %-44s %-8s %-24s %s%s\n", kinds[p->kind], what,
                              p->expected.allowed ? "allow" : "deny", p->expected.rule, p->seen,
                              p->reached == p->expected.allowed ? "" : "  <-- DIFFERENT");
        }
}

static int print_json(const char *sandbox, const struct list *l, size_t different) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        struct json *all = json_new_array();

        for (size_t i = 0; i < l->n; i++) {
                const struct probe *p = &l->probes[i];
                struct json *one = json_new_object();

                json_set_str(one, "kind", kinds[p->kind]);
                json_set_str(one, "host", p->host);
                if (p->port)
                        json_set_int(one, "port", p->port);
                json_set_str(one, "policy", p->expected.allowed ? "allow" : "deny");
                json_set_str(one, "rule", p->expected.rule);
                json_set_bool(one, "reached", p->reached);
                json_set_str(one, "seen", p->seen);
                json_set_bool(one, "same", p->reached == p->expected.allowed);
                json_add(all, one);
        }
        json_set_str(o, "sandbox", sandbox);
        json_set(o, "probes", all);
        json_set_int(o, "different", (int64_t) different);
        return cli_print(o, true);
}

static int reach(const char *sandbox, bool json, struct err *err) {
        static struct list l;
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        AUTO_FD int remote = remote_open(sandbox, err);
        size_t n, different = 0;
        int r = remote < 0 ? remote : remote_policy(remote, &text, &n, err);

        if (r == 0)
                r = json_parse("policy", text, n, &doc, err);
        if (r == 0)
                r = policy_egress_read(text, n, &e, err);
        if (r < 0)
                return r;
        list_fill(&l, json_get(json_get(doc, "policy"), "network"));
        for (size_t i = 0; r == 0 && i < l.n; i++) {
                expect(e, &l.probes[i]);
                r = try_one(remote, &l.probes[i], err);
                different += l.probes[i].reached != l.probes[i].expected.allowed;
        }
        if (r < 0)
                return r;
        if (json)
                return print_json(sandbox, &l, different) != 0 ? -EIO : different > 0 ? DIFFERENT : 0;
        print_table(&l);
        (void) printf("%zu tried, %zu different from the policy\n", l.n, different);
        return different > 0 ? DIFFERENT : 0;
}

int cmd_reach(int argc, char **argv) {
        bool json = argc > 1 && str_eq(argv[1], "--json");
        struct err err = { 0 };
        int r;

        if (argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))) {
                (void) printf(
                        "Usage: gabion reach [--json] ID\n\n"
                        "Tries, from inside the running sandbox ID, an example of each rule of its policy and what\n"
                        "nobody should reach: names, literal addresses, metadata, datagrams, other resolvers, IPv6.\n"
                        "Nothing is sent but the attempts themselves. Exit code 0: as the policy says; 1: different.\n");
                return 0;
        }
        if (argc == 3 && str_eq(argv[2], "--json")) {
                json = true;
                argv[2] = argv[1];
        }
        if (argc != (json ? 3 : 2))
                return cli_usage("reach", "one sandbox ID is expected");
        r = reach(argv[argc - 1], json, &err);
        return r < 0 ? cli_fail(&err) : r;
}
