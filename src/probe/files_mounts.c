/*
 * files_mounts.c - what the mount table gives away, the files of control groups, and mounts of our own.
 *
 * Invariant: control files are opened for writing and never written; a mount that works is taken away at once.
 */
#include "probe/files_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/files_look.h"

#define OWN_DIR "/tmp/.probe-dir"
#define OWN_FILE "/tmp/.probe-file"

/* A line of mountinfo in pieces: id parent dev root point options [tags] - type source more. */
struct mount_line {
        const char *point, *options, *tags, *type;
};

struct mount_scan {
        bool (*is_bad)(const struct mount_line *m);
        char first[64];
        int n, lines;
};

static char *word_cut(char **rest) {
        char *word = *rest;
        char *end = strchrnul(word, ' ');

        *rest = *end ? end + 1 : end;
        *end = '\0';
        return word;
}

static bool on_mount_line(char *line, void *arg) {
        struct mount_scan *s = arg;
        struct mount_line m;
        char *dash = strstr(line, " - "), *rest = line;

        if (!dash)
                return false;
        *dash = '\0';
        for (int i = 0; i < 4; i++)
                (void) word_cut(&rest);
        m.point = word_cut(&rest);
        m.options = word_cut(&rest);
        m.tags = rest;
        rest = dash + 3;
        m.type = word_cut(&rest);
        s->lines++;
        if (s->is_bad(&m) && s->n++ == 0)
                (void) snprintf(s->first, sizeof(s->first), "%.40s (%.15s)", m.point, m.type);
        return false;
}

static void mounts_scan(struct probe_result *r, bool (*is_bad)(const struct mount_line *m)) {
        struct mount_scan s = { .is_bad = is_bad };
        char note[110];

        (void) look_each_line("/proc/self/mountinfo", on_mount_line, &s);
        if (s.lines == 0) {
                probe_absent(r, "no mountinfo");
                return;
        }
        (void) snprintf(note, sizeof(note), "%d of %d mounts%s%s", s.n, s.lines, s.n ? ": " : "", s.first);
        if (s.n)
                probe_reached(r, note);
        else
                probe_stopped(r, 0, note);
}

static bool has_option(const struct mount_line *m, const char *option) {
        const char *p = m->options;
        size_t n = strlen(option);

        for (; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                if (strncmp(p, option, n) == 0 && (p[n] == ',' || p[n] == '\0'))
                        return true;
        return false;
}

static bool is_shared(const struct mount_line *m) {
        return strstr(m->tags, "shared:");
}

static bool is_master(const struct mount_line *m) {
        return strstr(m->tags, "master:") || strstr(m->tags, "propagate_from:");
}

static bool is_suid(const struct mount_line *m) {
        return !has_option(m, "nosuid");
}

/* Where device nodes are meant to be: group F looks at what they are. */
static bool is_dev(const struct mount_line *m) {
        return !has_option(m, "nodev") && !str_eq(m->point, "/dev") && !str_has_prefix(m->point, "/dev/");
}

static bool is_system_rw(const struct mount_line *m) {
        static const char *const places[] = { "/", "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var" };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (str_eq(m->point, places[i]))
                        return !has_option(m, "ro");
        return false;
}

static bool is_disk_rw(const struct mount_line *m) {
        return !has_option(m, "ro") &&
               (str_has_prefix(m->type, "ext") || str_eq(m->type, "xfs") || str_eq(m->type, "btrfs") ||
                str_eq(m->type, "zfs") || str_has_prefix(m->type, "nfs") || str_eq(m->type, "vfat"));
}

static bool is_control_rw(const struct mount_line *m) {
        return !has_option(m, "ro") && (str_eq(m->type, "proc") || str_eq(m->type, "sysfs"));
}

static bool is_kernel(const struct mount_line *m) {
        static const char *const types[] = { "debugfs", "tracefs", "cgroup",   "cgroup2", "securityfs", "configfs",
                                             "bpf",     "fusectl", "efivarfs", "pstore",  "devtmpfs",   "binfmt_misc" };
        struct stat st;

        /* A single harmless node, mounted read-only, is how a sandbox without root gets its /dev/null. */
        if (str_eq(m->type, "devtmpfs") && has_option(m, "ro") && stat(m->point, &st) == 0 && S_ISCHR(st.st_mode))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (str_eq(m->type, types[i]))
                        return true;
        return false;
}

#define MOUNTS_SCAN(fn, is_bad)                                                                                        \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                mounts_scan(r, is_bad);                                                                                \
        }

MOUNTS_SCAN(mounts_shared, is_shared)
MOUNTS_SCAN(mounts_master, is_master)
MOUNTS_SCAN(mounts_nosuid, is_suid)
MOUNTS_SCAN(mounts_nodev, is_dev)
MOUNTS_SCAN(mounts_system_rw, is_system_rw)
MOUNTS_SCAN(mounts_disk_rw, is_disk_rw)
MOUNTS_SCAN(mounts_control_rw, is_control_rw)
MOUNTS_SCAN(mounts_kernel, is_kernel)

