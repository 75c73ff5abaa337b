/*
 * conn.c - connections to the host.
 *
 * Invariant: the agent never blocks on the host and never loses a byte for it. Output of commands is taken from what
 * is kept only while the buffer is empty; answers have a reserve behind it, and frames from the host are served only
 * while that reserve can hold the answer. A host that stops reading therefore stops its commands, not the agent.
 *
 * The only host of `gabion run` takes the agent with it; any other connection just ends, and its commands go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/wr.h"
#include "state.h"

enum {
        READ_MAX = AP_CHUNK + AP_HEAD, /* per call: keeps the touched part of the buffer small */
        KEEP_BYTES = 2 * AP_CHUNK,     /* above this the buffer's pages are given back */
        ACCEPT_MAX = 16,               /* per turn */
};

struct conn *conn_open(struct agent *a, int fd, enum conn_kind kind) {
        size_t first = kind == CONN_GATE ? AGENT_CONNS : 0,
               last = kind == CONN_GATE ? ARRAY_SIZE(a->conns) : AGENT_CONNS;

        for (size_t i = first; i < last; i++) {
                struct conn *l = &a->conns[i];

                if (a->conns_used & 1ull << i)
                        continue;
                memset(l, 0, offsetof(struct conn, out));
                if (agent_watch(a, fd, EPOLLIN | EPOLLOUT, KEY_CONN, (uint32_t) i) < 0)
                        return NULL;
                a->conns_used |= 1ull << i;
                l->kind = kind;
                l->fd = fd;
                l->readable = l->writable = true;
                return l;
        }
        return NULL;
}

void conn_refuse(int fd, uint32_t id, int r, const char *step) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_error(&w, id, (uint32_t) -r, step);
        (void) send(fd, frame, w.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool conn_accept(struct agent *a, unsigned which) {
        for (int i = 0; i < ACCEPT_MAX; i++) {
                int fd = accept4(which == 0 ? AP_FD_CONTROL : AP_FD_GATE, NULL, NULL, SOCK_CLOEXEC);

                if (fd < 0 && errno == ECONNABORTED)
                        continue;
                if (fd < 0) { /* none waits; or no descriptor is free, and then the next that comes wakes us again */
                        a->accept[which] = false;
                        return i > 0;
                }
                if (!conn_open(a, fd, which == 0 ? CONN_FRESH : CONN_GATE)) {
                        conn_refuse(fd, 0, -EBUSY, "connections");
                        (void) close(fd);
                }
        }
        return true;
}

void conn_bury(struct agent *a) {
        struct command *c;
        struct conn *l;

        EACH_CONN (a, l) {
                if (!l->dead)
                        continue;
                EACH_COMMAND (a, c)
                        if (c->conn == l && c->hold_fd > 0)
                                command_release(a, c);
                        else if (c->conn == l)
                                start_detach(c);
                conn_eat(l, l->in_len);
                agent_unwatch(a, &l->fd);
                a->conns_used &= ~(1ull << (l - a->conns));
        }
}

/* What is left to do with a connection that failed or ended. */
static bool lose(struct conn *l, enum agent_exit why) {
        if (l->kind == CONN_SOLE)
                _exit((int) why);
        l->dead = true;
        return false;
}

bool conn_flush(struct conn *l) {
        ssize_t n;

        if (conn_is_empty(l) || !l->writable || l->dead)
                return false;
        n = send(l->fd, l->out + l->out_start, l->out_end - l->out_start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
                if (errno != EAGAIN && errno != ENOBUFS)
                        return lose(l, errno == EPIPE || errno == ECONNRESET ? AGENT_HOST_GONE : AGENT_BAD_CONTROL);
                l->writable = false;
                return false;
        }
        l->out_start += (size_t) n;
        if (l->out_start == l->out_end)
                l->out_start = l->out_end = 0;
        return true;
}

bool conn_fill(struct conn *l) {
        size_t room = sizeof(l->in) - l->in_len;
        ssize_t n;

        if (!l->readable || room == 0 || l->dead || l->kind == CONN_FRESH)
                return false;
        if (room > READ_MAX && l->kind != CONN_GATE) /* there one call gives one message, or cuts it */
                room = READ_MAX;
        n = recv(l->fd, l->in + l->in_len, room, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
                return lose(l, AGENT_HOST_GONE);
        if (n < 0) {
                if (errno != EAGAIN)
                        return lose(l, AGENT_BAD_CONTROL);
                l->readable = false;
                return false;
        }
        l->in_len += (size_t) n;
        if (l->in_len > l->in_high)
                l->in_high = l->in_len;
        return true;
}

bool conn_has_room(const struct conn *l) {
        return sizeof(l->out) - l->out_end >= AGENT_ANSWER;
}

bool conn_is_empty(const struct conn *l) {
        return l->out_start == l->out_end;
}

struct wr conn_answer(struct conn *l) {
        return wr_to(l->out + l->out_end, AGENT_ANSWER);
}

void conn_commit(struct conn *l, const struct wr *w) {
        if (w->bad)
                __builtin_trap(); /* our bug: every answer has a fixed greatest length below AGENT_ANSWER */
        l->out_end += w->len;
}

void conn_error(struct conn *l, uint32_t id, int r, const char *step) {
        struct wr w = conn_answer(l);

        ap_put_error(&w, id, (uint32_t) -r, step);
        conn_commit(l, &w);
}

void conn_eat(struct conn *l, size_t n) {
        l->in_len -= n;
        memmove(l->in, l->in + n, l->in_len);
        /* What was eaten may be a command's environment: nothing of it stays in a process that lives on. */
        explicit_bzero(l->in + l->in_len, n);
        if (l->in_len == 0 && l->in_high > KEEP_BYTES) {
                (void) madvise(l->in, sizeof(l->in), MADV_DONTNEED);
                l->in_high = 0;
        }
}
