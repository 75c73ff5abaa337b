/*
 * calls.c - group C: one attempt per dangerous system call. The table, and what its functions share.
 */
#include "probe/calls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"

void calls_answer(struct probe_result *r, long ret) {
        if (ret == -EPERM || ret == -ENOSYS || ret == -EACCES) {
                probe_stopped(r, (int) -ret, "");
                return;
        }
        probe_reached(r, ret < 0 ? "the kernel itself answered" : "the call worked");
        r->err_no = ret < 0 ? (int) -ret : 0;
}

void calls_success(struct probe_result *r, long ret) {
        if (ret < 0)
                probe_stopped(r, (int) -ret, "");
        else
                probe_reached(r, "the call worked");
}

void calls_accept(struct probe_result *r, long ret, const char *why) {
        if (ret < 0) {
                probe_stopped(r, (int) -ret, "");
                return;
        }
        probe_reached(r, why);
        r->verdict = PROBE_ACCEPTED;
}

void calls_control(struct probe_result *r, long ret) {
        calls_accept(r, ret, "works, as it should");
}

int calls_in_child(int (*fn)(void *), void *arg) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(fn(arg));
        }
        if (pid < 0)
                return -1;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int calls_scratch(char *path, size_t cap) {
        static const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm", "/run" };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                (void) snprintf(path, cap, "%s/probe-XXXXXX", places[i]);
                if (mkdtemp(path))
                        return 0;
        }
        return -ENOENT;
}

