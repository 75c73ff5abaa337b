/*
 * spawn.c - from a plan to a command that waits at the gate.
 *
 * The supervisor prepares while the set-up child creates its network namespace; see child.c for the child's side and
 * docs/decisions/007 for the order. Fixed descriptors (3 to 6) were reserved by sandbox_enter(), because the two
 * share one table until the agent is exec'd.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "sandbox/child.h"
#include "sandbox/disks.h"
#include "sandbox/enter.h"
#include "sandbox/frames.h"
#include "sandbox/gate.h"
#include "sandbox/idmap.h"
#include "sandbox/janitor.h"
#include "sandbox/netns.h"
#include "sandbox/root.h"
#include "sandbox/sandbox.h"
#include "sandbox/slot.h"

enum {
        CHILD_STACK = 32768,
};

static struct netns_job the_job;
static struct child the_child; /* shared with the set-up child, which may outlive a call by a moment */

static int oops(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "%s: %s", what, strerror(errno));
}

static void publish(struct child *c, uint32_t stage) {
        __atomic_store_n(&c->stage, stage, __ATOMIC_RELEASE);
        (void) sys_futex_wake(&c->stage);
}

/* Puts fd at a fixed number that the agent inherits, and gives up the old one. */
static int pin(int fd, int number, int flags) {
        int r = dup3(fd, number, flags) < 0 ? -errno : 0;

        (void) close(fd);
        return r;
}

/* The listening ones go to the agent; frames take the way of the gate. */
static int sockets_keep(const struct sandbox_keep *keep, struct sandbox *sb, struct err *err) {
        sb->gate_fd = fcntl(keep->connected_fd, F_DUPFD_CLOEXEC, 0);
        sb->control_fd = fcntl(keep->connected_fd, F_DUPFD_CLOEXEC, 0);
        if (sb->gate_fd < 0 || sb->control_fd < 0 || fcntl(sb->gate_fd, F_SETFL, O_NONBLOCK) < 0 ||
            dup3(keep->control_fd, AP_FD_CONTROL, 0) < 0 || dup3(keep->gate_fd, AP_FD_GATE, 0) < 0)
                return oops(err, "agent sockets");
        return 0;
}

