/*
 * html.c - the report as one self-contained page: no script, no request to anywhere. Every text that came from a
 * sandbox is escaped; prove_parse() has let only printable ASCII through.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "prove/names.h"
#include "prove/prove.h"

enum { SHOWN = 8 }; /* names in a card */

static const char style[] =
        ":root{--ink:#1b2230;--soft:#5b6578;--line:#e2e6ee;--page:#f6f7fa;--card:#fff;--ok:#14683a;--okbg:#e3f4e9;"
        "--bad:#9b1c1c;--badbg:#fde8e8;--mid:#8a5a00;--midbg:#fdf1d8;color-scheme:light dark}"
        "@media(prefers-color-scheme:dark){:root{--ink:#e2e7f0;--soft:#98a3b6;--line:#2b323f;--page:#12151b;--card:#191d25;"
        "--ok:#8fdcae;--okbg:#12331f;--bad:#f5b1b1;--badbg:#3f1818;--mid:#f0cd85;--midbg:#382a0c}}"
        "*{box-sizing:border-box}body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;margin:0;"
        "color:var(--ink);background:var(--page)}main{max-width:66rem;margin:0 auto;padding:2rem 1.25rem 4rem}"
        "h1{font-size:1.7rem;line-height:1.2;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
        "p{margin:.4rem 0}.sub{color:var(--soft)}section,.card{background:var(--card);border:1px solid var(--line);"
        "border-radius:.6rem}section{padding:.4rem .9rem;overflow-x:auto}"
        ".verdict{display:flex;gap:.9rem;align-items:center;padding:1rem 1.2rem;border-radius:.6rem;margin:1.2rem 0;"
        "font-size:1.1rem}.verdict b{font-size:1.35rem}.pass{background:var(--okbg);color:var(--ok)}"
        ".fail{background:var(--badbg);color:var(--bad)}.cards{display:grid;gap:.8rem;"
        "grid-template-columns:repeat(auto-fit,minmax(13rem,1fr))}.card{padding:.8rem 1rem}"
        ".card .n{font-size:1.6rem;font-weight:650;line-height:1.2;font-variant-numeric:tabular-nums}"
        ".card .t{color:var(--soft);font-size:.85rem}table{border-collapse:collapse;width:100%;font-size:.92rem}"
        "th,td{padding:.36rem .5rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}"
        "tr:last-child td{border-bottom:0}th{color:var(--soft);font-weight:600;font-size:.82rem}"
        ".n{text-align:right;font-variant-numeric:tabular-nums}.z{color:var(--soft)}"
        "td.bad{background:var(--badbg);color:var(--bad);font-weight:650}td.mid{background:var(--midbg);color:var(--mid)}"
        ".tag{display:inline-block;min-width:2.2rem;text-align:center;border-radius:.35rem;padding:0 .4rem;"
        "font-size:.82rem;font-weight:600}.tag.ok{background:var(--okbg);color:var(--ok)}"
        ".tag.no{background:var(--badbg);color:var(--bad)}code{font:.85em/1.45 ui-monospace,SFMono-Regular,Menlo,monospace;"
        "overflow-wrap:anywhere}.two{columns:2;column-gap:2rem}@media(max-width:46rem){.two{columns:1}}"
        ".two p{break-inside:avoid;margin:.28rem 0}details{margin:.6rem 0}summary{cursor:pointer;padding:.3rem 0}"
        "@media print{body{background:#fff}section,.card{border-color:#ccc}details{display:none}}";

static void text(struct buf *b, const char *s) {
        for (; *s; s++)
                switch (*s) {
                case '&':
                        buf_addf(b, "&amp;");
                        break;
                case '<':
                        buf_addf(b, "&lt;");
                        break;
                case '>':
                        buf_addf(b, "&gt;");
                        break;
                case '"':
                        buf_addf(b, "&quot;");
                        break;
                default:
                        buf_add(b, s, 1);
                }
}

static size_t low(const struct prove_report *r, char group) {
        return prove_count(r, PROVE_LOW, group) + prove_count(r, PROVE_CONTROL, group);
}

