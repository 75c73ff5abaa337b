/*
 * net_e2b.c - the network fields of the E2B protocol as a policy.
 *
 * There everything is allowed unless denied, allow beats deny, and ports are not known. Here deny beats allow, so what
 * allowOut names is taken out of denyOut. The floor, the ceiling and the budgets stay what they are. A host in allowOut
 * whose address is in denyOut stays denied: that is stricter, and the address of a name is not ours to trust.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/net_flags.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

struct fields {
        struct policy_net *net;
        struct addr_cidr deny[POLICY_NET_RULES];
        size_t n_deny;
        bool allow_all, deny_all;
};

static void rule_donep(struct net_rule *r) {
        net_rule_done(r);
}

static int decode_allow(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        CLEANUP(rule_donep) struct net_rule rule = { 0 };
        char text[HOST_NAME + 4];
        struct addr_cidr cidr;
        struct fields *f = at;
        struct err why;
        int r;

        if (field_text(value, text, sizeof(text)) < 0)
                return field_error(ctx, err, "must be a host, an address or a CIDR");
        r = addr_cidr_parse(text, &cidr) == 0 ? net_rule_cidr(&rule, text, &why) : net_rule_host(&rule, text, &why);
        if (r == 0)
                r = net_rule_port(&rule, "1-65535", &why);
        if (r == 0 && rule.kind == NET_CIDR && rule.cidr.bits == 0)
                f->allow_all = true;
        if (r == 0)
                r = net_add(f->net, true, &rule, &why);
        return r < 0 ? field_error(ctx, err, "%s", why.msg) : 0;
}

static int decode_deny(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        char text[HOST_NAME + 4];
        struct fields *f = at;
        struct addr_cidr *c = &f->deny[f->n_deny]; /* the table of the list bounds their number */

        if (field_text(value, text, sizeof(text)) < 0 || addr_cidr_parse(text, c) < 0)
                return field_error(ctx, err, "must be an address or a CIDR");
        f->deny_all = f->deny_all || c->bits == 0;
        f->n_deny++;
        return 0;
}

static int refuse(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) at;
        if (json_is_null(value) || (json_is_object(value) && json_len(value) == 0))
                return 0;
        return field_error(ctx, err, "not available in this build");
}

/* What concerns connections to the sandbox; whoever serves those reads it. */
static int leave(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) ctx;
        (void) value;
        (void) at;
        (void) err;
        return 0;
}

/* Denies a network without what the allow rules have of it: halves until each piece is inside or outside. */
static int deny_rest(struct policy_net *net, struct addr_cidr c, struct err *err) {
        char text[ADDR_CIDR_TEXT];
        struct net_rule rule = { 0 };
        struct addr_cidr half = c;
        bool split = false;
        int r;

        for (size_t i = 0; i < net->allow.n; i++) {
                const struct net_rule *a = &net->allow.at[i];

                if (a->kind != NET_CIDR)
                        continue;
                if (a->cidr.bits <= c.bits && addr_cidr_contains(&a->cidr, &c.base))
                        return 0;
                split = split || (a->cidr.bits > c.bits && addr_cidr_contains(&c, &a->cidr.base));
        }
        if (!split) {
                addr_cidr_text(&c, text);
                r = net_rule_cidr(&rule, text, err);
                return r < 0 ? r : net_add(net, false, &rule, err);
        }
        half.bits = c.bits + 1;
        r = deny_rest(net, half, err);
        half.base.b[c.bits / 8] = (uint8_t) (half.base.b[c.bits / 8] | 0x80u >> (c.bits % 8));
        return r < 0 ? r : deny_rest(net, half, err);
}

int policy_net_from_e2b(struct policy *p, const struct json *network, bool internet, struct err *err) {
        static const struct field rows[] = {
                { .key = "allowOut", .type = FIELD_LIST, .size = POLICY_NET_RULES, .decode = decode_allow },
                { .key = "denyOut", .type = FIELD_LIST, .size = POLICY_NET_RULES, .decode = decode_deny },
                { .key = "rules", .type = FIELD_ANY, .decode = refuse },
                { .key = "egressProxy", .type = FIELD_ANY, .decode = refuse },
                { .key = "allowPublicTraffic", .type = FIELD_ANY, .decode = leave },
                { .key = "maskRequestHost", .type = FIELD_ANY, .decode = leave },
                { .key = "httpsPorts", .type = FIELD_ANY, .decode = leave },
        };
        static const struct field_ctx ctx = { .what = "network" };
        CLEANUP(net_freep) struct policy_net *net = net_new();
        AUTO_FREE struct fields *f = calloc(1, sizeof(*f));
        int r = 0;

        if (!net || !f)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "network");
        f->net = net;
        if (network)
                r = field_decode(&ctx, network, rows, ARRAY_SIZE(rows), f, err);
        if (r < 0)
                return r;
        net->open = f->allow_all || (internet && !f->deny_all);
        for (size_t i = 0; r == 0 && net->open && i < f->n_deny; i++)
                r = deny_rest(net, f->deny[i], err);
        if (r == 0)
                r = net_check(net, err);
        if (r < 0)
                return err_wrap(err, "network.denyOut");
        if (net_is_idle(net))
                net = net_free(net);
        (void) net_free(p->net);
        p->net = TAKE_PTR(net);
        return 0;
}
