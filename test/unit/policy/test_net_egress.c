/* test_net_egress.c - the document for egress, budgets, what the supervisor asks, and the flags. */
#include <errno.h>

#include "base/str.h"
#include "net_help.h"

static struct policy p, ceiling;

static char *document(const struct policy *above, const struct policy_resolve *to, size_t n) {
        struct err err = { 0 };
        char *text = NULL;

        if (policy_egress_text(&p, above, to, n, &text, &err) < 0)
                fail_msg("%s", err.msg);
        return text;
}

static void what_is_written_is_read(void **state) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        AUTO_FREE char *text = NULL;
        struct policy_resolve to[2];
        struct err err = { 0 };
        char hash[HASH_TEXT];

        (void) state;
        net_accept(" {allow: [{host: a.example, ports: [443, 8000-8010], methods: [GET], paths: [/x/]}]}", &p);
        net_accept(" {preset: public, deny: [{cidr: 10.0.0.0/8}]}", &ceiling);
        assert_int_equal(policy_net_flag_resolve("A.example.:443=127.0.0.1:8443", &to[0], &err), 0);
        assert_int_equal(policy_net_flag_resolve("b.example:80=[::1]:8080", &to[1], &err), 0);
        text = document(&ceiling, to, 2);
        assert_int_equal(policy_egress_read(text, strlen(text), &e, &err), 0);
        assert_int_equal(policy_hash(&p, hash, &err), 0);
        assert_string_equal(e->policy_hash, hash);
        assert_true(e->has_ceiling && e->net && e->ceiling);
        assert_int_equal(e->n_resolve, 2);
        assert_ptr_equal(policy_egress_resolve(e, "a.example", 443), &e->resolve[0]);
        assert_int_equal(e->resolve[0].to_port, 8443);
        assert_null(policy_egress_resolve(e, "a.example", 80));
        assert_null(policy_egress_resolve(e, "c.example", 443));
        assert_int_equal(policy_egress_resolve(e, "b.example", 80)->address.family, ADDR_V6);
        policy_done(&p);
        policy_done(&ceiling);
}

static void a_sandbox_may_have_an_address_of_its_own(void **state) {
        static const char *const addresses[] = { "192.0.2.7", "2001:db8::7" };
        struct err err = { 0 };

        (void) state;
        net_accept(" {allow: [{host: a.example}]}", &p);
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
                AUTO_FREE char *text = NULL;
                struct addr from;
                char got[ADDR_TEXT];
                char *at;

                assert_int_equal(addr_parse(addresses[i], &from), 0);
                assert_int_equal(policy_egress_text_from(&p, NULL, NULL, 0, &from, &text, &err), 0);
                assert_int_equal(policy_egress_read(text, strlen(text), &e, &err), 0);
                addr_text(&e->bind, got);
                assert_string_equal(got, addresses[i]);
                e = policy_egress_free(e);
                at = strstr(text, addresses[i]);
                *at = 'x';
                assert_true(policy_egress_read(text, strlen(text), &e, &err) < 0);
                assert_non_null(strstr(err.msg, "bind"));
        }
        policy_done(&p);
}

/* A ceiling that allows nothing must not become "no ceiling" on the way. */
static void an_empty_ceiling_stays_a_ceiling(void **state) {
        struct policy_net_request q = { .stage = POLICY_NET_CONNECT, .name = "a.example", .port = 443 };
        struct err err = { 0 };

        (void) state;
        net_accept(" {allow: [{host: a.example}]}", &p);
        net_accept(" {}", &ceiling);
        for (int i = 0; i < 2; i++) {
                CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
                AUTO_FREE char *text = document(i == 0 ? NULL : &ceiling, NULL, 0);
                struct policy_net_verdict v;

                assert_int_equal(policy_egress_read(text, strlen(text), &e, &err), 0);
                assert_int_equal(e->has_ceiling, i);
                policy_net_eval(e, &q, &v);
                assert_int_equal(v.allowed, i == 0);
        }
        policy_done(&p);
}

