/*
 * pool.c - sandboxes made before they are asked for. All that share a shape (a policy but for what can be changed
 * afterwards) are alike. A claim gives one its name, limits, variables and owner, reads everything back as a cold start
 * does, and takes it out for good: it is used once, and one that fails on the way is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "evidence/evidence.h"
#include "guard.h"
#include "network.h"
#include "policy/net.h"
#include "sandbox/sandbox.h"
#include "state.h"

/* With a network it also counts whether certificates are there from the beginning. */
static void shape_hash(const struct known *p, const struct known *ceiling, char dst[HASH_TEXT]) {
        char text[HASH_TEXT + 8];

        (void) str_copy(dst, HASH_TEXT, p->shape);
        if (!policy_net_any(&p->it))
                return;
        (void) snprintf(text, sizeof(text), "%s net %d", dst,
                        policy_net_opens_tls(&p->it, ceiling ? &ceiling->it : NULL));
        hash_text(dst, text, strlen(text));
}

static struct shape *shape_find(const char *hash) {
        struct shape *s;

        TAILQ_FOREACH(s, &warden.shapes, link) {
                if (str_eq(s->hash, hash))
                        return s;
        }
        return NULL;
}

static void shape_free(struct shape *s) {
        known_drop(&s->policy);
        known_drop(&s->ceiling);
        free(s);
}

/* Those who wait get one of their own. */
static void wait_no_more(struct shape *s) {
        struct order *o;

        while ((o = TAILQ_FIRST(&s->waiters))) {
                struct asker asker = o->asker;
                struct err e;

                TAILQ_REMOVE(&s->waiters, o, link);
                s->waiting--;
                if (maker_order(o, &e) < 0)
                        client_reply(asker, NULL, &e);
        }
}

/* Ends what is ready beyond what is wanted; frees a shape that nobody wants and nobody is in. */
static void trim(struct shape *s) {
        struct box *b, *next;

        for (b = TAILQ_FIRST(&warden.boxes); b && s->ready > s->wanted; b = next) {
                next = TAILQ_NEXT(b, link);
                if (b->shape == s && b->state == WP_POOLED) {
                        s->ready--;
                        box_kill(b, (struct asker){ 0 });
                }
        }
        if (s->wanted > 0)
                return;
        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->shape == s)
                        return;
        }
        TAILQ_REMOVE(&warden.shapes, s, link);
        warden.n_shapes--;
        shape_free(s);
}

int pool_set(struct known *p, struct known *ceiling, uint32_t wanted, struct err *err) {
        char hash[HASH_TEXT];
        struct shape *s;

        if (wanted > WP_POOL_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "pool: at most %d", WP_POOL_MAX);
        shape_hash(p, ceiling, hash);
        s = shape_find(hash);
        if (!s && wanted == 0)
                return 0;
        if (!s && warden.n_shapes == WARDEN_SHAPES)
                return err_set(err, -EBUSY, ERR_LIMIT, "more than %d pools", WARDEN_SHAPES);
        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
                s->policy = known_ref(p);
                s->ceiling = known_ref(ceiling);
                memcpy(s->hash, hash, sizeof(s->hash));
                TAILQ_INIT(&s->waiters);
                TAILQ_INSERT_TAIL(&warden.shapes, s, link);
                warden.n_shapes++;
        }
        s->wanted = wanted;
        if (wanted == 0)
                wait_no_more(s);
        trim(s);
        return 0;
}

