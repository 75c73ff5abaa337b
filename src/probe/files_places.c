/*
 * files_places.c - attempts to write where the system lives: new files, links, overlay marks, Landlock gaps.
 *
 * Invariant: what is created has a name of the probe's own and is removed at once; what exists is opened without
 * truncation, or set to the value it has.
 */
#include "probe/files_places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/files_look.h"

#define OWN_FILE "/tmp/.probe-file"
#define OWN_OTHER "/tmp/.probe-other"
#define SYSTEM_FILE "/usr/bin/.gabion-probe"
#define SHARED_FILE "/usr/bin/env"

enum { RENAME_NO_REPLACE = 1, RENAME_LEAVE_WHITEOUT = 4, OPEN_TMPFILE = O_TMPFILE };

static int own_file(void) {
        int fd = sys_openat(AT_FDCWD, OWN_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0)
                return fd;
        (void) close(fd);
        return 0;
}

static void create_in(struct probe_result *r, const char *dir) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/.gabion-probe", dir);
        fd = sys_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
                (void) close(fd);
                (void) unlink(path);
        }
        probe_judge(r, fd, "");
}

#define CREATE_IN(fn, dir)                                                                                             \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                create_in(r, dir);                                                                                     \
        }

CREATE_IN(place_slash, "/")
CREATE_IN(place_etc, "/etc")
CREATE_IN(place_usr, "/usr")
CREATE_IN(place_usr_bin, "/usr/bin")
CREATE_IN(place_usr_lib, "/usr/lib")
CREATE_IN(place_usr_local_bin, "/usr/local/bin")
CREATE_IN(place_lib_modules, "/lib/modules")
CREATE_IN(place_boot, "/boot")
CREATE_IN(place_dev, "/dev")
CREATE_IN(place_proc, "/proc")
CREATE_IN(place_sys, "/sys")
CREATE_IN(place_var, "/var")
CREATE_IN(place_var_lib, "/var/lib")
CREATE_IN(place_opt, "/opt")
CREATE_IN(place_root, "/root")
CREATE_IN(place_home, "/home")
CREATE_IN(place_etc_ssl_certs, "/etc/ssl/certs")
CREATE_IN(place_etc_alternatives, "/etc/alternatives")
CREATE_IN(place_etc_crond, "/etc/cron.d")
CREATE_IN(place_gabion, "/.gabion")

void place_tmpfile(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/usr", O_WRONLY | OPEN_TMPFILE | O_CLOEXEC, 0600);

        (void) c;
        probe_judge(r, fd, "");
}

void place_write_passwd(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        probe_judge(r, look_open("/etc/passwd", O_WRONLY), "");
}

void place_write_sh(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        probe_judge(r, look_write("/bin/sh"), "");
}

void place_times_sh(const struct probe_canaries *c, struct probe_result *r) {
        struct stat st;
        int ret = stat("/bin/sh", &st) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0) {
                struct timespec same[2] = { st.st_atim, st.st_mtim };

                ret = utimensat(AT_FDCWD, "/bin/sh", same, 0) < 0 ? -errno : 0;
        }
        probe_judge(r, ret, "");
}

void place_mkdir(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_mkdirat(AT_FDCWD, SYSTEM_FILE, 0700);

        (void) c;
        if (ret == 0)
                (void) rmdir(SYSTEM_FILE);
        probe_judge(r, ret, "");
}

void place_symlink(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_symlinkat("/dev/null", AT_FDCWD, "/etc/.gabion-probe");

        (void) c;
        if (ret == 0)
                (void) unlink("/etc/.gabion-probe");
        probe_judge(r, ret, "");
}

void place_link(const struct probe_canaries *c, struct probe_result *r) {
        int ret = link(SHARED_FILE, OWN_OTHER) < 0 ? -errno : 0;

        (void) c;
        (void) unlink(OWN_OTHER);
        probe_judge(r, ret, "");
}

static void link_opened(struct probe_result *r, bool by_proc) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, SHARED_FILE, O_PATH | O_CLOEXEC, 0);
        char path[32];
        int ret;

        if (fd < 0) {
                probe_judge(r, fd, "");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ret = by_proc ? linkat(AT_FDCWD, path, AT_FDCWD, OWN_OTHER, AT_SYMLINK_FOLLOW)
                      : linkat(fd, "", AT_FDCWD, OWN_OTHER, SYS_AT_EMPTY_PATH);
        ret = ret < 0 ? -errno : 0;
        (void) unlink(OWN_OTHER);
        look_judge(r, ret, "");
}

void place_link_fd(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        link_opened(r, false);
}

void place_link_proc(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        link_opened(r, true);
}

void place_link_into(const struct probe_canaries *c, struct probe_result *r) {
        int ret = own_file();

        (void) c;
        if (ret == 0)
                ret = link(OWN_FILE, "/usr/.gabion-probe") < 0 ? -errno : 0;
        if (ret == 0)
                (void) unlink("/usr/.gabion-probe");
        (void) unlink(OWN_FILE);
        probe_judge(r, ret, "");
}

static bool on_overlay_line(char *line, void *arg) {
        (void) arg;
        return strstr(line, " - overlay ");
}

/* The marks mean something to an overlay only. */
static void overlay_judge(struct probe_result *r, int ret) {
        if (ret >= 0 && !look_each_line("/proc/self/mountinfo", on_overlay_line, NULL))
                look_accepted(r, "works, but there is no overlay here");
        else
                look_judge(r, ret, "");
}

