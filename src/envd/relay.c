/*
 * relay.c - raw streams between a client and a port of a sandbox, after an upgrade. See relay.h.
 *
 * Each side is read only while the other has room; the end of one direction is passed on as such. When both have ended,
 * or one has failed, it is over.
 */
#include "envd/relay.h"

#include <stdlib.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

struct relay {
        TAILQ_ENTRY(relay) link;
        struct envd_box *box;
        struct side {
                struct relay *relay;
                struct bufferevent *bev;
                bool eof;  /* nothing comes from here any more */
                bool shut; /* and nothing is sent to it */
        } sides[2];
        struct event *reaper;
};

static struct side *other(struct side *s) {
        return &s->relay->sides[s == &s->relay->sides[0]];
}

static void relay_free(struct relay *r) {
        TAILQ_REMOVE(&r->box->relays, r, link);
        r->box->n_relays--;
        bufferevent_free(r->sides[0].bev);
        bufferevent_free(r->sides[1].bev);
        event_free(r->reaper);
        free(r);
}

static void on_reap(int fd, short what, void *arg) {
        struct relay *r = arg;
        struct envd_box *box = r->box;

        (void) fd, (void) what;
        relay_free(r);
        envd_box_count(box);
}

static void end(struct relay *r) {
        event_active(r->reaper, EV_TIMEOUT, 0);
}

/* Passes on the end of `from`, once everything before it was sent. */
static void settle(struct side *from) {
        struct side *to = other(from);

        if (!from->eof || to->shut || evbuffer_get_length(bufferevent_get_output(to->bev)) > 0)
                return;
        to->shut = true;
        if (bufferevent_getfd(to->bev) < 0 || bufferevent_get_underlying(to->bev) ||
            shutdown(bufferevent_getfd(to->bev), SHUT_WR) < 0 || from->shut)
                end(from->relay); /* a transport that cannot be closed one way is closed */
}

static void move(struct side *from) {
        struct evbuffer *out = bufferevent_get_output(other(from)->bev);

        (void) bufferevent_write_buffer(other(from)->bev, bufferevent_get_input(from->bev));
        if (evbuffer_get_length(out) >= ENVD_RELAY)
                (void) bufferevent_disable(from->bev, EV_READ);
}

static void on_read(struct bufferevent *bev, void *arg) {
        (void) bev;
        move(arg);
}

static void on_written(struct bufferevent *bev, void *arg) {
        struct side *to = arg, *from = other(to);

        (void) bev;
        if (!from->eof)
                (void) bufferevent_enable(from->bev, EV_READ);
        settle(from);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct side *s = arg;

        (void) bev;
        if (what & BEV_EVENT_ERROR) {
                end(s->relay);
        } else if (what & BEV_EVENT_EOF) {
                move(s);
                s->eof = true;
                settle(s);
        }
}

void relay_new(struct envd_box *box, struct bufferevent *client, struct bufferevent *inside) {
        struct relay *r = calloc(1, sizeof(*r));

        if (r)
                r->reaper = evtimer_new(box->envd->config.base, on_reap, r);
        if (!r || !r->reaper) {
                free(r);
                bufferevent_free(client);
                bufferevent_free(inside);
                return;
        }
        r->box = box;
        TAILQ_INSERT_TAIL(&box->relays, r, link);
        box->n_relays++;
        for (int i = 0; i < 2; i++) {
                struct side *s = &r->sides[i];

                *s = (struct side){ .relay = r, .bev = i == 0 ? client : inside };
                bufferevent_setcb(s->bev, on_read, on_written, on_event, s);
                bufferevent_setwatermark(s->bev, EV_READ, 0, ENVD_RELAY);
                bufferevent_setwatermark(s->bev, EV_WRITE, 0, 0);
                (void) bufferevent_enable(s->bev, EV_READ | EV_WRITE);
        }
        for (int i = 0; i < 2; i++) /* what has come before */
                move(&r->sides[i]);
        envd_box_count(box);
}

void relay_drop(struct envd_box *box) {
        while (!TAILQ_EMPTY(&box->relays))
                relay_free(TAILQ_FIRST(&box->relays));
}