static void level(struct buf *b, const struct prove_level *l, char letter, const char *title) {
        buf_addf(b, "<div class=card><div class=t>%s</div><div class=n style=\"text-align:left\">", title);
        if (l->level < 0)
                buf_addf(b, "not stated");
        else
                buf_addf(b, "%c%d", letter, l->level);
        buf_addf(b, "</div><div class=t>");
        text(b, l->why);
        buf_addf(b, "</div></div>\n");
}

static void cards(struct buf *b, const struct prove_report *r) {
        struct prove_dangerous d;
        struct prove_level l;

        prove_dangerous(r, &d);
        buf_addf(b,
                 "<div class=cards><div class=card><div class=t>Findings: critical, high, medium, low</div>"
                 "<div class=n style=\"text-align:left\">%zu &middot; %zu &middot; %zu &middot; %zu</div>"
                 "<div class=t>of %zu attempts: %zu stopped, %zu with nothing there to attack, %zu accepted on purpose"
                 "</div></div>\n",
                 prove_count(r, PROVE_CRIT, 0), prove_count(r, PROVE_HIGH, 0), prove_count(r, PROVE_MED, 0), low(r, 0),
                 r->n_attempts, prove_verdicts(r, PROVE_STOPPED, 0), prove_verdicts(r, PROVE_ABSENT, 0),
                 prove_verdicts(r, PROVE_ACCEPTED, 0));
        buf_addf(b,
                 "<div class=card><div class=t>Dangerous system calls that reach the kernel</div>"
                 "<div class=n style=\"text-align:left\">%zu of %zu</div><div class=t>",
                 d.n_reached, d.exist);
        if (d.tried < d.exist)
                buf_addf(b, "only %zu of those that this kernel has were tried", d.tried);
        else
                buf_addf(b, "every one that this kernel has was tried");
        for (size_t i = 0; i < d.n_reached && i < SHOWN; i++)
                buf_addf(b, "%s %s", i ? "," : ":", d.reached[i]);
        if (d.n_reached > SHOWN)
                buf_addf(b, " and %zu more", d.n_reached - SHOWN);
        buf_addf(b, "</div></div>\n");
        prove_host_level(r, &l);
        level(b, &l, 'H', "AISI host isolation");
        prove_network_level(r, &l);
        level(b, &l, 'N', "AISI network isolation");
        buf_addf(b, "</div>\n");
}

static void head(struct buf *b, const struct prove_report *r) {
        bool ok = prove_passed(r);

        buf_addf(
                b,
                "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
                "content=\"width=device-width,initial-scale=1\"><title>Gabion: proof of isolation</title><style>%s</style>"
                "<main>\n<h1>Proof of isolation: ",
                style);
        text(b, r->subject);
        buf_addf(b, "</h1><p class=sub>%s &middot; Linux ", r->time);
        text(b, r->kernel);
        buf_addf(b, " %s &middot; %s%.1f seconds</p>\n", r->machine,
                 r->rootless ? "started by an ordinary user &middot; " : "", r->seconds);
        buf_addf(b, "<div class=\"verdict %s\"><b>%s</b><span>%s%s</span></div>\n", ok ? "pass" : "fail",
                 ok ? "Passed" : "Failed",
                 ok ? "No critical or high finding, and nothing outside the sandbox was touched."
                    : "There is a critical or high finding, or something outside was touched.",
                 prove_is_whole(r) ? "" : " Not every group was tried.");
        buf_addf(
                b,
                "<p>A throw-away sandbox was started as a user would start it. From inside, every attempt below was made "
                "once; from outside, planted canaries and the host itself were watched.</p>\n");
        cards(b, r);
}

