/*
 * diff.c - what a second policy allows that the first did not, and the other way round.
 *
 * Rules are compared one by one, not by what they add up to: a rule that another one covers is still listed, so that a
 * reviewer sees every line that changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/policy.h"

struct diff {
        struct json *more, *less, *other; /* lists */
};

/* A member that changed. */
static void changed(struct json *list, const char *what, const char *from, const char *to) {
        struct json *j = json_new_object();

        json_set_str(j, "what", what);
        json_set_str(j, "from", from);
        json_set_str(j, "to", to);
        json_add(list, j);
}

static void ranked(const struct diff *d, const char *what, int from, int to, const char *from_name,
                   const char *to_name) {
        if (from != to)
                changed(to > from ? d->more : d->less, what, from_name, to_name);
}

static void number(const struct diff *d, const char *what, uint64_t from, uint64_t to, uint64_t unlimited) {
        char a[24], b[24];

        if (from == to)
                return;
        (void) snprintf(a, sizeof(a), "%llu", (unsigned long long) from);
        (void) snprintf(b, sizeof(b), "%llu", (unsigned long long) to);
        changed((to > from && from != unlimited) || to == unlimited ? d->more : d->less, what, a, b);
}

static void diff_limits(const struct diff *d, const struct policy_limits *a, const struct policy_limits *b) {
        number(d, "limits.memory", a->memory_bytes, b->memory_bytes, UINT64_MAX);
        number(d, "limits.cpu (thousandths)", a->cpu_milli, b->cpu_milli, UINT64_MAX);
        number(d, "limits.pids", a->pids, b->pids, UINT64_MAX);
        number(d, "limits.disk", a->disk_bytes, b->disk_bytes, UINT64_MAX);
        number(d, "limits.time (ms)", a->time_ms, b->time_ms, UINT64_MAX);
        number(d, "limits.output", a->output_bytes, b->output_bytes, UINT64_MAX);
        number(d, "limits.files", a->files, b->files, UINT64_MAX);
        number(d, "limits.io", a->io_bytes_per_s, b->io_bytes_per_s, 0);
}

static const struct policy_mount *mount_at(const struct policy *p, const struct policy_mount *m) {
        for (size_t i = 0; i < p->n_mounts; i++)
                if (str_eq(p->mounts[i].target, m->target) && str_eq(p->mounts[i].source, m->source))
                        return &p->mounts[i];
        return NULL;
}

/* Mounts that only one side has, or that are writable only there. */
static void diff_mounts(struct json *list, const struct policy *with, const struct policy *without) {
        for (size_t i = 0; i < with->n_mounts; i++) {
                const struct policy_mount *m = &with->mounts[i], *had = mount_at(without, m);
                struct json *j;

                if (had && had->writable >= m->writable)
                        continue;
                j = json_new_object();
                json_set_str(j, "what", "filesystem.mounts");
                json_set_str(j, "source", m->source);
                json_set_str(j, "target", m->target);
                json_set_str(j, "mode", m->writable ? "rw" : "ro");
                json_add(list, j);
        }
}

/* --- network --- */

static int has_rule(const struct json *list, const char *text, bool *ret, struct err *err) {
        *ret = false;
        for (size_t i = 0; !*ret && i < json_len(list); i++) {
                AUTO_FREE char *other = NULL;
                int r = json_text(json_at(list, i), false, &other, err);

                if (r < 0)
                        return r;
                *ret = str_eq(text, other);
        }
        return 0;
}

/* Rules of one list that the other does not have. */
static int diff_rules(struct json *into, const char *what, bool added, const struct json *with,
                      const struct json *without, struct err *err) {
        for (size_t i = 0; i < json_len(with); i++) {
                AUTO_FREE char *text = NULL;
                struct json *j, *rule = NULL;
                bool had = false;
                int r = json_text(json_at(with, i), false, &text, err);

                if (r == 0)
                        r = has_rule(without, text, &had, err);
                if (r == 0 && !had)
                        r = json_parse(what, text, strlen(text), &rule, err);
                if (r < 0)
                        return r;
                if (had)
                        continue;
                j = json_new_object();
                json_set_str(j, "what", what);
                json_set_str(j, "change", added ? "added" : "removed");
                json_set(j, "rule", rule);
                json_add(into, j);
        }
        return 0;
}

