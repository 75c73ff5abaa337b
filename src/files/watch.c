/*
 * watch.c - changes below a directory, by inotify.
 *
 * Each watched directory is a node with its name and its parent, so that a directory that moves takes its children with
 * it. A new directory is watched first and looked through afterwards: what came into it before the watch is told as
 * created, and may be told twice, but never not at all. What does not fit (directories, events) is told as FP_OVERFLOW.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/wr.h"
#include "worker.h"

enum {
        MASK = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB,
        EVENT_BYTES = 16384,
        NAME = 256,
};

static struct {
        uint32_t id, flags;
        int fd;
        struct node {
                int wd;     /* 0: unused */
                bool fresh; /* to be looked through */
                uint32_t parent;
                char name[NAME];
        } nodes[FP_WATCHES]; /* [0]: the directory itself */
        uint32_t n;
        char root[AP_PATH_MAX], path[AP_PATH_MAX];
} watch;

static void send_event(enum fp_what what, const char *name, const char *path) {
        static struct fp_entry e;
        bool there = (watch.flags & FP_WITH_ENTRY) && (what == FP_CREATE || what == FP_MODIFY || what == FP_CHMOD) &&
                     entry_read(path, watch.flags, &e) == 0;
        struct wr w = worker_begin(2 * AP_HEAD + AP_PATH_MAX);

        fp_put_event(&w, watch.id, &(struct fp_event){ .what = (uint8_t) what, .has_entry = there, .name = name });
        worker_commit(&w);
        if (there)
                entry_put(watch.id, &e);
}

static void overflow(void) {
        send_event(FP_OVERFLOW, "", "");
}

/* Path of a name in a directory into watch.path; returns where the part below the root starts, NULL if it is too long.
 */
static const char *path_of(uint32_t node, const char *name) {
        size_t at = sizeof(watch.path) - 1, n = strlen(name), root = strlen(watch.root), below;

        watch.path[at] = '\0';
        for (uint32_t i = node;; i = watch.nodes[i].parent) {
                if (n + 1 > at || at - n - 1 < root)
                        return NULL;
                at -= n;
                memcpy(watch.path + at, name, n);
                if (i == 0)
                        break;
                if (n > 0)
                        watch.path[--at] = '/';
                name = watch.nodes[i].name;
                n = strlen(name);
        }
        below = at;
        watch.path[--at] = '/';
        at -= root;
        memcpy(watch.path + at, watch.root, root);
        memmove(watch.path, watch.path + at, sizeof(watch.path) - at);
        return watch.path + (below - at);
}

static struct node *node_of(int wd) {
        for (uint32_t i = 0; i < watch.n; i++)
                if (watch.nodes[i].wd == wd)
                        return &watch.nodes[i];
        return NULL;
}

/* Watches a directory, if it is one. */
static void node_add(uint32_t parent, const char *name) {
        const char *below = path_of(parent, name);
        int wd = below ? inotify_add_watch(watch.fd, watch.path, MASK | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)
                       : -1;
        struct node *d = wd > 0 ? node_of(wd) : NULL; /* known already: it was moved here */

        if (wd < 0) {
                if (!below || errno == ENOSPC)
                        overflow();
                return;
        }
        for (uint32_t i = 1; !d && i < FP_WATCHES; i++)
                if (watch.nodes[i].wd == 0) {
                        d = &watch.nodes[i];
                        watch.n = i < watch.n ? watch.n : i + 1;
                }
        if (!d) {
                (void) inotify_rm_watch(watch.fd, wd);
                overflow();
                return;
        }
        d->wd = wd;
        d->fresh = true;
        d->parent = parent;
        memcpy(d->name, name, strnlen(name, sizeof(d->name) - 1) + 1);
}