struct group_try {
        const char *file;
        int ret; /* the best answer so far; -ENOENT: no such file anywhere */
};

static bool on_group_dir(const char *dir, const char *name, void *arg) {
        struct group_try *t = arg;
        char path[128];
        int ret;

        (void) snprintf(path, sizeof(path), "%.40s/%.40s/%.40s", dir, name, t->file);
        ret = look_open(path, O_WRONLY);
        if (ret != -ENOENT && ret != -ENOTDIR)
                t->ret = ret;
        return ret == 0;
}

static void cgroup_file(struct probe_result *r, const char *file) {
        struct group_try t = { file, -ENOENT };

        if (!on_group_dir("/sys/fs/cgroup", ".", &t))
                (void) look_each("/sys/fs/cgroup", on_group_dir, &t);
        probe_judge(r, t.ret, "");
}

#define CGROUP_FILE(fn, file)                                                                                          \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                cgroup_file(r, file);                                                                                  \
        }

CGROUP_FILE(cgroup_release_agent, "release_agent")
CGROUP_FILE(cgroup_notify_on_release, "notify_on_release")
CGROUP_FILE(cgroup_cgroup_procs, "cgroup.procs")
CGROUP_FILE(cgroup_tasks, "tasks")
CGROUP_FILE(cgroup_cgroup_subtree_control, "cgroup.subtree_control")
CGROUP_FILE(cgroup_memory_max, "memory.max")
CGROUP_FILE(cgroup_memory_limit_in_bytes, "memory.limit_in_bytes")
CGROUP_FILE(cgroup_pids_max, "pids.max")
CGROUP_FILE(cgroup_cpu_max, "cpu.max")
CGROUP_FILE(cgroup_cpu_cfs_quota_us, "cpu.cfs_quota_us")
CGROUP_FILE(cgroup_cgroup_kill, "cgroup.kill")
CGROUP_FILE(cgroup_cgroup_freeze, "cgroup.freeze")
CGROUP_FILE(cgroup_devices_allow, "devices.allow")

void cgroup_mkdir(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const places[] = { "/sys/fs/cgroup/.gabion-probe", "/sys/fs/cgroup/unified/.gabion-probe",
                                              "/sys/fs/cgroup/pids/.gabion-probe",
                                              "/sys/fs/cgroup/memory/.gabion-probe" };
        int ret = -ENOENT;

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(places) && ret < 0; i++) {
                int now = sys_mkdirat(AT_FDCWD, places[i], 0700);

                ret = now == -ENOENT ? ret : now;
                if (now == 0)
                        (void) rmdir(places[i]);
        }
        probe_judge(r, ret, "");
}

static bool on_group_line(char *line, void *arg) {
        char *path = strrchr(line, ':');

        if (!path || str_eq(path, ":/"))
                return false;
        probe_reached(arg, path + 1);
        return true;
}

static void cgroup_place(struct probe_result *r, const char *file) {
        if (!look_each_line(file, on_group_line, r))
                probe_stopped(r, 0, "only /");
}

void cgroup_self(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        cgroup_place(r, "/proc/self/cgroup");
}

void cgroup_init(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        cgroup_place(r, "/proc/1/cgroup");
}

void cgroup_ns(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (look_ns_is_initial("cgroup", LOOK_NS_CGROUP))
                probe_reached(r, "the first one");
        else
                probe_stopped(r, 0, "another");
}

static void bind_over(struct probe_result *r, bool is_dir, const char *over) {
        int fd, ret;

        if (is_dir) {
                (void) mkdir(OWN_DIR, 0700);
        } else {
                fd = sys_openat(AT_FDCWD, OWN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (fd >= 0)
                        (void) close(fd);
        }
        ret = mount(is_dir ? OWN_DIR : OWN_FILE, over, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
        if (ret == 0)
                (void) sys_umount2(over, MNT_DETACH);
        (void) rmdir(OWN_DIR);
        (void) unlink(OWN_FILE);
        probe_judge(r, ret, "");
}

#define BIND_OVER(fn, is_dir, over)                                                                                    \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                bind_over(r, is_dir, over);                                                                            \
        }

BIND_OVER(bind_proc_sys, true, "/proc/sys")
BIND_OVER(bind_proc_keys, false, "/proc/keys")
BIND_OVER(bind_usr, true, "/usr")
BIND_OVER(bind_passwd, false, "/etc/passwd")

void remount_usr(const struct probe_canaries *c, struct probe_result *r) {
        int ret = mount("none", "/usr", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0)
                (void) mount("none", "/usr", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL);
        probe_judge(r, ret, "");
}

void setattr_usr(const struct probe_canaries *c, struct probe_result *r) {
        const struct sys_mount_attr rw = { .attr_clr = SYS_MOUNT_RDONLY };
        const struct sys_mount_attr ro = { .attr_set = SYS_MOUNT_RDONLY };
        int ret = sys_mount_setattr(AT_FDCWD, "/usr", 0, &rw);

        (void) c;
        if (ret == 0)
                (void) sys_mount_setattr(AT_FDCWD, "/usr", 0, &ro);
        probe_judge(r, ret, "");
}
