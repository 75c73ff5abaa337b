/*
 * dial.c - a connected socket: every address of the place is tried in turn.
 *
 * Names are looked up when first needed, and blocking: a program for one person has nothing else to do meanwhile.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/state.h"

struct dial {
        struct client *client;
        struct place *place;
        void (*done)(void *arg, int fd, const struct err *err);
        void *arg;
        const struct addrinfo *at; /* the one that is being tried; NULL for a Unix socket */
        int fd;
        struct event *event; /* of the socket, or to tell a result from the top of the loop */
        struct err err;
};

static int fail(struct err *err, int r, const struct client_url *u) {
        return err_set(err, r, ERR_PEER, "the server at %s cannot be reached: %s%s", u->text, strerror(-r),
                       r == -ECONNREFUSED || r == -ENOENT ? "; is 'gabion serve' running there?" : "");
}

static int look_up(struct place *p, struct err *err) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
        char host[HTTP_HOST_MAX + 1], port[8];
        size_t n = strlen(p->url.host);
        int r;

        if (p->addresses || p->url.scheme == CLIENT_UNIX)
                return 0;
        (void) str_copy(host, sizeof(host), p->url.host);
        if (n > 1 && host[0] == '[' && host[n - 1] == ']') { /* IPv6 */
                memmove(host, host + 1, n - 2);
                host[n - 2] = '\0';
        }
        (void) snprintf(port, sizeof(port), "%u", (unsigned) p->url.port);
        r = getaddrinfo(host, port, &hints, &p->addresses);
        if (r != 0)
                return err_set(err, -EHOSTUNREACH, ERR_PEER, "the server's name '%.100s' cannot be found: %s", host,
                               gai_strerror(r));
        return 0;
}

/* 0: connected or under way. */
static int begin(struct dial *d) {
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        const struct sockaddr *sa = d->at ? d->at->ai_addr : (const struct sockaddr *) &un;
        socklen_t n = d->at ? d->at->ai_addrlen : sizeof(un);
        int one = 1;

        (void) str_copy(un.sun_path, sizeof(un.sun_path), d->place->url.path);
        d->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (d->fd < 0)
                return -errno;
        if (d->at) /* keys typed at a terminal are small messages */
                (void) setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(d->fd, sa, n) < 0 && errno != EINPROGRESS)
                return -errno;
        return 0;
}

static void finish(struct dial *d, int r) {
        if (r < 0)
                (void) fail(&d->err, r, &d->place->url);
        d->done(d->arg, r < 0 ? r : TAKE_FD(d->fd), &d->err); /* d may be gone now */
}

static void on_event(int fd, short what, void *arg);

/* From d->at on; negative: none could even be begun. */
static int try_on(struct dial *d) {
        static const struct timeval patience = { .tv_sec = CLIENT_DIAL_MS / 1000 };
        int r;

        for (;;) {
                r = begin(d);
                if (r == 0)
                        break;
                if (d->fd >= 0)
                        (void) close(TAKE_FD(d->fd));
                if (!d->at || !d->at->ai_next)
                        return r;
                d->at = d->at->ai_next;
        }
        if (d->event)
                event_free(d->event);
        d->event = event_new(d->client->base, d->fd, EV_WRITE, on_event, d);
        return d->event && event_add(d->event, &patience) == 0 ? 0 : -ENOMEM;
}

static void on_event(int fd, short what, void *arg) {
        struct dial *d = arg;
        socklen_t n = sizeof(int);
        int e = 0, r;

        if (what & EV_TIMEOUT)
                e = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
                e = errno;
        if (e == 0) {
                finish(d, 0);
                return;
        }
        (void) close(TAKE_FD(d->fd));
        r = -e;
        if (d->at && d->at->ai_next) {
                d->at = d->at->ai_next;
                r = try_on(d);
        }
        if (r < 0)
                finish(d, r);
}

int dial_new(struct client *c, struct place *place, void (*done)(void *arg, int fd, const struct err *err), void *arg,
             struct dial **ret, struct err *err) {
        struct dial *d;
        int r = look_up(place, err);

        if (r < 0)
                return r;
        d = calloc(1, sizeof(*d));
        if (!d)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        *d = (struct dial){ .client = c, .place = place, .done = done, .arg = arg, .at = place->addresses, .fd = -1 };
        r = try_on(d);
        if (r < 0) {
                (void) dial_free(d);
                return fail(err, r, &place->url);
        }
        *ret = d;
        return 0;
}

struct dial *dial_free(struct dial *d) {
        if (!d)
                return NULL;
        if (d->event)
                event_free(d->event);
        if (d->fd >= 0)
                (void) close(d->fd);
        free(d);
        return NULL;
}

void place_done(struct place *p) {
        if (p->addresses)
                freeaddrinfo(p->addresses);
        p->addresses = NULL;
}
