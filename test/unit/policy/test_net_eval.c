/* test_net_eval.c - the decision about a connection: patterns, precedence, floor, ceiling, requests. */
#include "base/str.h"
#include "net_help.h"

/*
 * One line of a table: a question, and the verdict as text.
 *   "NAME" "NAME:PORT" "ADDRESS PORT"             stages name, connect, connect of a literal
 *   "NAME:PORT ADDRESS"                           stage address
 *   "NAME:PORT METHOD PATH"                       stage http
 * Verdict: "RULE" ("RULE CEILING-RULE" with one, "+http" if requests are judged), or "! CODE RULE SIDE".
 */
struct line {
        const char *ask, *want;
};

static void split(char *text, char *words[4]) {
        for (size_t i = 0; i < 4; i++) {
                words[i] = text;
                if (!text)
                        continue;
                text = strchr(text, ' ');
                if (text)
                        *text++ = '\0';
        }
}

static void ask(const struct policy_egress *e, const char *question, char dst[160]) {
        struct policy_net_request q = { .stage = POLICY_NET_NAME };
        struct policy_net_verdict v;
        struct addr address;
        char text[512], *words[4], *colon;
        uint64_t port = 0;

        (void) str_copy(text, sizeof(text), question);
        split(text, words);
        if (addr_parse(words[0], &address) == 0) {
                assert_int_equal(str_to_u64(words[1], UINT16_MAX, &port), 0);
                q.stage = POLICY_NET_CONNECT;
                q.address = &address;
        } else {
                q.name = words[0];
                colon = strchr(words[0], ':');
                if (colon) {
                        *colon = '\0';
                        q.stage = POLICY_NET_CONNECT;
                        assert_int_equal(str_to_u64(colon + 1, UINT16_MAX, &port), 0);
                }
                if (words[2]) {
                        q.stage = POLICY_NET_HTTP;
                        q.method = words[1];
                        q.path = words[2];
                } else if (words[1]) {
                        q.stage = POLICY_NET_ADDRESS;
                        assert_int_equal(addr_parse(words[1], &address), 0);
                        q.address = &address;
                }
        }
        q.port = (uint16_t) port;
        policy_net_eval(e, &q, &v);
        if (v.allowed) {
                assert_string_equal(v.code, "");
                (void) snprintf(dst, 160, "%s%s%s%s", v.rule, v.ceiling_rule[0] ? " " : "", v.ceiling_rule,
                                v.needs_http ? " +http" : "");
        } else {
                assert_false(v.needs_http);
                (void) snprintf(dst, 160, "! %s %s %s", v.code, v.rule, policy_net_side_name(v.side));
        }
}

static void check(const char *network, const char *ceiling, const char *resolve, const struct line *lines, size_t n) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = net_egress(network, ceiling, resolve);

        for (size_t i = 0; i < n; i++) {
                char got[160];

                ask(e, lines[i].ask, got);
                if (!str_eq(got, lines[i].want))
                        fail_msg("%s: %s, expected %s", lines[i].ask, got, lines[i].want);
        }
}

#define CHECK(network, ceiling, resolve, ...)                                                                          \
        do {                                                                                                           \
                static const struct line lines[] = { __VA_ARGS__ };                                                    \
                check(network, ceiling, resolve, lines, ARRAY_SIZE(lines));                                            \
        } while (0)

static void nothing_is_allowed_by_default(void **state) {
        (void) state;
        CHECK(" {}", NULL, NULL, { "a.example", "! net.name_not_allowed default sandbox" },
              { "a.example:443", "! net.name_not_allowed default sandbox" },
              { "8.8.8.8 443", "! net.address_not_allowed default sandbox" },
              { "2600:: 443", "! net.address_not_allowed default sandbox" },
              { "a.example:443 GET /", "! net.name_not_allowed default sandbox" });
}

