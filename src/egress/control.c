/*
 * control.c - see control.h.
 *
 * One queue for answers and records, so that the answer to EGP_REMOVE stands behind the last record of its sandbox.
 * Nothing in it is ever dropped; whoever fills it asks control_waiting() and stops taking work.
 */
#include "egress/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "egress/limits.h"
#include "ipc/ipc.h"

enum { REQUESTS_PER_TURN = 16, BATCH = 32, LATER_US = 10 * 1000 };

struct item {
        STAILQ_ENTRY(item) link;
        struct control_source *from; /* NULL: an answer, or its source is gone */
        bool is_record;
        size_t n, n_fds;
        int fds[EGP_FDS_MAX];
        uint8_t bytes[];
};

struct control {
        int fd;
        struct event *readable, *writable, *later;
        STAILQ_HEAD(, item) queue;
        size_t n_records;
        const struct control_ops *ops;
        void *arg;
        bool ended;
        bool corked; /* a request is being served: nothing is sent before it is done with */
};

static void item_free(struct item *i) {
        for (size_t k = 0; k < i->n_fds; k++)
                own_closep(&i->fds[k]);
        free(i);
}

static void end(struct control *c, const struct err *err) {
        if (c->ended)
                return;
        c->ended = true;
        (void) event_del(c->readable);
        (void) event_del(c->writable);
        (void) event_del(c->later);
        c->ops->on_end(c->arg, err);
}

/* Sends what the socket takes. */
static void flush(struct control *c) {
        struct item *i;
        bool drained = false;

        while (!c->ended && (i = STAILQ_FIRST(&c->queue))) {
                int r = ipc_send(c->fd, i->bytes, i->n, i->fds, i->n_fds);

                if (r == -EAGAIN) {
                        (void) event_add(c->writable, NULL);
                        break;
                }
                if (r < 0) {
                        end(c, NULL);
                        break;
                }
                STAILQ_REMOVE_HEAD(&c->queue, link);
                if (i->is_record) {
                        c->n_records--;
                        drained = true;
                }
                if (i->from)
                        i->from->waiting--;
                item_free(i);
        }
        if (drained && !c->ended)
                c->ops->on_drained(c->arg);
}

/* The socket can take more, or records have waited long enough for company. */
static void on_writable(evutil_socket_t fd, short what, void *arg) {
        (void) fd;
        (void) what;
        flush(arg);
}

/* One request. False: no more now. */
static bool serve(struct control *c) {
        struct ipc_msg msg;
        struct egp_message m;
        struct err err = { 0 };
        int r = ipc_recv(c->fd, &msg);

        c->corked = r > 0;

        if (r == -EAGAIN)
                return false;
        if (r == 0) {
                end(c, NULL);
                return false;
        }
        if (r < 0 || egp_get(msg.bytes, msg.n, &m) < 0 || m.type >= EGP_READY || !egp_n_fds(&m, msg.n_fds))
                r = err_set(&err, -EBADMSG, ERR_PEER, "control socket: malformed message");
        else
                r = c->ops->on_request(c->arg, &m, msg.fds, &err);
        /* Its answer goes out when nothing of it is left here: whoever hears "failed" may try the same sockets again.
         */
        ipc_msg_done(&msg);
        c->corked = false;
        flush(c);
        if (r < 0)
                end(c, &err);
        return r >= 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
        struct control *c = arg;

        (void) fd;
        (void) what;
        for (unsigned i = 0; i < REQUESTS_PER_TURN && !c->ended && serve(c); i++)
                ;
}

