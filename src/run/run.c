/* run.c - the order of a run: enter, plan, start, read back, release, serve, judge, end. */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/tty.h"
#include "evidence/evidence.h"
#include "json/json.h"
#include "plan/plan.h"
#include "run/loop.h"

enum { OUTPUT_CREDIT = 128 * 1024 };

/* Opens the sources and compiles; the descriptors of the sources belong to the caller. */
static int plan_make(const struct run_options *o, struct plan *ret, int fds[POLICY_MOUNTS], struct err *err) {
        const struct plan_request req = {
                .hostname = o->name,
                .off = o->off,
                .sensitive_mounts = o->sensitive_mounts,
                .home = o->home,
                .way_out = { .ceiling = o->net.ceiling,
                             .resolve = o->net.resolve,
                             .n_resolve = o->net.n_resolve,
                             .upstream_proxy = o->net.upstream_proxy,
                             .bind = o->net.bind,
                             .ca_bundle = o->net.ca_bundle },
        };
        struct plan_facts facts;
        size_t k = 0;
        int r;

        for (size_t i = 0; i < POLICY_MOUNTS; i++)
                fds[i] = -1;
        r = mounts_open(o, fds, err);
        if (r == 0)
                r = policy_check(o->policy, err);
        if (r == 0)
                r = sandbox_facts(&facts, err);
        if (r == 0)
                r = plan_compile(o->policy, &req, &facts, ret, err);
        for (size_t i = 0; r == 0 && i < ret->n_mounts; i++)
                if (ret->mounts[i].kind == PLAN_BIND && ret->mounts[i].user_owned)
                        ret->mounts[i].fd = fds[k++];
        return r;
}

int run_plan(const struct run_options *o, struct plan *ret, struct err *err) {
        int fds[POLICY_MOUNTS], r;
        bool rootless;

        r = sandbox_enter(&rootless, err);
        return r < 0 ? r : plan_make(o, ret, fds, err);
}

static int signals_take(struct err *err) {
        static const int ours[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
        sigset_t set, none;
        int fd;

        (void) sigemptyset(&set);
        (void) sigemptyset(&none);
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                (void) sigaddset(&set, ours[i]);
        (void) sigaddset(&set, SIGPIPE); /* a closed output is an error of write() */
        if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "signals: %s", strerror(errno));
        (void) sigdelset(&set, SIGPIPE);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "signals: %s", strerror(errno)) : fd;
}

/* Writes the statement, shows the card, takes the hash: whatever was asked for. */
static int evidence_give(const struct run_options *o, const struct plan *plan, const struct sandbox *sb,
                         const struct evidence *ev, int fd, struct run_result *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        CLEANUP(buf_done) struct buf text = BUF_INIT(EVIDENCE_TEXT);
        AUTO_FREE char *pretty = NULL;
        struct buf card = BUF_INIT(16384);
        int r = 0;

        if (o->show_evidence) {
                evidence_card(plan, sb, ev, isatty(STDERR_FILENO), &card);
                (void) fd_write_all(STDERR_FILENO, buf_str(&card), card.len);
                buf_done(&card);
        }
        if (fd < 0 && !o->want_details)
                return 0;
        r = policy_hash(plan->policy, ret->policy, err);
        if (r == 0)
                r = evidence_text(plan, sb, ev, &text, err);
        if (r == 0)
                hash_text(ret->evidence, text.p, text.len);
        if (r == 0 && fd >= 0) {
                r = json_parse("evidence", text.p, text.len, &doc, err);
                if (r == 0)
                        r = json_text(doc, true, &pretty, err);
                if (r == 0 && (fd_write_all(fd, pretty, strlen(pretty)) < 0 || fd_write_all(fd, "\n", 1) < 0))
                        r = err_set(err, -EIO, ERR_INTERNAL, "--evidence %s: cannot be written", o->evidence_path);
        }
        return r;
}

static enum cgroup_ask usage_asked(const struct loop *l) {
        return l->o->want_details ? CGROUP_ALL : CGROUP_EVENTS;
}