static void patterns_match_whole_labels(void **state) {
        (void) state;
        CHECK(" {allow: [{host: a.example}, {host: \"*.b.example\"}, {host: \"**.c.example\"}]}", NULL, NULL,
              { "a.example:443", "allow[0]" }, { "x.a.example:443", "! net.name_not_allowed default sandbox" },
              { "xa.example:443", "! net.name_not_allowed default sandbox" },
              { "example:443", "! net.name_not_allowed default sandbox" },
              { "b.example:443", "! net.name_not_allowed default sandbox" }, { "x.b.example:443", "allow[1]" },
              { "x.y.b.example:443", "allow[1]" }, { "xb.example:443", "! net.name_not_allowed default sandbox" },
              { "b.example.evil:443", "! net.name_not_allowed default sandbox" }, { "c.example:443", "allow[2]" },
              { "x.y.c.example:443", "allow[2]" }, { "xc.example:443", "! net.name_not_allowed default sandbox" },
              /* names as a client may send them, not in canonical form: not judged */
              { "A.example:443", "! net.name_not_allowed default sandbox" },
              { "a.example.:443", "! net.name_not_allowed default sandbox" },
              { "x@a.example:443", "! net.name_not_allowed default sandbox" },
              { "\xd0\xb0.example:443", "! net.name_not_allowed default sandbox" },
              /* the other spelling of a homograph is another name */
              { "xn--80ak6aa92e.example:443", "! net.name_not_allowed default sandbox" });
}

static void ports_decide(void **state) {
        (void) state;
        CHECK(" {allow: [{host: a.example}, {host: b.example, ports: [22, 8000-8100]}]}", NULL, NULL,
              { "a.example:80", "allow[0]" }, { "a.example:443", "allow[0]" },
              { "a.example:22", "! net.port_not_allowed default sandbox" }, { "b.example:22", "allow[1]" },
              { "b.example:8000", "allow[1]" }, { "b.example:8100", "allow[1]" },
              { "b.example:8101", "! net.port_not_allowed default sandbox" },
              { "b.example:443", "! net.port_not_allowed default sandbox" },
              { "b.example:0", "! net.name_not_allowed default sandbox" }, { "b.example", "allow[1]" });
}

static void deny_beats_allow(void **state) {
        (void) state;
        CHECK(" {allow: [{host: \"**.a.example\", ports: [1-65535]}],"
              " deny: [{host: up.a.example}, {host: b.a.example, ports: [22]}, {cidr: 93.184.0.0/16}]}",
              NULL, NULL, { "x.a.example:443", "allow[0]" },
              { "up.a.example", "! net.name_not_allowed deny[0] sandbox" },
              { "up.a.example:443", "! net.name_not_allowed deny[0] sandbox" }, { "x.up.a.example:443", "allow[0]" },
              { "b.a.example", "allow[0]" }, { "b.a.example:22", "! net.port_not_allowed deny[1] sandbox" },
              { "b.a.example:443", "allow[0]" },
              /* a denied network stays denied for names that lead there, in whatever clothes */
              { "x.a.example:443 93.184.216.34", "! net.address_not_allowed deny[2] sandbox" },
              { "x.a.example:443 ::ffff:93.184.216.34", "! net.address_not_allowed deny[2] sandbox" },
              { "x.a.example:443 64:ff9b::5db8:d822", "! net.address_not_allowed deny[2] sandbox" },
              { "x.a.example:443 2002:5db8:d822::1", "! net.address_not_allowed deny[2] sandbox" },
              { "x.a.example:443 93.183.216.34", "allow[0]" });
}

static void networks_are_for_literal_addresses(void **state) {
        (void) state;
        CHECK(" {allow: [{cidr: 93.184.216.0/24, ports: [5432]}, {cidr: 2600:1::/32, ports: [5432]}, {host: a.example}]}",
              NULL, NULL, { "93.184.216.34 5432", "allow[0]" }, { "::ffff:93.184.216.34 5432", "allow[0]" },
              { "93.184.217.34 5432", "! net.address_not_allowed default sandbox" },
              { "93.184.216.34 443", "! net.port_not_allowed default sandbox" },
              { "64:ff9b::5db8:d822 5432", "! net.address_not_allowed default sandbox" },
              { "2600:1:2::3 5432", "allow[1]" }, { "2600:2::3 5432", "! net.address_not_allowed default sandbox" },
              /* the owner of a name chooses its address: a network does not allow names */
              { "b.example:5432 93.184.216.34", "! net.name_not_allowed default sandbox" },
              { "a.example:5432 93.184.216.34", "! net.port_not_allowed default sandbox" },
              { "a.example:443 93.184.216.34", "allow[2]" });
}

