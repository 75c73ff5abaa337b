/* test_net_decode.c - the network part of the schema: what is read, what is refused and how, and its canonical form. */
#include <errno.h>

#include "base/str.h"
#include "net_help.h"

static struct policy p, q;

/* Also: a failure leaves the policy unchanged, with the network that it had. */
static void says(const char *network, const char *want) {
        static struct policy before;
        struct err err = { 0 };

        net_accept(" {allow: [{host: kept.example}]}", &p);
        before = p;
        if (net_decode_yaml(network, &p, &err) != -EINVAL)
                fail_msg("taken: %s", network);
        assert_string_equal(err.msg, want);
        assert_memory_equal(&p, &before, sizeof(p));
        policy_done(&p);
}

/* The canonical network is this, and it is a network with the same canonical form. */
static void gives(const char *network, const char *want) {
        AUTO_FREE char *text = NULL, *again = NULL, *yaml = NULL;

        net_accept(network, &p);
        text = net_text(&p);
        assert_string_equal(text, want);
        yaml = malloc(strlen(text) + 2);
        (void) snprintf(yaml, strlen(text) + 2, " %s", text); /* JSON is YAML */
        net_accept(yaml, &q);
        again = net_text(&q);
        assert_string_equal(again, want);
        policy_done(&p);
        policy_done(&q);
}

#define BUDGET "\"budget\":{\"bytes_out\":1073741824,\"connections\":256,\"names\":1000,\"rate\":\"100/s\"}"

static void asking_for_nothing_is_no_network(void **state) {
        static const char *const idle[] = { " {}", " {default: deny}", " {preset: none}",
                                            " {allow: [], deny: [], budget: {}, publish: []}",
                                            " {budget: {connections: 256, rate: 100/s, bytes_out: 1G, names: 1000}}" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
                net_accept(idle[i], &p);
                assert_null(p.net);
                assert_false(policy_net_any(&p));
        }
        gives(" {}", "{\"default\":\"deny\"}");
}

static void everything_is_explicit_in_the_canonical_form(void **state) {
        (void) state;
        gives(" {allow: [{host: a.example}]}",
              "{\"allow\":[{\"host\":\"a.example\",\"ports\":[80,443]}]," BUDGET ",\"default\":\"deny\",\"deny\":[]}");
        gives(" {deny: [{host: \"*.b.example\"}, {cidr: 192.0.2.7}]}",
              "{\"allow\":[]," BUDGET ",\"default\":\"deny\",\"deny\":[{\"host\":\"*.b.example\",\"ports\":"
              "[\"1-65535\"]},{\"cidr\":\"192.0.2.7/32\",\"ports\":[\"1-65535\"]}]}");
        gives(" {preset: public}", "{\"allow\":[]," BUDGET ",\"default\":\"allow\",\"deny\":[],\"preset\":\"public\"}");
        gives(" {preset: public, default: allow}",
              "{\"allow\":[]," BUDGET ",\"default\":\"allow\",\"deny\":[],\"preset\":\"public\"}");
        gives(" {budget: {connections: 2, rate: 3/s, bytes_out: 4K, names: 5}}",
              "{\"allow\":[],\"budget\":{\"bytes_out\":4096,\"connections\":2,\"names\":5,\"rate\":\"3/s\"},"
              "\"default\":\"deny\",\"deny\":[]}");
        gives(" {allow: [{host: \"**.A.Example.\", methods: [GET, HEAD, GET], paths: [/x/, /y%2fz, \"/a|b\"]}]}",
              "{\"allow\":[{\"host\":\"**.a.example\",\"methods\":[\"GET\",\"HEAD\"],\"paths\":[\"/x/\",\"/y%2Fz\","
              "\"/a%7Cb\"],\"ports\":[80,443]}]," BUDGET ",\"default\":\"deny\",\"deny\":[]}");
}

