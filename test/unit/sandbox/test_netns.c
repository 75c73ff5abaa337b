/*
 * test_netns.c - a network namespace of the plan, made on this kernel: its rules are what nft reads, everything that is
 * sent lands where the plan says, and whatever is changed is found. As root and as the root of a user namespace.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "namespaces.h"
#include "sandbox/netns.h"

static struct netns_job job;
static struct sandbox box;
static const struct plan plan_of = { .net = NULL };

static struct plan the_plan(void) {
        struct plan p = plan_of;

        p.net = plan_net();
        return p;
}

static bool made(enum sandbox_weaken weaken) {
        struct err e = { 0 };

        if (netns_prepare(plan_net(), weaken, &box.net, &job, &e) == 0 && netns_make(&job, &e) == 0)
                return true;
        (void) printf("%s\n", e.msg);
        return false;
}

/* --- what nft reads --- */

static bool nft_lists_the_plan(void *arg) {
        CLEANUP(buf_done) struct buf want = BUF_INIT(16384);
        static char text[16384];
        int pipe_fds[2], n;
        pid_t pid;

        (void) arg;
        if (!made(WEAKEN_NONE) || pipe(pipe_fds) < 0)
                return false;
        pid = fork();
        if (pid == 0) {
                (void) dup2(pipe_fds[1], 1);
                if (sys_setns(box.net.ns_fd, SYS_CLONE_NEWNET) == 0)
                        (void) execl("/usr/sbin/nft", "nft", "list", "ruleset", NULL);
                _exit(127);
        }
        (void) close(pipe_fds[1]);
        n = fd_read_upto(pipe_fds[0], text, sizeof(text));
        (void) waitpid(pid, NULL, 0);
        plan_net_rules_text(plan_net(), &want);
        if (n > 0 && strcmp(text, buf_str(&want)) == 0)
                return true;
        (void) printf("--- planned\n%s--- nft says\n%s", buf_str(&want), text);
        return false;
}

static void rules_are_those_that_nft_lists(void **state) {
        (void) state;
        namespaces_needed();
        if (access("/usr/sbin/nft", X_OK) < 0) {
                (void) printf("nft is not installed\n");
                skip();
        }
        assert_true(namespaces_try(false, nft_lists_the_plan, NULL));
        assert_true(namespaces_try(true, nft_lists_the_plan, NULL));
}

/* --- where packets land --- */

static int tcp_to(const char *address, uint16_t port) {
        bool six = strchr(address, ':') != NULL;
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        AUTO_FD int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
        int r;

        (void) inet_pton(six ? AF_INET6 : AF_INET, address, six ? (void *) &v6.sin6_addr : (void *) &v4.sin_addr);
        r = six ? connect(fd, (struct sockaddr *) &v6, sizeof(v6)) : connect(fd, (struct sockaddr *) &v4, sizeof(v4));
        return r < 0 ? -errno : 0;
}

static int udp_to(const char *address, uint16_t port) {
        bool six = strchr(address, ':') != NULL;
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        AUTO_FD int fd = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
        ssize_t n;

        (void) inet_pton(six ? AF_INET6 : AF_INET, address, six ? (void *) &v6.sin6_addr : (void *) &v4.sin_addr);
        n = six ? sendto(fd, "x", 1, 0, (struct sockaddr *) &v6, sizeof(v6))
                : sendto(fd, "x", 1, 0, (struct sockaddr *) &v4, sizeof(v4));
        return n < 0 ? -errno : 0;
}

/* The listener gets the connection, under the address that was dialled. */
static bool taken_as(const char *address, uint16_t port) {
        struct sockaddr_in6 local = { 0 };
        socklen_t n = sizeof(local);
        AUTO_FD int fd = accept(box.net.socket_fds[PLAN_NET_TCP], NULL, NULL);
        char text[INET6_ADDRSTRLEN] = "", want[INET6_ADDRSTRLEN + 8];

        if (fd < 0 || getsockname(fd, (struct sockaddr *) &local, &n) < 0)
                return false;
        (void) inet_ntop(AF_INET6, &local.sin6_addr, text, sizeof(text));
        (void) snprintf(want, sizeof(want), "%s%s", strchr(address, ':') ? "" : "::ffff:", address);
        return strcmp(text, want) == 0 && ntohs(local.sin6_port) == port;
}