static void the_floor_is_below_every_rule_of_the_sandbox(void **state) {
        static const char wide[] = " {preset: public, allow: [{cidr: 0.0.0.0/0, ports: [1-65535]},"
                                   " {cidr: '::/0', ports: [1-65535]}, {cidr: 10.0.0.1}, {cidr: 169.254.169.254},"
                                   " {host: \"**.a.example\", ports: [1-65535]}]}";

        (void) state;
        CHECK(wide, NULL, NULL, { "10.0.0.1 80", "! net.private_address floor:private floor" },
              { "127.0.0.1 80", "! net.private_address floor:loopback floor" },
              { "::1 80", "! net.private_address floor:loopback floor" },
              { "0.0.0.0 80", "! net.private_address floor:unspecified floor" },
              { "169.254.1.1 80", "! net.private_address floor:link-local floor" },
              { "100.64.0.1 80", "! net.private_address floor:cgnat floor" },
              { "fd00::1 80", "! net.private_address floor:private floor" },
              { "fe80::1 80", "! net.private_address floor:link-local floor" },
              { "169.254.169.254 80", "! net.metadata floor:metadata floor" },
              { "100.100.100.200 80", "! net.metadata floor:metadata floor" },
              { "fd00:ec2::254 80", "! net.metadata floor:metadata floor" },
              { "::ffff:169.254.169.254 80", "! net.metadata floor:metadata floor" },
              { "64:ff9b::a9fe:a9fe 80", "! net.metadata floor:metadata floor" },
              { "2002:a00:1::1 80", "! net.private_address floor:private floor" },
              { "224.0.0.1 80", "! net.address_not_allowed floor:multicast floor" },
              { "192.0.2.1 443", "! net.address_not_allowed floor:documentation floor" },
              { "198.18.0.1 443", "! net.address_not_allowed floor:benchmark floor" },
              { "a.example:443 10.0.0.1", "! net.private_address floor:private floor" },
              { "a.example:443 ::ffff:10.0.0.1", "! net.private_address floor:private floor" },
              { "a.example:80 169.254.169.254", "! net.metadata floor:metadata floor" },
              { "a.example:80 fd00:ec2::254", "! net.metadata floor:metadata floor" }, { "8.8.8.8 53", "allow[0]" },
              { "a.example:443 8.8.8.8", "allow[4]" });
}

static void preset_public_is_public_addresses(void **state) {
        (void) state;
        CHECK(" {preset: public, deny: [{host: \"**.b.example\"}], allow: [{host: a.example, methods: [GET]}]}", NULL,
              NULL, { "x.example", "default" }, { "x.example:22", "default" }, { "x.example:22 8.8.8.8", "default" },
              { "8.8.8.8 53", "default" }, { "x.example:22 10.0.0.1", "! net.private_address floor:private floor" },
              { "192.0.2.1 443", "! net.address_not_allowed floor:documentation floor" },
              { "b.example", "! net.name_not_allowed deny[0] sandbox" },
              { "x.b.example:443", "! net.name_not_allowed deny[0] sandbox" },
              /* a narrower allow rule takes nothing away from what is allowed anyhow, so TLS is not opened for it */
              { "a.example:443", "default" }, { "a.example:443 POST /", "default" });
}

static void both_sides_must_allow(void **state) {
        (void) state;
        CHECK(" {allow: [{host: a.example}, {host: b.example, ports: [1-65535]}, {host: d.example}]}",
              " {allow: [{host: \"**.a.example\"}, {host: b.example}, {host: c.example}], deny: [{host: d.example}]}",
              NULL, { "a.example:443", "allow[0] ceiling:allow[0]" }, { "b.example:443", "allow[1] ceiling:allow[1]" },
              { "b.example:22", "! net.port_not_allowed ceiling:default ceiling" },
              { "c.example:443", "! net.name_not_allowed default sandbox" },
              { "x.a.example:443", "! net.name_not_allowed default sandbox" },
              { "d.example", "! net.name_not_allowed ceiling:deny[0] ceiling" },
              { "a.example", "allow[0] ceiling:allow[0]" });
        /* a ceiling without rules allows nothing; no ceiling is no limit */
        CHECK(" {preset: public}", " {}", NULL, { "a.example:443", "! net.name_not_allowed ceiling:default ceiling" },
              { "8.8.8.8 443", "! net.address_not_allowed ceiling:default ceiling" });
        CHECK(" {preset: public}", " {preset: public, deny: [{cidr: 8.8.0.0/16}]}", NULL,
              { "a.example:443", "default ceiling:default" },
              { "a.example:443 8.8.8.8", "! net.address_not_allowed ceiling:deny[0] ceiling" },
              { "a.example:443 9.9.9.9", "default ceiling:default" });
}

