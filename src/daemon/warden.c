/*
 * warden.c - see warden.h.
 *
 * States: away (no socket, a timer), agreeing (connected; only the comparison may ask), up. Replies may come in any
 * order; each carries the serial of its request. Whatever the warden says is checked, and a message that makes no sense
 * ends the connection, not this process.
 */
#include "daemon/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/wr.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/metrics.h"
#include "daemon/reconcile.h"
#include "ipc/ipc.h"
#include "json/json.h"

enum { RETRY_MS = 300, SERIAL_EVENTS = 1, FDS = 3 };

enum link_state { LINK_AWAY, LINK_AGREEING, LINK_UP };

struct ask {
        TAILQ_ENTRY(ask) link;
        enum wp_type type;
        uint32_t serial;
        warden_fn fn;
        void *arg;
        struct err err; /* when it has failed */
        int fds[FDS];   /* to be sent */
        size_t n_fds, n;
        uint8_t bytes[]; /* the message */
};
TAILQ_HEAD(ask_list, ask);

struct warden {
        struct daemon *d;
        enum link_state state;
        int fd;
        struct event *readable, *writable, *timer, *failing;
        struct ask_list to_send, sent, failed;
        uint32_t serial;
        void (*on_up)(struct daemon *d);
        bool was_up, said;
};

bool warden_is_up(const struct warden *w) {
        return w->state == LINK_UP;
}

static void ask_free(struct ask *a) {
        for (size_t i = 0; i < a->n_fds; i++)
                own_closep(&a->fds[i]);
        free(a);
}

/* The callback comes from the top of the loop, so that nobody is called back from inside its own call. */
static void ask_fail(struct warden *w, struct ask *a, int code, const char *why) {
        (void) err_set(&a->err, code, ERR_BUSY, "%s", why);
        TAILQ_INSERT_TAIL(&w->failed, a, link);
        event_active(w->failing, EV_TIMEOUT, 0);
}

static void fail_list(struct warden *w, struct ask_list *list, int code, const char *why) {
        struct ask *a;

        while ((a = TAILQ_FIRST(list))) {
                TAILQ_REMOVE(list, a, link);
                ask_fail(w, a, code, why);
        }
}

static void on_failing(int fd, short what, void *arg) {
        struct warden *w = arg;
        struct ask_list now = TAILQ_HEAD_INITIALIZER(now);
        struct ask *a;

        (void) fd, (void) what;
        TAILQ_CONCAT(&now, &w->failed, link); /* what a callback asks, and fails too, comes with the next turn */
        while ((a = TAILQ_FIRST(&now))) {
                TAILQ_REMOVE(&now, a, link);
                a->fn(a->arg, &a->err, NULL);
                ask_free(a);
        }
}

static void retry_later(struct warden *w) {
        static const struct timeval soon = { .tv_usec = RETRY_MS * 1000L };

        (void) event_add(w->timer, &soon);
}

static void hang_up(struct warden *w, const char *why) {
        struct json *more;

        if (w->state == LINK_AWAY)
                return;
        if (w->was_up) {
                more = json_new_object();
                json_set_str(more, "why", why);
                log_write(&w->d->log, LOG_ERROR, "the warden is gone", more);
                metrics_count(w->d->metrics, METRIC_WARDEN_LOST);
        }
        w->state = LINK_AWAY;
        w->was_up = false;
        (void) event_del(w->readable);
        (void) event_del(w->writable);
        (void) close(TAKE_FD(w->fd));
        fail_list(w, &w->to_send, -EPIPE, "the warden has gone away");
        fail_list(w, &w->sent, -EPIPE, "the warden has gone away");
        retry_later(w);
}

static void flush(struct warden *w) {
        struct ask *a;

        while (w->state != LINK_AWAY && (a = TAILQ_FIRST(&w->to_send))) {
                int r = ipc_send(w->fd, a->bytes, a->n, a->fds, a->n_fds);

                if (r == -EAGAIN) {
                        (void) event_add(w->writable, NULL);
                        return;
                }
                if (r < 0) {
                        hang_up(w, strerror(-r));
                        return;
                }
                for (; a->n_fds > 0; a->n_fds--)
                        own_closep(&a->fds[a->n_fds - 1]);
                TAILQ_REMOVE(&w->to_send, a, link);
                TAILQ_INSERT_TAIL(&w->sent, a, link);
        }
}

static void on_writable(int fd, short what, void *arg) {
        (void) fd, (void) what;
        flush(arg);
}

/* --- what comes --- */

