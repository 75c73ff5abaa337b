/*
 * ask.c - see ask.h.
 *
 * One attempt is one socket to one server: UDP, and TCP to the same server when the reply was cut. A fresh socket per
 * attempt means a fresh source port from the kernel; it is connected, so packets from elsewhere never arrive; the id is
 * random. A reply that does not fit the question is passed over, and the timer of the attempt runs on. Attempts go
 * round all servers, `tries` times.
 */
#include "ask.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/own.h"

enum { JUNK_MAX = 32 }; /* wrong packets per attempt */

struct ask {
        struct event_base *base;
        const struct dns_config *config;
        struct reply_question question;
        ask_done_fn done;
        void *arg;
        struct event *timer; /* end of an attempt, and the start of the first */
        struct event *io;
        int fd;
        unsigned attempt, junk;
        int worst;   /* what to say when all attempts are over */
        uint8_t *in; /* TCP: length and reply; NULL while on UDP */
        size_t n_in;
};

static void attempt_end(struct ask *a) {
        if (a->io)
                event_free(a->io);
        a->io = NULL;
        if (a->fd >= 0)
                (void) close(a->fd);
        a->fd = -1;
        free(a->in);
        a->in = NULL;
        a->n_in = 0;
        a->junk = 0;
        (void) event_del(a->timer);
}

static void finish(struct ask *a, int code, const struct reply *rep) {
        attempt_end(a);
        a->done(a, code, rep, a->arg);
}

static int socket_open(struct ask *a, int type) {
        const struct dns_server *s = &a->config->servers[a->attempt % a->config->n_servers];
        struct sockaddr_storage sa;
        size_t n = addr_to_sockaddr(&s->addr, s->port, &sa);

        a->fd = socket(sa.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (a->fd < 0)
                return -errno;
        if (connect(a->fd, (const struct sockaddr *) &sa, (socklen_t) n) < 0 && errno != EINPROGRESS)
                return -errno;
        if (getrandom(&a->question.id, sizeof(a->question.id), 0) != (ssize_t) sizeof(a->question.id))
                return -EIO;
        return 0;
}

static int watch(struct ask *a, short what, event_callback_fn fn) {
        if (a->io)
                event_free(a->io);
        a->io = event_new(a->base, a->fd, (short) (what | EV_PERSIST), fn, a);
        return a->io && event_add(a->io, NULL) == 0 ? 0 : -ENOMEM;
}

static int timer_start(struct ask *a) {
        struct timeval tv = { .tv_sec = a->config->timeout_ms / 1000, .tv_usec = a->config->timeout_ms % 1000 * 1000L };

        return event_add(a->timer, &tv) == 0 ? 0 : -ENOMEM;
}

static void on_udp(int fd, short what, void *arg);
static void tcp_start(struct ask *a);

static int udp_send(struct ask *a) {
        uint8_t packet[REPLY_QUESTION_MAX];
        int n, r = socket_open(a, SOCK_DGRAM);

        if (r < 0)
                return r;
        n = reply_ask(&a->question, packet);
        if (n < 0)
                return n;
        if (send(a->fd, packet, (size_t) n, MSG_NOSIGNAL) != n)
                return -EIO;
        r = watch(a, EV_READ, on_udp);
        return r < 0 ? r : timer_start(a);
}

/* Tries servers until one can be asked, or says that there is none. */
static void attempt(struct ask *a) {
        unsigned all = a->config->tries * (unsigned) a->config->n_servers;

        for (; a->attempt < all; a->attempt++) {
                if (udp_send(a) == 0)
                        return;
                a->worst = -EIO;
                attempt_end(a);
        }
        finish(a, a->worst, NULL);
}

static void attempt_failed(struct ask *a, int code) {
        a->worst = code;
        attempt_end(a);
        a->attempt++;
        attempt(a);
}

static void on_timer(int fd, short what, void *arg) {
        struct ask *a = arg;

        (void) fd;
        (void) what;
        if (a->io)
                attempt_failed(a, a->worst == -EIO ? -EIO : -ETIMEDOUT);
        else
                attempt(a);
}

/* Whether the reply ended the attempt. */
static bool take(struct ask *a, const void *p, size_t n) {
        struct reply rep;
        int code = reply_decode(p, n, &a->question, &rep);

        if (code == -EAGAIN && ++a->junk < JUNK_MAX && !a->in)
                return false;
        if (code == 0 || code == -ENOENT || code == -ENODATA)
                finish(a, code, code == 0 ? &rep : NULL);
        else if (code == -EMSGSIZE && !a->in)
                tcp_start(a);
        else
                attempt_failed(a, -EIO);
        return true;
}

static void on_tcp_read(int fd, short what, void *arg) {
        struct ask *a = arg;
        size_t want = 2;
        ssize_t got;

        (void) what;
        for (;;) {
                if (a->n_in >= 2)
                        want = 2 + (size_t) (a->in[0] << 8 | a->in[1]);
                if (want > 2 + REPLY_MAX) {
                        attempt_failed(a, -EIO);
                        return;
                }
                if (a->n_in >= 2 && a->n_in == want) {
                        (void) take(a, a->in + 2, want - 2);
                        return;
                }
                got = recv(fd, a->in + a->n_in, want - a->n_in, 0);
                if (got < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (got <= 0) {
                        attempt_failed(a, -EIO);
                        return;
                }
                a->n_in += (size_t) got;
        }
}

static void on_tcp_write(int fd, short what, void *arg) {
        struct ask *a = arg;
        uint8_t packet[2 + REPLY_QUESTION_MAX];
        int n = reply_ask(&a->question, packet + 2);

        (void) what;
        if (n >= 0) {
                packet[0] = (uint8_t) (n >> 8);
                packet[1] = (uint8_t) n;
        }
        /* A new connection takes these few bytes at once, or it has failed. */
        if (n < 0 || send(fd, packet, (size_t) n + 2, MSG_NOSIGNAL) != n + 2 || watch(a, EV_READ, on_tcp_read) < 0)
                attempt_failed(a, -EIO);
}

static void tcp_start(struct ask *a) {
        attempt_end(a);
        a->in = malloc(2 + REPLY_MAX);
        if (!a->in || socket_open(a, SOCK_STREAM) < 0 || watch(a, EV_WRITE, on_tcp_write) < 0 || timer_start(a) < 0)
                attempt_failed(a, -EIO);
}

static void on_udp(int fd, short what, void *arg) {
        struct ask *a = arg;
        uint8_t packet[4096];

        (void) what;
        for (;;) {
                ssize_t n = recv(fd, packet, sizeof(packet), 0);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n < 0) {
                        attempt_failed(a, -EIO); /* nobody listens there */
                        return;
                }
                if (take(a, packet, (size_t) n))
                        return;
        }
}

int ask_new(struct event_base *base, const struct dns_config *c, const char *name, uint16_t type, ask_done_fn done,
            void *arg, struct ask **ret) {
        struct ask *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        a->base = base;
        a->config = c;
        a->question = (struct reply_question){ .type = type, .name = name };
        a->done = done;
        a->arg = arg;
        a->fd = -1;
        a->worst = c->n_servers > 0 ? -ETIMEDOUT : -EIO;
        a->timer = event_new(base, -1, 0, on_timer, a);
        if (!a->timer) {
                free(a);
                return -ENOMEM;
        }
        event_active(a->timer, EV_TIMEOUT, 0);
        *ret = a;
        return 0;
}

struct ask *ask_free(struct ask *a) {
        if (!a)
                return NULL;
        attempt_end(a);
        event_free(a->timer);
        free(a);
        return NULL;
}
