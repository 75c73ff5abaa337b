/*
 * maker.c - making a sandbox: an order waits its turn, then a child process builds it with the library of `gabion run`,
 * reads everything back, and leaves. The sandbox goes on by itself.
 *
 * What a pool needs is made by one process after the other: a copy of the warden, with all the pages that are copied
 * when either writes to them, costs a quarter of a sandbox.
 *
 * The record is written as soon as the slot is taken, before anything is made, and completed when all was read back. A
 * maker that dies before it has reported takes its half-built sandbox with it (janitor); one that dies with the warden
 * does the same; and what both leave behind is found by its record.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "evidence/evidence.h"
#include "guard.h"
#include "network.h"
#include "sandbox/sandbox.h"
#include "state.h"

enum { BACKLOG = 64, ANSWER_MS = 5000 };

/* --- in the child --- */

static int oops(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "%s: %s", what, strerror(errno));
}

static struct sockaddr_un address(const char *id, bool gate) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };

        box_socket(id, gate, a.sun_path);
        return a;
}

static int listen_at(const char *id, bool gate, uid_t owner, struct err *err) {
        struct sockaddr_un a = address(id, gate);
        AUTO_FD int fd = socket(AF_UNIX, (gate ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC, 0);

        (void) unlink(a.sun_path);
        /* umask is 077: nobody but root can connect before the socket is given away. */
        if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0 ||
            (!gate && chown(a.sun_path, owner, (gid_t) -1) < 0))
                return oops(err, "agent sockets");
        return TAKE_FD(fd);
}

int maker_connect_gate(const char *id, struct err *err) {
        static const int on = 1;
        struct sockaddr_un a = address(id, true);
        AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
            connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                return oops(err, "gate of the sandbox");
        return TAKE_FD(fd);
}

struct vars {
        const char *vec[AP_ARGS_MAX + 1];
        uint16_t n;
};

static void add_var(void *arg, const char *var) {
        struct vars *v = arg;

        v->vec[v->n++] = var;
}

int maker_env(int gate_fd, const char *env, size_t n_env, struct err *err) {
        static uint8_t frame[AP_ENV_MAX];
        static struct vars v;
        struct wr w = wr_to(frame, sizeof(frame));
        struct pollfd p = { gate_fd, POLLIN, 0 };
        struct ap_head head;
        ssize_t n;

        v.n = 0;
        (void) wp_env_each(env, n_env, add_var, &v); /* checked when it came */
        ap_put_env(&w, v.vec, v.n);
        if (w.bad)
                return err_set(err, -E2BIG, ERR_INVALID, "variables: more than %d KiB", AP_ENV_MAX / 1024);
        if (send(gate_fd, frame, w.len, MSG_NOSIGNAL) != (ssize_t) w.len || poll(&p, 1, ANSWER_MS) != 1)
                return oops(err, "variables of the sandbox");
        n = recv(gate_fd, frame, sizeof(frame), MSG_DONTWAIT);
        if (n <= 0 || ap_frame(frame, (size_t) n, &head) != 1 || head.type != AP_DONE)
                return err_set(err, -EPROTO, ERR_PEER, "variables of the sandbox: the agent did not take them");
        return 0;
}

static int on_claimed(const struct sandbox *sb, void *arg, struct err *err) {
        struct record *rec = arg;

        rec->slot = sb->slot;
        return record_write(sb->slot_fd, rec, err);
}

struct making {
        const struct order *o;
        struct sandbox sb;
        struct evidence ev;
        struct record rec;
        struct sandbox_keep keep;
};

static struct plan plan; /* of what is made next; compiled before the fork, so that the hash is remembered */
static bool aside;       /* nobody waits for it */
static cpu_set_t everywhere;

static int settled(const struct sandbox *sb, struct err *err) {
        int r = sandbox_settle(sb);

        return r < 0 ? err_set(err, r, ERR_PEER, "the launcher does not settle: %s", strerror(-r)) : 0;
}

