/* net_rules.c - rules of the network part: their life, and what may stand in one. */
#include "policy/net_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/limits.h"

enum { SHOWN = 60, PORT_MAX = 65535, PORT_TEXT = 12, METHOD_MAX = 24, NOTES = 512 };

/* --- life --- */

static char **strings_free(char **at, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(at[i]);
        return NULL;
}

void net_rule_done(struct net_rule *r) {
        free(r->host);
        (void) strings_free(r->methods, r->n_methods);
        (void) strings_free(r->paths, r->n_paths);
        *r = (struct net_rule){ 0 };
}

static void list_done(struct net_list *l) {
        for (size_t i = 0; i < l->n; i++)
                net_rule_done(&l->at[i]);
        free(l->at);
        *l = (struct net_list){ 0 };
}

static const uint64_t budgets[POLICY_NET_COUNTERS] = {
        [POLICY_NET_CONNECTIONS] = POLICY_CONNECTIONS_DEFAULT,
        [POLICY_NET_RATE] = POLICY_RATE_DEFAULT,
        [POLICY_NET_BYTES_OUT] = POLICY_BYTES_OUT_DEFAULT,
        [POLICY_NET_NAMES] = POLICY_NAMES_DEFAULT,
};

uint64_t net_budget_default(enum policy_net_counter c) {
        return budgets[c];
}

struct policy_net *net_new(void) {
        struct policy_net *net = calloc(1, sizeof(*net));

        if (net)
                memcpy(net->budget, budgets, sizeof(net->budget));
        return net;
}

struct policy_net *net_free(struct policy_net *net) {
        if (!net)
                return NULL;
        list_done(&net->allow);
        list_done(&net->deny);
        (void) strings_free(net->notes, net->n_notes);
        free(net->notes);
        free(net);
        return NULL;
}

void net_freep(struct policy_net **net) {
        *net = net_free(*net);
}

static bool strings_clone(char *const *of, size_t n, char **to, size_t *ret_n) {
        for (*ret_n = 0; *ret_n < n; (*ret_n)++) {
                to[*ret_n] = strdup(of[*ret_n]);
                if (!to[*ret_n])
                        return false;
        }
        return true;
}

static bool rule_clone(const struct net_rule *of, struct net_rule *to) {
        *to = *of;
        to->n_methods = to->n_paths = 0;
        to->host = of->host ? strdup(of->host) : NULL;
        return !of->host == !to->host && strings_clone(of->methods, of->n_methods, to->methods, &to->n_methods) &&
               strings_clone(of->paths, of->n_paths, to->paths, &to->n_paths);
}

static bool list_clone(const struct net_list *of, struct net_list *to) {
        *to = (struct net_list){ 0 };
        if (of->n == 0)
                return true;
        to->at = calloc(of->n, sizeof(*to->at));
        if (!to->at)
                return false;
        for (size_t i = 0; i < of->n; i++) {
                to->n++; /* also of a half-made one, so that it is freed */
                if (!rule_clone(&of->at[i], &to->at[i]))
                        return false;
        }
        return true;
}

int net_clone(const struct policy_net *of, struct policy_net **ret) {
        CLEANUP(net_freep) struct policy_net *net = of ? net_new() : NULL;

        if (of) {
                if (!net)
                        return -ENOMEM;
                net->open = of->open;
                net->packages = of->packages;
                memcpy(net->budget, of->budget, sizeof(net->budget));
                if (!list_clone(&of->allow, &net->allow) || !list_clone(&of->deny, &net->deny))
                        return -ENOMEM;
                for (size_t i = 0; i < of->n_notes; i++)
                        if (net_note(net, of->notes[i]) < 0)
                                return -ENOMEM;
        }
        *ret = TAKE_PTR(net);
        return 0;
}

bool net_is_idle(const struct policy_net *net) {
        return !net->open && !net->packages && net->allow.n == 0 && net->deny.n == 0 &&
               memcmp(net->budget, budgets, sizeof(net->budget)) == 0;
}

static size_t parts_of(const struct net_list *l) {
        size_t n = l->n;

        for (size_t i = 0; i < l->n; i++)
                n += l->at[i].n_ports + l->at[i].n_methods + l->at[i].n_paths;
        return n;
}