static int sockets_make(const struct sandbox_request *req, struct sandbox *sb, struct err *err) {
        static const int on = 1;
        int control[2], gate[2];

        if (req->keep)
                return sockets_keep(req->keep, sb, err);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) < 0)
                return oops(err, "agent sockets");
        sb->control_fd = control[0];
        sb->gate_fd = gate[0];
        if (pin(control[1], AP_FD_CONTROL, 0) < 0 || pin(gate[1], AP_FD_GATE, 0) < 0)
                return oops(err, "agent sockets");
        if (fcntl(sb->control_fd, F_SETFL, O_NONBLOCK) < 0 ||
            setsockopt(sb->gate_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
                return oops(err, "agent sockets");
        return 0;
}

/* The agent's image in a sealed memory file: mode 0111 makes the agent non-dumpable from its first instruction. */
static int agent_make(const struct sandbox_request *req, struct err *err) {
        enum { EXEC_FLAG = 0x10 };
        unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        int fd;

        if (req->keep)
                return dup3(req->keep->agent_fd, CHILD_FD_AGENT, O_CLOEXEC) < 0 ? oops(err, "agent image") : 0;
        fd = memfd_create("gabion-agent", flags | EXEC_FLAG);
        if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
                fd = memfd_create("gabion-agent", flags);
        if (fd < 0)
                return oops(err, "agent image");
        if (fd_write_all(fd, req->agent, req->agent_bytes) < 0 || fchmod(fd, 0111) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
            pin(fd, CHILD_FD_AGENT, O_CLOEXEC) < 0)
                return oops(err, "agent image");
        return 0;
}

static int groups_open(struct sandbox *sb, bool counted, struct err *err) {
        char name[CGROUP_NAME];
        int r;

        slot_name(name, sb->slot);
        r = cgroup_make_first(sb->cgroup_host, name, counted, &sb->cgroup, err);
        if (r == -EEXIST) {
                /* Left behind by a supervisor and janitor that were both killed; the slot is ours, so is this. */
                r = cgroup_open(sb->cgroup_host, name, &sb->cgroup, err);
                if (r == 0)
                        r = cgroup_kill(&sb->cgroup, err);
                if (r == 0)
                        r = cgroup_remove(&sb->cgroup, err);
                if (r == 0)
                        r = cgroup_make_first(sb->cgroup_host, name, counted, &sb->cgroup, err);
        }
        if (r == 0)
                sb->has_cgroup = true;
        return r;
}

static int groups_limit(struct sandbox *sb, const struct plan *plan, struct child *c, struct err *err) {
        const struct policy_limits *l = &plan->policy->limits;
        struct cgroup_limits *want = &sb->cgroup_limits;
        struct cgroup_limits set;
        int r;

        if (!sb->has_cgroup)
                return 0;
        want->memory_bytes = l->memory_bytes;
        want->cpu_milli = l->cpu_milli;
        want->pids = l->pids;
        want->io_bytes_per_s = plan->off & PLAN_OFF_IO ? 0 : l->io_bytes_per_s;
        if (want->io_bytes_per_s)
                disks_find(plan, want);
        set = *want;
        if (WEAK(c, WEAKEN_MEMORY))
                set.memory_bytes *= 2;
        if (WEAK(c, WEAKEN_PIDS))
                set.pids *= 2;
        if (WEAK(c, WEAKEN_CPU))
                set.cpu_milli *= 2;
        if (WEAK(c, WEAKEN_IO))
                set.io_bytes_per_s *= 2;
        r = cgroup_make_rest(&sb->cgroup, err);
        if (r == 0)
                r = cgroup_limit(&sb->cgroup, &set, err);
        if (r == 0 && sb->cgroup.v2_fd >= 0 && !c->born)
                r = cgroup_join_late(&sb->cgroup, err);
        memcpy(c->tasks_fds, sb->cgroup.tasks_fds, sizeof(c->tasks_fds));
        c->n_tasks = sb->cgroup.n_tasks;
        return r;
}

static int child_clone(struct sandbox *sb, struct child *c, struct err *err) {
        static char stack[CHILD_STACK] __attribute__((aligned(16)));
        struct sys_clone_args args = {
                .flags = SYS_CLONE_VM | SYS_CLONE_FILES | SYS_CLONE_PIDFD | SYS_CLONE_NEWPID,
                .pidfd = (uint64_t) (uintptr_t) &sb->agent_pidfd,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t) (uintptr_t) stack,
                .stack_size = sizeof(stack),
        };
        long pid;

        if (sb->has_cgroup && sb->cgroup.v2_fd >= 0 && !WEAK(c, WEAKEN_TASKS)) {
                args.flags |= SYS_CLONE_INTO_CGROUP;
                args.cgroup = (uint64_t) sb->cgroup.v2_fd;
                c->born = true;
        }
        if (WEAK(c, WEAKEN_PID))
                args.flags &= ~(uint64_t) SYS_CLONE_NEWPID;
        pid = sys_clone_run(&args, child_main, c);
        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL, "namespaces: clone3: %s", strerror((int) -pid));
        sb->agent_pid = (pid_t) pid;
        return 0;
}

/* How many want to run on this machine now: "0.20 0.18 0.12 RUNNING/TOTAL LAST". */
static uint64_t running(const struct sandbox *sb) {
        char text[64], *at = text, *end;
        uint64_t n;

        if (fd_read_at(sb->proc_fd, "loadavg", text, sizeof(text)) < 0)
                return UINT64_MAX;
        for (int i = 0; at && i < 3; i++)
                at = strchr(at + 1, ' ');
        end = at ? strchr(at, '/') : NULL;
        if (!end)
                return UINT64_MAX;
        *end = '\0';
        return str_to_u64(at + 1, UINT32_MAX, &n) < 0 ? UINT64_MAX : n;
}

/*
 * A child that was put on our own processor, because the other was busy at that moment, stays there and waits until we
 * sleep, which is a millisecond later: in a fifth of all starts, on two processors. If one is free now it is sent
 * there, and may go where it likes again.
 */
static void child_send_away(const struct sandbox *sb, const struct child *c) {
        cpu_set_t all, others;
        int here = sched_getcpu();

        if (sb->agent_pid == 0 || __atomic_load_n(&c->runs, __ATOMIC_RELAXED) || here < 0 ||
            sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) < 2 ||
            running(sb) > (uint64_t) CPU_COUNT(&all))
                return;
        others = all;
        CPU_CLR((size_t) here, &others);
        (void) sched_setaffinity(sb->agent_pid, sizeof(others), &others);
        (void) sched_setaffinity(sb->agent_pid, sizeof(all), &all);
}

static void child_fill(const struct plan *plan, struct sandbox *sb, struct child *c) {
        struct timespec mono, boot;

        (void) clock_gettime(CLOCK_MONOTONIC, &mono);
        (void) clock_gettime(CLOCK_BOOTTIME, &boot);
        /* Monotonic and boot time inside start near zero: the host's uptime is nobody's business. */
        sb->time_offset_s = -(int64_t) mono.tv_sec;
        c->n_time_offsets =
                (size_t) snprintf(c->time_offsets, sizeof(c->time_offsets), "monotonic -%lld 0\nboottime -%lld 0\n",
                                  (long long) mono.tv_sec, (long long) boot.tv_sec);
        for (size_t i = 0; i < plan->n_mounts; i++)
                c->piece_fds[i] = -1;
}