/* Everything up to a launcher behind the gate. */
static int make(struct making *m, struct err *err) {
        static const char *const argv[] = { "launcher", NULL };
        const struct box *b = m->o->box;
        struct netns netns = m->o->netns;
        /* Of a pool everything is read when it is claimed, and nothing runs in it before; but its filter is read now,
         * because the launcher has to stop for that. */
        bool later = b->shape && !plan.net;
        const struct sandbox_request req = { .argv = argv,
                                             .envp = argv + 1,
                                             .cwd = "/",
                                             .counted = true,
                                             .keep = &m->keep,
                                             .net = m->o->has_netns ? &netns : NULL };
        int r;

        m->keep.control_fd = r = listen_at(b->id, false, b->uid, err);
        if (r >= 0)
                m->keep.gate_fd = r = listen_at(b->id, true, 0, err);
        if (r >= 0)
                m->keep.connected_fd = r = maker_connect_gate(b->id, err);
        if (r >= 0)
                r = sandbox_start(&plan, &req, &m->sb, err);
        if (r == 0)
                r = network_hand_over(&plan, &m->sb, &m->rec, err);
        if (r == 0 && !later)
                r = evidence_read_early(&plan, &m->sb, &m->ev, err);
        if (r == 0 && !b->shape) /* else when it is claimed, by other rules */
                r = evidence_canary(&plan, &m->sb, &m->ev, err);
        if (r == 0)
                r = sandbox_wait(&m->sb, err);
        if (r == 0)
                r = later ? settled(&m->sb, err) : evidence_read(&plan, &m->sb, &m->ev, err);
        if (r == 0 && later)
                r = evidence_read_filter(&plan, &m->sb, &m->ev, err);
        if (r == 0 && m->o->n_env > 0)
                r = maker_env(m->keep.connected_fd, m->o->env, m->o->n_env, err);
        if (r == 0 && !b->shape)
                r = network_proven(&plan, err);
        if (r == 0)
                r = sandbox_release(&m->sb, err);
        evidence_forget(&m->ev);
        return r;
}

static int finish(struct making *m, struct err *err) {
        int r;

        m->rec.disk_limit = plan.tmpfs_bytes;
        m->rec.pid = (uint32_t) m->sb.agent_pid;
        m->rec.start = record_start_time(m->sb.agent_pid);
        m->rec.offset = (uint64_t) -m->sb.time_offset_s;
        if (m->o->box->shape && !plan.net) /* the record stays as it is, and is written when it is claimed */
                return 0;
        m->rec.state = m->o->box->shape ? WP_POOLED : WP_RUNNING;
        r = m->o->box->shape ? 0 : statement_fill(&plan, m->o->policy, &m->sb, &m->ev, &m->rec, err);
        return r < 0 ? r : record_write(m->sb.slot_fd, &m->rec, err);
}

static int report(const struct making *m) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        const int fds[2] = { m->sb.agent_pidfd, m->sb.listener_fd };

        wr_u8(&w, 1);
        wr_u32(&w, m->rec.slot);
        wr_u32(&w, m->rec.pid);
        wr_u64(&w, m->rec.start);
        wr_u64(&w, m->rec.memory_limit);
        wr_u64(&w, m->rec.disk_limit);
        wr_str(&w, m->rec.policy_hash);
        wr_str(&w, m->rec.evidence_hash);
        wr_str(&w, plan.hash);
        wr_u32(&w, (uint32_t) m->sb.command_pid);
        wr_u64(&w, m->rec.offset);
        wr_u32(&w, m->sb.cgroup.made);
        wr_str(&w, m->ev.filter_hash);
        ap_put_ready(&w, &m->sb.ready);
        return job_report(&w, fds, m->sb.listener_fd >= 0 ? 2 : 1);
}

/* One sandbox; returns when it goes on by itself. */
static void make_one(struct making *m, const struct order *o) {
        struct err e = { 0 }, end = { 0 };
        char path[WP_PATH];

        m->o = o;
        record_from(&m->rec, o->box);
        m->rec.state = WP_MAKING;
        m->keep = (struct sandbox_keep){ .id = o->box->id,
                                         .agent_fd = WARDEN_FD_IMAGE,
                                         .proc_fd = warden.proc_fd,
                                         .groups = warden.groups,
                                         .cpus = aside ? &everywhere : NULL,
                                         .claimed = on_claimed,
                                         .arg = &m->rec };
        if (make(m, &e) == 0 && finish(m, &e) == 0) {
                sandbox_survive(true); /* whoever hears of it may rely on it, whatever happens to us */
                if (report(m) == 0) {
                        sandbox_leave(&m->sb);
                        return;
                }
                sandbox_survive(false);
        }
        (void) sandbox_end(&m->sb, &end);
        for (int gate = 0; gate < 2; gate++) {
                box_socket(o->box->id, gate, path);
                (void) unlink(path);
        }
        job_failed(&e);
}