int net_check(const struct policy_net *net, struct err *err) {
        if (parts_of(&net->allow) + parts_of(&net->deny) > POLICY_NET_PARTS)
                return err_set(err, -E2BIG, ERR_LIMIT, "network: more than %d rules, ports, methods and paths together",
                               POLICY_NET_PARTS);
        return 0;
}

int net_add(struct policy_net *net, bool allow, struct net_rule *rule, struct err *err) {
        struct net_list *l = allow ? &net->allow : &net->deny;
        struct net_rule *more;

        if (l->n >= POLICY_NET_RULES)
                return err_set(err, -E2BIG, ERR_LIMIT, "at most %d rules", POLICY_NET_RULES);
        more = reallocarray(l->at, l->n + 1, sizeof(*more));
        if (!more)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "network rule");
        l->at = more;
        if (rule->n_ports == 0 && allow) {
                rule->ports[0] = (struct net_ports){ 80, 80 };
                rule->ports[1] = (struct net_ports){ 443, 443 };
                rule->n_ports = 2;
        } else if (rule->n_ports == 0) {
                rule->ports[0] = (struct net_ports){ 1, PORT_MAX };
                rule->n_ports = 1;
        }
        l->at[l->n++] = *rule;
        *rule = (struct net_rule){ 0 };
        return 0;
}

int net_note(struct policy_net *net, const char *text) {
        char **more;

        if (net->n_notes >= NOTES)
                return 0;
        more = reallocarray(net->notes, net->n_notes + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        net->notes = more;
        more[net->n_notes] = strdup(text);
        if (!more[net->n_notes])
                return -ENOMEM;
        net->n_notes++;
        return 0;
}

/* --- contents of a rule --- */

static int fail(struct err *err, const char *text, const char *problem) {
        return err_set(err, -EINVAL, ERR_INVALID, "'%.*s' %s", SHOWN, text, problem);
}

/* What people write instead of a host, each with its remedy. NULL: something else is wrong. */
static const char *not_a_host(const char *text) {
        struct addr_cidr cidr;

        for (const char *p = text; *p; p++)
                if ((unsigned char) *p >= 0x80)
                        return "is not ASCII; write the xn-- form of the name";
        if (str_eq(text, "*") || str_eq(text, "**"))
                return "would be every host; that is preset: public";
        if (addr_cidr_parse(text, &cidr) == 0 || *text == '[')
                return "is an address; write it as cidr";
        if (strchr(text, '@'))
                return "has user information in it; write the host alone";
        if (strchr(text, '/'))
                return "has a '/' in it; write the host alone";
        if (strchr(text, ':'))
                return "has a ':' in it; ports have their own member";
        return strchr(text, '*') ? "has a star in it; it may only begin with *. or **." : NULL;
}

int net_rule_host(struct net_rule *r, const char *text, struct err *err) {
        size_t stars = str_has_prefix(text, "**.") ? 2 : str_has_prefix(text, "*.") ? 1 : 0;
        const char *rest = text + (stars > 0 ? stars + 1 : 0);
        char name[HOST_NAME];
        const char *problem;

        if (host_canonical(rest, strlen(rest), name) < 0) {
                problem = not_a_host(text);
                return fail(err, text,
                            problem ? problem
                                    : "is not a host name: labels of 1 to 63 letters, digits, '-' and '_', the last "
                                      "not a number, at most 253 characters");
        }
        if (stars > 0 && !strchr(name, '.'))
                return fail(err, text, "is too wide: a suffix needs at least two labels");
        r->host = strdup(name);
        if (!r->host)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "network rule");
        r->kind = stars == 2 ? NET_TREE : stars == 1 ? NET_BELOW : NET_EXACT;
        return 0;
}

int net_rule_cidr(struct net_rule *r, const char *text, struct err *err) {
        if (addr_cidr_parse(text, &r->cidr) < 0)
                return fail(err, text,
                            "is not a network: write 192.0.2.0/24, 2001:db8::/32 or an address, with no bit set "
                            "behind the prefix");
        r->kind = NET_CIDR;
        return 0;
}

int net_port(const char *text, uint16_t *ret) {
        uint64_t v = 0;

        if (*text == '0' || str_to_u64(text, PORT_MAX, &v) < 0)
                return -EINVAL;
        *ret = (uint16_t) v;
        return 0;
}

