/*
 * agent.c - connections to agents. See agent.h.
 *
 * Invariant: bytes from an agent are hostile. A frame is looked at only when it is whole, at most frame_max bytes are
 * ever held, and the first frame that is wrong ends the connection. Nothing is freed but from the top of the loop.
 */
#include "envd/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "agentproto/agentproto.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/limits.h"
#include "envd/state.h"

struct agent {
        TAILQ_ENTRY(agent) link; /* owned by its owner, or by the list of the dead */
        struct envd *envd;
        struct bufferevent *bev; /* NULL: nowhere, or taken */
        const struct agent_ops *ops;
        void *data;
        bool paused, dead, full;
};

/* One loop, one thread: a frame in each direction is under way at most. */
static uint8_t in_frame[AP_FRAME_MAX], out_frame[AP_FRAME_MAX];

static void bury(struct agent *a) {
        a->dead = true;
        if (a->bev) {
                bufferevent_setcb(a->bev, NULL, NULL, NULL, NULL);
                (void) bufferevent_disable(a->bev, EV_READ | EV_WRITE);
        }
        TAILQ_INSERT_TAIL(&a->envd->dead, a, link);
        event_active(a->envd->reaper, EV_TIMEOUT, 0);
}

static void go_down(struct agent *a, const struct err *err) {
        if (a->dead)
                return;
        bury(a);
        a->ops->on_down(a->data, err);
}

static void fail(struct agent *a, int r, const char *why) {
        struct err err = { 0 };

        (void) err_set(&err, r, ERR_PEER, "%s", why);
        go_down(a, &err);
}

/* The next frame into in_frame. 1, 0: not whole yet, -EPROTO. */
static int next_frame(struct agent *a, struct evbuffer *in, struct ap_head *head) {
        uint8_t start[AP_HEAD];
        struct rd length = rd_from(start, sizeof(uint32_t));
        size_t n = evbuffer_get_length(in);
        int r;

        if (evbuffer_copyout(in, start, sizeof(start)) < (ev_ssize_t) sizeof(start))
                return 0;
        r = ap_frame(start, sizeof(start), head);
        if (r < 0)
                return -EPROTO;
        if (r == 0) /* longer than its head, which says how long */
                head->length = (uint32_t) (rd_u32(&length) + sizeof(uint32_t));
        if (head->length > a->ops->frame_max)
                return -EPROTO;
        if (n < head->length)
                return 0;
        (void) evbuffer_remove(in, in_frame, head->length);
        return ap_frame(in_frame, head->length, head) == 1 ? 1 : -EPROTO;
}

void agent_feed(struct agent *a, struct evbuffer *in) {
        while (!a->dead && !a->paused) {
                struct ap_head head = { 0 };
                struct err err = { 0 };
                int r = next_frame(a, in, &head);

                if (r == 0)
                        return;
                if (r < 0) {
                        fail(a, r, "malformed frame");
                        return;
                }
                r = a->ops->on_frame(a->data, &head, in_frame + AP_HEAD, head.length - AP_HEAD, &err);
                if (r < 0 && !a->dead) {
                        err.code = -EPROTO;
                        go_down(a, &err);
                }
        }
}

static void on_input(struct bufferevent *bev, void *arg) {
        agent_feed(arg, bufferevent_get_input(bev));
}

static void on_output(struct bufferevent *bev, void *arg) {
        struct agent *a = arg;

        (void) bev;
        if (!a->full)
                return;
        a->full = false;
        if (a->ops->on_room)
                a->ops->on_room(a->data);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        struct agent *a = arg;

        if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
                return;
        a->paused = false; /* what has come counts */
        agent_feed(a, bufferevent_get_input(bev));
        fail(a, -ECONNRESET, "the agent closed the connection");
}

int agent_open_nowhere(struct envd *e, const struct agent_ops *ops, void *data, struct agent **ret) {
        struct agent *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        *a = (struct agent){ .envd = e, .ops = ops, .data = data };
        *ret = a;
        return 0;
}

static int open_socket(const char *path, struct err *err) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r = fd < 0 ? -errno : str_copy(addr.sun_path, sizeof(addr.sun_path), path);

        if (r == 0 && connect(fd, (struct sockaddr *) &addr, sizeof(addr)) < 0)
                r = -errno;
        if (r < 0) /* the path is ours: that nothing is there says nothing of what the client asked for */
                return err_set(err, r == -EAGAIN ? r : -ECONNREFUSED, ERR_BUSY, "connect to the agent: %s",
                               strerrorname_np(-r));
        return TAKE_FD(fd);
}

