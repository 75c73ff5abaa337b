/* netns.c - a sandbox's network while it lives: listeners given away, and made again. */
#include "sandbox/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"

void sandbox_net_handed_over(struct sandbox *sb) {
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++) {
                struct stat st;

                if (sb->net.socket_fds[i] < 0)
                        continue;
                sb->net.inodes[i] = fstat(sb->net.socket_fds[i], &st) == 0 ? st.st_ino : 0;
                (void) close(TAKE_FD(sb->net.socket_fds[i]));
        }
}

int sandbox_net_socket(const struct sandbox *sb, bool six, bool datagram, struct err *err) {
        static struct netns_job job;
        struct netns there = sb->net;

        if (sb->net.ns_fd < 0)
                return err_set(err, -ENETDOWN, ERR_INVALID, "the sandbox has no network");
        job = (struct netns_job){ .made = &there,
                                  .visit_family = six ? AF_INET6 : AF_INET,
                                  .visit_type = datagram ? SOCK_DGRAM : SOCK_STREAM };
        if (netns_visit(&job, err) < 0)
                return err->code;
        return job.visit_fd;
}

int sandbox_net_listen(struct sandbox *sb, const struct plan *plan, struct err *err) {
        static struct netns_job job;
        struct netns made;
        int r = netns_prepare(plan->net, WEAKEN_NONE, &made, &job, err);

        if (r < 0)
                return r;
        sandbox_net_handed_over(sb); /* an attempt before may have got half-way */
        made.ns_fd = sb->net.ns_fd;
        r = netns_renew(&job, err);
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++)
                sb->net.socket_fds[i] = made.socket_fds[i];
        return r;
}

int sandbox_net_open(struct sandbox *sb, uint64_t *ret_inode, struct err *err) {
        struct stat st;
        char path[32];

        netns_none(&sb->net);
        (void) snprintf(path, sizeof(path), "%d/ns/net", (int) sb->agent_pid);
        sb->net.ns_fd = openat(sb->proc_fd, path, O_RDONLY | O_CLOEXEC);
        if (sb->net.ns_fd < 0 || fstat(sb->net.ns_fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "network namespace: %s", strerror(errno));
        *ret_inode = st.st_ino;
        return 0;
}

int sandbox_net_attach(struct sandbox *sb, struct err *err) {
        static struct netns_job job;
        uint64_t inode;
        int r = netns_prepare(plan_net(), WEAKEN_NONE, &sb->net, &job, err);

        if (r == 0)
                r = sandbox_net_open(sb, &inode, err);
        return r < 0 ? r : netns_attach(&job, err);
}

void sandbox_net_close(struct sandbox *sb) {
        netns_close(&sb->net);
}
