/* client.c - the writers' side: requests are sent without waiting, and their replies collected when it matters. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "notary/notary.h"

enum { SEND_MS = 10000, UNREAD = NOTARY_IN_FLIGHT / 2 };

int notary_connect(const char *path, struct notary_client *ret, struct err *err) {
        *ret = (struct notary_client){ .fd = -1 };
        ret->fd = ipc_connect(path, err);
        return ret->fd < 0 ? ret->fd : 0;
}

void notary_close(struct notary_client *c) {
        own_closep(&c->fd);
        c->fd = -1;
        c->waiting = 0;
}

static int wait_for(int fd, short events, uint64_t until_ns, struct err *err) {
        for (;;) {
                struct pollfd p = { .fd = fd, .events = events };
                uint64_t now = clock_mono_ns();
                int r = now >= until_ns ? 0 : poll(&p, 1, (int) ((until_ns - now) / 1000000 + 1));

                if (r > 0)
                        return 0;
                if (r < 0 && errno != EINTR)
                        return err_set(err, -errno, ERR_INTERNAL, "audit: %s", strerror(errno));
                if (r == 0)
                        return err_set(err, -ETIMEDOUT, ERR_BUSY, "audit: the notary does not answer");
        }
}

static uint64_t deadline(unsigned ms) {
        return clock_mono_ns() + (uint64_t) ms * 1000000;
}

/* One reply. They may overtake each other, so the serial is whatever was sent. */
static int reply_take(struct notary_client *c, uint64_t until_ns, struct ipc_msg *m, struct err *err) {
        struct rd head;
        int r = wait_for(c->fd, POLLIN, until_ns, err);

        if (r < 0)
                return r;
        r = ipc_recv(c->fd, m);
        if (r <= 0)
                return err_set(err, r < 0 ? r : -EPIPE, ERR_PEER, "audit: the notary has gone");
        c->waiting--;
        head = rd_from(m->bytes, m->n);
        (void) rd_u16(&head);
        return ipc_result(m, rd_u32(&head), err);
}

/* n = 0: it did not fit. */
static int request_send(struct notary_client *c, const uint8_t *p, size_t n, const int *fd, struct err *err) {
        uint64_t until = deadline(SEND_MS);
        int r = 0;

        if (n == 0)
                return err_set(err, -EMSGSIZE, ERR_LIMIT, "audit: the event is too large");
        /* The notary reads no further when too many replies are unread: take some. */
        while (r == 0 && c->waiting >= UNREAD) {
                struct ipc_msg m;

                r = reply_take(c, until, &m, err);
                ipc_msg_done(&m);
        }
        if (r == 0)
                r = wait_for(c->fd, POLLOUT, until, err);
        if (r < 0)
                return r;
        r = ipc_send(c->fd, p, n, fd, fd ? 1 : 0);
        if (r < 0)
                return err_set(err, r, ERR_PEER, "audit: the notary has gone: %s", strerror(-r));
        c->waiting++;
        return 0;
}

/* Room for the head and for a statement's kind, which is known only when it is sent. */
enum { BEFORE = IPC_HEAD + 10 };

void notary_begin(struct notary_batch *b) {
        b->w = wr_to(b->space + BEFORE, sizeof(b->space) - BEFORE);
}

void notary_put(struct notary_batch *b, enum notary_entry entry, const struct audit_event *ev) {
        wr_u8(&b->w, (uint8_t) entry);
        if (ev)
                audit_event_put(ev, &b->w);
}

const uint8_t *notary_message(struct notary_batch *b, const char *kind, uint32_t serial, size_t *ret_n) {
        size_t before = IPC_HEAD + (kind ? 2 + strlen(kind) : 0);
        struct wr w = wr_to(b->space + BEFORE - before, before);

        ipc_begin(&w, kind ? NOTARY_STATEMENT : NOTARY_APPEND, serial);
        if (kind)
                wr_str(&w, kind);
        *ret_n = w.bad || b->w.bad ? 0 : before + b->w.len; /* both stand one behind the other */
        return w.p;
}

void notary_ask_dossier(struct wr *w, uint32_t serial, const char *tenant, const char *sandbox) {
        ipc_begin(w, NOTARY_DOSSIER, serial);
        wr_str(w, tenant);
        wr_str(w, sandbox);
}

void notary_ask_read(struct wr *w, uint32_t serial, const char *tenant, uint64_t from, uint32_t n) {
        ipc_begin(w, NOTARY_READ, serial);
        wr_str(w, tenant);
        wr_u64(w, from);
        wr_u32(w, n);
}

int notary_send(struct notary_client *c, struct notary_batch *b, const char *kind, const char *text, size_t n,
                struct err *err) {
        AUTO_FD int fd = -1;
        const uint8_t *p;
        size_t len;

        if (text) {
                fd = ipc_blob_make(text, n, err);
                if (fd < 0)
                        return fd;
        }
        p = notary_message(b, text ? kind : NULL, ++c->serial, &len);
        return request_send(c, p, len, text ? &fd : NULL, err);
}

int notary_append(struct notary_client *c, const struct audit_event *ev, struct err *err) {
        struct notary_batch b;

        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, ev);
        return notary_send(c, &b, NULL, NULL, 0, err);
}

int notary_wait(struct notary_client *c, unsigned deadline_ms, struct err *err) {
        uint64_t until = deadline(deadline_ms);
        struct err first = { 0 };

        while (c->waiting > 0) {
                CLEANUP(ipc_msg_done) struct ipc_msg m = { 0 };
                struct err one = { 0 };
                unsigned before = c->waiting;
                int r = reply_take(c, until, &m, &one);

                if (r < 0 && first.code == 0)
                        first = one;
                if (r < 0 && c->waiting == before) /* not a reply: nothing more will come */
                        break;
        }
        if (first.code < 0)
                *err = first;
        return first.code;
}

int notary_take(struct notary_client *c, struct err *err) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };

        while (poll(&p, 1, 0) > 0) {
                CLEANUP(ipc_msg_done) struct ipc_msg m = { 0 };
                int r = reply_take(c, UINT64_MAX, &m, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

int notary_rotate(struct notary_client *c, unsigned deadline_ms, struct err *err) {
        uint8_t space[IPC_HEAD];
        struct wr w = wr_to(space, sizeof(space));
        int r;

        ipc_begin(&w, NOTARY_ROTATE, ++c->serial);
        r = request_send(c, w.p, w.len, NULL, err);
        return r < 0 ? r : notary_wait(c, deadline_ms, err);
}

int notary_dossier(struct notary_client *c, const char *tenant, const char *sandbox, unsigned deadline_ms, char **ret,
                   size_t *ret_n, struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg m = { 0 };
        AUTO_FD int fd = memfd_create("dossier", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        AUTO_FREE char *text = malloc(IPC_BLOB_MAX);
        uint8_t space[256];
        struct wr w = wr_to(space, sizeof(space));
        int r;

        if (fd < 0 || !text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "audit: out of memory");
        notary_ask_dossier(&w, ++c->serial, tenant, sandbox);
        r = request_send(c, w.p, w.bad ? 0 : w.len, &fd, err);
        if (r == 0)
                r = reply_take(c, deadline(deadline_ms), &m, err);
        if (r < 0)
                return r;
        r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_upto(fd, text, IPC_BLOB_MAX);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "audit: the dossier cannot be read");
        *ret_n = (size_t) r;
        *ret = TAKE_PTR(text);
        return 0;
}
