/*
 * calls_mount.c - file handles, the old and the new mount calls, pivot_root and chroot.
 *
 * What does mount is unmounted at once, on a folder made for it. A mask is never really taken away: MNT_EXPIRE only
 * marks a mount (EAGAIN) or says that it is in use (EBUSY), and gives either answer only to somebody who may unmount.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/calls.h"

enum { MS_REMOUNT_BIND = 32 | 4096, MS_BIND_ONLY = 4096, UMOUNT_DETACH = 2, UMOUNT_EXPIRE = 4 };
enum { NR_OPEN_TREE_ATTR = 467, CLIMB = 64 };

struct handle {
        unsigned bytes;
        int type;
        unsigned char f[128];
};

static long handle_of_root(struct handle *h) {
        int mount_id;

        *h = (struct handle){ .bytes = sizeof(h->f) };
        return SYS5(SYS_name_to_handle_at, AT_FDCWD, "/", h, &mount_id, 0);
}

void calls_c10a(const struct probe_canaries *c, struct probe_result *r) {
        struct handle h;

        (void) c;
        calls_answer(r, handle_of_root(&h));
}

/* Inode 2 is the root of most disk filesystems: what the Shocker exploit asked for. */
void calls_c10b(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int root = sys_openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        struct handle h;

        (void) c;
        if (handle_of_root(&h) < 0)
                h = (struct handle){ .bytes = 8, .type = 1, .f = { 2 } };
        calls_answer(r, SYS3(SYS_open_by_handle_at, root, &h, O_RDONLY | O_CLOEXEC));
}

CALLS_ANSWER(c10c, SYS3(SYS_open_by_handle_at, -1, CALLS_BAD, O_RDONLY))

static void mount_try(struct probe_result *r, const char *source, const char *type, unsigned long flags) {
        char dir[64];
        long ret;

        if (calls_scratch(dir, sizeof(dir)) < 0) {
                probe_absent(r, "no folder to mount on");
                return;
        }
        ret = SYS5(SYS_mount, source, dir, type, flags, NULL);
        if (ret == 0)
                (void) sys_umount2(dir, UMOUNT_DETACH);
        (void) rmdir(dir);
        calls_answer(r, ret);
}

#define MOUNT_TRY(id, source, type, flags)                                                                             \
        void calls_##id(const struct probe_canaries *c, struct probe_result *r) {                                      \
                (void) c;                                                                                              \
                mount_try(r, source, type, flags);                                                                     \
        }

MOUNT_TRY(c11a, "none", "tmpfs", 0)
MOUNT_TRY(c11b, "none", "proc", 0)
MOUNT_TRY(c11c, "/", NULL, MS_BIND_ONLY)
/* The folder is no mount of its own, so nothing can be remounted. */
MOUNT_TRY(c11d, NULL, NULL, MS_REMOUNT_BIND)
MOUNT_TRY(c11e, "none", "overlay", 0)
MOUNT_TRY(c11f, "none", "cgroup2", 0)
CALLS_ANSWER(c11g, SYS5(SYS_mount, CALLS_BAD, CALLS_BAD, CALLS_BAD, 0, CALLS_BAD))
CALLS_ANSWER(c11h, SYS2(SYS_umount2, CALLS_BAD, -1))

CALLS_ANSWER(c12a, sys_fsopen("tmpfs"))
CALLS_ANSWER(c12b, sys_fsconfig(-1, SYS_FSCONFIG_CREATE, NULL, NULL))
CALLS_ANSWER(c12c, sys_fsmount(-1, 0))
CALLS_ANSWER(c12d, SYS3(SYS_fspick, -1, CALLS_BAD, -1))
CALLS_ANSWER(c12e, sys_open_tree(AT_FDCWD, "/", O_CLOEXEC))
CALLS_ANSWER(c12f, sys_open_tree(AT_FDCWD, "/", SYS_OPEN_TREE_CLONE | SYS_AT_RECURSIVE | O_CLOEXEC))
CALLS_ANSWER(c12g, SYS5(SYS_move_mount, -1, CALLS_BAD, -1, CALLS_BAD, -1))
CALLS_ANSWER(c12h, sys_mount_setattr(-1, CALLS_BAD, -1u, NULL))
CALLS_ANSWER(c12i, SYS5(NR_OPEN_TREE_ATTR, -1, CALLS_BAD, -1, NULL, -1))

static void umount_try(struct probe_result *r, const char *path) {
        struct stat st;
        long ret;

        if (stat(path, &st) < 0) { /* also clears a mark that somebody else left */
                probe_absent(r, "no such mount");
                return;
        }
        ret = sys_umount2(path, UMOUNT_EXPIRE);
        if (ret == 0 || ret == -EAGAIN || ret == -EBUSY)
                probe_reached(r, path);
        else
                probe_stopped(r, (int) -ret, path);
}

/* The first mount below /proc is a mask, whoever made it. */
void calls_c13a(const struct probe_canaries *c, struct probe_result *r) {
        FILE *f = fopen("/proc/self/mountinfo", "re");
        char line[512], *path = NULL;

        (void) c;
        while (f && !path && fgets(line, sizeof(line), f)) {
                path = line;
                for (int i = 0; path && i < 4; i++)
                        path = (path = strchr(path, ' ')) ? path + 1 : NULL;
                if (path && !str_has_prefix(path, "/proc/"))
                        path = NULL;
        }
        if (f)
                (void) fclose(f);
        if (!path) {
                probe_absent(r, "nothing is mounted below /proc");
                return;
        }
        path[strcspn(path, " \n")] = '\0';
        umount_try(r, path);
}

void calls_c13b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        umount_try(r, "/proc");
}

void calls_c13c(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        umount_try(r, "/dev");
}

CALLS_ANSWER(c14a, SYS2(SYS_pivot_root, CALLS_BAD, CALLS_BAD))
CALLS_ANSWER(c14b, SYS1(SYS_chroot, "/"))
CALLS_ANSWER(c14d, SYS1(SYS_chroot, CALLS_BAD))

/* A root inside the folder, a descriptor outside it: ".." is then never stopped by the root. */
void calls_c14c(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int out = sys_openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        struct stat before = { 0 }, after = { 0 };
        char dir[64];
        long ret;

        (void) c;
        if (out < 0 || fstat(out, &before) < 0 || calls_scratch(dir, sizeof(dir)) < 0) {
                probe_absent(r, "no folder to start from");
                return;
        }
        ret = SYS1(SYS_chroot, dir);
        (void) unlinkat(out, dir + 1, AT_REMOVEDIR);
        if (ret < 0) {
                calls_answer(r, ret);
                return;
        }
        (void) sys_fchdir(out);
        for (int i = 0; i < CLIMB; i++)
                (void) sys_chdir("..");
        if (SYS1(SYS_chroot, ".") < 0 || stat("/", &after) < 0)
                probe_stopped(r, errno, "chroot worked once, not twice");
        else if (after.st_ino == before.st_ino && after.st_dev == before.st_dev)
                probe_reached(r, "left the inner root; the outer one is the sandbox's own");
        else
                probe_reached(r, "a root above the sandbox's own");
}
