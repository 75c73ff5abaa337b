/*
 * control.h - a running `gabion run` can be spoken to: a socket beside its slot, for its own user alone. Private to
 * run/; the other side is remote.h. docs/protocol/run.md has the messages.
 */
#pragma once

#include <poll.h>

#include "ipc/ipc.h"
#include "sandbox/sandbox.h"

struct loop;

enum control_op {
        CONTROL_POLICY = 1,  /* -> blob: the egress document in force */
        CONTROL_UPDATE = 2,  /* u8 drop old connections, blob: policy document -> str hash */
        CONTROL_DENIALS = 3, /* -> blob: the denials so far */
        CONTROL_SOCKET = 4,  /* u8 family 4|6, u8 1 = datagrams, str what it is for -> a socket of the sandbox */
        CONTROL_VERDICT = 5, /* str what it was for -> blob: the record of that attempt, or null */
        CONTROL_CHECK = 6,   /* -> u8 1 = drift, str control, str what was found */
        CONTROL_OPS,
};

enum { CONTROL_PEERS = 4, CONTROL_FDS = CONTROL_PEERS + 1, CONTROL_WHAT = 300 };

struct control {
        struct loop *loop; /* NULL: nobody listens */
        int listen_fd;
        struct {
                int fd; /* -1: free */
                struct ipc_gate gate;
        } peers[CONTROL_PEERS];
};

/* Nobody listens: what a new one is. */
void control_none(struct control *c);
/* Others can find the sandbox, and ask. Without a network that is nobody's hurry: it is done while the command starts.
 */
int control_open(struct control *c, struct loop *l, struct err *err);
/* For a poll loop: fills CONTROL_FDS entries; and serves what is readable. */
void control_poll(const struct control *c, struct pollfd p[CONTROL_FDS]);
void control_serve(struct control *c, const struct pollfd p[CONTROL_FDS]);
/* Safe to call twice. */
void control_close(struct control *c);
