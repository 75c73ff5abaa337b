/* pair.c - see pair.h. */
#include "pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/own.h"

void pair_start(struct pair *p) {
        memset(p, 0, sizeof(*p));
        p->base = event_base_new();
        if (!p->base || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p->fds) < 0)
                abort();
}

void pair_done(struct pair *p) {
        if (p->server.bev)
                bufferevent_free(p->server.bev);
        if (p->client.bev)
                bufferevent_free(p->client.bev);
        for (int i = 0; i < 2; i++)
                if (p->fds[i] >= 0)
                        (void) close(p->fds[i]);
        event_base_free(p->base);
}

struct bufferevent *pair_plain(struct pair *p, int which) {
        struct bufferevent *bev = bufferevent_socket_new(p->base, p->fds[which], BEV_OPT_CLOSE_ON_FREE);

        if (!bev)
                abort();
        p->fds[which] = -1;
        return bev;
}

static void on_read(struct bufferevent *bev, void *arg) {
        struct evbuffer *in = bufferevent_get_input(bev);
        struct end *e = arg;
        char b[4096];
        int n;

        while ((n = evbuffer_remove(in, b, sizeof(b))) > 0) {
                if (e->n_read < sizeof(e->first) - 1) {
                        size_t room = sizeof(e->first) - 1 - e->n_read;

                        memcpy(e->first + e->n_read, b, (size_t) n < room ? (size_t) n : room);
                }
                e->n_read += (size_t) n;
        }
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct end *e = arg;

        if (what & BEV_EVENT_CONNECTED) {
                e->connected = true;
                strncpy(e->version, tls_version(bev), sizeof(e->version) - 1);
        }
        if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
                on_read(bev, arg);
                e->over = true;
                (void) tls_error(bev, what, &e->err);
        }
}

void pair_watch(struct end *e, struct bufferevent *bev) {
        e->bev = bev;
        bufferevent_setcb(bev, on_read, NULL, on_event, e);
        (void) bufferevent_enable(bev, EV_READ | EV_WRITE);
}

void pair_serve(struct pair *p, struct tls_mint *m, const char *name) {
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        if (tls_accept(m, pair_plain(p, 0), name, &bev, &err) < 0)
                abort();
        pair_watch(&p->server, bev);
}

void pair_dial(struct pair *p, struct tls_client *c, const char *name) {
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        if (tls_connect(c, pair_plain(p, 1), name, &bev, &err) < 0)
                abort();
        pair_watch(&p->client, bev);
}

void end_say(struct end *e, const char *text) {
        if (bufferevent_write(e->bev, text, strlen(text)) < 0)
                abort();
}

static bool is_settled(const struct pair *p, size_t n_read) {
        const struct end *s = &p->server, *c = &p->client;

        if (s->n_read >= n_read || c->n_read >= n_read)
                return (s->connected || s->over || !s->bev) && (c->connected || c->over || !c->bev);
        return (s->over || !s->bev) && (c->over || !c->bev);
}

void pair_run(struct pair *p, size_t n_read) {
        for (int i = 0; i < 200 && !is_settled(p, n_read); i++)
                pair_idle(p, 10);
}

void pair_idle(struct pair *p, unsigned ms) {
        struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

        (void) event_base_loopexit(p->base, &tv);
        (void) event_base_dispatch(p->base);
}