static int order_one(struct shape *s, struct err *err) {
        char id[ID_TEXT];
        struct order *o = calloc(1, sizeof(*o));
        int r = id_new(id);

        if (o)
                o->statement_fd = -1;
        if (!o || r < 0) {
                order_free(o);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        o->policy = known_ref(s->policy);
        o->ceiling = known_ref(s->ceiling);
        o->box = box_new(id, "pool", err);
        if (o->box && network_order_closed(o, err) < 0)
                box_free(TAKE_PTR(o->box));
        if (!o->box) {
                order_free(o);
                return err->code;
        }
        o->box->shape = s;
        o->box->created_ms = clock_real_ms();
        s->making++;
        r = maker_order(o, err);
        if (r < 0)
                s->making--;
        return r;
}

/*
 * Whether to make more of them now; else *ret_ns: when to look again, 0: not by itself. Whoever claims one has
 * something to run, and soon asks again if he is one of many: so a pool is filled up when half of it is gone, or
 * nothing was claimed for a moment, and then to the brim.
 */
static bool wants_more(struct shape *s, uint64_t now, uint64_t *ret_ns) {
        *ret_ns = 0;
        if (s->ready + s->making >= s->wanted + s->waiting) {
                s->filling = false;
                return false;
        }
        if (s->waiting > 0 || s->ready + s->making <= s->wanted / 2 || now >= s->quiet_ns)
                s->filling = true;
        *ret_ns = now < s->not_before_ns ? s->not_before_ns : s->quiet_ns;
        return s->filling && now >= s->not_before_ns;
}

int pool_fill(void) {
        uint64_t now = clock_mono_ns(), then;
        struct shape *s;
        int wait_ms = -1;

        TAILQ_FOREACH(s, &warden.shapes, link) {
                struct err e;

                /* A few at a time: the queue belongs to those who wait. */
                while (wants_more(s, now, &then) && s->making < WARDEN_POOL_MAKERS * WARDEN_BATCH)
                        if (order_one(s, &e) < 0)
                                s->not_before_ns = now + WARDEN_BACKOFF_MS * 1000000ull;
                if (then > now) {
                        int ms = (int) ((then - now) / 1000000) + 1;

                        wait_ms = wait_ms < 0 || ms < wait_ms ? ms : wait_ms;
                }
        }
        return wait_ms;
}

void pool_failed(struct box *b) {
        if (!b->shape)
                return;
        b->shape->making--;
        b->shape->failed = true;
        b->shape->not_before_ns = clock_mono_ns() + WARDEN_BACKOFF_MS * 1000000ull;
        wait_no_more(b->shape);
}

void pool_leave(struct box *b) {
        struct shape *s = b->shape;

        free(b->facts);
        b->facts = NULL;
        b->shape = NULL;
        if (s && b->state == WP_POOLED)
                s->ready--;
        if (s)
                trim(s);
}

/* --- the claim --- */

/* Goes into the sandbox's namespace of a kind, does one thing and comes back. */
static int visit(const struct box *b, unsigned kind, int home_fd, int (*fn)(const void *arg), const void *arg) {
        int r = sys_setns(b->end.fd, kind);

        if (r < 0)
                return r;
        r = fn(arg);
        if (sys_setns(home_fd, kind) < 0)
                abort(); /* a warden in the wrong namespace must do nothing more */
        return r;
}

static int name_set(const void *arg) {
        const char *name = arg;
        char now[PLAN_HOSTNAME + 1] = "";

        if (sethostname(name, strlen(name)) < 0 || gethostname(now, sizeof(now) - 1) < 0)
                return -errno;
        return str_eq(now, name) ? 0 : -EBADE;
}

/* A copy of its root that can be written: the one inside is read-only, by mount. */
static int root_copy(const void *arg) {
        const struct sys_mount_attr attr = { .attr_clr = SYS_MOUNT_RDONLY };
        AUTO_FD int fd = sys_open_tree(AT_FDCWD, "/", SYS_OPEN_TREE_CLONE | O_CLOEXEC);
        int r = fd < 0 ? fd : sys_mount_setattr(fd, "", SYS_AT_EMPTY_PATH, &attr);

        (void) arg;
        return r < 0 ? r : TAKE_FD(fd);
}

static int file_set(int root_fd, const char *path, const char *text) {
        AUTO_FD int fd = sys_openat2(root_fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC, 0,
                                     SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);

        return fd < 0 ? fd : fd_write_all(fd, text, strlen(text));
}

static int disk_set(int root_fd, const struct plan *plan) {
        AUTO_FD int fs = sys_fspick(root_fd, "");
        char size[24], inodes[24];
        int r = fs;

        (void) snprintf(size, sizeof(size), "%llu", (unsigned long long) plan->tmpfs_bytes);
        (void) snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long) plan->tmpfs_inodes);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "size", size);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "nr_inodes", inodes);
        return r < 0 ? r : sys_fsconfig(fs, SYS_FSCONFIG_RECONFIGURE, NULL, NULL);
}

