/*
 * network.c - group H, the rows that make sense without egress: is there any way out by address?
 *
 * Invariant: nobody outside is bothered. TCP goes to the host's canary, to addresses of the host's own side, and to
 * metadata services, and carries no byte. Datagrams are empty and have a hop limit of 1, so they die at the first
 * router; questions go only to the name server that the sandbox is told to use and to the usual stubs on the host.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sysraw.h"
#include "probe/files_look.h"
#include "probe/network_list.h"
#include "probe/proc_text.h"
#include "probe/table.h"

enum { CONNECT_MS = 500, ANSWER_MS = 600, TEXT_MAX = 64 * 1024 };
static char text[TEXT_MAX];

union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

/* Takes every spelling that libc's parsers take: 127.1, 0x7f000001, 2130706433, ::ffff:127.0.0.1. */
static socklen_t address_parse(const char *spelling, int port, uint32_t scope, union address *ret) {
        *ret = (union address){ 0 };
        if (strchr(spelling, ':')) {
                ret->v6.sin6_family = AF_INET6;
                ret->v6.sin6_port = htons((uint16_t) port);
                ret->v6.sin6_scope_id = scope;
                return inet_pton(AF_INET6, spelling, &ret->v6.sin6_addr) == 1 ? sizeof(ret->v6) : 0;
        }
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t) port);
        return inet_aton(spelling, &ret->v4.sin_addr) ? sizeof(ret->v4) : 0;
}

/* 0 only if somebody accepted. */
static int tcp_connect(const char *spelling, int port) {
        union address a;
        socklen_t len = address_parse(spelling, port, 0, &a), n = sizeof(int);
        AUTO_FD int fd = -1;
        struct pollfd p;
        int error = 0;

        if (!len)
                return -EINVAL;
        fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, &a.any, len) == 0)
                return 0;
        if (errno != EINPROGRESS)
                return -errno;
        p = (struct pollfd){ fd, POLLOUT, 0 };
        if (poll(&p, 1, CONNECT_MS) != 1)
                return -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
                return -errno;
        return -error;
}

static void canary_tcp(const struct probe_canaries *c, struct probe_result *r, const char *spelling) {
        if (c->port)
                probe_judge(r, tcp_connect(spelling, c->port), "connect");
        else
                probe_absent(r, "no canary port given");
}

static void tcp(struct probe_result *r, const char *spelling, int port) {
        probe_judge(r, tcp_connect(spelling, port), "connect");
}

/* The canary's port on a host-side address; without a canary ssh's, which many hosts have. */
static void host_tcp(const struct probe_canaries *c, struct probe_result *r, const char *spelling) {
        int ret = c->port ? tcp_connect(spelling, c->port) : -ECONNREFUSED;

        if (ret < 0 && ret != -ETIMEDOUT)
                ret = tcp_connect(spelling, 22);
        probe_judge(r, ret, "connect");
}

static bool is_local(const union address *a) {
        if (a->any.sa_family == AF_INET)
                return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* 0 only if a datagram left by an interface other than the loopback one. */
static int udp_send(const char *spelling, int port, uint32_t scope) {
        static const int one = 1;
        union address a, from = { 0 };
        socklen_t len = address_parse(spelling, port, scope, &a), n = sizeof(from);
        AUTO_FD int fd = -1;

        if (!len)
                return -EINVAL;
        fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        (void) setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
        if (a.any.sa_family == AF_INET) {
                if (setsockopt(fd, IPPROTO_IP, IP_TTL, &one, sizeof(one)) < 0)
                        return -errno;
        } else if (setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &one, sizeof(one)) < 0)
                return -errno;
        if (connect(fd, &a.any, len) < 0 || getsockname(fd, &from.any, &n) < 0)
                return -errno;
        if (is_local(&from))
                return -ENETUNREACH;
        return send(fd, "", 0, 0) < 0 ? -errno : 0;
}

static void udp(struct probe_result *r, const char *spelling, int port) {
        probe_judge(r, udp_send(spelling, port, 0), "empty datagram, one hop");
}

/* The loopback interface is number 1 in every network namespace; others follow. */
static void udp_scoped(struct probe_result *r, const char *spelling, int port) {
        int ret = -ENETUNREACH;

        for (uint32_t scope = 2; ret < 0 && scope <= 16; scope++)
                ret = udp_send(spelling, port, scope);
        probe_judge(r, ret, "empty datagram on any interface");
}

