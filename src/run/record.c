/* record.c - the events of a run. See record.h; the receipt is in receipt.c. */
#include "run/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "evidence/evidence.h"
#include "json/json.h"
#include "plan/plan.h"

/* --- where --- */

static void socket_path(char dst[128]) {
        if (geteuid() == 0)
                (void) snprintf(dst, 128, "/run/gabion/notary/socket");
        else
                (void) snprintf(dst, 128, "/run/user/%u/gabion/notary/socket", geteuid());
}

/* A notary beside this run, for a log that the caller named. It lives until we close the socket, or die. */
static int notary_start(const char *dir, struct record *r, struct err *err) {
        const struct notary_settings s = { .log = { .dir = dir, .readers = (gid_t) -1 } };
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "audit: %s", strerror(errno));
        r->notary = fork();
        if (r->notary == 0) {
                sigset_t all;

                (void) sigfillset(&all); /* a key on the caller's terminal must not end it before the last record */
                (void) sigprocmask(SIG_SETMASK, &all, NULL);
                notary_beside(ends[1], &s);
        }
        (void) close(ends[1]);
        r->c = (struct notary_client){ .fd = ends[0] };
        if (r->notary > 0)
                return 0;
        r->notary = 0;
        return err_set(err, -errno, ERR_INTERNAL, "audit: fork: %s", strerror(errno));
}

/* Takes what is there to take of earlier ones, and remembers this one. */
static int notary_reap(pid_t pid) {
        static pid_t last;

        if (last > 0 && waitpid(last, NULL, WNOHANG) == 0)
                (void) waitpid(last, NULL, 0);
        last = pid;
        return last > 0 && waitpid(last, NULL, WNOHANG) == last ? (last = 0) : 0;
}

static int is_socket(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Low numbers are those that a sandbox's agent inherits. */
static int move_away(int *fd, struct err *err) {
        enum { FIRST = 32 };
        int copy = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST);

        if (copy < 0)
                return err_set(err, -errno, ERR_INTERNAL, "audit: %s", strerror(errno));
        (void) close(*fd);
        *fd = copy;
        return 0;
}

int record_open(const struct run_options *o, struct record *r, struct err *err) {
        char path[128];
        int e;

        memset(r, 0, sizeof(*r));
        r->c.fd = -1;
        if (o->tenant && !audit_tenant_ok(o->tenant))
                return err_set(err, -EINVAL, ERR_INVALID, "--tenant '%.40s': lower-case letters, digits, '-' and '_'",
                               o->tenant);
        (void) str_copy(r->tenant, sizeof(r->tenant), o->tenant ? o->tenant : "local");
        (void) snprintf(r->actor, sizeof(r->actor), "uid:%u", getuid());
        socket_path(path);
        if (!o->audit && access(path, F_OK) < 0 && (errno == ENOENT || errno == EACCES))
                return 0; /* as a rule: quicker than to try */
        if (o->audit && !is_socket(o->audit))
                e = notary_start(o->audit, r, err);
        else
                e = notary_connect(o->audit ? o->audit : path, &r->c, err);
        /* Nobody asked for a log and there is none for us. A socket without a notary behind it is another matter. */
        if (e < 0 && !o->audit && (e == -ENOENT || e == -EACCES)) {
                *err = (struct err){ 0 };
                return 0;
        }
        if (e == 0)
                e = move_away(&r->c.fd, err);
        if (e < 0)
                return err_wrap(err, "no audit record, no run");
        r->on = true;
        return 0;
}

/* Everything was acknowledged, so it may end by itself; the next run of this process reaps it. */
void record_close(struct record *r) {
        notary_close(&r->c);
        (void) notary_reap(r->notary);
        r->notary = 0;
        free(TAKE_PTR(r->plan_text));
        free(TAKE_PTR(r->policy_text));
}

/* --- what --- */

void record_event(const struct record *r, enum audit_kind kind, struct audit_event *ret) {
        audit_event_init(ret, kind, r->tenant, r->sandbox);
        (void) str_copy(ret->policy, sizeof(ret->policy), r->policy);
}

/* A failure shows on the socket, or with the replies. */
void record_send(struct record *r, const struct audit_event *ev) {
        struct err e = { 0 };

        if (r->on && notary_append(&r->c, ev, &e) < 0)
                r->c.waiting += e.code != -EMSGSIZE; /* a reply that never comes: the next wait finds out why */
}