static bool proxied(const char *address, uint16_t port) {
        int r = tcp_to(address, port);

        if (r == 0 && taken_as(address, port))
                return true;
        (void) printf("tcp %s %u: %s\n", address, port, r < 0 ? strerror(-r) : "not at the listener");
        return false;
}

static bool expect(const char *what, int got, int want) {
        if (got != want)
                (void) printf("%s: %s instead of %s\n", what, strerror(-got), strerror(-want));
        return got == want;
}

static bool resolver_gets(int which, const char *address) {
        char byte;

        return expect(address, udp_to(address, 53), 0) && read(box.net.socket_fds[which], &byte, 1) == 1 && byte == 'x';
}

static bool packets_land_where_planned(void *arg) {
        bool ok;

        (void) arg;
        if (!made(WEAKEN_NONE) || sys_setns(box.net.ns_fd, SYS_CLONE_NEWNET) < 0)
                return false;
        ok = proxied("192.0.2.1", 443) && proxied("169.254.169.254", 80) && proxied("198.18.0.7", 8080) &&
             proxied("10.0.0.1", 53) && proxied("2001:db8::1", 443) && proxied("fd00:6e77:1::7", 443) &&
             proxied("fe80::1", 22) == false; /* link-local needs an interface that there is not */
        ok = ok && resolver_gets(PLAN_NET_DNS4, "8.8.8.8") && resolver_gets(PLAN_NET_DNS4, "10.200.0.53") &&
             resolver_gets(PLAN_NET_DNS6, "2001:4860:4860::8888");
        ok = ok && expect("quic", udp_to("192.0.2.1", 443), -EPERM) &&
             expect("quic6", udp_to("2001:db8::1", 443), -EPERM) && expect("ntp", udp_to("192.0.2.1", 123), -EPERM) &&
             expect("broadcast", udp_to("224.0.0.251", 5353), -EPERM);
        ok = ok && expect("own", tcp_to("10.200.0.2", 9), -ECONNREFUSED) &&
             expect("loopback", tcp_to("127.0.0.1", 9), -ECONNREFUSED) &&
             expect("loopback6", tcp_to("::1", 9), -ECONNREFUSED) && expect("loopback udp", udp_to("127.0.0.1", 9), 0);
        /* Nobody listens any more: refused, and never somebody else. */
        (void) close(box.net.socket_fds[PLAN_NET_TCP]);
        return ok && expect("without listener", tcp_to("192.0.2.1", 443), -ECONNREFUSED) &&
               expect("without listener", tcp_to("2001:db8::1", 443), -ECONNREFUSED);
}

static void everything_lands_at_egress_or_is_refused_at_once(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, packets_land_where_planned, NULL));
        assert_true(namespaces_try(true, packets_land_where_planned, NULL));
}

/* A connection to a server's port 80 is held by egress while the sandbox opens its own port 80. */
static bool own_port_is_free(void *arg) {
        struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(80) }, there = any;
        int on = 1, out, own;

        (void) arg;
        (void) inet_pton(AF_INET, "192.0.2.1", &there.sin_addr);
        if (!made(WEAKEN_NONE) || sys_setns(box.net.ns_fd, SYS_CLONE_NEWNET) < 0)
                return false;
        out = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(out, (struct sockaddr *) &there, sizeof(there)) < 0 ||
            accept(box.net.socket_fds[PLAN_NET_TCP], NULL, NULL) < 0)
                return false;
        own = socket(AF_INET, SOCK_STREAM, 0);
        return setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
               expect("bind", bind(own, (struct sockaddr *) &any, sizeof(any)) < 0 ? -errno : 0, 0) &&
               listen(own, 1) == 0 && tcp_to("127.0.0.1", 80) == 0;
}

static void a_sandbox_can_serve_on_a_port_that_it_also_dials(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, own_port_is_free, NULL));
}

