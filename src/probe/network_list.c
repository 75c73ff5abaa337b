/*
 * network_list.c - what the sandbox can learn of networks: interfaces, addresses, routes, neighbours.
 *
 * Invariant: only questions are asked. The loopback interface, number 1 in every network namespace, is no finding.
 */
#include "probe/network_list.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "probe/files_look.h"
#include "probe/proc_text.h"

enum { TEXT_MAX = 64 * 1024, GET_ROUTE = 26 };
enum { ATTRIBUTE_OUT_INTERFACE = 4, MESSAGE_DONE = 3, MESSAGE_ERROR = 2 };
static char text[TEXT_MAX];

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

/* The first name in /proc/net/dev that is not lo, or NULL. Two lines of heading; a name ends in a colon. */
static const char *proc_interface(long *ret) {
        char *w[2], *at = text, *colon;

        *ret = look_read("/proc/net/dev", text, TEXT_MAX);
        (void) proc_words(&at, w, 2);
        (void) proc_words(&at, w, 2);
        while (proc_words(&at, w, 2) >= 1) {
                colon = strchr(w[0], ':');
                if (colon)
                        *colon = '\0';
                if (!str_eq(w[0], "lo"))
                        return w[0];
        }
        return NULL;
}

bool network_has_interface(void) {
        struct ifreq q = { 0 };
        AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        long ret;

        if (proc_interface(&ret))
                return true;
        for (q.ifr_ifindex = 2; fd >= 0 && q.ifr_ifindex <= 16; q.ifr_ifindex++)
                if (ioctl(fd, SIOCGIFNAME, &q) == 0)
                        return true;
        return false;
}

void network_list_proc(struct probe_result *r) {
        long ret;
        const char *name = proc_interface(&ret);

        if (name)
                probe_reached(r, name);
        else if (ret < 0)
                probe_judge(r, ret, "read");
        else
                probe_stopped(r, 0, "lo only");
}

void network_list_ioctl(struct probe_result *r) {
        struct ifreq all[16] = { 0 };
        struct ifconf q = { .ifc_len = sizeof(all), .ifc_req = all };
        AUTO_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || ioctl(fd, SIOCGIFCONF, &q) < 0) {
                probe_stopped(r, errno, "SIOCGIFCONF");
                return;
        }
        for (size_t i = 0; i < (size_t) q.ifc_len / sizeof(all[0]); i++)
                if (!str_eq(all[i].ifr_name, "lo")) {
                        probe_reached(r, all[i].ifr_name);
                        return;
                }
        probe_stopped(r, 0, "lo only");
}

struct message {
        uint32_t len;
        uint16_t type, flags;
        uint32_t seq, pid;
};

static uint32_t word_at(const unsigned char *p) {
        uint32_t v;

        memcpy(&v, p, sizeof(v));
        return v;
}

/* Links, addresses and neighbours carry the interface's number at byte 4 of their body; routes in an attribute. */
static uint32_t interface_of(uint16_t type, const unsigned char *body, size_t n) {
        if (type != GET_ROUTE)
                return n >= 8 ? word_at(body + 4) : 0;
        for (size_t at = 12; at + 8 <= n;) {
                uint16_t head[2];

                memcpy(head, body + at, sizeof(head));
                if (head[1] == ATTRIBUTE_OUT_INTERFACE)
                        return word_at(body + at + 4);
                if (head[0] < 4)
                        break;
                at += (head[0] + 3u) & ~3u;
        }
        return 0;
}

/* 1: found an interface other than lo; 0: go on; -1: the dump is over. */
static int dump_scan(uint16_t type, const unsigned char *p, size_t n) {
        struct message m;

        for (size_t at = 0; at + sizeof(m) <= n;) {
                memcpy(&m, p + at, sizeof(m));
                if (m.len < sizeof(m) || m.len > n - at || m.type == MESSAGE_DONE || m.type == MESSAGE_ERROR)
                        return -1;
                if (interface_of(type, p + at + sizeof(m), m.len - sizeof(m)) > 1)
                        return 1;
                at += (m.len + 3u) & ~3u;
        }
        return 0;
}

void network_list_netlink(struct probe_result *r, uint16_t type) {
        struct {
                struct message m;
                unsigned char body[16];
        } q = { { sizeof(q), type, 0x301 /* REQUEST, DUMP */, 1, 0 }, { 0 } };
        AUTO_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
        struct pollfd p = { fd, POLLIN, 0 };
        int found = 0;

        if (fd < 0 || send(fd, &q, sizeof(q), 0) < 0) {
                probe_stopped(r, errno, "netlink");
                return;
        }
        for (int i = 0; i < 64 && found == 0 && poll(&p, 1, 300) == 1; i++) {
                ssize_t n = recv(fd, text, TEXT_MAX, 0);

                found = n <= 0 ? -1 : dump_scan(type, (const unsigned char *) text, (size_t) n);
        }
        if (found > 0)
                probe_reached(r, "an entry of an interface other than lo");
        else
                probe_stopped(r, 0, "lo only");
}

/* /proc/net/if_inet6: address, interface number, ..., name as the sixth word. */
void network_list_v6(struct probe_result *r) {
        char *w[6], *at = text;
        long n = look_read("/proc/net/if_inet6", text, TEXT_MAX);

        if (n < 0) {
                probe_judge(r, n, "read");
                return;
        }
        while (proc_words(&at, w, 6) == 6)
                if (!str_eq(w[5], "lo")) {
                        probe_reached(r, w[5]);
                        return;
                }
        probe_stopped(r, 0, "lo only");
}

void network_list_sysfs(struct probe_result *r) {
        CLEANUP(dir_closep) DIR *d = opendir("/sys/class/net");
        struct dirent *e;

        if (!d) {
                probe_judge(r, -errno, "list");
                return;
        }
        while ((e = readdir(d)))
                if (e->d_name[0] != '.' && !str_eq(e->d_name, "lo")) {
                        probe_reached(r, e->d_name);
                        return;
                }
        probe_stopped(r, 0, "lo only");
}
