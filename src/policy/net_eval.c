/*
 * net_eval.c - the decision about one connection. Pure; docs/policy.md tells it to operators.
 *
 * The floor is everything that is not a public address. It is below both policies: a rule of the sandbox, a host rule
 * of the ceiling or preset public do not open it, since names are resolved by whoever owns them. Two things do:
 *  - an allow rule of the ceiling that names the address: a CIDR that lies within one class of the floor (so 0.0.0.0/0
 *    names nothing, and a metadata service is named only by itself), for its ports. Then the sandbox's policy must have
 * a rule of its own for the name or address; preset public means public addresses.
 *  - the operator's --resolve, for exactly that name, port and address.
 * Deny rules hold for the address as well as for the name, in any case.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"
#include "policy/net_rules.h"

/* A request with what all rules need to know of it. */
struct look {
        const struct policy_net_request *q;
        struct addr carried; /* the IPv4 address inside the IPv6 one */
        bool has_carried;
        bool is_public;  /* or no address is known yet */
        bool is_chosen;  /* by --resolve */
        bool path_plain; /* false: servers would disagree about it */
        struct net_path path;
};

/* What one side says. */
struct ruling {
        bool allowed, needs_http;
        const char *code;
        const char *list; /* "allow", "deny" or "default" */
        size_t index;
        const char *path;
};

static struct ruling denied(const char *code, const char *list, size_t index) {
        return (struct ruling){ .code = code, .list = list, .index = index };
}

static bool address_in(const struct look *l, const struct net_rule *r, bool also_carried) {
        if (r->kind != NET_CIDR || !l->q->address)
                return false;
        return addr_cidr_contains(&r->cidr, l->q->address) ||
               (also_carried && l->has_carried && addr_cidr_contains(&r->cidr, &l->carried));
}

static bool has_method(const struct net_rule *r, const char *method, bool strict) {
        for (size_t i = 0; i < r->n_methods; i++)
                if (strict ? str_eq(r->methods[i], method) : strcasecmp(r->methods[i], method) == 0)
                        return true;
        return r->n_methods == 0;
}

/* The prefix that the path is below; "" if any path will do; NULL if there is none. */
static const char *path_of(const struct look *l, const struct net_rule *r, bool strict) {
        if (r->n_paths == 0)
                return "";
        for (size_t i = 0; i < r->n_paths; i++)
                if (l->path_plain && net_path_below(r->paths[i], &l->path, strict))
                        return r->paths[i];
        return strict || l->path_plain ? NULL : r->paths[0]; /* it may be any of them */
}

static bool is_every_port(const struct net_rule *r) {
        return r->n_ports == 1 && r->ports[0].first == 1 && r->ports[0].last == UINT16_MAX;
}

/* True: a deny rule decided. */
static bool judge_deny(const struct look *l, const struct net_list *deny, struct ruling *ret) {
        const struct policy_net_request *q = l->q;

        for (size_t i = 0; i < deny->n; i++) {
                const struct net_rule *r = &deny->at[i];
                bool by_address = address_in(l, r, true);
                const char *prefix;

                if (!by_address && !(q->name && net_rule_has_name(r, q->name)))
                        continue;
                if (q->stage == POLICY_NET_NAME ? !is_every_port(r) : !net_rule_has_port(r, q->port))
                        continue;
                if (!net_rule_wants_http(r)) {
                        *ret = denied(by_address ? "net.address_not_allowed" : "net.name_not_allowed", "deny", i);
                        if (!is_every_port(r))
                                ret->code = "net.port_not_allowed";
                        return true;
                }
                if (q->stage != POLICY_NET_HTTP) {
                        ret->needs_http = q->stage != POLICY_NET_NAME;
                        continue;
                }
                prefix = path_of(l, r, false);
                if (!prefix || !has_method(r, q->method, false))
                        continue;
                *ret = denied(r->n_paths > 0 ? "net.path_not_allowed" : "net.method_not_allowed", "deny", i);
                ret->path = r->n_paths > 0 ? prefix : NULL;
                return true;
        }
        return false;
}

