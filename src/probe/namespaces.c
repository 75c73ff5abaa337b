/*
 * namespaces.c - group B: new namespaces from inside, and joining those of others. A namespace that does come into
 * being holds only the attempt's own process and ends with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/probe.h"

enum { CLONE_FS_ = 0x200, DEPTH = 34, NETFILTER = 12, UMOUNT_DETACH = 2 };

static const char *const kinds[] = { "user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time" };

#define B_UNSHARE(id, flags)                                                                                           \
        static void id(const struct probe_canaries *c, struct probe_result *r) {                                       \
                (void) c;                                                                                              \
                probe_judge(r, sys_unshare(flags), "");                                                                \
        }
#define B_CLONE(id, flags)                                                                                             \
        static void id(const struct probe_canaries *c, struct probe_result *r) {                                       \
                long pid = SYS5(SYS_clone, (flags) | SIGCHLD, 0, 0, 0, 0);                                             \
                                                                                                                       \
                (void) c;                                                                                              \
                if (pid == 0)                                                                                          \
                        sys_exit(0);                                                                                   \
                probe_judge(r, pid, "");                                                                               \
        }

B_UNSHARE(b01a, SYS_CLONE_NEWUSER)
B_UNSHARE(b01b, SYS_CLONE_NEWUSER | SYS_CLONE_NEWNS | SYS_CLONE_NEWPID | SYS_CLONE_NEWNET)
B_UNSHARE(b05a, SYS_CLONE_NEWNS)
B_UNSHARE(b05b, SYS_CLONE_NEWNET)
B_UNSHARE(b05c, SYS_CLONE_NEWPID)
B_UNSHARE(b05d, SYS_CLONE_NEWIPC)
B_UNSHARE(b05e, SYS_CLONE_NEWUTS)
B_UNSHARE(b05f, SYS_CLONE_NEWCGROUP)
B_UNSHARE(b05g, SYS_CLONE_NEWTIME)
B_CLONE(b02a, SYS_CLONE_NEWUSER)
B_CLONE(b02b, SYS_CLONE_NEWUSER | SYS_CLONE_NEWPID)
B_CLONE(b05h, SYS_CLONE_NEWNS)
B_CLONE(b05i, SYS_CLONE_NEWPID)

static void clone3_try(struct probe_result *r, uint64_t flags) {
        struct sys_clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
        long pid = SYS2(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                sys_exit(0);
        probe_judge(r, pid, "");
}

static void b03a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        clone3_try(r, SYS_CLONE_NEWUSER);
}

/* A filter cannot look into the struct: if the plain call works, only the kernel stands before the others. */
static void b03b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        clone3_try(r, 0);
}

static void b03c(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        clone3_try(r, SYS_CLONE_NEWTIME);
}

/* A new user namespace gives all capabilities in it even before its maps are written. */
static void b04(const struct probe_canaries *c, struct probe_result *r) {
        char dir[] = "/tmp/probe-XXXXXX";
        int ret = sys_unshare(SYS_CLONE_NEWUSER | SYS_CLONE_NEWNS);

        (void) c;
        if (ret < 0) {
                probe_stopped(r, -ret, "at the first step");
                return;
        }
        /* /tmp may refuse an owner without a map; any folder will do in a mount namespace of one's own */
        ret = (int) SYS5(SYS_mount, "none", mkdtemp(dir) ? dir : "/tmp", "tmpfs", 0, NULL);
        if (ret == 0)
                (void) sys_umount2(dir, UMOUNT_DETACH);
        (void) rmdir(dir);
        probe_judge(r, ret, "user namespace, mount namespace, mount");
}

static void b06(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_unshare(SYS_CLONE_NEWUSER | SYS_CLONE_NEWNET);

        (void) c;
        if (ret < 0)
                probe_stopped(r, -ret, "at the first step");
        else
                probe_judge(r, SYS3(SYS_socket, 16, 3, NETFILTER), "a netfilter socket with all capabilities");
}

static void b07(const struct probe_canaries *c, struct probe_result *r) {
        char note[48];
        int n = 0, ret = 0;

        (void) c;
        while (n < DEPTH && (ret = sys_unshare(SYS_CLONE_NEWUSER)) == 0)
                n++;
        (void) snprintf(note, sizeof(note), "%d deep", n);
        probe_judge(r, n ? 0 : ret, note);
}

/* EBADF comes from the kernel: the call is open to whoever finds a descriptor. */
static void b08a(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_setns(-1, 0);

        (void) c;
        probe_judge(r, ret == -EBADF ? 0 : ret, ret == -EBADF ? "the kernel itself answered" : "");
}