int agent_open(struct envd *e, const char *path, const struct agent_ops *ops, void *data, struct agent **ret,
               struct err *err) {
        AUTO_FREE struct agent *a = NULL;
        int fd = open_socket(path, err);

        if (fd < 0)
                return fd;
        if (agent_open_nowhere(e, ops, data, &a) == 0)
                a->bev = bufferevent_socket_new(e->config.base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        if (!a || !a->bev) {
                (void) close(fd);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "connection to the agent");
        }
        bufferevent_setcb(a->bev, on_input, on_output, on_event, a);
        bufferevent_setwatermark(a->bev, EV_READ, 0, ops->frame_max);
        bufferevent_setwatermark(a->bev, EV_WRITE, ENVD_AGENT_LOW, 0);
        (void) bufferevent_enable(a->bev, EV_READ | EV_WRITE);
        *ret = TAKE_PTR(a);
        return 0;
}

struct agent *agent_close(struct agent *a) {
        if (a && !a->dead)
                bury(a);
        return NULL;
}

void agent_own(struct agent *a, const struct agent_ops *ops, void *data) {
        a->ops = ops;
        a->data = data;
}

struct wr agent_frame(void) {
        return wr_to(out_frame, sizeof(out_frame));
}

/* Whoever writes asks agent_is_full() before anything long; what still gathers is short, or the agent reads nothing. */
static bool has_room(struct agent *a, size_t n) {
        if (a->dead || !a->bev)
                return false;
        if (evbuffer_get_length(bufferevent_get_output(a->bev)) + n <= ENVD_AGENT_MAX)
                return true;
        /* Not at once: the caller is in the middle of something that on_down() would end. */
        bufferevent_trigger_event(a->bev, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
        return false;
}

bool agent_send(struct agent *a, const struct wr *w) {
        if (w->bad)
                return false;
        if (has_room(a, w->len)) {
                ssize_t n = 0;

                /* At once if nothing waits; what is not taken, for whatever reason, is libevent's. */
                if (evbuffer_get_length(bufferevent_get_output(a->bev)) == 0)
                        n = send(bufferevent_getfd(a->bev), w->p, w->len, MSG_DONTWAIT | MSG_NOSIGNAL);
                n = n < 0 ? 0 : n;
                if ((size_t) n < w->len)
                        (void) bufferevent_write(a->bev, w->p + n, w->len - (size_t) n);
        }
        return true;
}

void agent_send_bytes(struct agent *a, unsigned type, uint32_t id, struct evbuffer *from, size_t n) {
        uint8_t head[AP_HEAD];

        ap_head_put(head, type, id, n);
        if (!has_room(a, n + sizeof(head))) {
                (void) evbuffer_drain(from, n);
                return;
        }
        (void) bufferevent_write(a->bev, head, sizeof(head));
        (void) evbuffer_remove_buffer(from, bufferevent_get_output(a->bev), n);
}

bool agent_is_full(struct agent *a) {
        bool full = a->bev && evbuffer_get_length(bufferevent_get_output(a->bev)) >= ENVD_AGENT_HIGH;

        a->full |= full;
        return full;
}

void agent_pause(struct agent *a) {
        a->paused = true; /* reading stops by itself at the watermark */
}

void agent_resume(struct agent *a) {
        if (!a->paused)
                return;
        a->paused = false;
        if (a->bev && !a->dead)
                bufferevent_trigger(a->bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_OPT_DEFER_CALLBACKS);
}

struct bufferevent *agent_take(struct agent *a) {
        struct bufferevent *bev = TAKE_PTR(a->bev);

        bufferevent_setcb(bev, NULL, NULL, NULL, NULL);
        bufferevent_setwatermark(bev, EV_READ | EV_WRITE, 0, 0);
        (void) agent_close(a);
        return bev;
}

void agent_reap(struct envd *e) {
        struct agent *a;

        while ((a = TAILQ_FIRST(&e->dead))) {
                TAILQ_REMOVE(&e->dead, a, link);
                if (a->bev)
                        bufferevent_free(a->bev);
                free(a);
        }
}
