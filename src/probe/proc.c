/*
 * proc.c - group E: /proc and /sys, one attempt per path.
 *
 * Invariant: no byte is written. That a control file opens for writing is proof enough, and it is closed untouched;
 * logs that are consumed by reading are only opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/files_look.h"
#include "probe/proc_other.h"
#include "probe/proc_text.h"
#include "probe/table.h"

enum { MAGIC_PROC = 0x9fa0, MAGIC_SYSFS = 0x62656572, MAGIC_TMPFS = 0x01021994 };

/* A device node or an ordinary file in the path's place is a mask, and writing to that changes nothing. */
static bool is_mask(int fd) {
        struct stat st;
        struct statfs fs;

        if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
                return false;
        return !S_ISREG(st.st_mode) || (long) fs.f_type == MAGIC_TMPFS;
}

static void path_write(struct probe_result *r, const char *path) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

        if (fd >= 0 && is_mask(fd))
                probe_stopped(r, 0, "opens, but is a mask");
        else
                probe_judge(r, fd, "open for writing");
}

static void path_read(struct probe_result *r, const char *path) {
        char some[64];
        long n = look_read(path, some, sizeof(some));

        if (n == 0)
                probe_stopped(r, 0, "empty: masked");
        else
                probe_judge(r, n == -ENXIO || n == -ENOTDIR ? -ENOENT : n, "read");
}

static void path_open(struct probe_result *r, const char *path) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_rdev == 0x103 /* null device */)
                probe_stopped(r, 0, "opens, but is a mask");
        else
                probe_judge(r, fd, "open");
}

/* An empty directory is a mask, or a mount point with nothing on it. */
static void path_list(struct probe_result *r, const char *path) {
        DIR *d = opendir(path);
        struct dirent *e = NULL;

        if (!d) {
                probe_judge(r, -errno, "list");
                return;
        }
        while ((e = readdir(d)) && e->d_name[0] == '.')
                ;
        if (e)
                probe_reached(r, "has entries");
        else
                probe_stopped(r, 0, "empty");
        (void) closedir(d);
}

/* Files that the kernel fills with zeros for the unprivileged: only an address that is not zero is a finding. */
static void path_addresses(struct probe_result *r, const char *path) {
        static char text[64 * 1024];
        long n = look_read(path, text, sizeof(text));

        if (n < 0) {
                probe_judge(r, n, "read");
                return;
        }
        for (const char *p = text; *p;) {
                size_t run = strspn(p, "0123456789abcdef"), zeros = strspn(p, "0");
                bool is_word = p == text || strchr(" \n-x", p[-1]);

                if (is_word && run >= 8 && zeros < run && strchr(" \n-", p[run])) {
                        probe_reached(r, "real addresses");
                        return;
                }
                p += run ? run : 1;
        }
        probe_stopped(r, 0, n ? "zeros only" : "empty: masked");
}

static void path_by_design(struct probe_result *r, const char *path) {
        char some[64];
        long n = look_read(path, some, sizeof(some));

        if (n > 0)
                probe_accepted(r, "ordinary programs read it; it shows the host's figures");
        else
                probe_judge(r, n ? n : -EACCES, "read");
}

/* The same file by another name. Where the plain name works too, that is a finding of its own, not of the alias. */
static void path_alias(struct probe_result *r, const char *prefix, const char *plain, int flags) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, plain, flags | O_CLOEXEC | O_NONBLOCK, 0);
        char path[128];

        if (fd >= 0 && !is_mask(fd)) {
                probe_stopped(r, 0, "no wall to go round: the plain name works");
                return;
        }
        (void) snprintf(path, sizeof(path), "%s%s", prefix, plain);
        if (flags == O_WRONLY)
                path_write(r, path);
        else
                path_read(r, path);
}

