/* client.c - connections of the daemon: accepted, served through the gate of src/ipc, told of events. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "state.h"

static void on_request(struct watch *w, uint32_t events) {
        struct client *c = OF_WATCH(w, struct client, watch);
        struct err e = { 0 };
        int r;

        (void) events;
        if (c->dead)
                return;
        r = ipc_serve(&c->gate, w->fd, &e);
        if (r == 0 || r == -EAGAIN)
                return;
        if (r < 0)
                warden_log("client %d of user %u is cut off: %s", (int) c->gate.peer.pid, c->gate.peer.uid, e.msg);
        c->dead = true;
}

/* Errors end the connection that came, and nothing else. */
static int accept_one(struct err *err) {
        struct ipc_peer peer;
        AUTO_FD int fd = ipc_accept(warden.listen_fd, &peer, err);
        struct client *c;

        if (fd < 0)
                return fd;
        if (peer.uid != 0 && peer.uid != warden.daemon)
                return err_set(err, -EPERM, ERR_DENIED, "user %u may not speak to the warden", peer.uid);
        if (warden.n_clients == WARDEN_CLIENTS)
                return err_set(err, -EBUSY, ERR_LIMIT, "more than %d connections", WARDEN_CLIENTS);
        c = calloc(1, sizeof(*c));
        if (!c || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || loop_watch(&c->watch, fd, on_request) < 0) {
                free(c);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "connection: out of memory");
        }
        (void) TAKE_FD(fd);
        c->number = ++warden.last_client;
        c->gate = (struct ipc_gate){ .ops = request_ops, .n_ops = WP_TYPES, .owner = c, .peer = peer };
        TAILQ_INSERT_TAIL(&warden.clients, c, link);
        warden.n_clients++;
        return 0;
}

static void on_accept(struct watch *w, uint32_t events) {
        struct err e = { 0 };
        int r = accept_one(&e);

        (void) w;
        (void) events;
        if (r < 0 && r != -EAGAIN)
                warden_log("%s", e.msg);
}

int client_listen(struct err *err) {
        char path[WP_PATH + 16];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/warden.sock", warden.run);
        fd = ipc_listen(path, 0600, err);
        if (fd < 0)
                return fd;
        warden.listen_fd = fd;
        if (chown(path, warden.daemon, (gid_t) -1) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
            loop_watch(&warden.accept, fd, on_accept) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "socket %.100s: %s", path, strerror(errno));
        return 0;
}

static void reply(struct asker to, const struct wr *body, int fd, const struct err *failed) {
        struct client *c;

        TAILQ_FOREACH(c, &warden.clients, link) {
                if (c->number == to.client && !c->dead &&
                    ipc_reply(c->watch.fd, to.serial, body ? body->p : NULL, body ? body->len : 0, fd, failed) < 0)
                        c->dead = true; /* it does not read: whoever connects anew asks again */
        }
}

void client_reply(struct asker to, const struct wr *body, const struct err *failed) {
        reply(to, body, -1, failed);
}

void client_reply_fd(struct asker to, const struct wr *body, int fd) {
        reply(to, body, fd, NULL);
}

bool client_is_there(uint64_t number) {
        const struct client *c;

        TAILQ_FOREACH(c, &warden.clients, link) {
                if (c->number == number)
                        return !c->dead;
        }
        return false;
}

void client_tell(const struct wp_event *e) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct client *c;

        wp_put_event(&w, e);
        TAILQ_FOREACH(c, &warden.clients, link) {
                if (c->subscribed)
                        client_reply((struct asker){ c->number, c->serial }, &w, NULL);
        }
}

void client_bury(void) {
        struct client *c, *next;

        for (c = TAILQ_FIRST(&warden.clients); c; c = next) {
                next = TAILQ_NEXT(c, link);
                if (!c->dead)
                        continue;
                loop_drop(&c->watch);
                TAILQ_REMOVE(&warden.clients, c, link);
                warden.n_clients--;
                free(c);
        }
}
