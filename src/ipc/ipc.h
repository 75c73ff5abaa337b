/*
 * ipc.h - messages between our own processes: SOCK_SEQPACKET, one message per datagram, descriptors beside it.
 *
 * Request: u16 type, u32 serial, body. Reply: u16 status (0, or 1 + enum err_kind), u32 serial, body; the body of a
 * failure is u32 errno and a string for operators. Big-endian. What does not fit into IPC_MAX goes as a sealed memfd.
 *
 * A server keeps one `struct ipc_gate` per peer and calls ipc_serve() when its socket is readable. -EPROTO and -EBADMSG
 * mean that the peer is broken or hostile: close it, and say so in the audit log. Those two codes are the gate's and a
 * handler's verdict over the message; a handler that refuses for another reason returns anything else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rd.h"
#include "base/wr.h"

struct err;

enum { IPC_MAX = 4096, IPC_HEAD = 6, IPC_FDS = 4, IPC_BLOB_MAX = 8 << 20 };

/* One message with its descriptors, which it owns until ipc_msg_done() or TAKE_FD(). */
struct ipc_msg {
        size_t n, n_fds;
        int fds[IPC_FDS];
        struct rd body; /* of a reply, into bytes */
        uint8_t bytes[IPC_MAX];
};

struct ipc_peer {
        pid_t pid; /* of the process that connected; it may be gone by now, so never act on it */
        uid_t uid;
        gid_t gid;
};

struct ipc_gate;

struct ipc_call {
        struct ipc_gate *gate;
        uint32_t serial;
        struct rd body;
        int *fds;         /* as many as the table says; a handler that keeps one uses TAKE_FD() */
        struct wr *reply; /* body of the reply; starts empty */
        int reply_fd;     /* -1; else sent with the reply and closed */
};

enum { IPC_REPLY_NOW = 0, IPC_REPLY_LATER = 1 };

struct ipc_op {
        const char *name;
        /* IPC_REPLY_NOW, IPC_REPLY_LATER (somebody calls ipc_reply() with the serial), or a negative errno. */
        int (*fn)(struct ipc_call *call, struct err *err);
        unsigned states; /* BIT() of each state in which the request is legal */
        uint16_t max_len;
        uint8_t n_fds;
        bool once;
};

struct ipc_gate {
        const struct ipc_op *ops; /* index = type, below 32; rows without fn are unknown */
        size_t n_ops;
        unsigned state, used;
        void *owner; /* the server's own idea of the peer */
        struct ipc_peer peer;
};

/* --- sockets; descriptors returned are blocking and CLOEXEC --- */
/* Makes the socket (an old one at that path is replaced) with the given mode. Returns the descriptor. */
int ipc_listen(const char *path, mode_t mode, struct err *err);
/* Takes a connection and the peer's credentials. -EAGAIN when none waits on a non-blocking listener. */
int ipc_accept(int listen_fd, struct ipc_peer *ret, struct err *err);
int ipc_connect(const char *path, struct err *err);
/* Who is at the other end: for a client, the process that called listen(). */
int ipc_peer_get(int fd, struct ipc_peer *ret, struct err *err);

/* --- messages --- */
/* Sends one message whole. -EAGAIN when a non-blocking socket is full. */
int ipc_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds);
/* Receives one message. 1; 0 when the peer has closed; -EAGAIN; -EBADMSG when it was longer or had more descriptors
 * than allowed. */
int ipc_recv(int fd, struct ipc_msg *ret);
void ipc_msg_done(struct ipc_msg *m);

/* --- server --- */
/* Everything a request must satisfy before its handler sees a byte is checked here and nowhere else. Pure but for the
 * handler. The reply's head and body are in *reply, unless IPC_REPLY_LATER was returned. */
int ipc_dispatch(struct ipc_gate *g, struct ipc_msg *m, struct wr *reply, int *ret_reply_fd, struct err *err);
/* Receives, dispatches and answers one request. 0; 1 when the peer has closed; -EAGAIN; else the peer must go. */
int ipc_serve(struct ipc_gate *g, int fd, struct err *err);
/* Answers a request that was put off: failed = NULL for success. */
int ipc_reply(int fd, uint32_t serial, const void *body, size_t n, int with_fd, const struct err *failed);

/* --- client --- */
/* Starts a request in w (of IPC_MAX bytes). */
void ipc_begin(struct wr *w, uint16_t type, uint32_t serial);
/* Splits a reply: 0 and m->body, or the peer's error as *err. -EPROTO when it answers something else. */
int ipc_result(struct ipc_msg *m, uint32_t serial, struct err *err);
/*
 * Sends the request in w and waits for its reply until the deadline. The serial is chosen here, w->p + 2 is
 * overwritten. The reply's body is *ret_body, which points into *reply. -ETIMEDOUT leaves the connection unusable:
 * close it.
 */
int ipc_call(int fd, struct wr *w, const int *fds, size_t n_fds, unsigned deadline_ms, struct ipc_msg *reply,
             struct err *err);

/* --- what is too large for a message --- */
/* A sealed copy. Returns the descriptor. */
int ipc_blob_make(const void *p, size_t n, struct err *err);
/* Reads a blob whole, after checking that nobody can change it any more. The caller frees *ret, which has a NUL behind
 * its n bytes. */
int ipc_blob_read(int fd, size_t max, char **ret, size_t *ret_n, struct err *err);