/* The gateway is a hex word in host order: 0 for routes without one. */
static void gateway_tcp(const struct probe_canaries *c, struct probe_result *r) {
        char *w[4], *at = text, spelling[16];

        (void) look_read("/proc/net/route", text, TEXT_MAX);
        (void) proc_words(&at, w, 4);
        while (proc_words(&at, w, 4) >= 3) {
                unsigned char b[4];
                bool is_hex = strlen(w[2]) == 8;

                for (int i = 0; is_hex && i < 4; i++) {
                        static const char digits[] = "0123456789ABCDEF";
                        const char *high = strchr(digits, w[2][6 - 2 * i]), *low = strchr(digits, w[2][7 - 2 * i]);

                        is_hex = high && low;
                        b[i] = is_hex ? (unsigned char) ((high - digits) << 4 | (low - digits)) : 0;
                }
                if (!is_hex || (b[0] | b[1] | b[2] | b[3]) == 0)
                        continue;
                (void) snprintf(spelling, sizeof(spelling), "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
                if (udp_send(spelling, 9, 0) == 0)
                        probe_reached(r, "a datagram leaves for the gateway");
                else
                        host_tcp(c, r, spelling);
                return;
        }
        probe_absent(r, "no gateway");
}

/*
 * Asks one name server. 0: it answered with records; -ECONNREFUSED and the like: it did not. A resolver that only
 * knows permitted names refuses these questions, which is as it should be.
 */
static int dns_ask(const char *server, const void *name, size_t n_name, uint8_t type) {
        static const uint8_t head[12] = { 0x67, 0x62, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
        uint8_t q[128], a[1500];
        union address to;
        socklen_t len = address_parse(server, 53, 0, &to);
        AUTO_FD int fd = -1;
        struct pollfd p;
        ssize_t n;

        if (!len || n_name > 64)
                return -EINVAL;
        memcpy(q, head, sizeof(head));
        memcpy(q + 12, name, n_name);
        memcpy(q + 12 + n_name, (const uint8_t[]){ 0, type, 0, 1 }, 4);
        fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, &to.any, len) < 0 || send(fd, q, 16 + n_name, 0) < 0)
                return -errno;
        p = (struct pollfd){ fd, POLLIN, 0 };
        if (poll(&p, 1, ANSWER_MS) != 1)
                return -ETIMEDOUT;
        n = recv(fd, a, sizeof(a), 0);
        if (n < 0)
                return -errno;
        return n >= 12 && (a[3] & 15) == 0 && (a[6] | a[7]) ? 0 : -EACCES;
}

static void dns_direct(struct probe_result *r, const char *server) {
        probe_judge(r, dns_ask(server, "", 1, 2), "ask for the root's name servers");
}

static void dns_configured(struct probe_result *r, const void *name, size_t n_name, uint8_t type) {
        char *w[4], *at = text;
        int ret = -ENOENT;

        (void) look_read("/etc/resolv.conf", text, TEXT_MAX);
        for (int k; ret < 0 && (k = proc_words(&at, w, 4)) >= 0;)
                if (k >= 2 && str_eq(w[0], "nameserver"))
                        ret = dns_ask(w[1], name, n_name, type);
        probe_judge(r, ret, "ask the configured name server");
}

static void raw_socket(struct probe_result *r, int family, int protocol) {
        probe_judge(r, SYS3(SYS_socket, family, SOCK_RAW | SOCK_CLOEXEC, protocol), "socket");
}

/* An address that the host already uses can only be in use here if this is the host's network. */
static void bind_canary(const struct probe_canaries *c, struct probe_result *r, const char *spelling) {
        union address a;
        socklen_t len = address_parse(spelling, c->port, 0, &a);
        AUTO_FD int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (!c->port)
                probe_absent(r, "no canary port given");
        else if (fd < 0)
                probe_stopped(r, errno, "socket");
        else if (bind(fd, &a.any, len) == 0)
                probe_stopped(r, 0, "free here: not the host's network");
        else if (errno == EADDRINUSE)
                probe_reached(r, "in use: this is the host's network");
        else
                probe_stopped(r, errno, "bind");
}

/* Binding is no harm where nobody outside can come in. */
static void bind_any(struct probe_result *r, const char *spelling, int type) {
        union address a;
        socklen_t len = address_parse(spelling, 0, 0, &a);
        AUTO_FD int fd = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, &a.any, len) < 0)
                probe_stopped(r, errno, "bind");
        else if (network_has_interface())
                probe_reached(r, "bound, and there is an interface to come in by");
        else
                probe_accepted(r, "bound, but only the loopback interface is here");
}