/* What the child puts into the root, and the user namespace that owns what is in there. */
static int pieces_publish(const struct plan *plan, struct sandbox *sb, struct child *c, struct err *err) {
        AUTO_FD int idmap = -1;
        int r = idmap_sandbox(sb, c, err);

        if (r < 0)
                return r;
        c->userns_fd = r;
        if (plan->policy->n_mounts > 0 && !enter_is_rootless()) {
                idmap = r = idmap_mounts(sb, plan, c, err);
                if (r < 0)
                        return r;
        }
        r = root_pieces(plan, c, idmap, err);
        if (r == 0)
                publish(c, STAGE_PIECES);
        return r;
}

static int groups_publish(const struct plan *plan, struct sandbox *sb, struct child *c, struct err *err) {
        int r = groups_limit(sb, plan, c, err);

        if (r == 0)
                publish(c, STAGE_GROUPS);
        return r;
}

/* What the agent gets: rules, sockets, its image. */
static int agent_publish(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb,
                         struct child *c, struct err *err) {
        int r = plan->landlock_abi > 0 ? root_landlock(plan, c, err) : 0;

        if (r == 0)
                r = sockets_make(req, sb, err);
        if (r == 0)
                r = agent_make(req, err);
        if (r == 0)
                publish(c, STAGE_AGENT);
        return r;
}

static int wait_word(const struct sandbox *sb, uint32_t *word, struct err *err) {
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
                if (sys_poll_in(sb->agent_pidfd, 0) != 0)
                        return gate_child_error(&the_child, err);
                (void) sys_futex_wait(word, 0, 20);
        }
        return 0;
}

/* A namespace that was made beforehand is the sandbox's from now on. */
static void network_take(struct netns *from, struct sandbox *sb, struct child *c) {
        sb->net = *from;
        netns_none(from);
        c->pool_fd = sb->net.ns_fd;
}

/* The supervisor visits the new network namespace and returns, while the child goes on building the root. */
static int network_up(const struct sandbox *sb, struct child *c, struct err *err) {
        AUTO_FD int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        int r = home < 0 ? oops(err, "network namespace") : wait_word(sb, &c->net, err);

        if (r < 0 || c->plan->rootless || c->plan->net || WEAK(c, WEAKEN_NET))
                return r;
        r = sys_setns(sb->agent_pidfd, SYS_CLONE_NEWNET);
        if (r == 0) {
                r = child_loopback(sb->proc_fd);
                if (sys_setns(home, SYS_CLONE_NEWNET) < 0)
                        abort(); /* a supervisor in the wrong namespace must do nothing more */
        }
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "loopback interface: %s", strerror(-r)) : 0;
}

/* Not before the agent has memory of its own: the kernel gives the score to all who share it, after a long search. */
static int oom_score(const struct sandbox *sb, const struct child *c, pid_t pid, struct err *err) {
        char path[48];
        int r;

        (void) snprintf(path, sizeof(path), "%d/oom_score_adj", (int) pid);
        r = WEAK(c, WEAKEN_OOM_SCORE) ? 0 : fd_write_at(sb->proc_fd, path, "500");
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "oom_score_adj: %s", strerror(-r)) : 0;
}

/* A machine may offer no control groups to an ordinary user: the way out is named, and never taken by itself. */
static int groups_missing(struct err *err) {
        struct err e = *err;

        return err_set(err, e.code, e.kind, "limits: %.220s; or pass --limits=rlimit (weaker)", e.msg);
}

/* The place of the sandbox, and the process that cleans up after it: before anything is made that could stay. */
static int claim(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, struct child *c,
                 struct err *err) {
        int r = slot_claim(sb, enter_is_rootless(), err);

        if (r == 0 && req->keep) {
                sb->kept = true;
                sb->cgroup_host = req->keep->groups;
                (void) str_copy(sb->id, sizeof(sb->id), req->keep->id);
                r = req->keep->claimed(sb, req->keep->arg, err);
        }
        if (r < 0)
                return r;
        child_send_away(sb, c);
        sb->uid_base = enter_is_rootless() ? 1 : sandbox_uid_base(sb->slot);
        c->user = sandbox_host_uid(sb, plan->uid);
        return janitor_start(sb, c, err);
}

static int groups_find(struct sandbox *sb, bool counted, struct err *err) {
        int r;

        if (!sb->kept && cgroup_host_find(&sb->cgroup_host, err) < 0)
                return groups_missing(err);
        r = janitor_watch(sb, err);
        return r < 0 ? r : groups_open(sb, counted, err);
}

