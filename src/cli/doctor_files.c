/* doctor_files.c - checks of mounts, file systems and memory that files live in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/doctor.h"

enum { RUN_DIR_ROOM = 1024 * 1024 };

static const char *fs_name(const char *path) {
        static const struct {
                uint32_t magic;
                const char *name;
        } known[] = {
                { 0xef53, "ext4" },         { 0x58465342, "xfs" }, { 0x9123683e, "btrfs" }, { 0x794c7630, "overlay" },
                { 0x01021994, "tmpfs" },    { 0x2fc12fc1, "zfs" }, { 0x6969, "nfs" },       { 0x65735546, "fuse" },
                { 0xf2f52010, "f2fs" },     { 0x01021997, "9p" },  { 0xe0f5e1e2, "erofs" }, { 0x73717368, "squashfs" },
                { 0xca451a4e, "bcachefs" },
        };
        struct statfs st;

        if (statfs(path, &st) < 0)
                return "unreadable";
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if ((uint32_t) st.f_type == known[i].magic)
                        return known[i].name;
        return "another type";
}

static void mounts_missing(struct doctor_finding *f, const char *what, int r) {
        doctor_found(f, DOCTOR_MISSING, "%s: %s", what, strerror(-r));
        doctor_remedy(f, r == -ENOSYS ? "boot Linux 5.19 or later; in a container, allow the calls in its filter"
                                      : "run gabion on the host itself, not in a container without CAP_SYS_ADMIN");
}

void doctor_mounts(struct doctor_finding *f) {
        const struct sys_mount_attr attr = { .attr_set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV };
        AUTO_FD int tree = -1, fs = -1, mount = -1;
        int r = doctor_privileged();

        if (r == 0)
                r = sys_unshare(SYS_CLONE_NEWNS);
        if (r < 0) {
                mounts_missing(f, "mount namespace", r);
                return;
        }
        tree = r = sys_open_tree(AT_FDCWD, "/usr", SYS_OPEN_TREE_CLONE | SYS_AT_RECURSIVE);
        if (r >= 0)
                r = sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
        if (r < 0) {
                mounts_missing(f, "a read-only copy of /usr", r);
                return;
        }
        fs = r = sys_fsopen("tmpfs");
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
        if (r >= 0) {
                mount = sys_fsmount(fs, SYS_MOUNT_NOSUID);
                r = mount;
        }
        if (r < 0)
                mounts_missing(f, "a new tmpfs", r);
        else
                doctor_found(f, DOCTOR_OK, "/usr (%s) and a tmpfs were mounted apart from the host's", fs_name("/usr"));
}

struct holder {
        int ready_fd;
};

static int holder_main(void *arg) {
        const struct holder *h = arg;

        if (sys_unshare(SYS_CLONE_NEWUSER) < 0 || fd_write_all(h->ready_fd, "r", 1) < 0)
                return 1;
        for (;;)
                (void) pause();
}

/* Descriptor of a user namespace with a map of one id; its first process is ended again. */
static int idmap_make(void) {
        int fds[2], pid, r = 0, fd = -1;
        char path[48], byte;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid = doctor_child(holder_main, &(struct holder){ fds[1] });
        (void) close(fds[1]);
        if (pid < 0 || read(fds[0], &byte, 1) != 1)
                r = -EPERM;
        (void) close(fds[0]);
        for (int i = 0; r == 0 && i < 2; i++) {
                (void) snprintf(path, sizeof(path), "/proc/%d/%cid_map", pid, "ug"[i]);
                r = fd_write_at(AT_FDCWD, path, "0 1879048192 1\n");
        }
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        if (r == 0)
                fd = open(path, O_RDONLY | O_CLOEXEC);
        if (r == 0 && fd < 0)
                r = -errno;
        if (pid > 0) {
                (void) sys_kill(pid, 9);
                (void) doctor_wait(pid);
        }
        return r < 0 ? r : fd;
}

