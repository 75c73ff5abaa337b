/* statement.c - the report as JSON: vectors per group, never only a total, and everything that the judgement rests on.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "prove/names.h"
#include "prove/prove.h"

static struct json *attempt_json(const struct prove_attempt *a) {
        struct json *o = json_new_object();

        json_set_str(o, "id", a->id);
        json_set_str(o, "severity", prove_severity_names[a->severity]);
        json_set_str(o, "verdict", prove_verdict_names[a->verdict]);
        json_set_int(o, "errno", a->err_no);
        json_set_int(o, "ms", a->ms);
        json_set_str(o, "what", a->what);
        json_set_str(o, "technique", a->technique);
        json_set_str(o, "note", a->note);
        return o;
}

static struct json *group_json(const struct prove_report *r, size_t i) {
        char letter = (char) ('A' + i);
        struct json *o = json_new_object();
        struct json *found = json_new_object();

        for (int s = PROVE_CRIT; s <= PROVE_CONTROL; s++)
                json_set_int(found, prove_severity_names[s], (int64_t) prove_count(r, (enum prove_severity) s, letter));
        json_set_str(o, "name", prove_group_names[i]);
        json_set_bool(o, "tried", prove_is_tried(r, letter));
        for (int v = PROVE_STOPPED; v <= PROVE_ACCEPTED; v++)
                json_set_int(o, prove_verdict_names[v], (int64_t) prove_verdicts(r, (enum prove_verdict) v, letter));
        json_set(o, "findings", found);
        return o;
}

static struct json *groups_json(const struct prove_report *r) {
        struct json *o = json_new_object();

        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                const char letter[2] = { (char) ('A' + i), '\0' };

                json_set(o, letter, group_json(r, i));
        }
        return o;
}

static struct json *outside_json(const struct prove_report *r) {
        struct json *all = json_new_array();

        for (size_t i = 0; i < r->n_checks; i++) {
                struct json *c = json_new_object();

                json_set_str(c, "what", r->checks[i].what);
                json_set_bool(c, "ok", r->checks[i].ok);
                if (r->checks[i].note[0])
                        json_set_str(c, "note", r->checks[i].note);
                json_add(all, c);
        }
        return all;
}

static void set_hex(struct json *o, const char *key, uint64_t v) {
        char text[24];

        (void) snprintf(text, sizeof(text), "%016llx", (unsigned long long) v);
        json_set_str(o, key, text);
}

static struct json *posture_json(const struct prove_posture *p) {
        struct json *o = json_new_object(), *ns = json_new_object();

        json_set_bool(o, "seen", p->seen);
        if (p->seen) {
                set_hex(o, "CapInh", p->status.inheritable);
                set_hex(o, "CapPrm", p->status.permitted);
                set_hex(o, "CapEff", p->status.effective);
                set_hex(o, "CapBnd", p->status.bounding);
                set_hex(o, "CapAmb", p->status.ambient);
                json_set_int(o, "NoNewPrivs", (int64_t) p->status.no_new_privs);
                json_set_int(o, "Seccomp", (int64_t) p->status.seccomp);
                json_set_int(o, "Seccomp_filters", (int64_t) p->status.seccomp_filters);
                json_set_int(o, "uid", (int64_t) p->status.uid[1]);
                json_set_str(o, "uid_map", p->uid_map);
        }
        for (unsigned i = 0; i < PROVE_NS; i++)
                if (p->ns_known & BIT(i))
                        json_set_str(ns, prove_ns_names[i], p->ns_new & BIT(i) ? "own" : "host");
        json_set(o, "namespaces", ns);
        return o;
}

static struct json *level_json(const struct prove_report *r, char letter,
                               void (*get)(const struct prove_report *r, struct prove_level *ret)) {
        struct json *o = json_new_object();
        struct prove_level l;
        char name[8];

        get(r, &l);
        (void) snprintf(name, sizeof(name), "%c%d", letter, l.level);
        json_set_str(o, "level", l.level < 0 ? NULL : name);
        json_set_str(o, "why", l.why);
        return o;
}

static struct json *dangerous_json(const struct prove_report *r) {
        struct json *o = json_new_object(), *names = json_new_array();
        struct prove_dangerous d;

        prove_dangerous(r, &d);
        for (size_t i = 0; i < d.n_reached; i++)
                json_add_str(names, d.reached[i]);
        json_set_int(o, "known", (int64_t) d.known);
        json_set_int(o, "exist", (int64_t) d.exist);
        json_set_int(o, "tried", (int64_t) d.tried);
        json_set_int(o, "reached", (int64_t) d.n_reached);
        json_set(o, "names", names);
        return o;
}

static void set_parsed(struct json *o, const char *key, const char *text, struct err *err) {
        struct json *doc = NULL;

        if (text && text[0] && json_parse(key, text, strlen(text), &doc, err) == 0)
                json_set(o, key, doc);
}

/* Everything but the single attempts. */
static struct json *summary_json(const struct prove_report *r, struct err *err) {
        struct json *o = json_new_object(), *levels = json_new_object();

        json_set(levels, "host", level_json(r, 'H', prove_host_level));
        json_set(levels, "network", level_json(r, 'N', prove_network_level));
        json_set_str(o, "type", "gabion.prove/v1");
        json_set_str(o, "time", r->time);
        json_set_str(o, "subject", r->subject);
        if (r->command[0])
                json_set_str(o, "command", r->command);
        else
                json_set_str(o, "tier", "ns");
        set_parsed(o, "config", r->config, err);
        json_set_bool(o, "rootless", r->rootless);
        json_set_str(o, "kernel", r->kernel);
        json_set_str(o, "machine", r->machine);
        json_set_str(o, "gabion", r->version);
        json_set_str(o, "build", r->build[0] ? r->build : NULL);
        json_set_str(o, "policy", r->policy[0] ? r->policy : NULL);
        json_set_str(o, "probe", r->probe);
        json_set_real(o, "seconds", r->seconds);
        json_set_int(o, "deaths", r->deaths);
        json_set_bool(o, "passed", prove_passed(r));
        json_set_bool(o, "whole", prove_is_whole(r));
        json_set(o, "aisi", levels);
        json_set(o, "dangerous_calls", dangerous_json(r));
        json_set(o, "groups", groups_json(r));
        json_set(o, "outside", outside_json(r));
        json_set(o, "posture", posture_json(&r->posture));
        if (r->evidence[0])
                json_set_str(o, "evidence_hash", r->evidence_hash);
        set_parsed(o, "evidence", r->evidence, err);
        return o;
}

int prove_json(const struct prove_report *r, struct json **ret, struct err *err) {
        struct json *o = summary_json(r, err), *all = json_new_array();

        for (size_t i = 0; i < r->n_attempts; i++)
                json_add(all, attempt_json(&r->attempts[i]));
        json_set(o, "attempts", all);
        *ret = o;
        return 0;
}

int prove_json_signed(const struct prove_report *const *reports, size_t n, struct json **ret, struct err *err) {
        struct json *others = json_new_array();
        int r = prove_json(reports[0], ret, err);

        for (size_t i = 1; i < n; i++)
                json_add(others, summary_json(reports[i], err));
        json_set(*ret, "against", others);
        return r;
}
