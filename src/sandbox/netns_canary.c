/*
 * netns_canary.c - attempts that must fail, made before the command starts from sockets of its own namespace.
 *
 * The rules were read back; this shows that they do what they say, and that egress is there and refuses. A connection
 * to the proxy is taken by the kernel before anybody decides, so refused means: closed again without a byte.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/dnsq.h"
#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "sandbox/child.h"
#include "sandbox/netns.h"

enum { CANARY_MS = 3000, QUERY_ID = 0x6762 };

static int answered(const struct plan_net_canary *c, const char *what, struct err *err) {
        return err_set(err, -EBADE, ERR_DENIED, "%s port %u %s", c->address, c->port, what);
}

/* Starts an attempt. 1: its end is to be waited for; 0: it was refused at once. */
static int attempt(const struct plan_net_canary *c, const struct netns_socket *s, int fd, struct err *err) {
        uint8_t query[DNSQ_MAX];
        struct wr w = wr_to(query, sizeof(query));
        int r;

        if (c->protocol == IPPROTO_TCP) {
                r = connect(fd, &s->address.any, s->n_address);
                if (r == 0 || errno == EINPROGRESS)
                        return 1;
                return answered(
                        c, errno == ECONNREFUSED ? "is refused by nobody: the listener is missing" : strerror(errno),
                        err);
        }
        dnsq_write(&w, QUERY_ID, PLAN_NET_CANARY_NAME);
        r = connect(fd, &s->address.any, s->n_address) < 0 ? -errno : send(fd, query, w.len, 0) < 0 ? -errno : 0;
        if (c->port != DNSQ_PORT)
                return r == -EPERM ? 0 : answered(c, r < 0 ? strerror(-r) : "(UDP) is not refused", err);
        return r < 0 ? answered(c, strerror(-r), err) : 1;
}

static int outcome(const struct plan_net_canary *c, int fd, struct err *err) {
        char data[DNSQ_MAX];
        struct addr a;
        ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
                return 1;
        if (n < 0 && errno == ECONNREFUSED)
                return answered(c, "is refused by nobody: the listener is missing", err);
        if (c->protocol == IPPROTO_TCP)
                return n > 0 ? answered(c, "answers", err) : 0;
        return n > 0 && dnsq_read(data, (size_t) n, QUERY_ID, &a) == 0
                       ? 0
                       : answered(c, "resolves " PLAN_NET_CANARY_NAME, err);
}

static int await_all(const struct plan_net *net, struct pollfd p[PLAN_NET_CANARIES], struct err *err) {
        uint64_t until = clock_mono_ns() + CANARY_MS * 1000000ull;
        size_t waiting = PLAN_NET_CANARIES;
        int r = 0;

        for (;;) {
                waiting = 0;
                for (size_t i = 0; i < PLAN_NET_CANARIES; i++) {
                        if (p[i].fd >= 0 && p[i].revents) {
                                r = outcome(&net->canaries[i], p[i].fd, err);
                                if (r < 0)
                                        return r;
                                if (r == 0)
                                        p[i].fd = -1;
                        }
                        waiting += p[i].fd >= 0;
                }
                if (waiting == 0)
                        return 0;
                if (clock_mono_ns() >= until)
                        break;
                (void) poll(p, PLAN_NET_CANARIES, 100);
        }
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++)
                if (p[i].fd >= 0)
                        return answered(&net->canaries[i], "is not refused", err);
        return 0;
}

int sandbox_net_canary(struct sandbox *sb, const struct plan *plan, struct err *err) {
        static struct netns_job job;
        struct pollfd p[PLAN_NET_CANARIES];
        struct netns none;
        int r = netns_prepare(plan->net, sb->weaken, &none, &job, err);

        for (size_t i = 0; r >= 0 && i < PLAN_NET_CANARIES; i++) {
                int fd = sb->net.canary_fds[i];

                p[i] = (struct pollfd){ fd, POLLIN, 0 };
                r = fd < 0 ? err_set(err, -EBADF, ERR_INTERNAL, "canary sockets: they are used up")
                           : attempt(&plan->net->canaries[i], &job.canaries[i], fd, err);
                if (r == 0)
                        p[i].fd = -1;
        }
        if (r >= 0)
                r = await_all(plan->net, p, err);
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++)
                if (sb->net.canary_fds[i] >= 0)
                        (void) close(TAKE_FD(sb->net.canary_fds[i]));
        return r;
}