static int idmap_try(const char *path, int userns_fd) {
        const struct sys_mount_attr attr = { .attr_set = SYS_MOUNT_IDMAP, .userns_fd = (uint64_t) userns_fd };
        AUTO_FD int tree = sys_open_tree(AT_FDCWD, path, SYS_OPEN_TREE_CLONE);

        return tree < 0 ? tree : sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &attr);
}

void doctor_idmap(struct doctor_finding *f) {
        AUTO_FD int userns = -1;
        int here, usr;

        if (geteuid() != 0) {
                doctor_found(f, DOCTOR_OK, "not used by ordinary users: inside, the owner of mounts is the caller");
                return;
        }
        userns = idmap_make();
        if (userns < 0 || sys_unshare(SYS_CLONE_NEWNS) < 0) {
                doctor_found(f, DOCTOR_UNKNOWN, "no namespace to try it with: %s",
                             strerror(userns < 0 ? -userns : EPERM));
                return;
        }
        usr = idmap_try("/usr", userns);
        here = idmap_try(".", userns);
        doctor_found(f, usr == 0 && here == 0 ? DOCTOR_OK : DOCTOR_LIMITED, "/usr (%s): %s; this directory (%s): %s",
                     fs_name("/usr"), usr == 0 ? "yes" : strerror(-usr), fs_name("."),
                     here == 0 ? "yes" : strerror(-here));
        if (here < 0)
                doctor_remedy(f, "mount directories of ext4, xfs, btrfs or (Linux 6.3) tmpfs with -v");
}

void doctor_overlay(struct doctor_finding *f) {
        AUTO_FD int fs = -1;
        int r = doctor_privileged();

        if (r == 0)
                r = sys_unshare(SYS_CLONE_NEWNS);
        if (r == 0) {
                fs = sys_fsopen("overlay");
                r = fs;
        }
        if (r >= 0) {
                doctor_found(f, DOCTOR_OK, "available");
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "not available: %s", strerror(-r));
        doctor_remedy(f, r == -ENODEV ? "as root: modprobe overlay" : "run gabion on the host itself");
}

void doctor_run_dir(struct doctor_finding *f) {
        struct statvfs st;
        uint64_t room;
        char path[48] = "/run";

        if (geteuid() != 0) {
                (void) snprintf(path, sizeof(path), "/run/user/%u", (unsigned) geteuid());
                if (access(path, W_OK | X_OK) < 0)
                        (void) snprintf(path, sizeof(path), "/tmp");
        }
        if (access(path, W_OK | X_OK) < 0 || statvfs(path, &st) < 0) {
                doctor_found(f, DOCTOR_MISSING, "%s cannot be written: %s", path, strerror(errno));
                doctor_remedy(f, "as root: mount -o remount,rw %s", path);
                return;
        }
        room = (uint64_t) st.f_bavail * st.f_frsize;
        doctor_found(f, room < RUN_DIR_ROOM || st.f_favail < 16 ? DOCTOR_LIMITED : DOCTOR_OK, "%s (%s), %llu MiB free",
                     path, fs_name(path), (unsigned long long) room >> 20);
        if (f->state == DOCTOR_LIMITED)
                doctor_remedy(f, "free some space there: df %s", path);
}

void doctor_swap(struct doctor_finding *f) {
        char text[4096];
        int n = fd_read_at(AT_FDCWD, "/proc/swaps", text, sizeof(text));
        const char *first = n < 0 ? NULL : strchr(text, '\n');

        if (n == -EFBIG || (first && first[1])) {
                bool v1 = access("/sys/fs/cgroup/memory", F_OK) == 0;

                doctor_found(f, DOCTOR_OK, "on; sandboxes are kept out of it");
                if (v1 && access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) < 0) {
                        doctor_found(f, DOCTOR_LIMITED, "on, and this kernel does not count it per group");
                        doctor_remedy(f, "boot with swapaccount=1, or as root: swapoff -a");
                }
                return;
        }
        doctor_found(f, DOCTOR_OK, "none");
}