/* Limits speak through counters, once the command has ended. */
static void judge(struct loop *l) {
        struct run_result *res = l->result;
        struct cgroup_usage u = { 0 };
        struct err e = { 0 };
        uint64_t used;
        bool full;

        if (sandbox_disk(l->sb, &used, &full) == 0 && full)
                denial_add(l, "limit.disk", "limits.disk", "the sandbox's files reached the limit",
                           "raise limits.disk and limits.memory, or write to a mounted directory");
        if (!l->sb->has_cgroup || cgroup_usage(&l->sb->cgroup, usage_asked(l), &u, &e) < 0)
                return;
        if (u.memory_peak_bytes > 0)
                res->memory_peak_bytes = u.memory_peak_bytes;
        if (u.cpu_us > 0)
                res->cpu_ms = (double) u.cpu_us / 1e3;
        if (u.tasks > 1) /* one is the agent */
                res->orphans = (unsigned) u.tasks - 1;
        if (u.pids_refused > 0)
                denial_add(l, "limit.pids", "limits.pids", "new processes were refused at the limit",
                           "raise limits.pids");
        if (u.oom_kills > 0) {
                denial_add(l, "limit.memory", "limits.memory", "the memory limit was reached and a process was ended",
                           "raise limits.memory; files in memory count towards it");
                if (res->signal == SIGKILL || res->reason == RUN_LOST)
                        res->reason = RUN_OOM;
        }
        if (res->signal == SIGXCPU || res->signal == SIGXFSZ)
                res->reason = RUN_LIMIT;
}

static void exit_code_set(struct run_result *res) {
        static const int codes[] = {
                [RUN_EXITED] = -1, [RUN_SIGNALLED] = -1, [RUN_TIMEOUT] = 124,        [RUN_OOM] = 137,
                [RUN_LIMIT] = 137, [RUN_LOST] = 125,     [RUN_KILLED_BY_USER] = 137, [RUN_KILLED_BY_POLICY] = 137,
        };

        if (codes[res->reason] >= 0 && !(res->reason == RUN_LIMIT && res->signal))
                res->exit_code = codes[res->reason];
}

/* The twin may go on after a failed read-back, to see what an attack makes of it; the product never does. */
static int twin_goes_on(const struct run_options *o, int r, struct run_result *ret, const struct err *err) {
        if (!o->unchecked || !sandbox_is_twin())
                return r;
        (void) dprintf(STDERR_FILENO, "gabion: %s; the twin goes on\n", err->msg);
        if (!ret->mismatch[0]) /* the first one has stopped the reading, so a second may only follow from it */
                (void) snprintf(ret->mismatch, sizeof(ret->mismatch), "%.220s", err->msg);
        return 0;
}

/* From a started sandbox to the command at the gate: everything is read back, and the network is tried. */
static int read_back(struct loop *l, struct evidence *ev, struct err *err) {
        const struct run_options *o = l->o;
        const struct plan *plan = l->plan;
        struct sandbox *sb = l->sb;
        int r = l->record->on ? record_begin(l->record, o, plan, sb, err) : 0; /* durable while the agent starts */

        if (r == 0)
                r = network_add(l->net, plan, sb, err);
        if (r == 0)
                r = evidence_read_early(plan, sb, ev, err);
        if (r == 0)
                r = evidence_canary(plan, sb, ev, err);
        if (r < 0)
                r = twin_goes_on(o, r, l->result, err);
        if (r == 0)
                r = record_plan(l->record, plan, err);
        if (r == 0)
                r = sandbox_wait_here(sb, err);
        if (r == 0 && evidence_read_here(plan, sb, ev, err) < 0)
                r = twin_goes_on(o, err->code, l->result, err);
        if (r == 0)
                r = sandbox_wait(sb, err);
        if (r == 0)
                r = evidence_read(plan, sb, ev, err);
        if (r < 0 && sb->pair_fd >= 0)
                r = twin_goes_on(o, r, l->result, err);
        return r < 0 ? r : network_release(l->net, l, err);
}

/* To the release of the command, which nothing can prevent any more when this returns 0. */
static int release(struct loop *l, struct evidence *ev, int evidence_fd, struct err *err) {
        int r = read_back(l, ev, err);

        if (r == 0)
                r = evidence_give(l->o, l->plan, l->sb, ev, evidence_fd, l->result, err);
        if (r == 0)
                r = watch_start(l->watch, l, ev, err);
        if (r == 0 && l->net->egress)
                r = control_open(&l->control, l, err);
        if (r == 0)
                r = record_wait(l->record, err);
        if (r == 0)
                r = sandbox_release(l->sb, err);
        evidence_forget(ev);
        return r;
}

/*
 * Nobody waits for the removal: no record of it is kept, nothing of the host was open to a process that may live a
 * moment longer than we do, and no other process of ours is to be ended.
 */