static int decode(const struct ask *a, struct ipc_msg *m, struct warden_reply *ret) {
        static struct wp_records records; /* large, and one reply is served at a time */

        ret->fd = -1;
        switch (a->type) {
        case WP_CREATE:
        case WP_CREATE_NET:
                ret->fd = m->n_fds == 1 ? m->fds[0] : -1;
                return wp_get_created(&m->body, &ret->created);
        case WP_KILL:
                return wp_get_end(&m->body, &ret->end);
        case WP_USAGE:
                return wp_get_usage(&m->body, &ret->usage);
        case WP_LIST:
                return wp_get_list(&m->body, &ret->list);
        case WP_CHECK:
                return wp_get_check(&m->body, &ret->check);
        case WP_EVIDENCE:
                ret->fd = m->n_fds == 1 ? m->fds[0] : -1;
                return ret->fd >= 0 && rd_done(&m->body) ? 0 : -EBADMSG;
        case WP_STATEMENT:
                ret->fd = m->n_fds == 1 ? m->fds[0] : -1;
                return ret->fd >= 0 ? wp_get_hashes(&m->body, &ret->hashes) : -EBADMSG;
        case WP_FREEZE:
        case WP_THAW:
        case WP_LAUNCH:
        case WP_POOL:
        case WP_POOL_NET:
                return rd_done(&m->body) ? 0 : -EBADMSG;
        case WP_NETWORK:
                return wp_get_hash(&m->body, ret->policy);
        case WP_RECORDS:
                ret->records = &records;
                return wp_get_records(&m->body, &records);
        case WP_SUBSCRIBE:
        case WP_STATUS:
        case WP_TYPES:
                break;
        }
        return -EBADMSG;
}

static int on_event(struct warden *w, struct ipc_msg *m) {
        struct wp_event e;
        struct err err = { 0 };

        if (ipc_result(m, SERIAL_EVENTS, &err) < 0 || wp_get_event(&m->body, &e) < 0)
                return -EBADMSG;
        box_on_event(w->d, &e);
        return 0;
}

static int on_reply(struct warden *w, struct ipc_msg *m) {
        struct rd head = rd_from(m->bytes, m->n);
        struct warden_reply reply;
        struct err err = { 0 };
        uint32_t serial;
        struct ask *a;
        int r;

        (void) rd_u16(&head);
        serial = rd_u32(&head);
        if (serial == SERIAL_EVENTS)
                return on_event(w, m);
        TAILQ_FOREACH(a, &w->sent, link)
        if (a->serial == serial)
                break;
        if (!a)
                return -EBADMSG;
        r = ipc_result(m, serial, &err);
        if (r == 0 && decode(a, m, &reply) < 0)
                return -EBADMSG;
        TAILQ_REMOVE(&w->sent, a, link);
        a->fn(a->arg, r < 0 ? &err : NULL, r < 0 ? NULL : &reply);
        ask_free(a);
        return 0;
}

static void on_readable(int fd, short what, void *arg) {
        struct warden *w = arg;
        struct ipc_msg m;
        int r;

        (void) fd, (void) what;
        while (w->state != LINK_AWAY) {
                r = ipc_recv(w->fd, &m);
                if (r == -EAGAIN)
                        return;
                if (r == 1)
                        r = on_reply(w, &m) < 0 ? -EBADMSG : 1;
                if (r >= 0)
                        ipc_msg_done(&m);
                if (r != 1)
                        hang_up(w, r == 0 ? "it closed the connection" : strerror(-r));
        }
}

/* --- connecting --- */

static struct ask *ask_new(struct warden *w, enum wp_type type, const struct wr *body, warden_fn fn, void *arg) {
        struct ask *a = calloc(1, sizeof(*a) + IPC_HEAD + body->len);
        struct wr head;

        if (!a)
                return NULL;
        if (++w->serial <= SERIAL_EVENTS)
                w->serial = SERIAL_EVENTS + 1;
        a->type = type;
        a->serial = type == WP_SUBSCRIBE ? SERIAL_EVENTS : w->serial;
        a->fn = fn;
        a->arg = arg;
        head = wr_to(a->bytes, IPC_HEAD + body->len);
        ipc_begin(&head, (uint16_t) type, a->serial);
        wr_bytes(&head, body->p, body->len);
        a->n = head.len;
        return a;
}

static int subscribe(struct warden *w) {
        struct wr none = wr_to(NULL, 0);
        struct ask *a = ask_new(w, WP_SUBSCRIBE, &none, NULL, NULL);
        int r = a ? ipc_send(w->fd, a->bytes, a->n, NULL, 0) : -ENOMEM;

        free(a);
        return r;
}

static int check_peer(int fd, struct err *err) {
        struct ipc_peer peer;
        int r = ipc_peer_get(fd, &peer, err);

        if (r == 0 && peer.uid != 0)
                r = err_set(err, -EPERM, ERR_PEER, "the warden's socket belongs to user %u, not to root",
                            (unsigned) peer.uid);
        return r;
}