#define SPELLINGS(X)                                                                                                   \
        X(H01a, HIGH, canary_tcp(c, r, "127.0.0.1"), "TCP to the host as 127.0.0.1", "loopback alias")                 \
        X(H01b, HIGH, canary_tcp(c, r, "::1"), "TCP to the host as ::1", "loopback alias")                             \
        X(H01c, HIGH, canary_tcp(c, r, "0.0.0.0"), "TCP to the host as 0.0.0.0", "loopback alias")                     \
        X(H01d, HIGH, canary_tcp(c, r, "::"), "TCP to the host as ::", "loopback alias")                               \
        X(H01e, HIGH, canary_tcp(c, r, "::ffff:127.0.0.1"), "TCP to the host as ::ffff:127.0.0.1", "loopback alias")   \
        X(H01f, HIGH, canary_tcp(c, r, "::ffff:0.0.0.0"), "TCP to the host as ::ffff:0.0.0.0", "loopback alias")       \
        X(H01g, HIGH, canary_tcp(c, r, "127.1"), "TCP to the host as 127.1", "loopback alias")                         \
        X(H01h, HIGH, canary_tcp(c, r, "2130706433"), "TCP to the host as 2130706433", "loopback alias")               \
        X(H01i, HIGH, canary_tcp(c, r, "0x7f.1"), "TCP to the host as 0x7f.1", "loopback alias")                       \
        X(H01j, HIGH, canary_tcp(c, r, "0x7f000001"), "TCP to the host as 0x7f000001", "loopback alias")               \
        X(H01k, HIGH, canary_tcp(c, r, "017700000001"), "TCP to the host as 017700000001", "loopback alias")           \
        X(H01l, HIGH, canary_tcp(c, r, "0"), "TCP to the host as 0", "loopback alias")

#define HOSTS(X)                                                                                                       \
        X(H02a, HIGH, gateway_tcp(c, r), "the default gateway", "CVE-2020-8558")                                       \
        X(H02b, HIGH, host_tcp(c, r, "10.0.2.2"), "TCP to 10.0.2.2", "user-mode network")                              \
        X(H02c, HIGH, host_tcp(c, r, "10.0.2.15"), "TCP to 10.0.2.15", "user-mode network")                            \
        X(H02d, HIGH, host_tcp(c, r, "172.17.0.1"), "TCP to 172.17.0.1", "container bridge")                           \
        X(H02e, HIGH, host_tcp(c, r, "172.18.0.1"), "TCP to 172.18.0.1", "container bridge")                           \
        X(H02f, HIGH, host_tcp(c, r, "10.88.0.1"), "TCP to 10.88.0.1", "container bridge")                             \
        X(H02g, HIGH, host_tcp(c, r, "192.168.122.1"), "TCP to 192.168.122.1", "VM bridge")                            \
        X(H02h, HIGH, host_tcp(c, r, "192.168.127.254"), "TCP to 192.168.127.254", "VM bridge")                        \
        X(H02i, HIGH, host_tcp(c, r, "192.168.65.254"), "TCP to 192.168.65.254", "VM bridge")                          \
        X(H02j, HIGH, host_tcp(c, r, "169.254.1.2"), "TCP to 169.254.1.2", "user-mode network")                        \
        X(H02k, HIGH, host_tcp(c, r, "192.168.1.1"), "TCP to 192.168.1.1", "home router")                              \
        X(H03a, CRIT, tcp(r, "169.254.169.254", 80), "metadata service at 169.254.169.254", "cloud credentials")       \
        X(H03b, CRIT, tcp(r, "::ffff:169.254.169.254", 80), "metadata service at ::ffff:169.254.169.254",              \
          "cloud credentials")                                                                                         \
        X(H03c, CRIT, tcp(r, "2852039166", 80), "metadata service at 2852039166", "cloud credentials")                 \
        X(H03d, CRIT, tcp(r, "0xa9fea9fe", 80), "metadata service at 0xa9fea9fe", "cloud credentials")                 \
        X(H03e, CRIT, tcp(r, "0251.0376.0251.0376", 80), "metadata service at 0251.0376.0251.0376",                    \
          "cloud credentials")                                                                                         \
        X(H03f, CRIT, tcp(r, "169.254.170.2", 80), "metadata service at 169.254.170.2", "cloud credentials")           \
        X(H03g, CRIT, tcp(r, "169.254.170.23", 80), "metadata service at 169.254.170.23", "cloud credentials")         \
        X(H03h, CRIT, tcp(r, "fd00:ec2::254", 80), "metadata service at fd00:ec2::254", "cloud credentials")           \
        X(H03i, CRIT, tcp(r, "fd00:ec2::23", 80), "metadata service at fd00:ec2::23", "cloud credentials")             \
        X(H03j, CRIT, tcp(r, "fd20:ce::254", 80), "metadata service at fd20:ce::254", "cloud credentials")             \
        X(H03k, CRIT, tcp(r, "fd00:c1::a9fe:a9fe", 80), "metadata service at fd00:c1::a9fe:a9fe", "cloud credentials") \
        X(H03l, CRIT, tcp(r, "64:ff9b::a9fe:a9fe", 80), "metadata service at 64:ff9b::a9fe:a9fe", "cloud credentials") \
        X(H03m, CRIT, tcp(r, "100.100.100.200", 80), "metadata service at 100.100.100.200", "cloud credentials")       \
        X(H03n, CRIT, tcp(r, "168.63.129.16", 80), "metadata service at 168.63.129.16", "cloud credentials")           \
        X(H03o, CRIT, tcp(r, "192.0.0.192", 80), "metadata service at 192.0.0.192", "cloud credentials")               \
        X(H03p, CRIT, dns_configured(r, "\010metadata\006google\010internal", 26, 1), "metadata service by name",      \
          "cloud credentials")

