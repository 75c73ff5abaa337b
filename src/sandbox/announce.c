/*
 * announce.c - how another process finds a running sandbox: the slot file holds its id, and a socket lies beside it.
 *
 * Both are in the run directory, which belongs to one user alone. A slot that nobody holds belongs to the dead.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "sandbox/janitor.h"
#include "sandbox/slot.h"

int sandbox_announce(struct sandbox *sb, char path[SANDBOX_PATH], struct err *err) {
        char slot[CGROUP_NAME], sock[SLOT_SOCKET];
        int n;

        slot_name(slot, sb->slot);
        slot_socket(sock, slot);
        n = snprintf(path, SANDBOX_PATH, "%s/%s", sb->run_dir, sock);
        if (n < 0 || n >= SANDBOX_PATH)
                return err_set(err, -ENAMETOOLONG, ERR_INTERNAL, "run directory %s: its name is too long", sb->run_dir);
        if (pwrite(sb->slot_fd, sb->id, strlen(sb->id), 0) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "run directory %s: %s", sb->run_dir, strerror(errno));
        janitor_announce(sock);
        return 0;
}

/* Opens a run directory if it is this user's and nobody else can write there. */
static int dir_open(const char *path) {
        AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077))
                return -1;
        return TAKE_FD(fd);
}

static bool slot_is(int dir_fd, const char *name, const char *id) {
        AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char text[ID_TEXT + 1];

        if (fd < 0 || fd_read_upto(fd, text, sizeof(text)) != ID_LEN || !str_eq(text, id))
                return false;
        return flock(fd, LOCK_SH | LOCK_NB) < 0; /* held: it lives */
}

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

static bool dir_find(const char *path, const char *id, char ret[SANDBOX_PATH]) {
        int fd = dir_open(path);
        CLEANUP(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *d;

        if (!dir) {
                own_closep(&fd);
                return false;
        }
        while ((d = readdir(dir)))
                if (str_has_prefix(d->d_name, "sbx-") && !strchr(d->d_name, '.') && slot_is(fd, d->d_name, id))
                        return snprintf(ret, SANDBOX_PATH, "%s/%s.sock", path, d->d_name) < SANDBOX_PATH;
        return false;
}

int sandbox_find(const char *id, char path[SANDBOX_PATH], struct err *err) {
        char dirs[2][64];
        size_t n = 0;

        if (geteuid() == 0) {
                (void) snprintf(dirs[n++], sizeof(dirs[0]), "/run/gabion");
        } else {
                (void) snprintf(dirs[n++], sizeof(dirs[0]), "/run/user/%u/gabion", geteuid());
                (void) snprintf(dirs[n++], sizeof(dirs[0]), "/tmp/gabion-%u", geteuid());
        }
        for (size_t i = 0; i < n; i++)
                if (strlen(id) == ID_LEN && dir_find(dirs[i], id, path))
                        return 0;
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "sandbox '%.40s': no sandbox of yours runs under this id", id);
}
