/*
 * claim.c - a sandbox that was made in advance becomes the one that was ordered: name, limits, variables and owner are
 * set, and everything is read back as after a cold start.
 *
 * The asker is answered when that is done, and when the record says whose it is. What was read is written down a moment
 * later, because the next thing that happens is the first command, for which somebody waits: the statement, into the
 * record and for whoever asks for it. It is done before anything else is asked about a sandbox, and before an end is
 * looked at. A warden that dies in between leaves a sandbox that goes on without a statement.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
#include "network.h"
#include "sandbox/sandbox.h"
#include "state.h"

enum { CLAIM_LATER_MS = 5 };

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

/* What the last claim applied and read, until it is written down. */
static struct plan plan;
static struct sandbox sb;
static struct evidence ev;
static struct {
        struct box *box;                /* NULL: it is */
        struct known *policy, *ceiling; /* to which the plan refers */
        uint64_t due_ns;
        struct asker asker; /* of the statement */
} unwritten;

void claim_drop(void) {
        if (plan.net)
                sandbox_net_close(&sb);
        own_closep(&sb.root_fd);
        if (sb.has_cgroup)
                cgroup_close(&sb.cgroup);
        known_drop(&unwritten.policy);
        known_drop(&unwritten.ceiling);
}

/* Gives it its new name, here and where its sockets are. */
static int rename_to(struct box *b, const struct wp_create *c, uid_t uid, struct err *err) {
        char path[32];
        int r = sockets_move(b, c->id, uid, err);

        if (r < 0)
                return r;
        memcpy(b->id, c->id, sizeof(b->id));
        memcpy(b->tenant, c->tenant, sizeof(b->tenant));
        memcpy(b->hostname, c->hostname, sizeof(b->hostname));
        b->uid = uid;
        b->created_ms = clock_real_ms();
        (void) snprintf(path, sizeof(path), "%d/root", (int) b->pid);
        sb.root_fd = openat(warden.proc_fd, path, O_PATH | O_CLOEXEC);
        return 0;
}

/* From here on it is there after a crash. */
static int take(const struct box *b, const struct order *o, struct err *err) {
        CLEANUP(record_done) struct record rec;
        AUTO_FD int fd = record_open(b->slot, O_RDWR);
        int r = fd < 0 ? err_set(err, fd, ERR_INTERNAL, "claim: record: %s", strerror(-fd)) : 0;

        record_from(&rec, b);
        if (r == 0)
                r = statement_begin(&plan, o->policy, &ev, &rec, err);
        return r < 0 ? r : record_write(fd, &rec, err);
}

int claim_apply(struct box *b, const struct wp_create *c, const struct order *o, uid_t uid, struct err *err) {
        const struct plan_way_out way = network_way_out(o->ceiling ? &o->ceiling->it : NULL, o->bind);
        int r;

        claim_finish(); /* of the one before */
        r = statement_plan(&o->policy->it, o->policy->hash, c->hostname, &way, &plan, err);

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
                r = rename_to(b, c, uid, err);
        if (r == 0)
                r = network_claim(b, o, &plan, &sb, &ev, err);
        if (r == 0)
                r = evidence_read_again(&plan, &sb, b->facts->filter_hash[0] ? b->facts->filter_hash : NULL, &ev, err);
        if (r == 0)
                r = take(b, o, err);
        if (r < 0) {
                claim_drop();
                return r;
        }
        memcpy(b->policy, o->policy->hash, sizeof(b->policy));
        memcpy(b->read_back.plan, plan.hash, sizeof(b->read_back.plan));
        b->memory_limit = plan.policy->limits.memory_bytes;
        b->disk_limit = plan.tmpfs_bytes;
        return 0;
}

void claim_later(struct box *b, const struct order *o) {
        unwritten.box = b;
        unwritten.policy = known_ref(o->policy);
        unwritten.ceiling = known_ref(o->ceiling);
        unwritten.due_ns = clock_mono_ns() + CLAIM_LATER_MS * 1000000ull;
        unwritten.asker = (struct asker){ 0 };
}

bool claim_ask(const struct box *b, struct asker asker) {
        if (unwritten.box == b && !unwritten.asker.client) {
                unwritten.asker = asker;
                return true;
        }
        claim_finish(); /* whoever asked first has it then, and the record too */
        return false;
}

/* The record, then the statement if it was asked for. */
static int write_down(struct box *b, struct err *err) {
        CLEANUP(record_done) struct record rec;
        AUTO_FD int fd = record_open(b->slot, O_RDWR), statement = -1;
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        int r = fd < 0 ? err_set(err, fd, ERR_INTERNAL, "record: %s", strerror(-fd)) : 0;

        record_from(&rec, b);
        if (r == 0)
                r = statement_fill(&plan, unwritten.policy, &sb, &ev, &rec, err);
        if (r == 0)
                r = record_write(fd, &rec, err);
        if (r < 0)
                return r;
        memcpy(b->read_back.evidence, rec.evidence_hash, sizeof(b->read_back.evidence));
        if (!unwritten.asker.client)
                return 0;
        statement = r = statement_make(&plan, &rec, err);
        wp_put_hashes(&w, &b->read_back);
        if (r >= 0)
                client_reply_fd(unwritten.asker, &w, statement);
        return r < 0 ? r : 0;
}

void claim_finish(void) {
        struct box *b = TAKE_PTR(unwritten.box);
        struct err e = { 0 };
        int r;

        if (!b)
                return;
        r = write_down(b, &e);
        claim_drop();
        if (r == 0)
                return;
        client_reply(unwritten.asker, NULL, &e);
        warden_log("what was read back of sandbox %s cannot be written down, and it is ended: %s", b->id, e.msg);
        box_kill(b, (struct asker){ 0 });
}

int claim_due(void) {
        uint64_t now = clock_mono_ns();

        if (unwritten.box && now >= unwritten.due_ns)
                claim_finish();
        return unwritten.box ? (int) ((unwritten.due_ns - now) / 1000000) + 1 : -1;
}
