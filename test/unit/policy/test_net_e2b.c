/* test_net_e2b.c - the network fields of the E2B protocol, as rules. */
#include <errno.h>

#include "base/str.h"
#include "net_help.h"

/* default, allow hosts, deny networks, as "allow|a.example *.b.example|10.0.0.0/8 ..." */
static void compile(const char *json, bool internet, char *dst, size_t cap) {
        CLEANUP(json_freep) struct json *doc = NULL, *net = NULL;
        static struct policy p;
        static const char *const lists[] = { "allow", "deny" };
        struct err err = { 0 };
        size_t n;

        policy_default(&p);
        if (json && json_parse("network", json, strlen(json), &doc, &err) < 0)
                fail_msg("%s", err.msg);
        if (policy_net_from_e2b(&p, doc, internet, &err) < 0) {
                (void) snprintf(dst, cap, "%s", err.msg);
                assert_null(p.net);
                return;
        }
        net = policy_net_json(&p);
        n = (size_t) snprintf(dst, cap, "%s", json_get_str(net, "default"));
        for (size_t k = 0; k < 2; k++) {
                const struct json *list = json_get(net, lists[k]);

                n += (size_t) snprintf(dst + n, cap - n, "|");
                for (size_t i = 0; i < json_len(list); i++) {
                        const char *host = json_get_str(json_at(list, i), "host");

                        n += (size_t) snprintf(dst + n, cap - n, "%s%s", i > 0 ? " " : "",
                                               host ? host : json_get_str(json_at(list, i), "cidr"));
                }
        }
        policy_done(&p);
}

static void fields_become_rules(void **state) {
        static const struct {
                const char *json;
                bool internet;
                const char *want;
        } cases[] = {
                { NULL, true, "allow||" },
                { NULL, false, "deny||" },
                { "{}", true, "allow||" },
                { "{\"allowOut\":[],\"denyOut\":[]}", false, "deny||" },
                { "{\"allowPublicTraffic\":true,\"maskRequestHost\":\"x\",\"rules\":{},\"egressProxy\":null}", true,
                  "allow||" },
                { "{\"denyOut\":[\"93.184.216.34\",\"9.0.0.0/8\"]}", true, "allow||93.184.216.34/32 9.0.0.0/8" },
                { "{\"denyOut\":[\"0.0.0.0/0\"],\"allowOut\":[\"1.1.1.1\",\"a.example\",\"*.b.example\"]}", true,
                  "deny|1.1.1.1/32 a.example *.b.example|" },
                { "{\"allowOut\":[\"1.1.1.1\",\"A.example\"]}", false, "deny|1.1.1.1/32 a.example|" },
                /* allow beats deny: what is allowed is taken out of what is denied */
                { "{\"denyOut\":[\"9.0.0.0/8\"],\"allowOut\":[\"9.0.0.0/8\"]}", true, "allow|9.0.0.0/8|" },
                { "{\"denyOut\":[\"9.1.0.0/16\"],\"allowOut\":[\"9.0.0.0/8\"]}", true, "allow|9.0.0.0/8|" },
                { "{\"denyOut\":[\"9.0.0.0/8\"],\"allowOut\":[\"9.128.0.0/9\"]}", true, "allow|9.128.0.0/9|9.0.0.0/9" },
                { "{\"denyOut\":[\"9.0.0.0/29\"],\"allowOut\":[\"9.0.0.2\",\"9.0.0.7\",\"8.8.8.8\"]}", true,
                  "allow|9.0.0.2/32 9.0.0.7/32 8.8.8.8/32|9.0.0.0/31 9.0.0.3/32 9.0.0.4/31 9.0.0.6/32" },
                { "{\"denyOut\":[\"9.0.0.0/8\",\"0.0.0.0/0\"],\"allowOut\":[\"0.0.0.0/0\"]}", true,
                  "allow|0.0.0.0/0|" },
                { "{\"denyOut\":[\"2001:db8::/32\"],\"allowOut\":[\"9.0.0.2\"]}", true,
                  "allow|9.0.0.2/32|2001:db8::/32" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char got[1024];

                compile(cases[i].json, cases[i].internet, got, sizeof(got));
                if (!str_eq(got, cases[i].want))
                        fail_msg("%s: %s, expected %s", cases[i].json, got, cases[i].want);
        }
}

static void wrong_fields_are_named(void **state) {
        static const struct {
                const char *json, *want;
        } cases[] = {
                { "{\"allowOut\":[\"*\"]}", "network: allowOut[0]: '*' would be every host; that is preset: public" },
                { "{\"allowOut\":[5]}",
                  "network: allowOut[0]: '5' is not a host name: labels of 1 to 63 letters, digits, "
                  "'-' and '_', the last not a number, at most 253 characters" },
                { "{\"allowOut\":\"a.example\"}", "network: allowOut: must be a list" },
                { "{\"denyOut\":[\"a.example\"]}", "network: denyOut[0]: must be an address or a CIDR" },
                { "{\"rules\":{\"a.example\":[]}}", "network: rules: not available in this build" },
                { "{\"egressProxy\":{\"address\":\"x\"}}", "network: egressProxy: not available in this build" },
                { "{\"allow_out\":[]}", "network: allow_out: unknown key; did you mean 'allowOut'? allowed: allowOut "
                                        "denyOut rules egressProxy allowPublicTraffic maskRequestHost httpsPorts" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char got[1024];

                compile(cases[i].json, true, got, sizeof(got));
                assert_string_equal(got, cases[i].want);
        }
}

/* Many holes in one network are more rules than there may be; that is an error, never a wider rule. */
static void too_many_pieces_are_an_error(void **state) {
        char json[16384] = "{\"denyOut\":[\"0.0.0.0/1\"],\"allowOut\":[", got[512];
        size_t n = strlen(json);

        (void) state;
        for (int i = 1; i < 60; i++)
                n += (size_t) snprintf(json + n, sizeof(json) - n, "%s\"%d.%d.77.1\"", i > 1 ? "," : "", i, 3 * i);
        (void) snprintf(json + n, sizeof(json) - n, "]}");
        compile(json, true, got, sizeof(got));
        assert_string_equal(got, "network.denyOut: at most 256 rules");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(fields_become_rules),
                cmocka_unit_test(wrong_fields_are_named),
                cmocka_unit_test(too_many_pieces_are_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
