/* monitor.c - see monitor.h. */
#include "monitor/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup.h"

enum { QUIET_NS = 1000000000, MS = 1000000 };

bool monitor_any(const struct policy *policy) {
        const struct policy_monitor *r = &policy->monitor;

        return policy->n_watch > 0 || r->refused_calls.on || r->programs.on || r->hosts.on || r->writes.on ||
               r->resources.on;
}

static unsigned most_calls(const struct monitor *m) {
        unsigned over = m->policy->monitor.refused_calls.over;

        return over < MONITOR_CALLS ? over : MONITOR_CALLS - 1;
}

int monitor_start(struct monitor *m, const struct policy *policy, pid_t pid, int proc_fd, const struct monitor_to *to,
                  struct err *err) {
        *m = (struct monitor){ .policy = policy, .to = *to, .fan.fd = -1 };
        if (policy->monitor.refused_calls.on)
                m->calls_ns = calloc(most_calls(m) + 1, sizeof(*m->calls_ns));
        if (policy->monitor.refused_calls.on && !m->calls_ns)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        return fan_start(&m->fan, policy, pid, proc_fd, err);
}

void monitor_done(struct monitor *m) {
        fan_done(&m->fan);
        free(TAKE_PTR(m->calls_ns));
}

int monitor_fd(const struct monitor *m) {
        return m->fan.fd;
}

static void tell(const struct monitor *m, enum policy_action action, const char *rule, const char *object,
                 const char *found) {
        const struct monitor_finding f = { action, rule, object, found };

        m->to.found(m->to.arg, &f);
}

/* A rule that keeps being broken is told once a second. */
static bool may_tell(struct monitor *m, enum monitor_rule rule) {
        uint64_t now = clock_mono_ns();

        if (now < m->quiet_ns[rule])
                return false;
        m->quiet_ns[rule] = now + QUIET_NS;
        return true;
}

static void on_file(void *arg, enum fan_kind kind, const char *path) {
        struct monitor *m = arg;
        const struct policy_monitor *rules = &m->policy->monitor;

        switch (kind) {
        case FAN_EXECUTED:
                tell(m, rules->programs.action, "monitor.programs", path, "a program that is not expected");
                break;
        case FAN_LOST:
                if (may_tell(m, MONITOR_LOST))
                        tell(m, POLICY_LOG, "filesystem.watch", "files",
                             "too much at once: some use of files was not seen");
                break;
        case FAN_READ:
        case FAN_WRITTEN:
                m->to.file(m->to.arg, kind == FAN_WRITTEN, path);
                if (kind == FAN_WRITTEN && rules->writes.on && may_tell(m, MONITOR_WRITES))
                        tell(m, rules->writes.action, "monitor.writes", path, "a write below a watched path");
                break;
        }
}

unsigned monitor_files(struct monitor *m) {
        return fan_read(&m->fan, on_file, m);
}

bool monitor_call(struct monitor *m) {
        const struct policy_rule_calls *rule = &m->policy->monitor.refused_calls;
        uint64_t now = clock_mono_ns(), window = rule->within_ms * MS;
        unsigned over = most_calls(m), cap = over + 1;
        char text[96];

        if (!rule->on)
                return false;
        m->calls_ns[m->n_calls++ % cap] = now;
        /* The ring is as long as the burst: what is overwritten next is its first call. */
        if (m->n_calls <= over || now - m->calls_ns[m->n_calls % cap] > window || !may_tell(m, MONITOR_CALLS_RULE))
                return false;
        (void) snprintf(text, sizeof(text), "more than %u within %llu ms", over, (unsigned long long) rule->within_ms);
        tell(m, rule->action, "monitor.refused_calls", "refused calls", text);
        m->n_calls = 0; /* the next burst is counted by itself */
        return true;
}

void monitor_host(struct monitor *m, const char *host) {
        const struct policy_rule_names *rule = &m->policy->monitor.hosts;

        if (!rule->on)
                return;
        for (size_t i = 0; i < rule->expect.n; i++)
                if (str_eq(rule->expect.names[i], host))
                        return;
        if (may_tell(m, MONITOR_HOSTS))
                tell(m, rule->action, "monitor.hosts", host, "a host that is not expected");
}

void monitor_usage(struct monitor *m, const struct cgroup_usage *u) {
        const struct policy_rule_resources *rule = &m->policy->monitor.resources;
        char text[96];

        if (!rule->on)
                return;
        if (rule->memory_bytes && u->memory_peak_bytes > rule->memory_bytes)
                (void) snprintf(text, sizeof(text), "memory reached %llu bytes",
                                (unsigned long long) u->memory_peak_bytes);
        else if (rule->pids && u->tasks > rule->pids)
                (void) snprintf(text, sizeof(text), "%llu processes and threads", (unsigned long long) u->tasks);
        else
                return;
        if (!may_tell(m, MONITOR_RESOURCES))
                return;
        /* The peak stays above the limit, so this is told once. */
        m->quiet_ns[MONITOR_RESOURCES] = UINT64_MAX;
        tell(m, rule->action, "monitor.resources", "resources", text);
}
