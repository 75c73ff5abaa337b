/*
 * files_canary.c - is our root the host's, and can a file that the host planted be got at by any name?
 *
 * Invariant: the canary is only ever opened, listed or looked at; links made to it are removed at once.
 */
#include "probe/files_canary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/files_look.h"

#define UP "/../../../../../../../../../../../../../../../.."
#define OWN_LINK "/tmp/.probe-link"

enum { SEARCH_DEPTH = 6, SEARCH_ENTRIES = 20000 };

static bool is_same_dir(const char *a, const char *b) {
        struct stat x, y;

        return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A mountinfo line: id parent dev root point options... - type source. */
static bool on_root_mount(char *line, void *arg) {
        const char *whole = strstr(line, " / / ");
        const char *type = strstr(line, " - ");

        if (!whole || !type || whole > type)
                return false;
        type += 3;
        if (!str_has_prefix(type, "ext") && !str_has_prefix(type, "xfs") && !str_has_prefix(type, "btrfs"))
                return false;
        probe_reached(arg, type);
        return true;
}

void root_is_disk(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (!look_each_line("/proc/self/mountinfo", on_root_mount, r))
                probe_stopped(r, 0, "not the root of a disk");
}

static void same_root(struct probe_result *r, const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                probe_stopped(r, errno, "");
        else if (is_same_dir("/", path))
                probe_stopped(r, 0, "the same root");
        else
                probe_reached(r, "another directory");
}

void root_dotdot(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        same_root(r, UP);
}

void root_proc_self(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        same_root(r, "/proc/self/root" UP);
}

void root_of_init(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        same_root(r, "/proc/1/root/.");
}

static bool on_pid_root(pid_t pid, void *arg) {
        char path[40];
        struct stat st;

        (void) arg;
        (void) snprintf(path, sizeof(path), "/proc/%d/root/.", (int) pid);
        return stat(path, &st) == 0 && !is_same_dir(path, "/");
}

void root_of_others(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (look_each_pid(on_pid_root, NULL))
                probe_reached(r, "another root");
        else
                probe_stopped(r, 0, "none");
}

void root_old_left(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const names[] = { "/oldroot",  "/.oldroot", "/old_root", "/.old_root", "/put_old",
                                             "/.pivot",   "/host",     "/rootfs",   "/mnt/host",  "/.gabion/old",
                                             "/.put_old", "/.old",     "/run/host", "/newroot" };

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "%s/etc", names[i]);
                if (look_open(path, O_RDONLY | O_DIRECTORY) == 0) {
                        probe_reached(r, names[i]);
                        return;
                }
        }
        probe_stopped(r, ENOENT, "none of the usual names");
}

/* Opens prefix + canary. What it contains is compared where the host said what that is. */
static int canary_try(const struct probe_canaries *c, const char *prefix, int flags) {
        char path[400], text[128] = "";
        int ret;

        (void) snprintf(path, sizeof(path), "%s%s", prefix, c->file);
        ret = look_open(path, flags);
        if (ret < 0 || (flags & (O_WRONLY | O_PATH)) || !c->text[0])
                return ret;
        if (look_read(path, text, sizeof(text)) < 0)
                return 0;
        return strstr(text, c->text) ? 0 : -ESTALE;
}

static void canary_by(const struct probe_canaries *c, struct probe_result *r, const char *prefix, int flags) {
        if (!c->file[0])
                probe_absent(r, "no canary given");
        else
                look_judge(r, canary_try(c, prefix, flags), "");
}

#define CANARY_BY(fn, prefix, flags)                                                                                   \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                canary_by(c, r, prefix, flags);                                                                        \
        }

CANARY_BY(canary_plain, "", O_RDONLY)
CANARY_BY(canary_init_root, "/proc/1/root", O_RDONLY)
CANARY_BY(canary_self_root, "/proc/self/root", O_RDONLY)
CANARY_BY(canary_thread_root, "/proc/thread-self/root", O_RDONLY)
CANARY_BY(canary_init_cwd, "/proc/1/cwd" UP, O_RDONLY)
CANARY_BY(canary_self_cwd, "/proc/self/cwd" UP, O_RDONLY)
CANARY_BY(canary_dotdot, "/tmp" UP, O_RDONLY)
CANARY_BY(canary_o_path, "", O_PATH)
CANARY_BY(canary_write, "", O_WRONLY)

void canary_task_root(const struct probe_canaries *c, struct probe_result *r) {
        char prefix[64];

        (void) snprintf(prefix, sizeof(prefix), "/proc/self/task/%d/root", (int) getpid());
        canary_by(c, r, prefix, O_RDONLY);
}

static bool on_pid_canary(pid_t pid, void *arg) {
        char prefix[40];

        (void) snprintf(prefix, sizeof(prefix), "/proc/%d/root", (int) pid);
        return canary_try(arg, prefix, O_RDONLY) == 0;
}

void canary_every_root(const struct probe_canaries *c, struct probe_result *r) {
        struct probe_canaries copy = *c;

        if (!c->file[0])
                probe_absent(r, "no canary given");
        else if (look_each_pid(on_pid_canary, &copy))
                probe_reached(r, "");
        else
                probe_stopped(r, ENOENT, "");
}

void canary_host_pid(const struct probe_canaries *c, struct probe_result *r) {
        char prefix[40];

        if (c->pid <= 0) {
                probe_absent(r, "no host process given");
                return;
        }
        (void) snprintf(prefix, sizeof(prefix), "/proc/%d/root", c->pid);
        canary_by(c, r, prefix, O_RDONLY);
}

