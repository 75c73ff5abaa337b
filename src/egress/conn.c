/*
 * conn.c - see conn.h.
 *
 * A connection to port 80 or 443, and one whose rule looks into requests, has to show what it is before anything is
 * dialled: TLS for the name that was asked for, or HTTP/1. On other ports the far side is dialled at once, because in
 * many protocols it speaks first; if the client does, and it is TLS or HTTP, the same is checked.
 */
#include "egress/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dns/dns.h"
#include "egress/dial.h"
#include "egress/egress.h"
#include "egress/limits.h"
#include "egress/names.h"
#include "egress/sandbox.h"
#include "egress/web.h"
#include "tls/tls.h"

enum { PORT_DNS = 53, PORT_HTTP = 80, PORT_HTTPS = 443 };

#define BIT(n) (1u << (n))

static const unsigned legal[CONN_STATES] = {
        [CONN_HELLO] = BIT(CONN_DIAL) | BIT(CONN_WEB) | BIT(CONN_DEAD),
        [CONN_DIAL] = BIT(CONN_SPEAK) | BIT(CONN_RELAY) | BIT(CONN_DEAD),
        [CONN_SPEAK] = BIT(CONN_RELAY) | BIT(CONN_WEB) | BIT(CONN_DEAD),
        [CONN_RELAY] = BIT(CONN_DEAD),
        [CONN_WEB] = BIT(CONN_DEAD),
};

/* The only writer of c->state. */
static void conn_move(struct conn *c, enum conn_state next) {
        if (!(legal[c->state] & BIT(next)))
                abort(); /* our bug, never a peer's */
        c->state = next;
}

/* --- ends --- */

static void leg_disarm(struct leg *l) {
        if (l->armed)
                (void) event_del(&l->event);
        l->armed = false;
}

