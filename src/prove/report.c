/* report.c - the report for a terminal: vectors per group, findings, what is accepted and why; never only a total. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "prove/names.h"
#include "prove/prove.h"

struct colours {
        const char *good, *bad, *off;
};

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

static size_t low(const struct prove_report *r, char group) {
        return prove_count(r, PROVE_LOW, group) + prove_count(r, PROVE_CONTROL, group);
}

/* "N of M", or a dash where the calls were not tried. */
static const char *reach(const struct prove_report *r, char dst[32]) {
        struct prove_dangerous d;

        prove_dangerous(r, &d);
        if (d.tried)
                (void) snprintf(dst, 32, "%zu of %zu", d.n_reached, d.exist);
        else
                (void) str_copy(dst, 32, "-");
        return dst;
}

static const char *level(const struct prove_report *r, char letter,
                         void (*get)(const struct prove_report *r, struct prove_level *ret), char dst[8]) {
        struct prove_level l;

        get(r, &l);
        (void) snprintf(dst, 8, "%c%d", letter, l.level);
        if (l.level < 0)
                (void) str_copy(dst, 8, "-");
        return dst;
}

void prove_print_table(const struct prove_report *const *reports, size_t n) {
        char text[32], host[8], net[8];

        (void) printf("\n%-10s %8s %7s %6s | %4s %4s %4s %4s | %15s | %-5s | %s\n", "subject", "attempts", "stopped",
                      "absent", "crit", "high", "med", "low", "dangerous calls", "AISI", "seconds");
        for (size_t i = 0; i < n; i++) {
                const struct prove_report *r = reports[i];

                (void) printf("%-10s %8zu %7zu %6zu | %4zu %4zu %4zu %4zu | %15s | %-2s %-2s | %.1f\n", r->subject,
                              r->n_attempts, prove_verdicts(r, PROVE_STOPPED, 0), prove_verdicts(r, PROVE_ABSENT, 0),
                              prove_count(r, PROVE_CRIT, 0), prove_count(r, PROVE_HIGH, 0),
                              prove_count(r, PROVE_MED, 0), low(r, 0), reach(r, text),
                              level(r, 'H', prove_host_level, host), level(r, 'N', prove_network_level, net),
                              r->seconds);
        }
        (void) printf("\ncrit+high by group");
        for (size_t g = 0; g < PROVE_GROUPS; g++)
                (void) printf(" %4c", (char) ('A' + g));
        (void) printf("\n");
        for (size_t i = 0; i < n; i++) {
                (void) printf("  %-16s", reports[i]->subject);
                for (size_t g = 0; g < PROVE_GROUPS; g++)
                        (void) printf(" %4zu", prove_count(reports[i], PROVE_CRIT, (char) ('A' + g)) +
                                                       prove_count(reports[i], PROVE_HIGH, (char) ('A' + g)));
                (void) printf("\n");
        }
        for (size_t i = 1; i < n; i++) {
                (void) printf("\n%s was called so%s:\n  %s\n", reports[i]->subject,
                              reports[i]->config ? " (src/prove/bundle.json is its configuration)" : "",
                              reports[i]->command);
                for (size_t k = 0; k < reports[i]->n_checks; k++)
                        if (!reports[i]->checks[k].ok)
                                (void) printf("  outside: NO %s%s%s\n", reports[i]->checks[k].what,
                                              reports[i]->checks[k].note[0] ? ": " : "", reports[i]->checks[k].note);
                if (reports[i]->deaths)
                        (void) printf("  it died of %u attempts, which are counted as stopped, and was started again\n",
                                      reports[i]->deaths);
        }
}

