/*
 * files_look.c - reading, opening and listing for the attempts on files, limits and information.
 *
 * Invariant: nothing here writes, creates or truncates.
 */
#include "probe/files_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/probe.h"

ssize_t look_read(const char *path, char *buf, size_t cap) {
        AUTO_FD int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        size_t n = 0;

        buf[0] = '\0';
        if (fd < 0)
                return fd;
        while (n < cap - 1) {
                ssize_t got = sys_read(fd, buf + n, cap - 1 - n);

                if (got < 0 && n == 0)
                        return got;
                if (got <= 0)
                        break;
                n += (size_t) got;
        }
        buf[n] = '\0';
        return (ssize_t) n;
}

int look_open(const char *path, int flags) {
        int fd = sys_openat(AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

        if (fd < 0)
                return fd;
        (void) close(fd);
        return 0;
}

int look_write(const char *path) {
        int ret = look_open(path, O_WRONLY);

        if (ret == -ETXTBSY)
                ret = access(path, W_OK) < 0 ? -errno : 0;
        return ret;
}

bool look_has(const char *path, const char *text) {
        static char buf[65536];
        ssize_t n = look_read(path, buf, sizeof(buf));

        return text[0] && n > 0 && memmem(buf, (size_t) n, text, strlen(text));
}

bool look_ns_is_initial(const char *name, unsigned long ino) {
        char path[64];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
        return stat(path, &st) == 0 && (unsigned long) st.st_ino == ino;
}

static void closedirp(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

bool look_each(const char *dir, bool (*fn)(const char *dir, const char *name, void *arg), void *arg) {
        CLEANUP(closedirp) DIR *d = opendir(dir);
        const struct dirent *e;

        while (d && (e = readdir(d)))
                if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, "..") && fn(dir, e->d_name, arg))
                        return true;
        return false;
}

struct pid_visit {
        bool (*fn)(pid_t pid, void *arg);
        void *arg;
};

static bool on_proc_entry(const char *dir, const char *name, void *arg) {
        const struct pid_visit *v = arg;
        uint64_t pid;

        (void) dir;
        return str_to_u64(name, INT32_MAX, &pid) == 0 && v->fn((pid_t) pid, v->arg);
}

bool look_each_pid(bool (*fn)(pid_t pid, void *arg), void *arg) {
        struct pid_visit v = { fn, arg };

        return look_each("/proc", on_proc_entry, &v);
}

bool look_each_line(const char *path, bool (*fn)(char *line, void *arg), void *arg) {
        static char buf[65536];
        char *line = buf;

        if (look_read(path, buf, sizeof(buf)) <= 0)
                return false;
        while (*line) {
                char *end = strchrnul(line, '\n');
                bool is_last = *end == '\0';

                *end = '\0';
                if (fn(line, arg))
                        return true;
                if (is_last)
                        return false;
                line = end + 1;
        }
        return false;
}

void look_judge(struct probe_result *r, long ret, const char *note) {
        if (ret >= 0)
                probe_reached(r, note);
        else
                probe_stopped(r, (int) -ret, note);
}

void look_accepted(struct probe_result *r, const char *note) {
        probe_stopped(r, 0, note);
        r->verdict = PROBE_ACCEPTED;
}