#define WRITES(X)                                                                                                      \
        X(E01a, CRIT, "/proc/sys/kernel/core_pattern", "CVE-2022-0811")                                                \
        X(E01b, CRIT, "/proc/sys/kernel/core_pipe_limit", "CVE-2022-0811")                                             \
        X(E01c, CRIT, "/proc/sys/kernel/core_uses_pid", "CVE-2022-0811")                                               \
        X(E02a, CRIT, "/proc/sysrq-trigger", "reboot or crash")                                                        \
        X(E02b, CRIT, "/proc/sys/kernel/sysrq", "reboot or crash")                                                     \
        X(E02c, CRIT, "/proc/sys/kernel/panic", "reboot or crash")                                                     \
        X(E03a, CRIT, "/proc/sys/kernel/modprobe", "helper run as host root")                                          \
        X(E03b, CRIT, "/proc/sys/kernel/hotplug", "helper run as host root")                                           \
        X(E03c, CRIT, "/sys/kernel/uevent_helper", "helper run as host root")                                          \
        X(E03d, CRIT, "/proc/sys/kernel/poweroff_cmd", "helper run as host root")                                      \
        X(E03e, CRIT, "/proc/sys/kernel/usermodehelper/bset", "helper run as host root")                               \
        X(E03f, CRIT, "/proc/sys/kernel/kexec_load_disabled", "helper run as host root")                               \
        X(E03g, CRIT, "/proc/sys/fs/binfmt_misc/register", "helper run as host root")                                  \
        X(E03h, CRIT, "/proc/sys/fs/binfmt_misc/status", "helper run as host root")                                    \
        X(E04a, HIGH, "/proc/sys/vm/panic_on_oom", "tamper with the host")                                             \
        X(E04b, HIGH, "/proc/sys/vm/overcommit_memory", "tamper with the host")                                        \
        X(E04c, HIGH, "/proc/sys/vm/drop_caches", "tamper with the host")                                              \
        X(E04d, HIGH, "/proc/sys/vm/mmap_min_addr", "tamper with the host")                                            \
        X(E04e, HIGH, "/proc/sys/vm/min_free_kbytes", "tamper with the host")                                          \
        X(E04f, HIGH, "/proc/sys/fs/file-max", "tamper with the host")                                                 \
        X(E04g, HIGH, "/proc/sys/fs/protected_symlinks", "tamper with the host")                                       \
        X(E04h, HIGH, "/proc/sys/fs/suid_dumpable", "tamper with the host")                                            \
        X(E04i, HIGH, "/proc/sys/kernel/randomize_va_space", "tamper with the host")                                   \
        X(E04j, HIGH, "/proc/sys/kernel/ns_last_pid", "tamper with the host")                                          \
        X(E04k, HIGH, "/proc/sys/kernel/kptr_restrict", "tamper with the host")                                        \
        X(E04l, HIGH, "/proc/sys/kernel/perf_event_paranoid", "tamper with the host")                                  \
        X(E04m, HIGH, "/proc/sys/kernel/unprivileged_bpf_disabled", "tamper with the host")                            \
        X(E04n, HIGH, "/proc/sys/kernel/yama/ptrace_scope", "tamper with the host")                                    \
        X(E04o, HIGH, "/proc/sys/kernel/pid_max", "tamper with the host")                                              \
        X(E04p, HIGH, "/proc/sys/net/ipv4/ip_forward", "tamper with the host")                                         \
        X(E04q, HIGH, "/proc/sys/user/max_user_namespaces", "tamper with the host")                                    \
        X(E04r, HIGH, "/sys/kernel/mm/transparent_hugepage/enabled", "tamper with the host")                           \
        X(E04s, HIGH, "/sys/kernel/mm/ksm/run", "tamper with the host")                                                \
        X(E04t, HIGH, "/sys/power/state", "tamper with the host")                                                      \
        X(E04u, HIGH, "/sys/power/disk", "tamper with the host")                                                       \
        X(E04v, HIGH, "/proc/irq/default_smp_affinity", "tamper with the host")                                        \
        X(E04w, HIGH, "/proc/mtrr", "tamper with the host")                                                            \
        X(E04x, HIGH, "/proc/acpi/wakeup", "tamper with the host")                                                     \
        X(E04y, HIGH, "/sys/devices/system/cpu/cpu1/online", "tamper with the host")                                   \
        X(E04z, HIGH, "/sys/kernel/profiling", "tamper with the host")                                                 \
        X(E19a, MED, "/proc/self/attr/current", "CVE-2025-52881")                                                      \
        X(E19b, MED, "/proc/self/attr/exec", "CVE-2025-52881")                                                         \
        X(E19c, MED, "/proc/self/timens_offsets", "CVE-2025-52881")                                                    \
        X(E19d, MED, "/proc/self/projid_map", "CVE-2025-52881")                                                        \
        X(E19e, MED, "/proc/self/uid_map", "CVE-2025-52881")                                                           \
        X(E19f, MED, "/proc/self/setgroups", "CVE-2025-52881")                                                         \
        X(E19g, MED, "/proc/self/loginuid", "CVE-2025-52881")                                                          \
        X(E19h, LOW, "/proc/self/clear_refs", "harmless knobs")                                                        \
        X(E19i, LOW, "/proc/self/coredump_filter", "harmless knobs")                                                   \
        X(E19j, LOW, "/proc/self/autogroup", "harmless knobs")                                                         \
        X(E23a, LOW, "/proc/sys/kernel/sem", "IPC limits")                                                             \
        X(E23b, LOW, "/proc/sys/kernel/shmmax", "IPC limits")                                                          \
        X(E23c, LOW, "/proc/sys/kernel/msgmax", "IPC limits")                                                          \
        X(E23d, LOW, "/proc/sys/fs/mqueue/msg_max", "IPC limits")                                                      \
        X(E24a, HIGH, "/sys/kernel/tracing/tracing_on", "tracing by file")                                             \
        X(E24b, HIGH, "/sys/kernel/debug/tracing/tracing_on", "tracing by file")                                       \
        X(E24c, HIGH, "/sys/kernel/security/lockdown", "tracing by file")                                              \
        X(E24d, HIGH, "/sys/module/kernel/parameters/panic", "tracing by file")                                        \
        X(E24e, HIGH, "/sys/fs/selinux/enforce", "tracing by file")                                                    \
        X(E24f, HIGH, "/sys/firmware/efi/efivars", "tracing by file")

