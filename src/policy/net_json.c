/* net_json.c - the network part as it stands in the canonical form. Everything is explicit there: ports that were left
 * out, budgets, and the rules of preset packages in place of the preset. */
#include <stdio.h>

#include "base/err.h"
#include "json/json.h"
#include "policy/net_rules.h"
#include "policy/policy.h"
#include "policy/units.h"

static struct json *ports_json(const struct net_rule *r) {
        struct json *list = json_new_array();
        char text[POLICY_UNIT_TEXT];

        for (size_t i = 0; i < r->n_ports; i++) {
                if (r->ports[i].first == r->ports[i].last) {
                        json_add_int(list, r->ports[i].first);
                        continue;
                }
                (void) snprintf(text, sizeof(text), "%u-%u", r->ports[i].first, r->ports[i].last);
                json_add_str(list, text);
        }
        return list;
}

static struct json *strings_json(char *const *at, size_t n) {
        struct json *list = json_new_array();

        for (size_t i = 0; i < n; i++)
                json_add_str(list, at[i]);
        return list;
}

static struct json *list_json(const struct net_list *l) {
        struct json *list = json_new_array();

        for (size_t i = 0; i < l->n; i++) {
                const struct net_rule *r = &l->at[i];
                struct json *j = json_new_object();
                char text[HOST_NAME + 4];

                net_rule_text(r, text);
                json_set_str(j, r->kind == NET_CIDR ? "cidr" : "host", text);
                json_set(j, "ports", ports_json(r));
                if (r->n_methods > 0)
                        json_set(j, "methods", strings_json(r->methods, r->n_methods));
                if (r->n_paths > 0)
                        json_set(j, "paths", strings_json(r->paths, r->n_paths));
                json_add(list, j);
        }
        return list;
}

static struct json *budget_json(const uint64_t budget[POLICY_NET_COUNTERS]) {
        struct json *j = json_new_object();
        char text[POLICY_UNIT_TEXT];

        for (enum policy_net_counter c = 0; c < POLICY_NET_COUNTERS; c++)
                if (c != POLICY_NET_RATE)
                        json_set_int(j, net_budget_name(c), (int64_t) budget[c]);
        (void) snprintf(text, sizeof(text), "%u/s", (unsigned) budget[POLICY_NET_RATE]);
        json_set_str(j, net_budget_name(POLICY_NET_RATE), text);
        return j;
}

struct json *policy_net_json(const struct policy *p) {
        const struct policy_net *net = p->net;
        struct json *j = json_new_object();

        json_set_str(j, "default", net && net->open ? "allow" : "deny");
        if (!net)
                return j;
        if (net->open || net->packages)
                json_set_str(j, "preset", net->open ? "public" : "packages");
        json_set(j, "allow", list_json(&net->allow));
        json_set(j, "deny", list_json(&net->deny));
        json_set(j, "budget", budget_json(net->budget));
        return j;
}

struct json *policy_net_notes(const struct policy *p) {
        return strings_json(p->net ? p->net->notes : NULL, p->net ? p->net->n_notes : 0);
}
