/* audit_show.c - records for people: a line each, and the timeline of one sandbox. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/cli.h"
#include "json/json.h"

enum { LINE_TEXT = 4096, FOLLOW_MS = 500, SHORT_HASH = 19 };

/* A terminal must not obey what a sandbox chose as a name. */
static void put_plain(struct buf *to, const char *s) {
        for (; *s; s++)
                buf_add(to, (unsigned char) *s < 0x20 || *s == 0x7f ? "?" : s, 1);
}

static void put_amount(struct buf *to, const char *what, int64_t bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
        size_t u = 0;

        while (u + 1 < ARRAY_SIZE(units) && bytes >= 1024 && bytes % 1024 == 0) {
                bytes /= 1024;
                u++;
        }
        buf_addf(to, ", %s %" PRId64 " %s", what, bytes, units[u]);
}

static const char *str_of(const struct json *o, const char *key) {
        const char *s = json_get_str(o, key);

        return s ? s : "";
}

static void created(struct buf *to, const struct json *doc, const struct json *f) {
        int64_t cpu = json_get_int(f, "cpu_milli", 0);

        buf_addf(to, "tier %s, template %s", str_of(f, "tier"), str_of(f, "template"));
        put_amount(to, "memory", json_get_int(f, "memory_bytes", 0));
        buf_addf(to, ", cpu %" PRId64 ".%03" PRId64 ", policy ", cpu / 1000, cpu % 1000);
        put_plain(to, str_of(json_get(doc, "app"), "name"));
        buf_addf(to, " %.*s", SHORT_HASH, str_of(json_get(doc, "policy"), "uid"));
}

static void contact(struct buf *to, const struct json *doc, const struct json *f) {
        int64_t port = json_get_int(json_get(doc, "dst_endpoint"), "port", 0);

        put_plain(to, str_of(json_get(doc, "unmapped"), "object"));
        if (port > 0)
                buf_addf(to, ":%" PRId64, port);
        if (str_of(f, "method")[0]) {
                buf_addf(to, ", ");
                put_plain(to, str_of(f, "method"));
        }
        if (str_of(f, "ip")[0]) {
                buf_addf(to, ", at ");
                put_plain(to, str_of(f, "ip"));
        }
        if (json_get(f, "bytes_in"))
                buf_addf(to, ", %" PRId64 " bytes in, %" PRId64 " out", json_get_int(f, "bytes_in", 0),
                         json_get_int(f, "bytes_out", 0));
}

static void exec_ended(struct buf *to, const struct json *doc, const struct json *f) {
        put_plain(to, str_of(json_get(doc, "unmapped"), "object"));
        buf_addf(to, ", %s, exit code %" PRId64 ", %" PRId64 " ms, cpu %" PRId64 " ms", str_of(f, "reason"),
                 json_get_int(f, "exit_code", 0), json_get_int(f, "duration_ms", 0), json_get_int(f, "cpu_ms", 0));
        put_amount(to, "memory peak", json_get_int(f, "memory_peak_bytes", 0));
}

static void removed(struct buf *to, const struct json *doc, const struct json *f) {
        const struct json *items = json_get(json_get(doc, "unmapped"), "items");

        if (str_of(f, "note")[0])
                put_plain(to, str_of(f, "note"));
        for (size_t i = 0; i < json_len(items); i++)
                buf_addf(to, "%s%s %s", i ? ", " : "", str_of(json_at(items, i), "kind"),
                         str_of(json_at(items, i), "result"));
}

static void plain(struct buf *to, const struct json *doc, const struct json *f) {
        static const char *const more[] = { "category", "user",     "reason", "control", "expected", "found",
                                            "cut",      "evidence", "action", "note",    "version" };
        static const char *const numbers[] = { "first", "last", "denials", "count" };

        put_plain(to, str_of(json_get(doc, "unmapped"), "object"));
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                if (str_of(f, more[i])[0]) {
                        buf_addf(to, ", %s ", more[i]);
                        put_plain(to, str_of(f, more[i]));
                }
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                if (json_get(f, numbers[i]))
                        buf_addf(to, ", %s %" PRId64, numbers[i], json_get_int(f, numbers[i], 0));
}

static const struct {
        const char *code;
        void (*fn)(struct buf *to, const struct json *doc, const struct json *f);
} forms[] = {
        { "sandbox.created", created }, { "exec.ended", exec_ended }, { "sandbox.removed", removed },
        { "net.contact", contact },     { "net.name", contact },      { "net.request", contact },
};

