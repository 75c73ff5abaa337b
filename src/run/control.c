/*
 * control.c - requests of the user to the sandbox's supervisor while the command runs.
 *
 * Invariant: only the user who started the sandbox is heard, and a request can only narrow or widen the network within
 * the ceiling that was given at the start; nothing else of the sandbox can be changed.
 */
#include "run/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/net.h"
#include "run/loop.h"

static int reply_blob(struct ipc_call *call, const char *text, struct err *err) {
        call->reply_fd = ipc_blob_make(text, strlen(text), err);
        return call->reply_fd < 0 ? call->reply_fd : IPC_REPLY_NOW;
}

static int malformed(const char *what, struct err *err) {
        return err_set(err, -EBADMSG, ERR_PEER, "%s: malformed", what);
}

/* The other requests are about the network. */
static int no_network(const struct loop *l, struct err *err) {
        return l->net->egress ? 0
                              : err_set(err, -EOPNOTSUPP, ERR_INVALID,
                                        "the sandbox has no network: it was started without --net, --allow or a policy "
                                        "that has one");
}

static int on_policy(struct ipc_call *call, struct err *err) {
        const struct loop *l = call->gate->owner;
        int r = no_network(l, err);

        if (r < 0)
                return r;
        return rd_done(&call->body) ? reply_blob(call, l->net->document, err) : malformed("policy", err);
}

static int on_update(struct ipc_call *call, struct err *err) {
        struct loop *l = call->gate->owner;
        AUTO_FREE char *text = NULL;
        char hash[HASH_TEXT];
        bool drop = rd_u8(&call->body) != 0;
        size_t n;
        int r = no_network(l, err);

        if (!rd_done(&call->body))
                return malformed("update", err);
        if (r == 0)
                r = ipc_blob_read(call->fds[0], POLICY_FILE_BYTES, &text, &n, err);
        if (r == 0)
                r = network_update(l->net, text, n, drop, hash, err);
        if (r < 0)
                return r == -EBADMSG || r == -EPROTO ? err_set(err, -EINVAL, ERR_INVALID, "the policy is malformed")
                                                     : r;
        wr_str(call->reply, hash);
        return IPC_REPLY_NOW;
}

static int on_denials(struct ipc_call *call, struct err *err) {
        const struct loop *l = call->gate->owner;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        int r = rd_done(&call->body) ? run_denials_json(l->result, &doc, err) : malformed("denials", err);

        if (r == 0)
                r = json_text(doc, false, &text, err);
        return r < 0 || !text ? r : reply_blob(call, text, err);
}

static int on_socket(struct ipc_call *call, struct err *err) {
        struct loop *l = call->gate->owner;
        unsigned family = rd_u8(&call->body), datagram = rd_u8(&call->body);
        char what[CONTROL_WHAT];
        int r = no_network(l, err);

        rd_str(&call->body, what, sizeof(what));
        if (r < 0)
                return r;
        if (!rd_done(&call->body) || (family != 4 && family != 6) || datagram > 1)
                return malformed("socket", err);
        network_expect(l->net, what);
        call->reply_fd = sandbox_net_socket(l->sb, family == 6, datagram == 1, err);
        return call->reply_fd < 0 ? call->reply_fd : IPC_REPLY_NOW;
}

static int on_verdict(struct ipc_call *call, struct err *err) {
        struct loop *l = call->gate->owner;
        char what[CONTROL_WHAT];
        const char *record;
        int r = no_network(l, err);

        rd_str(&call->body, what, sizeof(what));
        if (r < 0)
                return r;
        if (!rd_done(&call->body))
                return malformed("verdict", err);
        record = network_expected(l->net, what);
        return reply_blob(call, record ? record : "{}", err);
}

static int on_check(struct ipc_call *call, struct err *err) {
        struct loop *l = call->gate->owner;
        struct evidence_drift d = { .control = "" };
        int r = rd_done(&call->body) ? watch_check(l->watch, &d) : malformed("check", err);

        if (r < 0)
                return r == -EBADMSG ? r : err_set(err, r, ERR_NOT_FOUND, "the sandbox is ending");
        wr_u8(call->reply, (uint8_t) r);
        wr_str(call->reply, d.control);
        wr_str(call->reply, d.found);
        return IPC_REPLY_NOW;
}

static const struct ipc_op ops[CONTROL_OPS] = {
        [CONTROL_POLICY] = { "policy", on_policy, BIT(0), 0, 0, false },
        [CONTROL_UPDATE] = { "update", on_update, BIT(0), 1, 1, false },
        [CONTROL_DENIALS] = { "denials", on_denials, BIT(0), 0, 0, false },
        [CONTROL_SOCKET] = { "socket", on_socket, BIT(0), CONTROL_WHAT + 4, 0, false },
        [CONTROL_VERDICT] = { "verdict", on_verdict, BIT(0), CONTROL_WHAT + 2, 0, false },
        [CONTROL_CHECK] = { "check", on_check, BIT(0), 0, 0, false },
};

void control_none(struct control *c) {
        *c = (struct control){ .listen_fd = -1 };
        for (size_t i = 0; i < CONTROL_PEERS; i++)
                c->peers[i].fd = -1;
}

int control_open(struct control *c, struct loop *l, struct err *err) {
        char path[SANDBOX_PATH];
        int r;

        c->loop = l;
        r = sandbox_announce(l->sb, path, err);
        if (r == 0)
                c->listen_fd = r = ipc_listen(path, 0600, err);
        return r < 0 ? r : 0;
}

void control_poll(const struct control *c, struct pollfd p[CONTROL_FDS]) {
        p[0] = (struct pollfd){ c->listen_fd, POLLIN, 0 };
        for (size_t i = 0; i < CONTROL_PEERS; i++)
                p[i + 1] = (struct pollfd){ c->peers[i].fd, POLLIN, 0 };
}

/* Somebody else's connection, or one too many, is closed at once. */
static void peer_accept(struct control *c) {
        struct err e = { 0 };
        struct ipc_peer peer;
        AUTO_FD int fd = ipc_accept(c->listen_fd, &peer, &e);

        if (fd < 0 || peer.uid != geteuid())
                return;
        for (size_t i = 0; i < CONTROL_PEERS; i++) {
                if (c->peers[i].fd >= 0)
                        continue;
                c->peers[i].gate =
                        (struct ipc_gate){ .ops = ops, .n_ops = CONTROL_OPS, .owner = c->loop, .peer = peer };
                c->peers[i].fd = TAKE_FD(fd);
                return;
        }
}

void control_serve(struct control *c, const struct pollfd p[CONTROL_FDS]) {
        for (size_t i = 0; i < CONTROL_PEERS; i++) {
                struct err e = { 0 };
                int r;

                if (!p[i + 1].revents || c->peers[i].fd < 0)
                        continue;
                r = ipc_serve(&c->peers[i].gate, c->peers[i].fd, &e);
                if (r != 0 && r != -EAGAIN)
                        (void) close(TAKE_FD(c->peers[i].fd));
        }
        if (p[0].revents)
                peer_accept(c);
}

void control_close(struct control *c) {
        for (size_t i = 0; i < CONTROL_PEERS; i++)
                if (c->peers[i].fd >= 0)
                        (void) close(TAKE_FD(c->peers[i].fd));
        if (c->listen_fd >= 0)
                (void) close(TAKE_FD(c->listen_fd));
}