#define READS(X)                                                                                                       \
        X(E05a, CRIT, "/proc/kcore", "host memory")                                                                    \
        X(E05b, CRIT, "/dev/mem", "host memory")                                                                       \
        X(E05c, CRIT, "/dev/kmem", "host memory")                                                                      \
        X(E05d, CRIT, "/dev/port", "host memory")                                                                      \
        X(E05e, CRIT, "/proc/kpagecount", "host memory")                                                               \
        X(E05f, CRIT, "/proc/kpageflags", "host memory")                                                               \
        X(E05g, CRIT, "/proc/kpagecgroup", "host memory")                                                              \
        X(E06a, LOW, "/proc/vmallocinfo", "KASLR defeat")                                                              \
        X(E06b, LOW, "/proc/slabinfo", "KASLR defeat")                                                                 \
        X(E06c, LOW, "/sys/kernel/vmcoreinfo", "KASLR defeat")                                                         \
        X(E06d, LOW, "/sys/kernel/notes", "KASLR defeat")                                                              \
        X(E06e, LOW, "/sys/module/kernel/sections/.text", "KASLR defeat")                                              \
        X(E08a, LOW, "/proc/keys", "host detail")                                                                      \
        X(E08b, LOW, "/proc/key-users", "host detail")                                                                 \
        X(E08c, LOW, "/proc/timer_list", "host detail")                                                                \
        X(E08d, LOW, "/proc/sched_debug", "host detail")                                                               \
        X(E08e, LOW, "/proc/latency_stats", "host detail")                                                             \
        X(E08f, LOW, "/proc/config.gz", "host detail")                                                                 \
        X(E08g, LOW, "/proc/cgroups", "host detail")                                                                   \
        X(E08h, LOW, "/proc/swaps", "host detail")                                                                     \
        X(E08i, LOW, "/proc/pagetypeinfo", "host detail")                                                              \
        X(E08j, LOW, "/proc/buddyinfo", "host detail")                                                                 \
        X(E08k, LOW, "/proc/zoneinfo", "host detail")                                                                  \
        X(E08l, LOW, "/proc/pressure/cpu", "host detail")                                                              \
        X(E09a, LOW, "/proc/interrupts", "co-residency, keystroke timing")                                             \
        X(E09b, LOW, "/proc/softirqs", "co-residency, keystroke timing")                                               \
        X(E09c, LOW, "/proc/diskstats", "co-residency, keystroke timing")                                              \
        X(E09d, LOW, "/proc/partitions", "co-residency, keystroke timing")                                             \
        X(E09e, LOW, "/proc/cmdline", "co-residency, keystroke timing")                                                \
        X(E09f, LOW, "/proc/schedstat", "co-residency, keystroke timing")                                              \
        X(E09g, LOW, "/proc/device-tree/model", "co-residency, keystroke timing")                                      \
        X(E10a, MED, "/sys/class/powercap/intel-rapl:0/energy_uj", "CVE-2020-8694")                                    \
        X(E10b, MED, "/sys/class/dmi/id/product_uuid", "host identity")                                                \
        X(E10c, MED, "/sys/class/dmi/id/board_serial", "host identity")                                                \
        X(E10d, MED, "/sys/firmware/dmi/tables/DMI", "host identity")                                                  \
        X(E10e, MED, "/sys/kernel/btf/vmlinux", "kernel layout")                                                       \
        X(E10f, MED, "/sys/firmware/acpi/tables/DSDT", "firmware")