/*
 * What is made in advance is made on one processor, and whoever claims and uses a sandbox meanwhile has the others. A
 * low priority would not do: work is done under locks of the kernel that others then wait for.
 */
static void step_aside(void) {
        cpu_set_t one;
        int last = CPU_SETSIZE - 1;

        aside = aside && sched_getaffinity(0, sizeof(everywhere), &everywhere) == 0 && CPU_COUNT(&everywhere) > 1;
        if (!aside)
                return;
        while (!CPU_ISSET(last, &everywhere))
                last--;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        aside = sched_setaffinity(0, sizeof(one), &one) == 0;
}

/*
 * A /proc of our own. What is looked up in /proc/sys belongs to the namespace of whoever looks, and stays as long as
 * that lives: in the host's /proc each sandbox would have to pass the entries of all others.
 */
static int proc_open(void) {
        AUTO_FD int fs = sys_fsopen("proc");
        int r = fs < 0 ? fs : sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);

        return r < 0 ? r : sys_fsmount(fs, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
}

static void maker_run(const void *arg) {
        static struct making m; /* large */
        int *groups[CGROUP_V1_MAX + 1];
        unsigned kept = WARDEN_FD_MORE + (unsigned) cgroup_host_fds(warden.groups, groups); /* start() put them first */

        step_aside();
        warden.proc_fd = proc_open(); /* the warden's was closed */
        if (warden.proc_fd >= 0)
                kept = (unsigned) warden.proc_fd + 1;
        for (const struct order *o = arg; o; o = o->then) {
                if (o != arg) /* nothing of one sandbox is there when the next is made */
                        (void) sys_close_range(kept, ~0u, 0);
                make_one(&m, o);
        }
        _exit(0);
}

/* --- in the warden --- */

void order_free(struct order *o) {
        if (!o)
                return;
        known_drop(&o->policy);
        known_drop(&o->ceiling);
        free(o->document);
        if (o->env)
                explicit_bzero(o->env, o->n_env);
        free(o->env);
        free(o);
}

/* Takes what the maker said into the box. */
static int take(struct box *b, struct ipc_msg *m, struct rd *body, struct err *err) {
        struct facts *f = b->shape ? calloc(1, sizeof(*f)) : NULL;
        struct facts unused;
        bool ok;

        b->slot = rd_u32(body);
        b->pid = (pid_t) rd_u32(body);
        b->start = rd_u64(body);
        b->memory_limit = rd_u64(body);
        b->disk_limit = rd_u64(body);
        rd_str(body, b->policy, sizeof(b->policy));
        rd_str(body, b->read_back.evidence, sizeof(b->read_back.evidence));
        rd_str(body, b->read_back.plan, sizeof(b->read_back.plan));
        b->facts = f;
        f = f ? f : &unused;
        f->launcher = (pid_t) rd_u32(body);
        b->offset = rd_u64(body);
        f->groups = rd_u32(body);
        rd_str(body, f->filter_hash, sizeof(f->filter_hash));
        ok = !body->bad && ap_get_ready(body->p, body->left, &f->ready) == 0 && m->n_fds > 0 && (!b->shape || b->facts);
        if (!ok)
                return err_set(err, -EBADMSG, ERR_INTERNAL, "sandbox %s: its maker spoke nonsense", b->id);
        return box_started(b, TAKE_FD(m->fds[0]), m->n_fds > 1 ? TAKE_FD(m->fds[1]) : -1, err);
}

void maker_answer(const struct order *o, const struct box *b, bool from_pool) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct wp_created c = {
                .from_pool = from_pool, .slot = b->slot, .pid = (uint32_t) b->pid, .read_back = b->read_back
        };

        c.took_us = (clock_mono_ns() - o->asked_ns) / 1000;
        box_socket(b->id, false, c.socket);
        memcpy(c.policy, b->policy, sizeof(c.policy));
        wp_put_created(&w, &c);
        client_reply(o->asker, &w, NULL);
}

