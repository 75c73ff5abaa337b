/*
 * child.c - the process that becomes a sandbox's pid 1.
 *
 * Theory of operation. The child shares memory and descriptors with the supervisor (CLONE_VM|CLONE_FILES) and runs
 * beside it: while it makes the network namespace, the slowest step of all, the supervisor makes the root, the cgroups,
 * the user namespace and the pieces of the root, and announces them in two stages. The child runs as the supervisor's
 * root until the last moment, so it reads nothing but the plan.
 *
 * Because memory is shared, nothing here may use libc: errno, malloc and stdio belong to the supervisor, which is using
 * them at the same time. Only sys_*() calls are made; tools/check-child fails the build's tests if another symbol
 * appears. Descriptors are numbered by the supervisor; those the child opens are closed again by close_range().
 *
 * The user namespace is entered last, so that all others are owned by the supervisor's: what runs inside has no
 * capability over its own mounts, network or host name.
 */
#include "sandbox/child.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "sandbox/netns.h"

enum {
        AT_CWD = -100,
        MNT_DETACH_FLAG = 2,
        CLOSE_UNSHARE = 2,
        IOCTL_SET_FLAGS = 0x8914,
};

enum step {
        STEP_ORPHAN,
        STEP_PRIVATE,
        STEP_NETNS,
        STEP_WAIT,
        STEP_CGROUP,
        STEP_CGROUP_NS,
        STEP_TIME,
        STEP_PROPAGATION,
        STEP_IDENTITY,
        STEP_PROC,
        STEP_ROOT,
        STEP_WRITABLE,
        STEP_MOUNT,
        STEP_LANDLOCK,
        STEP_MASK,
        STEP_READ_ONLY,
        STEP_PIVOT,
        STEP_USERNS,
        STEP_DESCRIPTORS,
        STEP_EXEC,
};

const char *child_step(uint32_t failed) {
        static const char *const names[] = {
                [STEP_ORPHAN] = "supervisor died",
                [STEP_PRIVATE] = "mount, ipc and uts namespaces",
                [STEP_NETNS] = "network namespace",
                [STEP_WAIT] = "waiting for the supervisor",
                [STEP_CGROUP] = "joining the control groups",
                [STEP_CGROUP_NS] = "cgroup namespace",
                [STEP_TIME] = "time namespace",
                [STEP_PROPAGATION] = "private mount propagation",
                [STEP_IDENTITY] = "groups, session and host name",
                [STEP_PROC] = "mounting proc",
                [STEP_ROOT] = "attaching the root",
                [STEP_WRITABLE] = "writable places",
                [STEP_MOUNT] = "attaching a mount",
                [STEP_LANDLOCK] = "Landlock rule for proc",
                [STEP_MASK] = "masking proc",
                [STEP_READ_ONLY] = "making the root read-only",
                [STEP_PIVOT] = "pivot_root",
                [STEP_USERNS] = "entering the user namespace",
                [STEP_DESCRIPTORS] = "closing descriptors",
                [STEP_EXEC] = "starting the agent",
        };

        return failed > 0 && failed <= ARRAY_SIZE(names) ? names[failed - 1] : "unknown step";
}

static int fail(struct child *c, enum step step, long code) {
        c->code = (int32_t) code;
        __atomic_store_n(&c->failed, (uint32_t) step + 1, __ATOMIC_RELEASE);
        return 1;
}

/* PDEATHSIG is armed first and the parent's life checked afterwards: in the other order a parent that dies in between
 * would leave us behind. getppid() is no help, it is 0 in a new pid namespace. */
static int arm_death(int parent_pidfd) {
        int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

        if (r < 0)
                return r;
        return sys_poll_in(parent_pidfd, 0) == 0 ? 0 : -ESRCH;
}

static int wait_stage(struct child *c, uint32_t want) {
        uint32_t now;

        while ((now = __atomic_load_n(&c->stage, __ATOMIC_ACQUIRE)) < want)
                if (sys_futex_wait(&c->stage, now, CHILD_WAIT_MS) == -ETIMEDOUT)
                        return -ETIMEDOUT;
        return now == STAGE_GIVE_UP ? -ECANCELED : 0;
}

int child_write(int dir_fd, const char *path, const char *text, size_t n) {
        int fd = sys_openat(dir_fd, path, O_WRONLY | O_CLOEXEC, 0);
        long r;

        if (fd < 0)
                return fd;
        r = sys_write(fd, text, n);
        (void) sys_close(fd);
        return r < 0 ? (int) r : 0;
}

