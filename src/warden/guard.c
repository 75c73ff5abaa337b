/*
 * guard.c - see guard.h.
 *
 * Theory of operation. The rules are those of src/monitor. The kernel tells of files and programs by one fanotify group
 * for each sandbox, so that no sandbox can fill another's queue; refused calls and attempts pass through the warden
 * anyway; memory and tasks alone must be looked at, all in one turn of the loop each LOOK_MS.
 *
 * A sandbox decides how much there is to read, so what is read has a ceiling: FILES_EVENTS in FILES_MS of all, and a
 * sandbox that has filled a whole read rests for that long. The kernel keeps the next 16384 of each, and says so when
 * there were more. What is told has one too: a sandbox has TELLS at once and TELLS_PER_S, and the number of those that
 * were left out is told with the next. An answer to a broken rule is never left out.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "json/json.h"
#include "monitor/monitor.h"
#include "network.h"

enum {
        LOOK_MS = 1000,
        FILES_MS = 20,
        FILES_EVENTS = 512,
        FILES_FULL = 256, /* of one read: there is more */
        LAST_READS = 4,   /* of one that ends */
        TELLS = 200,
        TELLS_PER_S = 20,
        TELLS_FOUND = 50, /* of them for broken rules alone */
        FREEZE_AGAIN_MS = 20,
        PROCESSES = 512,
};

static const uint64_t ms = 1000000; /* in nanoseconds */

/* One policy is often that of many. */
struct shared {
        TAILQ_ENTRY(shared) link;
        char hash[HASH_TEXT];
        unsigned users;
        struct policy *policy;
};

struct guard {
        TAILQ_ENTRY(guard) link;
        struct box *box;
        struct shared *shared;
        struct monitor monitor;
        struct watch files; /* a copy of the monitor's descriptor */
        bool rests;         /* it is not read until rested_ns */
        uint64_t rested_ns;
        bool freezes, wants; /* a child does it; it has yet to be started */
        unsigned tells, untold;
        uint64_t tells_ns;
};

static TAILQ_HEAD(, shared) policies = TAILQ_HEAD_INITIALIZER(policies);
static TAILQ_HEAD(, guard) guards = TAILQ_HEAD_INITIALIZER(guards);
static uint64_t look_ns, window_ns;
static unsigned window_events;

/* --- policies --- */

static struct shared *shared_get(const char *hash, const struct policy *policy, struct err *err) {
        struct shared *s;

        TAILQ_FOREACH(s, &policies, link) {
                if (str_eq(s->hash, hash))
                        break;
        }
        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s || policy_copy(policy, &s->policy, err) < 0) {
                        free(s);
                        (void) err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
                        return NULL;
                }
                (void) str_copy(s->hash, sizeof(s->hash), hash);
                TAILQ_INSERT_TAIL(&policies, s, link);
        }
        s->users++;
        return s;
}

static void shared_put(struct shared *s) {
        if (--s->users > 0)
                return;
        TAILQ_REMOVE(&policies, s, link);
        policy_freep(&s->policy);
        free(s);
}

/* --- what is told --- */

/* Some are left for others. */
static bool may_tell(struct guard *g, unsigned left) {
        uint64_t now = clock_mono_ns(), step = 1000000000u / TELLS_PER_S;

        for (; now - g->tells_ns > step && g->tells < TELLS; g->tells_ns += step)
                g->tells++;
        if (g->tells == TELLS)
                g->tells_ns = now;
        if (g->tells <= left) {
                g->untold++;
                return false;
        }
        g->tells--;
        return true;
}

static void keep(const struct box *b, struct buf *text) {
        record_keep(b->id, buf_str(text));
        buf_done(text);
}

static void tell_found(struct guard *g, const struct monitor_finding *f) {
        struct buf text = BUF_INIT(WP_RECORD);
        struct json_emit e = { .to = &text };

        json_emit_object(&e, NULL);
        json_emit_str(&e, "action", policy_action_name(f->action));
        json_emit_str(&e, "alert", f->rule);
        json_emit_str(&e, "found", f->found);
        json_emit_int(&e, "ms", (int64_t) clock_real_ms());
        json_emit_str(&e, "object", f->object);
        json_emit_close(&e, '}');
        keep(g->box, &text);
        warden_log("sandbox %s: %s: %s (%s)", g->box->id, f->rule, f->found, policy_action_name(f->action));
}

