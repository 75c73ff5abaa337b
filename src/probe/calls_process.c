/*
 * calls_process.c - reaching into other processes, and asking for more than one's share.
 *
 * Targets are an own child or process 1. Its memory is only ever asked for at an address that nothing maps: the kernel
 * says EFAULT to whoever may look, EPERM to whoever may not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/calls.h"

enum { SEIZE = 0x4206, NR_PROCESS_MRELEASE = 448, MLOCK_ONFAULT_FLAG = 1, LOCK_BYTES = 64 << 20 };
enum { SCHED_FIFO_ = 1, SCHED_RR_ = 2, SCHED_DEADLINE_ = 6, RESET_ON_FORK = 0x40000000 };
enum { IOPRIO_RT = 1 << 13 };

void calls_c05a(const struct probe_canaries *c, struct probe_result *r) {
        pid_t pid = fork();
        long ret;

        (void) c;
        if (pid == 0) {
                (void) sleep(2);
                _exit(0);
        }
        ret = pid < 0 ? -errno : sys_ptrace(SEIZE, pid, 0, 0);
        if (pid > 0) {
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        calls_accept(r, ret, "own child only; what the debug profile is for");
}

/* Seizing stops nothing, and ends with this process. */
CALLS_SUCCESS(c05b, sys_ptrace(SEIZE, 1, 0, 0))

static long vm_call(long nr) {
        char byte = 0;
        struct iovec mine = { &byte, 1 }, theirs = { (void *) 8, 1 };

        return SYS6(nr, 1, &mine, 1, &theirs, 1, 0);
}

CALLS_ANSWER(c06a, vm_call(SYS_process_vm_readv))
CALLS_ANSWER(c06b, vm_call(SYS_process_vm_writev))

/* Without a pidfd of process 1 the call itself is still worth knowing about: EBADF. */
void calls_c06c(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int pidfd = sys_pidfd_open(1);

        (void) c;
        calls_answer(r, SYS3(SYS_pidfd_getfd, pidfd, 0, 0));
}

CALLS_ANSWER(c06d, SYS5(SYS_kcmp, getpid(), 1, 0, 0, 0))
CALLS_ANSWER(c06e, SYS5(SYS_process_madvise, -1, NULL, 0, 20, 0))
CALLS_ANSWER(c06f, SYS2(NR_PROCESS_MRELEASE, -1, 0))

static long listener(unsigned flags) {
        static const struct sys_bpf_insn allow[] = { { 6, 0, 0, 0x7fff0000 } };

        (void) sys_prctl(38, 1, 0, 0, 0); /* PR_SET_NO_NEW_PRIVS: without it any filter is refused */
        return sys_seccomp_filter(allow, 1, flags);
}

CALLS_SUCCESS(c32a, listener(SYS_SECCOMP_NEW_LISTENER))

void calls_c32b(const struct probe_canaries *c, struct probe_result *r) {
        uint16_t sizes[3];

        (void) c;
        calls_success(r, SYS3(SYS_seccomp, 3, 0, sizes)); /* SECCOMP_GET_NOTIF_SIZES */
}

static long scheduler(int policy) {
        int priority = 1, zero = 0;
        long ret = SYS3(SYS_sched_setscheduler, 0, policy, &priority);

        if (ret == 0)
                (void) SYS3(SYS_sched_setscheduler, 0, 0, &zero);
        return ret;
}

CALLS_SUCCESS(c39a, scheduler(SCHED_FIFO_))
CALLS_SUCCESS(c39b, scheduler(SCHED_RR_ | RESET_ON_FORK))

void calls_c39c(const struct probe_canaries *c, struct probe_result *r) {
        /* size, policy; flags; nice, priority; runtime, deadline, period: 1 ms in a second */
        uint64_t attr[6] = { 48 | (uint64_t) SCHED_DEADLINE_ << 32, 1, 0, 1000000, 1000000000, 1000000000 };

        (void) c;
        calls_answer(r, SYS3(SYS_sched_setattr, 0, attr, 0));
}

CALLS_SUCCESS(c39d, SYS3(SYS_setpriority, PRIO_PROCESS, 0, -20))

/* Locked on fault: the limit is checked for all of it, and not one page is touched. */
void calls_c39e(const struct probe_canaries *c, struct probe_result *r) {
        void *p = mmap(NULL, LOCK_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        (void) c;
        calls_success(r, p == MAP_FAILED ? -errno : SYS3(SYS_mlock2, p, LOCK_BYTES, MLOCK_ONFAULT_FLAG));
}

void calls_c39f(const struct probe_canaries *c, struct probe_result *r) {
        char note[48];
        int finite = 0;

        (void) c;
        for (int what = 0; what < RLIM_NLIMITS; what++) {
                struct rlimit l;

                if (getrlimit(what, &l) < 0 || l.rlim_max == RLIM_INFINITY)
                        continue;
                finite++;
                l.rlim_max++;
                if (setrlimit(what, &l) < 0)
                        continue;
                (void) snprintf(note, sizeof(note), "resource %d went above its hard limit", what);
                probe_reached(r, note);
                return;
        }
        probe_stopped(r, finite ? EPERM : 0, finite ? "" : "no hard limit is set at all");
}

CALLS_SUCCESS(c40a, SYS3(SYS_ioprio_set, 1, 0, IOPRIO_RT))
CALLS_SUCCESS(c40b, SYS3(SYS_ioprio_set, 1, 0, CALLS_UPPER | IOPRIO_RT))

void calls_c41a(const struct probe_canaries *c, struct probe_result *r) {
        uint32_t size;

        (void) c;
        calls_success(r, SYS5(SYS_prctl, 35, 15, &size, 0, 0)); /* PR_SET_MM, PR_SET_MM_MAP_SIZE */
}

void calls_c41b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        calls_accept(r, SYS2(SYS_prctl, 0x59616d61, -1l), "crash handlers; ptrace is another matter, see C05");
}

/* PR_SCHED_CORE, share with oneself: ENODEV comes from a machine without hardware threads, not from the filter. */
void calls_c41c(const struct probe_canaries *c, struct probe_result *r) {
        long ret = SYS5(SYS_prctl, 62, 1, 0, 0, 0);

        (void) c;
        calls_success(r, ret == -ENODEV ? 0 : ret);
}

CALLS_SUCCESS(c41d, SYS5(SYS_prctl, 31, 0, 0, 0, 0)) /* PR_TASK_PERF_EVENTS_DISABLE */
CALLS_SUCCESS(c41e, SYS5(SYS_prctl, 33, 0, 0, 0, 0)) /* PR_MCE_KILL, clear */
CALLS_SUCCESS(c41f, SYS5(SYS_prctl, 59, 0, 0, 0, 0)) /* PR_SET_SYSCALL_USER_DISPATCH, off */

/* Requeue onto itself: kernels since 2014 say EINVAL. */
void calls_c42a(const struct probe_canaries *c, struct probe_result *r) {
        uint32_t word = 0;

        (void) c;
        calls_success(r, SYS6(SYS_futex, &word, 12, 1, 0, &word, 0)); /* FUTEX_CMP_REQUEUE_PI */
}

void calls_c44a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        calls_control(r, sys_landlock_create(NULL, 0));
}

void calls_c44b(const struct probe_canaries *c, struct probe_result *r) {
        struct sys_landlock_attr attr = { .handled_fs = 1 << 1 };
        int fd = sys_landlock_create(&attr, sizeof(attr.handled_fs));

        (void) c;
        (void) sys_prctl(38, 1, 0, 0, 0);
        calls_control(r, fd < 0 ? fd : sys_landlock_restrict(fd, 0));
}
