/* test_net.c - what a policy with a network adds to a plan, and what one without does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "plan/plan.h"
#include "policy/net_flags.h"

static struct policy policy;
static struct plan_request request;
static struct plan_facts facts;
static struct plan plan;

static int reset(void **state) {
        (void) state;
        policy_done(&policy);
        policy_default(&policy);
        request = (struct plan_request){ 0 };
        facts = (struct plan_facts){ .landlock_abi = 6, .usr_links = { "/bin" }, .has_bundle = true };
        return 0;
}

static int done(void **state) {
        (void) state;
        policy_done(&policy);
        return 0;
}

static void allow(const char *host) {
        struct err e = { 0 };

        assert_int_equal(policy_net_flag_allow(&policy, host, &e), 0);
}

static void decode(const char *text) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err e = { 0 };

        assert_int_equal(json_parse("policy", text, strlen(text), &doc, &e), 0);
        assert_int_equal(policy_decode(doc, &policy, &e), 0);
}

static void compile(void) {
        struct err e = { 0 };

        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &e), 0);
}

static const struct plan_node *node_at(const char *path) {
        for (size_t i = 0; i < plan.n_nodes; i++)
                if (str_eq(plan.nodes[i].path, path))
                        return &plan.nodes[i];
        return NULL;
}

static const struct plan_mount *mount_at(const char *target) {
        for (size_t i = 0; i < plan.n_mounts; i++)
                if (str_eq(plan.mounts[i].target, target))
                        return &plan.mounts[i];
        return NULL;
}

static void hash(char dst[HASH_TEXT]) {
        struct err e = { 0 };

        assert_int_equal(plan_hash(&plan, dst, &e), 0);
}

static void without_rules_there_is_only_loopback(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err e = { 0 };

        (void) state;
        compile();
        assert_null(plan.net);
        assert_non_null(strstr(node_at("etc/resolv.conf")->text, "127.0.0.1"));
        assert_int_equal(plan_json(&plan, &doc, &e), 0);
        assert_string_equal(json_get_str(doc, "network"), "none: loopback only");
}

static void with_a_rule_there_is_a_namespace_and_a_resolver(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *net;
        struct err e = { 0 };

        (void) state;
        allow("api.example.com:443");
        compile();
        assert_ptr_equal(plan.net, plan_net());
        assert_string_equal(node_at("etc/resolv.conf")->text, "nameserver 10.200.0.53\n");
        assert_false(plan.own_certificates);
        assert_null(mount_at(PLAN_BUNDLE));
        assert_int_equal(plan_json(&plan, &doc, &e), 0);
        net = json_get(json_get(doc, "network"), "namespace");
        assert_int_equal(json_len(json_get(net, "addresses")), PLAN_NET_ADDRESSES);
        assert_int_equal(json_len(json_get(net, "held_by_egress")), PLAN_NET_SOCKETS);
        assert_int_equal(json_len(json_get(net, "canaries")), PLAN_NET_CANARIES);
        assert_int_equal(json_len(json_get(json_get(net, "rules"), "arriving")), 9); /* eight rules, one policy */
}

static void the_hash_covers_rules_ceiling_and_way_out(void **state) {
        static struct policy ceiling;
        char hashes[5][HASH_TEXT];

        (void) state;
        policy_default(&ceiling);
        compile();
        hash(hashes[0]);
        allow("api.example.com");
        compile();
        hash(hashes[1]);
        request.way_out.ceiling = &ceiling;
        compile();
        hash(hashes[2]);
        request.way_out.upstream_proxy = "http://proxy.example:3128";
        compile();
        hash(hashes[3]);
        request.way_out.bind = "192.0.2.7";
        compile();
        hash(hashes[4]);
        for (size_t i = 0; i < ARRAY_SIZE(hashes); i++)
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(hashes[i], hashes[k]);
}

static void opened_tls_brings_certificates_that_are_not_in_the_hash(void **state) {
        char first[HASH_TEXT], second[HASH_TEXT];

        (void) state;
        decode("{\"version\":1,\"network\":{\"allow\":[{\"host\":\"a.example.com\",\"methods\":[\"GET\"]}]}}");
        compile();
        assert_true(plan.own_certificates);
        assert_int_equal(mount_at(PLAN_BUNDLE)->kind, PLAN_OWN);
        assert_null(node_at(mount_at(PLAN_BUNDLE)->source)->text);
        assert_true(mount_at("/etc/ssl/certs") < mount_at(PLAN_BUNDLE)); /* attached before */
        plan.certificates = "one";
        hash(first);
        plan.certificates = "two";
        hash(second);
        assert_string_equal(first, second);
}

