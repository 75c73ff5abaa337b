/*
 * monitor.h - the rules of `monitor`, and `filesystem.watch`, over one running sandbox: what happens in it comes here,
 * what breaks a rule comes out. What is done about it, and where it is recorded, is the caller's matter.
 *
 * Nothing here looks by itself: files and programs are told by the kernel (monitor_fd()), the rest by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "monitor/fan.h"
#include "policy/policy.h"

struct cgroup_usage;
struct err;

enum { MONITOR_CALLS = 1024 };

enum monitor_rule {
        MONITOR_CALLS_RULE,
        MONITOR_WRITES,
        MONITOR_RESOURCES,
        MONITOR_HOSTS,
        MONITOR_LOST, /* what was not seen */
        MONITOR_RULES
};

struct monitor_finding {
        enum policy_action action;
        const char *rule, *object, *found; /* "monitor.writes", "/out/x", "a write below a watched path" */
};

/* Who hears of it. Both are called from within the functions below. */
struct monitor_to {
        void (*found)(void *arg, const struct monitor_finding *f);
        void (*file)(void *arg, bool written, const char *path); /* below a watched path, whatever the rules say */
        void *arg;
};

struct monitor {
        const struct policy *policy; /* borrowed */
        struct monitor_to to;
        struct fan fan;
        uint64_t *calls_ns; /* times of refused calls, a ring; owned */
        uint64_t n_calls;
        uint64_t quiet_ns[MONITOR_RULES]; /* until then it is not told again */
};

/* Is there anything to be watched, beside drift? */
bool monitor_any(const struct policy *policy);
/* Before the command runs. pid: the agent, whose mounts are watched. On failure monitor_done() is due too. */
int monitor_start(struct monitor *m, const struct policy *policy, pid_t pid, int proc_fd, const struct monitor_to *to,
                  struct err *err);
void monitor_done(struct monitor *m);

/* -1: no rule needs it. */
int monitor_fd(const struct monitor *m);
/* When it is readable: some of what has happened. How many events that were. */
unsigned monitor_files(struct monitor *m);
/* A call was refused. True: the rule is broken, and was told. */
bool monitor_call(struct monitor *m);
/* A host was asked for, or reached, or not. */
void monitor_host(struct monitor *m, const char *host);
/* Now and then: peak and number of tasks count. */
void monitor_usage(struct monitor *m, const struct cgroup_usage *u);
