/* cp_up.c - into the sandbox: a file, or a directory with all that is below it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/copy.h"
#include "json/json.h"

static int up(struct copy *c, int dir_fd, const char *name, const char *shown, const char *to, unsigned depth,
              struct err *err);

static int make_directory(struct copy *c, const char *path, struct err *err) {
        struct client_reply reply = { 0 };
        struct json *message = json_new_object();
        int r;

        json_set_str(message, "path", path);
        r = client_rpc(c->remote->client, &c->box, "filesystem.Filesystem/MakeDir", c->user, message, &reply, err);
        client_reply_done(&reply);
        return r == -EEXIST ? 0 : r;
}

static void closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

static int up_directory(struct copy *c, int fd, const char *shown, const char *to, unsigned depth, struct err *err) {
        CLEANUP(closep) DIR *dir = fdopendir(fd); /* takes fd */
        const struct dirent *e;
        int r;

        if (!dir) {
                r = err_set(err, -errno, ERR_INVALID, "%.200s: %s", shown, strerror(errno));
                (void) close(fd);
                return r;
        }
        if (depth == COPY_DEPTH)
                return err_set(err, -ELOOP, ERR_INVALID, "%.100s: more than %d directories deep", shown, COPY_DEPTH);
        r = make_directory(c, to, err);
        while (r == 0) {
                char there[COPY_PATH], here[COPY_PATH];

                errno = 0;
                e = readdir(dir);
                if (!e && errno != 0)
                        return err_set(err, -errno, ERR_INVALID, "%.200s: %s", shown, strerror(errno));
                if (!e)
                        break;
                if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
                        continue;
                r = copy_join(there, to, e->d_name, err);
                if (r == 0)
                        r = copy_join(here, shown, e->d_name, err);
                if (r == 0)
                        r = up(c, dirfd(dir), e->d_name, here, there, depth + 1, err);
        }
        return r;
}

static int up(struct copy *c, int dir_fd, const char *name, const char *shown, const char *to, unsigned depth,
              struct err *err) {
        /* O_NONBLOCK: a pipe must not hold us up; it is left out below. */
        AUTO_FD int fd = openat(dir_fd, name,
                                O_RDONLY | O_CLOEXEC | O_NONBLOCK | (depth > 0 && !c->follow_links ? O_NOFOLLOW : 0));
        struct stat st;
        int r;

        if (fd < 0 && (errno == ELOOP || errno == ENXIO)) { /* a link, a socket */
                remote_warn("%s: a %s; left out", shown, errno == ELOOP ? "link" : "socket or device");
                c->left_out++;
                return 0;
        }
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, -errno, ERR_INVALID, "%.200s: %s", shown, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return up_directory(c, TAKE_FD(fd), shown, to, depth, err);
        if (!S_ISREG(st.st_mode) && depth > 0) {
                remote_warn("%s: neither file nor directory; left out", shown);
                c->left_out++;
                return 0;
        }
        (void) fcntl(fd, F_SETFL, 0);
        r = copy_send(c, fd, S_ISREG(st.st_mode) && st.st_size > 0 ? st.st_size : -1, to, err);
        if (r < 0)
                return err_wrap(err, "%.100s", shown);
        if (S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR))
                json_add_str(c->executable, to);
        return 0;
}

int copy_up(struct copy *c, const char *from, const char *to, struct err *err) {
        int r;

        if (!str_eq(from, "-"))
                return up(c, AT_FDCWD, from, from, to, 0, err);
        r = copy_send(c, STDIN_FILENO, -1, to, err);
        return r < 0 ? err_wrap(err, "standard input") : 0;
}
