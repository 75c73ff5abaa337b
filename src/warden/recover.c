/*
 * recover.c - what a warden before us left. A record that says "running", whose process lives, started when it says and
 * is a member of its group, is a sandbox of ours. Everything else of ours is ended: what was being made, what waited in
 * a pool, what has died meanwhile, groups without a record, sockets without a sandbox.
 *
 * A record that is locked has a maker, or the janitor of one that was killed, behind it: they end by themselves soon.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "guard.h"
#include "network.h"
#include "state.h"

enum { LOCK_MS = 15000, STEP_NS = 5000000, AGAIN_MS = 2000 };

static uint64_t again_ns; /* when the slots are looked at for the second time; 0: they were */

static const char prefix[] = "sbx-";

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

static DIR *dir_open(int dir_fd, const char *path) {
        int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (!d)
                own_closep(&fd);
        return d;
}

/* Opens a record once nobody holds it any more. -ENOENT: it is gone, or none of ours. */
static int open_free(const char *name) {
        static const struct timespec step = { .tv_nsec = STEP_NS };
        uint64_t until = clock_mono_ns() + LOCK_MS * 1000000ull;

        for (;;) {
                AUTO_FD int fd = openat(warden.slots_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
                struct stat st;
                char first;

                if (fd < 0)
                        return -ENOENT;
                if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
                        bool ours =
                                fstat(fd, &st) == 0 && st.st_nlink > 0 && pread(fd, &first, 1, 0) == 1 && first == '{';

                        return ours ? TAKE_FD(fd) : -ENOENT;
                }
                if (pread(fd, &first, 1, 0) != 1 || first != '{')
                        return -ENOENT; /* of a `gabion run` */
                if (clock_mono_ns() > until)
                        return -EBUSY;
                (void) nanosleep(&step, NULL);
        }
}

/* Kills and removes the groups of a name. */
static int end_groups(const char *name, struct err *err) {
        struct cgroup c;
        int r = cgroup_open(warden.groups, name, &c, err);

        if (r == -ENOENT)
                return 0;
        if (r == 0)
                r = cgroup_kill(&c, err);
        return r < 0 ? r : cgroup_remove(&c, err);
}

static bool lives(const struct record *rec, const char *name, int *ret_pidfd) {
        AUTO_FD int fd = sys_pidfd_open((pid_t) rec->pid);
        struct cgroup c;
        struct err e;
        bool member;

        /* The descriptor first: what is compared afterwards is then the process that we hold. */
        if (fd < 0 || rec->start == 0 || record_start_time((pid_t) rec->pid) != rec->start ||
            cgroup_open(warden.groups, name, &c, &e) < 0)
                return false;
        member = cgroup_verify_member(&c, warden.proc_fd, (int) rec->pid, &e) == 0;
        cgroup_close(&c);
        if (member)
                *ret_pidfd = TAKE_FD(fd);
        return member;
}

static int adopt(const struct record *rec, int pidfd, struct err *err) {
        struct box *b = box_new(rec->id, rec->tenant, err);
        struct policy *p = malloc(sizeof(*p));
        struct cgroup c;
        int r = 0;

        if (!b || !p) {
                own_closep(&pidfd);
                free(p);
                return b ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory") : err->code;
        }
        memcpy(b->hostname, rec->hostname, sizeof(b->hostname));
        memcpy(b->policy, rec->policy_hash, sizeof(b->policy));
        memcpy(b->read_back.evidence, rec->evidence_hash, sizeof(b->read_back.evidence));
        b->state = WP_RUNNING;
        b->slot = rec->slot;
        b->pid = (pid_t) rec->pid;
        b->start = rec->start;
        b->created_ms = rec->created_ms;
        b->uid = rec->uid;
        b->offset = rec->offset;
        b->memory_limit = rec->memory_limit;
        b->disk_limit = rec->disk_limit;
        if (record_policy(rec, p, err) == 0)
                b->profile = (enum seccomp_profile) p->syscalls;
        if (box_groups(b, &c, err) == 0) {
                if (cgroup_is_frozen(&c))
                        b->state = WP_FROZEN;
                cgroup_close(&c);
        }
        /* One whose rules cannot be read goes on without: nothing listens in its namespace. */
        if (network_adopt(b, rec, err) < 0)
                warden_log("sandbox %s has no network any more: %s", b->id, err->msg);
        r = box_started(b, pidfd, -1, err);
        if (r == 0)
                guard_again(b, p);
        else
                box_free(b);
        policy_done(p);
        free(p);
        return r;
}