/* How near the allow rules came; the code of a denial says what was missing. */
struct nearest {
        bool host, port, method;
        size_t http_rule; /* the first rule that needs requests to be judged; index + 1 */
};

/* True: an allow rule decided. */
static bool judge_allow(const struct look *l, const struct net_list *allow, struct nearest *near, struct ruling *ret) {
        const struct policy_net_request *q = l->q;

        for (size_t i = 0; i < allow->n; i++) {
                const struct net_rule *r = &allow->at[i];
                const char *prefix = "";

                if (!(q->name ? net_rule_has_name(r, q->name) : address_in(l, r, false)))
                        continue;
                near->host = true;
                if (q->stage != POLICY_NET_NAME && !net_rule_has_port(r, q->port))
                        continue;
                near->port = true;
                if (net_rule_wants_http(r) && q->stage == POLICY_NET_HTTP) {
                        if (!has_method(r, q->method, true))
                                continue;
                        near->method = true;
                        prefix = path_of(l, r, true);
                        if (!prefix)
                                continue;
                } else if (net_rule_wants_http(r) && q->stage != POLICY_NET_NAME) {
                        near->http_rule = near->http_rule ? near->http_rule : i + 1;
                        continue; /* a later rule may allow it without looking at requests */
                }
                ret->allowed = true;
                ret->list = "allow";
                ret->index = i;
                ret->path = *prefix ? prefix : NULL;
                return true;
        }
        return false;
}

static const char *missing(const struct look *l, const struct nearest *near) {
        if (!near->host)
                return l->q->name ? "net.name_not_allowed" : "net.address_not_allowed";
        if (!near->port)
                return "net.port_not_allowed";
        return near->method ? "net.path_not_allowed" : "net.method_not_allowed";
}

/* One side: deny, allow, default. The default of the ceiling counts for floor addresses, which it has named then. */
static struct ruling judge(const struct look *l, const struct policy_net *net, bool is_ceiling) {
        struct ruling ret = { .list = "default", .code = "" };
        struct nearest near = { 0 };

        if (!net || net->packages)
                return denied(missing(l, &near), "default", 0);
        if (judge_deny(l, &net->deny, &ret) || judge_allow(l, &net->allow, &near, &ret))
                return ret;
        if (net->open && (l->is_public || l->is_chosen || is_ceiling)) {
                ret.allowed = true;
                return ret;
        }
        if (near.http_rule > 0) {
                ret.allowed = ret.needs_http = true;
                ret.list = "allow";
                ret.index = near.http_rule - 1;
                return ret;
        }
        return denied(net->open ? "net.address_not_allowed" : missing(l, &near), "default", 0);
}

/* --- the floor --- */

static struct addr last_of(const struct addr_cidr *c) {
        struct addr a = c->base;
        unsigned end = a.family == ADDR_V4 ? 32 : 128;

        for (unsigned i = c->bits; i < end; i++)
                a.b[i / 8] = (uint8_t) (a.b[i / 8] | 0x80u >> (i % 8));
        return a;
}

static bool is_named(const struct look *l, const struct policy_net *ceiling, enum addr_class class) {
        for (size_t i = 0; ceiling && i < ceiling->allow.n; i++) {
                const struct net_rule *r = &ceiling->allow.at[i];
                struct addr last;

                if (!address_in(l, r, false) || !net_rule_has_port(r, l->q->port))
                        continue;
                last = last_of(&r->cidr);
                if (addr_classify(&r->cidr.base) == class && addr_classify(&last) == class)
                        return true;
        }
        return false;
}

static const char *floor_code(enum addr_class class) {
        switch (class) {
        case ADDR_METADATA:
                return "net.metadata";
        case ADDR_LOOPBACK:
        case ADDR_PRIVATE:
        case ADDR_LINK_LOCAL:
        case ADDR_CGNAT:
        case ADDR_UNSPECIFIED:
                return "net.private_address";
        case ADDR_PUBLIC:
        case ADDR_MULTICAST:
        case ADDR_DOCUMENTATION:
        case ADDR_BENCHMARK:
        case ADDR_RESERVED:
        case ADDR_CLASSES:
                break;
        }
        return "net.address_not_allowed";
}

