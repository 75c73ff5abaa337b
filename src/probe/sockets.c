/*
 * sockets.c - group D: socket families, protocols and options beyond what ordinary programs use.
 *
 * Each is code in the kernel that a network namespace does not wall off, or walls off thinly. A socket that opens is
 * the finding; it is closed at once. Netlink requests that would change something are cut short, so that the kernel
 * checks the right to make them and then rejects their length.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sysraw.h"
#include "probe/table.h"

enum { KIND_ANY = -1 };
enum { LEVEL_IP = 0, LEVEL_SOCKET = 1, LEVEL_TCP = 6, LEVEL_UDP = 17, LEVEL_IPV6 = 41 };

static long socket_open(long family, long type, long protocol) {
        return SYS3(SYS_socket, family, type | SOCK_CLOEXEC, protocol);
}

/* KIND_ANY tries every socket type: families differ in which they know, and one that opens is enough. */
static void open_one(struct probe_result *r, long family, long type, long protocol) {
        static const int types[] = { SOCK_DGRAM, SOCK_STREAM, SOCK_RAW, SOCK_SEQPACKET, 4 /* RDM */ };
        long last = -EAFNOSUPPORT;

        if (type != KIND_ANY) {
                probe_judge(r, socket_open(family, type, protocol), "socket");
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                last = socket_open(family, types[i], protocol);
                if (last >= 0 || last == -EAFNOSUPPORT)
                        break;
        }
        probe_judge(r, last, "socket, any type");
}

static void pair_one(struct probe_result *r, long family, long type) {
        int fds[2];

        probe_judge(r, SYS4(SYS_socketpair, family, type | SOCK_CLOEXEC, 0, fds), "socketpair");
}

static void need_socket(struct probe_result *r, int family, int type) {
        long fd = socket_open(family, type, 0);

        if (fd >= 0)
                probe_accepted(r, "works, as programs need it to");
        else
                probe_stopped(r, (int) -fd, "refused, though programs need it");
}

static void need_pair(struct probe_result *r, int type) {
        int fds[2];
        long ret = type ? SYS4(SYS_socketpair, AF_UNIX, type, 0, fds) : SYS2(SYS_pipe2, fds, O_CLOEXEC);

        if (ret == 0)
                probe_accepted(r, "works, as programs need it to");
        else
                probe_stopped(r, (int) -ret, "refused, though programs need it");
}

/* Route netlink is what getaddrinfo and getifaddrs speak; the writes on it are attempts of their own. */
static void open_route(struct probe_result *r) {
        long fd = socket_open(AF_NETLINK, SOCK_RAW, 0);

        if (fd < 0)
                probe_stopped(r, (int) -fd, "socket");
        else
                probe_accepted(r, "getifaddrs needs it; writes are D06 too");
}

struct request {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, pid;
        uint8_t family, pad[3];
};

struct answer {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, pid;
        int32_t error;
        uint8_t rest[1024];
};

/* The payload is one byte of family: enough to pass the door, too short for any change to be parsed from it. */
static void route_write(struct probe_result *r, uint16_t type, uint8_t family) {
        struct request q = { sizeof(q) - 3, type, 1 | 4 /* REQUEST, ACK */, 1, 0, family, { 0 } };
        struct answer a = { 0 };
        AUTO_FD int fd = (int) socket_open(AF_NETLINK, SOCK_RAW, 0);
        struct pollfd p = { fd, POLLIN, 0 };
        ssize_t n;

        if (fd < 0) {
                probe_stopped(r, -fd, "no netlink");
                return;
        }
        if (send(fd, &q, q.len, 0) < 0) {
                probe_stopped(r, errno, "send");
                return;
        }
        n = poll(&p, 1, 500) == 1 ? recv(fd, &a, sizeof(a), 0) : -1;
        if (n < 20 || a.type != 2)
                probe_stopped(r, 0, "no answer");
        else if (a.error == -EPERM || a.error == -EOPNOTSUPP || a.error == -EACCES)
                probe_stopped(r, -a.error, "asked and refused");
        else
                probe_reached(r, a.error ? "allowed to; only the length was wrong" : "accepted");
}

