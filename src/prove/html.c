/*
 * html.c - the report as one self-contained page: no script, no request to anywhere. Every text that came from a
 * sandbox is escaped; prove_parse() has let only printable ASCII through.
 */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "prove/names.h"
#include "prove/prove.h"

static const char style[] =
        "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#1d2330;background:#fff}"
        "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}"
        ".sub{color:#5a6475}.big{font-size:1.15rem;padding:.8rem 1rem;border-radius:.5rem;margin:1rem 0}"
        ".pass{background:#e5f5ea;color:#0f5a2c}.fail{background:#fdeaea;color:#8c1616}"
        "table{border-collapse:collapse;width:100%;font-size:.93rem}th,td{padding:.28rem .5rem;text-align:left;"
        "border-bottom:1px solid #e3e7ee;vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
        "td.bad{background:#fdeaea;color:#8c1616;font-weight:600}code{font-size:.88em;overflow-wrap:anywhere}"
        "details{margin:1rem 0}summary{cursor:pointer}"
        "@media(prefers-color-scheme:dark){body{background:#14171d;color:#dfe4ee}th,td{border-color:#2a303b}"
        ".pass{background:#12331f;color:#9fe0b6}.fail,td.bad{background:#3c1717;color:#f3b0b0}.sub{color:#97a2b5}}";

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

static void head(struct buf *b, const struct prove_report *r) {
        bool ok = prove_passed(r);

        buf_addf(b,
                 "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
                 "content=\"width=device-width\"><title>Gabion: proof of isolation</title><style>%s</style>\n",
                 style);
        buf_addf(b, "<h1>Proof of isolation: ");
        text(b, r->subject);
        buf_addf(b, "</h1><p class=\"sub\">%s, Linux ", r->time);
        text(b, r->kernel);
        buf_addf(b, " %s%s, %.1f s</p>\n", r->machine, r->rootless ? ", started by an ordinary user" : "", r->seconds);
        buf_addf(
                b,
                "<p class=\"big %s\"><b>%s.</b> %zu attempts: %zu critical, %zu high, %zu medium and %zu low findings.</p>\n",
                ok ? "pass" : "fail", ok ? "Passed" : "Failed", r->n_attempts, prove_count(r, PROVE_CRIT, 0),
                prove_count(r, PROVE_HIGH, 0), prove_count(r, PROVE_MED, 0),
                prove_count(r, PROVE_LOW, 0) + prove_count(r, PROVE_CONTROL, 0));
        buf_addf(
                b,
                "<p>A throw-away sandbox was started as a user would start it. From inside, every attempt below was made once; from "
                "outside, planted canaries were watched.</p>\n<p class=\"sub\">Probe <code>%s</code>",
                r->probe);
        if (r->policy[0])
                buf_addf(b, "<br>Policy <code>%s</code>", r->policy);
        buf_addf(b, "</p>\n");
}

static void groups(struct buf *b, const struct prove_report *r) {
        buf_addf(
                b,
                "<h2>By group</h2><table><tr><th>Group<th class=n>Stopped<th class=n>Absent<th class=n>Accepted<th class=n>Crit"
                "<th class=n>High<th class=n>Med<th class=n>Low</tr>\n");
        for (size_t i = 0; i < PROVE_GROUPS; i++) {
                char g = (char) ('A' + i);

                buf_addf(b, "<tr><td>%c. %s", g, prove_group_names[i]);
                for (int v = PROVE_STOPPED; v <= PROVE_ACCEPTED; v++)
                        if (v != PROVE_REACHED)
                                buf_addf(b, "<td class=n>%zu", prove_verdicts(r, (enum prove_verdict) v, g));
                for (int s = PROVE_CRIT; s <= PROVE_LOW; s++) {
                        size_t n = prove_count(r, (enum prove_severity) s, g) +
                                   (s == PROVE_LOW ? prove_count(r, PROVE_CONTROL, g) : 0);

                        buf_addf(b, "<td class=\"n%s\">%zu", n && s <= PROVE_HIGH ? " bad" : "", n);
                }
                buf_addf(b, "</tr>\n");
        }
        buf_addf(b, "</table>\n<h2>Seen from outside</h2><table>\n");
        for (size_t i = 0; i < r->n_checks; i++)
                buf_addf(b, "<tr><td class=\"%s\">%s<td>%s</tr>\n", r->checks[i].ok ? "" : "bad",
                         r->checks[i].ok ? "ok" : "NO", r->checks[i].what);
        buf_addf(b, "</table>\n");
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
                        buf_addf(b, " (%s)", strerror(a->err_no));
                buf_addf(b, "</tr>\n");
        }
        buf_addf(b, "</table>\n");
}

void prove_html(const struct prove_report *r, struct buf *into) {
        size_t findings = 0;

        for (size_t i = 0; i < r->n_attempts; i++)
                findings += prove_is_finding(&r->attempts[i]);
        head(into, r);
        groups(into, r);
        buf_addf(into, "<h2>Findings</h2>\n");
        if (findings > 0)
                rows(into, r, prove_is_finding);
        else
                buf_addf(into, "<p>None.</p>\n");
        buf_addf(into, "<h2>Accepted on purpose</h2>\n");
        rows(into, r, prove_is_accepted);
        buf_addf(into, "<details><summary>All %zu attempts</summary>\n", r->n_attempts);
        rows(into, r, prove_is_any);
        buf_addf(into, "</details></html>\n");
}