#define KERNEL_LOGS(X)                                                                                                 \
        X(E07a, MED, "/proc/kmsg", "host log")                                                                         \
        X(E07b, MED, "/dev/kmsg", "host log")

#define DIRECTORIES(X)                                                                                                 \
        X(E10g, MED, "/sys/kernel/debug", "tracing, firmware")                                                         \
        X(E10h, MED, "/sys/kernel/tracing", "tracing, firmware")                                                       \
        X(E10i, MED, "/sys/kernel/security", "tracing, firmware")                                                      \
        X(E10j, MED, "/sys/firmware", "tracing, firmware")                                                             \
        X(E10k, MED, "/sys/fs/bpf", "tracing, firmware")                                                               \
        X(E10l, MED, "/sys/bus/pci/devices", "tracing, firmware")                                                      \
        X(E10m, MED, "/proc/bus/pci", "tracing, firmware")                                                             \
        X(E10n, MED, "/proc/scsi", "tracing, firmware")                                                                \
        X(E10o, MED, "/proc/fs", "tracing, firmware")

#define ADDRESSES(X)                                                                                                   \
        X(E06f, HIGH, "/proc/kallsyms", "KASLR defeat")                                                                \
        X(E06g, HIGH, "/proc/modules", "KASLR defeat")                                                                 \
        X(E06h, LOW, "/proc/iomem", "KASLR defeat")                                                                    \
        X(E06i, LOW, "/proc/ioports", "KASLR defeat")

#define OPEN_BY_DESIGN(X)                                                                                              \
        X(E09h, LOW, "/proc/stat", "fingerprint")                                                                      \
        X(E09i, LOW, "/proc/loadavg", "fingerprint")                                                                   \
        X(E09j, LOW, "/proc/version", "fingerprint")                                                                   \
        X(E09k, LOW, "/proc/uptime", "fingerprint")                                                                    \
        X(E09l, LOW, "/proc/meminfo", "fingerprint")                                                                   \
        X(E09m, LOW, "/proc/cpuinfo", "fingerprint")                                                                   \
        X(E09n, LOW, "/proc/vmstat", "fingerprint")

#define ALIASES(X)                                                                                                     \
        X(E22a, HIGH, path_alias(r, "/proc/self/root", "/proc/sys/kernel/core_pattern", O_WRONLY),                     \
          "write /proc/sys/kernel/core_pattern by /proc/self/root", "alias of a walled path")                          \
        X(E22b, HIGH, path_alias(r, "/proc/self/root", "/proc/keys", O_RDONLY), "read /proc/keys by /proc/self/root",  \
          "alias of a walled path")                                                                                    \
        X(E22c, HIGH, path_alias(r, "/proc/thread-self/root", "/proc/sys/kernel/panic", O_WRONLY),                     \
          "write /proc/sys/kernel/panic by /proc/thread-self/root", "alias of a walled path")                          \
        X(E22d, HIGH, path_alias(r, "/proc/thread-self/root", "/proc/kallsyms", O_RDONLY),                             \
          "read /proc/kallsyms by /proc/thread-self/root", "alias of a walled path")                                   \
        X(E22e, HIGH, path_alias(r, "/proc/1/root", "/proc/sys/kernel/core_pattern", O_WRONLY),                        \
          "write /proc/sys/kernel/core_pattern by /proc/1/root", "alias of a walled path")                             \
        X(E22f, HIGH, path_alias(r, "/proc/1/root", "/proc/interrupts", O_RDONLY),                                     \
          "read /proc/interrupts by /proc/1/root", "alias of a walled path")                                           \
        X(E22g, HIGH, path_alias(r, "/proc/self/task/../root", "/proc/sys/kernel/panic", O_WRONLY),                    \
          "write /proc/sys/kernel/panic by /proc/self/task/../root", "alias of a walled path")                         \
        X(E22h, HIGH, path_alias(r, "/proc/self/task/../root", "/proc/keys", O_RDONLY),                                \
          "read /proc/keys by /proc/self/task/../root", "alias of a walled path")                                      \
        X(E22i, HIGH, path_alias(r, "/proc/self/cwd/../../../..", "/proc/sys/kernel/core_pattern", O_WRONLY),          \
          "write /proc/sys/kernel/core_pattern by /proc/self/cwd/../../../..", "alias of a walled path")               \
        X(E22j, HIGH, path_alias(r, "/proc/self/cwd/../../../..", "/proc/kallsyms", O_RDONLY),                         \
          "read /proc/kallsyms by /proc/self/cwd/../../../..", "alias of a walled path")                               \
        X(E22k, HIGH, path_alias(r, "/proc/self/../..", "/proc/sys/kernel/panic", O_WRONLY),                           \
          "write /proc/sys/kernel/panic by /proc/self/../..", "alias of a walled path")                                \
        X(E22l, HIGH, path_alias(r, "/proc/self/../..", "/proc/interrupts", O_RDONLY),                                 \
          "read /proc/interrupts by /proc/self/../..", "alias of a walled path")