/* What the place is to be: name, files about it, size. */
static int place_set(const struct box *b, const struct plan *plan, struct err *err) {
        bool named = !str_eq(plan->hostname, b->hostname[0] ? b->hostname : "gabion");
        bool sized = b->disk_limit != plan->tmpfs_bytes;
        AUTO_FD int root = -1;
        int r = named ? visit(b, SYS_CLONE_NEWUTS, warden.uts_fd, name_set, plan->hostname) : 0;

        if (r == 0 && (named || sized))
                root = r = visit(b, SYS_CLONE_NEWNS, warden.mnt_fd, root_copy, NULL);
        if (r >= 0 && named)
                r = file_set(root, "etc/hostname", plan->etc_hostname);
        if (r >= 0 && named)
                r = file_set(root, "etc/hosts", plan->etc_hosts);
        if (r >= 0 && sized)
                r = disk_set(root, plan);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "claim: name and size: %s", strerror(-r)) : 0;
}

static int limits_set(const struct box *b, const struct plan *plan, struct sandbox *sb, struct err *err) {
        const struct policy_limits *l = &plan->policy->limits;
        int r = box_refer(b, b->facts->groups, &sb->cgroup, err);

        if (r < 0)
                return r;
        sb->has_cgroup = true;
        /* Those of disks are part of the shape, and stay as they are. */
        sb->cgroup_limits =
                (struct cgroup_limits){ .memory_bytes = l->memory_bytes, .cpu_milli = l->cpu_milli, .pids = l->pids };
        return cgroup_limit(&sb->cgroup, &sb->cgroup_limits, err);
}

static int env_set(const struct box *b, const struct order *o, struct err *err) {
        AUTO_FD int fd = -1;

        if (o->n_env == 0) /* it has none yet */
                return 0;
        fd = maker_connect_gate(b->id, err);
        return fd < 0 ? fd : maker_env(fd, o->env, o->n_env, err);
}

static int sockets_move(const struct box *b, const char *id, uid_t uid, struct err *err) {
        char from[WP_PATH], to[WP_PATH];

        for (int gate = 0; gate < 2; gate++) {
                box_socket(b->id, gate, from);
                box_socket(id, gate, to);
                if ((!gate && chown(from, uid, (gid_t) -1) < 0) || rename(from, to) < 0)
                        return err_set(err, -errno, ERR_INTERNAL, "claim: sockets: %s", strerror(errno));
        }
        return 0;
}

/* Reads everything back and writes it down under its new name. */
static int settle(struct box *b, struct order *o, const struct plan *plan, struct sandbox *sb, struct err *err) {
        static struct evidence ev;
        CLEANUP(record_done) struct record rec;
        AUTO_FD int fd = record_open(b->slot, O_RDWR);
        int r = fd < 0 ? err_set(err, fd, ERR_INTERNAL, "claim: record: %s", strerror(-fd))
                       : network_claim(b, o, plan, sb, &ev, err);

        if (r == 0)
                r = evidence_read_again(plan, sb, b->facts->filter_hash[0] ? b->facts->filter_hash : NULL, &ev, err);
        record_from(&rec, b);
        if (r == 0)
                r = statement_fill(plan, o->policy, sb, &ev, &rec, err);
        if (r < 0)
                return r;
        memcpy(b->policy, rec.policy_hash, sizeof(b->policy));
        memcpy(b->read_back.evidence, rec.evidence_hash, sizeof(b->read_back.evidence));
        memcpy(b->read_back.plan, plan->hash, sizeof(b->read_back.plan));
        b->memory_limit = rec.memory_limit;
        b->disk_limit = rec.disk_limit;
        r = record_write(fd, &rec, err);
        if (r == 0 && o->statement)
                o->statement_fd = r = statement_make(plan, &rec, err);
        return r < 0 ? r : 0;
}

