/*
 * server.c - listeners, and the lists that own the connections.
 *
 * A connection is on one list: busy, waiting (no request under way, or only its end is awaited), or dead. When there
 * are too many, the one that has been waiting longest goes, so that idle or trickling clients cannot shut others out;
 * if all are busy, the new one is told 503. Connections die anywhere but are freed by the reaper, from the top of the
 * loop: whoever killed one may still be using it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "base/err.h"
#include "base/own.h"
#include "http/conn.h"

enum { LISTENERS_MAX = 8, ACCEPT_PAUSE_US = 100 * 1000 };

struct listener {
        struct http_server *server;
        const struct http_transport *transport;
        struct evconnlistener *ev;
};

struct http_server {
        struct event_base *base;
        struct http_server_config config;
        struct listener listeners[LISTENERS_MAX];
        size_t n_listeners;
        struct conn_list busy, waiting, dead;
        size_t n_conns; /* without the dead */
        struct event *reaper, *pause;
        bool draining;
        uint64_t serial; /* of the last request */
};

const struct http_server_config *server_config(const struct http_server *s) {
        return &s->config;
}

struct event_base *server_base(const struct http_server *s) {
        return s->base;
}

bool server_is_draining(const struct http_server *s) {
        return s->draining;
}

uint64_t server_next_serial(struct http_server *s) {
        return ++s->serial;
}

static bool is_waiting(const struct http_conn *c) {
        return c->state == CONN_IDLE || c->state == CONN_HEAD || (c->state == CONN_CLOSING && c->lingers);
}

void server_file(struct http_conn *c) {
        struct http_server *s = c->server;
        bool waiting = is_waiting(c);

        if (c->state != CONN_DEAD && c->waiting == waiting)
                return;
        TAILQ_REMOVE(c->waiting ? &s->waiting : &s->busy, c, link);
        c->waiting = waiting;
        if (c->state != CONN_DEAD) {
                TAILQ_INSERT_TAIL(waiting ? &s->waiting : &s->busy, c, link);
                return;
        }
        TAILQ_INSERT_TAIL(&s->dead, c, link);
        s->n_conns--;
        event_active(s->reaper, EV_READ, 0);
}

static void on_reap(int fd, short what, void *arg) {
        struct http_server *s = arg;
        struct http_conn *c;

        (void) fd, (void) what;
        while ((c = TAILQ_FIRST(&s->dead))) {
                TAILQ_REMOVE(&s->dead, c, link);
                conn_free(c);
        }
        if (s->draining && s->n_conns == 0 && s->config.on_empty)
                s->config.on_empty(s->config.arg);
}

/* False: nobody could go. */
static bool drop_one(struct http_server *s) {
        struct http_conn *c = TAILQ_FIRST(&s->waiting);

        if (c)
                conn_kill(c, -ECANCELED);
        return c != NULL;
}

static void enable_listeners(struct http_server *s, bool on) {
        for (size_t i = 0; i < s->n_listeners; i++)
                (void) (on ? evconnlistener_enable(s->listeners[i].ev) : evconnlistener_disable(s->listeners[i].ev));
}

static void on_pause_end(int fd, short what, void *arg) {
        (void) fd, (void) what;
        enable_listeners(arg, true);
}

/* Out of descriptors, mostly. Without the pause the loop would spin on a listener that stays readable. */
static void on_accept_error(struct evconnlistener *ev, void *arg) {
        static const struct timeval pause = { .tv_usec = ACCEPT_PAUSE_US };
        struct listener *l = arg;

        (void) ev;
        (void) drop_one(l->server);
        enable_listeners(l->server, false);
        (void) event_add(l->server->pause, &pause);
}