#define SPECIALS(X)                                                                                                    \
        X(E11a, HIGH, proc_init_environ(r), "read /proc/1/environ", "secrets of the supervisor")                       \
        X(E12a, HIGH, proc_init_open(r, "/proc/1/mem", O_RDWR), "open /proc/1/mem for writing", "rewrite init")        \
        X(E12b, HIGH, proc_init_open(r, "/proc/1/maps", O_RDONLY), "read /proc/1/maps", "init's layout")               \
        X(E12c, HIGH, proc_init_open(r, "/proc/1/stack", O_RDONLY), "read /proc/1/stack", "kernel stack")              \
        X(E12d, HIGH, proc_init_open(r, "/proc/1/syscall", O_RDONLY), "read /proc/1/syscall", "init's registers")      \
        X(E12e, HIGH, proc_init_open(r, "/proc/1/auxv", O_RDONLY), "read /proc/1/auxv", "init's layout")               \
        X(E12f, HIGH, proc_init_open(r, "/proc/1/pagemap", O_RDONLY), "read /proc/1/pagemap", "rowhammer")             \
        X(E12g, HIGH, proc_init_open(r, "/proc/1/mem", O_WRONLY), "open /proc/1/mem write-only", "rewrite init")       \
        X(E13a, CRIT, proc_init_dir(r, "/proc/1/root/", "/"), "/proc/1/root", "magic link")                            \
        X(E13b, CRIT, proc_init_dir(r, "/proc/1/cwd/", "."), "/proc/1/cwd", "magic link")                              \
        X(E13c, HIGH, proc_init_fd_list(r), "list /proc/1/fd", "magic link")                                           \
        X(E13d, CRIT, proc_init_fd_open(r), "files behind /proc/1/fd", "CVE-2024-21626")                               \
        X(E13e, HIGH, proc_init_open(r, "/proc/1/exe", O_RDONLY), "read /proc/1/exe", "CVE-2019-5736")                 \
        X(E13f, CRIT, proc_init_open(r, "/proc/1/exe", O_WRONLY), "open /proc/1/exe for writing", "CVE-2019-5736")     \
        X(E13g, HIGH, proc_init_ns(r, "mnt"), "/proc/1/ns/mnt", "join it")                                             \
        X(E13h, HIGH, proc_init_ns(r, "net"), "/proc/1/ns/net", "join it")                                             \
        X(E13i, HIGH, proc_init_ns(r, "user"), "/proc/1/ns/user", "join it")                                           \
        X(E13j, HIGH, proc_init_ns(r, "pid"), "/proc/1/ns/pid", "join it")                                             \
        X(E14a, HIGH, proc_canary_seen(r, c->pid), "a host process in /proc", "no pid namespace")                      \
        X(E14b, HIGH, proc_kernel_threads(r), "kernel threads in /proc", "no pid namespace")                           \
        X(E14c, HIGH, proc_foreign_cmdline(r), "command lines of other users", "secrets in arguments")                 \
        X(E15a, HIGH, proc_canary_signal(r, c->pid), "signal 0 to a host process", "signal the host")                  \
        X(E15b, HIGH, proc_canary_pidfd(r, c->pid), "pidfd of a host process", "signal the host")                      \
        X(E16a, LOW, proc_mount_roots(r), "host paths in mountinfo", "layout leak")                                    \
        X(E16b, LOW, proc_mount_sources(r), "host disks in mountinfo", "layout leak")                                  \
        X(E17a, MED, proc_net_sockets(r, "/proc/net/tcp", c->port), "/proc/net/tcp", "host sockets")                   \
        X(E17b, MED, proc_net_sockets(r, "/proc/net/tcp6", c->port), "/proc/net/tcp6", "host sockets")                 \
        X(E17c, MED, proc_net_sockets(r, "/proc/net/udp", c->port), "/proc/net/udp", "host sockets")                   \
        X(E17d, MED, proc_net_unix(r, c->abstract), "/proc/net/unix", "host sockets")                                  \
        X(E17e, MED, proc_net_lines(r, "/proc/net/arp", 1), "/proc/net/arp", "neighbours")                             \
        X(E17f, MED, proc_net_lines(r, "/proc/net/route", 1), "/proc/net/route", "host routes")                        \
        X(E17g, MED, proc_net_lines(r, "/proc/1/net/route", 1), "/proc/1/net/route", "routes of init's side")          \
        X(E17h, MED, proc_net_lines(r, "/proc/net/packet", 1), "/proc/net/packet", "host sockets")                     \
        X(E17i, MED, proc_net_lines(r, "/proc/net/nf_conntrack", 0), "/proc/net/nf_conntrack", "host flows")           \
        X(E18a, MED, proc_oom_open(r), "OOM immunity", "oom_score_adj -1000")                                          \
        X(E18b, MED, proc_oom_inherited(r), "OOM immunity inherited", "oom_score_adj of the caller")                   \
        X(E20a, HIGH, proc_mount_old(r, "proc"), "mount a fresh procfs", "mask bypass")                                \
        X(E20b, HIGH, proc_mount_new(r, "proc"), "make a detached procfs", "mask bypass, new mount API")               \
        X(E20c, HIGH, proc_mount_old(r, "sysfs"), "mount a fresh sysfs", "mask bypass")                                \
        X(E20d, HIGH, proc_mount_new(r, "sysfs"), "make a detached sysfs", "mask bypass, new mount API")               \
        X(E21a, CRIT, proc_null_is_null(r), "/dev/null swapped before start", "CVE-2025-31133")                        \
        X(E21b, CRIT, proc_is_fs(r, "/proc", MAGIC_PROC), "/proc swapped before start", "CVE-2019-19921")              \
        X(E21c, CRIT, proc_is_fs(r, "/sys", MAGIC_SYSFS), "/sys swapped before start", "CVE-2023-27561")