static void reset_fd(int fd) {
        static const struct linger at_once = { .l_onoff = 1 };

        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

/* Lets go of everything but the memory, which the frames above us may still look at. */
static void conn_shut(struct conn *c, bool reset) {
        relay_done(c);
        dial_cancel(TAKE_PTR(c->dial));
        c->peek = tls_peek_free(c->peek);
        if (c->web)
                web_shut(c->web, reset);
        for (unsigned i = 0; i < CONN_LEGS; i++) {
                leg_disarm(&c->legs[i]);
                if (reset && c->legs[i].fd >= 0)
                        reset_fd(c->legs[i].fd);
                own_closep(&c->legs[i].fd);
                c->legs[i].fd = -1;
        }
}

static void conn_bury(struct conn *c, bool reset) {
        struct sandbox *s = c->sandbox;

        conn_shut(c, reset);
        conn_move(c, CONN_DEAD);
        TAILQ_REMOVE(&s->conns, c, link);
        s->n_conns--;
        c->egress->n_open--;
        c->sandbox = NULL;
        egress_bury(c->egress, c);
}

void conn_free(struct conn *c) {
        web_free(c->web);
        free(c);
}

static struct record record_of(const struct conn *c) {
        return (struct record){ .event = c->event,
                                .kind = str_eq(c->protocol, "tls") ? "tls" : "tcp",
                                .name = c->name,
                                .address = c->address,
                                .port = c->port,
                                .protocol = c->protocol,
                                .allowed = true,
                                .code = "",
                                .rule = c->verdict.rule,
                                .side = policy_net_side_name(POLICY_NET_SANDBOX),
                                .with_bytes = true,
                                .bytes_out = c->flows[CONN_CLIENT].bytes,
                                .bytes_in = c->flows[CONN_WORLD].bytes,
                                .duration_ns = clock_mono_ns() - c->begin_ns };
}

void conn_end(struct conn *c, const char *detail, bool reset) {
        struct record r = record_of(c);

        r.phase = "close";
        r.detail = detail;
        sandbox_tell(c->sandbox, &r);
        conn_bury(c, reset);
}

static void deny(struct conn *c, const char *code, const char *rule, const char *side, const char *detail) {
        struct record r = record_of(c);
        char event[RECORD_EVENT];

        r.allowed = false;
        r.code = code;
        r.rule = rule;
        r.side = side;
        r.detail = detail;
        r.phase = "close";
        /* Bytes went by under this connection's own event: it has to be closed by a record of its own. */
        if (c->told || r.bytes_out + r.bytes_in > 0) {
                sandbox_tell(c->sandbox, &r);
        } else {
                r.with_bytes = false;
                r.phase = NULL;
                sandbox_note(c->sandbox, &r, event);
        }
        conn_bury(c, true);
}

void conn_deny(struct conn *c, const struct policy_net_verdict *v, const char *detail) {
        deny(c, v->code, v->rule, policy_net_side_name(v->side), detail);
}

void conn_deny_code(struct conn *c, const char *code, const char *rule, const char *detail) {
        deny(c, code, rule, record_side(rule), detail);
}

bool conn_may_spend(struct conn *c, size_t n) {
        const struct sandbox *s = c->sandbox;
        uint64_t max = s->budget.max[POLICY_NET_BYTES_OUT];

        if (s->bytes_out <= max && n <= max - s->bytes_out)
                return true;
        conn_deny_code(c, "net.budget", s->budget.rule[POLICY_NET_BYTES_OUT], "bytes_out is spent");
        return false;
}

/* --- states --- */

bool conn_is_web_port(uint16_t port) {
        return port == PORT_HTTP || port == PORT_HTTPS;
}

static void on_dialled(const struct dial_result *res, void *arg);
static void on_leg(evutil_socket_t fd, short what, void *arg);

static bool leg_arm(struct conn *c, unsigned i) {
        struct leg *l = &c->legs[i];

        (void) event_assign(&l->event, c->egress->base, l->fd, EV_READ | EV_WRITE | EV_ET | EV_PERSIST, on_leg, l);
        (void) event_priority_set(&l->event, sandbox_priority(c->sandbox));
        l->armed = event_add(&l->event, NULL) == 0;
        return l->armed;
}

static void conn_relay(struct conn *c) {
        conn_move(c, CONN_RELAY);
        c->peek = tls_peek_free(c->peek);
        /* Edges may have passed before anybody looked, so everything is tried once. */
        for (unsigned i = 0; i < CONN_LEGS; i++)
                c->legs[i].readable = c->legs[i].writable = true;
        relay_pump(c);
}

/* The other leg is there, or not. */
static void dialled(struct conn *c, const struct dial_result *res) {
        if (res->address.family != ADDR_NONE)
                c->address = res->address;
        if (res->fd < 0) {
                if (res->denied)
                        conn_deny(c, &res->verdict, NULL);
                else
                        conn_end(c, res->problem, true);
                return;
        }
        c->legs[CONN_WORLD].fd = res->fd;
        c->moved_ms = egress_now_ms();
        if (!leg_arm(c, CONN_WORLD))
                conn_end(c, "out of memory", true);
        else if (c->checked)
                conn_relay(c);
        else
                conn_move(c, CONN_SPEAK);
}

static void on_dialled(const struct dial_result *res, void *arg) {
        struct conn *c = arg;

        c->dial = NULL;
        dialled(c, res);
}

static void conn_dial(struct conn *c) {
        const struct dial_to to = { .name = c->name, .address = &c->address, .port = c->port };
        struct dial_result res;

        conn_move(c, CONN_DIAL);
        if (dial_start(c->sandbox, &to, on_dialled, c, &res, &c->dial) > 0)
                dialled(c, &res);
}

void conn_checked(struct conn *c) {
        c->checked = true;
        if (c->state == CONN_HELLO)
                conn_dial(c);
        else
                conn_relay(c);
}

void conn_web(struct conn *c, bool tls) {
        int world = TAKE_FD(c->legs[CONN_WORLD].fd), client = TAKE_FD(c->legs[CONN_CLIENT].fd);
        struct err err = { 0 };

        c->protocol = tls ? "https" : "http";
        c->peek = tls_peek_free(c->peek);
        for (unsigned i = 0; i < CONN_LEGS; i++)
                leg_disarm(&c->legs[i]);
        conn_move(c, CONN_WEB);
        if (web_new(c, client, world, tls, &c->web, &err) < 0)
                conn_end(c, err.msg, true);
}

/* Does what can be done with what the sockets told. */
static void go_on(struct conn *c) {
        if (c->state == CONN_RELAY)
                relay_pump(c);
        else if (c->state == CONN_SPEAK)
                first_speak(c);
        else if (c->state == CONN_HELLO && c->legs[CONN_CLIENT].readable)
                (void) first_look(c);
}

void conn_resume(struct conn *c) {
        struct sandbox *s = c->sandbox;
        uint64_t begin;

        c->parked = !sandbox_begin(s, &begin);
        if (c->parked)
                return;
        if (c->state == CONN_WEB)
                web_resume(c->web);
        else
                go_on(c);
        sandbox_end(s, begin, NULL);
}

static void on_leg(evutil_socket_t fd, short what, void *arg) {
        struct leg *l = arg;
        struct conn *c = l->conn;
        struct sandbox *s = c->sandbox;
        uint64_t begin;

        (void) fd;
        l->readable = l->readable || (what & EV_READ);
        l->writable = l->writable || (what & EV_WRITE);
        c->parked = !sandbox_begin(s, &begin);
        if (c->parked)
                return;
        go_on(c);
        sandbox_end(s, begin, c->state == CONN_DEAD || c->state == CONN_WEB ? NULL : &l->event);
}

/* --- the beginning --- */

/* A connection that is refused before it becomes one. */
static void refuse(struct sandbox *s, int fd, struct record *r) {
        char event[RECORD_EVENT];

        r->kind = r->protocol = "tcp";
        sandbox_note(s, r, event);
        reset_fd(fd);
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

static void conn_start(struct sandbox *s, int fd, const struct policy_net_request *q,
                       const struct policy_net_verdict *v) {
        struct conn *c = calloc(1, sizeof(*c));
        bool literal = !q->name;

        if (!c) {
                (void) close(fd);
                return;
        }
        *c = (struct conn){ .egress = s->egress, .sandbox = s, .name = q->name, .port = q->port, .verdict = *v };
        c->protocol = "tcp";
        c->begin_ns = clock_mono_ns();
        c->moved_ms = egress_now_ms();
        if (literal)
                c->address = *q->address;
        c->checked = literal && !v->needs_http;
        for (unsigned i = 0; i < CONN_LEGS; i++)
                c->legs[i] = (struct leg){ .conn = c, .fd = i == CONN_CLIENT ? fd : -1 };
        ledger_event(c->event);
        TAILQ_INSERT_TAIL(&s->conns, c, link);
        s->n_conns++;
        s->egress->n_open++;
        if (!leg_arm(c, CONN_CLIENT))
                conn_end(c, "out of memory", true);
        else if (c->checked || !(v->needs_http || conn_is_web_port(q->port)))
                conn_dial(c);
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

/* --- later --- */

void conn_judge_again(struct conn *c) {
        struct policy_net_request q = { .stage = POLICY_NET_CONNECT, .name = c->name, .port = c->port };
        struct policy_net_verdict v;
        bool dialled = c->name && c->address.family != ADDR_NONE;

        if (!c->name || dialled)
                q.address = &c->address;
        if (dialled)
                q.stage = POLICY_NET_ADDRESS;
        policy_net_eval(c->sandbox->policy, &q, &v);
        if (!v.allowed)
                conn_deny(c, &v, "policy was changed");
        else if (v.needs_http && c->state != CONN_WEB)
                conn_deny_code(c, "net.protocol_not_allowed", "floor:protocol",
                               "policy was changed: requests have to be seen");
        else
                c->verdict = v;
}

void conn_sweep(struct conn *c, uint64_t now_ms) {
        bool half = c->legs[CONN_CLIENT].shut || c->legs[CONN_WORLD].shut;
        uint64_t idle = now_ms - c->moved_ms;

        if (c->state == CONN_WEB)
                web_sweep(c->web, now_ms);
        if (c->state == CONN_DEAD)
                return;
        if (c->state == CONN_HELLO && idle > EGRESS_HELLO_MS) {
                conn_end(c, "said nothing that could be checked in time", true);
        } else if (c->state != CONN_DIAL && c->state != CONN_WEB &&
                   idle > (half ? EGRESS_HALF_IDLE_MS : EGRESS_IDLE_MS)) {
                conn_end(c, "idle", true);
        } else if (!c->told && clock_mono_ns() - c->begin_ns > (uint64_t) EGRESS_LONG_MS * 1000000) {
                struct record r = record_of(c);

                c->told = true;
                r.phase = "open";
                sandbox_tell(c->sandbox, &r);
        }
}