static void diff_budget(const struct diff *d, const struct policy *a, const struct policy *b) {
        static const char *const names[POLICY_NET_COUNTERS] = { "network.budget.connections", "network.budget.rate",
                                                                "network.budget.bytes_out", "network.budget.names" };
        const struct policy_egress x = { .net = a->net }, y = { .net = b->net };
        struct policy_net_budget from, to;

        if (!a->net || !b->net) /* without a network there is nothing to count */
                return;
        policy_net_budget(&x, &from);
        policy_net_budget(&y, &to);
        for (size_t c = 0; c < POLICY_NET_COUNTERS; c++)
                number(d, names[c], from.max[c], to.max[c], UINT64_MAX);
}

static int diff_network(const struct diff *d, const struct policy *a, const struct policy *b, struct err *err) {
        CLEANUP(json_freep) struct json *x = policy_net_json(a), *y = policy_net_json(b);
        int r;

        ranked(d, "network.default", policy_net_is_public(a), policy_net_is_public(b), json_get_str(x, "default"),
               json_get_str(y, "default"));
        diff_budget(d, a, b);
        r = diff_rules(d->more, "network.allow", true, json_get(y, "allow"), json_get(x, "allow"), err);
        if (r == 0)
                r = diff_rules(d->less, "network.allow", false, json_get(x, "allow"), json_get(y, "allow"), err);
        if (r == 0)
                r = diff_rules(d->less, "network.deny", true, json_get(y, "deny"), json_get(x, "deny"), err);
        return r < 0 ? r : diff_rules(d->more, "network.deny", false, json_get(x, "deny"), json_get(y, "deny"), err);
}

/* What is neither more nor less. */
static void diff_rest(const struct diff *d, const struct policy *a, const struct policy *b, bool same) {
        if (!str_eq(a->name, b->name))
                changed(d->other, "name", a->name, b->name);
        if (!same && json_len(d->more) + json_len(d->less) + json_len(d->other) == 0)
                changed(d->other, "order", "", "");
}

int policy_diff(const struct policy *a, const struct policy *b, struct json **ret, struct err *err) {
        static const int freedom[] = {
                [POLICY_SYSCALLS_STRICT] = 0,
                [POLICY_SYSCALLS_AGENT] = 1,
                [POLICY_SYSCALLS_DEBUG] = 2,
        };
        CLEANUP(json_freep) struct json *more = json_new_array(), *less = json_new_array(), *other = json_new_array();
        const struct diff d = { more, less, other };
        char from[HASH_TEXT], to[HASH_TEXT];
        int r = policy_hash(a, from, err);

        if (r == 0)
                r = policy_hash(b, to, err);
        if (r == 0)
                r = diff_network(&d, a, b, err);
        if (r < 0)
                return r;
        ranked(&d, "user", (int) a->user, (int) b->user, policy_user_name(a->user), policy_user_name(b->user));
        ranked(&d, "syscalls", freedom[a->syscalls], freedom[b->syscalls], policy_syscalls_name(a->syscalls),
               policy_syscalls_name(b->syscalls));
        diff_limits(&d, &a->limits, &b->limits);
        diff_mounts(more, b, a);
        diff_mounts(less, a, b);
        diff_rest(&d, a, b, str_eq(from, to));
        *ret = json_new_object();
        json_set_str(*ret, "from", from);
        json_set_str(*ret, "to", to);
        json_set(*ret, "more", TAKE_PTR(more));
        json_set(*ret, "less", TAKE_PTR(less));
        json_set(*ret, "other", TAKE_PTR(other));
        return 0;
}
