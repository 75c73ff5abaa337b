/*
 * devices.c - group F: device nodes, found or made.
 *
 * Invariant: nothing is read from or written to a device beyond opening it, and a node whose opening alone has
 * effects (watchdogs, consoles, serial lines, hibernation) is only asked about with access(2). Nodes and links that
 * could be made are removed in the same breath. The mode of a device is never touched: times are set to themselves.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/files_look.h"
#include "probe/proc_text.h"
#include "probe/table.h"

enum { TEXT_MAX = 64 * 1024, DEPTH_MAX = 3 };
static char text[TEXT_MAX];

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

static void node_open(struct probe_result *r, const char *path, int flags) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
                probe_absent(r, "not a device");
        else
                probe_judge(r, fd == -ENXIO || fd == -ENODEV || fd == -ENOTDIR ? -ENOENT : fd, "open");
}

static void node_access(struct probe_result *r, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                probe_judge(r, -errno, "stat");
        else if (!S_ISCHR(st.st_mode))
                probe_absent(r, "not a device");
        else
                probe_judge(r, access(path, R_OK) == 0 || access(path, W_OK) == 0 ? 0 : -errno, "present, not opened");
}

static bool is_harmless(dev_t dev) {
        unsigned low = minor(dev);

        switch (major(dev)) {
        case 1:
                return low == 3 || low == 5 || low == 7 || low == 8 || low == 9;
        case 5:
                return low == 0 || low == 2;
        default:
                return major(dev) >= 136 && major(dev) <= 143;
        }
}

/* Finds a node of this type (S_IFCHR, S_IFBLK) beyond the harmless ones; its path goes to found. */
static bool node_find(const char *dir, mode_t type, int depth, char found[256]) {
        CLEANUP(dir_closep) DIR *d = opendir(dir);
        struct dirent *e;
        struct stat st;
        char path[256];

        while (d && (e = readdir(d))) {
                if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
                        continue;
                if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int) sizeof(path) || lstat(path, &st) < 0)
                        continue;
                if ((st.st_mode & S_IFMT) == type && !(type == S_IFCHR && is_harmless(st.st_rdev)))
                        return str_copy(found, 256, path) == 0;
                if (S_ISDIR(st.st_mode) && depth > 0 && node_find(path, type, depth - 1, found))
                        return true;
        }
        return false;
}

static void list_nodes(struct probe_result *r, const char *dir, mode_t type) {
        char found[256], note[120];

        if (!node_find(dir, type, DEPTH_MAX, found)) {
                probe_stopped(r, 0, "none beyond the harmless ones");
                return;
        }
        (void) snprintf(note, sizeof(note), "%.100s", found);
        probe_reached(r, note);
}

/* What mountinfo lists may be covered by a later mount: only the one that a path leads to counts. */
static bool is_devtmpfs(dev_t dev) {
        struct proc_mount m;
        char *at = text, want[24];

        (void) snprintf(want, sizeof(want), "%u:%u", major(dev), minor(dev));
        (void) look_read("/proc/self/mountinfo", text, TEXT_MAX);
        while (proc_mount_next(&at, &m))
                if (str_eq(m.device, want))
                        return str_eq(m.type, "devtmpfs");
        return false;
}

static void find_devtmpfs(struct probe_result *r, const char *dir) {
        struct stat st;

        if (stat(dir, &st) < 0)
                probe_judge(r, -errno, "stat");
        else if (is_devtmpfs(st.st_dev))
                probe_reached(r, "all of the host's devices");
        else
                probe_stopped(r, 0, "not a devtmpfs");
}

static void open_mount_source(struct probe_result *r) {
        struct proc_mount m;
        char *at = text;
        int last = -ENOENT;

        (void) look_read("/proc/self/mountinfo", text, TEXT_MAX);
        while (last < 0 && proc_mount_next(&at, &m))
                if (str_has_prefix(m.source, "/dev/"))
                        last = sys_openat(AT_FDCWD, m.source, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
        probe_judge(r, last, "open the disk that mountinfo names");
}

/* Makes a node in the directory and opens it. 0 only if it opened; the node is gone either way. */
static int node_make_in(const char *dir, mode_t type, dev_t dev) {
        char path[320];
        int ret;
        AUTO_FD int fd = -1;

        (void) snprintf(path, sizeof(path), "%s/gabion-probe-%d", dir, (int) getpid());
        ret = mknod(path, type | 0600, dev) < 0 ? -errno : 0;
        if (ret < 0)
                return ret;
        fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        (void) unlink(path);
        return fd < 0 ? fd : 0;
}

static void node_make(struct probe_result *r, mode_t type, dev_t dev) {
        static const char *const dirs[] = { "/tmp", "/dev/shm", "/run", "/home/user", "/dev", "." };
        int ret = -EPERM;

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                int got = node_make_in(dirs[i], type, dev);

                if (got == 0) {
                        probe_reached(r, "made and opened");
                        return;
                }
                if (got == -EACCES || got == -EPERM)
                        ret = got;
        }
        probe_stopped(r, -ret, "mknod or open");
}