static bool may_end_soon(const struct loop *l) {
        return l->o->last && !l->o->want_details && !l->record->on && !l->plan->net && l->plan->policy->n_mounts == 0;
}

static int serve(struct loop *l, struct evidence *ev, struct err *err) {
        int r;

        (void) sandbox_sweep(l->sb); /* others' leftovers, while the command starts */
        if (l->sb->has_cgroup) {     /* all that can be done now is not to be done at the end */
                cgroup_usage_open(&l->sb->cgroup, usage_asked(l));
                cgroup_close_start(&l->sb->cgroup);
        }
        l->ends_soon = may_end_soon(l) && sandbox_can_end_soon(l->sb);
        l->raw = l->o->tty && tty_raw();
        r = record_evidence(l->record, l->plan, l->sb, ev, err);
        if (r == 0)
                r = loop_run(l, err);
        watch_done(l->watch);
        network_end(l->net);
        judge(l);
        if (l->raw)
                tty_restore();
        if (l->result->reason == RUN_LOST && r == 0)
                (void) dprintf(STDERR_FILENO, "gabion: sandbox %s is lost: its agent was killed from outside\n",
                               l->sb->id);
        exit_code_set(l->result);
        return r;
}

static int evidence_open(const struct run_options *o, int *ret, struct err *err) {
        *ret = -1;
        if (!o->evidence_path)
                return 0;
        *ret = open(o->evidence_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        return *ret < 0 ? err_set(err, -errno, ERR_INVALID, "--evidence %.150s: %s", o->evidence_path, strerror(errno))
                        : 0;
}

/* Everything between the notary's start and its end. */
static int run_recorded(struct loop *l, struct err *err) {
        static struct plan plan;
        static struct sandbox sb;
        static struct evidence ev; /* large; one sandbox per process */
        static struct watch watch;
        const struct run_options *o = l->o;
        struct network net;
        struct sandbox_request req = {
                .argv = o->argv,
                .tty = o->tty,
                .no_stdin = o->no_stdin,
                .counted = o->want_details,
                .output_credit = OUTPUT_CREDIT,
                .agent = o->agent,
                .agent_bytes = o->agent_bytes,
                .weaken = o->weaken,
                .net = o->net.ready,
        };
        struct err end = { 0 };
        AUTO_FD int signal_fd = -1, evidence_fd = -1;
        int fds[POLICY_MOUNTS], r, e;
        bool rootless, started = false;

        r = sandbox_enter(&rootless, err);
        if (r < 0)
                return r;
        signal_fd = r = signals_take(err);
        if (r < 0)
                return r;
        r = plan_make(o, &plan, fds, err);
        if (r < 0)
                return r;
        r = evidence_open(o, &evidence_fd, err);
        if (r < 0)
                return r;
        req.cwd = o->cwd ? o->cwd : plan.home;
        tty_size(&req.rows, &req.columns);
        r = network_start(o, &net, err);
        if (r == 0)
                r = certificates_make(&net, &plan, err);
        if (r < 0) {
                network_end(&net);
                return r;
        }
        req.envp = certificates_env(&plan, o->env);
        r = sandbox_start(&plan, &req, &sb, err);
        (void) memcpy(l->result->sandbox, sb.id, sizeof(l->result->sandbox));
        l->plan = &plan;
        l->sb = &sb;
        l->net = &net;
        watch.l = l;
        l->watch = &watch;
        l->signal_fd = signal_fd;
        control_none(&l->control);
        if (r == 0)
                r = release(l, &ev, evidence_fd, err);
        started = r == 0;
        if (r == 0)
                r = serve(l, &ev, err);
        control_close(&l->control);
        network_end(&net);
        if (r == 0 && l->ends_soon && sandbox_end_soon(&sb))
                return 0;
        record_end(l->record, &sb, l->result, started);
        e = sandbox_end(&sb, &end);
        if (e < 0 && r == 0) {
                *err = end;
                r = err_wrap(err, "cleaning up");
        }
        if (record_removed(l->record, &plan, e == 0, &end) < 0 && r == 0) {
                *err = end;
                r = err->code;
        }
        return r;
}

int run_command(const struct run_options *o, struct run_result *ret, struct err *err) {
        static struct record record;
        struct loop l = { .o = o, .result = ret, .record = &record };
        int r = record_open(o, &record, err);

        memset(ret, 0, offsetof(struct run_result, denials));
        if (r == 0)
                r = run_recorded(&l, err);
        record_close(&record);
        return r;
}