#define WAYS_OUT(X)                                                                                                    \
        X(H04a, MED, udp(r, "224.0.0.251", 5353), "mDNS", "neighbours")                                                \
        X(H04b, MED, udp(r, "224.0.0.252", 5355), "LLMNR", "neighbours")                                               \
        X(H04c, MED, udp(r, "239.255.255.250", 1900), "SSDP", "neighbours")                                            \
        X(H04d, MED, udp(r, "255.255.255.255", 67), "DHCP", "neighbours")                                              \
        X(H04e, MED, udp_scoped(r, "ff02::fb", 5353), "mDNS, v6", "neighbours")                                        \
        X(H04f, MED, udp_scoped(r, "ff02::1:3", 5355), "LLMNR, v6", "neighbours")                                      \
        X(H04g, MED, udp_scoped(r, "ff02::1", 9), "all nodes of a link", "neighbours")                                 \
        X(H04h, MED, udp_scoped(r, "ff02::1:2", 547), "DHCPv6", "neighbours")                                          \
        X(H04i, MED, udp_scoped(r, "fe80::1", 9), "link-local address", "neighbours")                                  \
        X(H07a, HIGH, tcp(r, "192.0.2.1", 443), "TCP to a public v4 address", "egress by address")                     \
        X(H07b, HIGH, tcp(r, "198.51.100.1", 80), "TCP to a public v4 address, http", "egress by address")             \
        X(H07c, HIGH, tcp(r, "2001:db8::1", 443), "TCP to a public v6 address", "egress by address")                   \
        X(H07d, HIGH, udp(r, "192.0.2.1", 9), "a packet to a public v4 address", "egress by address")                  \
        X(H07e, HIGH, udp(r, "2001:db8::1", 9), "a packet to a public v6 address", "egress by address")                \
        X(H07f, HIGH, udp(r, "64:ff9b::192.0.2.1", 9), "a packet through NAT64", "egress by address")                  \
        X(H07g, HIGH, udp(r, "2002:c000:201::1", 9), "a packet through 6to4", "egress by address")                     \
        X(H16a, HIGH, udp(r, "203.0.113.1", 443), "QUIC", "proxy bypass")                                              \
        X(H16b, HIGH, udp(r, "2001:db8::1", 443), "QUIC, v6", "proxy bypass")                                          \
        X(H16c, HIGH, udp(r, "203.0.113.1", 3478), "STUN", "proxy bypass")                                             \
        X(H16d, HIGH, udp(r, "203.0.113.1", 123), "NTP", "proxy bypass")                                               \
        X(H16e, HIGH, udp(r, "203.0.113.1", 4433), "DTLS", "proxy bypass")                                             \
        X(H16f, HIGH, udp(r, "203.0.113.1", 51820), "WireGuard", "proxy bypass")                                       \
        X(H16g, HIGH, udp(r, "10.0.0.1", 9), "UDP to 10/8", "proxy bypass")                                            \
        X(H16h, HIGH, udp(r, "100.64.0.1", 9), "UDP to 100.64/10", "proxy bypass")                                     \
        X(H16i, HIGH, udp(r, "169.254.169.254", 80), "UDP to link-local", "proxy bypass")                              \
        X(H17a, HIGH, dns_direct(r, "127.0.0.53"), "DNS at 127.0.0.53", "tunnelling")                                  \
        X(H17b, HIGH, dns_direct(r, "127.0.0.11"), "DNS at 127.0.0.11", "tunnelling")                                  \
        X(H17c, HIGH, dns_direct(r, "127.0.0.1"), "DNS at 127.0.0.1", "tunnelling")                                    \
        X(H17d, HIGH, dns_direct(r, "10.0.2.3"), "DNS at 10.0.2.3", "tunnelling")                                      \
        X(H17e, HIGH, dns_configured(r, "", 1, 2), "DNS at the configured server", "tunnelling")                       \
        X(H17f, HIGH, tcp(r, "127.0.0.53", 53), "DNS over TCP at 127.0.0.53", "tunnelling")                            \
        X(H17g, HIGH, tcp(r, "127.0.0.11", 53), "DNS over TCP at 127.0.0.11", "tunnelling")                            \
        X(H17h, HIGH, tcp(r, "10.0.2.3", 53), "DNS over TCP at 10.0.2.3", "tunnelling")                                \
        X(H17i, HIGH, udp(r, "9.9.9.9", 53), "a packet to a public resolver", "tunnelling")                            \
        X(H17j, HIGH, udp(r, "2620:fe::fe", 53), "a packet to a public resolver, v6", "tunnelling")                    \
        X(H17k, HIGH, udp(r, "9.9.9.9", 853), "DNS over QUIC", "tunnelling")

