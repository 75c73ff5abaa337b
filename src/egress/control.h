/* control.h - the socket to the supervisor: its requests in, answers and records out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egressproto/egressproto.h"

struct control;
struct err;
struct event_base;

/* Who records are from. Zero it before use. */
struct control_source {
        size_t waiting; /* records that nobody has taken yet */
};

/* What the owner of the socket does. */
struct control_ops {
        /* One request with its descriptors, as many as egp_n_fds() wants; those that are kept are set to -1. Answers it
         * by control_answer() or control_fail(). Negative: the peer is broken, and the process has to end. */
        int (*on_request)(void *arg, const struct egp_message *m, int *fds, struct err *err);
        /* The supervisor has taken records: somebody who waits for that may go on. */
        void (*on_drained)(void *arg);
        /* It is gone, or has to be given up (err says why). */
        void (*on_end)(void *arg, const struct err *err);
};

/* Takes fd, which becomes non-blocking. */
int control_new(struct event_base *base, int fd, const struct control_ops *ops, void *arg, struct control **ret,
                struct err *err);
struct control *control_free(struct control *c);
/* Puts an answer behind what waits already. fds are sent as copies. */
void control_answer(struct control *c, const struct egp_message *m, const int *fds, size_t n_fds);
void control_fail(struct control *c, uint32_t request, const struct err *why);
/* urgent: at once; otherwise it may wait some milliseconds for others. */
void control_record(struct control *c, struct control_source *from, const char *text, bool urgent);
/* Records of all sources that wait. */
size_t control_waiting(const struct control *c);
/* The source is about to go; its records stay. */
void control_forget(struct control *c, const struct control_source *from);