static void on_file(void *arg, bool written, const char *path) {
        struct guard *g = arg;
        struct buf text = BUF_INIT(WP_RECORD);
        struct json_emit e = { .to = &text };

        if (!may_tell(g, TELLS_FOUND))
                return;
        json_emit_object(&e, NULL);
        json_emit_str(&e, "file", written ? "written" : "read");
        json_emit_int(&e, "ms", (int64_t) clock_real_ms());
        json_emit_int(&e, "others", g->untold);
        json_emit_str(&e, "path", path);
        json_emit_close(&e, '}');
        g->untold = 0;
        keep(g->box, &text);
}

/* --- what is done --- */

static void kill_it(struct box *b) {
        if (b->state == WP_ENDING)
                return;
        box_kill(b, (struct asker){ 0 });
        b->last.reason = WP_POLICY;
}

static void on_frozen(struct job *j, struct ipc_msg *m) {
        struct box *b = j->box;
        struct err e = { 0 };
        struct rd body;

        if (!b || !b->guard)
                return;
        b->guard->freezes = false;
        if (job_result(m, &body, &e) == 0) {
                if (b->state == WP_RUNNING)
                        b->state = WP_FROZEN;
                return;
        }
        warden_log("sandbox %s cannot be frozen, so it is ended: %s", b->id, e.msg);
        kill_it(b);
}

/* In a child, because it may have to wait. When there are too many at work already, a little later. */
static void freeze_it(struct guard *g) {
        struct err e = { 0 };
        struct job *j = warden.n_jobs < WARDEN_JOBS ? job_start(launch_freeze_run, g->box, false, &e) : NULL;

        g->wants = !j;
        if (!j)
                return;
        j->done = on_frozen;
        j->box = g->box;
        g->freezes = true;
}

static void on_found(void *arg, const struct monitor_finding *found) {
        struct guard *g = arg;
        struct box *b = g->box;
        struct monitor_finding f = *found;

        if (b->state == WP_ENDING)
                f.action = POLICY_LOG; /* the rest is done */
        if (f.action == POLICY_FREEZE && (b->state == WP_FROZEN || g->freezes || g->wants))
                return;
        if (f.action == POLICY_LOG && !may_tell(g, 0))
                return;
        tell_found(g, &f);
        if (f.action == POLICY_KILL)
                kill_it(b);
        else if (f.action == POLICY_FREEZE)
                freeze_it(g);
}

/* --- files --- */

static void rest(struct guard *g, bool rests) {
        struct epoll_event e = { .events = rests ? 0 : EPOLLIN, .data.ptr = &g->files };

        if (g->files.fd >= 0 && epoll_ctl(warden.epoll_fd, EPOLL_CTL_MOD, g->files.fd, &e) == 0)
                g->rests = rests;
}

static void on_files(struct watch *w, uint32_t events) {
        struct guard *g = OF_WATCH(w, struct guard, files);
        uint64_t now = clock_mono_ns();
        unsigned n = 0;

        (void) events;
        if (now - window_ns > FILES_MS * ms) {
                window_ns = now;
                window_events = 0;
        }
        if (window_events < FILES_EVENTS)
                n = monitor_files(&g->monitor);
        window_events += n;
        if (n >= FILES_FULL || window_events >= FILES_EVENTS) {
                g->rested_ns = now + FILES_MS * ms;
                rest(g, true);
        }
}

static int files_watch(struct guard *g, struct err *err) {
        int fd = monitor_fd(&g->monitor), r = 0;

        if (fd < 0)
                return 0;
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the loop closes what it drops */
        r = fd < 0 ? -errno : loop_watch(&g->files, fd, on_files);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "monitor: %s", strerror(-r)) : 0;
}

/* --- its life --- */

static void guard_free(struct guard *g) {
        loop_drop(&g->files);
        monitor_done(&g->monitor);
        if (g->shared)
                shared_put(g->shared);
        free(g);
}

int guard_start(struct box *b, const struct policy *policy, struct err *err) {
        struct guard *g = monitor_any(policy) ? calloc(1, sizeof(*g)) : NULL;
        const struct monitor_to to = { .found = on_found, .file = on_file, .arg = g };
        int r;

        if (!monitor_any(policy))
                return 0;
        if (!g)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        g->box = b;
        g->files.fd = -1;
        g->tells = TELLS;
        g->shared = shared_get(b->policy, policy, err);
        if (!g->shared) {
                free(g);
                return err->code;
        }
        r = monitor_start(&g->monitor, g->shared->policy, b->pid, warden.proc_fd, &to, err);
        if (r == 0)
                r = files_watch(g, err);
        if (r < 0) {
                guard_free(g);
                return r;
        }
        TAILQ_INSERT_TAIL(&guards, g, link);
        b->guard = g;
        return 0;
}

