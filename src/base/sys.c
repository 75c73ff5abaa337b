/* sys.c - see sys.h. No function here uses libc: each is one call to the kernel. */
#include "base/sys.h"

#include <poll.h>
#include <time.h>

#include "base/sysraw.h"

/* Numbers above 424 are the same on every architecture; libc's headers may lack the newer ones. */
enum {
        NR_PIDFD_SEND_SIGNAL = 424,
        NR_OPEN_TREE = 428,
        NR_MOVE_MOUNT = 429,
        NR_FSOPEN = 430,
        NR_FSCONFIG = 431,
        NR_FSMOUNT = 432,
        NR_FSPICK = 433,
        NR_PIDFD_OPEN = 434,
        NR_CLONE3 = 435,
        NR_CLOSE_RANGE = 436,
        NR_OPENAT2 = 437,
        NR_MOUNT_SETATTR = 442,
        NR_LANDLOCK_CREATE = 444,
        NR_LANDLOCK_ADD = 445,
        NR_LANDLOCK_RESTRICT = 446,
};
enum { FSPICK_CLOEXEC = 1, FSPICK_EMPTY = 8 };

long sys_clone_run(const struct sys_clone_args *args, int (*fn)(void *), void *arg) {
        long ret;

        /* clone3 returns twice. In the child the stack is the new one, so nothing of this frame may be used: the
         * function and its argument wait in registers that the call preserves. */
#if defined(__x86_64__)
        register int (*r12)(void *) __asm__("r12") = fn;
        register void *r13 __asm__("r13") = arg;

        __asm__ volatile("syscall\n"
                         "test %%eax, %%eax\n"
                         "jnz 1f\n"
                         "xor %%ebp, %%ebp\n"
                         "and $-16, %%rsp\n"
                         "mov %%r13, %%rdi\n"
                         "call *%%r12\n"
                         "mov %%eax, %%edi\n"
                         "mov %4, %%eax\n"
                         "syscall\n"
                         "1:\n"
                         : "=a"(ret)
                         : "a"((long) NR_CLONE3), "D"(args), "S"(sizeof(*args)), "i"(SYS_exit), "r"(r12), "r"(r13)
                         : "rcx", "r11", "memory");
#else
        register long x8 __asm__("x8") = NR_CLONE3;
        register long x0 __asm__("x0") = (long) args;
        register long x1 __asm__("x1") = (long) sizeof(*args);
        register int (*x20)(void *) __asm__("x20") = fn;
        register void *x21 __asm__("x21") = arg;

        __asm__ volatile("svc #0\n"
                         "cbnz x0, 1f\n"
                         "mov x29, #0\n"
                         "mov x0, x21\n"
                         "blr x20\n"
                         "mov x8, %2\n"
                         "svc #0\n"
                         "1:\n"
                         : "+r"(x0)
                         : "r"(x8), "i"(SYS_exit), "r"(x1), "r"(x20), "r"(x21)
                         : "memory", "cc", "x30");
        ret = x0;
#endif
        return ret;
}

int sys_pidfd_open(pid_t pid) {
        return (int) SYS2(NR_PIDFD_OPEN, pid, 0);
}

int sys_pidfd_send_signal(int pidfd, int sig) {
        return (int) SYS4(NR_PIDFD_SEND_SIGNAL, pidfd, sig, 0, 0);
}

int sys_unshare(unsigned flags) {
        return (int) SYS1(SYS_unshare, flags);
}

int sys_setns(int fd, unsigned type) {
        return (int) SYS2(SYS_setns, fd, type);
}

int sys_execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags) {
        return (int) SYS5(SYS_execveat, fd, path, argv, envp, flags);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags) {
        return (int) SYS3(NR_CLOSE_RANGE, first, last, flags);
}

_Noreturn void sys_exit(int status) {
        for (;;)
                (void) SYS1(SYS_exit, status);
}

int sys_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
        return (int) SYS5(SYS_prctl, op, a, b, c, d);
}

int sys_capset(uint64_t permitted, uint64_t effective, uint64_t inheritable) {
        struct {
                uint32_t version;
                int pid;
        } head = { 0x20080522, 0 };
        struct {
                uint32_t effective, permitted, inheritable;
        } data[2] = {
                { (uint32_t) effective, (uint32_t) permitted, (uint32_t) inheritable },
                { (uint32_t) (effective >> 32), (uint32_t) (permitted >> 32), (uint32_t) (inheritable >> 32) },
        };

        return (int) SYS2(SYS_capset, &head, data);
}

int sys_kill(pid_t pid, int sig) {
        return (int) SYS2(SYS_kill, pid, sig);
}

long sys_ptrace(long op, pid_t pid, unsigned long addr, unsigned long data) {
        return SYS4(SYS_ptrace, op, pid, addr, data);
}

int sys_setaffinity(const void *cpus, size_t n) {
        return (int) SYS3(SYS_sched_setaffinity, 0, n, cpus);
}

int sys_setresuid(uid_t id) {
        return (int) SYS3(SYS_setresuid, id, id, id);
}

int sys_setresgid(gid_t id) {
        return (int) SYS3(SYS_setresgid, id, id, id);
}

int sys_setgroups_none(void) {
        return (int) SYS2(SYS_setgroups, 0, 0);
}

int sys_setsid(void) {
        return (int) SYS0(SYS_setsid);
}

int sys_sethostname(const char *name, size_t n) {
        return (int) SYS2(SYS_sethostname, name, n);
}

