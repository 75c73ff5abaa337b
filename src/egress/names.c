/*
 * names.c - see names.h.
 *
 * An allowed name is given an address of its own, the same one for the life of the sandbox; the world's name servers
 * hear of it when a connection is made, and not before. AAAA, HTTPS and SVCB of an allowed name are empty: no IPv6
 * detour, no keys for an encrypted ClientHello, no hint to use QUIC. Whatever is not allowed does not exist (NXDOMAIN):
 * the usual libraries give up at once then, whereas they retry a refusal and call it a temporary failure. Refused
 * (REFUSED) is what is against a budget or a limit, since that name may work later.
 */
#include "egress/names.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "dns/dns.h"
#include "egress/egress.h"
#include "egress/keep.h"
#include "egress/limits.h"
#include "egress/record.h"
#include "egress/sandbox.h"

enum { WHY_TEXT = 96 };

/* An answer that says no, and its reason for clients that can show one. */
struct refusal {
        struct dns_answer answer;
        char why[WHY_TEXT];
};

static void refuse(struct sandbox *s, struct record *r, const char *code, const char *rule, enum dns_rcode rcode,
                   struct refusal *ret) {
        char event[RECORD_EVENT];

        r->code = code;
        r->rule = rule;
        r->side = record_side(rule);
        sandbox_note(s, r, event);
        (void) snprintf(ret->why, sizeof(ret->why), "%s; event=%s; do not retry", code, event);
        ret->answer.rcode = rcode;
        ret->answer.prohibited = ret->why;
}

/* The address of an allowed name. False: a budget is spent. */
static bool give(struct sandbox *s, const char *name, struct addr *ret) {
        size_t before = dns_book_count(s->book);
        struct addr a;
        struct err err = { 0 };

        if (dns_book_find(s->book, name, ret))
                return true;
        if (before >= s->budget.max[POLICY_NET_NAMES] || dns_book_give(s->book, name, &a, &err) < 0)
                return false;
        /* An address that the next process would not know is still good in this one. */
        (void) keep_add_name(s->egress->keep, s->id, name, &err);
        *ret = a;
        return true;
}

/* A question about one of our own addresses: which name has it? */
static bool answer_ptr(const struct sandbox *s, const struct dns_query *q, struct dns_answer *a) {
        struct addr address;

        if (q->type != DNS_PTR || dns_ptr_address(q->name, &address) < 0)
                return false;
        a->ptr = dns_book_name(s->book, &address);
        a->ttl_s = EGRESS_DNS_TTL_S;
        return a->ptr;
}

static void judge(struct sandbox *s, const struct dns_query *q, struct refusal *ret) {
        const struct policy_net_request request = { .stage = POLICY_NET_NAME, .name = q->name };
        struct record r = { .kind = "dns", .name = q->name, .protocol = "dns" };
        struct dns_answer *a = &ret->answer;
        struct policy_net_verdict v;
        char event[RECORD_EVENT];

        if (!meter_bucket_take(&s->dns, clock_mono_ns())) {
                refuse(s, &r, "net.budget", "floor:dns_rate", DNS_REFUSED, ret);
                return;
        }
        if (answer_ptr(s, q, a))
                return;
        policy_net_eval(s->policy, &request, &v);
        if (!v.allowed) {
                refuse(s, &r, v.code, v.rule, DNS_NXDOMAIN, ret);
                return;
        }
        if (q->type == DNS_A && !give(s, q->name, &a->addrs[0])) {
                refuse(s, &r, "net.budget", s->budget.rule[POLICY_NET_NAMES], DNS_REFUSED, ret);
                return;
        }
        if (q->type == DNS_A) {
                a->n_addrs = 1;
                a->ttl_s = EGRESS_DNS_TTL_S;
                r.address = a->addrs[0];
        }
        r.allowed = true;
        r.code = "";
        r.rule = v.rule;
        r.side = policy_net_side_name(v.side);
        sandbox_note(s, &r, event);
}

size_t names_answer(struct sandbox *s, const void *p, size_t n, bool tcp, uint8_t *dst, size_t cap) {
        struct dns_query q;
        struct refusal a = { .answer = { .rcode = DNS_NOERROR } };
        struct err err = { 0 };
        int r = dns_query_decode(p, n, &q, &err);

        if (r == -ENOMSG)
                return 0;
        if (r < 0) {
                struct record rec = { .kind = "dns", .protocol = "dns", .detail = err.msg };

                refuse(s, &rec, "dns.refused", "floor:dns", q.rcode, &a);
        } else {
                judge(s, &q, &a);
        }
        r = dns_answer_build(&q, &a.answer, tcp, dst, cap, &err);
        return r < 0 ? 0 : (size_t) r;
}

/* --- UDP --- */

/* The answer leaves from the address that was asked, so the received destination is turned into a source. */
static void turn_round(struct msghdr *m) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
                        struct in_pktinfo info;

                        memcpy(&info, CMSG_DATA(c), sizeof(info));
                        info.ipi_spec_dst = info.ipi_addr;
                        info.ipi_ifindex = 0;
                        memcpy(CMSG_DATA(c), &info, sizeof(info));
                } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
                        struct in6_pktinfo info;

                        memcpy(&info, CMSG_DATA(c), sizeof(info));
                        info.ipi6_ifindex = 0;
                        memcpy(CMSG_DATA(c), &info, sizeof(info));
                }
        }
}

/* False: nothing waits. */
static bool serve_one(struct sandbox *s, int fd) {
        union {
                struct cmsghdr head;
                char space[CMSG_SPACE(sizeof(struct in6_pktinfo))];
        } control = { .space = { 0 } };
        uint8_t query[DNS_QUERY_MAX], answer[DNS_UDP_MAX];
        struct sockaddr_storage from;
        struct iovec io = { .iov_base = query, .iov_len = sizeof(query) };
        struct msghdr m = { .msg_name = &from,
                            .msg_namelen = sizeof(from),
                            .msg_iov = &io,
                            .msg_iovlen = 1,
                            .msg_control = control.space,
                            .msg_controllen = sizeof(control.space) };
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

        if (n < 0)
                return false;
        io = (struct iovec){ .iov_base = answer };
        io.iov_len = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)
                             ? 0
                             : names_answer(s, query, (size_t) n, false, answer, sizeof(answer));
        if (io.iov_len > 0) {
                turn_round(&m);
                (void) sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        return true;
}

void names_serve(struct sandbox *s, int fd) {
        for (unsigned i = 0; i < EGRESS_QUERIES_PER_TURN && !s->paused && serve_one(s, fd); i++)
                sandbox_pause(s);
}