/* The disk below /usr: on btrfs and overlay this number names no node, and the open fails with ENXIO. */
static void node_make_disk(struct probe_result *r) {
        struct stat st;

        if (stat("/usr", &st) < 0 || major(st.st_dev) == 0)
                probe_absent(r, "no disk below /usr");
        else
                node_make(r, S_IFBLK, st.st_dev);
}

/* A mount without nodev is where the cgroup's device rules are the only wall left. */
static void node_make_without_nodev(struct probe_result *r) {
        struct proc_mount m;
        char *at = text;
        int ret = -ENOENT;

        (void) look_read("/proc/self/mountinfo", text, TEXT_MAX);
        while (ret < 0 && proc_mount_next(&at, &m))
                if (!strstr(m.options, "nodev") && str_has_prefix(m.options, "rw"))
                        ret = node_make_in(m.point, S_IFCHR, makedev(1, 11));
        probe_judge(r, ret, "kmsg node on a mount without nodev");
}

/*
 * Times set to what they are: needs the same right as chmod, changes nothing that anybody reads. A node on a tmpfs of
 * the sandbox's own may be touched; one that is bound in from elsewhere, or in a devtmpfs, is the host's inode.
 */
static void node_touch(struct probe_result *r, const char *path) {
        struct stat st, dir;
        struct timespec times[2];
        bool is_hosts;

        if (stat(path, &st) < 0 || stat("/dev", &dir) < 0) {
                probe_judge(r, -errno, "stat");
                return;
        }
        is_hosts = st.st_dev != dir.st_dev || is_devtmpfs(st.st_dev);
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        if (utimensat(AT_FDCWD, path, times, 0) < 0)
                probe_stopped(r, errno, is_hosts ? "the host's inode, but not ours to change" : "utimensat");
        else if (is_hosts)
                probe_reached(r, "the host's inode, and it can be changed");
        else
                probe_accepted(r, "an inode of the sandbox's own");
}

static void node_owned(struct probe_result *r, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                probe_judge(r, -errno, "stat");
        else if (st.st_uid == geteuid() && st.st_uid != 65534 /* what an unmapped owner looks like */)
                probe_reached(r, "the node belongs to the job");
        else
                probe_stopped(r, 0, "belongs to somebody else");
}

enum link_way { BY_NAME, BY_PROC_FD, BY_EMPTY_PATH };

static void node_link(struct probe_result *r, enum link_way way, const char *dir) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/dev/null", O_PATH | O_CLOEXEC, 0);
        char to[64], from[64];
        long ret;

        (void) snprintf(to, sizeof(to), "%s/gabion-probe-%d", dir, (int) getpid());
        (void) snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        if (way == BY_EMPTY_PATH)
                ret = SYS5(SYS_linkat, fd, "", AT_FDCWD, to, SYS_AT_EMPTY_PATH);
        else
                ret = SYS5(SYS_linkat, AT_FDCWD, way == BY_NAME ? "/dev/null" : from, AT_FDCWD, to,
                           way == BY_NAME ? 0 : AT_SYMLINK_FOLLOW);
        if (ret == 0)
                (void) unlink(to);
        probe_judge(r, ret == -ENOENT ? -EPERM : ret, "linkat");
}

/* The least needed node, and back at once. */
static void node_rename(struct probe_result *r, const char *dir) {
        char to[64];
        int ret;

        (void) snprintf(to, sizeof(to), "%s/gabion-probe-%d", dir, (int) getpid());
        ret = rename("/dev/full", to) < 0 ? -errno : 0;
        if (ret == 0)
                (void) rename(to, "/dev/full");
        probe_judge(r, ret, "rename");
}

static bool is_own_terminal(const struct stat *st) {
        struct stat own;

        for (int fd = 0; fd <= 2; fd++)
                if (fstat(fd, &own) == 0 && own.st_rdev == st->st_rdev && own.st_dev == st->st_dev)
                        return true;
        return false;
}