static int one(const char *name, struct err *err) {
        CLEANUP(record_done) struct record rec = { 0 };
        AUTO_FD int fd = open_free(name);
        struct err e;
        int pidfd = -1, r;

        if (fd < 0)
                return fd == -ENOENT
                               ? 0
                               : err_set(err, fd, ERR_BUSY, "record %s is locked by somebody who does not end", name);
        r = record_read(fd, &rec, &e);
        if (r == 0 && !str_eq(rec.run, warden.run) && (access(rec.run, F_OK) == 0 || lives(&rec, name, &pidfd))) {
                own_closep(&pidfd);
                return 0; /* another warden's */
        }
        if (r == 0 && rec.state == WP_RUNNING && lives(&rec, name, &pidfd))
                return adopt(&rec, pidfd, err);
        if (r < 0)
                warden_log("record %s: %s; what belongs to it is ended", name, e.msg);
        else if (rec.state == WP_RUNNING)
                warden_log("sandbox %s was lost while no warden ran", rec.id);
        r = end_groups(name, err);
        if (r == 0)
                (void) unlinkat(warden.slots_fd, name, 0);
        return r;
}

static int records(struct err *err) {
        CLEANUP(dir_closep) DIR *d = dir_open(warden.slots_fd, ".");
        struct dirent *e;

        while (d && (e = readdir(d))) {
                int r = str_has_prefix(e->d_name, prefix) && !strchr(e->d_name, '.') ? one(e->d_name, err) : 0;

                if (r < 0)
                        return r;
        }
        return d ? 0 : err_set(err, -errno, ERR_INTERNAL, "%s: %s", WARDEN_SLOTS, strerror(errno));
}

/*
 * A maker that was killed while it took its slot leaves an empty file, like a `gabion run` that was killed with its
 * janitor. Nobody holds it, so nobody needs it. That maker may die a moment after we have looked: we look twice.
 */
static void sweep(void) {
        CLEANUP(dir_closep) DIR *d = dir_open(warden.slots_fd, ".");
        struct dirent *e;

        while (d && (e = readdir(d))) {
                bool slot = str_has_prefix(e->d_name, prefix) && !strchr(e->d_name, '.');
                AUTO_FD int fd = slot ? openat(warden.slots_fd, e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
                struct stat st;
                struct err err;

                if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
                    st.st_size > 0)
                        continue;
                if (end_groups(e->d_name, &err) == 0)
                        (void) unlinkat(warden.slots_fd, e->d_name, 0);
        }
}

int recover_again(void) {
        uint64_t now = clock_mono_ns();

        if (again_ns == 0)
                return -1;
        if (now < again_ns)
                return (int) ((again_ns - now) / 1000000) + 1;
        again_ns = 0;
        sweep();
        return -1;
}

/* A slot file is there before its group and stays longer, so a group without one belongs to nobody. */
static void orphans(void) {
        const char *parent;

        for (size_t i = 0; (parent = cgroup_parent(warden.groups, i)); i++) {
                CLEANUP(dir_closep) DIR *d = parent[0] ? dir_open(AT_FDCWD, parent) : NULL;
                struct dirent *e;

                while (d && (e = readdir(d))) {
                        struct err err;

                        if (!str_has_prefix(e->d_name, prefix) || faccessat(warden.slots_fd, e->d_name, F_OK, 0) == 0)
                                continue;
                        if (end_groups(e->d_name, &err) < 0)
                                warden_log("group %s without a record: %s", e->d_name, err.msg);
                }
        }
}

static void stale_sockets(const char *folder) {
        char path[WP_PATH];
        CLEANUP(dir_closep) DIR *d = NULL;
        struct dirent *e;

        (void) snprintf(path, sizeof(path), "%.90s/%s", warden.run, folder);
        d = dir_open(AT_FDCWD, path);
        while (d && (e = readdir(d)))
                if (e->d_name[0] != '.' && !box_find(e->d_name))
                        (void) unlinkat(dirfd(d), e->d_name, 0);
}

int recover(struct err *err) {
        int r = records(err);

        if (r < 0)
                return r;
        sweep();
        again_ns = clock_mono_ns() + AGAIN_MS * 1000000ull;
        orphans();
        stale_sockets("agents");
        stale_sockets("gates");
        if (warden.n_boxes > 0)
                warden_log("%u sandboxes were found again", warden.n_boxes);
        return 0;
}
