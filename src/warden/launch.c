/*
 * launch.c - child processes about a sandbox that runs: one more launcher, for a user that has none or lost his; and
 * freezing, which may have to wait.
 *
 * The plan is compiled anew from the record, so this works after a restart of the warden as before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/sys.h"
#include "base/wr.h"
#include "evidence/evidence.h"
#include "network.h"
#include "sandbox/sandbox.h"
#include "state.h"

struct launching {
        struct box *b;
        uint32_t uid;
};

int launch_reopen(struct err *err) {
        warden.groups = NULL;
        warden.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        warden.slots_fd = open(WARDEN_SLOTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (warden.proc_fd < 0 || warden.slots_fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "opening directories: %s", strerror(errno));
        return cgroup_host_find(&warden.groups, err);
}

int launch_plan_of(const struct box *b, const struct policy *policy, bool own_certificates, struct plan *ret,
                   struct err *err) {
        struct plan_way_out way = network_way_out(NULL, NULL);

        if (own_certificates && !way.ca_bundle)
                way.ca_bundle = PLAN_BUNDLE; /* there are some inside, whatever its rules are now */
        return statement_plan(policy, NULL, b->hostname, &way, ret, err);
}

int launch_plan(const struct box *b, const struct record *rec, struct plan *ret, struct err *err) {
        static struct policy policy;
        int r = record_policy(rec, &policy, err);

        return r < 0 ? r : launch_plan_of(b, &policy, rec->own_certificates, ret, err);
}

int launch_hold(const struct box *b, const struct plan *plan, const struct record *rec, struct sandbox *sb,
                struct err *err) {
        const struct policy_limits *l = &plan->policy->limits;
        char path[32];
        int r;

        *sb = (struct sandbox){ .slot = b->slot,
                                .agent_pid = b->pid,
                                .proc_fd = warden.proc_fd,
                                .pair_fd = -1,
                                .gate_fd = -1,
                                .root_fd = -1,
                                .listener_fd = -1,
                                .time_offset_s = -(int64_t) rec->offset };
        sb->uid_base = sandbox_uid_base(b->slot);
        memcpy(sb->id, b->id, sizeof(sb->id));
        sb->agent_pidfd = sys_pidfd_open(b->pid);
        if (sb->agent_pidfd < 0 || record_start_time(b->pid) != b->start)
                return err_set(err, -ESRCH, ERR_NOT_FOUND, "sandbox %s has ended", b->id);
        (void) snprintf(path, sizeof(path), "%d/root", (int) b->pid);
        sb->root_fd = openat(warden.proc_fd, path, O_PATH | O_CLOEXEC);
        sb->cgroup_limits =
                (struct cgroup_limits){ .memory_bytes = l->memory_bytes, .cpu_milli = l->cpu_milli, .pids = l->pids };
        r = box_groups(b, &sb->cgroup, err);
        sb->has_cgroup = r == 0;
        return r == 0 && plan->net ? sandbox_net_attach(sb, err) : r;
}

void launch_let_go(struct sandbox *sb) {
        own_closep(&sb->root_fd);
        own_closep(&sb->agent_pidfd);
        if (sb->has_cgroup)
                cgroup_close(&sb->cgroup);
}

static int launch(const struct launching *a, struct sandbox *sb, struct err *err) {
        static struct plan plan;
        static struct evidence ev;
        CLEANUP(record_done) struct record rec = { 0 };
        int r = launch_reopen(err);

        if (r == 0)
                r = record_of(a->b, &rec, err);
        if (r == 0)
                r = launch_plan(a->b, &rec, &plan, err);
        if (r == 0)
                r = launch_hold(a->b, &plan, &rec, sb, err);
        if (r == 0)
                sb->gate_fd = r = maker_connect_gate(a->b->id, err);
        if (r < 0)
                return r;
        plan.uid = plan.gid = a->uid; /* all else is as it was made */
        r = sandbox_launch(&plan, sb, err);
        if (r == 0)
                r = evidence_read_again(&plan, sb, NULL, &ev, err);
        return r < 0 ? r : sandbox_release(sb, err);
}

static _Noreturn void good(int fd) {
        uint8_t one = 1;
        const struct wr w = { .p = &one, .len = 1, .cap = 1 };

        _exit(job_report(&w, &fd, fd >= 0) < 0);
}

static void launch_run(const void *arg) {
        static struct sandbox sb;
        struct err e = { 0 };

        if (launch(arg, &sb, &e) < 0)
                job_failed(&e);
        good(sb.listener_fd);
}

static void on_launched(struct job *j, struct ipc_msg *m) {
        struct err e = { 0 };
        struct rd body;
        int r = job_result(m, &body, &e);

        if (r == 0 && m->n_fds > 0 && j->box)
                box_listen(j->box, TAKE_FD(m->fds[0]));
        client_reply(j->asker, NULL, r < 0 ? &e : NULL);
}

void launch_freeze_run(const void *box) {
        const struct box *b = box;
        struct cgroup c;
        struct err e = { 0 };
        int r = launch_reopen(&e);

        if (r == 0)
                r = box_groups(b, &c, &e);
        if (r == 0)
                r = cgroup_freeze(&c, true, &e);
        if (r < 0)
                job_failed(&e);
        good(-1);
}

static void on_frozen(struct job *j, struct ipc_msg *m) {
        struct err e = { 0 };
        struct rd body;
        int r = job_result(m, &body, &e);

        if (r == 0 && j->box && j->box->state == WP_RUNNING)
                j->box->state = WP_FROZEN;
        client_reply(j->asker, NULL, r < 0 ? &e : NULL);
}

static int begin(struct box *b, job_fn fn, const void *arg, void (*done)(struct job *j, struct ipc_msg *m),
                 struct asker asker, struct err *err) {
        struct job *j;

        if (warden.n_jobs >= WARDEN_JOBS)
                return err_set(err, -EAGAIN, ERR_BUSY, "more than %d things at once", WARDEN_JOBS);
        j = job_start(fn, arg, false, err);
        if (!j)
                return err->code;
        j->done = done;
        j->box = b;
        j->asker = asker;
        return 0;
}

int launch_start(struct box *b, uint32_t uid, struct asker asker, struct err *err) {
        const struct launching a = { .b = b, .uid = uid }; /* the child has its own copy */

        return begin(b, launch_run, &a, on_launched, asker, err);
}

int launch_freeze(struct box *b, struct asker asker, struct err *err) {
        return begin(b, launch_freeze_run, b, on_frozen, asker, err);
}
