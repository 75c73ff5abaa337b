/* watch.c - see watch.h. */
#include "run/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "plan/plan.h"
#include "run/loop.h"

enum { CONFIRM_MS = 100 };

static const char drift_rule[] = "monitor.on_drift";

static const struct policy_monitor *rules_of(const struct watch *w) {
        return &w->l->plan->policy->monitor;
}

static uint64_t ns(uint64_t ms) {
        return ms * 1000000;
}

static bool is_drift(const struct monitor_finding *f) {
        return f->rule == drift_rule;
}

static void say(const struct watch *w, const struct monitor_finding *f, const char *what, const char *id) {
        char text[640];
        int n = snprintf(text, sizeof(text), "gabion: %s: %s: %s; %s (%s)%s\n", is_drift(f) ? "drift" : "alert",
                         f->object, f->found, what, id, w->l->raw ? "\r" : "");

        for (int i = 0; i < n - 2 && i < (int) sizeof(text); i++)
                if ((unsigned char) text[i] < 0x20 || text[i] == 0x7f)
                        text[i] = '?';
        (void) fd_write_all(STDERR_FILENO, text, (size_t) n < sizeof(text) ? (size_t) n : sizeof(text) - 1);
}

/* Stands still; without control groups that cannot be had, and the sandbox ends instead. */
static const char *freeze(struct watch *w, struct audit_event *ev) {
        static char how[120];
        struct err e = { 0 };

        if (w->frozen)
                return "the sandbox is frozen already";
        if (!w->l->sb->has_cgroup || cgroup_freeze(&w->l->sb->cgroup, true, &e) < 0) {
                w->kill = true;
                audit_text(ev, "action", "kill");
                return "it cannot be frozen, so it was ended";
        }
        w->frozen = true;
        audit_text(ev, "action", "freeze");
        (void) snprintf(how, sizeof(how),
                        "the sandbox is frozen; Ctrl-C or 'kill %d' ends it, its time limit still holds",
                        (int) getpid());
        return how;
}

static void on_found(void *arg, const struct monitor_finding *f) {
        struct watch *w = arg;
        struct audit_event ev, frozen;
        bool was_frozen = w->frozen;
        const char *what = "it goes on";

        record_event(w->l->record, is_drift(f) ? AUDIT_DRIFT : AUDIT_ALERT, &ev);
        audit_object(&ev, f->object);
        (void) str_copy(ev.rule, sizeof(ev.rule), f->rule);
        audit_text(&ev, "expected", is_drift(f) ? "as planned" : "not to happen");
        audit_text(&ev, "found", f->found);
        switch (f->action) {
        case POLICY_LOG:
                audit_text(&ev, "action", "log");
                break;
        case POLICY_FREEZE:
                what = freeze(w, &ev);
                break;
        case POLICY_KILL:
                w->kill = true;
                audit_text(&ev, "action", "kill");
                what = "the sandbox was ended";
                break;
        }
        record_send(w->l->record, &ev);
        if (w->frozen && !was_frozen) {
                record_event(w->l->record, AUDIT_SANDBOX_FROZEN, &frozen);
                audit_text(&frozen, "reason", ev.id);
                record_send(w->l->record, &frozen);
        }
        say(w, f, what, ev.id);
}

static void on_file(void *arg, bool written, const char *path) {
        const struct watch *w = arg;
        struct audit_event ev;

        record_event(w->l->record, written ? AUDIT_FILE_WRITTEN : AUDIT_FILE_READ, &ev);
        audit_object(&ev, path);
        (void) str_copy(ev.rule, sizeof(ev.rule), "filesystem.watch");
        record_send(w->l->record, &ev);
}

int watch_start(struct watch *w, struct loop *l, const struct evidence *first, struct err *err) {
        const struct monitor_to to = { .found = on_found, .file = on_file, .arg = w };
        int r;

        *w = (struct watch){ .l = l, .first = first };
        /* What is not as planned from the start is the twin's, whose weakness is to be attacked, not found again. */
        w->next_ns = l->result->mismatch[0] ? UINT64_MAX : clock_mono_ns() + ns(rules_of(w)->interval_ms);
        r = monitor_start(&w->monitor, l->plan->policy, l->sb->agent_pid, l->sb->proc_fd, &to, err);
        if (r < 0)
                monitor_done(&w->monitor);
        return r;
}

void watch_done(struct watch *w) {
        monitor_done(&w->monitor);
}

uint64_t watch_due_ns(const struct watch *w) {
        return w->next_ns;
}

static void resources_look(struct watch *w) {
        struct cgroup_usage u = { 0 };
        struct err e = { 0 };

        if (rules_of(w)->resources.on && w->l->sb->has_cgroup &&
            cgroup_usage(&w->l->sb->cgroup, CGROUP_LEVELS, &u, &e) == 0)
                monitor_usage(&w->monitor, &u);
}

static void drift_tell(struct watch *w, const struct evidence_drift *d) {
        if (str_eq(w->told, d->control))
                return;
        (void) str_copy(w->told, sizeof(w->told), d->control);
        on_found(w, &(struct monitor_finding){ rules_of(w)->on_drift, drift_rule, d->control, d->found });
}

/* Two readings in a row: a process between fork and exec, or one that is ending, looks odd for a moment. */
static void drift_look(struct watch *w) {
        struct evidence_drift d;
        bool sure = w->doubt;
        int r = evidence_again(w->l->plan, w->l->sb, w->first, &d);

        w->doubt = r == 1 && !sure;
        if (r == 0)
                w->told[0] = '\0';
        if (r == 1 && sure)
                drift_tell(w, &d);
}

int watch_check(struct watch *w, struct evidence_drift *ret) {
        int r = evidence_again(w->l->plan, w->l->sb, w->first, ret);

        if (r == 1) {
                (void) poll(NULL, 0, CONFIRM_MS);
                r = evidence_again(w->l->plan, w->l->sb, w->first, ret);
        }
        if (r == 1)
                drift_tell(w, ret);
        return r;
}

void watch_look(struct watch *w) {
        if (!w->frozen) {
                drift_look(w);
                resources_look(w);
        }
        w->next_ns = clock_mono_ns() + ns(w->doubt ? CONFIRM_MS : rules_of(w)->interval_ms);
}

void watch_files(struct watch *w) {
        (void) monitor_files(&w->monitor);
}

void watch_call(struct watch *w) {
        (void) monitor_call(&w->monitor);
}

void watch_network(struct watch *w, const struct json *attempt) {
        const char *name = json_get_str(attempt, "name");

        record_network(w->l->record, attempt);
        if (name)
                monitor_host(&w->monitor, name);
}