int child_loopback(int proc_fd) {
        struct ifreq req = { .ifr_name = "lo" };
        int fd = (int) SYS3(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        long r;

        if (fd < 0)
                return fd;
        req.ifr_flags = IFF_UP | IFF_RUNNING;
        r = SYS3(SYS_ioctl, fd, IOCTL_SET_FLAGS, &req);
        (void) sys_close(fd);
        return r < 0 ? (int) r : child_write(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", "0", 1);
}

static int join_groups(struct child *c) {
        for (size_t i = 0; i < c->n_tasks; i++) {
                long r = WEAK(c, WEAKEN_TASKS) ? 0 : sys_write(c->tasks_fds[i], "0", 1);

                if (r < 0)
                        return (int) r;
        }
        return 0;
}

static int identity(struct child *c) {
        size_t n = 0;
        int r = sys_setgroups_none();

        while (c->plan->hostname[n])
                n++;
        if (r == 0)
                r = sys_setsid() < 0 ? -EPERM : 0;
        if (r == 0 && !WEAK(c, WEAKEN_UTS))
                r = sys_sethostname(c->plan->hostname, n);
        (void) SYS1(SYS_umask, 022);
        return r;
}

static int mount_proc(void) {
        int fs = sys_fsopen("proc");
        int r, fd;

        if (fs < 0)
                return fs;
        r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
        fd = r < 0 ? r : sys_fsmount(fs, SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
        (void) sys_close(fs);
        return fd;
}

/* Attaches a detached mount at a path below the current directory (= the new root), following no link. */
static int attach(int fd, const char *path) {
        int at = sys_openat2(AT_CWD, path, O_PATH | O_CLOEXEC, 0,
                             SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
        int r;

        if (at < 0)
                return at;
        r = sys_move_mount(fd, at, "");
        (void) sys_close(at);
        return r;
}

/* Binds a file of the root at another place, read-only. */
static int own_bind(const char *from, const char *path) {
        const struct sys_mount_attr attr = {
                .attr_set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC,
        };
        int fd = sys_open_tree(AT_CWD, from, SYS_OPEN_TREE_CLONE);
        int r;

        if (fd < 0)
                return fd;
        r = sys_mount_setattr(fd, "", SYS_AT_EMPTY_PATH, &attr);
        if (r == 0)
                r = attach(fd, path);
        (void) sys_close(fd);
        return r;
}

/* Gives a place of the root exactly these mount flags, whatever the mount around it has. The path is our own: there are
 * no links in it, and nobody who could put one there. */
static int self_bind(const char *path, uint64_t set) {
        const struct sys_mount_attr attr = {
                .attr_set = set,
                .attr_clr = (SYS_MOUNT_RDONLY | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC) & ~set,
        };
        int r = sys_bind(path, path);

        return r < 0 ? r : sys_mount_setattr(AT_CWD, path, 0, &attr);
}

static int writable_places(struct child *c) {
        int r = self_bind("dev", (WEAK(c, WEAKEN_DEV_RW) ? 0 : SYS_MOUNT_RDONLY) | SYS_MOUNT_NOSUID | SYS_MOUNT_NOEXEC);

        for (size_t i = 0; r == 0 && i < c->plan->n_mounts; i++)
                if (c->plan->mounts[i].kind == PLAN_WRITABLE)
                        r = self_bind(c->plan->mounts[i].target + 1, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
        return r;
}

static int pieces(struct child *c) {
        for (size_t i = 0; i < c->plan->n_mounts; i++) {
                const struct plan_mount *m = &c->plan->mounts[i];
                const char *target = m->target;
                int r = c->piece_fds[i] < 0 ? 0 : attach(c->piece_fds[i], target);

                if (m->kind == PLAN_OWN)
                        r = own_bind(m->source, target + 1);
                else if (r == -ENOENT) {
                        r = skeleton_target(c, i);
                        if (r == 0)
                                r = attach(c->piece_fds[i], target);
                }
                if (r < 0)
                        return r;
        }
        return WEAK(c, WEAKEN_EXTRA_MOUNT) ? self_bind("var", SYS_MOUNT_NOSUID) : 0;
}

static int rule(uint64_t rights, const char *path) {
        int fd = sys_openat(AT_CWD, path, O_PATH | O_CLOEXEC, 0);
        int r;

        if (fd < 0)
                return fd;
        r = sys_landlock_add_path(AP_FD_LANDLOCK, rights, fd);
        (void) sys_close(fd);
        return r;
}

/* What is mounted over a path of /proc: nothing readable, but for the boot id, which programs want to have. */
static const char *mask_source(const char *path) {
        size_t n = 0;

        if (strcmp(path, PLAN_BOOT_ID) == 0)
                return "../.gabion/boot_id";
        while (path[n])
                n++;
        return path[n - 1] == '/' ? "../.gabion/mask.d" : "../.gabion/mask";
}

static int mask(struct child *c, int proc_fd) {
        int r = sys_fchdir(proc_fd);

        for (size_t i = 0; r == 0 && i < c->plan->n_masks; i++) {
                if (WEAK(c, WEAKEN_MASK) && i == 6)
                        continue;
                r = sys_bind(mask_source(c->plan->masks[i]), c->plan->masks[i]);
                if (r == -ENOENT || r == -ENOTDIR) /* not every kernel has every file */
                        r = 0;
        }
        return r == 0 ? sys_fchdir(c->root_fd) : r;
}

static int read_only(struct child *c) {
        const struct sys_mount_attr attr = {
                .attr_set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC,
        };

        return WEAK(c, WEAKEN_ROOT_RW) ? 0 : sys_mount_setattr(AT_CWD, "", SYS_AT_EMPTY_PATH, &attr);
}

static int pivot(void) {
        int r = sys_pivot_root(".", ".");

        if (r == 0)
                r = sys_umount2(".", MNT_DETACH_FLAG);
        return r == 0 ? sys_chdir("/") : r;
}

/* Here and not at birth: the supervisor, who has more to do, would wait for it. */
static int private_namespaces(struct child *c) {
        unsigned more = SYS_CLONE_NEWNS | SYS_CLONE_NEWIPC | SYS_CLONE_NEWUTS;

        if (WEAK(c, WEAKEN_IPC))
                more &= ~(unsigned) SYS_CLONE_NEWIPC;
        if (WEAK(c, WEAKEN_UTS))
                more &= ~(unsigned) SYS_CLONE_NEWUTS;
        return sys_unshare(more);
}

static int network(struct child *c) {
        int r;

        if (WEAK(c, WEAKEN_NET))
                return 0;
        if (c->pool_fd >= 0)
                return sys_setns(c->pool_fd, SYS_CLONE_NEWNET);
        r = sys_unshare(SYS_CLONE_NEWNET);
        if (r == 0 && c->job)
                return netns_build(c->job);
        /* Root's supervisor has time to bring lo up from outside; a rootless one could not come back from there. */
        return r == 0 && c->plan->rootless ? child_loopback(c->proc_fd) : r;
}

/* What the kernel is asked for: names, network, the other namespaces. Meanwhile the supervisor makes the root. */
static int set_up_kernel(struct child *c) {
        const struct sys_mount_attr private = { .propagation = SYS_MS_PRIVATE };
        int r = arm_death(c->parent_pidfd);

        if (r < 0)
                return fail(c, STEP_ORPHAN, r);
        r = private_namespaces(c);
        if (r < 0)
                return fail(c, STEP_PRIVATE, r);
        r = network(c);
        if (r < 0)
                return fail(c, STEP_NETNS, r);
        __atomic_store_n(&c->net, 1, __ATOMIC_RELEASE);
        (void) sys_futex_wake(&c->net);
        r = sys_mount_setattr(AT_CWD, "/", SYS_AT_RECURSIVE, &private);
        if (r < 0)
                return fail(c, STEP_PROPAGATION, r);
        r = identity(c);
        if (r < 0)
                return fail(c, STEP_IDENTITY, r);
        r = wait_stage(c, STAGE_ROOT);
        if (r < 0)
                return fail(c, STEP_WAIT, r);
        return 0;
}

/* Through the host's /proc, which can be written. The clocks change with the exec. */
static int clocks(struct child *c) {
        int r = WEAK(c, WEAKEN_TIME) ? 0 : sys_unshare(SYS_CLONE_NEWTIME);

        return r < 0 || WEAK(c, WEAKEN_TIME)
                       ? r
                       : child_write(c->proc_fd, "self/timens_offsets", c->time_offsets, c->n_time_offsets);
}

/* Joins the groups, then makes the namespace that is rooted where we are then. */
static int set_up_groups(struct child *c) {
        int r = wait_stage(c, STAGE_GROUPS);

        if (r < 0)
                return fail(c, STEP_WAIT, r);
        r = join_groups(c);
        if (r < 0)
                return fail(c, STEP_CGROUP, r);
        r = WEAK(c, WEAKEN_CGROUP_NS) ? 0 : sys_unshare(SYS_CLONE_NEWCGROUP);
        return r < 0 ? fail(c, STEP_CGROUP_NS, r) : 0;
}

/* Puts the root together from the supervisor's detached pieces, and moves into it. */
static int set_up_root(struct child *c) {
        int proc_fd = mount_proc(), r;

        if (proc_fd < 0)
                return fail(c, STEP_PROC, proc_fd);
        r = sys_move_mount(c->root_fd, AT_CWD, "/");
        if (r == 0)
                r = sys_fchdir(c->root_fd);
        if (r < 0)
                return fail(c, STEP_ROOT, r);
        r = attach(proc_fd, "proc");
        if (r < 0)
                return fail(c, STEP_PROC, r);
        r = self_bind(".gabion", SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
        if (r == 0)
                r = mask(c, proc_fd);
        (void) sys_close(proc_fd);
        if (r < 0)
                return fail(c, STEP_MASK, r);
        r = writable_places(c);
        if (r < 0)
                return fail(c, STEP_WRITABLE, r);
        r = clocks(c);
        if (r < 0)
                return fail(c, STEP_TIME, r);
        r = wait_stage(c, STAGE_PIECES);
        if (r < 0)
                return fail(c, STEP_WAIT, r);
        r = pieces(c);
        if (r < 0)
                return fail(c, STEP_MOUNT, r);
        r = read_only(c);
        if (r < 0)
                return fail(c, STEP_READ_ONLY, r);
        r = pivot();
        return r < 0 ? fail(c, STEP_PIVOT, r) : 0;
}

/* The last that needs the supervisor's root: the agent's descriptors are complete, and the ids are changed. */
static int set_up_agent(struct child *c) {
        int r = wait_stage(c, STAGE_AGENT);

        if (r < 0)
                return fail(c, STEP_WAIT, r);
        r = c->plan->landlock_abi > 0 ? rule(c->plan->landlock_proc, "proc") : 0;
        if (r < 0)
                return fail(c, STEP_LANDLOCK, r);
        r = sys_setns(c->userns_fd, SYS_CLONE_NEWUSER);
        if (r == 0)
                r = sys_setresgid(0);
        if (r == 0)
                r = sys_setresuid(0);
        return r < 0 ? fail(c, STEP_USERNS, r) : 0;
}

int child_main(void *arg) {
        static char *const argv[] = { (char *) "gabion-agent", NULL };
        static char *const none[] = { NULL };
        static char *const leak[] = { (char *) "LEAKED=1", NULL };
        struct child *c = arg;
        int r;

        __atomic_store_n(&c->runs, 1, __ATOMIC_RELAXED);
        r = set_up_kernel(c);
        if (r != 0)
                return r;
        r = set_up_root(c);
        if (r == 0)
                r = set_up_groups(c);
        if (r == 0)
                r = set_up_agent(c);
        if (r != 0)
                return r;
        /* From here on the table is our own, and holds exactly what the agent may have. */
        r = sys_close_range(CHILD_FD_AGENT + 1, ~0u, CLOSE_UNSHARE);
        if (r == 0)
                r = sys_close_range(0, 2, 0);
        if (r < 0)
                return fail(c, STEP_DESCRIPTORS, r);
        __atomic_store_n(&c->built, 1, __ATOMIC_RELEASE);
        (void) sys_futex_wake(&c->built);
        r = c->cpus ? sys_setaffinity(c->cpus, sizeof(cpu_set_t)) : 0;
        if (r < 0)
                return fail(c, STEP_EXEC, r);
        r = sys_execveat(CHILD_FD_AGENT, "", argv, WEAK(c, WEAKEN_AGENT_ENV) ? leak : none, SYS_AT_EMPTY_PATH);
        return fail(c, STEP_EXEC, r);
}

int child_hold(void *arg) {
        const struct child *c = arg;

        if (arm_death(c->parent_pidfd) == 0)
                (void) sys_poll_in(c->parent_pidfd, -1);
        return 0;
}