static void the_ceiling_opens_the_floor_by_naming_the_address(void **state) {
        static const char own[] = " {allow: [{cidr: 10.0.0.0/8, ports: [5432]}, {host: db.corp.example, ports: [5432]},"
                                  " {cidr: 169.254.169.254, ports: [80]}, {cidr: '::1', ports: [80]}]}";

        (void) state;
        CHECK(own, " {allow: [{cidr: 10.1.0.0/16, ports: [5432]}, {host: db.corp.example, ports: [5432]}]}", NULL,
              { "10.1.2.3 5432", "allow[0] ceiling:allow[0]" }, { "::ffff:10.1.2.3 5432", "allow[0] ceiling:allow[0]" },
              { "10.1.2.3 22", "! net.private_address floor:private floor" }, /* named for 5432 only */
              { "10.2.2.3 5432", "! net.private_address floor:private floor" },
              { "64:ff9b::a01:203 5432", "! net.private_address floor:private floor" },
              { "db.corp.example:5432 10.1.2.3", "allow[1] ceiling:allow[1]" },
              { "db.corp.example:5432 10.2.2.3", "! net.private_address floor:private floor" },
              { "db.corp.example:5432 8.8.8.8", "allow[1] ceiling:allow[1]" });
        /* a network that reaches beyond one class of the floor names nothing in it */
        CHECK(own,
              " {preset: public, allow: [{cidr: 0.0.0.0/0, ports: [1-65535]}, {cidr: 8.0.0.0/5, ports: [1-65535]},"
              " {cidr: 10.0.0.0/7, ports: [1-65535]}]}",
              NULL, { "10.1.2.3 5432", "! net.private_address floor:private floor" },
              { "db.corp.example:5432 10.1.2.3", "! net.private_address floor:private floor" });
        /* metadata services are named only by themselves */
        CHECK(own, " {preset: public, allow: [{cidr: 169.254.0.0/16}]}", NULL,
              { "169.254.169.254 80", "! net.metadata floor:metadata floor" });
        CHECK(own, " {allow: [{cidr: 169.254.169.254}, {cidr: '::1'}]}", NULL,
              { "169.254.169.254 80", "allow[2] ceiling:allow[0]" }, { "::1 80", "allow[3] ceiling:allow[1]" },
              { "::1 443", "! net.port_not_allowed default sandbox" },
              { "169.254.169.253 80", "! net.private_address floor:link-local floor" });
}

static void an_opened_floor_needs_a_rule_of_the_sandbox_too(void **state) {
        (void) state;
        /* preset public is not such a rule; a host rule is, if the ceiling allows the name as well */
        CHECK(" {preset: public, allow: [{host: db.corp.example}]}", " {preset: public, allow: [{cidr: 10.0.0.0/8}]}",
              NULL, { "10.1.2.3 80", "! net.address_not_allowed default sandbox" },
              { "x.example:80 10.1.2.3", "! net.address_not_allowed default sandbox" },
              { "db.corp.example:80 10.1.2.3", "allow[0] ceiling:default" },
              { "db.corp.example:80 192.168.1.1", "! net.private_address floor:private floor" });
        /* the ceiling names the network but not the name */
        CHECK(" {allow: [{host: db.corp.example}]}", " {allow: [{cidr: 10.0.0.0/8}]}", NULL,
              { "db.corp.example:80 10.1.2.3", "! net.name_not_allowed ceiling:default ceiling" });
        /* deny rules hold there as well */
        CHECK(" {allow: [{cidr: 10.0.0.0/8}], deny: [{cidr: 10.0.0.1}]}",
              " {allow: [{cidr: 10.0.0.0/8}], deny: [{cidr: 10.0.0.2}]}", NULL,
              { "10.0.0.1 80", "! net.address_not_allowed deny[0] sandbox" },
              { "10.0.0.2 80", "! net.address_not_allowed ceiling:deny[0] ceiling" },
              { "10.0.0.3 80", "allow[0] ceiling:allow[0]" });
}

