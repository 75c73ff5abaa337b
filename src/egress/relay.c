/*
 * relay.c - bytes between two sockets that nobody looks at.
 *
 * Each direction moves bytes from a socket into a pipe and from the pipe into the other socket, without copying them
 * (splice(2)). A pipe is held only while bytes are in it, so idle connections need none; a sandbox that makes its peers
 * wait holds at most EGRESS_PIPES_PER_SANDBOX of them and is then served by copying through one shared buffer.
 * Back-pressure: nothing is read for a socket that cannot take it. An end of file is passed on when the bytes before it
 * are gone, and each direction ends by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "egress/conn.h"
#include "egress/egress.h"
#include "egress/limits.h"
#include "egress/pipes.h"
#include "egress/sandbox.h"

enum step { STEP_MOVED, STEP_WAIT, STEP_END, STEP_FAILED };

static bool pipe_take(struct conn *c, struct flow *f) {
        if (!f->pipe && c->sandbox->n_pipes < EGRESS_PIPES_PER_SANDBOX && (f->pipe = pipes_take(c->egress->pipes)))
                c->sandbox->n_pipes++;
        return f->pipe;
}

static void pipe_give(struct conn *c, struct flow *f) {
        if (!f->pipe)
                return;
        pipes_give(c->egress->pipes, f->pipe, f->pending == 0);
        c->sandbox->n_pipes--;
        f->pipe = NULL;
        f->pending = 0;
}

/* What a call that moved n bytes, or failed, means for its socket. */
static enum step judge(ssize_t n, bool *ready) {
        if (n > 0)
                return STEP_MOVED;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                return STEP_FAILED;
        if (n < 0 && errno == EAGAIN)
                *ready = false;
        return n == 0 ? STEP_END : STEP_WAIT;
}

/* Without a pipe: what was looked at is taken from the socket only as far as the other one took it. */
static enum step copy(struct conn *c, unsigned i, size_t *ret_moved) {
        static char bytes[EGRESS_COPY_BYTES];
        struct leg *from = &c->legs[i], *to = &c->legs[!i];
        ssize_t n = recv(from->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT), sent;
        enum step step = judge(n, &from->readable);

        if (step != STEP_MOVED)
                return step;
        if (i == CONN_CLIENT && !conn_may_spend(c, (size_t) n))
                return STEP_FAILED;
        sent = send(to->fd, bytes, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL);
        step = judge(sent, &to->writable);
        if (step != STEP_MOVED)
                return step == STEP_END ? STEP_WAIT : step;
        (void) recv(from->fd, bytes, (size_t) sent, MSG_DONTWAIT | MSG_TRUNC);
        *ret_moved = (size_t) sent;
        return STEP_MOVED;
}

static enum step fill(struct conn *c, unsigned i) {
        struct leg *from = &c->legs[i];
        struct flow *f = &c->flows[i];
        ssize_t n =
                splice(from->fd, NULL, f->pipe->write_fd, NULL, EGRESS_SPLICE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        enum step step = judge(n, &from->readable);

        if (step == STEP_MOVED)
                f->pending = (size_t) n;
        return step;
}

static enum step drain(struct conn *c, unsigned i, size_t *ret_moved) {
        struct leg *to = &c->legs[!i];
        struct flow *f = &c->flows[i];
        ssize_t n = splice(f->pipe->read_fd, NULL, to->fd, NULL, f->pending, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        enum step step = judge(n, &to->writable);

        if (step == STEP_END)
                return STEP_FAILED; /* a pipe with bytes in it and nothing moved */
        if (step == STEP_MOVED) {
                f->pending -= (size_t) n;
                *ret_moved = (size_t) n;
        }
        return step;
}

/* One piece in one direction. The budget is asked before bytes leave the sandbox's side of the pipe. */
static enum step move(struct conn *c, unsigned i, size_t *ret_moved) {
        struct leg *from = &c->legs[i], *to = &c->legs[!i];
        struct flow *f = &c->flows[i];
        enum step step;

        *ret_moved = 0;
        if (!to->writable || (f->pending == 0 && (from->eof || !from->readable)))
                return STEP_WAIT;
        if (f->pending == 0 && !pipe_take(c, f))
                step = copy(c, i, ret_moved);
        else if (f->pending == 0 && (step = fill(c, i)) != STEP_MOVED)
                return step;
        else if (i == CONN_CLIENT && !conn_may_spend(c, f->pending))
                return STEP_FAILED;
        else
                step = drain(c, i, ret_moved);
        f->bytes += *ret_moved;
        if (i == CONN_CLIENT)
                c->sandbox->bytes_out += *ret_moved;
        return step;
}

/* True if it stopped although more could be moved. */
static bool pump(struct conn *c, unsigned i, enum step *ret) {
        size_t moved, total = 0;

        do {
                *ret = move(c, i, &moved);
                total += moved;
        } while (*ret == STEP_MOVED && total < EGRESS_TURN_BYTES);
        if (c->state == CONN_DEAD)
                return false;
        if (*ret == STEP_END)
                c->legs[i].eof = true;
        if (c->flows[i].pending == 0)
                pipe_give(c, &c->flows[i]);
        if (total > 0)
                c->moved_ms = egress_now_ms();
        return *ret == STEP_MOVED;
}

void relay_pump(struct conn *c) {
        for (unsigned i = 0; i < CONN_LEGS; i++) {
                struct leg *from = &c->legs[i], *to = &c->legs[!i];
                enum step step;

                if (pump(c, i, &step))
                        event_active(&from->event, EV_READ, 0);
                if (c->state == CONN_DEAD)
                        return;
                if (step == STEP_FAILED) {
                        conn_end(c, NULL, true);
                        return;
                }
                if (from->eof && c->flows[i].pending == 0 && !to->shut) {
                        to->shut = true;
                        (void) shutdown(to->fd, SHUT_WR);
                }
        }
        if (c->legs[CONN_CLIENT].shut && c->legs[CONN_WORLD].shut)
                conn_end(c, NULL, false);
}

void relay_done(struct conn *c) {
        for (unsigned i = 0; i < CONN_LEGS; i++)
                pipe_give(c, &c->flows[i]);
}