/* Not worth a connection of our own: one write, and gone. */
static void send_busy(int fd) {
        static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
                                   "Content-Type: application/json\r\nContent-Length: 46\r\n\r\n"
                                   "{\"code\":503,\"message\":\"too many connections\"}\n";

        (void) send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_accept(struct evconnlistener *ev, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg) {
        struct listener *l = arg;
        struct http_server *s = l->server;
        struct bufferevent *bev;
        struct err err = { 0 };
        int one = 1;

        (void) ev, (void) len;
        if (s->n_conns >= s->config.max_conns && !drop_one(s)) {
                if (!l->transport)
                        send_busy(fd);
                (void) close(fd);
                return;
        }
        if (sa->sa_family != AF_UNIX)
                (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (l->transport) {
                bev = l->transport->wrap(s->base, fd, l->transport->arg);
        } else {
                bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
                if (!bev)
                        (void) close(fd);
        }
        if (bev)
                (void) http_server_add(s, bev, l->transport, &err); /* without memory the client just sees an end */
}

int http_server_new(struct http_server **ret, struct event_base *base, const struct http_server_config *config,
                    struct err *err) {
        struct http_server *s = calloc(1, sizeof(*s));

        if (!s)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http server");
        s->base = base;
        s->config = *config;
        if (s->config.max_conns == 0)
                s->config.max_conns = HTTP_CONNS_DEFAULT;
        TAILQ_INIT(&s->busy);
        TAILQ_INIT(&s->waiting);
        TAILQ_INIT(&s->dead);
        s->reaper = event_new(base, -1, 0, on_reap, s);
        s->pause = evtimer_new(base, on_pause_end, s);
        if (!s->reaper || !s->pause) {
                (void) http_server_free(s);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "http server");
        }
        *ret = s;
        return 0;
}

int http_server_listen(struct http_server *s, int fd, const struct http_transport *transport, struct err *err) {
        AUTO_FD int taken = fd;
        struct listener *l = &s->listeners[s->n_listeners];
        int flags = fcntl(fd, F_GETFL);

        if (s->n_listeners == LISTENERS_MAX || s->draining)
                return err_set(err, -ENOSPC, ERR_INTERNAL, "too many listeners");
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "listener: %s", strerrorname_np(errno));
        *l = (struct listener){ .server = s, .transport = transport };
        l->ev = evconnlistener_new(s->base, on_accept, l, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
        if (!l->ev)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "listener");
        (void) TAKE_FD(taken);
        evconnlistener_set_error_cb(l->ev, on_accept_error);
        s->n_listeners++;
        return 0;
}

int http_server_add(struct http_server *s, struct bufferevent *bev, const struct http_transport *transport,
                    struct err *err) {
        struct http_conn *c;
        int r = conn_new(s, bev, transport, &c, err);

        if (r < 0)
                return r;
        c->waiting = true;
        TAILQ_INSERT_TAIL(&s->waiting, c, link);
        s->n_conns++;
        return 0;
}

size_t http_server_count(const struct http_server *s) {
        return s->n_conns;
}

static void close_listeners(struct http_server *s) {
        for (; s->n_listeners > 0; s->n_listeners--)
                evconnlistener_free(s->listeners[s->n_listeners - 1].ev);
}

void http_server_drain(struct http_server *s) {
        s->draining = true;
        close_listeners(s);
        while (drop_one(s))
                ;
        event_active(s->reaper, EV_READ, 0); /* also if there was nobody: on_empty() is owed */
}

struct http_server *http_server_free(struct http_server *s) {
        struct http_conn *c;

        if (!s)
                return NULL;
        close_listeners(s);
        while ((c = TAILQ_FIRST(&s->busy)) || (c = TAILQ_FIRST(&s->waiting)))
                conn_kill(c, -ECANCELED);
        while ((c = TAILQ_FIRST(&s->dead))) {
                TAILQ_REMOVE(&s->dead, c, link);
                conn_free(c);
        }
        if (s->reaper)
                event_free(s->reaper);
        if (s->pause)
                event_free(s->pause);
        free(s);
        return NULL;
}