/* What every bound lets pass must still fit one document, twice. */
static void the_largest_policies_fit_one_document(void **state) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        size_t cap = 512 * 256, n;
        AUTO_FREE char *text = NULL, *yaml = malloc(cap);
        struct err err = { 0 };

        (void) state;
        n = (size_t) snprintf(yaml, cap, " {");
        for (int list = 0; list < 2; list++) {
                n += (size_t) snprintf(yaml + n, cap - n, "%s: [", list == 0 ? "allow" : "deny");
                for (int i = 0; i < POLICY_NET_RULES; i++)
                        n += (size_t) snprintf(
                                yaml + n, cap - n,
                                "{host: \"*.h%d.example\", ports: [1, 3, 5], methods: [GET, PUT], paths: "
                                "[/a, /b]},",
                                i);
                n += (size_t) snprintf(yaml + n, cap - n, "],");
        }
        (void) snprintf(yaml + n, cap - n, "}");
        net_accept(yaml, &p);
        net_accept(yaml, &ceiling);
        text = document(&ceiling, NULL, 0);
        if (policy_egress_read(text, strlen(text), &e, &err) < 0)
                fail_msg("%s", err.msg);
        policy_done(&p);
        policy_done(&ceiling);
}

static void refuses(const char *text, const char *want) {
        struct policy_egress *e = NULL;
        struct err err = { 0 };

        assert_true(policy_egress_read(text, strlen(text), &e, &err) < 0);
        assert_null(e);
        assert_string_equal(err.msg, want);
}

static void wrong_documents_are_refused(void **state) {
        static const char zeros[] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
        char text[1024];
        AUTO_FREE char *large = calloc(1, POLICY_EGRESS_BYTES + 2);

        (void) state;
        refuses("{}", "egress document: policy: is required");
        refuses("{\"policy\":{\"version\":1},\"policy_hash\":\"x\"}", "egress document: ceiling: is required");
        refuses("{\"policy\":{\"version\":2},\"ceiling\":null,\"policy_hash\":\"x\"}",
                "egress document: policy: policy: version: must be 1");
        refuses("{\"policy\":{\"version\":1},\"ceiling\":null,\"policy_hash\":\"x\",\"more\":1}",
                "egress document: more: unknown key; allowed: policy ceiling resolve bind policy_hash");
        refuses("{\"policy\":{\"version\":1,\"network\":{\"preset\":\"packages\"}},\"ceiling\":null,\"policy_hash\":\"x\"}",
                "egress document: policy: policy: network.preset: packages is not expanded here; list the hosts");
        (void) snprintf(text, sizeof(text), "{\"policy\":{\"version\":1},\"ceiling\":null,\"policy_hash\":\"%s\"}",
                        zeros);
        refuses(text, "egress document: policy_hash: not that of the policy");
        (void) snprintf(text, sizeof(text),
                        "{\"policy\":{\"version\":1},\"ceiling\":null,\"policy_hash\":\"%s\",\"resolve\":"
                        "[{\"name\":\"A.example\",\"port\":1,\"address\":\"::1\",\"to_port\":1}]}",
                        zeros);
        refuses(text, "egress document: resolve[0].name: must be a host name");
        (void) snprintf(text, sizeof(text),
                        "{\"policy\":{\"version\":1},\"ceiling\":null,\"policy_hash\":\"%s\",\"resolve\":"
                        "[{\"name\":\"a.example\",\"port\":0,\"address\":\"::1\",\"to_port\":1}]}",
                        zeros);
        refuses(text, "egress document: resolve[0].port: must be between 1 and 65535");
        memset(large, ' ', POLICY_EGRESS_BYTES + 1);
        refuses(large, "egress document: too large");
}

static void budgets_are_the_lower_of_both(void **state) {
        struct policy_net_budget b;

        (void) state;
        for (int i = 0; i < 4; i++) {
                CLEANUP(policy_egress_freep)
                struct policy_egress *e =
                        net_egress(i == 3 ? " {}" : " {allow: [{host: a.example}], budget: {connections: 5, names: 7}}",
                                   i == 0   ? NULL
                                   : i == 1 ? " {preset: public, budget: {connections: 6, names: 3}}"
                                            : " {}",
                                   NULL);

                policy_net_budget(e, &b);
                assert_int_equal(b.max[POLICY_NET_CONNECTIONS], i < 2 ? 5 : 0);
                assert_int_equal(b.max[POLICY_NET_NAMES], i == 0 ? 7 : i == 1 ? 3 : 0);
                assert_int_equal(b.max[POLICY_NET_RATE], i < 2 ? 100 : 0);
                if (i == 1) {
                        assert_string_equal(b.rule[POLICY_NET_CONNECTIONS], "budget:connections");
                        assert_string_equal(b.rule[POLICY_NET_NAMES], "ceiling:budget:names");
                        assert_string_equal(b.rule[POLICY_NET_BYTES_OUT], "budget:bytes_out");
                }
        }
}