/* Errors from behind the check for the right to do it count as success: the code was reached. */
static void judge_option(struct probe_result *r, long ret) {
        char note[64];

        switch (-ret) {
        case EPERM:
        case EACCES:
        case ENOPROTOOPT:
        case ENOSYS:
        case EOPNOTSUPP:
        case ENOENT:
                probe_stopped(r, (int) -ret, "setsockopt");
                return;
        default:
                (void) snprintf(note, sizeof(note), "setsockopt got through, errno %ld", ret < 0 ? -ret : 0);
                probe_reached(r, note);
        }
}

static void option_bytes(struct probe_result *r, int type, long level, long name, const void *p, size_t n) {
        int family = level == LEVEL_IPV6 ? AF_INET6 : AF_INET;
        AUTO_FD int fd = (int) socket_open(family, type, 0);

        if (fd < 0)
                probe_stopped(r, -fd, "no socket to set it on");
        else
                judge_option(r, SYS5(SYS_setsockopt, fd, level, name, p, n));
}

static void option_int(struct probe_result *r, int type, long level, long name, int value) {
        option_bytes(r, type, level, name, &value, sizeof(value));
}

/* A filter of one instruction: drop everything. It goes with the socket. */
static void option_filter(struct probe_result *r, long name) {
        static const struct {
                uint16_t code;
                uint8_t jt, jf;
                uint32_t k;
        } drop_all = { 6, 0, 0, 0 };
        struct {
                uint16_t n;
                const void *code;
        } program = { 1, &drop_all };

        option_bytes(r, SOCK_DGRAM, LEVEL_SOCKET, name, &program, sizeof(program));
}

static void option_text(struct probe_result *r, long level, long name, const char *text) {
        option_bytes(r, SOCK_STREAM, level, name, text, strlen(text));
}

#define WIDE 0x100000000L