/* --- both sides together --- */

static void rule_text(const struct ruling *r, const char *side, char dst[POLICY_NET_RULE]) {
        if (str_eq(r->list, "default"))
                (void) snprintf(dst, POLICY_NET_RULE, "%sdefault", side);
        else
                (void) snprintf(dst, POLICY_NET_RULE, "%s%s[%zu]", side, r->list, r->index);
}

static void deny(struct policy_net_verdict *v, enum policy_net_side side, const char *code, const char *path) {
        v->allowed = false;
        v->needs_http = false;
        v->side = side;
        v->code = code;
        v->path = path;
        v->ceiling_rule[0] = '\0';
}

/* What the stage needs is there, and the name is one. */
static bool is_complete(const struct policy_net_request *q) {
        char name[HOST_NAME];

        if (q->name && (host_canonical(q->name, strlen(q->name), name) < 0 || !str_eq(name, q->name)))
                return false;
        if (q->stage == POLICY_NET_NAME)
                return q->name;
        return q->port > 0 && (q->name || q->address) && (q->stage != POLICY_NET_ADDRESS || q->address) &&
               (q->stage != POLICY_NET_HTTP || (q->method && q->path));
}

static void look_at(const struct policy_egress *e, const struct policy_net_request *q, struct look *l,
                    enum addr_class *class) {
        const struct policy_resolve *to = q->name ? policy_egress_resolve(e, q->name, q->port) : NULL;

        *l = (struct look){ .q = q };
        *class = q->address ? addr_classify(q->address) : ADDR_PUBLIC;
        l->is_public = *class == ADDR_PUBLIC;
        l->is_chosen = to && q->address && addr_eq(&to->address, q->address);
        l->has_carried = q->address && addr_embedded(q->address, &l->carried);
        l->path_plain = q->stage == POLICY_NET_HTTP && net_path_read(q->path, &l->path) == 0;
}

void policy_net_eval(const struct policy_egress *e, const struct policy_net_request *q,
                     struct policy_net_verdict *ret) {
        struct ruling own, ceiling = { .allowed = true, .list = "default" };
        enum addr_class class;
        struct look l;

        *ret = (struct policy_net_verdict){ .code = "", .side = POLICY_NET_SANDBOX, .rule = "default" };
        if (!is_complete(q)) {
                deny(ret, POLICY_NET_SANDBOX, "net.name_not_allowed", NULL);
                return;
        }
        look_at(e, q, &l, &class);
        if (!l.is_public && !l.is_chosen && !(e->has_ceiling && is_named(&l, e->ceiling, class))) {
                deny(ret, POLICY_NET_FLOOR, floor_code(class), NULL);
                (void) snprintf(ret->rule, sizeof(ret->rule), "floor:%s", addr_class_name(class));
                return;
        }
        own = judge(&l, e->net, false);
        if (e->has_ceiling)
                ceiling = judge(&l, e->ceiling, true);
        rule_text(&own, "", ret->rule);
        if (!own.allowed) {
                deny(ret, POLICY_NET_SANDBOX, own.code, own.path);
                return;
        }
        if (!ceiling.allowed) {
                deny(ret, POLICY_NET_CEILING, ceiling.code, ceiling.path);
                rule_text(&ceiling, "ceiling:", ret->rule);
                return;
        }
        ret->allowed = true;
        ret->needs_http = own.needs_http || ceiling.needs_http;
        ret->path = own.path ? own.path : ceiling.path;
        if (e->has_ceiling)
                rule_text(&ceiling, "ceiling:", ret->ceiling_rule);
}

const char *policy_net_side_name(enum policy_net_side s) {
        static const char *const names[] = { "sandbox", "ceiling", "floor" };

        return (unsigned) s < ARRAY_SIZE(names) ? names[s] : "?";
}
