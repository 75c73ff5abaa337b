/* result.c - denials and the result of a run, as documents and as lines for a person. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "run/loop.h"

/* A sandbox chooses some of these bytes; a terminal must not obey them. */
static void printable(char *s) {
        for (; *s; s++)
                if ((unsigned char) *s < 0x20 || (unsigned char) *s > 0x7e)
                        *s = '?';
}

void denial_record(struct loop *l, const struct run_denial *from, unsigned times) {
        struct run_result *r = l->result;
        struct run_denial *d;
        char text[480];
        int n;

        for (size_t i = 0; i < r->n_denials; i++)
                if (str_eq(r->denials[i].event, from->event)) { /* more of what was told already */
                        r->denials[i].count += times;
                        return;
                }
        if (r->n_denials == RUN_DENIALS) {
                r->denials_suppressed += times;
                return;
        }
        d = &r->denials[r->n_denials++];
        *d = *from;
        printable(d->event);
        printable(d->code);
        printable(d->rule);
        printable(d->what);
        printable(d->policy);
        clock_rfc3339(d->time);
        d->count = times;
        if (l->o->quiet)
                return;
        n = snprintf(text, sizeof(text), "gabion: denied %s: %s; %s (%s)%s\n", d->code, d->what, d->hint, d->event,
                     l->raw ? "\r" : "");
        (void) fd_write_all(STDERR_FILENO, text, (size_t) n);
}

void denial_add(struct loop *l, const char *code, const char *rule, const char *what, const char *hint) {
        struct run_denial d = { .event = "evt_", .hint = hint };

        (void) snprintf(d.code, sizeof(d.code), "%s", code);
        (void) snprintf(d.rule, sizeof(d.rule), "%s", rule);
        (void) snprintf(d.what, sizeof(d.what), "%s", what);
        printable(d.what);
        if (id_new(d.event + 4) < 0) {
                l->result->denials_suppressed++;
                return;
        }
        record_denial(l->record, &d); /* the log has all, the result the first; egress's come by watch_network() */
        denial_record(l, &d, 1);
}

const char *run_reason_name(enum run_reason r) {
        static const char *const names[] = {
                [RUN_EXITED] = "exited",
                [RUN_SIGNALLED] = "signalled",
                [RUN_TIMEOUT] = "timeout",
                [RUN_OOM] = "oom",
                [RUN_LIMIT] = "limit",
                [RUN_KILLED_BY_USER] = "killed_by_user",
                [RUN_KILLED_BY_POLICY] = "killed_by_policy",
                [RUN_LOST] = "lost",
        };

        return names[r];
}

/* What a next run of the same command would need: the peak and a quarter, in whole MiB, not below the least limit. */
static uint64_t memory_advice(uint64_t peak) {
        enum { MIB = 1 << 20, LEAST = 16 * MIB };
        uint64_t want = (peak + peak / 4 + MIB - 1) / MIB * MIB;

        return want > LEAST ? want : LEAST;
}

static struct json *denial_json(const struct run_denial *d, const char *policy) {
        struct json *o = json_new_object();

        json_set_str(o, "event", d->event);
        json_set_str(o, "time", d->time);
        json_set_str(o, "code", d->code);
        json_set_str(o, "what", d->what);
        json_set_str(o, "rule", d->rule);
        json_set_str(o, "policy", d->policy[0] ? d->policy : policy[0] ? policy : NULL);
        json_set_str(o, "hint", d->hint);
        if (d->count > 1)
                json_set_int(o, "count", d->count);
        return o;
}

int run_denials_json(const struct run_result *r, struct json **ret, struct err *err) {
        struct json *list = json_new_array();

        for (size_t i = 0; i < r->n_denials; i++)
                json_add(list, denial_json(&r->denials[i], r->policy));
        *ret = list;
        return list ? 0 : err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
}

int run_result_json(const struct run_result *r, struct json **ret, struct err *err) {
        struct json *o = json_new_object();
        struct json *list = NULL;

        (void) run_denials_json(r, &list, err);
        json_set_str(o, "sandbox", r->sandbox);
        json_set_int(o, "exit_code", r->exit_code);
        if (r->signal)
                json_set_int(o, "signal", r->signal);
        else
                json_set_str(o, "signal", NULL);
        json_set_str(o, "reason", run_reason_name(r->reason));
        json_set_real(o, "duration_ms", r->duration_ms);
        json_set_real(o, "cpu_ms", r->cpu_ms);
        json_set_int(o, "memory_peak_bytes", (int64_t) r->memory_peak_bytes);
        json_set_int(o, "memory_advice_bytes", (int64_t) memory_advice(r->memory_peak_bytes));
        json_set_int(o, "orphans_ended", r->orphans);
        json_set_bool(o, "output_truncated", r->output_truncated);
        json_set(o, "denials", list);
        json_set_int(o, "denials_suppressed", r->denials_suppressed);
        json_set_str(o, "policy", r->policy[0] ? r->policy : NULL);
        json_set_str(o, "evidence", r->evidence[0] ? r->evidence : NULL);
        *ret = o;
        return 0;
}
