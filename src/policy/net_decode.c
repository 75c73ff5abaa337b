/* net_decode.c - the member `network` of a policy, as field tables. It replaces the network part as a whole: rules of
 * two documents are never mixed. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/limits.h"
#include "policy/net_rules.h"
#include "policy/units.h"

enum { TEXT = 1024 }; /* longest text of one value, whatever it is */

static const char *const counters[POLICY_NET_COUNTERS] = {
        [POLICY_NET_CONNECTIONS] = "connections",
        [POLICY_NET_RATE] = "rate",
        [POLICY_NET_BYTES_OUT] = "bytes_out",
        [POLICY_NET_NAMES] = "names",
};

/* --- rules --- */

/* A scalar of a rule, handed to what checks and stores it. */
static int part(const struct field_ctx *ctx, const struct json *value, void *at,
                int (*set)(struct net_rule *, const char *, struct err *), struct err *err) {
        char text[TEXT];
        struct err why;
        int r = field_text(value, text, sizeof(text));

        if (r == -EINVAL)
                return field_error(ctx, err, "must be a string or a number");
        if (r < 0)
                return field_error(ctx, err, "must be shorter than %d characters", TEXT);
        return set(at, text, &why) < 0 ? field_error(ctx, err, "%s", why.msg) : 0;
}

static int decode_host(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return part(ctx, value, at, net_rule_host, err);
}

static int decode_cidr(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return part(ctx, value, at, net_rule_cidr, err);
}

static int decode_port(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return part(ctx, value, at, net_rule_port, err);
}

static int decode_method(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return part(ctx, value, at, net_rule_method, err);
}

static int decode_path(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return part(ctx, value, at, net_rule_path, err);
}

static void rule_donep(struct net_rule *r) {
        net_rule_done(r);
}

static int decode_rule(const struct field_ctx *ctx, const struct json *value, struct policy_net *net, bool allow,
                       struct err *err) {
        static const struct field fields[] = {
                { .key = "host", .type = FIELD_TEXT, .decode = decode_host },
                { .key = "cidr", .type = FIELD_TEXT, .decode = decode_cidr },
                { .key = "ports", .type = FIELD_LIST, .size = POLICY_NET_PORTS, .decode = decode_port },
                { .key = "methods", .type = FIELD_LIST, .size = POLICY_NET_METHODS, .decode = decode_method },
                { .key = "paths", .type = FIELD_LIST, .size = POLICY_NET_PATHS, .decode = decode_path },
        };
        CLEANUP(rule_donep) struct net_rule rule = { 0 };
        struct err why;
        int r = field_decode(ctx, value, fields, ARRAY_SIZE(fields), &rule, err);

        if (r < 0)
                return r;
        if (!json_get(value, "host") == !json_get(value, "cidr"))
                return field_error(ctx, err, "must have either host or cidr");
        /* An empty list would be read as "none" by one and as "any" by another. */
        for (size_t i = 2; i < ARRAY_SIZE(fields); i++)
                if (json_get(value, fields[i].key) && json_len(json_get(value, fields[i].key)) == 0)
                        return field_error(ctx, err, "%s must not be empty; leave it out", fields[i].key);
        if (rule.kind == NET_CIDR && net_rule_wants_http(&rule))
                return field_error(ctx, err, "methods and paths need a host");
        return net_add(net, allow, &rule, &why) < 0 ? field_error(ctx, err, "%s", why.msg) : 0;
}

static int decode_allow(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return decode_rule(ctx, value, at, true, err);
}

static int decode_deny(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return decode_rule(ctx, value, at, false, err);
}

/* --- budget --- */

static int count(const char *text, uint64_t max, uint64_t *ret, struct err *err) {
        uint64_t v = 0;
        int r = str_to_u64(text, max, &v);

        if (r == -EINVAL)
                return err_set(err, r, ERR_INVALID, "'%.40s' is not a whole number", text);
        if (r < 0 || v == 0)
                return err_set(err, -ERANGE, ERR_INVALID, "%.40s is out of range; allowed: 1 to %" PRIu64, text, max);
        *ret = v;
        return 0;
}

static int rate(const char *text, uint64_t *ret, struct err *err) {
        size_t n = strcspn(text, "/");
        char number[POLICY_UNIT_TEXT];

        if (n >= sizeof(number) || !str_eq(text + n, "/s"))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.40s' is not a rate; write for example 20/s", text);
        memcpy(number, text, n);
        number[n] = '\0';
        return count(number, POLICY_RATE_MAX, ret, err);
}

