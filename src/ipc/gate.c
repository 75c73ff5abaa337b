/*
 * gate.c - requests and replies.
 *
 * Invariant: a handler sees a request only if the table has it, the peer's state allows it, and its size and number of
 * descriptors are right; and each request has exactly one reply, or the peer is cut off.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "ipc/ipc.h"

static const struct ipc_op *op_find(struct ipc_gate *g, unsigned type, struct rd *body, size_t n_fds, struct err *err) {
        const struct ipc_op *op = type < g->n_ops && type < 32 ? &g->ops[type] : NULL;

        if (body->bad || !op || !op->fn) {
                (void) err_set(err, -EBADMSG, ERR_PEER, "unknown request %u", type);
                return NULL;
        }
        if (!(op->states & BIT(g->state)) || (op->once && (g->used & BIT(type)))) {
                (void) err_set(err, -EPROTO, ERR_PEER, "%s: not allowed now", op->name);
                return NULL;
        }
        if (body->left > op->max_len || n_fds != op->n_fds) {
                (void) err_set(err, -EBADMSG, ERR_PEER, "%s: wrong size or number of descriptors", op->name);
                return NULL;
        }
        g->used |= BIT(type);
        return op;
}

static void put_failure(struct wr *w, const struct err *e) {
        wr_u32(w, (uint32_t) -e->code);
        wr_str(w, e->msg);
}

static void put_head(struct wr *w, const struct err *failed, uint32_t serial) {
        wr_u16(w, failed ? (uint16_t) (1 + failed->kind) : 0);
        wr_u32(w, serial);
}

int ipc_dispatch(struct ipc_gate *g, struct ipc_msg *m, struct wr *reply, int *ret_reply_fd, struct err *err) {
        struct ipc_call call = { .gate = g, .body = rd_from(m->bytes, m->n), .fds = m->fds, .reply_fd = -1 };
        unsigned type = rd_u16(&call.body);
        const struct ipc_op *op;
        struct wr body;
        int r;

        call.serial = rd_u32(&call.body);
        *ret_reply_fd = -1;
        op = op_find(g, type, &call.body, m->n_fds, err);
        if (!op)
                return err->code;
        reply->len = 0;
        put_head(reply, NULL, call.serial);
        body = wr_to(reply->p + reply->len, reply->cap - reply->len);
        call.reply = &body;
        r = op->fn(&call, err);
        if (r == -EPROTO || r == -EBADMSG)
                return r;
        if (r >= 0 && body.bad)
                r = err_set(err, -EMSGSIZE, ERR_INTERNAL, "%s: the reply is too long", op->name);
        if (r < 0) {
                own_closep(&call.reply_fd);
                *reply = wr_to(reply->p, reply->cap);
                put_head(reply, err, call.serial);
                put_failure(reply, err);
                return IPC_REPLY_NOW;
        }
        reply->len += body.len;
        *ret_reply_fd = call.reply_fd;
        return r;
}

int ipc_serve(struct ipc_gate *g, int fd, struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg m;
        uint8_t space[IPC_MAX];
        struct wr reply = wr_to(space, sizeof(space));
        AUTO_FD int reply_fd = -1;
        int r = ipc_recv(fd, &m);

        if (r == 0)
                return 1;
        if (r == -EAGAIN)
                return r;
        if (r < 0)
                return err_set(err, r, ERR_PEER, "request: %s", r == -EBADMSG ? "too long" : strerror(-r));
        r = ipc_dispatch(g, &m, &reply, &reply_fd, err);
        if (r < 0 || r == IPC_REPLY_LATER)
                return r < 0 ? r : 0;
        r = ipc_send(fd, space, reply.len, &reply_fd, reply_fd >= 0);
        if (r == -EPIPE || r == -ECONNRESET)
                return 0; /* it does not wait for the reply; what else it sent is still to be read, and then the end */
        return r < 0 ? err_set(err, r, ERR_PEER, "reply: %s", strerror(-r)) : 0;
}

int ipc_reply(int fd, uint32_t serial, const void *body, size_t n, int with_fd, const struct err *failed) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        put_head(&w, failed, serial);
        if (failed)
                put_failure(&w, failed);
        else
                wr_bytes(&w, body, n);
        return w.bad ? -EMSGSIZE : ipc_send(fd, space, w.len, &with_fd, with_fd >= 0);
}

void ipc_begin(struct wr *w, uint16_t type, uint32_t serial) {
        wr_u16(w, type);
        wr_u32(w, serial);
}

int ipc_result(struct ipc_msg *m, uint32_t serial, struct err *err) {
        struct rd b = rd_from(m->bytes, m->n);
        unsigned status = rd_u16(&b);
        uint32_t given = rd_u32(&b), code;
        char text[sizeof(err->msg)];

        if (b.bad || given != serial || status > 1 + ERR_PEER)
                return err_set(err, -EPROTO, ERR_PEER, "reply: not to what was asked");
        m->body = b;
        if (status == 0)
                return 0;
        code = rd_u32(&b);
        rd_str(&b, text, sizeof(text));
        if (!rd_done(&b) || code == 0 || code > 4095)
                return err_set(err, -EPROTO, ERR_PEER, "reply: malformed failure");
        return err_set(err, -(int) code, (enum err_kind)(status - 1), "%s", text);
}

/* 1 when the socket is ready, 0 when the time is over. */
static int wait_for(int fd, short events, uint64_t until_ns) {
        for (;;) {
                struct pollfd p = { .fd = fd, .events = events };
                uint64_t now = clock_mono_ns();
                int r = now >= until_ns ? 0 : poll(&p, 1, (int) ((until_ns - now + 999999) / 1000000));

                if (r > 0 || (r < 0 && errno != EINTR))
                        return r;
                if (r == 0 && clock_mono_ns() >= until_ns)
                        return 0;
        }
}

int ipc_call(int fd, struct wr *w, const int *fds, size_t n_fds, unsigned deadline_ms, struct ipc_msg *reply,
             struct err *err) {
        static uint32_t last;
        uint64_t until = clock_mono_ns() + (uint64_t) deadline_ms * 1000000;
        uint32_t serial = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
        struct wr head = wr_to(w->p + 2, 4);
        int r;

        if (w->bad || w->len < IPC_HEAD)
                return err_set(err, -EMSGSIZE, ERR_LIMIT, "request: too long");
        wr_u32(&head, serial);
        r = wait_for(fd, POLLOUT, until); /* ready to write: a message then fits, and sending does not block */
        if (r > 0)
                r = ipc_send(fd, w->p, w->len, fds, n_fds) < 0 ? -EPIPE : wait_for(fd, POLLIN, until);
        if (r == 0)
                return err_set(err, -ETIMEDOUT, ERR_BUSY, "request: no answer within %u ms", deadline_ms);
        if (r > 0)
                r = ipc_recv(fd, reply);
        if (r == 0)
                return err_set(err, -EPIPE, ERR_PEER, "request: the peer has closed");
        if (r < 0)
                return err_set(err, r, ERR_PEER, "request: %s", strerror(-r));
        return ipc_result(reply, serial, err);
}
