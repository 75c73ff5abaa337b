/*
 * server.c - peers, requests and replies. The disk is the queue's (queue.c).
 *
 * A peer is refused by its credentials when it connects, and by the gate when it asks for what it may not. One that
 * breaks the protocol is cut off, and the log says so. Back-pressure: from a peer with NOTARY_IN_FLIGHT unanswered
 * requests, and from all while the queue is full, nothing is read; so every reply fits into the socket's buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "notary/dossiers.h"
#include "notary/notary.h"
#include "notary/queue.h"

enum { STOPPING = -2, LATER = 64 };
enum { AT_LISTEN, AT_STOP, AT_DOSSIER, AT_PEERS };

struct peer {
        uint64_t id; /* 0: free */
        int fd;
        unsigned in_flight;
        bool gone;
        struct ipc_gate gate;
        struct audit_event *will;
        struct notary *n;
};

/* An answer for which nobody waits. */
struct later {
        uint64_t peer, seq;
        uint32_t serial;
};

struct notary {
        struct notary_settings s;
        struct queue *queue;
        struct dossiers *dossiers;
        struct peer peers[NOTARY_PEERS];
        size_t n_peers;
        uint64_t last_id;
        struct err failed; /* of the request whose jobs are being answered */
        struct later later[LATER];
        size_t n_later;
};

static struct peer *peer_find(struct notary *n, uint64_t id) {
        for (size_t i = 0; id && i < NOTARY_PEERS; i++)
                if (n->peers[i].id == id)
                        return &n->peers[i];
        return NULL;
}

static bool is_ours(const struct ipc_peer *p) {
        return p->uid == 0 || p->uid == geteuid();
}

static bool may_write(const struct peer *p, const char *tenant) {
        const struct notary_settings *s = &p->n->s;

        if (is_ours(&p->gate.peer))
                return true;
        for (size_t i = 0; i < s->n_writers; i++)
                if (s->writers[i].uid == p->gate.peer.uid &&
                    (!s->writers[i].tenant[0] || str_eq(s->writers[i].tenant, tenant)))
                        return true;
        return false;
}

static int refuse_tenant(const struct peer *p, const char *tenant, struct err *err) {
        return may_write(p, tenant) ? 0
                                    : err_set(err, -EPERM, ERR_DENIED, "uid %u may not write to tenant %s",
                                              p->gate.peer.uid, tenant);
}

static void answer(struct notary *n, uint64_t id, uint32_t serial, const void *body, size_t size, const struct err *e) {
        struct peer *p = peer_find(n, id);

        if (!p)
                return;
        p->in_flight--;
        /* One that closed already may have sent more before: its end is seen when that is read. */
        if (ipc_reply(p->fd, serial, body, size, -1, e->code < 0 ? e : NULL) == -EAGAIN)
                p->gone = true;
}

/* --- requests --- */

/* Pushes the n jobs that were filled; the last one answers the request. */
static int jobs_push(struct peer *p, size_t n, bool lazy, uint32_t serial) {
        struct job *last = queue_place_at(p->n->queue, n - 1);

        for (size_t i = 0; i < n; i++) {
                struct job *j = queue_place_at(p->n->queue, i);

                j->peer = 0;
                j->part = true;
                j->lazy = lazy;
        }
        last->peer = p->id;
        last->part = false;
        last->serial = serial;
        while (n-- > 0)
                queue_push(p->n->queue);
        p->in_flight++;
        return IPC_REPLY_LATER;
}

static int will_take(struct peer *p, struct rd *body, struct err *err) {
        int r;

        if (!p->will)
                p->will = calloc(1, sizeof(*p->will));
        if (!p->will)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");
        r = audit_event_get(body, p->will, err);
        if (r == 0)
                r = refuse_tenant(p, p->will->tenant, err);
        if (r < 0)
                free(TAKE_PTR(p->will));
        return r;
}

/* Reads the entries of a request. Its events fill places of the queue behind the first *n, and are counted there.
 * *lazy: nobody waits for any of them. */
static int entries_take(struct peer *p, struct rd *body, size_t *n, bool *lazy, struct err *err) {
        int r = 0;

        *lazy = true;
        for (size_t i = 0; r == 0 && body->left > 0; i++) {
                unsigned what = rd_u8(body);
                struct job *j = queue_place_at(p->n->queue, *n);

                if (i == NOTARY_ENTRIES || what < NOTARY_EVENT || what > NOTARY_NOTE)
                        return err_set(err, -EBADMSG, ERR_PEER, "malformed entry");
                if (what == NOTARY_NO_WILL) {
                        free(TAKE_PTR(p->will));
                } else if (what == NOTARY_WILL) {
                        r = will_take(p, body, err);
                } else {
                        j->kind = JOB_EVENT;
                        *lazy &= what == NOTARY_NOTE;
                        r = audit_event_get(body, &j->ev, err);
                        if (r == 0)
                                r = refuse_tenant(p, j->ev.tenant, err);
                        ++*n;
                }
        }
        return r;
}