#define LOCAL(X)                                                                                                       \
        X(H19a, MED, raw_socket(r, AF_INET, 1), "ICMP echo", "tunnel")                                                 \
        X(H19b, MED, raw_socket(r, AF_INET, 47), "GRE", "tunnel")                                                      \
        X(H19c, MED, raw_socket(r, AF_INET, 41), "IPv6 in IPv4", "tunnel")                                             \
        X(H19d, MED, raw_socket(r, AF_INET, 50), "ESP", "tunnel")                                                      \
        X(H19e, MED, raw_socket(r, AF_INET, 4), "IP in IP", "tunnel")                                                  \
        X(H19f, MED, raw_socket(r, AF_INET, 2), "IGMP", "tunnel")                                                      \
        X(H19g, MED, raw_socket(r, AF_INET6, 58), "ICMPv6 echo", "tunnel")                                             \
        X(H19h, MED, raw_socket(r, AF_INET6, 47), "GRE over v6", "tunnel")                                             \
        X(H19i, MED, raw_socket(r, AF_INET6, 50), "ESP over v6", "tunnel")                                             \
        X(H24a, MED, bind_canary(c, r, "127.0.0.1"), "take the port of a host service", "shared network")              \
        X(H24b, MED, bind_canary(c, r, "::1"), "take the port of a host service, v6", "shared network")                \
        X(H24c, MED, bind_any(r, "0.0.0.0", SOCK_STREAM), "listen to all addresses", "inbound")                        \
        X(H24d, MED, bind_any(r, "::", SOCK_STREAM), "listen to all v6 addresses", "inbound")                          \
        X(H24e, MED, bind_any(r, "0.0.0.0", SOCK_DGRAM), "receive on all addresses", "inbound")                        \
        X(H26a, LOW, network_list_proc(r), "interfaces in /proc/net/dev", "layout leak")                               \
        X(H26b, LOW, network_list_ioctl(r), "interfaces by ioctl", "layout leak")                                      \
        X(H26c, LOW, network_list_netlink(r, 18), "interfaces by netlink", "layout leak")                              \
        X(H26d, LOW, network_list_netlink(r, 22), "addresses by netlink", "layout leak")                               \
        X(H26e, LOW, network_list_netlink(r, 26), "routes by netlink", "layout leak")                                  \
        X(H26f, LOW, network_list_netlink(r, 30), "neighbours by netlink", "layout leak")                              \
        X(H26g, LOW, network_list_v6(r), "v6 addresses in /proc", "layout leak")                                       \
        X(H26h, LOW, network_list_sysfs(r), "interfaces in /sys", "layout leak")

SPELLINGS(PROBE_FN)
HOSTS(PROBE_FN)
WAYS_OUT(PROBE_FN)
LOCAL(PROBE_FN)

const struct probe_attempt probe_network[] = {
        /* one row per line of the lists above */
        SPELLINGS(PROBE_ROW) HOSTS(PROBE_ROW) WAYS_OUT(PROBE_ROW) LOCAL(PROBE_ROW){ 0 },
};
