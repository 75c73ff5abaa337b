/*
 * compose.c - see compose.h.
 *
 * A request can ask for the whole internet; what it gets is what the ceiling has of that. A ceiling that allows nothing
 * makes a sandbox without a network at all. Where both sides let something through, egress judges every connection by
 * both.
 */
#include "daemon/compose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/template.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/net_flags.h"
#include "policy/policy.h"

enum { KEPT = 8 };

static void policy_donep(struct policy **p) {
        if (*p)
                policy_done(*p);
        free(*p);
}

static int policy_new(struct policy **ret, struct err *err) {
        *ret = malloc(sizeof(**ret));
        if (!*ret)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        policy_default(*ret);
        return 0;
}

int compose_check_ceiling(const struct json *doc, char **ret, struct err *err) {
        CLEANUP(policy_donep) struct policy *p = NULL;
        int r = policy_new(&p, err);

        if (r == 0)
                r = policy_decode_net(doc, p, err);
        return r < 0 ? r : policy_canonical(p, ret, err);
}

/* A ceiling is kept as a whole policy, of which the network counts. */
static int ceiling_read(struct daemon *d, const char *tenant, struct policy *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        int r = compose_ceiling(d, tenant, &text, err);

        if (r == 0)
                r = json_parse("ceiling", text, strlen(text), &doc, err);
        return r < 0 ? r : policy_decode(doc, ret, err);
}

int compose_ceiling(struct daemon *d, const char *tenant, char **ret, struct err *err) {
        int r = 0;

        *ret = NULL;
        if (tenant[0]) /* what is made before anybody asks for it has none */
                r = store_tenant_ceiling(d->store, tenant, ret, err);
        return r < 0 || *ret ? r : policy_canonical(&d->config.ceiling, ret, err);
}

static int judge_network(struct daemon *d, const char *tenant, struct policy *p, char **ret_ceiling, struct err *err) {
        CLEANUP(policy_donep) struct policy *ceiling = NULL;
        int r;

        if (!policy_net_any(p))
                return 0;
        r = policy_new(&ceiling, err);
        if (r == 0)
                r = ceiling_read(d, tenant, ceiling, err);
        if (r < 0)
                return r;
        return policy_net_any(ceiling) ? policy_canonical(ceiling, ret_ceiling, err)
                                       : policy_net_flag_net(p, "none", err);
}

static int put_together(struct daemon *d, const char *tenant, struct policy *p, const struct json *network,
                        bool internet, struct composed *ret, struct err *err) {
        int r = policy_net_from_e2b(p, network, internet, err);

        if (r == 0)
                r = judge_network(d, tenant, p, &ret->ceiling, err);
        if (r == 0)
                r = policy_canonical(p, &ret->policy, err);
        if (r < 0) {
                composed_done(ret);
                return r;
        }
        hash_text(ret->hash, ret->policy, strlen(ret->policy));
        ret->need = (struct quota_need){ p->limits.cpu_milli, p->limits.memory_bytes, p->limits.disk_bytes };
        return 0;
}

/* Most requests are alike: what came of the last ones is kept, by everything that it depends on. The policy of the
 * server does not change while it runs. */
struct composed_list {
        struct {
                char *key;
                struct composed is;
        } at[KEPT];
        size_t next;
};

static int key_of(struct daemon *d, const char *tenant, const struct template *t, const struct json *network,
                  bool internet, char **ret, struct err *err) {
        AUTO_FREE char *ceiling = NULL, *rules = NULL;
        int r = tenant[0] ? store_tenant_ceiling(d->store, tenant, &ceiling, err) : 0;

        if (r == 0 && network)
                r = json_text(network, false, &rules, err);
        if (r < 0)
                return r;
        if (asprintf(ret, "%s\n%d\n%s\n%s", t->policy, internet, ceiling ? ceiling : "", rules ? rules : "") < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        return 0;
}

static int composed_copy(const struct composed *from, struct composed *ret, struct err *err) {
        *ret = *from;
        ret->policy = strdup(from->policy);
        ret->ceiling = from->ceiling ? strdup(from->ceiling) : NULL;
        if (ret->policy && (ret->ceiling || !from->ceiling))
                return 0;
        composed_done(ret);
        return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
}

static int compose_new(struct daemon *d, const char *tenant, const struct template *t, const struct json *network,
                       bool internet, struct composed *ret, struct err *err) {
        CLEANUP(policy_donep) struct policy *p = NULL;
        int r = policy_new(&p, err);

        if (r < 0)
                return r;
        *p = d->config.policy; /* which has no network of its own: config_check() */
        (void) str_copy(p->template, sizeof(p->template), t->policy);
        return put_together(d, tenant, p, network, internet, ret, err);
}

int compose(struct daemon *d, const char *tenant, const struct template *t, const struct json *network, bool internet,
            struct composed *ret, struct err *err) {
        struct composed_list *l = d->composed ? d->composed : calloc(1, sizeof(*l));
        AUTO_FREE char *key = NULL;
        struct composed is = { 0 };
        int r;

        *ret = (struct composed){ 0 };
        d->composed = l;
        if (!l)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        r = key_of(d, tenant, t, network, internet, &key, err);
        for (size_t i = 0; r == 0 && i < KEPT; i++)
                if (l->at[i].key && str_eq(l->at[i].key, key))
                        return composed_copy(&l->at[i].is, ret, err);
        if (r == 0)
                r = compose_new(d, tenant, t, network, internet, &is, err);
        if (r < 0)
                return r;
        r = composed_copy(&is, ret, err);
        composed_done(&l->at[l->next].is);
        free(l->at[l->next].key);
        l->at[l->next].key = TAKE_PTR(key);
        l->at[l->next].is = is;
        l->next = (l->next + 1) % KEPT;
        return r;
}

void compose_forget(struct daemon *d) {
        for (size_t i = 0; d->composed && i < KEPT; i++) {
                composed_done(&d->composed->at[i].is);
                free(d->composed->at[i].key);
        }
        free(TAKE_PTR(d->composed));
}

int compose_again(struct daemon *d, const char *tenant, const char *policy, const struct json *network, bool internet,
                  struct composed *ret, struct err *err) {
        CLEANUP(policy_donep) struct policy *p = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        int r = policy_new(&p, err);

        *ret = (struct composed){ 0 };
        if (r == 0)
                r = json_parse("policy", policy, strlen(policy), &doc, err);
        if (r == 0)
                r = policy_decode(doc, p, err);
        return r < 0 ? r : put_together(d, tenant, p, network, internet, ret, err);
}

void composed_done(struct composed *c) {
        free(TAKE_PTR(c->policy));
        free(TAKE_PTR(c->ceiling));
}