void audit_line_text(const char *line, size_t n, struct buf *to) {
        static const char *const decisions[] = { "", "allowed ", "DENIED ", "" };
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *metadata, *f;
        struct err err = { 0 };
        char time[CLOCK_TEXT];
        const char *code;
        size_t i = 0, start;

        if (json_parse("record", line, n, &doc, &err) < 0) {
                buf_addf(to, "(a line that is not a record)");
                return;
        }
        metadata = json_get(doc, "metadata");
        f = json_get(json_get(doc, "unmapped"), "fields");
        code = str_of(metadata, "event_code");
        clock_rfc3339_at(time, (uint64_t) json_get_int(doc, "time", 0));
        time[10] = ' ';
        time[23] = '\0';
        buf_addf(to, "%s  %6" PRId64 "  %-17s ", time, json_get_int(metadata, "sequence", 0), code);
        start = to->len;
        buf_addf(to, "%s", decisions[json_get_int(doc, "action_id", 0) & 3]);
        while (i < ARRAY_SIZE(forms) && !str_eq(forms[i].code, code))
                i++;
        (i < ARRAY_SIZE(forms) ? forms[i].fn : plain)(to, doc, f);
        if (str_of(doc, "status_code")[0])
                buf_addf(to, ", %s by %s (%s)", str_of(doc, "status_code"),
                         str_of(json_get(doc, "firewall_rule"), "uid"), str_of(metadata, "uid"));
        if (str_of(json_get(json_get(doc, "actor"), "user"), "uid")[0])
                buf_addf(to, ", by %s", str_of(json_get(json_get(doc, "actor"), "user"), "uid"));
        if (to->len > start + 2 && to->p[start] == ',') { /* nothing came before the first comma */
                memmove(to->p + start, to->p + start + 2, to->len - start - 2);
                to->len -= 2;
                to->p[to->len] = '\0';
        }
}

struct showing {
        const struct audit_words *w;
        char mark[64]; /* only records that have it; "": all */
        uint64_t last, shown;
};

static int show_one(void *arg, const struct ledger_line *l) {
        struct showing *s = arg;
        struct buf text = BUF_INIT(LINE_TEXT);

        s->last = l->seq;
        if (s->mark[0] && !memmem(l->text, l->n, s->mark, strlen(s->mark)))
                return 0;
        s->shown++;
        if (s->w->json) {
                (void) printf("%.*s\n", (int) l->n, l->text);
                return 0;
        }
        audit_line_text(l->text, l->n, &text);
        (void) printf("%s\n", buf_str(&text));
        buf_done(&text);
        return 0;
}

static const char *tenant_of(const struct audit_words *w) {
        return w->tenant ? w->tenant : "local";
}

int audit_tail(const struct audit_words *w) {
        struct showing s = { .w = w };
        char note[AUDIT_HEAD_BYTES];
        struct audit_head h;
        struct err err = { 0 };
        int r = ledger_head(w->log, tenant_of(w), note, &h, &err);

        if (w->n_args > 0)
                return cli_usage("audit", "tail: no arguments are expected");
        if (r == 0) {
                s.last = h.tree.size > w->count ? h.tree.size - w->count : 0;
                r = ledger_each(w->log, tenant_of(w), s.last + 1, show_one, &s, &err);
        }
        while (r == 0 && w->follow && fflush(stdout) == 0) {
                (void) poll(NULL, 0, FOLLOW_MS);
                r = ledger_each(w->log, tenant_of(w), s.last + 1, show_one, &s, &err);
        }
        return r < 0 ? cli_fail(&err) : 0;
}

int audit_show(const struct audit_words *w) {
        struct showing s = { .w = w };
        struct err err = { 0 };
        const char *id = w->n_args == 1 ? w->args[0] : "";

        if (strlen(id) != ID_LEN || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != ID_LEN)
                return cli_usage("audit", "show: the id of one sandbox is expected (%d letters and digits)", ID_LEN);
        (void) snprintf(s.mark, sizeof(s.mark), "\"container\":{\"uid\":\"%.20s\"}", id);
        if (ledger_each(w->log, tenant_of(w), 1, show_one, &s, &err) < 0)
                return cli_fail(&err);
        if (s.shown == 0) {
                (void) err_set(&err, -ENOENT, ERR_NOT_FOUND, "the log of tenant %s has no sandbox %s", tenant_of(w),
                               id);
                return cli_fail(&err);
        }
        return 0;
}
