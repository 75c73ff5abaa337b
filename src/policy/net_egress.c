/* net_egress.c - the document that tells gabion-egress what one sandbox may reach, and the questions about it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

/* --- life --- */

struct policy_egress *policy_egress_free(struct policy_egress *e) {
        if (!e)
                return NULL;
        (void) net_free(e->net);
        (void) net_free(e->ceiling);
        free(e->resolve);
        free(e);
        return NULL;
}

void policy_egress_freep(struct policy_egress **e) {
        *e = policy_egress_free(*e);
}

int policy_egress_new(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                      size_t n, struct policy_egress **ret, struct err *err) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = calloc(1, sizeof(*e));
        int r;

        if (!e)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "egress document");
        r = policy_hash(p, e->policy_hash, err);
        if (r == 0 && ceiling)
                r = policy_check(ceiling, err);
        if (r < 0)
                return r;
        e->has_ceiling = ceiling;
        if (n > POLICY_NET_RESOLVE)
                return err_set(err, -E2BIG, ERR_LIMIT, "--resolve: at most %d", POLICY_NET_RESOLVE);
        e->resolve = n > 0 ? calloc(n, sizeof(*resolve)) : NULL;
        if ((n > 0 && !e->resolve) || net_clone(p->net, &e->net) < 0 ||
            (ceiling && net_clone(ceiling->net, &e->ceiling) < 0))
                return err_set(err, -ENOMEM, ERR_INTERNAL, "egress document");
        if (n > 0)
                memcpy(e->resolve, resolve, n * sizeof(*resolve));
        e->n_resolve = n;
        *ret = TAKE_PTR(e);
        return 0;
}

/* --- writing --- */

/* A policy as a member, in its canonical form. */
static int add_policy(struct json *doc, const char *key, const struct policy *p, struct err *err) {
        AUTO_FREE char *text = NULL;
        struct json *j = NULL;
        int r = policy_canonical(p, &text, err);

        if (r == 0)
                r = json_parse(key, text, strlen(text), &j, err);
        if (r == 0)
                json_set(doc, key, j);
        return r;
}

static struct json *resolve_json(const struct policy_resolve *resolve, size_t n) {
        struct json *list = json_new_array();

        for (size_t i = 0; i < n; i++) {
                struct json *j = json_new_object();
                char text[ADDR_TEXT];

                addr_text(&resolve[i].address, text);
                json_set_str(j, "name", resolve[i].name);
                json_set_int(j, "port", resolve[i].port);
                json_set_str(j, "address", text);
                json_set_int(j, "to_port", resolve[i].to_port);
                json_add(list, j);
        }
        return list;
}

int policy_egress_text(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                       size_t n, char **ret, struct err *err) {
        return policy_egress_text_from(p, ceiling, resolve, n, &(const struct addr){ .family = ADDR_NONE }, ret, err);
}

int policy_egress_text_from(const struct policy *p, const struct policy *ceiling, const struct policy_resolve *resolve,
                            size_t n, const struct addr *bind, char **ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = json_new_object();
        AUTO_FREE char *text = NULL;
        char hash[HASH_TEXT], from[ADDR_TEXT];
        int r = policy_hash(p, hash, err);

        if (r == 0)
                r = add_policy(doc, "policy", p, err);
        if (r == 0 && ceiling)
                r = add_policy(doc, "ceiling", ceiling, err);
        if (r < 0)
                return r;
        if (!ceiling)
                json_set_str(doc, "ceiling", NULL);
        json_set(doc, "resolve", resolve_json(resolve, n));
        json_set_str(doc, "policy_hash", hash);
        if (bind->family != ADDR_NONE) {
                addr_text(bind, from);
                json_set_str(doc, "bind", from);
        }
        r = json_text(doc, false, &text, err);
        if (r < 0)
                return r;
        if (strlen(text) > POLICY_EGRESS_BYTES || n > POLICY_NET_RESOLVE)
                return err_set(err, -E2BIG, ERR_LIMIT, "the rules of the network are too large");
        *ret = TAKE_PTR(text);
        return 0;
}

/* --- reading --- */

struct document {
        struct policy *policy, *ceiling;
        struct policy_resolve resolve[POLICY_NET_RESOLVE];
        size_t n_resolve;
        struct addr bind;
        char hash[HASH_TEXT];
};

static void document_done(struct document *d) {
        policy_freep(&d->policy);
        policy_freep(&d->ceiling);
}

static int decode_policy(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        CLEANUP(policy_freep) struct policy *p = malloc(sizeof(*p));
        struct err why;
        int r;

        if (!p)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "egress document");
        policy_default(p);
        r = policy_decode(value, p, &why);
        if (r < 0)
                return field_error(ctx, err, "%s", why.msg);
        *(struct policy **) at = TAKE_PTR(p);
        return 0;
}

/* null: there is none. */
static int decode_ceiling(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        if (json_is_null(value))
                return 0;
        return decode_policy(ctx, value, at, err);
}

