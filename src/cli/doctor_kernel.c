/* doctor_kernel.c - checks of namespaces, filters and identities. Each runs in a child that it may spoil. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/doctor.h"
#include "evidence/evidence.h"

/* 5.19: refused calls are reported without being restarted by signals (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV). */
enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 19, LANDLOCK_SCOPES = 6 };

/* A number in a file of /proc/sys; -1 when there is none. */
static long sysctl_get(const char *path) {
        char text[32];
        uint64_t v;
        int n = fd_read_at(AT_FDCWD, path, text, sizeof(text));

        if (n <= 0)
                return -1;
        text[strcspn(text, "\n")] = '\0';
        return str_to_u64(text, INT32_MAX, &v) < 0 ? -1 : (long) v;
}

/* "6.18.44-x" into 6 and 18. */
static bool release_parse(const char *release, uint64_t ret[2]) {
        char text[16];

        for (size_t i = 0; i < 2; i++) {
                size_t n = strspn(release, "0123456789");

                if (n == 0 || n >= sizeof(text))
                        return false;
                memcpy(text, release, n);
                text[n] = '\0';
                if (str_to_u64(text, 100000, &ret[i]) < 0)
                        return false;
                release += n + (release[n] == '.');
        }
        return true;
}

void doctor_kernel(struct doctor_finding *f) {
        struct utsname uts;
        uint64_t v[2] = { 0, 0 };

        if (uname(&uts) < 0 || !release_parse(uts.release, v)) {
                doctor_found(f, DOCTOR_UNKNOWN, "the release cannot be read");
                return;
        }
        if (v[0] > KERNEL_MAJOR || (v[0] == KERNEL_MAJOR && v[1] >= KERNEL_MINOR)) {
                doctor_found(f, DOCTOR_OK, "Linux %.64s on %.32s", uts.release, uts.machine);
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "Linux %.64s on %.32s is too old", uts.release, uts.machine);
        doctor_remedy(f, "boot Linux %d.%d or later (Debian 11: apt-get install -t bullseye-backports linux-image-%s)",
                      KERNEL_MAJOR, KERNEL_MINOR, str_eq(uts.machine, "aarch64") ? "arm64" : "amd64");
}

void doctor_caller(struct doctor_finding *f) {
        static const struct {
                unsigned bit;
                const char *name;
        } needed[] = {
                { 0, "CAP_CHOWN" },   { 5, "CAP_KILL" },       { 6, "CAP_SETGID" },     { 7, "CAP_SETUID" },
                { 8, "CAP_SETPCAP" }, { 12, "CAP_NET_ADMIN" }, { 21, "CAP_SYS_ADMIN" }, { 27, "CAP_MKNOD" },
        };
        struct evidence_status s;
        char text[4096];

        if (geteuid() != 0) {
                doctor_found(f, DOCTOR_OK, "uid %u: rootless, through user namespaces", (unsigned) geteuid());
                return;
        }
        if (fd_read_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) < 0 || evidence_parse_status(text, &s) < 0) {
                doctor_found(f, DOCTOR_UNKNOWN, "/proc/self/status cannot be read");
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                if (!(s.effective & (1ull << needed[i].bit))) {
                        doctor_found(f, DOCTOR_MISSING, "root, but without %s: a container?", needed[i].name);
                        doctor_remedy(f, "run gabion on the host itself, or give the container all capabilities "
                                         "(docker run --privileged ...)");
                        return;
                }
        doctor_found(f, DOCTOR_OK, "root, with the capabilities that are needed");
}

/* The namespace, and in it what AppArmor takes away on Ubuntu: the right to use its capabilities. */
static int userns_try(void) {
        int r = sys_unshare(SYS_CLONE_NEWUSER);

        return r < 0 ? r : sys_unshare(SYS_CLONE_NEWNS | SYS_CLONE_NEWUTS);
}