static void java_gets_them_where_it_looks(void **state) {
        (void) state;
        decode("{\"version\":1,\"network\":{\"allow\":[{\"host\":\"a.example.com\",\"methods\":[\"GET\"]}]}}");
        compile();
        assert_int_equal(node_at(PLAN_JAVA)->kind, PLAN_JAVA_STORE);
        assert_false(plan.java_looks_there);
        assert_null(mount_at(PLAN_JAVA_BUNDLE));
        facts.has_java_bundle = true;
        compile();
        assert_true(plan.java_looks_there);
        assert_string_equal(mount_at(PLAN_JAVA_BUNDLE)->source, PLAN_JAVA);
        assert_true(mount_at("/etc/ssl/certs") < mount_at(PLAN_JAVA_BUNDLE));
}

static void certificates_need_a_place(void **state) {
        struct err e = { 0 };

        (void) state;
        allow("api.example.com");
        request.way_out.ca_bundle = "/some/ca.pem";
        facts.has_bundle = false;
        assert_int_equal(plan_compile(&policy, &request, &facts, &plan, &e), -ENOENT);
        assert_non_null(strstr(e.msg, "ca-certificates"));
}

static void public_and_resolve_are_deviations(void **state) {
        struct policy_resolve to;
        struct err e = { 0 };

        (void) state;
        assert_int_equal(policy_net_flag_net(&policy, "public", &e), 0);
        assert_int_equal(policy_net_flag_resolve("a.example:443=127.0.0.1:8443", &to, &e), 0);
        request.way_out.resolve = &to;
        request.way_out.n_resolve = 1;
        compile();
        assert_int_equal(plan.n_deviations, 2);
        assert_string_equal(plan.deviations[1], "network: a.example:443 leads to 127.0.0.1 port 8443 (--resolve)");
        policy_done(&policy);
        policy_default(&policy);
        compile(); /* nothing of it without a network */
        assert_int_equal(plan.n_deviations, 0);
}

static void rules_are_written_as_nft_writes_them(void **state) {
        const struct plan_net *n = plan_net();
        CLEANUP(buf_done) struct buf all = BUF_INIT(16384);
        char text[PLAN_NET_RULE_TEXT];

        (void) state;
        plan_net_rule_text(&n->rules[0], text);
        assert_string_equal(text, "ip daddr 127.0.0.0/8 accept");
        plan_net_rule_text(&n->rules[5], text);
        assert_string_equal(text, "meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:15001");
        plan_net_rule_text(&n->rules[PLAN_NET_RULES - 1], text);
        assert_string_equal(text, "udp dport 53 accept");
        plan_net_rules_text(n, &all);
        assert_non_null(strstr(buf_str(&all), "type filter hook output priority filter; policy drop;"));
}

static void a_proxys_password_is_not_in_the_document(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err e = { 0 };

        (void) state;
        allow("api.example.com");
        request.way_out.upstream_proxy = "http://me:pass@word@proxy.example:3128";
        compile();
        assert_int_equal(plan_json(&plan, &doc, &e), 0);
        assert_string_equal(json_get_str(json_get(doc, "network"), "upstream_proxy"), "http://...@proxy.example:3128");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(without_rules_there_is_only_loopback, reset),
                cmocka_unit_test_setup(with_a_rule_there_is_a_namespace_and_a_resolver, reset),
                cmocka_unit_test_setup(the_hash_covers_rules_ceiling_and_way_out, reset),
                cmocka_unit_test_setup(opened_tls_brings_certificates_that_are_not_in_the_hash, reset),
                cmocka_unit_test_setup(java_gets_them_where_it_looks, reset),
                cmocka_unit_test_setup(certificates_need_a_place, reset),
                cmocka_unit_test_setup(public_and_resolve_are_deviations, reset),
                cmocka_unit_test_setup(rules_are_written_as_nft_writes_them, reset),
                cmocka_unit_test_setup(a_proxys_password_is_not_in_the_document, reset),
        };

        return cmocka_run_group_tests(tests, NULL, done);
}