static int on_append(struct ipc_call *c, struct err *err) {
        struct peer *p = c->gate->owner;
        size_t n = 0;
        bool lazy;
        int r = entries_take(p, &c->body, &n, &lazy, err);

        if (r == 0 && n == 0) { /* a will alone */
                wr_u64(c->reply, 0);
                return IPC_REPLY_NOW;
        }
        return r < 0 ? r : jobs_push(p, n, lazy, c->serial);
}

static int on_statement(struct ipc_call *c, struct err *err) {
        struct peer *p = c->gate->owner;
        struct job *j = queue_place(p->n->queue), *event = queue_place_at(p->n->queue, 1);
        size_t n = 1;
        bool lazy;
        int r;

        rd_str(&c->body, j->what, sizeof(j->what));
        r = entries_take(p, &c->body, &n, &lazy, err);
        if (r == 0 && n == 1)
                r = err_set(err, -EBADMSG, ERR_PEER, "a statement without an event");
        if (r == 0)
                r = ipc_blob_read(c->fds[0], LEDGER_STATEMENT_MAX, &j->text, &j->n, err);
        if (r < 0)
                return r;
        j->kind = JOB_STATEMENT;
        (void) str_copy(j->ev.tenant, sizeof(j->ev.tenant), event->ev.tenant);
        (void) str_copy(j->ev.sandbox, sizeof(j->ev.sandbox), event->ev.sandbox);
        return jobs_push(p, n, lazy, c->serial);
}

static int on_rotate(struct ipc_call *c, struct err *err) {
        struct peer *p = c->gate->owner;

        if (!is_ours(&p->gate.peer))
                return err_set(err, -EPERM, ERR_DENIED, "uid %u may not change the key", p->gate.peer.uid);
        queue_place(p->n->queue)->kind = JOB_ROTATE;
        return jobs_push(p, 1, false, c->serial);
}

/* Behind everything that was sent before; then it is the reading thread's. */
static int read_later(struct ipc_call *c, struct err *err) {
        struct peer *p = c->gate->owner;
        struct job *j = queue_place(p->n->queue);
        int r = refuse_tenant(p, j->ev.tenant, err);

        if (r < 0)
                return r;
        j->kind = JOB_READ;
        j->fd = TAKE_FD(c->fds[0]);
        return jobs_push(p, 1, false, c->serial);
}

static void read_now(struct notary *n, struct job *j) {
        const struct dossier_ask a = { .reply = { .peer = j->peer, .serial = j->serial },
                                       .tenant = j->ev.tenant,
                                       .sandbox = j->n == 0 ? j->ev.sandbox : NULL,
                                       .from = j->seq,
                                       .n = (uint32_t) j->n };
        AUTO_FD int fd = TAKE_FD(j->fd);
        struct err err = { 0 };

        if (dossiers_ask(n->dossiers, &a, fd, &err) < 0)
                answer(n, j->peer, j->serial, NULL, 0, &err);
        else
                (void) TAKE_FD(fd); /* the thread's */
}

static int on_dossier(struct ipc_call *c, struct err *err) {
        struct job *j = queue_place(((struct peer *) c->gate->owner)->n->queue);

        rd_str(&c->body, j->ev.tenant, sizeof(j->ev.tenant));
        rd_str(&c->body, j->ev.sandbox, sizeof(j->ev.sandbox));
        j->n = 0;
        if (!rd_done(&c->body))
                return err_set(err, -EBADMSG, ERR_PEER, "malformed dossier request");
        return read_later(c, err);
}

static int on_read(struct ipc_call *c, struct err *err) {
        struct job *j = queue_place(((struct peer *) c->gate->owner)->n->queue);

        rd_str(&c->body, j->ev.tenant, sizeof(j->ev.tenant));
        j->seq = rd_u64(&c->body);
        j->n = rd_u32(&c->body);
        if (!rd_done(&c->body) || j->n == 0 || j->n > NOTARY_READ_MAX)
                return err_set(err, -EBADMSG, ERR_PEER, "malformed read request");
        return read_later(c, err);
}

