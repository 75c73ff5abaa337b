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

enum { CONFIRM_MS = 100, QUIET_S = 1 };
enum { RULE_CALLS, RULE_PROGRAMS, RULE_WRITES, RULE_RESOURCES, RULE_HOSTS };

struct finding {
        enum audit_kind kind;
        enum policy_action action;
        const char *rule, *object, *found;
};

static const struct policy_monitor *monitor_of(const struct watch *w) {
        return &w->l->plan->policy->monitor;
}

static uint64_t ns(uint64_t ms) {
        return ms * 1000000;
}

static void say(const struct watch *w, const struct finding *f, const char *what, const char *id) {
        char text[640];
        int n = snprintf(text, sizeof(text), "gabion: %s: %s: %s; %s (%s)%s\n",
                         f->kind == AUDIT_DRIFT ? "drift" : "alert", f->object, f->found, what, id,
                         w->l->raw ? "\r" : "");

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

static void act(struct watch *w, const struct finding *f) {
        struct audit_event ev, frozen;
        bool was_frozen = w->frozen;
        const char *what = "it goes on";

        record_event(w->l->record, f->kind, &ev);
        audit_object(&ev, f->object);
        (void) str_copy(ev.rule, sizeof(ev.rule), f->rule);
        audit_text(&ev, "expected", f->kind == AUDIT_DRIFT ? "as planned" : "not to happen");
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

/* A rule that keeps being broken is told once a second. */
static bool may_tell(struct watch *w, int rule) {
        uint64_t now = clock_mono_ns();

        if (now < w->quiet_ns[rule])
                return false;
        w->quiet_ns[rule] = now + QUIET_S * 1000000000ull;
        return true;
}

int watch_start(struct watch *w, struct loop *l, const struct evidence *first, struct err *err) {
        int r;

        memset(w, 0, offsetof(struct watch, calls_ns));
        w->n_calls = 0;
        memset(w->quiet_ns, 0, sizeof(w->quiet_ns));
        w->l = l;
        w->first = first;
        /* What is not as planned from the start is the twin's, whose weakness is to be attacked, not found again. */
        w->next_ns = l->result->mismatch[0] ? UINT64_MAX : clock_mono_ns() + ns(monitor_of(w)->interval_ms);
        r = fan_start(&w->fan, l->plan->policy, l->sb, first, err);
        if (r < 0)
                fan_done(&w->fan);
        return r;
}

void watch_done(struct watch *w) {
        fan_done(&w->fan);
}

uint64_t watch_due_ns(const struct watch *w) {
        return w->next_ns;
}

static void resources_look(struct watch *w) {
        const struct policy_rule_resources *rule = &monitor_of(w)->resources;
        struct cgroup_usage u = { 0 };
        struct err e = { 0 };
        char text[96];

        if (!rule->on || !w->l->sb->has_cgroup || cgroup_usage(&w->l->sb->cgroup, CGROUP_ALL, &u, &e) < 0)
                return;
        if (rule->memory_bytes && u.memory_peak_bytes > rule->memory_bytes)
                (void) snprintf(text, sizeof(text), "memory reached %llu bytes",
                                (unsigned long long) u.memory_peak_bytes);
        else if (rule->pids && u.tasks > rule->pids)
                (void) snprintf(text, sizeof(text), "%llu processes and threads", (unsigned long long) u.tasks);
        else
                return;
        if (!may_tell(w, RULE_RESOURCES))
                return;
        /* The peak stays above the limit, so this is told once. */
        w->quiet_ns[RULE_RESOURCES] = UINT64_MAX;
        act(w, &(struct finding){ AUDIT_ALERT, rule->action, "monitor.resources", "resources", text });
}

static void drift_tell(struct watch *w, const struct evidence_drift *d) {
        if (str_eq(w->told, d->control))
                return;
        (void) str_copy(w->told, sizeof(w->told), d->control);
        act(w, &(struct finding){ AUDIT_DRIFT, monitor_of(w)->on_drift, "monitor.on_drift", d->control, d->found });
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
        w->next_ns = clock_mono_ns() + ns(w->doubt ? CONFIRM_MS : monitor_of(w)->interval_ms);
}

static void file_found(struct watch *w, enum fan_kind kind, const char *path) {
        const struct policy_rule_writes *rule = &monitor_of(w)->writes;
        struct audit_event ev;

        record_event(w->l->record, kind == FAN_WRITTEN ? AUDIT_FILE_WRITTEN : AUDIT_FILE_READ, &ev);
        audit_object(&ev, path);
        (void) str_copy(ev.rule, sizeof(ev.rule), "filesystem.watch");
        record_send(w->l->record, &ev);
        if (kind == FAN_WRITTEN && rule->on && may_tell(w, RULE_WRITES))
                act(w, &(struct finding){ AUDIT_ALERT, rule->action, "monitor.writes", path,
                                          "a write below a watched path" });
}

static void on_file(void *arg, enum fan_kind kind, const char *path) {
        struct watch *w = arg;

        if (kind == FAN_EXECUTED)
                act(w, &(struct finding){ AUDIT_ALERT, monitor_of(w)->programs.action, "monitor.programs", path,
                                          "a program that is not expected" });
        else if (kind == FAN_LOST)
                act(w, &(struct finding){ AUDIT_ALERT, POLICY_LOG, "filesystem.watch", "files",
                                          "too much at once: some use of files was not seen" });
        else
                file_found(w, kind, path);
}

void watch_files(struct watch *w) {
        fan_read(&w->fan, on_file, w);
}

void watch_call(struct watch *w) {
        const struct policy_rule_calls *rule = &monitor_of(w)->refused_calls;
        uint64_t now = clock_mono_ns(), from = now - ns(rule->within_ms);
        unsigned over = rule->over < WATCH_CALLS ? rule->over : WATCH_CALLS - 1;
        char text[96];

        if (!rule->on)
                return;
        w->calls_ns[w->n_calls++ % WATCH_CALLS] = now;
        if (w->n_calls <= over || w->calls_ns[(w->n_calls - 1 - over) % WATCH_CALLS] < from || !may_tell(w, RULE_CALLS))
                return;
        (void) snprintf(text, sizeof(text), "more than %u within %llu ms", over, (unsigned long long) rule->within_ms);
        act(w, &(struct finding){ AUDIT_ALERT, rule->action, "monitor.refused_calls", "refused calls", text });
        w->n_calls = 0; /* the next burst is counted by itself */
}

static void host_look(struct watch *w, const char *host) {
        const struct policy_rule_names *rule = &monitor_of(w)->hosts;

        if (!rule->on)
                return;
        for (size_t i = 0; i < rule->expect.n; i++)
                if (str_eq(rule->expect.names[i], host))
                        return;
        if (may_tell(w, RULE_HOSTS))
                act(w, &(struct finding){ AUDIT_ALERT, rule->action, "monitor.hosts", host,
                                          "a host that is not expected" });
}

void watch_network(struct watch *w, const struct json *attempt) {
        const char *name = json_get_str(attempt, "name");

        record_network(w->l->record, attempt);
        if (name)
                host_look(w, name);
}