#define CRIT(id, fn, what, how)                                                                                        \
        { id, PROBE_CRIT, what, how, calls_##fn }
#define HIGH(id, fn, what, how)                                                                                        \
        { id, PROBE_HIGH, what, how, calls_##fn }
#define MED(id, fn, what, how)                                                                                         \
        { id, PROBE_MED, what, how, calls_##fn }
#define LOW(id, fn, what, how)                                                                                         \
        { id, PROBE_LOW, what, how, calls_##fn }
#define CONTROL(id, fn, what)                                                                                          \
        { id, PROBE_CONTROL, what, "", calls_##fn }

const struct probe_attempt probe_calls[] = {
        HIGH("C01a", c01a, "io_uring_setup", "CVE-2022-2602"),
        HIGH("C01b", c01b, "io_uring_enter", "CVE-2022-2602"),
        HIGH("C01c", c01c, "io_uring_register", "CVE-2023-2598"),
        HIGH("C02a", c02a, "bpf with attributes that are too large", "CVE-2020-8835"),
        HIGH("C02b", c02b, "bpf: create a map", "CVE-2021-3490"),
        HIGH("C02c", c02c, "bpf: load a socket filter", "CVE-2022-23222"),
        HIGH("C03a", c03a, "userfaultfd, user mode only", "race helper"),
        HIGH("C03b", c03b, "open /dev/userfaultfd", "race helper"),
        MED("C04a", c04a, "keyctl: id of the session keyring", "shared keyrings"),
        MED("C04b", c04b, "add_key", "CVE-2017-15274"),
        MED("C04c", c04c, "request_key", "key upcall on the host"),
        MED("C04d", c04d, "keyctl: join a new session keyring", "CVE-2016-0728"),
        MED("C04e", c04e, "keyctl with an unknown operation", "call surface"),
        HIGH("C05a", c05a, "ptrace: seize an own child", "CVE-2019-13272"),
        HIGH("C05b", c05b, "ptrace: seize process 1", "runtime injection"),
        HIGH("C06a", c06a, "process_vm_readv of process 1", "memory theft"),
        HIGH("C06b", c06b, "process_vm_writev to process 1, nowhere mapped", "runtime injection"),
        HIGH("C06c", c06c, "pidfd_getfd: take descriptor 0 of process 1", "descriptor theft"),
        HIGH("C06d", c06d, "kcmp with process 1", "kernel pointer order"),
        HIGH("C06e", c06e, "process_madvise", "call surface"),
        HIGH("C06f", c06f, "process_mrelease", "call surface"),
        HIGH("C07a", c07a, "perf_event_open with a bad address", "CVE-2013-2094"),
        HIGH("C07b", c07b, "perf_event_open: count the own task clock", "CVE-2022-1729"),
        CRIT("C08a", c08a, "kexec_load with invalid flags", "kernel replacement"),
        CRIT("C08b", c08b, "kexec_file_load with invalid flags", "kernel replacement"),
        CRIT("C09a", c09a, "init_module, no bytes", "kernel code"),
        CRIT("C09b", c09b, "finit_module with invalid flags", "kernel code"),
        CRIT("C09c", c09c, "delete_module with a bad address", "kernel code"),
        MED("C10a", c10a, "name_to_handle_at of /", "Shocker 2014"),
        CRIT("C10b", c10b, "open_by_handle_at of a root", "Shocker 2014"),
        MED("C10c", c10c, "open_by_handle_at with a bad address", "call surface"),
        HIGH("C11a", c11a, "mount a tmpfs", "mount"),
        HIGH("C11b", c11b, "mount a fresh proc", "mask bypass"),
        HIGH("C11c", c11c, "bind mount of /", "mount"),
        HIGH("C11d", c11d, "remount of a folder that is no mount", "mount"),
        HIGH("C11e", c11e, "mount an overlay", "CVE-2023-0386"),
        HIGH("C11f", c11f, "mount cgroup2", "CVE-2022-0492"),
        HIGH("C11g", c11g, "mount with bad addresses", "call surface"),
        HIGH("C11h", c11h, "umount2 with invalid flags", "call surface"),
        HIGH("C12a", c12a, "fsopen tmpfs", "CVE-2022-0185"),
        HIGH("C12b", c12b, "fsconfig", "CVE-2022-0185"),
        HIGH("C12c", c12c, "fsmount", "CVE-2021-41133"),
        HIGH("C12d", c12d, "fspick", "CVE-2021-41133"),
        HIGH("C12e", c12e, "open_tree of /", "CVE-2021-41133"),
        HIGH("C12f", c12f, "open_tree of / as a copy", "CVE-2021-41133"),
        HIGH("C12g", c12g, "move_mount", "CVE-2021-41133"),
        HIGH("C12h", c12h, "mount_setattr", "CVE-2021-41133"),
        HIGH("C12i", c12i, "open_tree_attr", "new-call drift"),
        HIGH("C13a", c13a, "may unmount what covers a part of /proc", "unmask"),
        HIGH("C13b", c13b, "may unmount /proc", "unmask"),
        HIGH("C13c", c13c, "may unmount /dev", "unmask"),
        HIGH("C14a", c14a, "pivot_root", "root change"),
        HIGH("C14b", c14b, "chroot to /", "root change"),
        HIGH("C14c", c14c, "chroot twice with a held folder", "classic chroot break"),
        HIGH("C14d", c14d, "chroot with a bad address", "call surface"),
        LOW("C15a", c15a, "personality: no address randomisation", "ASLR off"),
        LOW("C15b", c15b, "personality: readable means executable", "NX off"),
        LOW("C15c", c15c, "personality: 32-bit Linux", "compat entry"),
        LOW("C15d", c15d, "personality: old version number", "compat entry"),
        HIGH("C16a", c16a, "int 0x80: getpid", "arch confusion"),
        HIGH("C16b", c16b, "int 0x80: keyctl", "arch confusion"),
        HIGH("C17a", c17a, "x32 number: getpid", "number confusion"),
        HIGH("C17b", c17b, "x32 number: keyctl", "number confusion"),
        HIGH("C17c", c17c, "x32 number: ptrace", "number confusion"),
        HIGH("C18a", c18a, "execute a 32-bit program", "arch confusion"),
        HIGH("C19a", c19a, "personality with a set upper half", "CVE-2019-10063"),
        HIGH("C19b", c19b, "unshare a user namespace, upper half set", "CVE-2019-10063"),
        HIGH("C19c", c19c, "clone a user namespace, upper half set", "CVE-2019-10063"),
        HIGH("C19d", c19d, "socket AF_ALG, upper half set", "CVE-2019-10063"),
        HIGH("C19e", c19e, "socket netfilter, upper halves set", "CVE-2019-10063"),
        HIGH("C19f", c19f, "prctl with a set upper half", "CVE-2019-10063"),
        HIGH("C19g", c19g, "call number with a set upper half: keyctl", "CVE-2019-10063"),
        HIGH("C20a", c20a, "TIOCSTI on the caller's terminal, nothing to push", "CVE-2017-5226"),
        HIGH("C20b", c20b, "TIOCSTI on an own terminal, nothing to push", "CVE-2017-5226"),
        HIGH("C20c", c20c, "TIOCLINUX on the caller's terminal", "CVE-2023-28100"),
        HIGH("C20d", c20d, "TIOCSETD on an own terminal", "line discipline autoload"),
        HIGH("C20e", c20e, "TIOCSETD with a set upper half", "CVE-2019-10063"),
        MED("C21a", c21a, "call number -1", "table bounds"),
        MED("C21b", c21b, "call number 2147483647", "table bounds"),
        MED("C21c", c21c, "call number -2147483648", "table bounds"),
        MED("C21d", c21d, "numbers 470 to 1023", "new-call drift"),
        HIGH("C22a", c22a, "reboot with bad magic", "denial of service"),
        HIGH("C22b", c22b, "swapon with invalid flags", "denial of service"),
        HIGH("C22c", c22c, "swapoff with a bad address", "denial of service"),
        HIGH("C22d", c22d, "acct with a bad address", "denial of service"),
        HIGH("C22e", c22e, "quotactl with a bad command", "denial of service"),
        HIGH("C22f", c22f, "quotactl_fd with a bad command", "denial of service"),
        MED("C23a", c23a, "settimeofday", "time tampering"),
        MED("C23b", c23b, "clock_settime", "time tampering"),
        MED("C23c", c23c, "adjtimex", "time tampering"),
        MED("C23d", c23d, "clock_adjtime", "time tampering"),
        LOW("C24a", c24a, "sethostname", "spoofing"),
        LOW("C24b", c24b, "setdomainname", "spoofing"),
        MED("C25a", c25a, "syslog: size of the kernel log", "kernel log"),
        MED("C25b", c25b, "syslog: read the kernel log", "kernel log"),
        MED("C25c", c25c, "syslog with an unknown operation", "call surface"),
        MED("C26a", c26a, "fanotify_init by file id", "watching the host"),
        MED("C26b", c26b, "fanotify_mark", "watching the host"),
        LOW("C27a", c27a, "move_pages", "memory policy"),
        LOW("C27b", c27b, "migrate_pages", "memory policy"),
        LOW("C27c", c27c, "mbind", "memory policy"),
        LOW("C27d", c27d, "set_mempolicy", "memory policy"),
        LOW("C27e", c27e, "get_mempolicy", "memory policy"),
        LOW("C27f", c27f, "set_mempolicy_home_node", "memory policy"),
        LOW("C28a", c28a, "execute a file that has no name", "fileless execution"),
        MED("C29a", c29a, "memfd_secret", "new-call drift"),
        LOW("C29b", c29b, "map_shadow_stack", "new-call drift"),
        LOW("C29c", c29c, "mseal", "new-call drift"),
        LOW("C29d", c29d, "cachestat", "new-call drift"),
        LOW("C29e", c29e, "statmount", "new-call drift"),
        LOW("C29f", c29f, "listmount", "new-call drift"),
        LOW("C29g", c29g, "pkey_alloc", "rare call"),
        LOW("C29h", c29h, "remap_file_pages", "rare call"),
        LOW("C29i", c29i, "lsm_list_modules", "new-call drift"),
        LOW("C29j", c29j, "futex_waitv", "new-call drift"),
        LOW("C29k", c29k, "mq_open with a bad address", "CVE-2017-11176"),
        LOW("C30a", c30a, "memory that is writable and executable", ""),
        LOW("C30b", c30b, "data made executable", ""),
        MED("C31a", c31a, "map page 0", "null pointer exploits"),
        LOW("C32a", c32a, "seccomp filter with a listener", "notify confusion"),
        LOW("C32b", c32b, "seccomp: sizes of notifications", "notify confusion"),
        MED("C33a", c33a, "vmsplice", "CVE-2008-0600"),
        MED("C33b", c33b, "tee", "rare call"),
        CRIT("C33c", c33c, "write to a read-only file through a pipe", "CVE-2022-0847"),
        CRIT("C34a", c34a, "write to a read-only file by a copy race", "CVE-2016-5195"),
        HIGH("C35a", c35a, "modify_ldt: read", "CVE-2017-17053"),
        HIGH("C35b", c35b, "iopl with a bad level", "port access"),
        HIGH("C35c", c35c, "ioperm with a bad range", "port access"),
        LOW("C36a", c36a, "uselib", "old call"),
        LOW("C36b", c36b, "ustat", "old call"),
        LOW("C36c", c36c, "sysfs", "old call"),
        LOW("C36d", c36d, "lookup_dcookie", "old call"),
        LOW("C37a", c37a, "io_setup", "CVE-2016-10044"),
        LOW("C37b", c37b, "io_submit", "CVE-2016-10044"),
        LOW("C38", c38a, "all numbers 0 to 469, every argument -1", "attack surface"),
        MED("C39a", c39a, "realtime scheduling, FIFO", "starving the host"),
        MED("C39b", c39b, "realtime scheduling, round robin, reset on fork", "starving the host"),
        MED("C39c", c39c, "deadline scheduling", "starving the host"),
        MED("C39d", c39d, "nice -20", "starving the host"),
        MED("C39e", c39e, "lock 64 MiB of memory", "starving the host"),
        MED("C39f", c39f, "raise a hard resource limit", "starving the host"),
        LOW("C40a", c40a, "realtime i/o priority", "starving the host"),
        LOW("C40b", c40b, "realtime i/o priority, upper half set", "CVE-2019-10063"),
        LOW("C41a", c41a, "prctl PR_SET_MM", "hiding"),
        LOW("C41b", c41b, "prctl PR_SET_PTRACER any", "weakening"),
        LOW("C41c", c41c, "prctl PR_SCHED_CORE", "call surface"),
        LOW("C41d", c41d, "prctl PR_TASK_PERF_EVENTS_DISABLE", "call surface"),
        LOW("C41e", c41e, "prctl PR_MCE_KILL", "call surface"),
        LOW("C41f", c41f, "prctl PR_SET_SYSCALL_USER_DISPATCH", "call surface"),
        LOW("C42a", c42a, "futex: requeue a PI futex onto itself", "CVE-2014-3153"),
        LOW("C43a", c43a, "vhangup in a session without terminal", "terminal"),
        LOW("C43b", c43b, "TIOCVHANGUP on an own terminal", "terminal"),
        CONTROL("C44a", c44a, "Landlock can be asked for"),
        CONTROL("C44b", c44b, "a Landlock rule set on top"),
        { 0 },
};