static void limits_add(struct audit_event *ev, const struct policy *p) {
        audit_text(ev, "tier", policy_tier_name(p->tier));
        audit_text(ev, "template", p->template);
        audit_text(ev, "storage", "memory");
        audit_text(ev, "syscalls", policy_syscalls_name(p->syscalls));
        audit_number(ev, "memory_bytes", (int64_t) p->limits.memory_bytes);
        audit_number(ev, "cpu_milli", p->limits.cpu_milli);
        audit_number(ev, "pids", p->limits.pids);
        audit_number(ev, "disk_bytes", (int64_t) p->limits.disk_bytes);
        audit_number(ev, "time_ms", (int64_t) p->limits.time_ms);
        audit_number(ev, "mounts", (int64_t) p->n_mounts);
}

/* If nobody tells more, this is what happened. */
static void will_put(const struct record *r, enum audit_kind kind, struct notary_batch *b) {
        struct audit_event ev;

        record_event(r, kind, &ev);
        audit_text(&ev, "reason", "lost");
        if (kind == AUDIT_SANDBOX_REMOVED)
                audit_text(&ev, "note", "the supervisor was killed; its janitor cleans up");
        notary_put(b, NOTARY_WILL, &ev);
}

static void groups_note(struct record *r, const struct sandbox *sb) {
        const char *dir;

        for (size_t i = 0; sb->has_cgroup && i < RECORD_GROUPS && (dir = cgroup_parent(sb->cgroup_host, i)); i++)
                if (dir[0])
                        (void) snprintf(r->groups[r->n_groups++], RECORD_PATH, "%.250s/%s", dir, sb->cgroup.name);
}

int record_begin(struct record *r, const struct run_options *o, const struct plan *plan, const struct sandbox *sb,
                 struct err *err) {
        struct notary_batch b;
        struct audit_event ev;
        int e;

        if (!r->on)
                return 0;
        r->command = o->argv[0];
        (void) memcpy(r->sandbox, sb->id, sizeof(r->sandbox));
        r->agent = sb->agent_pid;
        groups_note(r, sb);
        e = policy_canonical(plan->policy, &r->policy_text, err);
        if (e < 0)
                return e;
        hash_text(r->policy, r->policy_text, strlen(r->policy_text));
        record_event(r, AUDIT_SANDBOX_CREATED, &ev);
        (void) str_copy(ev.actor, sizeof(ev.actor), r->actor);
        audit_object(&ev, plan->policy->name);
        limits_add(&ev, plan->policy);
        if (o->name)
                audit_text(&ev, "name", o->name);
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &ev);
        will_put(r, AUDIT_SANDBOX_ENDED, &b);
        record_event(r, AUDIT_EXEC_STARTED, &ev);
        (void) str_copy(ev.actor, sizeof(ev.actor), r->actor);
        audit_program(&ev, r->command);
        audit_text(&ev, "user", policy_user_name(plan->policy->user));
        notary_put(&b, NOTARY_EVENT, &ev);
        e = notary_send(&r->c, &b, NULL, NULL, 0, err);
        r->begun = e == 0;
        return e < 0 ? err_wrap(err, "no audit record, no run") : 0;
}

int record_wait(struct record *r, struct err *err) {
        int e = r->on ? notary_wait(&r->c, RECORD_WAIT_MS, err) : 0;

        return e < 0 ? err_wrap(err, "no audit record, no run") : 0;
}

int record_plan(struct record *r, const struct plan *plan, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        int e;

        if (!r->on)
                return 0;
        e = plan_json(plan, &doc, err);
        return e < 0 ? e : json_text(doc, false, &r->plan_text, err);
}

