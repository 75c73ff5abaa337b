/*
 * cp_down.c - from the sandbox: a file, or a directory with all that is below it.
 *
 * The names come from somebody who is not trusted. Each is one part of a path and is opened below a directory that is
 * held open, without following links, so that nothing is written outside of the target; links inside are left out,
 * because their readers would follow them later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/copy.h"
#include "json/json.h"

static bool is_safe_name(const char *s) {
        return *s && strlen(s) <= 255 && !strchr(s, '/') && !str_eq(s, ".") && !str_eq(s, "..");
}

/* Writes beside the target first: what is there under its name is always whole. */
static int down_file(struct copy *c, const char *path, int dir_fd, const char *name, mode_t mode, struct err *err) {
        char tmp[ID_TEXT + 16], id[ID_TEXT];
        AUTO_FD int fd = -1;
        int r = id_new(id);

        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "randomness");
        (void) snprintf(tmp, sizeof(tmp), ".gabion-%s", id);
        fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return err_set(err, -errno, ERR_INVALID, "%.100s: %s", name, strerror(errno));
        r = copy_receive(c, path, fd, err);
        if (r < 0)
                (void) err_wrap(err, "%.100s", path);
        else if (fchmod(fd, mode & 0777) < 0 || renameat(dir_fd, tmp, dir_fd, name) < 0)
                r = err_set(err, -errno, ERR_INVALID, "%.100s: %s", name, strerror(errno));
        if (r < 0)
                (void) unlinkat(dir_fd, tmp, 0);
        return r;
}

static int open_directory(int dir_fd, const char *name, struct err *err) {
        int fd;

        if (mkdirat(dir_fd, name, 0777) < 0 && errno != EEXIST)
                return err_set(err, -errno, ERR_INVALID, "%.100s: %s", name, strerror(errno));
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0 ? fd : err_set(err, -errno, ERR_INVALID, "%.100s: %s", name, strerror(errno));
}

static int down_directory(struct copy *c, const char *path, int dir_fd, const char *name, unsigned depth,
                          struct err *err);

static int down_entry(struct copy *c, const char *dir, const struct json *entry, int dir_fd, unsigned depth,
                      struct err *err) {
        const char *name = json_get_str(entry, "name"), *type = json_get_str(entry, "type");
        const char *link = json_get_str(entry, "symlinkTarget");
        char path[COPY_PATH];
        int r;

        if (!name || !is_safe_name(name))
                return err_set(err, -EPROTO, ERR_PEER, "the sandbox has a name that no file can have");
        r = copy_join(path, dir, name, err);
        if (r < 0)
                return r;
        if (!link && type && str_eq(type, "FILE_TYPE_DIRECTORY"))
                return down_directory(c, path, dir_fd, name, depth, err);
        if (!link && type && str_eq(type, "FILE_TYPE_FILE"))
                return down_file(c, path, dir_fd, name, (mode_t) json_get_int(entry, "mode", 0644), err);
        remote_warn("%s: %s; left out", path, link ? "a link" : "neither file nor directory");
        c->left_out++;
        return 0;
}

static int down_directory(struct copy *c, const char *path, int dir_fd, const char *name, unsigned depth,
                          struct err *err) {
        struct client_reply reply = { 0 };
        struct json *message = json_new_object();
        AUTO_FD int fd = -1;
        const struct json *all;
        int r;

        json_set_str(message, "path", path);
        r = client_rpc(c->remote->client, &c->box, "filesystem.Filesystem/ListDir", c->user, message, &reply, err);
        if (r < 0)
                (void) err_wrap(err, "%.100s", path);
        if (r == 0 && depth == COPY_DEPTH)
                r = err_set(err, -ELOOP, ERR_INVALID, "%.100s: more than %d directories deep", path, COPY_DEPTH);
        if (r == 0)
                r = fd = open_directory(dir_fd, name, err);
        all = r >= 0 ? json_get(reply.body, "entries") : NULL;
        for (size_t i = 0; r >= 0 && i < json_len(all); i++)
                r = down_entry(c, path, json_at(all, i), fd, depth + 1, err);
        client_reply_done(&reply);
        return r < 0 ? r : 0;
}

/* The directory that `to` is in, and its name there. */
static int open_parent(const char *to, char name[COPY_PATH], struct err *err) {
        char dir[COPY_PATH];
        int fd;

        if (!*copy_name(to, name) || str_copy(dir, sizeof(dir), to) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "%.100s: the target needs a name", to);
        for (size_t n = strlen(dir); n > 0 && dir[n - 1] == '/'; n--)
                dir[n - 1] = '\0';
        dir[strlen(dir) - strlen(name)] = '\0';
        fd = open(dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 ? fd : err_set(err, -errno, ERR_INVALID, "%.100s: %s", dir[0] ? dir : ".", strerror(errno));
}

int copy_down(struct copy *c, const char *from, const char *to, struct err *err) {
        enum copy_kind kind;
        char name[COPY_PATH];
        AUTO_FD int fd = -1;
        mode_t mode = 0;
        int r = copy_look(c, from, &kind, &mode, err);

        if (r < 0)
                return r;
        if (kind == COPY_NONE)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "%.100s: there is no such file in the sandbox", from);
        if (str_eq(to, "-") && kind != COPY_FILE)
                return err_set(err, -EISDIR, ERR_INVALID, "%.100s: only a file can go to standard output", from);
        if (str_eq(to, "-")) {
                r = copy_receive(c, from, STDOUT_FILENO, err);
                return r < 0 ? err_wrap(err, "%.100s", from) : 0;
        }
        fd = open_parent(to, name, err);
        if (fd < 0)
                return fd;
        return kind == COPY_DIRECTORY ? down_directory(c, from, fd, name, 0, err)
                                      : down_file(c, from, fd, name, mode, err);
}
