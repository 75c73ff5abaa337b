/*
 * trip.c - wires that are touched when somebody changes a running sandbox from outside, so that it is read again at
 * once and need not be read all the time.
 *
 * Theory of operation. The kernel tells of writes to the files of its control groups (inotify on their directories), of
 * changes of its mounts (the mount table polls as exceptional), and of changes of the rules, addresses and routes of
 * its network namespace (netlink). A wire says that something has happened and nothing else: whether the sandbox is
 * still as planned is read as always (check.c). What no wire tells is found by the schedule.
 *
 * Nothing inside can pull a wire but by counters that change by themselves, which are passed over by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "state.h"

enum { NETS = 2, READS = 16 };

struct trip {
        struct box *box;
        struct watch mounts, nets[NETS];
        int groups[CGROUP_V1_MAX + 1]; /* of inotify; -1: none */
};

static struct watch writes = { .fd = -1 }; /* inotify, for all */
static int home_fd = -1;                   /* our own network namespace */

/* --- what the wires say --- */

static struct box *box_of_group(int wd) {
        struct box *b;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                for (size_t i = 0; b->trip && i < ARRAY_SIZE(b->trip->groups); i++)
                        if (b->trip->groups[i] == wd)
                                return b;
        }
        return NULL;
}

static void on_write(struct watch *w, uint32_t what) {
        char space[4096] __attribute__((aligned(8)));
        ssize_t n = read(w->fd, space, sizeof(space));

        (void) what;
        for (ssize_t at = 0; at + (ssize_t) sizeof(struct inotify_event) <= n;) {
                const struct inotify_event *e = (const void *) (space + at);
                struct box *b;

                at += (ssize_t) (sizeof(*e) + e->len);
                /* The kernel changes files of events by itself, as often as the sandbox runs into a limit. */
                if (!(e->mask & IN_MODIFY) || e->len == 0 || strstr(e->name, ".events"))
                        continue;
                b = box_of_group(e->wd);
                if (b)
                        check_soon(b);
        }
}

static void on_mounts(struct watch *w, uint32_t what) {
        struct trip *t = OF_WATCH(w, struct trip, mounts);

        if (what & EPOLLPRI)
                check_soon(t->box);
}

static void drain(struct watch *w, struct trip *t) {
        char space[512];

        /* What does not fit, or was lost, is a change all the same. */
        for (int i = 0; i < READS && recv(w->fd, space, sizeof(space), MSG_DONTWAIT) >= 0; i++)
                ;
        check_soon(t->box);
}

static void on_rules(struct watch *w, uint32_t what) {
        (void) what;
        drain(w, OF_WATCH(w, struct trip, nets[0]));
}

static void on_routes(struct watch *w, uint32_t what) {
        (void) what;
        drain(w, OF_WATCH(w, struct trip, nets[1]));
}

/* --- laying them --- */

static int groups_watch(struct trip *t) {
        const char *parent;
        int made = 0;

        for (size_t i = 0; i < ARRAY_SIZE(t->groups) && (parent = cgroup_parent(warden.groups, i)); i++) {
                char path[512];

                (void) snprintf(path, sizeof(path), "%.400s/sbx-%04u", parent, t->box->slot);
                if (parent[0])
                        t->groups[i] = inotify_add_watch(writes.fd, path, IN_MODIFY | IN_ONLYDIR);
                if (parent[0] && t->groups[i] < 0 && errno != ENOENT)
                        return -errno;
                made += t->groups[i] >= 0;
        }
        return made > 0 ? 0 : -ENOENT;
}

static int mounts_watch(struct trip *t) {
        struct epoll_event e = { .events = EPOLLPRI, .data.ptr = &t->mounts };
        char path[32];
        int fd, r;

        (void) snprintf(path, sizeof(path), "%d/mountinfo", (int) t->box->pid);
        fd = openat(warden.proc_fd, path, O_RDONLY | O_CLOEXEC);
        r = fd < 0 ? -errno : loop_watch(&t->mounts, fd, on_mounts);
        /* It can be read at any time; only a change is news. */
        return r == 0 && epoll_ctl(warden.epoll_fd, EPOLL_CTL_MOD, fd, &e) < 0 ? -errno : r;
}

static int listener(int protocol, uint32_t groups) {
        const struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = groups };
        AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

        return fd < 0 || bind(fd, (const struct sockaddr *) &at, sizeof(at)) < 0 ? -errno : TAKE_FD(fd);
}

static int nets_watch(struct trip *t) {
        const uint32_t rules = 1u << (NFNLGRP_NFTABLES - 1);
        const uint32_t routes = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_RULE |
                                RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
        int r, fds[NETS];

        if (home_fd < 0)
                home_fd = openat(warden.proc_fd, "self/ns/net", O_RDONLY | O_CLOEXEC);
        if (home_fd < 0)
                return -errno;
        r = sys_setns(t->box->end.fd, SYS_CLONE_NEWNET);
        if (r < 0)
                return r;
        fds[0] = listener(NETLINK_NETFILTER, rules);
        fds[1] = listener(NETLINK_ROUTE, routes);
        if (sys_setns(home_fd, SYS_CLONE_NEWNET) < 0)
                abort(); /* a warden in the wrong namespace must do nothing more */
        for (size_t i = 0; i < NETS; i++)
                if (fds[i] >= 0 && loop_watch(&t->nets[i], fds[i], i == 0 ? on_rules : on_routes) < 0)
                        return -ENOMEM; /* it is the watch's, and goes with it */
        return fds[0] < 0 ? fds[0] : fds[1] < 0 ? fds[1] : 0;
}

static int writes_open(void) {
        int fd = writes.fd >= 0 ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

        if (writes.fd >= 0)
                return 0;
        return fd < 0 ? -errno : loop_watch(&writes, fd, on_write);
}

int trip_lay(struct box *b) {
        struct trip *t = calloc(1, sizeof(*t));
        int r = t ? writes_open() : -ENOMEM;

        if (!t)
                return r;
        t->box = b;
        t->mounts.fd = t->nets[0].fd = t->nets[1].fd = -1;
        for (size_t i = 0; i < ARRAY_SIZE(t->groups); i++)
                t->groups[i] = -1;
        b->trip = t;
        if (r == 0)
                r = groups_watch(t);
        if (r == 0)
                r = mounts_watch(t);
        if (r == 0 && b->net)
                r = nets_watch(t);
        if (r < 0)
                trip_drop(b);
        return r;
}

void trip_drop(struct box *b) {
        struct trip *t = b->trip;

        if (!t)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(t->groups); i++)
                if (t->groups[i] >= 0)
                        (void) inotify_rm_watch(writes.fd, t->groups[i]);
        loop_drop(&t->mounts);
        for (size_t i = 0; i < NETS; i++)
                loop_drop(&t->nets[i]);
        b->trip = NULL;
        free(t);
}
