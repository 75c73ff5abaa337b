/* remote.c - see remote.h. */
#include "run/remote.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/net.h"
#include "policy/policy.h"
#include "run/control.h"

enum { ANSWER_MS = 15000 };

int remote_open(const char *sandbox, struct err *err) {
        AUTO_FD int fd = -1;
        char path[SANDBOX_PATH];
        struct ipc_peer peer;
        int r = sandbox_find(sandbox, path, err);

        if (r < 0)
                return r;
        fd = ipc_connect(path, err);
        if (fd < 0)
                return fd;
        r = ipc_peer_get(fd, &peer, err);
        if (r == 0 && peer.uid != geteuid())
                r = err_set(err, -EPERM, ERR_DENIED, "sandbox %.40s: its socket is somebody else's", sandbox);
        return r < 0 ? r : TAKE_FD(fd);
}

/* A request whose answer is a blob. */
static int blob_get(int fd, struct wr *w, char **ret, size_t *ret_n, struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg reply = { 0 };
        int r = ipc_call(fd, w, NULL, 0, ANSWER_MS, &reply, err);

        if (r < 0)
                return r;
        if (reply.n_fds != 1)
                return err_set(err, -EPROTO, ERR_PEER, "the sandbox's supervisor answers something else");
        return ipc_blob_read(reply.fds[0], IPC_BLOB_MAX, ret, ret_n, err);
}

int remote_policy(int fd, char **ret, size_t *ret_n, struct err *err) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        ipc_begin(&w, CONTROL_POLICY, 0);
        return blob_get(fd, &w, ret, ret_n, err);
}

int remote_denials(int fd, char **ret, struct err *err) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        size_t n;

        ipc_begin(&w, CONTROL_DENIALS, 0);
        return blob_get(fd, &w, ret, &n, err);
}

int remote_update(int fd, const struct policy *p, bool drop, char ret_hash[HASH_TEXT], struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg reply = { 0 };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        AUTO_FREE char *text = NULL;
        AUTO_FD int blob = -1;
        int r = policy_canonical(p, &text, err);

        if (r < 0)
                return r;
        blob = ipc_blob_make(text, strlen(text), err);
        if (blob < 0)
                return blob;
        ipc_begin(&w, CONTROL_UPDATE, 0);
        wr_u8(&w, drop);
        r = ipc_call(fd, &w, &blob, 1, ANSWER_MS, &reply, err);
        if (r < 0)
                return r;
        rd_str(&reply.body, ret_hash, HASH_TEXT);
        return rd_done(&reply.body) ? 0 : err_set(err, -EPROTO, ERR_PEER, "the sandbox's supervisor answers nonsense");
}

int remote_check(int fd, char control[REMOTE_CONTROL], char found[REMOTE_FOUND], struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg reply = { 0 };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        int r;

        ipc_begin(&w, CONTROL_CHECK, 0);
        r = ipc_call(fd, &w, NULL, 0, ANSWER_MS, &reply, err);
        if (r < 0)
                return r;
        r = rd_u8(&reply.body);
        rd_str(&reply.body, control, REMOTE_CONTROL);
        rd_str(&reply.body, found, REMOTE_FOUND);
        return rd_done(&reply.body) ? r : err_set(err, -EPROTO, ERR_PEER, "the sandbox's supervisor answers nonsense");
}

int remote_socket(int fd, bool six, bool datagram, const char *what, struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg reply = { 0 };
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        int r;

        ipc_begin(&w, CONTROL_SOCKET, 0);
        wr_u8(&w, six ? 6 : 4);
        wr_u8(&w, datagram);
        wr_str(&w, what);
        r = ipc_call(fd, &w, NULL, 0, ANSWER_MS, &reply, err);
        if (r < 0)
                return r;
        return reply.n_fds == 1 ? TAKE_FD(reply.fds[0])
                                : err_set(err, -EPROTO, ERR_PEER, "the sandbox's supervisor gave no socket");
}

int remote_verdict(int fd, const char *what, char **ret, struct err *err) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        size_t n;

        ipc_begin(&w, CONTROL_VERDICT, 0);
        wr_str(&w, what);
        return blob_get(fd, &w, ret, &n, err);
}