int record_evidence(struct record *r, const struct plan *plan, const struct sandbox *sb, struct evidence *ev,
                    struct err *err) {
        CLEANUP(buf_done) struct buf text = BUF_INIT(EVIDENCE_TEXT);
        struct buf all = BUF_INIT(LEDGER_STATEMENT_MAX);
        struct audit_event event;
        struct notary_batch b;
        char hash[HASH_TEXT];
        int e;

        if (!r->on)
                return 0;
        hash_text(ev->plan, r->plan_text, strlen(r->plan_text));
        memcpy(ev->policy, r->policy, sizeof(ev->policy));
        e = evidence_text(plan, sb, ev, &text, err);
        if (e < 0)
                return e;
        buf_addf(&all, "{\"evidence\":%s,\"plan\":%s,\"policy\":%s}", text.p, r->plan_text, r->policy_text);
        record_event(r, AUDIT_EVIDENCE, &event);
        audit_object(&event, "read-back");
        hash_text(hash, text.p, text.len);
        audit_text(&event, "evidence", hash);
        audit_text(&event, "plan", ev->plan);
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &event);
        e = notary_send(&r->c, &b, "start", buf_str(&all), all.len, err);
        buf_done(&all);
        return e;
}

void record_denial(struct record *r, const struct run_denial *d) {
        struct audit_event ev;

        if (!r->on)
                return;
        record_event(r, str_has_prefix(d->code, "limit.") ? AUDIT_LIMIT_REACHED : AUDIT_CALL_REFUSED, &ev);
        ev.decision = AUDIT_DENIED;
        (void) str_copy(ev.id, sizeof(ev.id), d->event);
        (void) str_copy(ev.code, sizeof(ev.code), d->code);
        (void) str_copy(ev.rule, sizeof(ev.rule), d->rule);
        audit_object(&ev, d->what);
        record_send(r, &ev);
}

void record_network(struct record *r, const struct json *attempt) {
        struct audit_event ev;

        if (!r->on)
                return;
        record_event(r, audit_attempt_kind(attempt), &ev);
        audit_attempt(&ev, attempt);
        record_send(r, &ev);
}

int record_policy(struct record *r, const char *name, const char hash[HASH_TEXT], struct err *err) {
        struct audit_event ev;
        int e;

        if (!r->on)
                return 0;
        record_event(r, AUDIT_POLICY_CHANGED, &ev);
        (void) str_copy(ev.actor, sizeof(ev.actor), r->actor);
        audit_object(&ev, name);
        audit_text(&ev, "before", r->policy);
        (void) str_copy(ev.policy, sizeof(ev.policy), hash);
        e = notary_append(&r->c, &ev, err);
        if (e == 0)
                e = notary_wait(&r->c, RECORD_WAIT_MS, err);
        if (e == 0)
                (void) str_copy(r->policy, sizeof(r->policy), hash);
        return e < 0 ? err_wrap(err, "no audit record, no change") : 0;
}

int record_fd(const struct record *r) {
        return r->on ? r->c.fd : -1;
}

int record_take(struct record *r, struct err *err) {
        int e = notary_take(&r->c, err);

        return e < 0 ? err_wrap(err, "the audit log failed, and the sandbox was ended") : 0;
}

void record_end(struct record *r, const struct sandbox *sb, const struct run_result *res, bool started) {
        struct audit_event ev;
        struct notary_batch b;
        struct err e = { 0 };
        bool full;

        if (!r->begun)
                return;
        r->requested_ms = clock_real_ms();
        (void) sandbox_disk(sb, &r->disk_bytes, &full);
        notary_begin(&b);
        if (started) {
                record_event(r, AUDIT_EXEC_ENDED, &ev);
                audit_program(&ev, r->command);
                audit_text(&ev, "reason", run_reason_name(res->reason));
                audit_number(&ev, "exit_code", res->exit_code);
                audit_number(&ev, "signal", res->signal);
                audit_number(&ev, "duration_ms", (int64_t) res->duration_ms);
                audit_number(&ev, "cpu_ms", (int64_t) res->cpu_ms);
                audit_number(&ev, "memory_peak_bytes", (int64_t) res->memory_peak_bytes);
                notary_put(&b, NOTARY_EVENT, &ev);
        }
        record_event(r, AUDIT_SANDBOX_ENDED, &ev);
        audit_text(&ev, "reason", started ? run_reason_name(res->reason) : "not_started");
        audit_number(&ev, "denials", (int64_t) res->n_denials + res->denials_suppressed);
        audit_number(&ev, "orphans", res->orphans);
        notary_put(&b, NOTARY_EVENT, &ev);
        will_put(r, AUDIT_SANDBOX_REMOVED, &b);
        (void) notary_send(&r->c, &b, NULL, NULL, 0, &e); /* a failure shows when the removal is recorded */
}