static void ports_are_sorted_and_joined(void **state) {
        static const struct {
                const char *yaml, *want;
        } cases[] = {
                { "[443, 80]", "[80,443]" },
                { "[80, 80]", "[80]" },
                { "[80, 81]", "[\"80-81\"]" },
                { "[8000-8100, 8050-9000, 8099]", "[\"8000-9000\"]" },
                { "[10, 30, 20, 1-65535]", "[\"1-65535\"]" },
                { "[65535, 1]", "[1,65535]" },
                { "['443']", "[443]" },
                { "[5-6, 1-2, 3-4]", "[\"1-6\"]" },
                { "[2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32]",
                  "[2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32]" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char yaml[256], want[512];

                (void) snprintf(yaml, sizeof(yaml), " {allow: [{host: a.example, ports: %s}]}", cases[i].yaml);
                (void) snprintf(want, sizeof(want),
                                "{\"allow\":[{\"host\":\"a.example\",\"ports\":%s}]," BUDGET
                                ",\"default\":\"deny\",\"deny\":[]}",
                                cases[i].want);
                gives(yaml, want);
        }
}

static void a_network_replaces_the_one_before(void **state) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        (void) state;
        net_accept(" {preset: public, deny: [{host: a.example}], budget: {names: 1}}", &p);
        assert_int_equal(net_decode_yaml(" {allow: [{host: b.example}]}", &p, &err), 0);
        text = net_text(&p);
        assert_string_equal(text, "{\"allow\":[{\"host\":\"b.example\",\"ports\":[80,443]}]," BUDGET
                                  ",\"default\":\"deny\",\"deny\":[]}");
        policy_done(&p);
}

