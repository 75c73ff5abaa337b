/*
 * sys.h - system calls that libc does not wrap, or wraps with errno. All return a value or a negative errno, use no
 * libc state, and are therefore safe in a child that shares its parent's memory.
 *
 * Constants are our own copies under SYS_ names: Debian 12's kernel headers end at Landlock ABI 2, and musl has none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- processes --- */
enum {
        SYS_CLONE_VM = 0x100,
        SYS_CLONE_FILES = 0x400,
        SYS_CLONE_PIDFD = 0x1000,
        SYS_CLONE_NEWTIME = 0x80,
        SYS_CLONE_NEWNS = 0x20000,
        SYS_CLONE_NEWCGROUP = 0x2000000,
        SYS_CLONE_NEWUTS = 0x4000000,
        SYS_CLONE_NEWIPC = 0x8000000,
        SYS_CLONE_NEWUSER = 0x10000000,
        SYS_CLONE_NEWPID = 0x20000000,
        SYS_CLONE_NEWNET = 0x40000000,
};
#define SYS_CLONE_INTO_CGROUP 0x200000000ull

struct sys_clone_args {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size,
                cgroup;
};

/*
 * Starts fn(arg) in a new process on its own stack (top = stack + size); never returns into the caller's frame there.
 * fn's result is the exit status. Returns the pid. For flags that share memory the stack must outlive the child.
 */
long sys_clone_run(const struct sys_clone_args *args, int (*fn)(void *), void *arg);
int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_unshare(unsigned flags);
int sys_setns(int fd, unsigned type);
int sys_execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags);
int sys_close_range(unsigned first, unsigned last, unsigned flags); /* flag 2: unshare the table first */
_Noreturn void sys_exit(int status);
int sys_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int sys_capset(uint64_t permitted, uint64_t effective, uint64_t inheritable);
int sys_kill(pid_t pid, int sig);
long sys_ptrace(long op, pid_t pid, unsigned long addr, unsigned long data);
int sys_setresuid(uid_t id);
int sys_setaffinity(const void *cpus, size_t n); /* of the calling thread; n bytes of mask */
int sys_setresgid(gid_t id);
int sys_setgroups_none(void);
int sys_setsid(void);
int sys_sethostname(const char *name, size_t n);
/* Waits while *word == value, at most ms milliseconds. 0, -EAGAIN (changed already), -ETIMEDOUT, -EINTR. */
int sys_futex_wait(uint32_t *word, uint32_t value, unsigned ms);
int sys_futex_wake(uint32_t *word);
/* Waits for POLLIN on one descriptor, ms < 0: for ever. Returns revents or 0 on time-out. */
int sys_poll_in(int fd, int ms);

/* --- files --- */
enum { SYS_RESOLVE_NO_MAGICLINKS = 2, SYS_RESOLVE_NO_SYMLINKS = 4, SYS_RESOLVE_BENEATH = 8, SYS_RESOLVE_IN_ROOT = 16 };
int sys_openat(int dir_fd, const char *path, int flags, unsigned mode);
int sys_openat2(int dir_fd, const char *path, int flags, unsigned mode, unsigned resolve);
int sys_close(int fd);
ssize_t sys_read(int fd, void *p, size_t n);
ssize_t sys_write(int fd, const void *p, size_t n);
int sys_mkdirat(int dir_fd, const char *path, unsigned mode);
int sys_symlinkat(const char *target, int dir_fd, const char *path);
int sys_mkcharat(int dir_fd, const char *path, unsigned mode, unsigned major, unsigned minor);
int sys_fchownat(int dir_fd, const char *path, uid_t uid, gid_t gid); /* follows no link */
int sys_unlinkat(int dir_fd, const char *path, int flags);
int sys_fchdir(int fd);
int sys_chdir(const char *path);

/* --- mounts --- */
enum { SYS_OPEN_TREE_CLONE = 1, SYS_AT_RECURSIVE = 0x8000, SYS_AT_EMPTY_PATH = 0x1000 };
enum { SYS_MOVE_F_EMPTY = 4, SYS_MOVE_T_EMPTY = 0x40 };
enum {
        SYS_MOUNT_RDONLY = 1,
        SYS_MOUNT_NOSUID = 2,
        SYS_MOUNT_NODEV = 4,
        SYS_MOUNT_NOEXEC = 8,
        SYS_MOUNT_IDMAP = 0x100000
};
enum { SYS_FSCONFIG_FLAG = 0, SYS_FSCONFIG_STRING = 1, SYS_FSCONFIG_CREATE = 6, SYS_FSCONFIG_RECONFIGURE = 7 };
#define SYS_MS_PRIVATE (1u << 18)
#define SYS_MS_SHARED (1u << 20)

struct sys_mount_attr {
        uint64_t attr_set, attr_clr, propagation, userns_fd;
};

int sys_open_tree(int dir_fd, const char *path, unsigned flags);
/* Moves the mount behind from_fd onto path below to_dir_fd ("" = to_dir_fd itself). */
int sys_move_mount(int from_fd, int to_dir_fd, const char *path);
int sys_mount_setattr(int fd, const char *path, unsigned flags, const struct sys_mount_attr *attr);
int sys_fsopen(const char *type);
int sys_fspick(int dir_fd, const char *path); /* "": dir_fd itself */
int sys_fsconfig(int fd, unsigned cmd, const char *key, const char *value);
int sys_fsmount(int fd, unsigned attrs);
int sys_pivot_root(const char *new_root, const char *put_old);
int sys_umount2(const char *path, int flags);
/* mount --bind: one call where open_tree() and move_mount() are three. Links on the way are followed. */
int sys_bind(const char *from, const char *to);

/* --- Landlock and seccomp --- */
struct sys_landlock_attr {
        uint64_t handled_fs, handled_net, scoped;
};
/* attr = NULL: the highest ABI of this kernel. */
int sys_landlock_create(const struct sys_landlock_attr *attr, size_t size);
int sys_landlock_add_path(int ruleset_fd, uint64_t allowed, int path_fd);
int sys_landlock_restrict(int ruleset_fd, unsigned flags);

struct sys_bpf_insn {
        uint16_t code;
        uint8_t jt, jf;
        uint32_t k;
};
enum { SYS_SECCOMP_NEW_LISTENER = 8, SYS_SECCOMP_WAIT_KILLABLE = 32 };
/* Installs the filter; with NEW_LISTENER returns the notification descriptor. */
int sys_seccomp_filter(const struct sys_bpf_insn *insns, unsigned short n, unsigned flags);