static void pts_foreign(struct probe_result *r) {
        CLEANUP(dir_closep) DIR *d = opendir("/dev/pts");
        struct dirent *e;
        struct stat st;
        char path[300];
        int ret = -ENOENT;

        while (ret < 0 && d && (e = readdir(d))) {
                (void) snprintf(path, sizeof(path), "/dev/pts/%s", e->d_name);
                if (stat(path, &st) < 0 || major(st.st_rdev) < 136 || is_own_terminal(&st))
                        continue;
                ret = sys_openat(AT_FDCWD, path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
        }
        probe_judge(r, ret, "another terminal in /dev/pts");
}

/* The slave that the new master names must be in our /dev/pts, else the master came from another instance. */
static void ptmx_instance(struct probe_result *r, const char *path) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, path, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
        unsigned n = 0;
        struct stat st;
        char slave[32];

        if (fd < 0) {
                probe_judge(r, fd, "open");
                return;
        }
        if (ioctl(fd, 0x80045430 /* TIOCGPTN */, &n) < 0) {
                probe_stopped(r, errno, "no number");
                return;
        }
        (void) snprintf(slave, sizeof(slave), "/dev/pts/%u", n);
        if (stat(slave, &st) == 0 && st.st_rdev == makedev(136 + n / 256, n % 256))
                probe_stopped(r, 0, "an instance of the sandbox's own");
        else
                probe_reached(r, "a terminal of another devpts instance");
}

/* A terminal among standard input and output: of our /dev/pts (own), or from elsewhere. */
static bool stdio_has_terminal(bool own) {
        struct stat st, pts;
        bool is_own;

        for (int fd = 0; fd <= 2; fd++) {
                if (!isatty(fd) || fstat(fd, &st) < 0)
                        continue;
                is_own = stat("/dev/pts", &pts) == 0 && pts.st_dev == st.st_dev;
                if (is_own == own)
                        return true;
        }
        return false;
}

static void stdio_terminal(struct probe_result *r) {
        if (stdio_has_terminal(false))
                probe_reached(r, "standard input or output is the caller's own terminal");
        else
                probe_stopped(r, 0, "no terminal of the caller's");
}

static void controlling_terminal(struct probe_result *r) {
        if (stdio_has_terminal(true))
                probe_stopped(r, 0, "a terminal of the sandbox's own");
        else
                node_open(r, "/dev/tty", O_RDWR);
}

