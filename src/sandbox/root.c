/*
 * root.c - what the sandbox will see as its file system, prepared as detached mounts.
 *
 * Nothing here is visible to anybody until the set-up child attaches it in its own mount namespace. Sources given by a
 * person are opened once (plan_mount.fd) and used by descriptor from then on.
 */
#include "sandbox/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"

static int oops(struct err *err, int code, const char *what, const char *path) {
        return err_set(err, code, ERR_INTERNAL, "%s %s: %s", what, path, strerror(-code));
}

static int tmpfs_make(const struct plan *plan, const struct child *c, struct err *err) {
        unsigned long long bytes = plan->tmpfs_bytes * (WEAK(c, WEAKEN_TMPFS_SIZE) ? 2 : 1);
        AUTO_FD int fs = sys_fsopen("tmpfs");
        char size[24], inodes[24];
        int r = fs;

        (void) snprintf(size, sizeof(size), "%llu", bytes);
        (void) snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long) plan->tmpfs_inodes);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "size", size);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "nr_inodes", inodes);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "mode", "0755");
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
        if (r >= 0)
                r = sys_fsmount(fs, SYS_MOUNT_NOSUID);
        return r < 0 ? oops(err, r, "tmpfs", "/") : r;
}

int root_make(const struct plan *plan, struct child *c, struct err *err) {
        const char *where = "";
        mode_t old;
        int r;

        c->root_fd = r = tmpfs_make(plan, c, err);
        if (r < 0)
                return r;
        old = umask(0);
        r = skeleton_fill(c, c->root_fd, &where);
        (void) umask(old);
        return r < 0 ? oops(err, r, "making", where) : 0;
}

static int devpts_make(const struct child *c, struct err *err) {
        AUTO_FD int fs = sys_fsopen("devpts");
        int r = fs;

        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_FLAG, "newinstance", NULL);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "ptmxmode", "0666");
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "mode", "0600");
        if (r >= 0 && !WEAK(c, WEAKEN_TERMINALS))
                r = sys_fsconfig(fs, SYS_FSCONFIG_STRING, "max", PLAN_TERMINALS);
        if (r >= 0)
                r = sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);
        if (r >= 0)
                r = sys_fsmount(fs, SYS_MOUNT_NOSUID | SYS_MOUNT_NOEXEC);
        return r < 0 ? oops(err, r, "devpts", "/dev/pts") : r;
}

static int bind_make(const struct plan_mount *m, enum sandbox_weaken weaken, int idmap_fd, struct err *err) {
        struct sys_mount_attr attr = { .attr_set = SYS_MOUNT_NOSUID, .propagation = SYS_MS_PRIVATE };
        unsigned flags = SYS_OPEN_TREE_CLONE | SYS_AT_RECURSIVE;
        AUTO_FD int fd = -1;
        int r;

        (void) weaken;
        fd = m->fd >= 0 ? sys_open_tree(m->fd, "", flags | SYS_AT_EMPTY_PATH)
                        : sys_open_tree(AT_FDCWD, m->source, flags);
        if (fd == -ENOENT && m->kind == PLAN_OPTIONAL)
                return -ENOENT;
        if (fd < 0)
                return oops(err, fd, "mount source", m->source);
        attr.attr_set |= m->kind == PLAN_DEVICE ? SYS_MOUNT_NOEXEC : SYS_MOUNT_NODEV;
        if (!m->writable)
                attr.attr_set |= SYS_MOUNT_RDONLY;
#ifdef GABION_WEAKEN
        if (weaken == WEAKEN_USR_RW && str_eq(m->target, "/usr"))
                attr.attr_set &= ~(uint64_t) SYS_MOUNT_RDONLY;
        if (weaken == WEAKEN_SHARED && str_eq(m->target, "/usr"))
                attr.propagation = SYS_MS_SHARED;
#endif
        if (m->user_owned && idmap_fd >= 0) {
                attr.attr_set |= SYS_MOUNT_IDMAP;
                attr.userns_fd = (uint64_t) idmap_fd;
        }
        r = sys_mount_setattr(fd, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
        if (r == -EINVAL && (attr.attr_set & SYS_MOUNT_IDMAP))
                return err_set(err, r, ERR_INVALID,
                               "mount %s: its file system cannot map owners; use another directory", m->source);
        return r < 0 ? oops(err, r, "mount attributes of", m->source) : TAKE_FD(fd);
}

int root_pieces(const struct plan *plan, struct child *c, int idmap_fd, struct err *err) {
        for (size_t i = 0; i < plan->n_mounts; i++) {
                const struct plan_mount *m = &plan->mounts[i];
                struct stat st;
                int r = -ENOENT;

                if (m->kind == PLAN_DEVPTS)
                        r = devpts_make(c, err);
                else if (m->kind != PLAN_WRITABLE)
                        r = bind_make(m, c->weaken, idmap_fd, err);
                if (r < 0 && (r != -ENOENT || m->kind == PLAN_BIND))
                        return r;
                c->piece_fds[i] = r < 0 ? -1 : r;
                c->piece_is_dir[i] = r >= 0 && fstat(r, &st) == 0 && S_ISDIR(st.st_mode);
        }
        return 0;
}

static int rule(int ruleset, uint64_t rights, int dir_fd, const char *path, struct err *err) {
        AUTO_FD int fd = openat(dir_fd, path, O_PATH | O_CLOEXEC);
        int r = fd < 0 ? -errno : sys_landlock_add_path(ruleset, rights, fd);

        return r < 0 ? oops(err, r, "Landlock rule for", path) : 0;
}

static int mount_rule(const struct plan_mount *m, const struct child *c, size_t i, int ruleset, struct err *err) {
        static const uint64_t for_files = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000; /* what a rule on a file may hold */
        uint64_t bits = m->landlock & (c->piece_is_dir[i] ? ~0ull : for_files);
        int r = 0;

        if (m->kind == PLAN_WRITABLE)
                return rule(ruleset, m->landlock, c->root_fd, m->target + 1, err);
        if (c->piece_fds[i] >= 0 && bits)
                r = sys_landlock_add_path(ruleset, bits, c->piece_fds[i]);
        return r < 0 ? oops(err, r, "Landlock rule for", m->target) : 0;
}

int root_landlock(const struct plan *plan, const struct child *c, struct err *err) {
        struct sys_landlock_attr attr = { plan->landlock_fs, 0, WEAK(c, WEAKEN_SCOPE) ? 0 : plan->landlock_scoped };
        size_t size = plan->landlock_abi >= 6 ? sizeof(attr) : plan->landlock_abi >= 4 ? 16 : 8;
        AUTO_FD int fd = sys_landlock_create(&attr, size);
        int r = fd < 0 ? oops(err, fd, "Landlock", "rule set") : 0;

        if (r == 0)
                r = rule(fd, plan->landlock_root, c->root_fd, ".", err);
        if (r == 0)
                r = rule(fd, plan->landlock_etc, c->root_fd, "etc", err);
        if (r == 0)
                r = rule(fd, plan->landlock_dev, c->root_fd, "dev", err);
        for (size_t i = 0; r == 0 && i < plan->n_mounts; i++)
                r = mount_rule(&plan->mounts[i], c, i, fd, err);
        if (r == 0 && dup3(fd, AP_FD_LANDLOCK, 0) < 0)
                r = oops(err, -errno, "Landlock", "rule set");
        return r;
}