static void the_supervisor_knows_what_to_start(void **state) {
        static const struct {
                const char *own, *above;
                bool any, tls, is_public;
        } cases[] = {
                { " {}", NULL, false, false, false },
                { " {deny: [{host: a.example, methods: [GET]}]}", NULL, false, false, false },
                { " {allow: [{host: a.example}]}", NULL, true, false, false },
                { " {allow: [{host: a.example, paths: [/]}]}", NULL, true, true, false },
                { " {allow: [{host: a.example}], deny: [{host: a.example, methods: [GET]}]}", NULL, true, true, false },
                { " {preset: public}", NULL, true, false, true },
                { " {preset: packages}", NULL, true, false, false },
                { " {preset: public}", " {allow: [{host: a.example, methods: [GET]}]}", true, true, true },
                { " {}", " {allow: [{host: a.example, methods: [GET]}]}", false, false, false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                net_accept(cases[i].own, &p);
                net_accept(cases[i].above ? cases[i].above : " {}", &ceiling);
                assert_int_equal(policy_net_any(&p), cases[i].any);
                assert_int_equal(policy_net_opens_tls(&p, cases[i].above ? &ceiling : NULL), cases[i].tls);
                assert_int_equal(policy_net_is_public(&p), cases[i].is_public);
                policy_done(&p);
                policy_done(&ceiling);
        }
}

/* --- flags --- */

static void allow_takes_names_addresses_and_networks(void **state) {
        static const struct {
                const char *text, *want;
        } cases[] = {
                { "a.example", "{\"host\":\"a.example\",\"ports\":[80,443]}" },
                { "A.Example.:8443", "{\"host\":\"a.example\",\"ports\":[8443]}" },
                { "*.a.example:8000-8010", "{\"host\":\"*.a.example\",\"ports\":[\"8000-8010\"]}" },
                { "**.a.example", "{\"host\":\"**.a.example\",\"ports\":[80,443]}" },
                { "192.0.2.1:22", "{\"cidr\":\"192.0.2.1/32\",\"ports\":[22]}" },
                { "192.0.2.0/24:22", "{\"cidr\":\"192.0.2.0/24\",\"ports\":[22]}" },
                { "2001:db8::1", "{\"cidr\":\"2001:db8::1/128\",\"ports\":[80,443]}" },
                { "[2001:db8::1]:22", "{\"cidr\":\"2001:db8::1/128\",\"ports\":[22]}" },
                { "[2001:db8::/32]:22", "{\"cidr\":\"2001:db8::/32\",\"ports\":[22]}" },
        };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CLEANUP(json_freep) struct json *net = NULL;
                AUTO_FREE char *text = NULL;

                policy_default(&p);
                if (policy_net_flag_allow(&p, cases[i].text, &err) < 0)
                        fail_msg("%s", err.msg);
                net = policy_net_json(&p);
                assert_int_equal(json_len(json_get(net, "allow")), 1);
                assert_int_equal(json_text(json_at(json_get(net, "allow"), 0), false, &text, &err), 0);
                assert_string_equal(text, cases[i].want);
                policy_done(&p);
        }
}