#define FOUND(X)                                                                                                       \
        X(F01a, HIGH, list_nodes(r, "/dev", S_IFCHR), "character devices in /dev", "more than the harmless ones")      \
        X(F01b, HIGH, list_nodes(r, "/dev", S_IFBLK), "block devices in /dev", "raw disks")                            \
        X(F01c, HIGH, list_nodes(r, "/run", S_IFBLK), "block devices in /run", "raw disks")                            \
        X(F01d, HIGH, find_devtmpfs(r, "/dev"), "devtmpfs mounted", "every device of the host")                        \
        X(F02a, HIGH, node_open(r, "/dev/kvm", O_RDWR), "open /dev/kvm", "VM exits")                                   \
        X(F02b, HIGH, node_open(r, "/dev/fuse", O_RDWR), "open /dev/fuse", "file system in user space")                \
        X(F02c, HIGH, node_open(r, "/dev/net/tun", O_RDWR), "open /dev/net/tun", "own network")                        \
        X(F02d, HIGH, node_open(r, "/dev/loop-control", O_RDWR), "open /dev/loop-control", "loop devices")             \
        X(F02e, HIGH, node_open(r, "/dev/mapper/control", O_RDWR), "open /dev/mapper/control", "device mapper")        \
        X(F02f, HIGH, node_open(r, "/dev/vhost-net", O_RDWR), "open /dev/vhost-net", "VM network")                     \
        X(F02g, HIGH, node_open(r, "/dev/vhost-vsock", O_RDWR), "open /dev/vhost-vsock", "VM sockets")                 \
        X(F02h, HIGH, node_open(r, "/dev/vsock", O_RDWR), "open /dev/vsock", "CID of this machine")                    \
        X(F02i, HIGH, node_open(r, "/dev/uinput", O_RDWR), "open /dev/uinput", "host input")                           \
        X(F02j, HIGH, node_open(r, "/dev/autofs", O_RDWR), "open /dev/autofs", "mount helper")                         \
        X(F02k, HIGH, node_open(r, "/dev/hwrng", O_RDONLY), "open /dev/hwrng", "hardware")                             \
        X(F02l, HIGH, node_open(r, "/dev/userfaultfd", O_RDWR), "open /dev/userfaultfd", "CVE-2021-22555 helper")      \
        X(F02m, HIGH, node_open(r, "/dev/btrfs-control", O_RDWR), "open /dev/btrfs-control", "file system")            \
        X(F02n, HIGH, node_open(r, "/dev/cpu_dma_latency", O_RDONLY), "open /dev/cpu_dma_latency", "power")            \
        X(F02o, HIGH, node_open(r, "/dev/vga_arbiter", O_RDWR), "open /dev/vga_arbiter", "graphics")                   \
        X(F02p, HIGH, node_open(r, "/dev/cuse", O_RDWR), "open /dev/cuse", "devices in user space")                    \
        X(F02q, HIGH, node_open(r, "/dev/ppp", O_RDWR), "open /dev/ppp", "network")                                    \
        X(F02r, HIGH, node_open(r, "/dev/nvram", O_RDONLY), "open /dev/nvram", "firmware")                             \
        X(F02s, HIGH, node_open(r, "/dev/rtc0", O_RDONLY), "open /dev/rtc0", "host clock")                             \
        X(F02t, HIGH, node_open(r, "/dev/input/event0", O_RDONLY), "open /dev/input/event0", "keystrokes")             \
        X(F02u, HIGH, node_open(r, "/dev/dri/card0", O_RDWR), "open /dev/dri/card0", "graphics")                       \
        X(F02v, HIGH, node_open(r, "/dev/dri/renderD128", O_RDWR), "open /dev/dri/renderD128", "graphics")             \
        X(F02w, HIGH, node_open(r, "/dev/vfio/vfio", O_RDWR), "open /dev/vfio/vfio", "device pass-through")            \
        X(F02x, HIGH, node_open(r, "/dev/tpmrm0", O_RDWR), "open /dev/tpmrm0", "host TPM")                             \
        X(F02y, HIGH, node_open(r, "/dev/vcs", O_RDONLY), "open /dev/vcs", "host console text")                        \
        X(F02z, HIGH, node_open(r, "/dev/udmabuf", O_RDWR), "open /dev/udmabuf", "CVE-2023-2008")                      \
        X(F02A, HIGH, node_open(r, "/dev/rfkill", O_RDWR), "open /dev/rfkill", "radio")                                \
        X(F02B, HIGH, node_open(r, "/dev/bus/usb/001/001", O_RDWR), "open /dev/bus/usb/001/001", "USB")                \
        X(F03a, CRIT, node_open(r, "/dev/vda", O_RDONLY), "open disk /dev/vda", "raw disk read")                       \
        X(F03b, CRIT, node_open(r, "/dev/vda1", O_RDONLY), "open disk /dev/vda1", "raw disk read")                     \
        X(F03c, CRIT, node_open(r, "/dev/sda", O_RDONLY), "open disk /dev/sda", "raw disk read")                       \
        X(F03d, CRIT, node_open(r, "/dev/sda1", O_RDONLY), "open disk /dev/sda1", "raw disk read")                     \
        X(F03e, CRIT, node_open(r, "/dev/nvme0n1", O_RDONLY), "open disk /dev/nvme0n1", "raw disk read")               \
        X(F03f, CRIT, node_open(r, "/dev/mmcblk0", O_RDONLY), "open disk /dev/mmcblk0", "raw disk read")               \
        X(F03g, CRIT, node_open(r, "/dev/xvda", O_RDONLY), "open disk /dev/xvda", "raw disk read")                     \
        X(F03h, CRIT, node_open(r, "/dev/dm-0", O_RDONLY), "open disk /dev/dm-0", "raw disk read")                     \
        X(F03i, CRIT, node_open(r, "/dev/loop0", O_RDONLY), "open disk /dev/loop0", "raw disk read")                   \
        X(F03j, CRIT, node_open(r, "/dev/zram0", O_RDONLY), "open disk /dev/zram0", "raw disk read")                   \
        X(F03k, CRIT, node_open(r, "/dev/md0", O_RDONLY), "open disk /dev/md0", "raw disk read")                       \
        X(F03l, CRIT, node_open(r, "/dev/root", O_RDONLY), "open disk /dev/root", "raw disk read")                     \
        X(F03m, CRIT, node_open(r, "/dev/sg0", O_RDONLY), "open disk /dev/sg0", "raw disk read")                       \
        X(F03n, CRIT, open_mount_source(r), "open the disk of our own mounts", "raw disk read")