static void wrong_hosts_are_named_with_their_remedy(void **state) {
        static const char not_a_name[] = "is not a host name: labels of 1 to 63 letters, digits, '-' and '_', the last "
                                         "not a number, at most 253 characters";
        static const struct {
                const char *host, *problem;
        } cases[] = {
                { "b\xc3\xbc"
                  "cher.example",
                  "is not ASCII; write the xn-- form of the name" },
                { "\xd0\xb0pi.example.com", "is not ASCII; write the xn-- form of the name" }, /* Cyrillic a */
                { "*", "would be every host; that is preset: public" },
                { "**", "would be every host; that is preset: public" },
                { "*.com", "is too wide: a suffix needs at least two labels" },
                { "**.com.", "is too wide: a suffix needs at least two labels" },
                { "a.*.example.com", "has a star in it; it may only begin with *. or **." },
                { "*a.example.com", "has a star in it; it may only begin with *. or **." },
                { "*.*.example.com", "has a star in it; it may only begin with *. or **." },
                { "***.example.com", "has a star in it; it may only begin with *. or **." },
                { "*.", "has a star in it; it may only begin with *. or **." },
                { "10.0.0.1", "is an address; write it as cidr" },
                { "10.0.0.0/8", "is an address; write it as cidr" },
                { "::1", "is an address; write it as cidr" },
                { "[::1]", "is an address; write it as cidr" },
                { "user@a.example", "has user information in it; write the host alone" },
                { "user:pass@a.example", "has user information in it; write the host alone" },
                { "a.example@evil.example", "has user information in it; write the host alone" },
                { "https://a.example", "has a '/' in it; write the host alone" },
                { "a.example/x", "has a '/' in it; write the host alone" },
                { "a.example:443", "has a ':' in it; ports have their own member" },
                { "a..example", not_a_name },
                { "a.example..", not_a_name },
                { ".a.example", not_a_name },
                { "-a.example", not_a_name },
                { "a-.example", not_a_name },
                { "a b.example", not_a_name },
                { "a.example%00.evil", not_a_name },
                { "127.1", not_a_name },
                { "0x7f.1", not_a_name },
                { "2130706433", not_a_name },
                { "017700000001", not_a_name },
                { "a.1", not_a_name },
                { "", not_a_name },
                { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example", not_a_name }, /* 64 */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char yaml[256], want[512];

                (void) snprintf(yaml, sizeof(yaml), "\n  deny:\n    - host: '%s'", cases[i].host);
                (void) snprintf(want, sizeof(want), "p:4: network.deny[0].host: '%.60s' %s", cases[i].host,
                                cases[i].problem);
                says(yaml, want);
        }
}

static void names_of_full_length_are_taken(void **state) {
        static const char label[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* 63 */
        char yaml[512];

        (void) state;
        (void) snprintf(yaml, sizeof(yaml), " {allow: [{host: \"*.%s.%s.%s.%.59s\"}]}", label, label, label, label);
        net_accept(yaml, &p);
        policy_done(&p);
        (void) snprintf(yaml, sizeof(yaml),
                        " {allow: [{host: \"_dmarc.%s.xn--bcher-kva.example\"}, {host: localhost}]}", label);
        net_accept(yaml, &p);
        policy_done(&p);
}

static void wrong_rules_are_named(void **state) {
        (void) state;
        says(" {allow: [{ports: [1]}]}", "p:2: network.allow[0]: must have either host or cidr");
        says(" {allow: [{host: a.example, cidr: 192.0.2.0/24}]}",
             "p:2: network.allow[0]: must have either host or cidr");
        says(" {allow: [a.example]}", "p:2: network.allow[0]: must be a mapping (key: value)");
        says(" {allow: {host: a.example}}", "p:2: network.allow: must be a list");
        says("\n  allow:\n    - host: a.example\n      port: [1]",
             "p:5: network.allow[0].port: unknown key; did you mean 'ports'? allowed: host cidr ports methods paths");
        says(" {allow: [{host: [a]}]}", "p:2: network.allow[0].host: must be a string or a number");
        says(" {allow: [{host: a.example, ports: 443}]}", "p:2: network.allow[0].ports: must be a list");
        says(" {allow: [{host: a.example, ports: []}]}",
             "p:2: network.allow[0]: ports must not be empty; leave it out");
        says(" {allow: [{host: a.example, methods: []}]}",
             "p:2: network.allow[0]: methods must not be empty; leave it out");
        says(" {allow: [{cidr: 192.0.2.0/24, methods: [GET]}]}",
             "p:2: network.allow[0]: methods and paths need a host");
        says(" {allow: [{cidr: 192.0.2.0/24, paths: [/]}]}", "p:2: network.allow[0]: methods and paths need a host");
        says(" {allow: [{host: a.example, methods: [get]}]}",
             "p:2: network.allow[0].methods[0]: 'get' is not a method: write GET, POST, ... in capitals");
        says(" {allow: [{host: a.example, methods: [GET, {}]}]}",
             "p:2: network.allow[0].methods[1]: must be a string or a number");
}

static void wrong_ports_networks_and_paths_are_named(void **state) {
        static const char *const ports[] = { "0",     "65536", "-1",  "080", "http",    "1-",    "-",     "9-8",
                                             "1-2-3", "0-9",   "1.5", "''",  "1-65536", "' 80'", "80/tcp" };
        static const char *const cidrs[] = { "192.0.2.1/24",   "192.0.2.0/33", "192.0.2.0/", "192.0.2/24", "0300.0.0.1",
                                             "2001:db8::1/32", "fe80::1%lo",   "a.example",  "*" };
        static const char *const paths[] = { "x",    "''",    "/a/../b", "/a/./b", "/..",    "/a//b", "/a/%2e%2e/",
                                             "/%2E", "/a\\b", "/a?b",    "/a#b",   "/a%00",  "/a%25", "/%zz",
                                             "/a%2", "/ä",    "/a%5cb",  "//a",    "/..;x/a" };
        char yaml[128], want[320];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
                const char *shown = *ports[i] == '\'' ? (str_eq(ports[i], "''") ? "" : " 80") : ports[i];

                (void) snprintf(yaml, sizeof(yaml), " {allow: [{host: a.example, ports: [%s]}]}", ports[i]);
                (void) snprintf(want, sizeof(want),
                                "p:2: network.allow[0].ports[0]: '%s' is not a port: write 1 to 65535, or a range as "
                                "8000-8100",
                                shown);
                says(yaml, want);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cidrs); i++) {
                (void) snprintf(yaml, sizeof(yaml), " {allow: [{cidr: '%s'}]}", cidrs[i]);
                (void) snprintf(want, sizeof(want),
                                "p:2: network.allow[0].cidr: '%s' is not a network: write 192.0.2.0/24, "
                                "2001:db8::/32 or an address, with no bit set behind the prefix",
                                cidrs[i]);
                says(yaml, want);
        }
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                (void) snprintf(yaml, sizeof(yaml), " {allow: [{host: a.example, paths: ['%s']}]}",
                                str_eq(paths[i], "''") ? "" : paths[i]);
                (void) snprintf(want, sizeof(want),
                                "p:2: network.allow[0].paths[0]: '%s' is not a path prefix: it begins with '/' and has "
                                "no '..', '//', '\\', '%%25', query or fragment",
                                str_eq(paths[i], "''") ? "" : paths[i]);
                says(yaml, want);
        }
}