static int root_publish(const struct plan *plan, struct sandbox *sb, struct child *c, struct err *err) {
        int r = root_make(plan, c, err);

        if (r < 0)
                return r;
        sb->root_fd = c->root_fd;
        publish(c, STAGE_ROOT);
        child_send_away(sb, c);
        return 0;
}

/*
 * From nothing to a child that has all it needs. Where groups are joined later (v1) the child is started first, because
 * its network namespace takes longest; into a v2 group it is born, so that the group must exist before.
 */
static int build(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, struct child *c,
                 struct err *err) {
        bool groups = !(plan->off & PLAN_OFF_CGROUP), late = groups && (req->counted || cgroup_is_by_birth());
        int r = late ? 0 : child_clone(sb, c, err);

        if (r == 0)
                r = claim(plan, req, sb, c, err);
        if (r == 0 && late)
                r = groups_find(sb, req->counted, err);
        if (r == 0 && late)
                r = child_clone(sb, c, err);
        if (r == 0)
                r = root_publish(plan, sb, c, err);
        if (r == 0)
                r = pieces_publish(plan, sb, c, err);
        if (r == 0 && groups && !late)
                r = groups_find(sb, req->counted, err);
        if (r == 0)
                r = groups_publish(plan, sb, c, err);
        if (r == 0)
                r = agent_publish(plan, req, sb, c, err);
        if (r == 0)
                r = frames_queue(plan, req, sb, c, true, err);
        return r < 0 ? r : network_up(sb, c, err);
}

int sandbox_start(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, struct err *err) {
        struct child *c = &the_child;
        int r = 0;

        memset(sb, 0, sizeof(*sb));
        sb->run_fd = sb->slot_fd = sb->finish_fd = sb->agent_pidfd = sb->control_fd = sb->gate_fd = sb->pair_fd = -1;
        sb->listener_fd = sb->root_fd = sb->proc_fd = -1;
        sb->cgroup.v2_fd = -1;
        sb->out = BUF_INIT(FRAMES_MAX);
        *c = (struct child){ .plan = plan, .weaken = req->weaken, .userns_fd = -1, .root_fd = -1, .pool_fd = -1 };
        c->cpus = req->keep ? req->keep->cpus : NULL;
        netns_none(&sb->net);
        sb->weaken = req->weaken;
        if (req->net)
                network_take(req->net, sb, c);
        else if (plan->net)
                r = netns_prepare(plan->net, req->weaken, &sb->net, c->job = &the_job, err);
        if (r < 0)
                return r;
        sb->user_is_caller = enter_is_rootless() && plan->policy->n_mounts > 0 && plan->uid == PLAN_USER;
        c->proc_fd = sb->proc_fd = req->keep ? fcntl(req->keep->proc_fd, F_DUPFD_CLOEXEC, 0)
                                             : open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        c->parent_pidfd = sys_pidfd_open(getpid());
        if (sb->proc_fd < 0 || c->parent_pidfd < 0)
                return oops(err, "opening /proc");
        child_fill(plan, sb, c);
        r = build(plan, req, sb, c, err);
        if (r < 0) {
                publish(c, STAGE_GIVE_UP);
                if (c->failed && c->code != -ECANCELED)
                        (void) gate_child_error(c, err);
        }
        return r;
}

int sandbox_wait_built(const struct sandbox *sb, struct err *err) {
        return wait_word(sb, &the_child.built, err);
}

int sandbox_wait_here(struct sandbox *sb, struct err *err) {
        struct child *c = &the_child;
        int r;

        janitor_wall(sb);
        r = gate_wait(sb, c, true, err);
        if (r == 0)
                r = oom_score(sb, c, sb->agent_pid, err);
        if (r == 0)
                r = oom_score(sb, c, sb->command_pid, err);
        c->scored = r == 0;
        return r;
}

int sandbox_wait(struct sandbox *sb, struct err *err) {
        struct child *c = &the_child;
        int r = c->scored ? 0 : sandbox_wait_here(sb, err);

        if (r == 0)
                r = gate_wait(sb, c, false, err);
        if (r == 0 && (r = janitor_walled()) < 0)
                r = err_set(err, r, ERR_INTERNAL,
                            "control max_user_namespaces is not in force: %s; nothing was started", strerror(-r));
        return r;
}

void spawn_let_go(void) {
        struct child *c = &the_child;
        struct err ignored;

        if (!c->plan)
                return;
        for (size_t i = 0; i < c->plan->n_mounts; i++)
                if (c->piece_fds[i] >= 0)
                        (void) close(c->piece_fds[i]);
        if (c->userns_fd >= 0)
                (void) close(c->userns_fd);
        (void) enter_reserve(&ignored);
        c->plan = NULL;
}
