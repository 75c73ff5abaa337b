/*
 * box.c - the sandboxes that the warden holds: each by a pidfd, its control groups and its record.
 *
 * Theory of operation. A box is `making` until its maker reports, `running` (or `pooled`, `frozen`) while its agent
 * lives, and `ending` from the moment that agent is dead or told to die. The kernel tells of the death by the pidfd; by
 * then nothing of the pid namespace is left, so the groups are empty and can be removed, then the sockets, then the
 * record, which frees the slot. Only then is the end told. A group that is busy for a moment is tried again from the
 * loop; one that stays busy is given to a child process that may wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "guard.h"
#include "network.h"
#include "state.h"

enum { DENIALS = 50, DENIALS_PER_S = 5, GIVE_UP_MS = 500 };

struct box *box_new(const char *id, const char *tenant, struct err *err) {
        struct box *b;

        if (box_find(id)) {
                (void) err_set(err, -EEXIST, ERR_INVALID, "sandbox %s exists", id);
                return NULL;
        }
        if (warden.n_boxes == WARDEN_BOXES) {
                (void) err_set(err, -EBUSY, ERR_LIMIT, "more than %d sandboxes", WARDEN_BOXES);
                return NULL;
        }
        b = calloc(1, sizeof(*b));
        if (!b) {
                (void) err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
                return NULL;
        }
        (void) str_copy(b->id, sizeof(b->id), id);
        (void) str_copy(b->tenant, sizeof(b->tenant), tenant);
        b->end.fd = b->listener.fd = -1;
        b->denials_left = DENIALS;
        TAILQ_INSERT_TAIL(&warden.boxes, b, link);
        warden.n_boxes++;
        return b;
}

struct box *box_find(const char *id) {
        struct box *b;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (str_eq(b->id, id))
                        return b;
        }
        return NULL;
}

void box_free(struct box *b) {
        struct job *j;

        TAILQ_FOREACH(j, &warden.jobs, link) {
                if (j->box == b)
                        j->box = NULL; /* it works for nobody now */
        }
        pool_leave(b);
        network_leave(b);
        guard_stop(b);
        trip_drop(b);
        loop_drop(&b->end);
        loop_drop(&b->listener);
        TAILQ_REMOVE(&warden.boxes, b, link);
        warden.n_boxes--;
        warden.n_ended -= b->retry_ns != 0;
        free(b);
}

void box_socket(const char *id, bool gate, char path[WP_PATH]) {
        (void) snprintf(path, WP_PATH, "%.70s/%s/%s", warden.run, gate ? "gates" : "agents", id);
}

int box_groups(const struct box *b, struct cgroup *ret, struct err *err) {
        char name[CGROUP_NAME];

        (void) snprintf(name, sizeof(name), "sbx-%04u", b->slot);
        return cgroup_open(warden.groups, name, ret, err);
}

int box_refer(const struct box *b, unsigned made, struct cgroup *ret, struct err *err) {
        char name[CGROUP_NAME];

        (void) snprintf(name, sizeof(name), "sbx-%04u", b->slot);
        return cgroup_refer(warden.groups, name, made, ret, err);
}

static void counters(const struct box *b, struct wp_end *ret) {
        struct cgroup_usage u = { 0 };
        struct cgroup c;
        struct err e;

        if (box_refer(b, 0, &c, &e) == 0 && cgroup_usage(&c, CGROUP_TOTALS, &u, &e) == 0) {
                ret->memory_peak_bytes = u.memory_peak_bytes;
                ret->cpu_us = u.cpu_us;
                ret->oom_kills = u.oom_kills;
        }
}

