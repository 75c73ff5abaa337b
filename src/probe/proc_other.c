/*
 * proc_other.c - attempts on /proc that look at other processes, above all at the sandbox's init, and at views of the
 * host: mounts, sockets, a second procfs.
 *
 * Invariant: nothing is written and nothing is consumed; what gets mounted is detached before the attempt ends.
 */
#include "probe/proc_other.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/files_look.h"
#include "probe/proc_text.h"
#include "probe/table.h"

enum { TEXT_MAX = 256 * 1024 };
static char text[TEXT_MAX], text_own[TEXT_MAX]; /* an attempt is a process of its own: nobody shares these */

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

/* Some runtimes make the job itself pid 1; then there is no init to attack. An attempt is a child of the probe. */
static bool init_is_us(struct probe_result *r) {
        if (getppid() != 1 && getpid() != 1)
                return false;
        probe_absent(r, "pid 1 is the probe itself");
        return true;
}

void proc_init_open(struct probe_result *r, const char *path, int flags) {
        AUTO_FD int fd = -1;
        char some[8]; /* pagemap is read in units of eight */
        ssize_t n;

        if (init_is_us(r))
                return;
        fd = sys_openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK, 0);
        if (fd < 0 || (flags & O_ACCMODE) != O_RDONLY) {
                probe_judge(r, fd, "open");
                return;
        }
        n = sys_read(fd, some, sizeof(some));
        if (n == 0)
                probe_stopped(r, 0, "opens, but is empty");
        else
                probe_judge(r, n, "read");
}

void proc_init_environ(struct probe_result *r) {
        long n, own;

        if (init_is_us(r))
                return;
        n = look_read("/proc/1/environ", text, TEXT_MAX);
        own = look_read("/proc/self/environ", text_own, TEXT_MAX);
        if (n < 0)
                probe_judge(r, n, "open");
        else if (n == 0)
                probe_stopped(r, 0, "empty");
        else if (n == own && memcmp(text, text_own, (size_t) n) == 0)
                probe_stopped(r, 0, "the same as ours");
        else
                probe_reached(r, "environment of pid 1 read, and it is not ours");
}

void proc_init_dir(struct probe_result *r, const char *path, const char *own) {
        struct stat there, here;

        if (init_is_us(r))
                return;
        if (stat(path, &there) < 0)
                probe_judge(r, -errno, "stat");
        else if (stat(own, &here) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino)
                probe_stopped(r, 0, "the same directory as ours");
        else if (stat("/", &here) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino)
                probe_stopped(r, 0, "our own root");
        else
                probe_reached(r, "a directory of pid 1 that is not ours");
}

void proc_init_fd_list(struct probe_result *r) {
        CLEANUP(dir_closep) DIR *d = NULL;

        if (init_is_us(r))
                return;
        d = opendir("/proc/1/fd");
        probe_judge(r, d ? 0 : -errno, "list of pid 1's descriptors");
}

/* O_PATH: refers to the object without opening it, which for a device could have effects. */
static bool is_foreign_object(const char *name) {
        char path[64];
        struct stat st, own;
        AUTO_FD int fd = -1;

        (void) snprintf(path, sizeof(path), "/proc/1/fd/%.20s", name);
        fd = sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
        if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
                return false;
        for (int i = 0; i <= 2; i++)
                if (fstat(i, &own) == 0 && own.st_dev == st.st_dev && own.st_ino == st.st_ino)
                        return false;
        return true;
}

void proc_init_fd_open(struct probe_result *r) {
        CLEANUP(dir_closep) DIR *d = NULL;
        struct dirent *e;

        if (init_is_us(r))
                return;
        d = opendir("/proc/1/fd");
        if (!d) {
                probe_judge(r, -errno, "list of pid 1's descriptors");
                return;
        }
        while ((e = readdir(d)))
                if (e->d_name[0] != '.' && is_foreign_object(e->d_name)) {
                        probe_reached(r, "a file or directory that pid 1 holds open");
                        return;
                }
        probe_stopped(r, 0, "no file or directory among them");
}