#define FAMILIES(X)                                                                                                    \
        X(D01a, HIGH, open_one(r, 17, SOCK_RAW, 0x300), "packet socket, raw", "CVE-2017-7308")                         \
        X(D01b, HIGH, open_one(r, 17, SOCK_DGRAM, 0x300), "packet socket, datagram", "CVE-2016-8655")                  \
        X(D01c, HIGH, open_one(r, AF_INET, 10, 0x300), "packet socket by the old name", "obsolete SOCK_PACKET")        \
        X(D01d, HIGH, open_one(r, WIDE | 17, SOCK_RAW, 0x300), "packet socket, upper bits set", "CVE-2019-10063")      \
        X(D01e, HIGH, open_one(r, 17, SOCK_RAW, 0), "packet socket without protocol", "CVE-2020-14386")                \
        X(D02a, MED, open_one(r, AF_INET, SOCK_RAW, 1), "raw ICMP", "spoofing")                                        \
        X(D02b, MED, open_one(r, AF_INET, SOCK_RAW, 255), "raw IP", "spoofing")                                        \
        X(D02c, MED, open_one(r, AF_INET, SOCK_RAW, 6), "raw TCP", "spoofing")                                         \
        X(D02d, MED, open_one(r, AF_INET, SOCK_RAW, 17), "raw UDP", "spoofing")                                        \
        X(D02e, MED, open_one(r, AF_INET6, SOCK_RAW, 58), "raw ICMPv6", "router advertisement spoofing")               \
        X(D02f, MED, open_one(r, AF_INET6, SOCK_RAW, 255), "raw IPv6", "spoofing")                                     \
        X(D02g, MED, open_one(r, AF_INET, WIDE | SOCK_RAW, 1), "raw ICMP, upper bits set", "CVE-2019-10063")           \
        X(D03a, LOW, open_one(r, AF_INET, SOCK_DGRAM, 1), "ping socket", "CVE-2017-2671")                              \
        X(D03b, LOW, open_one(r, AF_INET6, SOCK_DGRAM, 58), "ping socket, v6", "ICMP tunnel")                          \
        X(D04a, HIGH, open_one(r, 40, SOCK_STREAM, 0), "vsock stream", "CVE-2021-26708")                               \
        X(D04b, HIGH, open_one(r, 40, SOCK_DGRAM, 0), "vsock datagram", "VM manager's ports")                          \
        X(D04c, HIGH, open_one(r, 40, SOCK_SEQPACKET, 0), "vsock seqpacket", "CVE-2024-50264")                         \
        X(D04d, HIGH, pair_one(r, 40, SOCK_DGRAM), "vsock pair", "family check missing on pairs")                      \
        X(D05a, MED, open_one(r, 38, SOCK_SEQPACKET, 0), "kernel crypto socket", "AF_ALG")                             \
        X(D05b, MED, open_one(r, WIDE | 38, SOCK_SEQPACKET, 0), "kernel crypto socket, upper bits set",                \
          "CVE-2019-10063")                                                                                            \
        X(D07a, MED, open_one(r, 15, SOCK_RAW, 2), "AF_KEY", "IPsec keys")                                             \
        X(D07b, MED, open_one(r, 44, SOCK_RAW, 0), "AF_XDP", "driver rings")                                           \
        X(D07c, MED, open_one(r, 30, KIND_ANY, 0), "AF_TIPC", "CVE-2021-43267")                                        \
        X(D07d, MED, open_one(r, 21, SOCK_SEQPACKET, 0), "AF_RDS", "CVE-2010-3904")                                    \
        X(D07e, MED, open_one(r, 29, SOCK_RAW, 1), "AF_CAN raw", "bus access")                                         \
        X(D07f, MED, open_one(r, 29, SOCK_DGRAM, 2), "AF_CAN broadcast manager", "CVE-2021-3609")                      \
        X(D07g, MED, open_one(r, 31, SOCK_RAW, 1), "AF_BLUETOOTH HCI", "CVE-2021-3573")                                \
        X(D07h, MED, open_one(r, 31, SOCK_SEQPACKET, 0), "AF_BLUETOOTH L2CAP", "CVE-2020-12351")                       \
        X(D07i, MED, open_one(r, 43, SOCK_STREAM, 0), "AF_SMC", "fresh code")                                          \
        X(D07j, MED, open_one(r, AF_INET, SOCK_STREAM, 256), "SMC as an inet protocol", "fresh code")                  \
        X(D07k, MED, open_one(r, 41, SOCK_DGRAM, 0), "AF_KCM", "use after free history")                               \
        X(D07l, MED, open_one(r, 42, SOCK_DGRAM, 0), "AF_QIPCRTR", "no namespace")                                     \
        X(D07m, MED, open_one(r, 24, SOCK_DGRAM, 0), "AF_PPPOX", "CVE-2014-4943")                                      \
        X(D07n, MED, open_one(r, 26, KIND_ANY, 0), "AF_LLC", "needs raw rights")                                       \
        X(D07o, MED, open_one(r, 39, SOCK_SEQPACKET, 0), "AF_NFC", "CVE-2021-23134")                                   \
        X(D07p, MED, open_one(r, 33, SOCK_DGRAM, AF_INET), "AF_RXRPC", "own transport in the kernel")                  \
        X(D07q, MED, open_one(r, 3, KIND_ANY, 0), "AF_AX25", "CVE-2022-1204")                                          \
        X(D07r, MED, open_one(r, 5, KIND_ANY, 0), "AF_APPLETALK", "old code")                                          \
        X(D07s, MED, open_one(r, 6, KIND_ANY, 0), "AF_NETROM", "old code")                                             \
        X(D07t, MED, open_one(r, 9, KIND_ANY, 0), "AF_X25", "old code")                                                \
        X(D07u, MED, open_one(r, 11, KIND_ANY, 0), "AF_ROSE", "CVE-2022-2961")                                         \
        X(D07v, MED, open_one(r, 8, KIND_ANY, 0), "AF_ATMPVC", "old code")                                             \
        X(D07w, MED, open_one(r, 20, KIND_ANY, 0), "AF_ATMSVC", "old code")                                            \
        X(D07x, MED, open_one(r, 35, KIND_ANY, 0), "AF_PHONET", "old code")                                            \
        X(D07y, MED, open_one(r, 36, KIND_ANY, 0), "AF_IEEE802154", "driver code")                                     \
        X(D07z, MED, open_one(r, 37, KIND_ANY, 0), "AF_CAIF", "old code")                                              \
        X(D07A, MED, open_one(r, 34, KIND_ANY, 0), "AF_ISDN", "CVE-2019-17055")                                        \
        X(D07B, MED, open_one(r, 45, SOCK_DGRAM, 0), "AF_MCTP", "board management bus")                                \
        X(D07C, MED, pair_one(r, 30, SOCK_SEQPACKET), "AF_TIPC pair", "family check missing on pairs")                 \
        X(D08a, LOW, open_one(r, AF_INET, SOCK_STREAM, 132), "SCTP", "CVE-2021-23133")                                 \
        X(D08b, LOW, open_one(r, AF_INET, SOCK_SEQPACKET, 132), "SCTP one-to-many", "CVE-2021-23133")                  \
        X(D08c, LOW, open_one(r, AF_INET, 6, 33), "DCCP", "CVE-2017-6074")                                             \
        X(D08d, LOW, open_one(r, AF_INET, SOCK_STREAM, 262), "MPTCP", "fresh code")                                    \
        X(D08e, LOW, open_one(r, AF_INET6, SOCK_STREAM, 262), "MPTCP over v6", "fresh code")                           \
        X(D08f, LOW, open_one(r, AF_INET, SOCK_DGRAM, 136), "UDP-Lite", "little used code")                            \
        X(D08g, LOW, open_one(r, AF_INET, SOCK_DGRAM, 115), "L2TP", "CVE-2016-10200")