void doctor_userns(struct doctor_finding *f) {
        long max = sysctl_get("/proc/sys/user/max_user_namespaces");
        long clone_allowed = sysctl_get("/proc/sys/kernel/unprivileged_userns_clone");
        int r = userns_try();

        if (r == 0) {
                doctor_found(f, DOCTOR_OK, "one was made (at most %ld)", max);
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "none can be made: %s", strerror(-r));
        if (r == -ENOSPC || max == 0)
                doctor_remedy(f, "as root: sysctl -w user.max_user_namespaces=15000");
        else if (clone_allowed == 0)
                doctor_remedy(f, "as root: sysctl -w kernel.unprivileged_userns_clone=1");
        else if (sysctl_get("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1)
                doctor_remedy(f, "see apparmor below");
        else if (r == -EINVAL || r == -ENOSYS)
                doctor_remedy(f, "boot a kernel with CONFIG_USER_NS=y");
        else
                doctor_remedy(f, "a container engine or security module refuses it: run gabion on the host itself, or "
                                 "let the container use unshare (docker run --security-opt seccomp=unconfined ...)");
}

void doctor_apparmor(struct doctor_finding *f) {
        long on = sysctl_get("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
        char self[160] = "gabion";
        ssize_t n;

        if (on <= 0) {
                doctor_found(f, DOCTOR_OK,
                             on < 0 ? "no restriction of user namespaces in this kernel"
                                    : "restriction of user namespaces is off");
                return;
        }
        if (geteuid() == 0 || userns_try() == 0) {
                doctor_found(f, DOCTOR_OK, "user namespaces are restricted, but not for %s",
                             geteuid() == 0 ? "root" : "this program");
                return;
        }
        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[n > 0 ? n : 0] = '\0';
        doctor_found(f, DOCTOR_MISSING, "kernel.apparmor_restrict_unprivileged_userns = 1");
        doctor_remedy(f,
                      "as root: printf 'abi <abi/4.0>,\\nprofile gabion %s flags=(unconfined) { userns, }\\n' "
                      "> /etc/apparmor.d/gabion && apparmor_parser -r /etc/apparmor.d/gabion; or for all programs: "
                      "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
                      self);
}

void doctor_namespaces(struct doctor_finding *f) {
        static const struct {
                unsigned flag;
                const char *name, *option;
        } kinds[] = {
                { SYS_CLONE_NEWNS, "mnt", "NAMESPACES" }, { SYS_CLONE_NEWPID, "pid", "PID_NS" },
                { SYS_CLONE_NEWNET, "net", "NET_NS" },    { SYS_CLONE_NEWIPC, "ipc", "IPC_NS" },
                { SYS_CLONE_NEWUTS, "uts", "UTS_NS" },    { SYS_CLONE_NEWCGROUP, "cgroup", "CGROUPS" },
        };
        int r = doctor_privileged();

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++) {
                r = sys_unshare(kinds[i].flag);
                if (r == 0)
                        continue;
                doctor_found(f, DOCTOR_MISSING, "%s cannot be made: %s", kinds[i].name, strerror(-r));
                if (r == -EINVAL)
                        doctor_remedy(f, "boot a kernel with CONFIG_%s=y", kinds[i].option);
                else if (r == -ENOSPC)
                        doctor_remedy(f, "as root: sysctl -w user.max_%s_namespaces=15000", kinds[i].name);
                else
                        doctor_remedy(f, "run gabion on the host itself, not in a container without CAP_SYS_ADMIN");
                return;
        }
        if (r < 0)
                doctor_found(f, DOCTOR_MISSING, "they need a user namespace, see above");
        else
                doctor_found(f, DOCTOR_OK, "mnt pid net ipc uts cgroup were made");
}

void doctor_timens(struct doctor_finding *f) {
        int r = doctor_privileged();

        if (r == 0)
                r = sys_unshare(SYS_CLONE_NEWTIME);
        if (r == 0) {
                doctor_found(f, DOCTOR_OK, "one was made");
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "none can be made: %s", strerror(-r));
        doctor_remedy(f, r == -EINVAL ? "boot a kernel with CONFIG_TIME_NS=y"
                                      : "run gabion on the host itself, not in a container without CAP_SYS_ADMIN");
}

void doctor_landlock(struct doctor_finding *f) {
        int abi = sys_landlock_create(NULL, 0);
        char lsm[200] = "";
        int n;

        if (abi >= LANDLOCK_SCOPES) {
                doctor_found(f, DOCTOR_OK, "ABI %d: files, truncation, device ioctls, scopes", abi);
                return;
        }
        if (abi > 0) {
                doctor_found(f, DOCTOR_LIMITED, "ABI %d, without %s%s%sscopes (signals and abstract sockets)", abi,
                             abi < 2 ? "moves between directories, " : "", abi < 3 ? "truncation, " : "",
                             abi < 5 ? "device ioctls, " : "");
                doctor_remedy(f, "boot Linux 6.12 or later; the other layers cover what is missing");
                return;
        }
        n = fd_read_at(AT_FDCWD, "/sys/kernel/security/lsm", lsm, sizeof(lsm));
        doctor_found(f, DOCTOR_MISSING,
                     abi == -EOPNOTSUPP ? "built in, but switched off at boot" : "not in this kernel");
        if (abi == -EOPNOTSUPP)
                doctor_remedy(f, "add to the kernel's command line: lsm=landlock,%s (or do without: --off landlock)",
                              n > 0 ? lsm : "...");
        else
                doctor_remedy(f, "boot a kernel with CONFIG_SECURITY_LANDLOCK=y (or do without: --off landlock)");
}

static int filter_load(unsigned flags) {
        static const struct sys_bpf_insn allow = { .code = 0x06, .k = 0x7fff0000 };
        int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

        return r < 0 ? r : sys_seccomp_filter(&allow, 1, flags);
}

void doctor_seccomp(struct doctor_finding *f) {
        int r = filter_load(SYS_SECCOMP_NEW_LISTENER | SYS_SECCOMP_WAIT_KILLABLE);

        if (r >= 0) {
                doctor_found(f, DOCTOR_OK, "a filter with user notification was loaded");
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "a filter with user notification cannot be loaded: %s", strerror(-r));
        if (r == -EBUSY)
                doctor_remedy(f, "this process is under such a filter already: run gabion on the host itself");
        else if (r == -EINVAL)
                doctor_remedy(f, "boot Linux %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
        else
                doctor_remedy(f, "boot a kernel with CONFIG_SECCOMP_FILTER=y");
}

static int filtered_main(void *arg) {
        (void) arg;
        if (filter_load(0) < 0)
                return 1;
        for (;;)
                (void) pause();
}

/* Length of the filter of a process that is being traced. */
static long filter_length(int pid) {
        enum { OP_SEIZE = 0x4206, OP_INTERRUPT = 0x4207, OP_GET_FILTER = 0x420c };
        struct sys_bpf_insn insns[8];
        long r = 0;

        for (int i = 0; i < 1000; i++) { /* it may not have loaded the filter yet */
                char path[32], text[4096];
                struct evidence_status s;

                (void) snprintf(path, sizeof(path), "/proc/%d/status", pid);
                if (fd_read_at(AT_FDCWD, path, text, sizeof(text)) >= 0 && evidence_parse_status(text, &s) == 0 &&
                    s.seccomp == 2)
                        break;
                (void) usleep(1000);
        }
        r = sys_ptrace(OP_SEIZE, pid, 0, 0);
        if (r == 0)
                r = sys_ptrace(OP_INTERRUPT, pid, 0, 0);
        if (r == 0 && waitpid(pid, NULL, __WALL) < 0)
                r = -errno;
        return r < 0 ? r : sys_ptrace(OP_GET_FILTER, pid, 0, (unsigned long) (uintptr_t) insns);
}

void doctor_readback(struct doctor_finding *f) {
        int pid = doctor_child(filtered_main, NULL);
        long r = pid < 0 ? pid : filter_length(pid);

        if (pid > 0) {
                (void) sys_kill(pid, 9);
                (void) doctor_wait(pid);
        }
        if (r > 0)
                doctor_found(f, DOCTOR_OK, "a loaded filter can be read and compared");
        else if (geteuid() != 0)
                doctor_found(f, DOCTOR_LIMITED, "for root only; mode and number of filters are compared in any case");
        else {
                doctor_found(f, DOCTOR_LIMITED, "a loaded filter cannot be read: %s", strerror((int) -r));
                doctor_remedy(f, r == -EIO || r == -EINVAL
                                         ? "boot a kernel with CONFIG_CHECKPOINT_RESTORE=y"
                                         : "run gabion outside a container, under no filter of its own");
        }
}

void doctor_memfd(struct doctor_finding *f) {
        enum { EXEC_FLAG = 0x10 };
        AUTO_FD int fd = memfd_create("gabion-doctor", MFD_CLOEXEC | EXEC_FLAG);

        if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
                fd = memfd_create("gabion-doctor", MFD_CLOEXEC);
        if (fd >= 0) {
                doctor_found(f, DOCTOR_OK, "memory files may be executed");
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "an executable memory file is refused: %s (vm.memfd_noexec = %ld)",
                     strerror(errno), sysctl_get("/proc/sys/vm/memfd_noexec"));
        doctor_remedy(f, "as root: sysctl -w vm.memfd_noexec=1");
}