static void resolve_opens_the_floor_for_one_name_and_port(void **state) {
        static const char to[] = "a.example:443=127.0.0.1:8443";

        (void) state;
        CHECK(" {allow: [{host: \"**.a.example\"}]}", NULL, to, { "a.example:443 127.0.0.1", "allow[0]" },
              { "a.example:443 GET /", "allow[0]" },
              { "a.example:443 127.0.0.2", "! net.private_address floor:loopback floor" },
              { "a.example:80 127.0.0.1", "! net.private_address floor:loopback floor" },
              { "x.a.example:443 127.0.0.1", "! net.private_address floor:loopback floor" },
              { "127.0.0.1 443", "! net.private_address floor:loopback floor" });
        CHECK(" {preset: public}", NULL, to, { "a.example:443 127.0.0.1", "default" },
              { "b.example:443 127.0.0.1", "! net.private_address floor:loopback floor" });
        /* it permits nothing by itself, and neither side's deny rules are passed by */
        CHECK(" {allow: [{host: b.example}]}", NULL, to,
              { "a.example:443 127.0.0.1", "! net.name_not_allowed default sandbox" });
        CHECK(" {allow: [{host: a.example}], deny: [{cidr: 127.0.0.0/8}]}", NULL, to,
              { "a.example:443 127.0.0.1", "! net.address_not_allowed deny[0] sandbox" });
        CHECK(" {allow: [{host: a.example}]}", " {allow: [{host: b.example}]}", to,
              { "a.example:443 127.0.0.1", "! net.name_not_allowed ceiling:default ceiling" });
}