void proc_init_ns(struct probe_result *r, const char *name) {
        char theirs[64] = "", ours[64] = "", path[64];
        ssize_t n;

        if (init_is_us(r))
                return;
        (void) snprintf(path, sizeof(path), "/proc/1/ns/%s", name);
        n = readlink(path, theirs, sizeof(theirs) - 1);
        if (n < 0) {
                probe_judge(r, -errno, "readlink");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
        (void) !readlink(path, ours, sizeof(ours) - 1);
        if (str_eq(theirs, ours))
                probe_stopped(r, 0, "the same as ours");
        else
                probe_reached(r, "another namespace, and its link is readable");
}

/* Pids inside are small and few; one that is neither ours nor our parent's and bears the canary's number is it. */
static bool canary_given(struct probe_result *r, int pid) {
        if (pid > 1 && pid != getpid() && pid != getppid())
                return true;
        probe_absent(r, "no canary process given");
        return false;
}

void proc_canary_seen(struct probe_result *r, int pid) {
        char path[32];

        if (!canary_given(r, pid))
                return;
        (void) snprintf(path, sizeof(path), "/proc/%d", pid);
        if (access(path, F_OK) < 0)
                probe_stopped(r, errno, "not in /proc");
        else
                probe_reached(r, "the host's process is in /proc");
}

void proc_canary_signal(struct probe_result *r, int pid) {
        int ret;

        if (!canary_given(r, pid))
                return;
        ret = sys_kill(pid, 0);
        if (ret == -EPERM)
                probe_reached(r, "not allowed, but it is there");
        else
                probe_judge(r, ret, "signal 0");
}

void proc_canary_pidfd(struct probe_result *r, int pid) {
        if (canary_given(r, pid))
                probe_judge(r, sys_pidfd_open(pid), "pidfd_open");
}

void proc_kernel_threads(struct probe_result *r) {
        char name[32];

        (void) look_read("/proc/2/comm", name, sizeof(name));
        if (str_eq(name, "kthreadd\n"))
                probe_reached(r, "kernel threads are visible: the host's pid namespace");
        else
                probe_stopped(r, ESRCH, "none visible");
}

void proc_foreign_cmdline(struct probe_result *r) {
        CLEANUP(dir_closep) DIR *d = opendir("/proc");
        struct dirent *e;
        struct stat st;
        char path[64];
        uint64_t pid;

        while (d && (e = readdir(d))) {
                if (str_to_u64(e->d_name, INT32_MAX, &pid) < 0 || pid == 1)
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", (int) pid);
                if (stat(path, &st) < 0 || st.st_uid == geteuid() || look_read(path, text, TEXT_MAX) <= 0)
                        continue;
                probe_reached(r, "command line of another user's process");
                return;
        }
        probe_stopped(r, 0, "no process of another user");
}

/* The root field of a bind mount is a path on the host; equal to the mount point it tells nothing. */
void proc_mount_roots(struct probe_result *r) {
        struct proc_mount m;
        char self[256] = "", note[120], *at = text;

        (void) !readlink("/proc/self/exe", self, sizeof(self) - 1);
        (void) look_read("/proc/self/mountinfo", text, TEXT_MAX);
        while (proc_mount_next(&at, &m)) {
                if (str_eq(m.root, "/") || str_eq(m.root, m.point) || str_eq(m.point, self))
                        continue;
                if (str_eq(m.type, "tmpfs") || str_eq(m.type, "proc") || str_eq(m.type, "devtmpfs") || m.root[0] != '/')
                        continue;
                (void) snprintf(note, sizeof(note), "%.50s is the host's %.50s", m.point, m.root);
                probe_reached(r, note);
                return;
        }
        probe_stopped(r, 0, "no host path but the one the probe came by");
}

void proc_mount_sources(struct probe_result *r) {
        struct proc_mount m;
        char note[120], *at = text;

        (void) look_read("/proc/self/mountinfo", text, TEXT_MAX);
        while (proc_mount_next(&at, &m))
                if (str_has_prefix(m.source, "/dev/")) {
                        (void) snprintf(note, sizeof(note), "%.60s: a bind mount always names its disk", m.source);
                        probe_accepted(r, note);
                        return;
                }
        probe_stopped(r, 0, "no disk named");
}

void proc_net_lines(struct probe_result *r, const char *path, int n_header) {
        char *w[4], *at = text;
        long n = look_read(path, text, TEXT_MAX);
        int lines = 0;

        if (n < 0) {
                probe_judge(r, n, "open");
                return;
        }
        while (proc_words(&at, w, 4) >= 0)
                lines++;
        if (lines > n_header)
                probe_reached(r, "the table has entries");
        else
                probe_stopped(r, 0, "the table is empty");
}

/* Words 1: local ADDRESS:PORT in hex. Loopback sockets may be the sandbox's own; the canary's port never is. */
void proc_net_sockets(struct probe_result *r, const char *path, int port) {
        char *w[12], *at = text, want[8], *colon;
        long n = look_read(path, text, TEXT_MAX);

        if (n < 0) {
                probe_judge(r, n, "open");
                return;
        }
        (void) snprintf(want, sizeof(want), ":%04X", (unsigned) port);
        (void) proc_words(&at, w, 12);
        for (int k; (k = proc_words(&at, w, 12)) >= 0;) {
                if (k < 4 || !(colon = strchr(w[1], ':')))
                        continue;
                if ((port && str_eq(colon, want)) ||
                    !(str_has_prefix(w[1], "0100007F") || str_has_prefix(w[1], "00000000000000000000000001000000"))) {
                        probe_reached(r, "a socket that is not the sandbox's own");
                        return;
                }
        }
        probe_stopped(r, 0, "none but loopback of our own");
}

/* The kernel names a socket "@" and five hex digits when its owner asks for any name: no trace of the host. */
static bool is_from_outside(const char *name, const char *abstract) {
        if (name[0] != '@')
                return access(name, F_OK) < 0;
        if (abstract[0] && str_eq(name + 1, abstract))
                return true;
        return strlen(name) != 6 || strspn(name + 1, "0123456789abcdef") != 5;
}

void proc_net_unix(struct probe_result *r, const char *abstract) {
        char *w[10], *at = text, note[120];
        long n = look_read("/proc/net/unix", text, TEXT_MAX);

        if (n < 0) {
                probe_judge(r, n, "open");
                return;
        }
        (void) proc_words(&at, w, 10);
        for (int k; (k = proc_words(&at, w, 10)) >= 0;)
                if (k >= 8 && is_from_outside(w[7], abstract)) {
                        (void) snprintf(note, sizeof(note), "a socket from outside: %.80s", w[7]);
                        probe_reached(r, note);
                        return;
                }
        probe_stopped(r, 0, "none from outside");
}

/* Writing -1000 needs CAP_SYS_RESOURCE on the host; nothing is written, so the right is read off instead. */
void proc_oom_open(struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
        char *w[4], *at = text;
        bool is_host_map = false, has_cap = false;

        if (fd < 0) {
                probe_judge(r, fd, "open for writing");
                return;
        }
        (void) look_read("/proc/self/uid_map", text, TEXT_MAX);
        if (proc_words(&at, w, 4) == 3)
                is_host_map = str_eq(w[1], "0") && str_eq(w[2], "4294967295");
        (void) look_read("/proc/self/status", text, TEXT_MAX);
        at = strstr(text, "CapEff:\t");
        if (at && strlen(at) >= 24)
                has_cap = strchr("13579bdf", at[18]) != NULL; /* bit 24 is the lowest of the tenth digit */
        if (is_host_map && has_cap)
                probe_reached(r, "writable, with the host's CAP_SYS_RESOURCE");
        else
                probe_stopped(r, EACCES, "opens, but to lower it needs a right we do not have");
}

void proc_oom_inherited(struct probe_result *r) {
        (void) look_read("/proc/self/oom_score_adj", text, 16);
        if (text[0] == '-')
                probe_reached(r, "protected from the OOM killer by inheritance");
        else
                probe_stopped(r, 0, "not negative");
}

void proc_mount_old(struct probe_result *r, const char *type) {
        char dir[] = "/tmp/gabion-probe-XXXXXX";
        int ret;

        if (!mkdtemp(dir)) {
                probe_stopped(r, errno, "nowhere to mount it");
                return;
        }
        ret = mount(type, dir, type, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? -errno : 0;
        if (ret == 0)
                (void) sys_umount2(dir, MNT_DETACH);
        (void) rmdir(dir);
        probe_judge(r, ret, "mount");
}

/* Never attached anywhere: a detached mount is proof enough, and goes with its descriptor. */
void proc_mount_new(struct probe_result *r, const char *type) {
        AUTO_FD int fs = sys_fsopen(type);
        int ret = fs < 0 ? fs : sys_fsconfig(fs, SYS_FSCONFIG_CREATE, NULL, NULL);

        if (ret >= 0)
                ret = sys_fsmount(fs, 0);
        probe_judge(r, ret, fs < 0 ? "fsopen" : "fsmount");
        if (ret >= 0)
                (void) sys_close(ret);
}

void proc_is_fs(struct probe_result *r, const char *path, long magic) {
        struct statfs fs;
        struct stat st;

        if (lstat(path, &st) < 0)
                probe_absent(r, "not there");
        else if (S_ISLNK(st.st_mode))
                probe_reached(r, "a symbolic link: masks went where the image pointed");
        else if (statfs(path, &fs) < 0)
                probe_stopped(r, errno, "statfs");
        else if ((long) fs.f_type == magic)
                probe_stopped(r, 0, "the real thing");
        else
                probe_reached(r, "another file system in its place");
}

void proc_null_is_null(struct probe_result *r) {
        struct stat st;

        if (lstat("/dev/null", &st) < 0)
                probe_absent(r, "not there");
        else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
                probe_stopped(r, 0, "the real thing");
        else
                probe_reached(r, "not the null device: masks made of it are empty promises");
}
