/* report.c - the report of a proof: vectors per group, findings, what is accepted and why; never only a total. */
#include <stdio.h>
#include <string.h>

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
        for (int v = PROVE_STOPPED; v <= PROVE_ACCEPTED; v++)
                json_set_int(o, prove_verdict_names[v], (int64_t) prove_verdicts(r, (enum prove_verdict) v, letter));
        json_set(o, "findings", found);
        return o;
}

int prove_json(const struct prove_report *r, struct json **ret, struct err *err) {
        struct json *o = json_new_object(), *groups = json_new_object(), *all = json_new_array(),
                    *outside = json_new_array();

        (void) err;
        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                const char letter[2] = { (char) ('A' + i), '\0' };

                json_set(groups, letter, group_json(r, i));
        }
        for (size_t i = 0; i < r->n_attempts; i++)
                json_add(all, attempt_json(&r->attempts[i]));
        for (size_t i = 0; i < r->n_checks; i++) {
                struct json *c = json_new_object();

                json_set_str(c, "what", r->checks[i].what);
                json_set_bool(c, "ok", r->checks[i].ok);
                json_add(outside, c);
        }
        json_set_str(o, "type", "gabion.prove/v1");
        json_set_str(o, "time", r->time);
        json_set_str(o, "subject", r->subject);
        json_set_bool(o, "rootless", r->rootless);
        json_set_str(o, "kernel", r->kernel);
        json_set_str(o, "machine", r->machine);
        json_set_str(o, "policy", r->policy[0] ? r->policy : NULL);
        json_set_str(o, "probe", r->probe);
        json_set_real(o, "seconds", r->seconds);
        json_set_bool(o, "passed", prove_passed(r));
        json_set(o, "groups", groups);
        json_set(o, "outside", outside);
        json_set(o, "attempts", all);
        *ret = o;
        return 0;
}

static void print_rows(const struct prove_report *r, const char *title, bool (*want)(const struct prove_attempt *a)) {
        size_t n = 0;

        for (size_t i = 0; i < r->n_attempts; i++) {
                const struct prove_attempt *a = &r->attempts[i];

                if (!want(a))
                        continue;
                if (n++ == 0)
                        (void) printf("\n%s\n", title);
                (void) printf("  %-5s %-7s %-8s %s%s%s%s%s\n", a->id, prove_severity_names[a->severity],
                              prove_verdict_names[a->verdict], a->what, a->technique[0] ? " (" : "", a->technique,
                              a->technique[0] ? ")" : "", a->note[0] ? ":" : "");
                if (a->note[0])
                        (void) printf("        %s%s%s\n", a->note, a->err_no ? "; " : "",
                                      a->err_no ? strerror(a->err_no) : "");
        }
}

void prove_print_table(const struct prove_report *const *reports, size_t n) {
        (void) printf("\n%-12s %8s %7s %6s | %5s %5s %5s %5s | %s\n", "subject", "attempts", "stopped", "absent",
                      "crit", "high", "med", "low", "seconds");
        for (size_t i = 0; i < n; i++) {
                const struct prove_report *r = reports[i];

                (void) printf("%-12s %8zu %7zu %6zu | %5zu %5zu %5zu %5zu | %.1f\n", r->subject, r->n_attempts,
                              prove_verdicts(r, PROVE_STOPPED, 0), prove_verdicts(r, PROVE_ABSENT, 0),
                              prove_count(r, PROVE_CRIT, 0), prove_count(r, PROVE_HIGH, 0),
                              prove_count(r, PROVE_MED, 0),
                              prove_count(r, PROVE_LOW, 0) + prove_count(r, PROVE_CONTROL, 0), r->seconds);
        }
}

int prove_print(const struct prove_report *r, bool all, bool colour) {
        const char *good = colour ? "\033[32m" : "", *bad = colour ? "\033[31m" : "", *off = colour ? "\033[0m" : "";

        (void) printf("gabion prove  subject %s%s  Linux %s %s  %s\n", r->subject, r->rootless ? " rootless" : "",
                      r->kernel, r->machine, r->time);
        if (r->policy[0])
                (void) printf("policy %s\n", r->policy);
        (void) printf("\n");
        (void) printf("  %-42s stopped absent accepted | crit high  med  low\n", "attempts");
        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                char g = (char) ('A' + i);
                size_t crit = prove_count(r, PROVE_CRIT, g), high = prove_count(r, PROVE_HIGH, g);

                (void) printf("  %c %-40s %7zu %6zu %8zu | %s%4zu %4zu%s %4zu %4zu\n", g, prove_group_names[i],
                              prove_verdicts(r, PROVE_STOPPED, g), prove_verdicts(r, PROVE_ABSENT, g),
                              prove_verdicts(r, PROVE_ACCEPTED, g), crit + high ? bad : good, crit, high, off,
                              prove_count(r, PROVE_MED, g),
                              prove_count(r, PROVE_LOW, g) + prove_count(r, PROVE_CONTROL, g));
        }
        (void) printf("\nSeen from outside:\n");
        for (size_t i = 0; i < r->n_checks; i++)
                (void) printf("  %s%s%s %s\n", r->checks[i].ok ? good : bad, r->checks[i].ok ? "ok" : "NO", off,
                              r->checks[i].what);
        print_rows(r, "Findings:", prove_is_finding);
        print_rows(r, "Accepted on purpose:", prove_is_accepted);
        if (all)
                print_rows(r, "All attempts:", prove_is_any);
        (void) printf("\n%zu attempts in %.1f s: %zu crit, %zu high, %zu med, %zu low; %s%s%s\n", r->n_attempts,
                      r->seconds, prove_count(r, PROVE_CRIT, 0), prove_count(r, PROVE_HIGH, 0),
                      prove_count(r, PROVE_MED, 0), prove_count(r, PROVE_LOW, 0) + prove_count(r, PROVE_CONTROL, 0),
                      prove_passed(r) ? good : bad, prove_passed(r) ? "passed" : "FAILED", off);
        return prove_passed(r) ? 0 : 1;
}