static void wrong_flags_are_named(void **state) {
        static const struct {
                const char *text, *want;
        } allows[] = {
                { "", "--allow: '' is not a host name: labels of 1 to 63 letters, digits, '-' and '_', the last not a "
                      "number, at most 253 characters" },
                { "a.example:", "--allow 'a.example:': HOST[:PORT] or CIDR[:PORT] is expected" },
                { "a.example:0", "--allow: '0' is not a port: write 1 to 65535, or a range as 8000-8100" },
                { "https://a.example", "--allow 'https://a.example': HOST[:PORT] or CIDR[:PORT] is expected" },
                { "[::1]x", "--allow '[::1]x': HOST[:PORT] or CIDR[:PORT] is expected" },
                { "[a.example]:1", "--allow: 'a.example' is not a network" },
                { "u@a.example", "--allow: 'u@a.example' has user information in it; write the host alone" },
                { "*", "--allow: '*' would be every host; that is preset: public" },
        };
        static const char *const resolves[] = { "",
                                                "a.example",
                                                "a.example:443",
                                                "a.example:443=",
                                                "a.example:443=b.example:1",
                                                "a.example:443=127.0.0.1",
                                                "a.example=127.0.0.1:1",
                                                "a.example:443=127.0.0.1:0",
                                                "127.0.0.1:443=127.0.0.1:1",
                                                "*.a.example:443=127.0.0.1:1",
                                                "a.example:443=::1:1",
                                                "a.example:99999=127.0.0.1:1" };
        struct policy_resolve to;
        struct err err = { 0 };

        (void) state;
        policy_default(&p);
        for (size_t i = 0; i < ARRAY_SIZE(allows); i++) {
                assert_int_equal(policy_net_flag_allow(&p, allows[i].text, &err), -EINVAL);
                if (!str_has_prefix(err.msg, allows[i].want))
                        fail_msg("%s", err.msg);
        }
        assert_null(p.net);
        for (size_t i = 0; i < ARRAY_SIZE(resolves); i++) {
                assert_int_equal(policy_net_flag_resolve(resolves[i], &to, &err), -EINVAL);
                assert_true(str_has_prefix(err.msg, "--resolve"));
        }
}

static void net_is_a_preset_or_a_file(void **state) {
        char path[] = "/tmp/gabion-net-XXXXXX";
        AUTO_FD int fd = mkstemp(path);
        static const char file[] = "version: 1\nnetwork: {allow: [{host: b.example}]}\n";
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        (void) state;
        net_accept(" {allow: [{host: a.example}], budget: {names: 1}}", &p);
        assert_int_equal(policy_net_flag_net(&p, "none", &err), 0);
        assert_null(p.net);
        assert_int_equal(policy_net_flag_net(&p, "public", &err), 0);
        assert_true(policy_net_is_public(&p));
        assert_int_equal(policy_net_flag_net(&p, "packages", &err), 0);
        assert_false(policy_net_is_public(&p));
        assert_int_equal(policy_check(&p, &err), -EINVAL); /* not expanded */
        assert_int_equal(write(fd, file, strlen(file)), (int) strlen(file));
        assert_int_equal(policy_net_flag_net(&p, path, &err), 0);
        text = net_text(&p);
        assert_non_null(strstr(text, "\"b.example\""));
        assert_int_equal(policy_net_flag_net(&p, "/no/such/file", &err), -ENOENT);
        assert_string_equal(err.msg, "--net: /no/such/file: No such file or directory");
        policy_done(&p);
        /* a ceiling says nothing about other members; what it said would be ignored */
        policy_default(&p);
        assert_int_equal(policy_read_ceiling(path, &p, &err), 0);
        assert_true(policy_net_any(&p));
        assert_int_equal(write(fd, "limits: {pids: 5}\n", 18), 18);
        assert_int_equal(policy_read_ceiling(path, &p, &err), -EINVAL);
        assert_non_null(strstr(err.msg, ":3: limits: unknown key; allowed: version name network"));
        policy_done(&p);
        (void) unlink(path);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(a_sandbox_may_have_an_address_of_its_own),
                cmocka_unit_test(an_empty_ceiling_stays_a_ceiling),
                cmocka_unit_test(the_largest_policies_fit_one_document),
                cmocka_unit_test(wrong_documents_are_refused),
                cmocka_unit_test(budgets_are_the_lower_of_both),
                cmocka_unit_test(the_supervisor_knows_what_to_start),
                cmocka_unit_test(allow_takes_names_addresses_and_networks),
                cmocka_unit_test(wrong_flags_are_named),
                cmocka_unit_test(net_is_a_preset_or_a_file),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
