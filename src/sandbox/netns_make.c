/*
 * netns_make.c - makes the network namespace of a plan, from inside it.
 *
 * Theory of operation. Whoever is in the namespace sends what netns_prepare() wrote, reads the kernel's
 * acknowledgements, and makes the sockets. A socket belongs to the namespace in which it was made for as long as it
 * lives, whoever holds it: that is how egress, outside, serves a namespace that has no way out. The two netlink sockets
 * stay open too, so that the supervisor can read everything back without ever going there.
 *
 * Nothing here but netns_make() may use libc, see child.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "sandbox/child.h"
#include "sandbox/janitor.h"
#include "sandbox/netns.h"

enum { BACKLOG = 1024, MAKER_STACK = 16384 };

static int fail(struct netns_job *job, const char *step, long code) {
        job->step = step;
        job->code = (int) code;
        return (int) code;
}

static int socket_new(int family, int type, int protocol) {
        return (int) SYS3(SYS_socket, family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
}

/*
 * Reads acknowledgements until the one numbered `last`. The kernel does the work while it is being asked, so all of
 * them are there; the first failure counts.
 */
static int acknowledged(int fd, uint32_t last) {
        struct {
                struct nlmsghdr head;
                int32_t code;
        } m;
        uint8_t space[8192] __attribute__((aligned(4)));

        for (;;) {
                long n = SYS6(SYS_recvfrom, fd, space, sizeof(space), MSG_DONTWAIT, 0, 0);

                if (n < 0)
                        return n == -EAGAIN ? -ENODATA : (int) n;
                for (size_t at = 0; at + sizeof(m) <= (size_t) n;) {
                        memcpy(&m, space + at, sizeof(m));
                        if (m.head.nlmsg_type != NLMSG_ERROR || m.head.nlmsg_len < sizeof(m))
                                return -EBADMSG;
                        if (m.code != 0 || m.head.nlmsg_seq == last)
                                return m.code;
                        at += (m.head.nlmsg_len + 3u) & ~3u;
                }
        }
}

/* Returns the socket, which stays open. */
static int ask(int protocol, const uint8_t *p, size_t n, uint32_t last) {
        int fd = socket_new(AF_NETLINK, SOCK_RAW, protocol);
        long r = fd;

        if (r >= 0)
                r = SYS6(SYS_sendto, fd, p, n, 0, 0, 0);
        if (r >= 0)
                r = acknowledged(fd, last);
        if (r < 0 && fd >= 0)
                (void) sys_close(fd);
        return r < 0 ? (int) r : fd;
}

static long option(int fd, int level, int name, int value) {
        return SYS5(SYS_setsockopt, fd, level, name, &value, sizeof(value));
}

/* Takes what is sent to whatever address, and can answer from it. */
static int socket_bound(const struct netns_socket *s) {
        bool six = s->family == AF_INET6;
        int fd = socket_new(s->family, s->type, 0);
        long r = fd;

        if (r >= 0 && six) /* the listener takes both families, datagrams of each have a socket */
                r = option(fd, SOL_IPV6, IPV6_V6ONLY, !s->listens);
        if (r >= 0 && six)
                r = option(fd, SOL_IPV6, IPV6_TRANSPARENT, 1);
        if (r >= 0 && (!six || s->listens))
                r = option(fd, SOL_IP, IP_TRANSPARENT, 1);
        if (r >= 0 && !s->listens)
                r = six ? option(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1) : option(fd, SOL_IP, IP_PKTINFO, 1);
        if (r >= 0)
                r = SYS3(SYS_bind, fd, &s->address, s->n_address);
        if (r >= 0 && s->listens)
                r = SYS2(SYS_listen, fd, BACKLOG);
        /* Only now: a listening socket is never shared, but connections inherit this, and those to a server's port 80
         * must not keep the sandbox from listening on its own port 80. */
        if (r >= 0 && s->listens)
                r = option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (r < 0 && fd >= 0)
                (void) sys_close(fd);
        return r < 0 ? (int) r : fd;
}

int netns_listen(struct netns_job *job) {
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++) {
                int fd = socket_bound(&job->sockets[i]);

                if (fd < 0)
                        return fail(job, "listeners", fd);
                job->made->socket_fds[i] = fd;
        }
        return 0;
}

static int canaries_open(struct netns_job *job) {
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++) {
                int fd = socket_new(job->canaries[i].family, job->canaries[i].type, 0);

                if (fd < 0)
                        return fail(job, "canary sockets", fd);
                job->made->canary_fds[i] = fd;
        }
        return 0;
}

