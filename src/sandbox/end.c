/* end.c - the end of a sandbox: everything killed, reaped and removed, in an order that leaves nothing behind. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "sandbox/gate.h"
#include "sandbox/janitor.h"
#include "sandbox/netns.h"
#include "sandbox/sandbox.h"
#include "sandbox/slot.h"

enum { DISK_FULL_SLACK = 2 }; /* a full tmpfs may keep a block or two back for a directory */

bool sandbox_is_twin(void) {
#ifdef GABION_WEAKEN
        return true;
#else
        return false;
#endif
}

int sandbox_disk(const struct sandbox *sb, uint64_t *ret_used, bool *ret_full) {
        struct statfs st;

        if (sb->root_fd < 0 || fstatfs(sb->root_fd, &st) < 0)
                return -EBADF;
        *ret_used = (uint64_t) (st.f_blocks - st.f_bfree) * (uint64_t) st.f_bsize;
        *ret_full = st.f_bfree <= DISK_FULL_SLACK || st.f_ffree == 0;
        return 0;
}

int end_reap(pid_t pid) {
        int status = 0;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status;
}

static void drop_fd(int *fd) {
        if (*fd >= 0)
                (void) close(TAKE_FD(*fd));
}

static void drop_fds(struct sandbox *sb) {
        drop_fd(&sb->root_fd);
        drop_fd(&sb->control_fd);
        drop_fd(&sb->gate_fd);
        drop_fd(&sb->pair_fd);
        drop_fd(&sb->listener_fd);
        drop_fd(&sb->proc_fd);
        buf_done(&sb->out);
}

static void groups_drop(struct sandbox *sb) {
        if (sb->has_cgroup)
                cgroup_close(&sb->cgroup);
        sb->has_cgroup = false;
        if (!sb->kept)
                (void) cgroup_host_free(sb->cgroup_host);
        sb->cgroup_host = NULL;
}

void sandbox_survive(bool survives) {
        janitor_keep(survives);
}

void sandbox_leave(struct sandbox *sb) {
        janitor_keep(true);
        janitor_finish(sb);
        (void) janitor_wait(sb);
        drop_fds(sb);
        drop_fd(&sb->agent_pidfd);
        drop_fd(&sb->finish_fd);
        groups_drop(sb);
        slot_drop(sb, false);
}

/*
 * Who loses its parent falls to the next subreaper, which asked for it, or to pid 1. Pid 1 of the machine reaps, that
 * is its office; pid 1 of a container may be any program. The number is that of the kernel's first pid namespace for
 * ever.
 */
static bool orphans_are_reaped(const struct sandbox *sb) {
        static const ino_t first_pid_ns = 0xEFFFFFFC;
        struct stat st;

        return fstatat(sb->proc_fd, "self/ns/pid", &st, 0) == 0 && st.st_ino == first_pid_ns;
}

/* It may have been killed; then the work is ours. */
static bool janitor_lives(const struct sandbox *sb) {
        siginfo_t si = { 0 };

        return sb->janitor_pid > 0 && waitid(P_PID, (id_t) sb->janitor_pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               si.si_pid == 0;
}

bool sandbox_can_end_soon(const struct sandbox *sb) {
        return sb->agent_pid > 0 && orphans_are_reaped(sb);
}

bool sandbox_end_soon(const struct sandbox *sb) {
        return janitor_lives(sb);
}

int sandbox_end(struct sandbox *sb, struct err *err) {
        bool clean;
        int r = 0;

        /* Pid 1 of the namespace: with it everything inside ends, whatever signals it ignores. */
        if (sb->agent_pid > 0)
                (void) sys_pidfd_send_signal(sb->agent_pidfd, SIGKILL);
        drop_fds(sb); /* while it dies */
        if (sb->agent_pid > 0)
                (void) end_reap(sb->agent_pid);
        sb->agent_pid = 0;
        spawn_let_go();
        janitor_finish(sb);
        netns_close(&sb->net); /* a set-up child that failed may have been filling it */
        clean = janitor_wait(sb) == 0;
        drop_fd(&sb->agent_pidfd);
        if (!clean && sb->has_cgroup) {
                r = cgroup_kill(&sb->cgroup, err);
                if (r == 0)
                        r = cgroup_remove(&sb->cgroup, err);
        }
        groups_drop(sb);
        drop_fd(&sb->finish_fd);
        /* The janitor freed the slot, and the name may be another's by now; with groups left it stays, for a sweep. */
        slot_drop(sb, !clean && r == 0);
        return r;
}

static int sweep_one(void *arg, const char *name) {
        const struct sandbox *sb = arg;
        struct err e = { 0 };
        struct cgroup c;
        int r = cgroup_open(sb->cgroup_host, name, &c, &e);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (cgroup_kill(&c, &e) < 0)
                return -EBUSY;
        return cgroup_remove(&c, &e);
}

int sandbox_sweep(const struct sandbox *sb) {
        if (!sb->cgroup_host)
                return 0; /* who cannot see groups must not declare them gone */
        return slot_each_dead(sb->run_fd, sweep_one, (void *) (uintptr_t) sb);
}
