/* process.h - what a call of process.Process is about, and what commands tell it. Private. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "envd/message.h"

struct ap_exit;
struct command;
struct control;
struct envd_box;
struct evbuffer;
struct listed;
struct rpc;
TAILQ_HEAD(rpc_list, rpc);

enum process_role {
        PROCESS_ALONE,
        PROCESS_WAITS,   /* for a list: on control.wanted or control.asked */
        PROCESS_FOLLOWS, /* on command.clients */
        PROCESS_WRITES,  /* on command.inputs */
};
struct process_call {
        TAILQ_ENTRY(rpc) link; /* on the list that role says */
        enum process_role role;
        struct rpc_list *list;
        struct command *command; /* while it follows or writes */
        char tag[AP_TAG];
        struct message_who who;
        /* Who waits for a list is then called with the command that is meant; NULL: the list itself is wanted. */
        void (*act)(struct rpc *q, struct command *c);
        /* followers */
        bool live;
        uint64_t from, next;
        /* writers */
        struct evbuffer *data;
        bool is_pty, eof;
};

/* Methods. */
bool process_start(struct rpc *q, const struct json *request);
void process_launched(struct rpc *q, int r);
void process_permitted(struct rpc *q, int r);
void process_room(struct rpc *q);
void process_stop(struct rpc *q);

/* Takes q off the list it is on. */
void process_leave(struct rpc *q);
void process_join(struct rpc *q, enum process_role role, struct rpc_list *list);

/* --- told by commands --- */
/* The list that q waited for is there. */
void process_listed(struct rpc *q, struct control *k);
/* q follows, from byte `at` on. */
void process_live(struct rpc *q, uint64_t at);
/* A message of output; gap: bytes that are lost before. */
void process_output(struct rpc *q, char *message, size_t n);
void process_gap(struct rpc *q, uint64_t bytes);
void process_ended(struct rpc *q, const struct ap_exit *exit, uint32_t exec_errno);
/* For the log: it runs, it has ended. */
void process_announce(struct envd_box *box, const struct command *c);
void process_gone(struct envd_box *box, const struct command *c, const struct ap_exit *exit);
/* All of q's input was passed on. */
void process_written(struct rpc *q);
/* AP_ERROR in answer to a start or an attach, or why it is over. */
void process_refused(struct rpc *q, int r, const char *step);
/* The connection is gone. */
void process_lost(struct rpc *q);