int netns_build(struct netns_job *job) {
        int r = ask(NETLINK_ROUTE, job->links, job->n_links, job->link_messages);

        if (r < 0)
                return fail(job, "loopback, addresses and routes", r);
        job->made->route_fd = r;
        r = WEAK(job, WEAKEN_NET_RULES) ? socket_new(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)
                                        : ask(NETLINK_NETFILTER, job->rules, job->n_rules, job->rule_messages);
        if (r < 0)
                return fail(job, "nftables rules", r);
        job->made->filter_fd = r;
        r = child_write(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", 1);
        if (r < 0)
                return fail(job, "ip_unprivileged_port_start", r);
        r = netns_listen(job);
        if (r == 0)
                r = canaries_open(job);
        if (r == 0 && WEAK(job, WEAKEN_NET_CANARY)) {
                struct netns_socket s = job->canaries[0];

                s.listens = true;
                r = socket_bound(&s) < 0 ? -EIO : 0;
        }
        if (r < 0)
                return r;
        r = sys_openat(AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC, 0);
        if (r < 0)
                return fail(job, "descriptor of the namespace", r);
        job->made->ns_fd = r;
        return 0;
}

static void each_fd(struct netns *n, void (*fn)(int *)) {
        fn(&n->ns_fd);
        fn(&n->route_fd);
        fn(&n->filter_fd);
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++)
                fn(&n->socket_fds[i]);
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++)
                fn(&n->canary_fds[i]);
}

static void fd_none(int *fd) {
        *fd = -1;
}

static void fd_drop(int *fd) {
        if (*fd >= 0)
                (void) sys_close(TAKE_FD(*fd));
}

void netns_none(struct netns *n) {
        each_fd(n, fd_none);
}

void netns_close(struct netns *n) {
        each_fd(n, fd_drop);
}

/* Bodies of processes that do something in another namespace, and end. */
static int maker_main(void *arg) {
        struct netns_job *job = arg;
        int r = sys_unshare(SYS_CLONE_NEWNET);

        return r < 0 ? fail(job, "new namespace", r) != 0 : netns_build(job) != 0;
}

static int listener_main(void *arg) {
        struct netns_job *job = arg;
        int r = sys_setns(job->made->ns_fd, SYS_CLONE_NEWNET);

        return r < 0 ? fail(job, "entering it", r) != 0 : netns_listen(job) != 0;
}

static int visitor_main(void *arg) {
        struct netns_job *job = arg;
        int r = sys_setns(job->made->ns_fd, SYS_CLONE_NEWNET);

        if (r == 0)
                job->visit_fd = r = socket_new(job->visit_family, job->visit_type, 0);
        return r < 0 ? fail(job, "a socket in it", r) != 0 : 0;
}

static int attach_main(void *arg) {
        struct netns_job *job = arg;
        int r = sys_setns(job->made->ns_fd, SYS_CLONE_NEWNET);

        if (r < 0)
                return fail(job, "entering it", r) != 0;
        job->made->route_fd = socket_new(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        job->made->filter_fd = socket_new(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
        if (job->made->route_fd < 0 || job->made->filter_fd < 0)
                return fail(job, "sockets to read it back",
                            job->made->route_fd < 0 ? job->made->route_fd : job->made->filter_fd) != 0;
        return canaries_open(job) != 0;
}

static int beside(int (*body)(void *), struct netns_job *job, struct err *err) {
        static char stack[MAKER_STACK] __attribute__((aligned(16)));
        const struct sys_clone_args args = {
                .flags = SYS_CLONE_VM | SYS_CLONE_FILES,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t) (uintptr_t) stack,
                .stack_size = sizeof(stack),
        };
        long pid = sys_clone_run(&args, body, job);

        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL, "network namespace: %s", strerror((int) -pid));
        if (end_reap((pid_t) pid) == 0)
                return 0;
        return err_set(err, job->code, ERR_INTERNAL, "network namespace: %s: %s", job->step, strerror(-job->code));
}

int netns_make(struct netns_job *job, struct err *err) {
        return beside(maker_main, job, err);
}

int netns_visit(struct netns_job *job, struct err *err) {
        return beside(visitor_main, job, err);
}

int netns_renew(struct netns_job *job, struct err *err) {
        return beside(listener_main, job, err);
}

int netns_attach(struct netns_job *job, struct err *err) {
        return beside(attach_main, job, err);
}