static const struct ipc_op ops[NOTARY_TYPES] = {
        [NOTARY_APPEND] = { "append", on_append, BIT(0), IPC_MAX, 0, false },
        [NOTARY_STATEMENT] = { "statement", on_statement, BIT(0), IPC_MAX, 1, false },
        [NOTARY_ROTATE] = { "rotate", on_rotate, BIT(0), 0, 0, false },
        [NOTARY_DOSSIER] = { "dossier", on_dossier, BIT(0), 128, 1, false },
        [NOTARY_READ] = { "read", on_read, BIT(0), 128, 1, false },
};

/* --- peers --- */

int notary_add(struct notary *n, int fd, const struct ipc_peer *peer, struct err *err) {
        AUTO_FD int own = fd;
        struct peer *p = NULL;
        bool known = is_ours(peer);

        for (size_t i = 0; i < n->s.n_writers; i++)
                known |= n->s.writers[i].uid == peer->uid;
        for (size_t i = 0; !p && i < NOTARY_PEERS; i++)
                if (n->peers[i].id == 0)
                        p = &n->peers[i];
        if (!known)
                return err_set(err, -EPERM, ERR_DENIED, "uid %u may not write to the audit log", peer->uid);
        if (!p)
                return err_set(err, -EMFILE, ERR_BUSY, "more than %d writers at once", NOTARY_PEERS);
        if (fcntl(own, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "socket: %s", strerror(errno));
        *p = (struct peer){ .id = ++n->last_id, .fd = TAKE_FD(own), .n = n };
        p->gate = (struct ipc_gate){ .ops = ops, .n_ops = NOTARY_TYPES, .owner = p, .peer = *peer };
        n->n_peers++;
        return 0;
}

/* A record that nobody waits for. False when there is no room: then it is tried again. */
static bool append_own(struct notary *n, const struct audit_event *ev) {
        struct job *j = queue_place(n->queue);

        if (!j)
                return false;
        j->kind = JOB_EVENT;
        j->peer = 0;
        j->part = false;
        j->lazy = false;
        j->ev = *ev;
        queue_push(n->queue);
        return true;
}

static void peer_refused(struct notary *n, const struct peer *p, const struct err *err) {
        struct audit_event ev;

        audit_event_init(&ev, AUDIT_ALERT, NOTARY_TENANT, "");
        ev.decision = AUDIT_DENIED;
        audit_object(&ev, "audit socket");
        (void) snprintf(ev.actor, sizeof(ev.actor), "uid:%u", p->gate.peer.uid);
        (void) str_copy(ev.rule, sizeof(ev.rule), "protocol");
        audit_text(&ev, "found", err->msg);
        (void) append_own(n, &ev);
        (void) fprintf(stderr, "gabion-notary: uid %u was cut off: %s\n", p->gate.peer.uid, err->msg);
}

/* Lets go of peers that have gone: the will first, then the place. */
static void peers_reap(struct notary *n) {
        for (size_t i = 0; i < NOTARY_PEERS; i++) {
                struct peer *p = &n->peers[i];

                if (p->id == 0 || !p->gone)
                        continue;
                if (p->will && !append_own(n, p->will))
                        continue;
                free(TAKE_PTR(p->will));
                (void) close(TAKE_FD(p->fd));
                p->id = 0;
                n->n_peers--;
        }
}

static void peer_serve(struct notary *n, struct peer *p) {
        struct err err = { 0 };
        int r = 0;

        while (r == 0 && p->in_flight < NOTARY_IN_FLIGHT && queue_place_at(n->queue, NOTARY_ENTRIES + 1))
                r = ipc_serve(&p->gate, p->fd, &err);
        if (r == 0 || r == -EAGAIN)
                return;
        p->gone = true;
        if (r == -EPROTO || r == -EBADMSG)
                peer_refused(n, p, &err);
}

static void on_accept(struct notary *n, int listen_fd) {
        struct ipc_peer peer;
        struct err err = { 0 };
        int fd = ipc_accept(listen_fd, &peer, &err);

        if (fd >= 0 && notary_add(n, fd, &peer, &err) < 0)
                (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
}

static void answer_seq(struct notary *n, uint64_t peer, uint32_t serial, uint64_t seq, const struct err *e) {
        uint8_t body[8];
        struct wr w = wr_to(body, sizeof(body));

        wr_u64(&w, seq);
        answer(n, peer, serial, body, w.len, e);
}

/* Who waits hears at once; those who only want to know, in a quiet moment. */
static void on_done(struct notary *n) {
        struct job *j;

        while ((j = queue_done(n->queue))) {
                if (n->failed.code == 0)
                        n->failed = j->result;
                if (j->kind == JOB_READ) {
                        read_now(n, j);
                } else if (j->peer && j->lazy && n->failed.code == 0 && n->n_later < LATER) {
                        n->later[n->n_later++] = (struct later){ j->peer, j->seq, j->serial };
                } else if (j->peer) {
                        answer_seq(n, j->peer, j->serial, j->seq, &n->failed);
                } else if (!j->part && j->result.code < 0) {
                        (void) fprintf(stderr, "gabion-notary: %s\n", j->result.msg);
                }
                if (!j->part)
                        n->failed = (struct err){ 0 };
                queue_release(n->queue);
        }
}

static void on_quiet(struct notary *n) {
        static const struct err good;

        for (size_t i = 0; i < n->n_later; i++)
                answer_seq(n, n->later[i].peer, n->later[i].serial, n->later[i].seq, &good);
        n->n_later = 0;
}

static void on_dossier_done(struct notary *n) {
        struct dossier_reply d;

        while (dossiers_done(n->dossiers, &d))
                answer(n, d.peer, d.serial, NULL, 0, &d.result);
}

int notary_new(const struct notary_settings *s, struct notary **ret, struct err *err) {
        struct notary *n = calloc(1, sizeof(*n));
        int r = n ? 0 : err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");

        if (r < 0)
                return r;
        n->s = *s;
        r = queue_new(&n->s, &n->queue, err);
        if (r == 0)
                r = dossiers_new(n->s.log.dir, &n->dossiers, err);
        if (r < 0)
                n = notary_free(n);
        *ret = n;
        return r;
}

struct notary *notary_free(struct notary *n) {
        if (!n)
                return NULL;
        n->dossiers = dossiers_free(n->dossiers);
        n->queue = queue_free(n->queue);
        for (size_t i = 0; i < NOTARY_PEERS; i++)
                if (n->peers[i].id) {
                        (void) close(n->peers[i].fd);
                        free(n->peers[i].will);
                }
        free(n);
        return NULL;
}

/* Returns how many entries of p are in use. Who has to wait is not polled at all: a hang-up would be told for ever. */
static size_t poll_set(struct notary *n, int listen_fd, int stop_fd, struct pollfd *p, uint64_t *ids) {
        bool room = stop_fd != STOPPING && queue_place_at(n->queue, NOTARY_ENTRIES + 1);
        size_t k = AT_PEERS;

        p[AT_LISTEN] = (struct pollfd){ n->n_peers < NOTARY_PEERS ? listen_fd : -1, POLLIN, 0 };
        p[AT_STOP] = (struct pollfd){ stop_fd, POLLIN, 0 };
        p[AT_DOSSIER] = (struct pollfd){ dossiers_done_fd(n->dossiers), POLLIN, 0 };
        for (size_t i = 0; room && i < NOTARY_PEERS; i++)
                if (n->peers[i].id && !n->peers[i].gone && n->peers[i].in_flight < NOTARY_IN_FLIGHT) {
                        ids[k] = n->peers[i].id;
                        p[k++] = (struct pollfd){ n->peers[i].fd, POLLIN, 0 };
                }
        return k;
}

int notary_serve(struct notary *n, int listen_fd, int stop_fd, struct err *err) {
        struct pollfd p[AT_PEERS + NOTARY_PEERS];
        uint64_t ids[AT_PEERS + NOTARY_PEERS];

        for (;;) {
                size_t k;
                int wait_ms;

                peers_reap(n);
                if (queue_idle(n->queue) && (stop_fd == STOPPING || (listen_fd < 0 && n->n_peers == 0)))
                        return 0;
                k = poll_set(n, listen_fd, stop_fd, p, ids);
                wait_ms = queue_wait_ms(n->queue);
                if (n->n_later > 0 && wait_ms > NOTARY_QUIET_MS)
                        wait_ms = NOTARY_QUIET_MS;
                if (poll(p, k, wait_ms) < 0) {
                        if (errno == EINTR)
                                continue;
                        return err_set(err, -errno, ERR_INTERNAL, "notary: poll: %s", strerror(errno));
                }
                if (p[AT_STOP].revents) { /* nothing new; what was taken is written and answered */
                        stop_fd = STOPPING;
                        listen_fd = -1;
                }
                if (p[AT_DOSSIER].revents)
                        on_dossier_done(n);
                for (size_t i = AT_PEERS; i < k; i++) {
                        struct peer *peer = p[i].revents ? peer_find(n, ids[i]) : NULL;

                        if (peer)
                                peer_serve(n, peer);
                }
                if (p[AT_LISTEN].revents)
                        on_accept(n, listen_fd);
                queue_turn(n->queue);
                on_done(n);
                if (queue_is_quiet(n->queue) || n->n_later >= LATER / 2 || stop_fd == STOPPING)
                        on_quiet(n);
                queue_tidy(n->queue);
        }
}