int control_new(struct event_base *base, int fd, const struct control_ops *ops, void *arg, struct control **ret,
                struct err *err) {
        struct control *c = calloc(1, sizeof(*c));

        if (!c)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "control socket: out of memory");
        *c = (struct control){ .fd = -1, .ops = ops, .arg = arg };
        STAILQ_INIT(&c->queue);
        c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
        c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
        c->later = event_new(base, -1, 0, on_writable, c);
        if (!c->readable || !c->writable || !c->later || event_priority_set(c->readable, EGRESS_FIRST) < 0 ||
            event_priority_set(c->writable, EGRESS_FIRST) < 0 || event_priority_set(c->later, EGRESS_FIRST) < 0 ||
            fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || event_add(c->readable, NULL) < 0) {
                control_free(c);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "control socket: no event");
        }
        c->fd = fd;
        *ret = c;
        return 0;
}

struct control *control_free(struct control *c) {
        struct item *i;

        if (!c)
                return NULL;
        while ((i = STAILQ_FIRST(&c->queue))) {
                STAILQ_REMOVE_HEAD(&c->queue, link);
                item_free(i);
        }
        if (c->readable)
                event_free(c->readable);
        if (c->writable)
                event_free(c->writable);
        if (c->later)
                event_free(c->later);
        own_closep(&c->fd);
        free(c);
        return NULL;
}

static void push(struct control *c, const struct egp_message *m, const int *fds, size_t n_fds,
                 struct control_source *from, bool urgent) {
        static const struct timeval later = { .tv_usec = LATER_US };
        uint8_t bytes[EGP_MESSAGE_MAX];
        struct wr w = wr_to(bytes, sizeof(bytes));
        struct item *i;

        egp_put(&w, m);
        if (w.bad)
                abort(); /* our own message does not fit our own protocol */
        i = calloc(1, sizeof(*i) + w.len);
        if (!i) {
                struct err err = { 0 };

                /* An attempt that cannot be told must not happen, so the process ends and its sandboxes are cut off. */
                (void) err_set(&err, -ENOMEM, ERR_INTERNAL, "control socket: out of memory");
                end(c, &err);
                return;
        }
        memcpy(i->bytes, bytes, w.len);
        i->n = w.len;
        for (; i->n_fds < n_fds; i->n_fds++)
                i->fds[i->n_fds] = fcntl(fds[i->n_fds], F_DUPFD_CLOEXEC, 0);
        i->from = from;
        i->is_record = m->type == EGP_RECORD;
        if (from)
                from->waiting++;
        c->n_records += i->is_record;
        STAILQ_INSERT_TAIL(&c->queue, i, link);
        if (event_pending(c->writable, EV_WRITE, NULL) || c->ended || c->corked)
                return; /* the socket is full and will tell, or a request is being served */
        /* Each message wakes the supervisor, so what is not urgent waits a little for others. */
        if (urgent || c->n_records >= BATCH)
                flush(c);
        else if (!event_pending(c->later, EV_TIMEOUT, NULL))
                (void) event_add(c->later, &later);
}

void control_answer(struct control *c, const struct egp_message *m, const int *fds, size_t n_fds) {
        push(c, m, fds, n_fds, NULL, true);
}

void control_fail(struct control *c, uint32_t request, const struct err *why) {
        struct egp_message m = { .type = EGP_FAILED, .request = request };

        /* The protocol carries printable text only; a message of ours may quote something that is not. */
        for (size_t i = 0; i + 1 < sizeof(m.text) && why->msg[i]; i++)
                m.text[i] = why->msg[i] < ' ' || why->msg[i] > '~' ? '?' : why->msg[i];
        if (!m.text[0])
                m.text[0] = '?';
        push(c, &m, NULL, 0, NULL, true);
}

void control_record(struct control *c, struct control_source *from, const char *text, bool urgent) {
        const struct egp_message m = { .type = EGP_RECORD, .record = text, .n_record = strlen(text) };

        push(c, &m, NULL, 0, from, urgent);
}

size_t control_waiting(const struct control *c) {
        return c->n_records;
}

void control_forget(struct control *c, const struct control_source *from) {
        struct item *i;

        STAILQ_FOREACH(i, &c->queue, link)
        if (i->from == from)
                i->from = NULL;
}