/* The proxy's port cannot be shared, whatever options a process inside sets. */
static bool port_is_kept(void *arg) {
        struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(15001) };
        int on = 1, fd;

        (void) arg;
        if (!made(WEAKEN_NONE) || sys_setns(box.net.ns_fd, SYS_CLONE_NEWNET) < 0)
                return false;
        fd = socket(AF_INET6, SOCK_STREAM, 0);
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
        return expect("bind", bind(fd, (struct sockaddr *) &any, sizeof(any)) < 0 ? -errno : 0, -EADDRINUSE);
}

static void nobody_inside_can_take_the_listeners_port(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, port_is_kept, NULL));
}

/* --- read back --- */

struct change {
        enum sandbox_weaken weaken;
        const char *control;
};

static bool is_found(void *arg) {
        const struct change *c = arg;
        const char *control = "";
        struct plan plan = the_plan();
        struct err e = { 0 };
        int r = made(c->weaken) ? sandbox_net_verify(&box, &plan, &control, &e) : -EIO;

        if (c->weaken == WEAKEN_NONE && r < 0)
                (void) printf("%s: %s\n", control, e.msg);
        return c->weaken == WEAKEN_NONE ? r == 0 : r == -EBADE && strcmp(control, c->control) == 0 && e.msg[0];
}

static void every_change_is_found_and_named(void **state) {
        static struct change changes[] = {
                { WEAKEN_NONE, "" },
                { WEAKEN_NET_LINK, "network interfaces" },
                { WEAKEN_NET_ADDRESS, "network addresses" },
                { WEAKEN_NET_ROUTE, "network routes" },
                { WEAKEN_NET_ANYIP, "network routes" },
                { WEAKEN_NET_RULES, "network rules" },
                { WEAKEN_NET_RULE, "network rules" },
                { WEAKEN_NET_CHAIN, "network rules" },
        };

        (void) state;
        namespaces_needed();
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                assert_true(namespaces_try(false, is_found, &changes[i]));
                assert_true(namespaces_try(true, is_found, &changes[i]));
        }
}

/* The watch asks a live namespace again and again; somebody adds a rule meanwhile. */
static bool drift_is_found(void *arg) {
        const char *control = "";
        struct plan plan = the_plan();
        struct err e = { 0 };

        (void) arg;
        if (!made(WEAKEN_NONE))
                return false;
        for (int i = 0; i < 3; i++)
                if (sandbox_net_verify(&box, &plan, &control, &e) < 0)
                        return false;
        /* the planned batch once more: the same table with every rule twice */
        if (send(box.net.filter_fd, job.rules, job.n_rules, 0) < 0)
                return false;
        return sandbox_net_verify(&box, &plan, &control, &e) == -EBADE && strcmp(control, "network rules") == 0;
}

static void a_later_change_is_found(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, drift_is_found, NULL));
        assert_true(namespaces_try(true, drift_is_found, NULL));
}

/* --- new listeners --- */

static bool listeners_come_back(void *arg) {
        struct plan plan = the_plan();
        struct err e = { 0 };
        pid_t pid;
        int status = -1;

        (void) arg;
        if (!made(WEAKEN_NONE))
                return false;
        sandbox_net_handed_over(&box);
        if (box.net.socket_fds[PLAN_NET_TCP] != -1 || box.net.inodes[PLAN_NET_TCP] == 0 ||
            sandbox_net_listen(&box, &plan, &e) < 0)
                return false;
        pid = fork(); /* whoever goes there does not come back */
        if (pid == 0)
                _exit(sys_setns(box.net.ns_fd, SYS_CLONE_NEWNET) == 0 && proxied("192.0.2.1", 443) ? 0 : 1);
        return waitpid(pid, &status, 0) == pid && status == 0;
}

static void listeners_can_be_made_again_from_outside(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, listeners_come_back, NULL));
        assert_true(namespaces_try(true, listeners_come_back, NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(rules_are_those_that_nft_lists),
                cmocka_unit_test(everything_lands_at_egress_or_is_refused_at_once),
                cmocka_unit_test(a_sandbox_can_serve_on_a_port_that_it_also_dials),
                cmocka_unit_test(nobody_inside_can_take_the_listeners_port),
                cmocka_unit_test(every_change_is_found_and_named),
                cmocka_unit_test(a_later_change_is_found),
                cmocka_unit_test(listeners_can_be_made_again_from_outside),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