int box_usage(const struct box *b, struct wp_usage *ret, struct err *err) {
        struct cgroup_usage u = { 0 };
        struct cgroup c;
        struct statfs st;
        char path[32];
        AUTO_FD int root = -1;
        int r = box_refer(b, 0, &c, err);

        if (r == 0)
                r = cgroup_usage(&c, CGROUP_ALL, &u, err);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "%d/root", (int) b->pid);
        root = openat(warden.proc_fd, path, O_PATH | O_CLOEXEC); /* the root itself; nothing below it is looked up */
        if (root < 0 || fstatfs(root, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "sandbox %s: its disk cannot be read: %s", b->id,
                               strerror(errno));
        *ret = (struct wp_usage){
                .memory_bytes = u.memory_bytes,
                .memory_cache_bytes = u.memory_cache_bytes,
                .memory_peak_bytes = u.memory_peak_bytes,
                .memory_limit_bytes = b->memory_limit,
                .cpu_us = u.cpu_us,
                .tasks = u.tasks,
                .oom_kills = u.oom_kills,
                .pids_refused = u.pids_refused,
                .disk_bytes = (uint64_t) (st.f_blocks - st.f_bfree) * (uint64_t) st.f_bsize,
                .disk_limit_bytes = (uint64_t) st.f_blocks * (uint64_t) st.f_bsize,
        };
        return 0;
}

static void unlink_socket(const char *id, bool gate) {
        char path[WP_PATH];

        box_socket(id, gate, path);
        (void) unlink(path);
}

/* Groups, sockets, record: in this order, so that whoever finds a record knows that there may be more. */
static int clean(const struct box *b) {
        struct cgroup c;
        struct err e;
        char name[CGROUP_NAME];
        int r = box_refer(b, 0, &c, &e);

        if (r == 0)
                r = cgroup_remove_now(&c, &e);
        if (r < 0)
                return r;
        unlink_socket(b->id, false);
        unlink_socket(b->id, true);
        (void) snprintf(name, sizeof(name), "sbx-%04u", b->slot);
        (void) unlinkat(warden.slots_fd, name, 0);
        return 0;
}

static void ended(struct box *b) {
        struct wp_event e = { .kind = WP_ENDED, .end = b->last };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        memcpy(e.id, b->id, sizeof(e.id));
        memcpy(e.tenant, b->tenant, sizeof(e.tenant));
        wp_put_end(&w, &b->last);
        client_reply(b->killer, &w, NULL);
        if (!b->shape)
                client_tell(&e);
        box_free(b);
}

/* In a child, which may wait: everybody in the groups is killed, and they are removed. */
static void stubborn(const void *arg) {
        const struct box *b = arg;
        struct cgroup_host *host = NULL;
        struct cgroup c;
        struct err e = { 0 };
        uint8_t one = 1;
        struct wr w = { .p = &one, .len = 1, .cap = 1 };
        int r = cgroup_host_find(&host, &e);

        warden.groups = host;
        if (r == 0)
                r = box_groups(b, &c, &e);
        if (r == 0)
                r = cgroup_kill(&c, &e);
        if (r == 0)
                r = cgroup_remove(&c, &e);
        if (r < 0 && r != -ENOENT)
                job_failed(&e);
        _exit(job_report(&w, NULL, 0) < 0);
}

static void on_stubborn(struct job *j, struct ipc_msg *m) {
        struct err e = { 0 };
        struct rd body;

        if (!j->box)
                return;
        if (job_result(m, &body, &e) < 0)
                warden_log("sandbox %s: %s; trying again", j->box->id, e.msg);
        j->box->stuck = false;
        j->box->retry_ns = clock_mono_ns();
        j->box->give_up_ns = j->box->retry_ns + GIVE_UP_MS * 1000000ull;
}

int box_retry(void) {
        uint64_t now = clock_mono_ns();
        struct box *b, *next;
        int wait_ms = -1;

        if (warden.n_ended == 0)
                return -1;
        for (b = TAILQ_FIRST(&warden.boxes); b; b = next) {
                struct err e;
                struct job *j;

                next = TAILQ_NEXT(b, link);
                if (b->retry_ns == 0 || b->stuck)
                        continue;
                if (clean(b) == 0) {
                        ended(b);
                        continue;
                }
                wait_ms = WARDEN_RETRY_MS;
                if (now < b->give_up_ns || warden.n_jobs >= WARDEN_JOBS)
                        continue;
                j = job_start(stubborn, b, false, &e);
                if (j) {
                        j->done = on_stubborn;
                        j->box = b;
                        b->stuck = true;
                }
        }
        return wait_ms;
}