static int become(struct box *b, const struct wp_create *c, struct order *o, uid_t uid, struct err *err) {
        static struct plan plan;
        static struct sandbox sb;
        const struct plan_way_out way = network_way_out(o->ceiling ? &o->ceiling->it : NULL, o->bind);
        int r = statement_plan(&o->policy->it, o->policy->hash, c->hostname, &way, &plan, err);

        sb = (struct sandbox){ .slot = b->slot,
                               .agent_pid = b->pid,
                               .agent_pidfd = b->end.fd,
                               .proc_fd = warden.proc_fd,
                               .pair_fd = -1,
                               .root_fd = -1,
                               .command_pid = b->facts->launcher,
                               .time_offset_s = -(int64_t) b->offset,
                               .ready = b->facts->ready };
        sb.uid_base = sandbox_uid_base(b->slot);
        memcpy(sb.id, c->id, sizeof(sb.id));
        if (r == 0)
                r = place_set(b, &plan, err);
        if (r == 0)
                r = limits_set(b, &plan, &sb, err);
        if (r == 0)
                r = env_set(b, o, err);
        if (r == 0)
                r = sockets_move(b, c->id, uid, err);
        if (r == 0) {
                char path[32];

                memcpy(b->id, c->id, sizeof(b->id));
                memcpy(b->tenant, c->tenant, sizeof(b->tenant));
                memcpy(b->hostname, c->hostname, sizeof(b->hostname));
                b->uid = uid;
                b->created_ms = clock_real_ms();
                (void) snprintf(path, sizeof(path), "%d/root", (int) b->pid);
                sb.root_fd = openat(warden.proc_fd, path, O_PATH | O_CLOEXEC);
                r = settle(b, o, &plan, &sb, err);
        }
        if (plan.net)
                sandbox_net_close(&sb);
        own_closep(&sb.root_fd);
        if (sb.has_cgroup)
                cgroup_close(&sb.cgroup);
        return r;
}

static int claim_from(struct shape *s, const struct wp_create *c, struct order *o, uid_t uid, struct box **ret,
                      struct err *err) {
        struct box *b;
        int r;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->shape == s && b->state == WP_POOLED && (!b->net || b->net->told))
                        break;
        }
        if (!b)
                return err_set(err, -EAGAIN, ERR_BUSY, "no ready sandbox of this kind");
        r = become(b, c, o, uid, err);
        if (r == 0)
                r = guard_start(b, &o->policy->it, err);
        if (r < 0) {
                warden_log("pool: a claim failed, and its sandbox is ended: %s", err->msg);
                s->ready--;
                box_kill(b, (struct asker){ 0 });
                return r;
        }
        pool_leave(b);
        b->state = WP_RUNNING;
        b->checked_ns = clock_mono_ns(); /* just now, by the claim */
        b->profile = (enum seccomp_profile) o->policy->it.syscalls;
        *ret = b;
        return 0;
}

int pool_claim(const struct wp_create *c, struct order *o, uid_t uid, struct box **ret, struct err *err) {
        char hash[HASH_TEXT];
        struct shape *s;
        int r;

        shape_hash(o->policy, o->ceiling, hash);
        o->pool = s = shape_find(hash);
        if (!s || s->ready == 0)
                return err_set(err, -EAGAIN, ERR_BUSY, "no ready sandbox of this kind");
        r = claim_from(s, c, o, uid, ret, err);
        s->quiet_ns = clock_mono_ns() + WARDEN_LATER_MS * 1000000ull;
        return r;
}

/* --- those who came when none was ready --- */

bool pool_wait(struct order *o) {
        struct shape *s = o->pool;

        if (!s || s->wanted == 0 || s->failed || s->waiting == WARDEN_QUEUE)
                return false;
        o->box->state = WP_MAKING;
        TAILQ_INSERT_TAIL(&s->waiters, o, link);
        s->waiting++;
        s->not_before_ns = 0;
        return true;
}

/* A ready one takes the place of the box that has only a name. */
static void give(struct shape *s, struct order *o) {
        struct asker killer = o->box->killer;
        struct wp_create c = { .from = WP_ANY };
        bool kill = o->box->kill;
        uid_t uid = o->box->uid;
        struct err e = { 0 };
        struct box *b;
        int r;

        memcpy(c.id, o->box->id, sizeof(c.id));
        memcpy(c.tenant, o->box->tenant, sizeof(c.tenant));
        memcpy(c.hostname, o->box->hostname, sizeof(c.hostname));
        box_free(TAKE_PTR(o->box));
        r = claim_from(s, &c, o, uid, &b, &e);
        if (r == 0)
                maker_answer(o, b, true);
        else
                client_reply(o->asker, NULL, &e);
        if (kill && r == 0)
                box_kill(b, killer);
        else if (kill)
                client_reply(killer, NULL, &e);
        order_free(o);
}

void pool_made(struct box *b) {
        struct shape *s = b->shape;
        struct order *o;

        b->state = WP_POOLED;
        s->making--;
        s->ready++;
        s->failed = false;
        while (s->ready > 0 && (o = TAILQ_FIRST(&s->waiters))) {
                TAILQ_REMOVE(&s->waiters, o, link);
                s->waiting--;
                give(s, o);
        }
        trim(s);
}