static void wrong_members_are_named(void **state) {
        (void) state;
        says(" deny", "p:2: network: must be a mapping (key: value)");
        says("\n  default: allow", "p:3: network.default: 'allow' comes only with preset: public; allowed: deny");
        says(" {preset: packages, default: allow}",
             "p:2: network.default: 'allow' comes only with preset: public; allowed: deny");
        says(" {preset: public, default: deny}", "p:2: network.default: 'deny' is not possible here; allowed: allow");
        says(" {default: drop}", "p:2: network.default: 'drop' is not possible here; allowed: deny");
        says(" {default: true}", "p:2: network.default: must be a string");
        says(" {preset: open}", "p:2: network.preset: must be one of: none packages public");
        says(" {preset: [public]}", "p:2: network.preset: must be one of: none packages public");
        says(" {alow: []}", "p:2: network.alow: unknown key; did you mean 'allow'? allowed: preset default allow deny "
                            "budget publish");
        says(" {budget: 5}", "p:2: network.budget: must be a mapping (key: value)");
        says(" {budget: {connections: 0}}", "p:2: network.budget.connections: 0 is out of range; allowed: 1 to 65536");
        says(" {budget: {connections: many}}", "p:2: network.budget.connections: 'many' is not a whole number");
        says(" {budget: {rate: 20}}", "p:2: network.budget.rate: '20' is not a rate; write for example 20/s");
        says(" {budget: {rate: 20/m}}", "p:2: network.budget.rate: '20/m' is not a rate; write for example 20/s");
        says(" {budget: {rate: 0/s}}", "p:2: network.budget.rate: 0 is out of range; allowed: 1 to 100000");
        says(" {budget: {bytes_out: 1}}", "p:2: network.budget.bytes_out: 1 is out of range; allowed: 1K to 1024G");
        says(" {budget: {names: 131071}}", "p:2: network.budget.names: 131071 is out of range; allowed: 1 to 131070");
        says(" {budget: {bytes: 1M}}",
             "p:2: network.budget.bytes: unknown key; allowed: connections rate bytes_out names");
}

/* n rules (or parts of one) between head and tail. */
static char *many(const char *head, const char *part, size_t n, const char *tail) {
        size_t cap = strlen(head) + n * (strlen(part) + 8) + strlen(tail) + 1, len;
        char *yaml = malloc(cap);

        assert_non_null(yaml);
        len = (size_t) snprintf(yaml, cap, "%s", head);
        for (size_t i = 0; i < n; i++)
                len += (size_t) snprintf(yaml + len, cap - len, "%s%zu", part, i);
        (void) snprintf(yaml + len, cap - len, "%s", tail);
        return yaml;
}

static void everything_has_a_bound(void **state) {
        AUTO_FREE char *most = many("\n  deny:", "\n    - host: a.example\n      ports:\n        - 1", 256, "");
        AUTO_FREE char *paths = many("\n  allow:\n    - host: a.example\n      paths:", "\n        - /p", 17, "");
        char yaml[2048] = " {allow: [{host: a.example, paths: [/a";
        size_t n = strlen(yaml);

        (void) state;
        net_accept(most, &p);
        policy_done(&p);
        free(most);
        most = many("\n  deny:", "\n    - host: a.example\n      ports:\n        - 1", 257, "");
        says(most, "p:3: network.deny: must have at most 256 elements");
        says(paths, "p:5: network.allow[0].paths: must have at most 16 elements");
        for (int i = 0; i < 300; i++)
                yaml[n++] = 'x';
        (void) snprintf(yaml + n, sizeof(yaml) - n, "]}]}");
        says(yaml, "p:2: network.allow[0].paths[0]: '/axxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is "
                   "too long for a path prefix");
}

/* 256 rules with 16 ports each are within every single bound, but not within the common one. */
static void all_rules_together_have_a_bound(void **state) {
        static const char rule[] =
                "\n    - {host: a.example, ports: [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, "
                "29, 31]} #";
        AUTO_FREE char *yaml = many("\n  allow:", rule, 250, "");

        (void) state;
        says(yaml, "p: network: more than 4096 rules, ports, methods and paths together");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(asking_for_nothing_is_no_network),
                cmocka_unit_test(everything_is_explicit_in_the_canonical_form),
                cmocka_unit_test(ports_are_sorted_and_joined),
                cmocka_unit_test(a_network_replaces_the_one_before),
                cmocka_unit_test(wrong_hosts_are_named_with_their_remedy),
                cmocka_unit_test(names_of_full_length_are_taken),
                cmocka_unit_test(wrong_rules_are_named),
                cmocka_unit_test(wrong_ports_networks_and_paths_are_named),
                cmocka_unit_test(wrong_members_are_named),
                cmocka_unit_test(everything_has_a_bound),
                cmocka_unit_test(all_rules_together_have_a_bound),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
