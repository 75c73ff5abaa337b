/*
 * calls.c - isolate_calls(): the system calls that the loop makes, as a table.
 *
 * Anything else answers EPERM, so that a library which tries something new fails in that place and the process lives.
 * Programs cannot be started, memory cannot become executable, and new sockets are local ones: the listeners are there
 * already, and sandboxes are reached through their agents.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <seccomp.h>

#include "base/err.h"
#include "base/own.h"
#include "daemon/isolate.h"

static const struct call {
        int nr;
        unsigned arg; /* compared if mask is not 0: (argument & mask) == value */
        scmp_datum_t mask, value;
} calls[] = {
        /* the loop */
        { .nr = SCMP_SYS(epoll_wait) },
        { .nr = SCMP_SYS(epoll_pwait) },
        { .nr = SCMP_SYS(epoll_pwait2) },
        { .nr = SCMP_SYS(epoll_ctl) },
        { .nr = SCMP_SYS(poll) },
        { .nr = SCMP_SYS(ppoll) },
        { .nr = SCMP_SYS(timerfd_settime) },
        { .nr = SCMP_SYS(clock_gettime) },
        { .nr = SCMP_SYS(gettimeofday) },
        { .nr = SCMP_SYS(time) },
        { .nr = SCMP_SYS(nanosleep) },
        { .nr = SCMP_SYS(clock_nanosleep) },
        { .nr = SCMP_SYS(restart_syscall) },
        /* bytes */
        { .nr = SCMP_SYS(read) },
        { .nr = SCMP_SYS(readv) },
        { .nr = SCMP_SYS(write) },
        { .nr = SCMP_SYS(writev) },
        { .nr = SCMP_SYS(close) },
        { .nr = SCMP_SYS(fcntl) },
        { SCMP_SYS(ioctl), 1, UINT32_MAX, FIONREAD }, /* evbuffer_read() */
        /* sockets */
        { .nr = SCMP_SYS(accept4) },
        { SCMP_SYS(socket), 0, UINT32_MAX, AF_UNIX },
        { .nr = SCMP_SYS(connect) },
        { .nr = SCMP_SYS(shutdown) },
        { .nr = SCMP_SYS(getsockname) },
        { .nr = SCMP_SYS(getpeername) },
        { .nr = SCMP_SYS(getsockopt) },
        { .nr = SCMP_SYS(setsockopt) },
        { .nr = SCMP_SYS(recvfrom) },
        { .nr = SCMP_SYS(recvmsg) },
        { .nr = SCMP_SYS(sendto) },
        { .nr = SCMP_SYS(sendmsg) },
        /* the store, and documents for the warden */
        { .nr = SCMP_SYS(openat) },
        { .nr = SCMP_SYS(open) },
        { .nr = SCMP_SYS(stat) },
        { .nr = SCMP_SYS(lstat) },
        { .nr = SCMP_SYS(fstat) },
        { .nr = SCMP_SYS(newfstatat) },
        { .nr = SCMP_SYS(statx) },
        { .nr = SCMP_SYS(access) },
        { .nr = SCMP_SYS(faccessat) },
        { .nr = SCMP_SYS(faccessat2) },
        { .nr = SCMP_SYS(readlink) },
        { .nr = SCMP_SYS(readlinkat) },
        { .nr = SCMP_SYS(getcwd) },
        { .nr = SCMP_SYS(lseek) },
        { .nr = SCMP_SYS(pread64) },
        { .nr = SCMP_SYS(pwrite64) },
        { .nr = SCMP_SYS(ftruncate) },
        { .nr = SCMP_SYS(fallocate) },
        { .nr = SCMP_SYS(fsync) },
        { .nr = SCMP_SYS(fdatasync) },
        { .nr = SCMP_SYS(fchmod) },
        { .nr = SCMP_SYS(unlink) },
        { .nr = SCMP_SYS(unlinkat) },
        { .nr = SCMP_SYS(memfd_create) },
        /* memory */
        { .nr = SCMP_SYS(brk) },
        { SCMP_SYS(mmap), 2, PROT_EXEC, 0 },
        { SCMP_SYS(mprotect), 2, PROT_EXEC, 0 },
        { .nr = SCMP_SYS(munmap) },
        { .nr = SCMP_SYS(mremap) },
        { .nr = SCMP_SYS(madvise) },
        { .nr = SCMP_SYS(futex) },
        /* the process itself */
        { .nr = SCMP_SYS(getrandom) },
        { .nr = SCMP_SYS(getpid) },
        { .nr = SCMP_SYS(gettid) },
        { .nr = SCMP_SYS(getuid) },
        { .nr = SCMP_SYS(geteuid) },
        { .nr = SCMP_SYS(tgkill) }, /* abort() */
        { .nr = SCMP_SYS(rt_sigaction) },
        { .nr = SCMP_SYS(rt_sigprocmask) },
        { .nr = SCMP_SYS(rt_sigreturn) },
        { .nr = SCMP_SYS(sigaltstack) },
        { .nr = SCMP_SYS(exit) },
        { .nr = SCMP_SYS(exit_group) },
};

int isolate_calls(struct err *err) {
        scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r = ctx ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(calls); i++) {
                const struct call *c = &calls[i];
                const struct scmp_arg_cmp cmp = SCMP_CMP64(c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value);

                r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, c->nr, c->mask ? 1 : 0, &cmp);
                if (r == -EDOM) /* a call that this architecture does not have */
                        r = 0;
        }
        if (r == 0)
                r = seccomp_load(ctx);
        if (ctx)
                seccomp_release(ctx);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: system calls: %d", -r) : 0;
}