#define WRITE_FN(id, severity, path, technique) PROBE_FN(id, severity, path_write(r, path), "", "")
#define WRITE_ROW(id, severity, path, technique) PROBE_ROW(id, severity, 0, "open for writing: " path, technique)
#define READ_FN(id, severity, path, technique) PROBE_FN(id, severity, path_read(r, path), "", "")
#define READ_ROW(id, severity, path, technique) PROBE_ROW(id, severity, 0, "read " path, technique)
#define LOG_FN(id, severity, path, technique) PROBE_FN(id, severity, path_open(r, path), "", "")
#define LOG_ROW(id, severity, path, technique) PROBE_ROW(id, severity, 0, "open " path, technique)
#define DIR_FN(id, severity, path, technique) PROBE_FN(id, severity, path_list(r, path), "", "")
#define DIR_ROW(id, severity, path, technique) PROBE_ROW(id, severity, 0, "list " path, technique)
#define ADDRESS_FN(id, severity, path, technique) PROBE_FN(id, severity, path_addresses(r, path), "", "")
#define ADDRESS_ROW(id, severity, path, technique) PROBE_ROW(id, severity, 0, "addresses in " path, technique)
#define DESIGN_FN(id, severity, path, technique) PROBE_FN(id, severity, path_by_design(r, path), "", "")

WRITES(WRITE_FN)
READS(READ_FN)
KERNEL_LOGS(LOG_FN)
DIRECTORIES(DIR_FN)
ADDRESSES(ADDRESS_FN)
OPEN_BY_DESIGN(DESIGN_FN)
ALIASES(PROBE_FN)
SPECIALS(PROBE_FN)

const struct probe_attempt probe_proc[] = {
        /* one row per line of the lists above */
        WRITES(WRITE_ROW) READS(READ_ROW) KERNEL_LOGS(LOG_ROW) DIRECTORIES(DIR_ROW) ADDRESSES(ADDRESS_ROW)
                OPEN_BY_DESIGN(READ_ROW) ALIASES(PROBE_ROW) SPECIALS(PROBE_ROW){ 0 },
};