static bool is_own_namespace(const char *path, const char *kind) {
        char own[48];
        struct stat a, b;

        (void) snprintf(own, sizeof(own), "/proc/self/ns/%s", kind);
        return stat(path, &a) == 0 && stat(own, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void b08b(const struct probe_canaries *c, struct probe_result *r) {
        int last = ENOENT;

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                char path[48];
                bool is_own;
                int ret;

                (void) snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i]);
                is_own = is_own_namespace(path, kinds[i]);
                AUTO_FD int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
                ret = fd < 0 ? fd : sys_setns(fd, 0);
                if (ret == 0 && !is_own) {
                        probe_reached(r, path);
                        return;
                }
                if (ret < 0)
                        last = -ret;
        }
        probe_stopped(r, last, "");
}

/* All kinds at once by a pidfd; counted only if any of them is another afterwards. */
static void b09(const struct probe_canaries *c, struct probe_result *r) {
        struct stat before[ARRAY_SIZE(kinds)] = { 0 }, after;
        AUTO_FD int pidfd = sys_pidfd_open(1);
        char path[48];
        int ret;

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
                (void) stat(path, &before[i]);
        }
        ret = pidfd < 0 ? pidfd
                        : sys_setns(pidfd, SYS_CLONE_NEWNS | SYS_CLONE_NEWNET | SYS_CLONE_NEWIPC | SYS_CLONE_NEWUTS |
                                                   SYS_CLONE_NEWCGROUP);
        if (ret < 0) {
                probe_stopped(r, -ret, "");
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
                if (stat(path, &after) < 0 || after.st_ino != before[i].st_ino) {
                        probe_reached(r, path);
                        return;
                }
        }
        probe_stopped(r, 0, "process 1 lives in the same namespaces");
}

/* Without it a hole in the filter is at once a user namespace. */
static void b10(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC, 0);
        char text[24] = "";

        (void) c;
        if (fd < 0) {
                probe_judge(r, fd, "not to be seen");
                return;
        }
        (void) !read(fd, text, sizeof(text) - 1);
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, "0") == 0)
                probe_stopped(r, 0, "0");
        else
                probe_reached(r, text);
}

static void control(struct probe_result *r, int ret) {
        probe_judge(r, ret, "");
        if (ret == 0)
                r->verdict = PROBE_ACCEPTED;
}

static void b11a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        control(r, sys_unshare(SYS_CLONE_FILES));
}

static void b11b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        control(r, sys_unshare(CLONE_FS_));
}

#define NFT "CVE-2024-1086"

const struct probe_attempt probe_namespaces[] = {
        { "B01a", PROBE_HIGH, "unshare a user namespace", "CVE-2022-0185", b01a },
        { "B01b", PROBE_HIGH, "unshare user, mount, pid and network namespaces", NFT, b01b },
        { "B02a", PROBE_HIGH, "clone into a user namespace", "CVE-2021-22555", b02a },
        { "B02b", PROBE_HIGH, "clone into user and pid namespaces", "CVE-2021-22555", b02b },
        { "B03a", PROBE_HIGH, "clone3 into a user namespace", "CVE-2021-41133", b03a },
        { "B03b", PROBE_MED, "clone3 at all", "filters cannot see its struct", b03b },
        { "B03c", PROBE_MED, "clone3 into a time namespace", "filters cannot see its struct", b03c },
        { "B04", PROBE_HIGH, "user namespace, then mount a tmpfs", "full regain", b04 },
        { "B05a", PROBE_HIGH, "unshare a mount namespace", "CVE-2022-0492", b05a },
        { "B05b", PROBE_MED, "unshare a network namespace", "", b05b },
        { "B05c", PROBE_MED, "unshare a pid namespace", "", b05c },
        { "B05d", PROBE_MED, "unshare an ipc namespace", "", b05d },
        { "B05e", PROBE_MED, "unshare a uts namespace", "", b05e },
        { "B05f", PROBE_HIGH, "unshare a cgroup namespace", "CVE-2022-0492", b05f },
        { "B05g", PROBE_MED, "unshare a time namespace", "", b05g },
        { "B05h", PROBE_HIGH, "clone into a mount namespace", "", b05h },
        { "B05i", PROBE_MED, "clone into a pid namespace", "", b05i },
        { "B06", PROBE_HIGH, "user and network namespace, then netfilter", "CVE-2023-32233", b06 },
        { "B07", PROBE_MED, "34 user namespaces in each other", "kernel memory", b07 },
        { "B08a", PROBE_MED, "setns with a bad descriptor", "call surface", b08a },
        { "B08b", PROBE_CRIT, "setns to the namespaces of process 1", "joining the host", b08b },
        { "B09", PROBE_CRIT, "setns by a pidfd of process 1", "joining the host", b09 },
        { "B10", PROBE_LOW, "user namespaces are off by count too", "second wall", b10 },
        { "B11a", PROBE_CONTROL, "unshare the descriptor table", "", b11a },
        { "B11b", PROBE_CONTROL, "unshare the working folder", "", b11b },
        { 0 },
};
