/*
 * netns_verify.c - reads a live namespace back: asks over the netlink sockets that were made in it, so that nobody has
 * to go there, and gives the answers to the comparison.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "sandbox/netns.h"
#include "sandbox/netns_read.h"
#include "sandbox/nl.h"

enum { DUMP_MAX = 256 * 1024 };

static const struct {
        uint16_t type;
        size_t n_head; /* all zero: every family, every table */
} requests[NETNS_DUMPS] = {
        [NETNS_LINKS] = { RTM_GETLINK, sizeof(struct ifinfomsg) },
        [NETNS_ADDRESSES] = { RTM_GETADDR, sizeof(struct ifaddrmsg) },
        [NETNS_ROUTES] = { RTM_GETROUTE, sizeof(struct rtmsg) },
        [NETNS_ROUTING_RULES] = { RTM_GETRULE, sizeof(struct fib_rule_hdr) },
        [NETNS_TABLES] = { NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, sizeof(struct nfgenmsg) },
        [NETNS_CHAINS] = { NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN, sizeof(struct nfgenmsg) },
        [NETNS_RULES] = { NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, sizeof(struct nfgenmsg) },
};

/* Appends the messages of one datagram. 1: more will come; 0: that was all. */
static int datagram_take(struct nl_bytes d, struct buf *into) {
        for (;;) {
                const uint8_t *at = d.p;
                struct nl_bytes body;
                int32_t code = 0;
                uint16_t type;
                int r = nl_next_message(&d, &type, &body);

                if (r <= 0)
                        return r < 0 ? r : 1;
                if (type == NLMSG_DONE || type == NLMSG_ERROR) {
                        if (body.n >= sizeof(code))
                                memcpy(&code, body.p, sizeof(code));
                        return code; /* 0: done */
                }
                buf_add(into, at, (size_t) (d.p - at));
        }
}

static int dump(int fd, enum netns_dump which, struct buf *into) {
        static const uint8_t zero[32];
        static uint8_t space[32768] __attribute__((aligned(4)));
        uint8_t request[64] __attribute__((aligned(4)));
        struct nl n = nl_to(request, sizeof(request));
        ssize_t k;
        int r = 1;

        while (recv(fd, space, sizeof(space), MSG_DONTWAIT) > 0)
                ; /* whatever an earlier call left */
        nl_message(&n, requests[which].type, NLM_F_REQUEST | NLM_F_DUMP, zero, requests[which].n_head);
        if (n.bad || send(fd, request, n.len, 0) < 0)
                return n.bad ? -EMSGSIZE : -errno;
        while (r == 1) {
                k = recv(fd, space, sizeof(space), MSG_DONTWAIT);
                r = k <= 0 ? (k == 0 ? -ENODATA : -errno) : datagram_take((struct nl_bytes){ space, (size_t) k }, into);
        }
        return r < 0 ? r : into->bad ? -E2BIG : 0;
}

/* A kernel without routing rules has none to compare. */
static bool is_absent(enum netns_dump which, int code) {
        return which == NETNS_ROUTING_RULES && (code == -EOPNOTSUPP || code == -EAFNOSUPPORT);
}

static int verify_one(const struct netns *n, const struct netns_job *job, const struct plan_net *net,
                      enum netns_dump which, struct err *err) {
        CLEANUP(buf_done) struct buf all = BUF_INIT(DUMP_MAX);
        int r = dump(which < NETNS_TABLES ? n->route_fd : n->filter_fd, which, &all);

        if (r < 0)
                return is_absent(which, r) ? 0 : err_set(err, r, ERR_INTERNAL, "it cannot be read: %s", strerror(-r));
        return netns_compare(which, (struct nl_bytes){ (const uint8_t *) buf_str(&all), all.len }, net,
                             (struct nl_bytes){ job->rules, job->n_rules }, err);
}

int sandbox_net_verify(const struct sandbox *sb, const struct plan *plan, const char **ret_control, struct err *err) {
        static struct netns_job planned;
        struct netns none;
        int r = plan->net ? netns_prepare(plan->net, WEAKEN_NONE, &none, &planned, err) : 0;

        if (!plan->net)
                return 0;
        for (enum netns_dump which = 0; r == 0 && which < NETNS_DUMPS; which++) {
                *ret_control = netns_control(which);
                r = verify_one(&sb->net, &planned, plan->net, which, err);
        }
        return r;
}
