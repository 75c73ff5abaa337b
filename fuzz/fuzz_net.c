/*
 * fuzz_net.c - lines of a host pattern, a name, a method, a path and an address: what is read has one spelling, and the
 * stages of a decision agree with each other.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

enum { INPUT_MAX = 4096, LINES = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
        if (!ok)
                abort();
}

static void rule_donep(struct net_rule *r) {
        net_rule_done(r);
}

/* A pattern that is taken is written, read and written again the same. */
static void pattern(const char *text) {
        CLEANUP(rule_donep) struct net_rule one = { 0 }, two = { 0 };
        char first[HOST_NAME + 4], second[HOST_NAME + 4];
        struct err err = { 0 };

        if (net_rule_host(&one, text, &err) < 0) {
                must(err.msg[0]);
                return;
        }
        net_rule_text(&one, first);
        must(net_rule_host(&two, first, &err) == 0);
        net_rule_text(&two, second);
        must(str_eq(first, second));
        must(net_rule_has_name(&one, one.host) == (one.kind != NET_BELOW));
}

static void path(const char *text) {
        struct net_path one, two;

        if (net_path_read(text, &one) < 0 || one.n > POLICY_NET_PATH)
                return;
        must(net_path_read(one.kept, &two) == 0);
        must(str_eq(one.kept, two.kept) && str_eq(one.bare, two.bare));
        must(net_path_below(one.kept, &one, true));
}

static bool allowed(const struct policy_egress *e, const struct policy_net_request *q, enum policy_net_stage stage) {
        struct policy_net_request at = *q;
        struct policy_net_verdict v;

        at.stage = stage;
        if (stage == POLICY_NET_NAME || stage == POLICY_NET_CONNECT)
                at.address = NULL; /* not known yet */
        policy_net_eval(e, &at, &v);
        must(v.allowed == !*v.code);
        must(v.allowed || !v.needs_http);
        return v.allowed;
}

static void decide(const char *lines[LINES]) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        CLEANUP(rule_donep) struct net_rule rule = { 0 }, with_path = { 0 };
        static struct policy p;
        char name[HOST_NAME];
        struct addr address;
        struct err err = { 0 };
        bool has_address = addr_parse(lines[4], &address) == 0;
        struct policy_net_request q = { .name = name,
                                        .port = 443,
                                        .method = lines[2],
                                        .path = lines[3],
                                        .address = has_address ? &address : NULL };

        policy_default(&p);
        p.net = net_new();
        if (!p.net || host_canonical(lines[1], strlen(lines[1]), name) < 0 ||
            net_rule_host(&rule, lines[0], &err) < 0 || net_rule_host(&with_path, lines[0], &err) < 0 ||
            net_rule_path(&with_path, "/x/", &err) < 0 || net_add(p.net, true, &rule, &err) < 0 ||
            net_add(p.net, false, &with_path, &err) < 0) {
                policy_done(&p);
                return;
        }
        must(policy_egress_new(&p, NULL, NULL, 0, &e, &err) == 0);
        must(allowed(e, &q, POLICY_NET_NAME) == net_rule_has_name(&e->net->allow.at[0], name));
        if (allowed(e, &q, POLICY_NET_HTTP))
                must(allowed(e, &q, POLICY_NET_CONNECT) && allowed(e, &q, POLICY_NET_NAME));
        if (has_address && allowed(e, &q, POLICY_NET_ADDRESS))
                must(addr_classify(&address) == ADDR_PUBLIC && allowed(e, &q, POLICY_NET_CONNECT));
        policy_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *lines[LINES] = { "", "", "", "", "" };
        char text[INPUT_MAX + 1], *at = text;

        if (size > INPUT_MAX || memchr(data, 0, size))
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        for (size_t i = 0; at && i < LINES; i++) {
                lines[i] = at;
                at = strchr(at, '\n');
                if (at)
                        *at++ = '\0';
        }
        pattern(lines[0]);
        pattern(lines[1]);
        path(lines[3]);
        decide(lines);
        return 0;
}