static void groups(struct buf *b, const struct prove_report *r) {
        buf_addf(
                b,
                "<h2>By group</h2><section><table><tr><th>Group<th class=n>Stopped<th class=n>Absent<th class=n>Accepted"
                "<th class=n>Crit<th class=n>High<th class=n>Med<th class=n>Low</tr>\n");
        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                char g = (char) ('A' + i);

                buf_addf(b, "<tr><td>%c &ensp;%s", g, prove_group_names[i]);
                if (!prove_is_tried(r, g)) {
                        buf_addf(b, "<td class=\"n z\" colspan=7>not tried</tr>\n");
                        continue;
                }
                for (int v = PROVE_STOPPED; v <= PROVE_ACCEPTED; v++)
                        if (v != PROVE_REACHED)
                                buf_addf(b, "<td class=n>%zu", prove_verdicts(r, (enum prove_verdict) v, g));
                for (int s = PROVE_CRIT; s <= PROVE_LOW; s++) {
                        size_t n = s == PROVE_LOW ? low(r, g) : prove_count(r, (enum prove_severity) s, g);

                        buf_addf(b, "<td class=\"n%s\">%zu", !n ? " z" : s <= PROVE_HIGH ? " bad" : " mid", n);
                }
                buf_addf(b, "</tr>\n");
        }
        buf_addf(b, "</table></section>\n");
}

/* One line per subject, then how each was called. */
static void others(struct buf *b, const struct prove_report *const *reports, size_t n) {
        buf_addf(b,
                 "<h2>The same attempts in other sandboxes</h2><section><table><tr><th>Subject<th class=n>Attempts"
                 "<th class=n>Stopped<th class=n>Absent<th class=n>Crit<th class=n>High<th class=n>Med<th class=n>Low"
                 "<th class=n>Dangerous calls");
        for (size_t g = 0; g < PROVE_GROUPS; g++)
                buf_addf(b, "<th class=n>%c", (char) ('A' + g));
        buf_addf(b, "</tr>\n");
        for (size_t i = 0; i < n; i++) {
                const struct prove_report *r = reports[i];
                struct prove_dangerous d;

                prove_dangerous(r, &d);
                buf_addf(b, "<tr><td>");
                text(b, r->subject);
                buf_addf(b, "<td class=n>%zu<td class=n>%zu<td class=n>%zu", r->n_attempts,
                         prove_verdicts(r, PROVE_STOPPED, 0), prove_verdicts(r, PROVE_ABSENT, 0));
                for (int s = PROVE_CRIT; s <= PROVE_LOW; s++) {
                        size_t k = s == PROVE_LOW ? low(r, 0) : prove_count(r, (enum prove_severity) s, 0);

                        buf_addf(b, "<td class=\"n%s\">%zu", !k ? " z" : s <= PROVE_HIGH ? " bad" : "", k);
                }
                buf_addf(b, "<td class=n>%zu of %zu", d.n_reached, d.exist);
                for (size_t g = 0; g < PROVE_GROUPS; g++) {
                        char c = (char) ('A' + g);
                        size_t k = prove_count(r, PROVE_CRIT, c) + prove_count(r, PROVE_HIGH, c);

                        buf_addf(b, "<td class=\"n%s\">%zu", k ? " bad" : " z", k);
                }
                buf_addf(b, "</tr>\n");
        }
        buf_addf(
                b,
                "</table><p class=sub>A to J: critical and high findings by group. A finding is a wall that is missing, "
                "not an escape. How each was called:</p>\n");
        for (size_t i = 1; i < n; i++) {
                buf_addf(b, "<p><code>");
                text(b, reports[i]->command);
                buf_addf(b, "</code> <span class=sub>%s",
                         reports[i]->config ? "(configuration: src/prove/bundle.json) " : "");
                if (reports[i]->deaths)
                        buf_addf(b, "It died of %u attempts, which are counted as stopped, and was started again.",
                                 reports[i]->deaths);
                for (size_t k = 0; k < reports[i]->n_checks; k++)
                        if (!reports[i]->checks[k].ok) {
                                buf_addf(b, " Outside: <b>NO</b> %s ", reports[i]->checks[k].what);
                                text(b, reports[i]->checks[k].note);
                        }
                buf_addf(b, "</span></p>\n");
        }
        buf_addf(b, "</section>\n");
}