/* The agent is dead, and with it everything inside. */
static void on_end(struct watch *w, uint32_t events) {
        struct box *b = OF_WATCH(w, struct box, end);

        (void) events;
        claim_finish();
        counters(b, &b->last);
        if (b->state != WP_ENDING)
                b->last.reason = b->last.oom_kills > 0 ? WP_OOM : WP_LOST;
        b->state = WP_ENDING;
        network_leave(b);
        guard_stop(b);
        trip_drop(b);
        loop_drop(&b->end);
        loop_drop(&b->listener);
        warden.n_ended++;
        b->retry_ns = clock_mono_ns();
        b->give_up_ns = b->retry_ns + GIVE_UP_MS * 1000000ull;
}

int box_started(struct box *b, int pidfd, int listener_fd, struct err *err) {
        int r = loop_watch(&b->end, pidfd, on_end);

        if (r < 0) {
                own_closep(&listener_fd);
                return err_set(err, r, ERR_INTERNAL, "sandbox %s: %s", b->id, strerror(-r));
        }
        if (listener_fd >= 0)
                box_listen(b, listener_fd);
        return 0;
}

void box_kill(struct box *b, struct asker asker) {
        b->killer = asker;
        if (b->state == WP_MAKING) {
                b->kill = true;
                return;
        }
        if (b->state == WP_ENDING)
                return;
        if (b->state == WP_FROZEN) {
                struct cgroup c;
                struct err e;

                /* Where only the old freezer is there, what is frozen does not even die. */
                if (box_groups(b, &c, &e) == 0) {
                        (void) sys_pidfd_send_signal(b->end.fd, SIGKILL);
                        (void) cgroup_freeze(&c, false, &e);
                        cgroup_close(&c);
                }
        }
        b->state = WP_ENDING;
        b->last.reason = WP_KILLED;
        (void) sys_pidfd_send_signal(b->end.fd, SIGKILL);
}

void box_reap(void) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ; /* what matters is told by descriptors: the report of a job, the pidfd of an agent */
}

/* A call that the filter refused. The answer was given by number alone; here it is told on. */
static void on_denial(struct watch *w, uint32_t events) {
        struct box *b = OF_WATCH(w, struct box, listener);
        struct wp_event e = { .kind = WP_DENIED };
        struct seccomp_event ev;
        struct err err;
        uint64_t now = clock_mono_ns();
        bool counted;
        int r;

        (void) events;
        while (now - b->denial_ns > 1000000000u / DENIALS_PER_S && b->denials_left < DENIALS) {
                b->denial_ns += 1000000000u / DENIALS_PER_S;
                b->denials_left++;
        }
        r = seccomp_notify_answer(w->fd, b->profile, &ev, &err);
        if (r == 0)
                return;
        counted = r > 0 && guard_call(b);
        if (r < 0 || b->denials_left == 0) {
                /* A flood, or the end: later attempts are refused by the kernel alone, unless a rule counts them. */
                if (!counted)
                        loop_drop(w);
                if (r < 0 || b->suppressed++ > 0)
                        return;
                e.suppressed = 1;
        } else {
                b->denials_left--;
        }
        memcpy(e.id, b->id, sizeof(e.id));
        memcpy(e.tenant, b->tenant, sizeof(e.tenant));
        seccomp_event_text(&ev, e.text, sizeof(e.text));
        client_tell(&e);
}

void box_listen(struct box *b, int listener_fd) {
        b->denial_ns = clock_mono_ns();
        b->suppressed = 0;
        if (b->listener.fd >= 0 || loop_watch(&b->listener, listener_fd, on_denial) < 0)
                (void) close(listener_fd); /* one is enough; without one the kernel refuses alone */
}