#define NETLINKS(X)                                                                                                    \
        X(D06a, MED, open_route(r), "netlink route", "interface list")                                                 \
        X(D06b, MED, open_one(r, AF_NETLINK, SOCK_RAW, 2), "netlink user socket", "")                                  \
        X(D06c, MED, open_one(r, AF_NETLINK, SOCK_RAW, 4), "netlink sock_diag", "lists sockets")                       \
        X(D06d, HIGH, open_one(r, AF_NETLINK, SOCK_RAW, 6), "netlink xfrm", "CVE-2017-16939")                          \
        X(D06e, MED, open_one(r, AF_NETLINK, SOCK_RAW, 7), "netlink selinux", "policy events")                         \
        X(D06f, MED, open_one(r, AF_NETLINK, SOCK_RAW, 8), "netlink iscsi", "CVE-2021-27365")                          \
        X(D06g, HIGH, open_one(r, AF_NETLINK, SOCK_RAW, 9), "netlink audit", "host audit log")                         \
        X(D06h, MED, open_one(r, AF_NETLINK, SOCK_RAW, 10), "netlink fib_lookup", "routes")                            \
        X(D06i, MED, open_one(r, AF_NETLINK, SOCK_DGRAM, 11), "netlink connector", "host process events")              \
        X(D06j, HIGH, open_one(r, AF_NETLINK, SOCK_RAW, 12), "netlink netfilter", "CVE-2024-1086, CVE-2023-32233")     \
        X(D06k, MED, open_one(r, AF_NETLINK, SOCK_RAW, 15), "netlink uevent", "host device events")                    \
        X(D06l, MED, open_one(r, AF_NETLINK, SOCK_RAW, 16), "netlink generic", "many small parsers")                   \
        X(D06m, MED, open_one(r, AF_NETLINK, SOCK_RAW, 18), "netlink scsi transport", "")                              \
        X(D06n, MED, open_one(r, AF_NETLINK, SOCK_RAW, 20), "netlink rdma", "")                                        \
        X(D06o, MED, open_one(r, AF_NETLINK, SOCK_RAW, 21), "netlink crypto", "module loading")                        \
        X(D06p, HIGH, open_one(r, AF_NETLINK, SOCK_RAW, WIDE | 12), "netlink netfilter, upper bits set",               \
          "CVE-2019-10063")                                                                                            \
        X(D06q, HIGH, open_one(r, AF_NETLINK, SOCK_DGRAM, 12), "netlink netfilter, datagram", "type confusion")        \
        X(D06r, HIGH, route_write(r, 16, 0), "netlink: change a link", "RTM_NEWLINK")                                  \
        X(D06s, HIGH, route_write(r, 20, AF_INET), "netlink: add an address", "RTM_NEWADDR")                           \
        X(D06t, HIGH, route_write(r, 24, AF_INET), "netlink: add a route", "RTM_NEWROUTE")                             \
        X(D06u, HIGH, route_write(r, 28, AF_INET), "netlink: add a neighbour", "RTM_NEWNEIGH")                         \
        X(D06v, HIGH, route_write(r, 36, 0), "netlink: add a queue discipline", "CVE-2023-3611")                       \
        X(D06w, HIGH, route_write(r, 44, 0), "netlink: add a traffic filter", "CVE-2022-2588")                         \
        X(D06x, HIGH, route_write(r, 32, AF_INET), "netlink: add a routing rule", "RTM_NEWRULE")