/* Looks through directories that were just added, and through those found there, and so on. */
static void look(bool tell) {
        static struct names names;
        bool more = true;

        while (more) {
                more = false;
                for (uint32_t i = 0; i < watch.n; i++) {
                        AUTO_FD int fd = -1;
                        const struct dirent *e;
                        int r;

                        if (watch.nodes[i].wd == 0 || !watch.nodes[i].fresh)
                                continue;
                        watch.nodes[i].fresh = false;
                        more = true;
                        fd = path_of(i, "") ? open(watch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
                        names = (struct names){ .fd = fd };
                        while (fd >= 0 && (e = names_next(&names, &r))) {
                                const char *below = path_of(i, e->d_name);

                                if (tell && below)
                                        send_event(FP_CREATE, below, watch.path);
                                if (e->d_type == DT_DIR)
                                        node_add(i, e->d_name);
                        }
                }
        }
}

/* A directory that left takes its watches with it, and those below. */
static void node_remove(uint32_t i) {
        (void) inotify_rm_watch(watch.fd, watch.nodes[i].wd);
        watch.nodes[i].wd = 0;
        for (uint32_t k = 1; k < watch.n; k++)
                if (watch.nodes[k].wd > 0 && watch.nodes[k].parent == i)
                        node_remove(k);
}

static void on_event(const struct inotify_event *e) {
        static const struct {
                uint32_t bit;
                enum fp_what what;
        } kinds[] = { { IN_CREATE, FP_CREATE }, { IN_MOVED_TO, FP_CREATE },   { IN_MODIFY, FP_MODIFY },
                      { IN_DELETE, FP_DELETE }, { IN_MOVED_FROM, FP_RENAME }, { IN_ATTRIB, FP_CHMOD } };
        struct node *d = e->wd > 0 ? node_of(e->wd) : NULL;
        const char *name = e->len > 0 ? e->name : "", *below;
        uint32_t node;

        if (e->mask & IN_Q_OVERFLOW)
                overflow();
        if (!d)
                return;
        node = (uint32_t) (d - watch.nodes);
        if (e->mask & IN_IGNORED) {
                d->wd = 0;
                return;
        }
        if (!name[0]) /* about the directory itself: its parent tells that, and of the first nobody asked */
                return;
        below = path_of(node, name);
        for (size_t i = 0; below && i < ARRAY_SIZE(kinds); i++)
                if (e->mask & kinds[i].bit)
                        send_event(kinds[i].what, below, watch.path);
        if (!(watch.flags & FP_RECURSIVE) || !(e->mask & IN_ISDIR))
                return;
        for (uint32_t i = 1; (e->mask & IN_MOVED_FROM) && i < watch.n; i++)
                if (watch.nodes[i].wd > 0 && watch.nodes[i].parent == node && strcmp(watch.nodes[i].name, name) == 0)
                        node_remove(i);
        if (e->mask & (IN_CREATE | IN_MOVED_TO)) {
                node_add(node, name);
                look(true);
        }
}

static _Noreturn void serve(void) {
        static char bytes[EVENT_BYTES] __attribute__((aligned(8)));

        for (;;) {
                struct pollfd p[2] = { { worker_fd(), POLLIN, 0 }, { watch.fd, POLLIN, 0 } };
                ssize_t n;

                worker_flush();
                if (poll(p, 2, -1) < 0 && errno != EINTR)
                        _exit(1);
                if (p[0].revents) /* the host closes, or says something where there is nothing to say */
                        _exit(0);
                n = p[1].revents ? read(watch.fd, bytes, sizeof(bytes)) : 0;
                for (ssize_t at = 0; at < n;) {
                        const struct inotify_event *e = (const struct inotify_event *) (bytes + at);

                        on_event(e);
                        at += (ssize_t) (sizeof(*e) + e->len);
                }
        }
}

int watch_run(uint32_t id, const struct fp_request *q) {
        size_t n = strlen(q->path);

        while (n > 0 && q->path[n - 1] == '/') /* the root is "" here */
                n--;
        memcpy(watch.root, q->path, n);
        watch.root[n] = '\0';
        watch.id = id;
        watch.flags = q->flags;
        watch.fd = inotify_init1(IN_CLOEXEC);
        if (watch.fd < 0)
                return -errno;
        watch.nodes[0].wd = inotify_add_watch(watch.fd, q->path, MASK | IN_ONLYDIR | IN_EXCL_UNLINK);
        if (watch.nodes[0].wd < 0) {
                int r = -errno;

                (void) close(watch.fd);
                return r;
        }
        watch.n = 1;
        watch.nodes[0].fresh = q->flags & FP_RECURSIVE;
        look(false);
        worker_done(id);
        serve();
}
