/*
 * first.c - what a client says first decides what a connection is: see conn.h.
 *
 * Its bytes are looked at in the socket and not taken, so that what passes is passed on as it came. TLS must be for the
 * name that was asked for; HTTP goes to web.c, which compares each Host; anything else passes only where no rule looks
 * into requests and the port is not one of the web's.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"
#include "egress/conn.h"
#include "egress/egress.h"
#include "egress/peek.h"
#include "tls/tls.h"

enum { DETAIL = 320 };

static void saw_tls(struct conn *c, const struct tls_hello *h) {
        char detail[DETAIL];

        c->protocol = "tls";
        if (h->ech) {
                conn_deny_code(c, "net.sni_mismatch", "floor:ech", "encrypted ClientHello");
        } else if (!c->name && c->verdict.needs_http) {
                conn_deny_code(c, "net.protocol_not_allowed", "floor:protocol", "TLS to an address cannot be opened");
        } else if (c->name && !h->name[0]) {
                conn_deny_code(c, "net.sni_mismatch", "floor:sni", "no server name");
        } else if (c->name && !str_eq(h->name, c->name)) {
                (void) snprintf(detail, sizeof(detail), "server name %s", h->name);
                conn_deny_code(c, "net.sni_mismatch", "floor:sni", detail);
        } else if (c->verdict.needs_http) {
                conn_web(c, true);
        } else {
                conn_checked(c);
        }
}

/* False: more bytes are needed. */
static bool look_tls(struct conn *c, const void *p, size_t n) {
        struct tls_hello h;
        struct err err = { 0 };
        enum tls_look look;

        if (!c->peek && tls_peek_new(c->egress->inspector, &c->peek, &err) < 0) {
                conn_end(c, "out of memory", true);
                return true;
        }
        look = tls_peek_look(c->peek, p, n, &h, &err);
        if (look == TLS_HELLO)
                saw_tls(c, &h);
        else if (look != TLS_MORE)
                conn_deny_code(c, "net.protocol_not_allowed", "floor:protocol", "ClientHello cannot be read");
        return look != TLS_MORE;
}

static void saw_other(struct conn *c) {
        if (c->verdict.needs_http || conn_is_web_port(c->port))
                conn_deny_code(c, "net.protocol_not_allowed", "floor:protocol", "neither TLS nor HTTP/1");
        else
                conn_checked(c);
}

/* Looks at what the client has sent without taking it. False: it must say more first. */
static bool look_once(struct conn *c) {
        static uint8_t bytes[TLS_HELLO_MAX + 1024];
        struct leg *l = &c->legs[CONN_CLIENT];
        ssize_t n = recv(l->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

        if (n <= 0) {
                l->readable = false;
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return false;
                conn_end(c, n == 0 ? "closed before it said anything" : NULL, n < 0);
                return true;
        }
        switch (peek_kind(bytes, (size_t) n)) {
        case PEEK_TLS:
                return look_tls(c, bytes, (size_t) n);
        case PEEK_HTTP:
                conn_web(c, false);
                return true;
        case PEEK_OTHER:
                saw_other(c);
                return true;
        case PEEK_MORE:
                break;
        }
        return false;
}

/* The same, and the end of a client that will say no more: while bytes wait unread, recv() does not show it. */
bool first_look(struct conn *c) {
        struct pollfd p = { .fd = c->legs[CONN_CLIENT].fd, .events = POLLRDHUP };

        if (look_once(c))
                return true;
        if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLRDHUP | POLLERR | POLLHUP)))
                return false;
        conn_end(c, "closed before it said anything that could be checked", true);
        return true;
}

void first_speak(struct conn *c) {
        char byte;

        if (c->legs[CONN_CLIENT].readable && first_look(c))
                return;
        if (!c->legs[CONN_WORLD].readable)
                return;
        c->legs[CONN_WORLD].readable = false;
        /* The far side answers a client that has shown half a ClientHello or request line: nobody we know does that. */
        if (recv(c->legs[CONN_CLIENT].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
                conn_deny_code(c, "net.protocol_not_allowed", "floor:protocol", "answer before the request was whole");
        else
                conn_checked(c);
}