int net_budget_set(uint64_t budget[POLICY_NET_COUNTERS], const char *name, const char *text, struct err *err) {
        enum policy_net_counter c = 0;

        while (c < POLICY_NET_COUNTERS && !str_eq(name, counters[c]))
                c++;
        switch (c) {
        case POLICY_NET_CONNECTIONS:
                return count(text, POLICY_CONNECTIONS_MAX, &budget[c], err);
        case POLICY_NET_RATE:
                return rate(text, &budget[c], err);
        case POLICY_NET_BYTES_OUT:
                return policy_units_size(text, POLICY_BYTES_OUT_MIN, POLICY_BYTES_OUT_MAX, &budget[c], err);
        case POLICY_NET_NAMES:
                return count(text, POLICY_NAMES_MAX, &budget[c], err);
        case POLICY_NET_COUNTERS:
                break;
        }
        return err_set(err, -EINVAL, ERR_INVALID, "unknown budget; allowed: connections rate bytes_out names");
}

const char *net_budget_name(enum policy_net_counter c) {
        return c < POLICY_NET_COUNTERS ? counters[c] : "?";
}

static int decode_counter(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct policy_net *net = at;
        char text[TEXT];
        struct err why;

        if (field_text(value, text, sizeof(text)) < 0)
                return field_error(ctx, err, "must be shorter than %d characters", TEXT);
        return net_budget_set(net->budget, ctx->key, text, &why) < 0 ? field_error(ctx, err, "%s", why.msg) : 0;
}

static int decode_budget(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "connections", .type = FIELD_TEXT, .decode = decode_counter },
                { .key = "rate", .type = FIELD_TEXT, .decode = decode_counter },
                { .key = "bytes_out", .type = FIELD_TEXT, .decode = decode_counter },
                { .key = "names", .type = FIELD_TEXT, .decode = decode_counter },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

/* --- the member itself --- */

static int decode_preset(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text = json_get_str(ctx->in, ctx->key);
        struct policy_net *net = at;

        (void) value;
        if (!text || (!str_eq(text, "none") && !str_eq(text, "packages") && !str_eq(text, "public")))
                return field_error(ctx, err, "must be one of: none packages public");
        net->packages = str_eq(text, "packages");
        net->open = str_eq(text, "public");
        return 0;
}

/* `deny` goes with any preset: with public it would be a contradiction, so there it must be `allow`, or left out. */
static int decode_default(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text = json_get_str(ctx->in, ctx->key), *preset = json_get_str(ctx->in, "preset");
        bool open = preset && str_eq(preset, "public");

        (void) value;
        (void) at;
        if (!text)
                return field_error(ctx, err, "must be a string");
        if (str_eq(text, "allow") && !open)
                return field_error(ctx, err, "'allow' comes only with preset: public; allowed: deny");
        if (!str_eq(text, open ? "allow" : "deny"))
                return field_error(ctx, err, "'%.40s' is not possible here; allowed: %s", text,
                                   open ? "allow" : "deny");
        return 0;
}

static int refuse_publish(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) at;
        if (json_is_array(value) && json_len(value) == 0)
                return 0;
        return field_error(ctx, err, "not available in this build");
}

int net_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "preset", .type = FIELD_ANY, .decode = decode_preset },
                { .key = "default", .type = FIELD_ANY, .decode = decode_default },
                { .key = "allow", .type = FIELD_LIST, .size = POLICY_NET_RULES, .decode = decode_allow },
                { .key = "deny", .type = FIELD_LIST, .size = POLICY_NET_RULES, .decode = decode_deny },
                { .key = "budget", .type = FIELD_OBJECT, .decode = decode_budget },
                { .key = "publish", .type = FIELD_ANY, .decode = refuse_publish },
        };
        CLEANUP(net_freep) struct policy_net *net = net_new();
        struct policy_net **into = at;
        int r;

        if (!net)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "decode network");
        r = field_decode(ctx, value, fields, ARRAY_SIZE(fields), net, err);
        if (r < 0)
                return r;
        if (net_is_idle(net))
                net = net_free(net);
        (void) net_free(*into);
        *into = TAKE_PTR(net);
        return 0;
}
