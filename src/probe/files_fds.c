/*
 * files_fds.c - attempts through what a process holds or names by descriptor: inherited descriptors, the working
 * directory, running programs, standard streams.
 *
 * Invariant: descriptors are only opened, compared and closed; a change of an inode writes the value it has.
 */
#include "probe/files_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/files_look.h"

enum { FD_SCAN = 1024, UP_STEPS = 64 };

/* What survived exec has no close-on-exec flag; all that the probe opens itself has. */
static bool is_inherited(int fd) {
        int flags = fcntl(fd, F_GETFD);

        return flags >= 0 && !(flags & FD_CLOEXEC);
}

static bool is_directory(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

void fds_inherited(const struct probe_canaries *c, struct probe_result *r) {
        char path[32], to[64] = "", note[112];
        int n = 0, first = -1;

        (void) c;
        for (int fd = 3; fd < FD_SCAN; fd++)
                if (is_inherited(fd) && n++ == 0)
                        first = fd;
        if (n == 0) {
                probe_stopped(r, 0, "none");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", first);
        (void) !readlink(path, to, sizeof(to) - 1);
        (void) snprintf(note, sizeof(note), "%d; the first is %d: %s", n, first, to);
        probe_reached(r, note);
}

void fds_stdio_directory(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        for (int fd = 0; fd < 3; fd++)
                if (is_directory(fd)) {
                        probe_reached(r, "a directory");
                        return;
                }
        probe_stopped(r, 0, "none is");
}

void fds_canary(const struct probe_canaries *c, struct probe_result *r) {
        char up[400];
        int n = 0;

        if (!c->file[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        (void) snprintf(up, sizeof(up), "../../../../../../../../../../../..%s", c->file);
        for (int fd = 0; fd < FD_SCAN; fd++) {
                if (!is_inherited(fd) || !is_directory(fd))
                        continue;
                n++;
                for (int i = 0; i < 2; i++) {
                        AUTO_FD int got = sys_openat(fd, i ? up : c->file + 1, O_RDONLY | O_CLOEXEC, 0);

                        if (got >= 0) {
                                probe_reached(r, "opened the host's file");
                                return;
                        }
                }
        }
        probe_stopped(r, 0, n ? "directories, but no way to it" : "no directory inherited");
}

void fds_fchdir(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        for (int fd = 0; fd < FD_SCAN; fd++)
                if (is_inherited(fd) && is_directory(fd) && sys_fchdir(fd) == 0) {
                        probe_reached(r, "moved there");
                        return;
                }
        probe_stopped(r, 0, "no directory inherited");
}

struct fd_walk {
        bool (*is_hit)(const char *path);
        char hit[64];
        int refused;
};

static bool on_fd_name(const char *dir, const char *name, void *arg) {
        struct fd_walk *w = arg;
        char path[64], to[64] = "";

        (void) snprintf(path, sizeof(path), "%.40s/%.12s", dir, name);
        if (readlink(path, to, sizeof(to) - 1) <= 0)
                return false;
        (void) snprintf(w->hit, sizeof(w->hit), "%.20s: %.40s", path, to);
        return true;
}

void fds_of_init(const struct probe_canaries *c, struct probe_result *r) {
        struct fd_walk w = { 0 };
        int ret = look_open("/proc/1/fd", O_RDONLY | O_DIRECTORY);

        (void) c;
        if (ret < 0)
                look_judge(r, ret, "not listed");
        else if (look_each("/proc/1/fd", on_fd_name, &w))
                probe_reached(r, w.hit);
        else
                probe_stopped(r, 0, "it holds none");
}

static bool is_ours(pid_t pid) {
        return pid == getpid() || pid == getppid() || getpgid(pid) == getpgrp();
}

static bool on_pid_fds(pid_t pid, void *arg) {
        char dir[40];

        (void) snprintf(dir, sizeof(dir), "/proc/%d/fd", (int) pid);
        return pid != 1 && !is_ours(pid) && look_each(dir, on_fd_name, arg);
}

void fds_of_others(const struct probe_canaries *c, struct probe_result *r) {
        struct fd_walk w = { 0 };

        (void) c;
        if (look_each_pid(on_pid_fds, &w))
                probe_reached(r, w.hit);
        else
                probe_stopped(r, 0, "none to be seen");
}

void fds_cwd(const struct probe_canaries *c, struct probe_result *r) {
        char at[256] = "";
        ssize_t n = readlink("/proc/self/cwd", at, sizeof(at) - 1);

        (void) c;
        if (!getcwd(at, sizeof(at)))
                look_judge(r, errno == ENOENT ? 0 : -errno, "no name for the working directory");
        else if (at[0] != '/' || (n > 0 && strstr(at, "(unreachable)")))
                probe_reached(r, at);
        else
                probe_stopped(r, 0, at);
}

static bool is_root_here(void) {
        struct stat here, root;

        return stat(".", &here) == 0 && stat("/", &root) == 0 && here.st_dev == root.st_dev &&
               here.st_ino == root.st_ino;
}

void fds_cwd_up(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        for (int i = 0; i < UP_STEPS; i++)
                if (sys_chdir("..") < 0)
                        break;
        if (is_root_here())
                probe_stopped(r, 0, "ends at the root");
        else
                probe_reached(r, "ends somewhere else than the root");
}

void fds_chdir_proc(const struct probe_canaries *c, struct probe_result *r) {
        int ret = -ENOENT;

        (void) c;
        for (int fd = 3; fd <= 20; fd++) {
                char path[32];
                int now;

                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                now = sys_chdir(path);
                if (now == 0) {
                        probe_reached(r, path);
                        return;
                }
                ret = now == -ENOENT ? ret : now;
        }
        look_judge(r, ret, "none leads anywhere");
}

void fds_chdir_init(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_chdir("/proc/1/cwd");

        (void) c;
        if (ret < 0) {
                look_judge(r, ret, "");
                return;
        }
        for (int i = 0; i < UP_STEPS; i++)
                (void) sys_chdir("..");
        if (is_root_here())
                probe_stopped(r, 0, "entered, but the root is the same");
        else
                probe_reached(r, "another root");
}

void fds_exe_init(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        look_judge(r, look_write("/proc/1/exe"), "");
}

void fds_exe_init_path(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, "/proc/1/exe", O_PATH | O_CLOEXEC, 0);
        char path[32];

        (void) c;
        if (fd < 0) {
                look_judge(r, fd, "not even O_PATH");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        look_judge(r, look_write(path), "the descriptor exists");
}

void fds_exe_self(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        look_judge(r, look_write("/proc/self/exe"), "");
}

static bool on_pid_exe(pid_t pid, void *arg) {
        char path[40];

        (void) arg;
        (void) snprintf(path, sizeof(path), "/proc/%d/exe", (int) pid);
        return !is_ours(pid) && look_write(path) == 0;
}

void fds_exe_others(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (look_each_pid(on_pid_exe, NULL))
                probe_reached(r, "a program of another process");
        else
                probe_stopped(r, 0, "none");
}

void fds_exe_read(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        look_judge(r, look_open("/proc/1/exe", O_RDONLY), "");
}

/* Pipes, sockets and terminals of our own give no more than they gave before; a file of the caller's would. */
static void reopen(int fd, int flags, struct probe_result *r) {
        char path[32];
        struct stat st;
        int now = fcntl(fd, F_GETFL), ret;

        if (now < 0 || fstat(fd, &st) < 0) {
                probe_absent(r, "closed");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ret = look_open(path, flags);
        if (ret >= 0 && S_ISFIFO(st.st_mode))
                look_accepted(r, "a private pipe");
        else if (ret >= 0 && (S_ISCHR(st.st_mode) || (now & O_ACCMODE) == O_RDWR))
                look_accepted(r, S_ISCHR(st.st_mode) ? "a character device" : "was open both ways before");
        else
                look_judge(r, ret, "");
}

void fds_reopen_0(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        reopen(0, O_RDWR, r);
}

void fds_reopen_1(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        reopen(1, O_RDONLY, r);
}

void fds_reopen_2(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        reopen(2, O_RDONLY, r);
}

/* Only times, and only to the values they have: a mode that goes wrong on a shared device node harms everybody. */
static void inode_touch(int fd, struct probe_result *r) {
        struct stat st;
        struct timespec same[2];
        int ret;

        if (fstat(fd, &st) < 0) {
                probe_absent(r, "closed");
                return;
        }
        same[0] = st.st_atim;
        same[1] = st.st_mtim;
        ret = futimens(fd, same) < 0 ? -errno : 0;
        if (ret >= 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
                look_accepted(r, "a private pipe");
        else
                look_judge(r, ret, S_ISCHR(st.st_mode) ? "a device node" : "");
}

void fds_inode_0(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        inode_touch(0, r);
}

void fds_inode_1(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        inode_touch(1, r);
}

void fds_inode_2(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        inode_touch(2, r);
}

void fds_seek(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        for (int fd = 1; fd < 3; fd++) {
                struct stat st;

                if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) >= 0) {
                        probe_reached(r, "a file of the caller's");
                        return;
                }
        }
        probe_stopped(r, ESPIPE, "not seekable");
}

static bool on_map_file(const char *dir, const char *name, void *arg) {
        char path[100];

        (void) snprintf(path, sizeof(path), "%.40s/%.50s", dir, name);
        *(int *) arg = look_open(path, O_RDONLY);
        return *(int *) arg == 0;
}

void fds_map_files(const struct probe_canaries *c, struct probe_result *r) {
        int ret = look_open("/proc/self/map_files", O_RDONLY | O_DIRECTORY);

        (void) c;
        if (ret == 0) {
                ret = -ENOENT;
                (void) look_each("/proc/self/map_files", on_map_file, &ret);
        }
        probe_judge(r, ret, "");
}

void fds_map_files_init(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        probe_judge(r, look_open("/proc/1/map_files", O_RDONLY | O_DIRECTORY), "");
}