static int xattr_set(const char *name) {
        int ret = sys_mkdirat(AT_FDCWD, OWN_OTHER, 0700);

        if (ret == 0)
                ret = setxattr(OWN_OTHER, name, "y", 1, 0) < 0 ? -errno : 0;
        (void) rmdir(OWN_OTHER);
        return ret;
}

void place_xattr_trusted(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        look_judge(r, xattr_set("trusted.overlay.opaque"), "");
}

void place_xattr_user(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        overlay_judge(r, xattr_set("user.overlay.opaque"));
}

void place_xattr_redirect(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        overlay_judge(r, xattr_set("user.overlay.redirect"));
}

void place_whiteout(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_mkcharat(AT_FDCWD, OWN_OTHER, 0600, 0, 0);

        (void) c;
        (void) unlink(OWN_OTHER);
        overlay_judge(r, ret);
}

void place_whiteout_rename(const struct probe_canaries *c, struct probe_result *r) {
        int ret = own_file();

        (void) c;
        if (ret == 0)
                ret = (int) SYS5(SYS_renameat2, AT_FDCWD, OWN_FILE, AT_FDCWD, OWN_OTHER, RENAME_LEAVE_WHITEOUT);
        (void) unlink(OWN_FILE);
        (void) unlink(OWN_OTHER);
        overlay_judge(r, ret);
}

void place_flock(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, SHARED_FILE, O_RDONLY | O_CLOEXEC, 0);
        int ret = fd < 0 ? fd : flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0)
                look_accepted(r, "files shared read-only can carry a lock as a signal");
        else
                probe_judge(r, ret, "");
}

void place_lease(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, SHARED_FILE, O_RDONLY | O_CLOEXEC, 0);
        int ret = fd < 0 ? fd : fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? -errno : 0;

        (void) c;
        probe_judge(r, ret, "");
}

void place_watch(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        int ret = fd < 0 || inotify_add_watch(fd, "/usr/bin", IN_OPEN) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0)
                look_accepted(r, "the opening of shared files by others can be seen");
        else
                probe_judge(r, ret, "");
}

void place_truncate(const struct probe_canaries *c, struct probe_result *r) {
        struct stat st;
        int ret = stat("/bin/sh", &st) < 0 || truncate("/bin/sh", st.st_size) < 0 ? -errno : 0;

        (void) c;
        probe_judge(r, ret, "");
}

void place_rename(const struct probe_canaries *c, struct probe_result *r) {
        int ret = own_file();

        (void) c;
        if (ret == 0)
                ret = (int) SYS5(SYS_renameat2, AT_FDCWD, OWN_FILE, AT_FDCWD, SYSTEM_FILE, RENAME_NO_REPLACE);
        if (ret == 0)
                (void) unlink(SYSTEM_FILE);
        (void) unlink(OWN_FILE);
        probe_judge(r, ret, "");
}

void place_fifo(const struct probe_canaries *c, struct probe_result *r) {
        int ret = mkfifo(SYSTEM_FILE, 0600) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0)
                (void) unlink(SYSTEM_FILE);
        probe_judge(r, ret, "");
}

void place_sock(const struct probe_canaries *c, struct probe_result *r) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = SYSTEM_FILE };
        AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int ret = fd < 0 || bind(fd, (struct sockaddr *) &sa, sizeof(sa)) < 0 ? -errno : 0;

        (void) c;
        if (ret == 0)
                (void) unlink(SYSTEM_FILE);
        probe_judge(r, ret, "");
}

void place_reopen(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/bin/sh", O_PATH | O_CLOEXEC, 0);
        char path[32];
        int ret = fd;

        (void) c;
        if (fd >= 0) {
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                ret = look_write(path);
        }
        probe_judge(r, ret, "");
}

void place_control_tmp(const struct probe_canaries *c, struct probe_result *r) {
        int fd = sys_openat(AT_FDCWD, OWN_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        char got = 0;
        bool is_same = fd >= 0 && sys_write(fd, "x", 1) == 1 && pread(fd, &got, 1, 0) == 1 && got == 'x';

        (void) c;
        if (fd >= 0)
                (void) close(fd);
        (void) unlink(OWN_FILE);
        look_judge(r, fd < 0 ? fd : is_same ? 0 : -EIO, "");
}

void place_control_null(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC, 0);

        (void) c;
        look_judge(r, fd < 0 ? fd : (long) sys_write(fd, "x", 1), "");
}

void place_control_exec(const struct probe_canaries *c, struct probe_result *r) {
        static const char script[] = "#!/bin/sh\nexit 7\n";
        int fd = sys_openat(AT_FDCWD, OWN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0700), status = 0;
        pid_t pid = -1;

        (void) c;
        if (fd >= 0) {
                (void) sys_write(fd, script, sizeof(script) - 1);
                (void) close(fd);
                pid = fork();
        }
        if (pid == 0) {
                (void) execl(OWN_FILE, OWN_FILE, (char *) NULL);
                _exit(errno == ENOENT ? 6 : 5);
        }
        if (pid > 0)
                (void) waitpid(pid, &status, 0);
        (void) unlink(OWN_FILE);
        if (WEXITSTATUS(status) == 6)
                probe_absent(r, "no /bin/sh");
        else
                look_judge(r, WEXITSTATUS(status) == 7 ? 0 : -EACCES, "");
}