void canary_symlink(const struct probe_canaries *c, struct probe_result *r) {
        int ret;

        if (!c->file[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        (void) unlink(OWN_LINK);
        ret = sys_symlinkat(c->file, AT_FDCWD, OWN_LINK);
        if (ret == 0)
                ret = look_open(OWN_LINK, O_RDONLY);
        (void) unlink(OWN_LINK);
        look_judge(r, ret, "");
}

void canary_openat2(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int root = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        char up[400];
        int fd;

        if (!c->file[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        (void) snprintf(up, sizeof(up), "..%s%s", UP, c->file);
        fd = sys_openat2(root, up, O_RDONLY | O_CLOEXEC, 0, 0);
        look_judge(r, fd, "");
        if (fd >= 0)
                (void) close(fd);
}

void canary_stat(const struct probe_canaries *c, struct probe_result *r) {
        struct stat st;

        if (!c->file[0])
                probe_absent(r, "no canary given");
        else
                look_judge(r, stat(c->file, &st) < 0 ? -errno : 0, "");
}

/* The directory above the canary; "" if there is none but the root. */
static void canary_dir(const struct probe_canaries *c, char *dir, size_t cap) {
        char *slash;

        dir[0] = '\0';
        if (str_copy(dir, cap, c->file) < 0)
                return;
        slash = strrchr(dir, '/');
        if (slash)
                *slash = '\0';
}

static const char *canary_name(const struct probe_canaries *c) {
        const char *slash = strrchr(c->file, '/');

        return slash ? slash + 1 : c->file;
}

static bool on_name_same(const char *dir, const char *name, void *arg) {
        (void) dir;
        return str_eq(name, arg);
}

void canary_list(const struct probe_canaries *c, struct probe_result *r) {
        char dir[256], name[256];

        canary_dir(c, dir, sizeof(dir));
        if (!dir[0] || str_copy(name, sizeof(name), canary_name(c)) < 0)
                probe_absent(r, "no canary given");
        else if (look_each(dir, on_name_same, name))
                probe_reached(r, "its name is listed");
        else
                probe_stopped(r, ENOENT, "");
}

void canary_chdir(const struct probe_canaries *c, struct probe_result *r) {
        char dir[256];
        int ret;

        canary_dir(c, dir, sizeof(dir));
        if (!dir[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        ret = sys_chdir(dir);
        if (ret == 0)
                ret = look_open(canary_name(c), O_PATH); /* a directory of the same name may exist inside */
        look_judge(r, ret, "");
}

void canary_watch(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = inotify_init1(IN_CLOEXEC);

        if (!c->file[0])
                probe_absent(r, "no canary given");
        else
                look_judge(r, fd < 0 || inotify_add_watch(fd, c->file, IN_ACCESS) < 0 ? -errno : 0, "");
}

void canary_link(const struct probe_canaries *c, struct probe_result *r) {
        int ret;

        if (!c->file[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        (void) unlink(OWN_LINK);
        ret = link(c->file, OWN_LINK) < 0 ? -errno : 0;
        (void) unlink(OWN_LINK);
        look_judge(r, ret, "");
}

void canary_xattr(const struct probe_canaries *c, struct probe_result *r) {
        char list[256];

        if (!c->file[0])
                probe_absent(r, "no canary given");
        else
                look_judge(r, listxattr(c->file, list, sizeof(list)) < 0 && errno != ERANGE ? -errno : 0, "");
}

struct search {
        const char *name, *text;
        int depth, left;
        char hit[110];
};

static bool on_search(const char *dir, const char *name, void *arg) {
        struct search *s = arg;
        char path[512];
        struct stat st;
        bool is_hit;

        if (--s->left < 0 || (str_eq(dir, "") && (str_eq(name, "proc") || str_eq(name, "sys"))))
                return false;
        if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int) sizeof(path) || lstat(path, &st) < 0)
                return false;
        if (S_ISREG(st.st_mode) && str_eq(name, s->name) && (!s->text[0] || look_has(path, s->text))) {
                (void) str_copy(s->hit, sizeof(s->hit), path);
                return true;
        }
        if (!S_ISDIR(st.st_mode) || s->depth >= SEARCH_DEPTH)
                return false;
        s->depth++;
        is_hit = look_each(path, on_search, s);
        s->depth--;
        return is_hit;
}

static bool on_search_top(const char *dir, const char *name, void *arg) {
        (void) dir;
        return on_search("", name, arg);
}

void canary_search(const struct probe_canaries *c, struct probe_result *r) {
        struct search s = { canary_name(c), c->text, 0, SEARCH_ENTRIES, "" };

        if (!c->file[0])
                probe_absent(r, "no canary given");
        else if (look_each("/", on_search_top, &s))
                probe_reached(r, s.hit);
        else
                probe_stopped(r, 0, s.left < 0 ? "not in the first 20000 names" : "not in the tree");
}

void canary_mountinfo(const struct probe_canaries *c, struct probe_result *r) {
        char dir[256];

        canary_dir(c, dir, sizeof(dir));
        if (!dir[0])
                probe_absent(r, "no canary given");
        else if (strlen(dir) > 5 && look_has("/proc/self/mountinfo", dir))
                probe_reached(r, dir);
        else
                probe_stopped(r, 0, "not named");
}

void canary_stdin(const struct probe_canaries *c, struct probe_result *r) {
        char text[256] = "";
        struct pollfd p = { 0, POLLIN, 0 };

        if (!c->text[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        if (poll(&p, 1, 0) == 1)
                (void) !read(0, text, sizeof(text) - 1);
        if (strstr(text, c->text))
                probe_reached(r, "");
        else
                probe_stopped(r, 0, "not there");
}