static void requests_are_judged_by_method_and_path(void **state) {
        (void) state;
        CHECK(" {allow: [{host: a.example, methods: [GET, HEAD], paths: [/public/, /v1]},"
              " {host: b.example, methods: [GET]}, {host: b.example, ports: [22]}, {host: c.example, paths: [/x]},"
              " {host: c.example, methods: [POST]}, {host: d.example, paths: [/x]}, {host: d.example}]}",
              NULL, NULL, { "a.example", "allow[0]" }, { "a.example:443", "allow[0] +http" },
              { "a.example:443 8.8.8.8", "allow[0] +http" }, { "a.example:443 GET /public/x?y=/../", "allow[0]" },
              { "a.example:443 HEAD /v1", "allow[0]" }, { "a.example:443 HEAD /v1/x", "allow[0]" },
              { "a.example:443 HEAD /v1?x", "allow[0]" },
              { "a.example:443 POST /public/x", "! net.method_not_allowed default sandbox" },
              { "a.example:443 get /public/x", "! net.method_not_allowed default sandbox" },
              { "a.example:443 GET /v10", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /Public/x", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/../secret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/%2e%2e/secret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/..%2fsecret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/..;/secret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/%252e%252e/secret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /public/..%5csecret", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET //public/x", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET http://a.example/public/x", "! net.path_not_allowed default sandbox" },
              { "a.example:443 GET /%70ublic/x", "allow[0]" }, { "a.example:443 GET /public/@s%2fn", "allow[0]" },
              { "b.example:443", "allow[1] +http" }, { "b.example:22", "allow[2]" },
              { "c.example:443", "allow[3] +http" }, { "c.example:443 DELETE /x/y", "allow[3]" },
              { "c.example:443 POST /z", "allow[4]" },
              { "c.example:443 DELETE /z", "! net.path_not_allowed default sandbox" }, { "d.example:443", "allow[6]" },
              { "d.example:443 GET /a/../b", "allow[6]" },
              { "a.example:8443 GET /public/x", "! net.port_not_allowed default sandbox" });
}

static void denied_requests_are_denied_however_they_are_spelt(void **state) {
        (void) state;
        CHECK(" {allow: [{host: a.example}], deny: [{host: a.example, paths: [/admin]}, {host: a.example, methods: "
              "[DELETE]}, {host: a.example, methods: [POST], paths: [/up]}]}",
              NULL, NULL, { "a.example", "allow[0]" }, { "a.example:443", "allow[0] +http" },
              { "a.example:443 GET /", "allow[0]" }, { "a.example:443 GET /administrator", "allow[0]" },
              { "a.example:443 GET /admin", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET /admin/x", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET /admin;x=1", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET /%61dmin", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET /admin%2fx", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET /x/../admin", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET //admin", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 GET *", "! net.path_not_allowed deny[0] sandbox" },
              { "a.example:443 DELETE /x", "! net.method_not_allowed deny[1] sandbox" },
              { "a.example:443 delete /x", "! net.method_not_allowed deny[1] sandbox" },
              { "a.example:443 POST /up/x", "! net.path_not_allowed deny[2] sandbox" },
              { "a.example:443 GET /up/x", "allow[0]" });
        /* also by the ceiling, which then wants TLS opened */
        CHECK(" {allow: [{host: a.example}]}", " {preset: public, deny: [{host: a.example, methods: [POST]}]}", NULL,
              { "a.example:443", "allow[0] ceiling:default +http" },
              { "a.example:443 POST /", "! net.method_not_allowed ceiling:deny[0] ceiling" },
              { "a.example:443 GET /", "allow[0] ceiling:default" });
}

static void the_deciding_prefix_is_told(void **state) {
        CLEANUP(policy_egress_freep)
        struct policy_egress *e =
                net_egress(" {allow: [{host: a.example, paths: [/x/, /y/]}], deny: [{host: a.example, paths: [/y/z]}]}",
                           NULL, NULL);
        struct policy_net_request q = {
                .stage = POLICY_NET_HTTP, .name = "a.example", .port = 443, .method = "GET", .path = "/y/secret?k=v"
        };
        struct policy_net_verdict v;

        (void) state;
        policy_net_eval(e, &q, &v);
        assert_true(v.allowed);
        assert_string_equal(v.path, "/y/");
        q.path = "/y/z/1";
        policy_net_eval(e, &q, &v);
        assert_false(v.allowed);
        assert_string_equal(v.path, "/y/z");
}

static void incomplete_questions_are_denied(void **state) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = net_egress(" {preset: public}", NULL, NULL);
        static const struct policy_net_request questions[] = {
                { .stage = POLICY_NET_NAME },
                { .stage = POLICY_NET_CONNECT, .port = 443 },
                { .stage = POLICY_NET_CONNECT, .name = "a.example" },
                { .stage = POLICY_NET_ADDRESS, .name = "a.example", .port = 443 },
                { .stage = POLICY_NET_HTTP, .name = "a.example", .port = 443, .method = "GET" },
                { .stage = POLICY_NET_HTTP, .name = "a.example", .port = 443, .path = "/" },
                { .stage = POLICY_NET_NAME, .name = "A.example" },
                { .stage = POLICY_NET_NAME, .name = "" },
                { .stage = POLICY_NET_NAME, .name = "127.0.0.1" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
                struct policy_net_verdict v;

                policy_net_eval(e, &questions[i], &v);
                assert_false(v.allowed);
                assert_string_equal(v.code, "net.name_not_allowed");
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_allowed_by_default),
                cmocka_unit_test(patterns_match_whole_labels),
                cmocka_unit_test(ports_decide),
                cmocka_unit_test(deny_beats_allow),
                cmocka_unit_test(networks_are_for_literal_addresses),
                cmocka_unit_test(the_floor_is_below_every_rule_of_the_sandbox),
                cmocka_unit_test(preset_public_is_public_addresses),
                cmocka_unit_test(both_sides_must_allow),
                cmocka_unit_test(the_ceiling_opens_the_floor_by_naming_the_address),
                cmocka_unit_test(an_opened_floor_needs_a_rule_of_the_sandbox_too),
                cmocka_unit_test(resolve_opens_the_floor_for_one_name_and_port),
                cmocka_unit_test(requests_are_judged_by_method_and_path),
                cmocka_unit_test(denied_requests_are_denied_however_they_are_spelt),
                cmocka_unit_test(the_deciding_prefix_is_told),
                cmocka_unit_test(incomplete_questions_are_denied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