static void print_head(const struct prove_report *r) {
        struct prove_level host, net;
        char name[8];

        (void) printf("gabion prove  subject %s%s%s  Linux %s %s  %s\n", r->subject, r->command[0] ? "" : "  tier ns",
                      r->rootless ? "  rootless" : "", r->kernel, r->machine, r->time);
        (void) printf("gabion %s build %s\n", r->version, r->build[0] ? r->build : "unknown");
        if (r->policy[0])
                (void) printf("policy %s\n", r->policy);
        prove_host_level(r, &host);
        prove_network_level(r, &net);
        (void) printf("AISI levels: host isolation %s, %s\n", level(r, 'H', prove_host_level, name), host.why);
        (void) printf("             network isolation %s, %s\n", level(r, 'N', prove_network_level, name), net.why);
}

static void print_groups(const struct prove_report *r, const struct colours *c) {
        struct prove_dangerous d;

        (void) printf("\n  %-42s stopped absent accepted | crit high  med  low\n", "attempts");
        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                char g = (char) ('A' + i);
                size_t crit = prove_count(r, PROVE_CRIT, g), high = prove_count(r, PROVE_HIGH, g);

                if (!prove_is_tried(r, g)) {
                        (void) printf("  %c %-40s not tried\n", g, prove_group_names[i]);
                        continue;
                }
                (void) printf("  %c %-40s %7zu %6zu %8zu | %s%4zu %4zu%s %4zu %4zu\n", g, prove_group_names[i],
                              prove_verdicts(r, PROVE_STOPPED, g), prove_verdicts(r, PROVE_ABSENT, g),
                              prove_verdicts(r, PROVE_ACCEPTED, g), crit + high ? c->bad : c->good, crit, high, c->off,
                              prove_count(r, PROVE_MED, g), low(r, g));
        }
        prove_dangerous(r, &d);
        (void) printf("\nDangerous system calls: %zu known, %zu in this kernel, %zu of those tried, %zu reach it%s",
                      d.known, d.exist, d.tried, d.n_reached, d.n_reached ? ":" : "");
        for (size_t i = 0; i < d.n_reached; i++)
                (void) printf("%s %s", i ? "," : "", d.reached[i]);
        (void) printf("\n");
}

static void print_outside(const struct prove_report *r, const struct colours *c) {
        struct prove_fact facts[PROVE_FACTS];
        size_t n = prove_facts(r, facts);

        (void) printf("\nThe attacking process, read from the host:\n");
        for (size_t i = 0; i < n; i++)
                (void) printf("  %-13s %s\n", facts[i].name, facts[i].value);
        if (r->deaths && !r->command[0])
                (void) printf("\nThe memory limit ended all of it in %u attempts; it was started again for the rest.\n",
                              r->deaths);
        (void) printf("\nSeen from outside:\n");
        for (size_t i = 0; i < r->n_checks; i++)
                (void) printf("  %s%s%s %s%s%s\n", r->checks[i].ok ? c->good : c->bad, r->checks[i].ok ? "ok" : "NO",
                              c->off, r->checks[i].what, r->checks[i].note[0] ? ": " : "", r->checks[i].note);
}

int prove_print(const struct prove_report *r, bool all, bool colour) {
        const struct colours c = { colour ? "\033[32m" : "", colour ? "\033[31m" : "", colour ? "\033[0m" : "" };

        print_head(r);
        print_groups(r, &c);
        print_outside(r, &c);
        print_rows(r, "Findings:", prove_is_finding);
        print_rows(r, "Accepted on purpose:", prove_is_accepted);
        if (all)
                print_rows(r, "All attempts:", prove_is_any);
        (void) printf("\n%zu attempts in %.1f s: %zu crit, %zu high, %zu med, %zu low; %s%s%s%s\n", r->n_attempts,
                      r->seconds, prove_count(r, PROVE_CRIT, 0), prove_count(r, PROVE_HIGH, 0),
                      prove_count(r, PROVE_MED, 0), low(r, 0), prove_passed(r) ? c.good : c.bad,
                      prove_passed(r) ? "passed" : "FAILED", c.off,
                      prove_is_whole(r) ? "" : ", but not every group was tried");
        return prove_passed(r) ? 0 : 1;
}
