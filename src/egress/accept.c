/*
 * accept.c - a connection that has just come: whom it wanted, and whether it may become one.
 *
 * The sandbox is known by the listener, the name by the fake address. Nothing that the client can choose, such as its
 * own address, is looked at.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dns/dns.h"
#include "egress/conn.h"
#include "egress/egress.h"
#include "egress/limits.h"
#include "egress/names.h"
#include "egress/sandbox.h"

enum { PORT_DNS = 53 };

/* A connection that is refused before it becomes one. */
static void refuse(struct sandbox *s, int fd, struct record *r) {
        char event[RECORD_EVENT];

        r->kind = r->protocol = "tcp";
        sandbox_note(s, r, event);
        conn_reset_fd(fd);
        (void) close(fd);
}

/* Rule text if a budget or a limit of ours forbids one more connection. */
static const char *over_budget(struct sandbox *s) {
        if (s->n_conns >= s->budget.max[POLICY_NET_CONNECTIONS])
                return s->budget.rule[POLICY_NET_CONNECTIONS];
        if (s->n_conns >= EGRESS_OPEN_MAX || s->egress->n_open >= s->egress->max_open)
                return "floor:connections";
        if (s->bytes_out >= s->budget.max[POLICY_NET_BYTES_OUT])
                return s->budget.rule[POLICY_NET_BYTES_OUT];
        return meter_bucket_take(&s->rate, clock_mono_ns()) ? NULL : s->budget.rule[POLICY_NET_RATE];
}

void conn_accept(struct sandbox *s, int fd) {
        struct sockaddr_storage sa;
        socklen_t n = sizeof(sa);
        struct addr address;
        struct policy_net_request q = { .stage = POLICY_NET_CONNECT };
        struct policy_net_verdict v;
        struct record r = { 0 };

        /* Whom the client wanted is the local address here; its own address says nothing, it can choose any. */
        if (getsockname(fd, (struct sockaddr *) &sa, &n) < 0 ||
            addr_from_sockaddr((struct sockaddr *) &sa, &address, &q.port) < 0) {
                (void) close(fd);
                return;
        }
        if (q.port == PORT_DNS) {
                names_accept(s, fd);
                return;
        }
        q.name = dns_book_name(s->book, &address);
        q.address = q.name ? NULL : &address;
        policy_net_eval(s->policy, &q, &v);
        r.name = q.name;
        r.port = q.port;
        if (!q.name)
                r.address = address;
        if (!v.allowed) {
                r.code = v.code;
                r.rule = v.rule;
                r.side = policy_net_side_name(v.side);
                refuse(s, fd, &r);
        } else if ((r.rule = over_budget(s))) {
                r.code = "net.budget";
                r.side = record_side(r.rule);
                refuse(s, fd, &r);
        } else {
                conn_start(s, fd, &q, &v);
        }
}