#define MADE(X)                                                                                                        \
        X(F04a, CRIT, node_make_disk(r), "make and open the disk below /usr", "CAP_MKNOD")                             \
        X(F04b, CRIT, node_make(r, S_IFCHR, makedev(1, 1)), "make and open mem", "CAP_MKNOD")                          \
        X(F04c, CRIT, node_make(r, S_IFCHR, makedev(1, 4)), "make and open port", "CAP_MKNOD")                         \
        X(F04d, CRIT, node_make(r, S_IFCHR, makedev(1, 11)), "make and open kmsg", "CAP_MKNOD")                        \
        X(F04e, CRIT, node_make(r, S_IFCHR, makedev(10, 232)), "make and open kvm", "CAP_MKNOD")                       \
        X(F04f, CRIT, node_make(r, S_IFBLK, makedev(254, 0)), "make and open disk 254:0", "CAP_MKNOD")                 \
        X(F04g, CRIT, node_make(r, S_IFBLK, makedev(8, 0)), "make and open disk 8:0", "CAP_MKNOD")                     \
        X(F05a, HIGH, node_access(r, "/dev/watchdog"), "/dev/watchdog present", "host reboot")                         \
        X(F05b, HIGH, node_access(r, "/dev/watchdog0"), "/dev/watchdog0 present", "host reboot")                       \
        X(F05c, HIGH, node_access(r, "/dev/snapshot"), "/dev/snapshot present", "hibernation image")                   \
        X(F05d, HIGH, node_access(r, "/dev/ttyS0"), "/dev/ttyS0 present", "host console")                              \
        X(F05e, HIGH, node_access(r, "/dev/tty1"), "/dev/tty1 present", "host console")                                \
        X(F05f, HIGH, node_access(r, "/dev/console"), "/dev/console present", "host console")                          \
        X(F06a, HIGH, node_touch(r, "/dev/null"), "change the inode of /dev/null", "inode shared with the host")       \
        X(F06b, HIGH, node_touch(r, "/dev/zero"), "change the inode of /dev/zero", "inode shared with the host")       \
        X(F06c, HIGH, node_touch(r, "/dev/full"), "change the inode of /dev/full", "inode shared with the host")       \
        X(F06d, HIGH, node_touch(r, "/dev/random"), "change the inode of /dev/random", "inode shared with the host")   \
        X(F06e, HIGH, node_touch(r, "/dev/urandom"), "change the inode of /dev/urandom", "inode shared with the host") \
        X(F06f, HIGH, node_touch(r, "/dev/tty"), "change the inode of /dev/tty", "inode shared with the host")         \
        X(F06g, HIGH, node_owned(r, "/dev/null"), "owner of /dev/null", "inode shared with the host")                  \
        X(F07a, MED, node_link(r, BY_NAME, "/tmp"), "hard link of /dev/null", "node smuggling")                        \
        X(F07b, MED, node_link(r, BY_PROC_FD, "/tmp"), "hard link by /proc/self/fd", "node smuggling")                 \
        X(F07c, MED, node_link(r, BY_EMPTY_PATH, "/tmp"), "hard link by descriptor", "node smuggling")                 \
        X(F07d, MED, node_link(r, BY_NAME, "/dev/shm"), "hard link to /dev/shm", "node smuggling")                     \
        X(F07e, MED, node_rename(r, "/tmp"), "move /dev/full away", "node smuggling")                                  \
        X(F07f, MED, node_rename(r, "/dev/shm"), "move /dev/full to /dev/shm", "node smuggling")                       \
        X(F08a, HIGH, pts_foreign(r), "open another terminal of /dev/pts", "CVE-2025-52565")                           \
        X(F08b, HIGH, ptmx_instance(r, "/dev/ptmx"), "whose devpts is /dev/ptmx", "no newinstance")                    \
        X(F08c, HIGH, ptmx_instance(r, "/dev/pts/ptmx"), "whose devpts is /dev/pts/ptmx", "no newinstance")            \
        X(F08d, HIGH, stdio_terminal(r), "terminal of the caller on stdio", "CVE-2017-5226")                           \
        X(F08e, HIGH, controlling_terminal(r), "open the controlling terminal", "CVE-2017-5226")                       \
        X(F09a, MED, node_make_without_nodev(r), "device node where nodev is missing", "second wall")

FOUND(PROBE_FN)
MADE(PROBE_FN)

const struct probe_attempt probe_devices[] = {
        /* one row per line of the lists above */
        FOUND(PROBE_ROW) MADE(PROBE_ROW){ 0 },
};