static void on_timer(int fd, short what, void *arg) {
        struct warden *w = arg;
        struct err err = { 0 };
        AUTO_FD int s = ipc_connect(w->d->config.warden, &err);
        int r = s < 0 ? s : check_peer(s, &err);

        (void) fd, (void) what;
        if (r == 0 && fcntl(s, F_SETFL, O_NONBLOCK) < 0)
                r = err_set(&err, -errno, ERR_INTERNAL, "warden: %s", strerror(errno));
        if (r == 0) {
                w->fd = TAKE_FD(s);
                r = event_assign(w->readable, w->d->base, w->fd, EV_READ | EV_PERSIST, on_readable, w);
                r = r < 0 ? r : event_assign(w->writable, w->d->base, w->fd, EV_WRITE, on_writable, w);
                r = r < 0 ? r : event_add(w->readable, NULL);
                r = r < 0 ? r : subscribe(w);
                if (r < 0) {
                        (void) event_del(w->readable);
                        (void) close(TAKE_FD(w->fd));
                        (void) err_set(&err, -EIO, ERR_INTERNAL, "warden: cannot be asked");
                }
        }
        if (r < 0) {
                if (!w->said)
                        log_error(&w->d->log, "the warden cannot be reached; trying on", &err);
                w->said = true;
                retry_later(w);
                return;
        }
        w->said = false;
        w->state = LINK_AGREEING;
        reconcile_start(w->d->reconcile);
}

void warden_agreed(struct warden *w, const struct err *failed) {
        if (w->state != LINK_AGREEING)
                return;
        if (failed) {
                log_error(&w->d->log, "the warden and the store do not agree", failed);
                hang_up(w, failed->msg);
                return;
        }
        w->state = LINK_UP;
        w->was_up = true;
        log_write(&w->d->log, LOG_INFO, "the warden is there", NULL);
        w->on_up(w->d);
}

int warden_new(struct daemon *d, void (*on_up)(struct daemon *d), struct warden **ret, struct err *err) {
        static const struct timeval now = { 0 };
        struct warden *w = calloc(1, sizeof(*w));

        if (!w)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "warden");
        w->d = d;
        w->on_up = on_up;
        w->fd = -1;
        w->serial = SERIAL_EVENTS;
        TAILQ_INIT(&w->to_send);
        TAILQ_INIT(&w->sent);
        TAILQ_INIT(&w->failed);
        w->readable = event_new(d->base, -1, 0, on_readable, w);
        w->writable = event_new(d->base, -1, 0, on_writable, w);
        w->timer = evtimer_new(d->base, on_timer, w);
        w->failing = evtimer_new(d->base, on_failing, w);
        if (!w->readable || !w->writable || !w->timer || !w->failing || event_add(w->timer, &now) < 0) {
                (void) warden_free(w);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "warden");
        }
        *ret = w;
        return 0;
}

struct warden *warden_free(struct warden *w) {
        if (!w)
                return NULL;
        w->was_up = false;
        if (w->failing) {
                fail_list(w, &w->to_send, -ECANCELED, "the service is stopping");
                fail_list(w, &w->sent, -ECANCELED, "the service is stopping");
                on_failing(-1, 0, w);
        }
        for (size_t i = 0; i < 4; i++) {
                struct event *e[] = { w->readable, w->writable, w->timer, w->failing };

                if (e[i])
                        event_free(e[i]);
        }
        own_closep(&w->fd);
        free(w);
        return NULL;
}

/* --- asking --- */

void warden_send(struct warden *w, enum wp_type type, const struct wr *body, const int *fds, size_t n_fds, warden_fn fn,
                 void *arg) {
        struct ask *a = ask_new(w, type, body, fn, arg);
        static const struct err no_memory = { .code = -ENOMEM, .kind = ERR_INTERNAL, .msg = "out of memory" };

        if (!a) {
                for (size_t i = 0; i < n_fds; i++)
                        own_closep(&fds[i]);
                fn(arg, &no_memory, NULL); /* the one case in which nothing can be put off */
                return;
        }
        for (; a->n_fds < n_fds; a->n_fds++)
                a->fds[a->n_fds] = fds[a->n_fds];
        if (body->bad) {
                ask_fail(w, a, -EMSGSIZE, "the request does not fit a message");
        } else if (w->state == LINK_AWAY) {
                ask_fail(w, a, -ECONNREFUSED, "the warden is not there");
        } else {
                TAILQ_INSERT_TAIL(&w->to_send, a, link);
                flush(w);
        }
}
