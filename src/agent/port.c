/*
 * port.c - streams to ports inside: the host's connection becomes one to 127.0.0.1, or else ::1.
 *
 * Bytes are spliced through a pipe for each direction and never lie in our memory. Each end of file is passed on as
 * such, so that protocols which close one direction first work; when both have ended, or one side fails, all is closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/wr.h"
#include "state.h"

enum { MOVE_MAX = 65536 };

static void port_close(const struct agent *a, struct port *p) {
        for (int i = 0; i < 2; i++) {
                agent_unwatch(a, &p->fds[i]);
                own_closep(&p->flows[i].pipe[0]);
                own_closep(&p->flows[i].pipe[1]);
        }
        p->used = false;
}

/* 0: connected or on the way; else why not. */
static int start_connect(const struct agent *a, struct port *p) {
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(p->number) };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
                                   .sin6_port = htons(p->number),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        int r;

        v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        agent_unwatch(a, &p->fds[1]);
        p->fds[1] = socket(p->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (p->fds[1] < 0)
                return -errno;
        r = p->v6 ? connect(p->fds[1], (struct sockaddr *) &v6, sizeof(v6))
                  : connect(p->fds[1], (struct sockaddr *) &v4, sizeof(v4));
        if (r < 0 && errno != EINPROGRESS)
                return -errno;
        p->connecting = true;
        return agent_watch(a, p->fds[1], EPOLLIN | EPOLLOUT, KEY_PORT, (uint32_t) (p - a->ports) * 2 + 1);
}

/* Tries the other address, or gives up. The host always hears which it is. */
static void connect_failed(const struct agent *a, struct port *p, int r) {
        if (!p->v6) {
                p->v6 = true;
                if (start_connect(a, p) == 0)
                        return;
        }
        conn_refuse(p->fds[0], p->id, r, "connect");
        port_close(a, p);
}

void port_open(struct agent *a, struct conn *l, uint32_t id, uint32_t number) {
        struct port *p = NULL;
        int r = -EBUSY;

        for (size_t i = 0; i < AGENT_PORTS && !p; i++)
                if (!a->ports[i].used)
                        p = &a->ports[i];
        if (p) {
                *p = (struct port){ .used = true, .id = id, .number = (uint16_t) number, .fds = { -1, -1 } };
                for (int i = 0; i < 2; i++)
                        p->flows[i].pipe[0] = p->flows[i].pipe[1] = -1;
                r = pipe2(p->flows[0].pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
                                    pipe2(p->flows[1].pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
                                    (p->fds[0] = fcntl(l->fd, F_DUPFD_CLOEXEC, 0)) < 0 ||
                                    fcntl(p->fds[0], F_SETFL, O_NONBLOCK) < 0
                            ? -errno
                            : agent_watch(a, p->fds[0], EPOLLIN | EPOLLOUT, KEY_PORT, (uint32_t) (p - a->ports) * 2);
        }
        l->dead = true; /* our other copy */
        if (r < 0) {
                conn_refuse(l->fd, id, r, "connections");
                if (p)
                        port_close(a, p);
                return;
        }
        p->readable[0] = p->writable[0] = true;
        r = start_connect(a, p);
        if (r < 0)
                connect_failed(a, p, r);
}

static bool connected(const struct agent *a, struct port *p) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));
        int e = 0;
        socklen_t n = sizeof(e);

        if (!p->writable[1])
                return false;
        if (getsockopt(p->fds[1], SOL_SOCKET, SO_ERROR, &e, &n) < 0 || e != 0) {
                p->writable[1] = false;
                connect_failed(a, p, e ? -e : -EIO);
                return true;
        }
        p->connecting = false;
        p->readable[1] = true;
        ap_put_empty(&w, AP_DONE, p->id);
        if (send(p->fds[0], frame, w.len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) w.len)
                port_close(a, p);
        return true;
}

/* Moves bytes that come from side i. Negative: the stream is broken. */
static int flow(struct port *p, int i, bool *moved) {
        struct flow *f = &p->flows[i];
        ssize_t n;

        if (f->held == 0 && !f->eof && p->readable[i]) {
                n = splice(p->fds[i], NULL, f->pipe[1], NULL, MOVE_MAX, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (n < 0 && errno != EAGAIN)
                        return -errno;
                if (n < 0)
                        p->readable[i] = false;
                f->eof = n == 0;
                f->held = n > 0 ? (size_t) n : 0;
                *moved |= n >= 0;
        }
        if (f->held > 0 && p->writable[!i]) {
                n = splice(f->pipe[0], NULL, p->fds[!i], NULL, f->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (n < 0 && errno != EAGAIN)
                        return -errno;
                if (n <= 0)
                        p->writable[!i] = false;
                else
                        f->held -= (size_t) n;
                *moved |= n > 0;
        }
        if (f->eof && f->held == 0 && !f->shut) {
                f->shut = true;
                (void) shutdown(p->fds[!i], SHUT_WR);
        }
        return 0;
}

bool port_pump(struct agent *a, struct port *p) {
        bool moved = false;

        if (p->connecting)
                return connected(a, p);
        if (flow(p, 0, &moved) < 0 || flow(p, 1, &moved) < 0 || (p->flows[0].shut && p->flows[1].shut)) {
                port_close(a, p);
                return true;
        }
        return moved;
}