/* Puts a range into the ascending list and joins what touches it. */
static void ports_join(struct net_rule *r, struct net_ports add) {
        struct net_ports kept[POLICY_NET_PORTS + 1];
        size_t n = 0, i = 0;

        for (; i < r->n_ports && r->ports[i].last + 1 < add.first; i++)
                kept[n++] = r->ports[i];
        for (; i < r->n_ports && r->ports[i].first <= add.last + 1; i++) {
                add.first = r->ports[i].first < add.first ? r->ports[i].first : add.first;
                add.last = r->ports[i].last > add.last ? r->ports[i].last : add.last;
        }
        kept[n++] = add;
        for (; i < r->n_ports; i++)
                kept[n++] = r->ports[i];
        memcpy(r->ports, kept, n * sizeof(kept[0])); /* the caller made sure of one free place */
        r->n_ports = n;
}

int net_rule_port(struct net_rule *r, const char *text, struct err *err) {
        const char *dash = strchr(text, '-');
        char first[PORT_TEXT] = "";
        struct net_ports p = { 0 };

        if (dash && (size_t) (dash - text) < sizeof(first))
                memcpy(first, text, (size_t) (dash - text));
        if (net_port(dash ? first : text, &p.first) < 0 || net_port(dash ? dash + 1 : text, &p.last) < 0 ||
            p.first > p.last)
                return fail(err, text, "is not a port: write 1 to 65535, or a range as 8000-8100");
        if (r->n_ports >= POLICY_NET_PORTS)
                return err_set(err, -E2BIG, ERR_LIMIT, "at most %d ports or ranges", POLICY_NET_PORTS);
        ports_join(r, p);
        return 0;
}

static int string_add(char **at, size_t *n, size_t max, const char *text, struct err *err) {
        for (size_t i = 0; i < *n; i++)
                if (str_eq(at[i], text))
                        return 0;
        if (*n >= max)
                return err_set(err, -E2BIG, ERR_LIMIT, "at most %zu", max);
        at[*n] = strdup(text);
        if (!at[*n])
                return err_set(err, -ENOMEM, ERR_INTERNAL, "network rule");
        (*n)++;
        return 0;
}

int net_rule_method(struct net_rule *r, const char *text, struct err *err) {
        size_t n = strlen(text);

        if (n == 0 || n > METHOD_MAX || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != n)
                return fail(err, text, "is not a method: write GET, POST, ... in capitals");
        return string_add(r->methods, &r->n_methods, POLICY_NET_METHODS, text, err);
}

int net_rule_path(struct net_rule *r, const char *text, struct err *err) {
        struct net_path path;

        if (strchr(text, '?') || net_path_read(text, &path) < 0)
                return fail(err, text,
                            "is not a path prefix: it begins with '/' and has no '..', '//', '\\', '%25', query or "
                            "fragment");
        if (path.n >= POLICY_NET_PATH)
                return fail(err, text, "is too long for a path prefix");
        return string_add(r->paths, &r->n_paths, POLICY_NET_PATHS, path.kept, err);
}

void net_rule_text(const struct net_rule *r, char dst[HOST_NAME + 4]) {
        static const char *const stars[] = { [NET_EXACT] = "", [NET_BELOW] = "*.", [NET_TREE] = "**." };

        if (r->kind == NET_CIDR)
                addr_cidr_text(&r->cidr, dst);
        else
                (void) snprintf(dst, HOST_NAME + 4, "%s%s", stars[r->kind], r->host);
}

bool net_rule_has_port(const struct net_rule *r, uint16_t port) {
        for (size_t i = 0; i < r->n_ports; i++)
                if (port >= r->ports[i].first && port <= r->ports[i].last)
                        return true;
        return false;
}

bool net_rule_has_name(const struct net_rule *r, const char *name) {
        size_t n = strlen(name), k;

        if (r->kind == NET_CIDR)
                return false;
        k = strlen(r->host);
        if (n == k)
                return r->kind != NET_BELOW && str_eq(name, r->host);
        return r->kind != NET_EXACT && n > k && name[n - k - 1] == '.' && str_eq(name + n - k, r->host);
}
