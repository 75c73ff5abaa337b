/*
 * calls.c - isolate_calls(): the system calls that the loop makes, as a table.
 *
 * Anything else answers EPERM, so that a library which tries something new fails in that place and the process lives.
 * Files cannot be opened, programs cannot be started, memory cannot become executable, and the only new sockets are
 * those of the internet.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <seccomp.h>

#include "base/err.h"
#include "base/own.h"
#include "egress/isolate.h"

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
        { .nr = SCMP_SYS(restart_syscall) },
        /* bytes */
        { .nr = SCMP_SYS(read) },
        { .nr = SCMP_SYS(readv) },
        { .nr = SCMP_SYS(write) },
        { .nr = SCMP_SYS(writev) },
        { .nr = SCMP_SYS(splice) },
        { .nr = SCMP_SYS(pipe2) },
        { .nr = SCMP_SYS(close) },
        { .nr = SCMP_SYS(fcntl) },
        { SCMP_SYS(ioctl), 1, UINT32_MAX, FIONREAD }, /* evbuffer_read() */
        /* sockets */
        { .nr = SCMP_SYS(accept4) },
        { SCMP_SYS(socket), 0, UINT32_MAX, AF_INET },
        { SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6 },
        { .nr = SCMP_SYS(connect) },
        { .nr = SCMP_SYS(bind) },
        { .nr = SCMP_SYS(shutdown) },
        { .nr = SCMP_SYS(getsockname) },
        { .nr = SCMP_SYS(getpeername) },
        { .nr = SCMP_SYS(getsockopt) },
        { .nr = SCMP_SYS(setsockopt) },
        { .nr = SCMP_SYS(recvfrom) },
        { .nr = SCMP_SYS(recvmsg) },
        { .nr = SCMP_SYS(sendto) },
        { .nr = SCMP_SYS(sendmsg) },
        /* documents from the supervisor, and what outlives us */
        { .nr = SCMP_SYS(fstat) },
        { .nr = SCMP_SYS(newfstatat) },
        { .nr = SCMP_SYS(pread64) },
        { .nr = SCMP_SYS(pwrite64) },
        { .nr = SCMP_SYS(ftruncate) },
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
        { .nr = SCMP_SYS(tgkill) }, /* abort() */
        { .nr = SCMP_SYS(rt_sigaction) },
        { .nr = SCMP_SYS(rt_sigprocmask) },
        { .nr = SCMP_SYS(rt_sigreturn) },
        { .nr = SCMP_SYS(exit) },
        { .nr = SCMP_SYS(exit_group) },
};

static void release(scmp_filter_ctx *c) {
        if (*c)
                seccomp_release(*c);
}

int isolate_calls(struct err *err) {
        CLEANUP(release) scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r = c ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(calls); i++) {
                const struct call *k = &calls[i];
                const struct scmp_arg_cmp cmp = { k->arg, SCMP_CMP_MASKED_EQ, k->mask, k->value };

                r = seccomp_rule_add_array(c, SCMP_ACT_ALLOW, k->nr, k->mask ? 1 : 0, &cmp);
        }
        if (r == 0)
                r = seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree: the calls per byte come early */
        if (r == 0)
                r = seccomp_load(c);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolate: calls: seccomp: error %d", -r) : 0;
}