#define NEEDS(X)                                                                                                       \
        X(D09a, CONTROL, need_pair(r, SOCK_STREAM), "unix stream pair", "")                                            \
        X(D09b, CONTROL, need_pair(r, SOCK_DGRAM), "unix datagram pair", "")                                           \
        X(D09c, CONTROL, need_pair(r, SOCK_SEQPACKET), "unix seqpacket pair", "")                                      \
        X(D09d, CONTROL, need_pair(r, 0), "pipe", "")                                                                  \
        X(D09e, CONTROL, need_socket(r, AF_UNIX, SOCK_STREAM), "unix stream socket", "")                               \
        X(D09f, CONTROL, need_socket(r, AF_INET, SOCK_STREAM), "TCP socket", "")                                       \
        X(D09g, CONTROL, need_socket(r, AF_INET6, SOCK_STREAM), "TCP socket, v6", "")                                  \
        X(D09h, CONTROL, need_socket(r, AF_INET, SOCK_DGRAM), "UDP socket", "")

#define OPTIONS(X)                                                                                                     \
        X(D10a, LOW, option_filter(r, 26), "attach a classic filter", "SO_ATTACH_FILTER")                              \
        X(D10b, LOW, option_int(r, SOCK_DGRAM, LEVEL_SOCKET, 50, -1), "attach an eBPF program", "SO_ATTACH_BPF")       \
        X(D10c, LOW, option_filter(r, 51), "attach a reuseport filter", "SO_ATTACH_REUSEPORT_CBPF")                    \
        X(D10d, LOW, option_int(r, SOCK_DGRAM, LEVEL_SOCKET, 52, -1), "attach an eBPF reuseport program",              \
          "SO_ATTACH_REUSEPORT_EBPF")                                                                                  \
        X(D10e, LOW, option_int(r, SOCK_STREAM, LEVEL_IP, 19, 1), "answer for foreign addresses", "IP_TRANSPARENT")    \
        X(D10f, LOW, option_int(r, SOCK_STREAM, LEVEL_IPV6, 75, 1), "answer for foreign v6 addresses",                 \
          "IPV6_TRANSPARENT")                                                                                          \
        X(D10g, LOW, option_int(r, SOCK_DGRAM, LEVEL_SOCKET, 36, 1), "mark packets past firewall rules", "SO_MARK")    \
        X(D10h, LOW, option_int(r, SOCK_DGRAM, LEVEL_SOCKET, 33, 1 << 20), "receive buffer past its limit",            \
          "SO_RCVBUFFORCE")                                                                                            \
        X(D10i, LOW, option_int(r, SOCK_DGRAM, LEVEL_SOCKET, 12, 7), "packets before all others", "SO_PRIORITY")       \
        X(D10j, LOW, option_int(r, SOCK_STREAM, LEVEL_TCP, 19, 1), "repair mode", "TCP_REPAIR")                        \
        X(D10k, LOW, option_text(r, LEVEL_TCP, 31, "tls"), "TLS in the kernel", "CVE-2023-0461")                       \
        X(D10l, LOW, option_int(r, SOCK_DGRAM, LEVEL_UDP, 100, 2), "UDP encapsulation", "UDP_ENCAP")                   \
        X(D10m, LOW, option_int(r, SOCK_STREAM, LEVEL_IP, 64, 0), "replace iptables rules", "CVE-2021-22555")          \
        X(D10n, LOW, option_int(r, SOCK_STREAM, LEVEL_IPV6, 64, 0), "replace ip6tables rules", "CVE-2021-22555")       \
        X(D10o, LOW, option_int(r, SOCK_STREAM, LEVEL_IP, 96, 0), "replace arptables rules", "CVE-2021-22555")         \
        X(D10p, LOW, option_int(r, SOCK_DGRAM, WIDE | LEVEL_SOCKET, 50, -1), "attach eBPF, upper bits set",            \
          "CVE-2019-10063")

FAMILIES(PROBE_FN)
NETLINKS(PROBE_FN)
NEEDS(PROBE_FN)
OPTIONS(PROBE_FN)

const struct probe_attempt probe_sockets[] = {
        /* one row per line of the lists above */
        FAMILIES(PROBE_ROW) NETLINKS(PROBE_ROW) NEEDS(PROBE_ROW) OPTIONS(PROBE_ROW){ 0 },
};