static bool is_agents(pid_t pid) {
        char path[32], exe[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "%d/exe", (int) pid);
        n = readlinkat(warden.proc_fd, path, exe, sizeof(exe) - 1);
        exe[n > 0 ? n : 0] = '\0';
        return str_has_prefix(exe, "/memfd:gabion-agent");
}

/* The door at which its refused calls came was closed with the warden before us, for every process behind that filter.
 * Without its launchers the next command gets a new one, and with it a filter and a door: what runs already goes on,
 * and its refused calls cannot be counted. */
static void launchers_end(const struct box *b) {
        int pids[PROCESSES], n;
        struct cgroup c;
        struct err e;

        if (box_groups(b, &c, &e) < 0)
                return;
        n = cgroup_pids(&c, pids, PROCESSES);
        for (int i = 0; i < n; i++) {
                AUTO_FD int fd = pids[i] == b->pid ? -1 : sys_pidfd_open(pids[i]);

                /* Held first: what is looked at is then the process that is ended. */
                if (fd >= 0 && is_agents(pids[i]) && cgroup_verify_member(&c, warden.proc_fd, pids[i], &e) == 0)
                        (void) sys_pidfd_send_signal(fd, SIGKILL);
        }
        cgroup_close(&c);
}

void guard_again(struct box *b, const struct policy *policy) {
        const struct policy_monitor *m = &policy->monitor;
        struct monitor_finding f = { POLICY_LOG, "monitor", "files", "what happens in it cannot be watched any more" };
        struct guard g = { .box = b };
        struct err e = { 0 };

        if (m->refused_calls.on)
                launchers_end(b);
        if (guard_start(b, policy, &e) == 0)
                return;
        warden_log("sandbox %s: %s", b->id, e.msg);
        if (m->programs.on)
                f.action = m->programs.action;
        if (m->writes.on && m->writes.action > f.action)
                f.action = m->writes.action;
        if (f.action == POLICY_FREEZE)
                f.action = POLICY_KILL; /* somebody would have to thaw it, and then it would go on unwatched */
        tell_found(&g, &f);
        if (f.action == POLICY_KILL)
                kill_it(b);
}

void guard_stop(struct box *b) {
        struct guard *g = b->guard;

        if (!g)
                return;
        for (int i = 0; i < LAST_READS && g->files.fd >= 0 && monitor_files(&g->monitor) > 0; i++)
                ;
        b->guard = NULL;
        TAILQ_REMOVE(&guards, g, link);
        guard_free(g);
}

bool guard_call(struct box *b) {
        return b->guard && b->guard->shared->policy->monitor.refused_calls.on && !monitor_call(&b->guard->monitor);
}

void guard_attempt(struct box *b, const struct json *attempt) {
        const char *name = b->guard ? json_get_str(attempt, "name") : NULL;

        if (name)
                monitor_host(&b->guard->monitor, name);
}

static void look(struct guard *g) {
        struct cgroup_usage u = { 0 };
        struct cgroup c;
        struct err e;

        if (g->shared->policy->monitor.resources.on && g->box->state == WP_RUNNING &&
            box_refer(g->box, 0, &c, &e) == 0 && cgroup_usage(&c, CGROUP_LEVELS, &u, &e) == 0)
                monitor_usage(&g->monitor, &u);
}

static int sooner(int a_ms, int b_ms) {
        return a_ms < 0 || b_ms < a_ms ? b_ms : a_ms;
}

int guard_due(void) {
        uint64_t now = clock_mono_ns();
        bool looks = now >= look_ns;
        struct guard *g;
        int wait_ms = -1;

        TAILQ_FOREACH(g, &guards, link) {
                if (g->wants && g->box->state == WP_RUNNING)
                        freeze_it(g);
                if (g->wants)
                        wait_ms = sooner(wait_ms, FREEZE_AGAIN_MS);
                if (g->rests && now >= g->rested_ns)
                        rest(g, false);
                if (g->rests)
                        wait_ms = sooner(wait_ms, FILES_MS);
                if (!g->shared->policy->monitor.resources.on)
                        continue;
                if (looks)
                        look(g);
                wait_ms = sooner(wait_ms, looks ? LOOK_MS : (int) ((look_ns - now) / ms) + 1);
        }
        if (looks)
                look_ns = now + LOOK_MS * ms;
        return wait_ms;
}
