/*
 * slot.c - slots are files in the run directory, held by flock().
 *
 * A slot stands for a range of host uids and for a control-group name, so two sandboxes can never share either. The
 * lock belongs to the open file, not to a pid: when the supervisor and its janitor are gone, however they ended, the
 * kernel frees it, and whoever finds it free may clean up. No pid is ever compared.
 */
#include "sandbox/slot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "sandbox/enter.h"

void slot_name(char dst[CGROUP_NAME], unsigned slot) {
        (void) snprintf(dst, CGROUP_NAME, "sbx-%04u", slot % SLOT_COUNT);
}

void slot_socket(char dst[SLOT_SOCKET], const char *slot) {
        (void) snprintf(dst, SLOT_SOCKET, "%.*s.sock", CGROUP_NAME - 1, slot);
}

/* The directory must be ours alone: a name that somebody else prepared in a shared place is refused. */
static int run_dir_open(struct sandbox *sb, bool rootless, struct err *err) {
        struct stat st;

        if (!rootless)
                (void) snprintf(sb->run_dir, sizeof(sb->run_dir), "/run/gabion");
        else
                (void) snprintf(sb->run_dir, sizeof(sb->run_dir), "/run/user/%u/gabion", enter_caller_uid());
        sb->run_fd = open(sb->run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sb->run_fd < 0 && rootless && errno == ENOENT && mkdir(sb->run_dir, 0700) < 0 && errno == ENOENT)
                /* no session manager made /run/user: a private directory under /tmp, checked below */
                (void) snprintf(sb->run_dir, sizeof(sb->run_dir), "/tmp/gabion-%u", enter_caller_uid());
        if (sb->run_fd < 0) {
                if (mkdir(sb->run_dir, 0700) < 0 && errno != EEXIST)
                        return err_set(err, -errno, ERR_INTERNAL, "run directory %s: %s; make it writable for you",
                                       sb->run_dir, strerror(errno));
                sb->run_fd = open(sb->run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (sb->run_fd < 0 || fstat(sb->run_fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "run directory %s: %s", sb->run_dir, strerror(errno));
        if (st.st_uid != geteuid() || (st.st_mode & 077))
                return err_set(err, -EPERM, ERR_DENIED, "run directory %s must belong to you with mode 0700",
                               sb->run_dir);
        return 0;
}

static int slot_try(struct sandbox *sb, const char *name) {
        AUTO_FD int fd = openat(sb->run_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0)
                return -errno;
        /* A sweeper may have found the file before it was locked and removed it: then it is not ours. */
        if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
                return -EEXIST;
        sb->slot_fd = TAKE_FD(fd);
        return 0;
}

int slot_claim(struct sandbox *sb, bool rootless, struct err *err) {
        char name[CGROUP_NAME];
        uint16_t start;
        int r = run_dir_open(sb, rootless, err);

        if (r < 0)
                return r;
        r = id_new(sb->id);
        if (r < 0 || getrandom(&start, sizeof(start), 0) != sizeof(start))
                return err_set(err, -EIO, ERR_INTERNAL, "no randomness from the kernel");
        r = -EBUSY;
        for (unsigned i = 0; i < SLOT_COUNT; i++) {
                sb->slot = (start + i) % SLOT_COUNT;
                slot_name(name, sb->slot);
                r = slot_try(sb, name);
                if (r != -EEXIST)
                        break;
                r = -EBUSY;
        }
        if (r < 0)
                return err_set(err, r, ERR_LIMIT, "no free place for a sandbox in %s: %s", sb->run_dir, strerror(-r));
        return 0;
}

static void slot_free(int run_fd, const char *name) {
        char sock[SLOT_SOCKET];

        slot_socket(sock, name);
        (void) unlinkat(run_fd, sock, 0); /* first: the slot's owner is who may remove it */
        (void) unlinkat(run_fd, name, 0);
}

void slot_drop(struct sandbox *sb, bool free_it) {
        char name[CGROUP_NAME];

        if (sb->slot_fd >= 0) {
                slot_name(name, sb->slot);
                if (free_it)
                        slot_free(sb->run_fd, name);
                (void) close(TAKE_FD(sb->slot_fd));
        }
        if (sb->run_fd >= 0)
                (void) close(TAKE_FD(sb->run_fd));
}

bool slot_is_kept(int fd) {
        char first;

        return pread(fd, &first, 1, 0) == 1 && first == SLOT_RECORD;
}

uint32_t sandbox_uid_base(unsigned slot) {
        return SLOT_UID_FIRST + slot * PLAN_IDS;
}

int slot_each_dead(int run_fd, int (*fn)(void *arg, const char *name), void *arg) {
        int copy = openat(run_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *d;
        int n = 0;

        if (!dir) {
                if (copy >= 0)
                        (void) close(copy);
                return 0;
        }
        while ((d = readdir(dir))) {
                AUTO_FD int fd = -1;
                struct stat st;

                if (!str_has_prefix(d->d_name, "sbx-"))
                        continue;
                fd = openat(run_fd, d->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
                /* Gone from the directory means that its holder freed it, and the name may be another's by now. */
                if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0)
                        continue;
                if (slot_is_kept(fd)) /* its sandbox goes on by itself, and is the warden's to judge */
                        continue;
                if (fn(arg, d->d_name) == 0) {
                        slot_free(run_fd, d->d_name);
                        n++;
                }
        }
        (void) closedir(dir);
        return n;
}
