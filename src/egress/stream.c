/*
 * stream.c - DNS over TCP (RFC 7766): queries with a length before them, answered in order.
 *
 * A sandbox has at most EGRESS_DNS_STREAMS of these; the oldest goes when one more comes, so that idle ones cannot
 * lock out a client that has something to ask.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/clock.h"
#include "dns/dns.h"
#include "egress/egress.h"
#include "egress/limits.h"
#include "egress/names.h"
#include "egress/sandbox.h"

enum { LENGTH_BYTES = 2, IDLE_S = 10, WAITING_MAX = 64 << 10 };

struct stream {
        TAILQ_ENTRY(stream) link; /* owned by the sandbox's list */
        struct sandbox *sandbox;
        struct bufferevent *bev;
};

/* May be called from its own callbacks: libevent holds a reference to the bufferevent while one runs, and nobody looks
 * at x afterwards. */
void stream_free(struct stream *x) {
        TAILQ_REMOVE(&x->sandbox->streams, x, link);
        x->sandbox->n_streams--;
        bufferevent_free(x->bev);
        free(x);
}

/* One query if it is there whole. 1: answered; 0: not yet; negative: the peer must go. */
static int step(struct stream *x) {
        struct evbuffer *in = bufferevent_get_input(x->bev), *out = bufferevent_get_output(x->bev);
        uint8_t length[LENGTH_BYTES], query[DNS_QUERY_MAX], answer[LENGTH_BYTES + DNS_UDP_MAX];
        size_t n;

        if (evbuffer_copyout(in, length, sizeof(length)) < (ssize_t) sizeof(length))
                return 0;
        n = (size_t) length[0] << 8 | length[1];
        if (n == 0 || n > sizeof(query) || evbuffer_get_length(out) > WAITING_MAX)
                return -EPROTO;
        if (evbuffer_get_length(in) < sizeof(length) + n)
                return 0;
        (void) evbuffer_drain(in, sizeof(length));
        if (evbuffer_remove(in, query, n) != (int) n)
                return -EIO;
        n = names_answer(x->sandbox, query, n, true, answer + LENGTH_BYTES, DNS_UDP_MAX);
        if (n == 0)
                return -EPROTO;
        answer[0] = (uint8_t) (n >> 8);
        answer[1] = (uint8_t) n;
        return evbuffer_add(out, answer, LENGTH_BYTES + n) < 0 ? -ENOMEM : 1;
}

static void on_read(struct bufferevent *bev, void *arg) {
        struct stream *x = arg;
        struct sandbox *s = x->sandbox;
        uint64_t begin = clock_mono_ns(); /* it need not rest: few streams, and queries have a rate of their own */
        int r = 1;

        (void) bev;
        for (unsigned i = 0; i < EGRESS_QUERIES_PER_TURN && r > 0; i++)
                r = step(x);
        /* Whoever sends more than a turn's worth at a time has no need of an answer. */
        if (r != 0)
                stream_free(x);
        sandbox_end(s, begin, NULL);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        (void) bev;
        (void) what;
        stream_free(arg);
}

void names_accept(struct sandbox *s, int fd) {
        static const struct timeval idle = { .tv_sec = IDLE_S };
        struct stream *x = calloc(1, sizeof(*x));

        if (s->n_streams >= EGRESS_DNS_STREAMS)
                stream_free(TAILQ_FIRST(&s->streams));
        if (x)
                x->bev = bufferevent_socket_new(s->egress->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        if (!x || !x->bev) {
                free(x);
                (void) close(fd);
                return;
        }
        x->sandbox = s;
        TAILQ_INSERT_TAIL(&s->streams, x, link);
        s->n_streams++;
        bufferevent_setcb(x->bev, on_read, NULL, on_event, x);
        bufferevent_setwatermark(x->bev, EV_READ, 0, LENGTH_BYTES + DNS_QUERY_MAX);
        (void) bufferevent_priority_set(x->bev, sandbox_priority(s));
        bufferevent_set_timeouts(x->bev, &idle, &idle);
        (void) bufferevent_enable(x->bev, EV_READ | EV_WRITE);
}