static int decode_name(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text = json_get_str(ctx->in, ctx->key);
        char name[HOST_NAME];

        (void) value;
        if (!text || host_canonical(text, strlen(text), name) < 0 || !str_eq(text, name))
                return field_error(ctx, err, "must be a host name");
        return str_copy(at, HOST_NAME, name);
}

static int decode_address(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text = json_get_str(ctx->in, ctx->key);

        (void) value;
        return text && addr_parse(text, at) == 0 ? 0 : field_error(ctx, err, "must be an address");
}

static int decode_resolve(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct wide {
                struct policy_resolve r;
                uint32_t port, to_port;
        } w = { 0 };
        static const struct field fields[] = {
                { .key = "name",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct wide, r.name),
                  .required = true,
                  .decode = decode_name },
                { .key = "address",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct wide, r.address),
                  .required = true,
                  .decode = decode_address },
                { .key = "port",
                  .type = FIELD_U32,
                  .offset = offsetof(struct wide, port),
                  .size = UINT16_MAX,
                  .min = 1,
                  .required = true },
                { .key = "to_port",
                  .type = FIELD_U32,
                  .offset = offsetof(struct wide, to_port),
                  .size = UINT16_MAX,
                  .min = 1,
                  .required = true },
        };
        struct document *d = at;
        int r = field_decode(ctx, value, fields, ARRAY_SIZE(fields), &w, err);

        if (r < 0)
                return r;
        w.r.port = (uint16_t) w.port;
        w.r.to_port = (uint16_t) w.to_port;
        d->resolve[d->n_resolve++] = w.r; /* the table of the list bounds their number */
        return 0;
}

int policy_egress_read(const char *text, size_t n, struct policy_egress **ret, struct err *err) {
        static const struct field fields[] = {
                { .key = "policy",
                  .type = FIELD_OBJECT,
                  .offset = offsetof(struct document, policy),
                  .required = true,
                  .decode = decode_policy },
                { .key = "ceiling",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct document, ceiling),
                  .required = true,
                  .decode = decode_ceiling },
                { .key = "resolve", .type = FIELD_LIST, .size = POLICY_NET_RESOLVE, .decode = decode_resolve },
                { .key = "bind",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct document, bind),
                  .decode = decode_address },
                { .key = "policy_hash",
                  .type = FIELD_STR,
                  .offset = offsetof(struct document, hash),
                  .size = HASH_TEXT,
                  .required = true },
        };
        static const struct field_ctx ctx = { .what = "egress document" };
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        CLEANUP(document_done) struct document d = { 0 };
        CLEANUP(json_freep) struct json *doc = NULL;
        int r;

        if (n > POLICY_EGRESS_BYTES)
                return err_set(err, -EFBIG, ERR_LIMIT, "egress document: too large");
        r = json_parse(ctx.what, text, n, &doc, err);
        if (r == 0)
                r = field_decode(&ctx, doc, fields, ARRAY_SIZE(fields), &d, err);
        if (r == 0)
                r = policy_egress_new(d.policy, d.ceiling, d.resolve, d.n_resolve, &e, err);
        if (r < 0 || !e)
                return r;
        if (!str_eq(e->policy_hash, d.hash))
                return err_set(err, -EBADMSG, ERR_INVALID, "egress document: policy_hash: not that of the policy");
        e->bind = d.bind;
        *ret = TAKE_PTR(e);
        return 0;
}

/* --- questions --- */

const struct policy_resolve *policy_egress_resolve(const struct policy_egress *e, const char *name, uint16_t port) {
        for (size_t i = 0; i < e->n_resolve; i++)
                if (e->resolve[i].port == port && str_eq(e->resolve[i].name, name))
                        return &e->resolve[i];
        return NULL;
}

void policy_net_budget(const struct policy_egress *e, struct policy_net_budget *ret) {
        for (enum policy_net_counter c = 0; c < POLICY_NET_COUNTERS; c++) {
                /* Without a network of its own nothing new begins; what goes on from an earlier policy is counted. */
                uint64_t own = e->net ? e->net->budget[c] : net_budget_default(c);
                uint64_t above = !e->has_ceiling ? UINT64_MAX : e->ceiling ? e->ceiling->budget[c] : 0;

                ret->max[c] = above < own ? above : own;
                (void) snprintf(ret->rule[c], sizeof(ret->rule[c]), "%sbudget:%s", above < own ? "ceiling:" : "",
                                net_budget_name(c));
        }
}

bool policy_net_any(const struct policy *p) {
        return p->net && (p->net->open || p->net->packages || p->net->allow.n > 0);
}

bool policy_net_is_public(const struct policy *p) {
        return p->net && p->net->open;
}

static bool list_wants_http(const struct net_list *l) {
        for (size_t i = 0; i < l->n; i++)
                if (net_rule_wants_http(&l->at[i]))
                        return true;
        return false;
}

static bool net_wants_http(const struct policy *p) {
        return p && p->net && (list_wants_http(&p->net->allow) || list_wants_http(&p->net->deny));
}

bool policy_net_opens_tls(const struct policy *p, const struct policy *ceiling) {
        return policy_net_any(p) && (net_wants_http(p) || net_wants_http(ceiling));
}