int sys_futex_wait(uint32_t *word, uint32_t value, unsigned ms) {
        struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000 };

        return (int) SYS4(SYS_futex, word, 0, value, &ts);
}

int sys_futex_wake(uint32_t *word) {
        return (int) SYS3(SYS_futex, word, 1, 0x7fffffff);
}

int sys_poll_in(int fd, int ms) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000 };
        long r = SYS5(SYS_ppoll, &p, 1, ms < 0 ? NULL : &ts, 0, 8);

        return r > 0 ? p.revents : (int) r;
}

int sys_openat(int dir_fd, const char *path, int flags, unsigned mode) {
        return (int) SYS4(SYS_openat, dir_fd, path, flags, mode);
}

int sys_openat2(int dir_fd, const char *path, int flags, unsigned mode, unsigned resolve) {
        struct {
                uint64_t flags, mode, resolve;
        } how = { (uint64_t) (unsigned) flags, mode, resolve };

        return (int) SYS4(NR_OPENAT2, dir_fd, path, &how, sizeof(how));
}

int sys_close(int fd) {
        return (int) SYS1(SYS_close, fd);
}

ssize_t sys_read(int fd, void *p, size_t n) {
        return SYS3(SYS_read, fd, p, n);
}

ssize_t sys_write(int fd, const void *p, size_t n) {
        return SYS3(SYS_write, fd, p, n);
}

int sys_mkdirat(int dir_fd, const char *path, unsigned mode) {
        return (int) SYS3(SYS_mkdirat, dir_fd, path, mode);
}

int sys_symlinkat(const char *target, int dir_fd, const char *path) {
        return (int) SYS3(SYS_symlinkat, target, dir_fd, path);
}

int sys_mkcharat(int dir_fd, const char *path, unsigned mode, unsigned major, unsigned minor) {
        enum { CHAR_DEVICE = 0020000 };

        /* The kernel's own encoding of a device number; both parts are small here. */
        return (int) SYS4(SYS_mknodat, dir_fd, path, CHAR_DEVICE | mode, (major & 0xfff) << 8 | (minor & 0xff));
}

int sys_fchownat(int dir_fd, const char *path, uid_t uid, gid_t gid) {
        enum { NOFOLLOW = 0x100 };

        return (int) SYS5(SYS_fchownat, dir_fd, path, uid, gid, NOFOLLOW);
}

int sys_unlinkat(int dir_fd, const char *path, int flags) {
        return (int) SYS3(SYS_unlinkat, dir_fd, path, flags);
}

int sys_fchdir(int fd) {
        return (int) SYS1(SYS_fchdir, fd);
}

int sys_chdir(const char *path) {
        return (int) SYS1(SYS_chdir, path);
}

int sys_open_tree(int dir_fd, const char *path, unsigned flags) {
        enum { CLOEXEC = 02000000 };

        return (int) SYS3(NR_OPEN_TREE, dir_fd, path, flags | CLOEXEC);
}

int sys_move_mount(int from_fd, int to_dir_fd, const char *path) {
        unsigned flags = SYS_MOVE_F_EMPTY | (path[0] ? 0 : SYS_MOVE_T_EMPTY);

        return (int) SYS5(NR_MOVE_MOUNT, from_fd, "", to_dir_fd, path, flags);
}

int sys_mount_setattr(int fd, const char *path, unsigned flags, const struct sys_mount_attr *attr) {
        return (int) SYS5(NR_MOUNT_SETATTR, fd, path, flags, attr, sizeof(*attr));
}

int sys_fsopen(const char *type) {
        return (int) SYS2(NR_FSOPEN, type, 1);
}

int sys_fspick(int dir_fd, const char *path) {
        return (int) SYS3(NR_FSPICK, dir_fd, path, FSPICK_CLOEXEC | (path[0] ? 0 : FSPICK_EMPTY));
}

int sys_fsconfig(int fd, unsigned cmd, const char *key, const char *value) {
        return (int) SYS5(NR_FSCONFIG, fd, cmd, key, value, 0);
}

int sys_fsmount(int fd, unsigned attrs) {
        return (int) SYS3(NR_FSMOUNT, fd, 1, attrs);
}

int sys_pivot_root(const char *new_root, const char *put_old) {
        return (int) SYS2(SYS_pivot_root, new_root, put_old);
}

int sys_umount2(const char *path, int flags) {
        return (int) SYS2(SYS_umount2, path, flags);
}

int sys_bind(const char *from, const char *to) {
        enum { BIND = 4096 };

        return (int) SYS5(SYS_mount, from, to, 0, BIND, 0);
}

int sys_landlock_create(const struct sys_landlock_attr *attr, size_t size) {
        return (int) SYS3(NR_LANDLOCK_CREATE, attr, size, attr ? 0 : 1);
}

int sys_landlock_add_path(int ruleset_fd, uint64_t allowed, int path_fd) {
        struct {
                uint64_t allowed;
                int32_t fd;
        } __attribute__((packed)) rule = { allowed, path_fd };

        return (int) SYS4(NR_LANDLOCK_ADD, ruleset_fd, 1, &rule, 0);
}

int sys_landlock_restrict(int ruleset_fd, unsigned flags) {
        return (int) SYS2(NR_LANDLOCK_RESTRICT, ruleset_fd, flags);
}

int sys_seccomp_filter(const struct sys_bpf_insn *insns, unsigned short n, unsigned flags) {
        struct {
                unsigned short n;
                const struct sys_bpf_insn *insns;
        } prog = { n, insns };

        return (int) SYS3(SYS_seccomp, 1, flags, &prog);
}
