/*
 * calls.c - isolate_calls(): the system calls that the loop makes, as a table.
 *
 * Anything else answers EPERM, so that a library which tries something new fails in that place and the process lives.
 * Files cannot be opened, programs cannot be started, memory cannot become executable, and the only new sockets are
 * those of the internet. The program is written here, one comparison per row, and not by libseccomp: that took longer
 * than all the rest of a start.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "egress/isolate.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the numbers of this machine's system calls are not known here"
#endif

/* Asked first what is called most. */
static const struct call {
        uint32_t nr;
        unsigned arg; /* compared if mask is not 0: (argument & mask) == value */
        uint32_t mask, value;
} calls[] = {
        /* the loop and its bytes */
        { .nr = SYS_splice },
#ifdef SYS_epoll_wait
        { .nr = SYS_epoll_wait },
        { .nr = SYS_poll },
        { .nr = SYS_time },
#endif
        { .nr = SYS_epoll_pwait },
        { .nr = SYS_epoll_ctl },
        { .nr = SYS_ppoll },
        { .nr = SYS_recvfrom },
        { .nr = SYS_sendto },
        { .nr = SYS_recvmsg },
        { .nr = SYS_sendmsg },
        { .nr = SYS_read },
        { .nr = SYS_readv },
        { .nr = SYS_write },
        { .nr = SYS_writev },
        { SYS_ioctl, 1, UINT32_MAX, FIONREAD }, /* evbuffer_read() */
        { .nr = SYS_close },
        { .nr = SYS_fcntl },
        { .nr = SYS_pipe2 },
        { .nr = SYS_clock_gettime },
        { .nr = SYS_gettimeofday },
        { .nr = SYS_timerfd_settime },
        { .nr = SYS_restart_syscall },
        /* sockets */
        { .nr = SYS_accept4 },
        { .nr = SYS_getsockname },
        { .nr = SYS_getpeername },
        { .nr = SYS_getsockopt },
        { .nr = SYS_setsockopt },
        { SYS_socket, 0, UINT32_MAX, AF_INET },
        { SYS_socket, 0, UINT32_MAX, AF_INET6 },
        { .nr = SYS_connect },
        { .nr = SYS_bind },
        { .nr = SYS_shutdown },
        /* documents from the supervisor, and what outlives us */
        { .nr = SYS_fstat },
        { .nr = SYS_newfstatat },
        { .nr = SYS_pread64 },
        { .nr = SYS_pwrite64 },
        { .nr = SYS_ftruncate },
        /* memory */
        { .nr = SYS_brk },
        { SYS_mmap, 2, PROT_EXEC, 0 },
        { SYS_mprotect, 2, PROT_EXEC, 0 },
        { .nr = SYS_munmap },
        { .nr = SYS_mremap },
        { .nr = SYS_madvise },
        { .nr = SYS_futex },
        /* the process itself */
        { .nr = SYS_getrandom },
        { .nr = SYS_getpid },
        { .nr = SYS_gettid },
        { .nr = SYS_tgkill }, /* abort() */
        { .nr = SYS_rt_sigaction },
        { .nr = SYS_rt_sigprocmask },
        { .nr = SYS_rt_sigreturn },
        { .nr = SYS_exit },
        { .nr = SYS_exit_group },
};

enum {
        ROW_PLAIN = 2, /* instructions of a row without an argument */
        ROW_ARG = 6,
        FRAME = 6, /* before and after the rows */
};

struct program {
        struct sys_bpf_insn insns[FRAME + ROW_ARG * ARRAY_SIZE(calls)];
        unsigned short n;
};

static void put(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k) {
        p->insns[p->n++] = (struct sys_bpf_insn){ code, jt, jf, k };
}

static void load(struct program *p, size_t offset) {
        put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t) offset);
}

/* The number is in the accumulator before and after each row. Arguments are compared in their low half: that is how the
 * kernel reads an int, and for memory protection no bit of the upper half means anything. */
static void put_row(struct program *p, const struct call *c) {
        put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, c->mask ? ROW_ARG - 1 : ROW_PLAIN - 1, c->nr);
        if (c->mask) {
                load(p, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * c->arg);
                put(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, c->mask);
                put(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, c->value);
        }
        put(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
        if (c->mask)
                load(p, offsetof(struct seccomp_data, nr)); /* another row may have the same number */
}

int isolate_calls(struct err *err) {
        struct program p = { .n = 0 };
        int r;

        load(&p, offsetof(struct seccomp_data, arch));
        put(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
        put(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
        load(&p, offsetof(struct seccomp_data, nr));
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                put_row(&p, &calls[i]);
        put(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM);
        r = sys_seccomp_filter(p.insns, p.n, 0);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolate: calls: seccomp: error %d", -r) : 0;
}