static void on_made(struct job *j, struct ipc_msg *m) {
        struct order *o = j->order;
        struct box *b = o->box;
        struct err e = { 0 };
        struct rd body;
        int r = job_result(m, &body, &e);

        if (r == 0)
                r = take(b, m, &body, &e);
        if (r < 0) {
                client_reply(o->asker, NULL, &e);
                if (b->kill)
                        client_reply(b->killer, NULL, &(struct err){ -ENOENT, ERR_NOT_FOUND, "it was never made" });
                if (b->shape)
                        warden_log("pool: %s", e.msg);
                pool_failed(b);
                if (b->end.fd < 0)
                        box_free(b);
        } else {
                b->state = WP_RUNNING;
                b->checked_ns = clock_mono_ns();
                if (b->shape) {
                        pool_made(b);
                } else if (guard_start(b, &o->policy->it, &e) < 0) {
                        client_reply(o->asker, NULL, &e);
                        b->kill = true;
                } else {
                        maker_answer(o, b, false);
                }
                if (b->kill)
                        box_kill(b, b->killer);
        }
        j->order = o->then;
        order_free(o);
}

static int start(struct order *o, struct err *err) {
        const struct plan_way_out way = network_way_out(o->ceiling ? &o->ceiling->it : NULL, o->bind);
        int *fds[CGROUP_V1_MAX + 1 + NETWORK_FDS];
        struct job *j;
        size_t n_groups = cgroup_host_fds(warden.groups, fds), n = 0;
        int r = statement_plan(&o->policy->it, o->policy->hash, o->box->hostname, &way, &plan, err);

        if (r == 0)
                r = network_prepare(o, &plan, fds + n_groups, &n, err);
        if (r < 0)
                return r;
        aside = o->box->shape && o->box->shape->waiting == 0;
        j = job_start_with(maker_run, o, true, fds, n_groups + n, err);
        network_prepared(o);
        if (!j)
                return err->code;
        j->done = on_made;
        j->ask = network_asked;
        j->order = o;
        j->pool = o->box->shape;
        warden.n_pool_makers += j->pool;
        return 0;
}

int maker_order(struct order *o, struct err *err) {
        struct box *b = o->box;

        if (warden.n_orders >= WARDEN_QUEUE) {
                box_free(b);
                order_free(o);
                return err_set(err, -EAGAIN, ERR_BUSY, "more than %d sandboxes are waiting to be made", WARDEN_QUEUE);
        }
        b->state = WP_MAKING;
        b->profile = (enum seccomp_profile) o->policy->it.syscalls;
        /* What somebody waits for comes before what is made in advance. */
        if (b->shape || TAILQ_EMPTY(&warden.orders)) {
                TAILQ_INSERT_TAIL(&warden.orders, o, link);
        } else {
                struct order *q;

                TAILQ_FOREACH(q, &warden.orders, link) {
                        if (q->box->shape)
                                break;
                }
                if (q)
                        TAILQ_INSERT_BEFORE(q, o, link);
                else
                        TAILQ_INSERT_TAIL(&warden.orders, o, link);
        }
        warden.n_orders++;
        return 0;
}

/* The first in the queue, and of a pool some more of the same shape. */
static struct order *next_orders(void) {
        struct order *first = TAILQ_FIRST(&warden.orders), *last = NULL, *o;
        const struct shape *s = first->box->shape;
        unsigned n = s && !s->ceiling ? WARDEN_BATCH : 1; /* each network is prepared by itself */

        while (n-- > 0 && (o = TAILQ_FIRST(&warden.orders)) && o->box->shape == s) {
                TAILQ_REMOVE(&warden.orders, o, link);
                warden.n_orders--;
                if (last)
                        last->then = o;
                last = o;
        }
        return first;
}

void maker_next(void) {
        while (warden.n_makers < WARDEN_MAKERS && !TAILQ_EMPTY(&warden.orders)) {
                const struct shape *s = TAILQ_FIRST(&warden.orders)->box->shape;
                struct order *o, *then;
                struct err e = { 0 };

                /* Those of pools come last: behind one of them is none that somebody waits for. */
                if (s && warden.n_pool_makers >= (s->waiting > 0 ? WARDEN_POOL_MAKERS : 1))
                        return;
                o = next_orders();
                if (start(o, &e) == 0)
                        continue;
                for (; o; o = then) {
                        then = o->then;
                        client_reply(o->asker, NULL, &e);
                        pool_failed(o->box);
                        box_free(o->box);
                        order_free(o);
                }
        }
}
