/*
 * watch.c - the read-back again, while the sandbox runs.
 *
 * The place is compared with the plan by the same functions as at the start, and its namespaces with those that were
 * there first. Of the processes each must still be what the command was made: no capability, no_new_privs, a filter,
 * its own ids. Processes come and go meanwhile: what is not there any more is no drift.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "evidence/read.h"

enum { PROCESSES = 512, DRIFT = 1 };

static int drift(struct evidence_drift *d, const char *control, const char *found) {
        (void) snprintf(d->control, sizeof(d->control), "%.47s", control);
        (void) snprintf(d->found, sizeof(d->found), "%.199s", found);
        return DRIFT;
}

/* "control NAME is not in force: DETAIL; nothing was started": the parts that count. */
static int drift_from(struct evidence_drift *d, const struct err *err) {
        static const char before[] = "control ", middle[] = " is not in force: ", after[] = "; nothing was started";
        char text[sizeof(err->msg)], *found, *end;

        (void) str_copy(text, sizeof(text), err->msg);
        found = strstr(text, middle);
        if (!str_has_prefix(text, before) || !found)
                return drift(d, "place", text);
        *found = '\0';
        found += sizeof(middle) - 1;
        end = strstr(found, after);
        if (end)
                *end = '\0';
        return drift(d, text + sizeof(before) - 1, found);
}

/* "cgroup.memory: memory.max is '...', not '...'" */
static int group_drift(struct evidence_drift *d, const struct err *err) {
        size_t n = strcspn(err->msg, ":");
        char control[48];

        (void) snprintf(control, sizeof(control), "%.*s", n < sizeof(control) ? (int) n : 47, err->msg);
        return drift(d, control, err->msg[n] ? err->msg + n + 2 : "");
}

static bool is_gone(const struct sandbox *sb) {
        struct pollfd p = { .fd = sb->agent_pidfd, .events = POLLIN };

        return sb->agent_pid <= 0 || poll(&p, 1, 0) != 0;
}

static int status_judge(const struct reader *rd, pid_t pid, const struct evidence_status *s, struct evidence_drift *d) {
        uint64_t uid = sandbox_host_uid(rd->sb, rd->plan->uid), gid = sandbox_host_uid(rd->sb, rd->plan->gid);
        char text[96];

        if (s->inheritable | s->permitted | s->effective | s->bounding | s->ambient) {
                (void) snprintf(text, sizeof(text), "process %d has CapPrm %llx, CapEff %llx, CapBnd %llx", (int) pid,
                                (unsigned long long) s->permitted, (unsigned long long) s->effective,
                                (unsigned long long) s->bounding);
                return drift(d, "capabilities", text);
        }
        if (s->no_new_privs != 1 || s->seccomp != 2 || s->seccomp_filters < 1) {
                (void) snprintf(text, sizeof(text), "process %d: no_new_privs %llu, mode %llu, %llu filters", (int) pid,
                                (unsigned long long) s->no_new_privs, (unsigned long long) s->seccomp,
                                (unsigned long long) s->seccomp_filters);
                return drift(d, s->no_new_privs != 1 ? "no_new_privs" : "seccomp", text);
        }
        /* A sandbox that goes on by itself has commands of root too: its own root, which is as powerless. */
        if (rd->sb->command_pid <= 0 && s->uid[0] == sandbox_host_uid(rd->sb, 0))
                uid = gid = sandbox_host_uid(rd->sb, 0);
        for (unsigned i = 0; i < 4; i++)
                if (s->uid[i] != uid || s->gid[i] != gid) {
                        (void) snprintf(text, sizeof(text), "process %d has uid %llu, gid %llu", (int) pid,
                                        (unsigned long long) s->uid[i], (unsigned long long) s->gid[i]);
                        return drift(d, "ids", text);
                }
        return 0;
}

/* A process may lower its own limits; nobody may raise them. */
static int rlimits_judge(const struct reader *rd, pid_t pid, struct evidence_drift *d) {
        for (size_t i = 0; i < rd->plan->n_rlimits; i++) {
                const struct plan_rlimit *want = &rd->plan->rlimits[i];
                struct rlimit l;
                char text[96];

                if (prlimit(pid, want->resource, NULL, &l) < 0) {
                        if (errno == ESRCH)
                                return 0; /* it has ended */
                        /* One of our user namespace could be read. */
                        (void) snprintf(text, sizeof(text), "process %d: %s cannot be read: %s", (int) pid, want->name,
                                        strerror(errno));
                } else if (l.rlim_max > want->value) {
                        (void) snprintf(text, sizeof(text), "process %d: %s is %llu", (int) pid, want->name,
                                        (unsigned long long) l.rlim_max);
                } else {
                        continue;
                }
                return drift(d, "rlimit", text);
        }
        return 0;
}

static int process_check(const struct reader *rd, pid_t pid, struct evidence_drift *d) {
        AUTO_FD int fd = read_open(rd->sb, pid);
        struct evidence_status s;
        char text[4096];
        int r = fd < 0 ? -errno : fd_read_at(fd, "status", text, sizeof(text));

        if (r < 0 || strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX"))
                return 0; /* it has ended */
        if (evidence_parse_status(text, &s) < 0)
                return drift(d, "ids", "the status of a process cannot be read");
        r = status_judge(rd, pid, &s, d);
        return r != 0 ? r : rlimits_judge(rd, pid, d);
}

static int processes_check(const struct reader *rd, struct evidence_drift *d) {
        int pids[PROCESSES], n = cgroup_pids(&rd->sb->cgroup, pids, PROCESSES), r = 0;

        if (n < 0)
                return drift(d, "cgroup", "its processes cannot be listed");
        for (int i = 0; r == 0 && i < n; i++)
                if (pids[i] != rd->sb->agent_pid)
                        r = process_check(rd, pids[i], d);
        return r;
}

static int place_check(const struct reader *rd, const struct evidence *first, struct evidence_drift *d) {
        struct err err = { 0 };

        if (rd->sb->has_cgroup && cgroup_verify(&rd->sb->cgroup, &rd->sb->cgroup_limits, &err) < 0)
                return group_drift(d, &err);
        if (read_place(rd, &err) < 0)
                return drift_from(d, &err);
        for (size_t i = 0; i < EVIDENCE_NS; i++)
                if (!str_eq(rd->ev->ns[i], first->ns[i]))
                        return drift(d, "namespace", rd->ev->ns[i]);
        return rd->sb->has_cgroup ? processes_check(rd, d) : process_check(rd, rd->sb->command_pid, d);
}

int evidence_again(const struct plan *plan, const struct sandbox *sb, const struct evidence *first,
                   struct evidence_drift *ret) {
        static struct evidence now; /* large; one sandbox per process */
        AUTO_FD int agent_fd = is_gone(sb) ? -1 : read_open(sb, sb->agent_pid);
        struct reader rd = { .plan = plan, .sb = sb, .ev = &now, .agent_fd = agent_fd, .pid_fd = -1 };
        int r;

        if (agent_fd < 0)
                return -ESRCH;
        r = place_check(&rd, first, ret);
        return r != 0 && is_gone(sb) ? -ESRCH : r; /* what was read of a dying sandbox says nothing */
}