static void outside(struct buf *b, const struct prove_report *r) {
        struct prove_fact facts[PROVE_FACTS];
        size_t n = prove_facts(r, facts);

        buf_addf(b, "<h2>The attacking process, read from the host</h2><section><table>\n");
        for (size_t i = 0; i < n; i++) {
                buf_addf(b, "<tr><td class=sub>%s<td><code>", facts[i].name);
                text(b, facts[i].value);
                buf_addf(b, "</code></tr>\n");
        }
        buf_addf(b, "</table></section>\n<h2>Seen from outside</h2><section class=two>\n");
        for (size_t i = 0; i < r->n_checks; i++) {
                buf_addf(b, "<p><span class=\"tag %s\">%s</span> %s", r->checks[i].ok ? "ok" : "no",
                         r->checks[i].ok ? "ok" : "NO", r->checks[i].what);
                if (r->checks[i].note[0]) {
                        buf_addf(b, ": ");
                        text(b, r->checks[i].note);
                }
                buf_addf(b, "</p>\n");
        }
        buf_addf(b, "</section>\n");
}

static void rows(struct buf *b, const struct prove_report *r, bool (*want)(const struct prove_attempt *a)) {
        buf_addf(b, "<table><tr><th>Id<th>Severity<th>Verdict<th>Attempt<th>Answer</tr>\n");
        for (size_t i = 0; i < r->n_attempts; i++) {
                const struct prove_attempt *a = &r->attempts[i];

                if (!want(a))
                        continue;
                buf_addf(b, "<tr><td>%s<td>%s<td>%s<td>", a->id, prove_severity_names[a->severity],
                         prove_verdict_names[a->verdict]);
                text(b, a->what);
                if (a->technique[0]) {
                        buf_addf(b, " <span class=sub>");
                        text(b, a->technique);
                        buf_addf(b, "</span>");
                }
                buf_addf(b, "<td>");
                text(b, a->note);
                if (a->err_no)
                        buf_addf(b, "%s%s", a->note[0] ? "; " : "", strerror(a->err_no));
                buf_addf(b, "</tr>\n");
        }
        buf_addf(b, "</table>\n");
}

static void foot(struct buf *b, const struct prove_report *r) {
        buf_addf(
                b,
                "<h2>What this is about</h2><section><table>\n<tr><td class=sub>program<td>gabion %s, build <code>%s</code>"
                "</tr>\n",
                r->version, r->build[0] ? r->build : "unknown");
        if (r->policy[0])
                buf_addf(b, "<tr><td class=sub>policy<td><code>%s</code></tr>\n", r->policy);
        buf_addf(b, "<tr><td class=sub>probe<td><code>%s</code></tr>\n", r->probe);
        buf_addf(
                b,
                "</table><p class=sub>Repeat it on your own machine: <code>gabion prove</code>. "
                "<code>gabion prove -o FILE</code> writes the same report signed; <code>gabion verify FILE</code> checks "
                "it, offline.</p></section>\n");
}

void prove_html(const struct prove_report *const *reports, size_t n, struct buf *into) {
        const struct prove_report *r = reports[0];
        size_t findings = 0;

        for (size_t i = 0; i < r->n_attempts; i++)
                findings += prove_is_finding(&r->attempts[i]);
        head(into, r);
        groups(into, r);
        if (findings > 0) {
                buf_addf(into, "<h2>Findings</h2><section>\n");
                rows(into, r, prove_is_finding);
                buf_addf(into, "</section>\n");
        }
        if (n > 1)
                others(into, reports, n);
        outside(into, r);
        buf_addf(into, "<h2>Accepted on purpose, and why</h2><section>\n");
        rows(into, r, prove_is_accepted);
        buf_addf(into, "</section>\n<h2>Everything</h2><section><details><summary>All %zu attempts</summary>\n",
                 r->n_attempts);
        rows(into, r, prove_is_any);
        buf_addf(into, "</details></section>\n");
        foot(into, r);
        buf_addf(into, "</main></html>\n");
}
