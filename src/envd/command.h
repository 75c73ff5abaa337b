/*
 * command.h - the connection about commands of one sandbox, and the commands it knows. Private.
 *
 * Theory of operation. One connection per sandbox, opened when first needed. A command that was started here, or asked
 * for, is held: this connection is attached to it until its end. Clients that follow it share the agent's one stream;
 * each gets the bytes from its own `next` on. Without clients the command is attached "quiet": the agent keeps the last
 * of its output and the command is not held up by anybody.
 *
 * At most one request to the agent is under way for each command. command_settle() compares what is with what should be
 * and sends the next one; it is called after every change and after every answer.
 */
#pragma once

#include "agentproto/agentproto.h"
#include "envd/process.h"
#include "envd/state.h"

struct wr;
TAILQ_HEAD(command_list, command);

struct command {
        TAILQ_ENTRY(command) link; /* owned by its control */
        struct control *control;
        uint32_t number; /* 0: it is being started */
        uint32_t pid;
        uint32_t request; /* under way to the agent; 0: none */
        bool ask_quiet;   /* what that request asks for */
        uint64_t ask_from;
        bool tty, has_stdin;
        bool attached, reading, exited;
        enum { COMMAND_FREE, COMMAND_HELD, COMMAND_DROPPED } hold; /* as AP_START had AP_HOLD, and what AP_GO said */
        uint64_t at;                                               /* the next byte of output */
        uint64_t credit;                                           /* output that the agent may still send */
        uint32_t in_credit;                                        /* input that it will still take */
        uint32_t exec_errno;                                       /* the program could not be executed */
        char tag[AP_TAG];
        struct json *config;          /* what lists say of it */
        const struct envd_user *user; /* NULL: it was there before us */
        struct rpc_list clients;      /* process.live: it was told of the start */
        struct rpc_list inputs;       /* in order; the first is being sent */
        struct event *deadline;       /* NULL: none */
        uint64_t began_ns;            /* 0: it was there before us */
};

/* One line of a list. */
struct listed {
        struct ap_command c; /* what: in bytes */
        uint8_t bytes[AP_WHAT];
};

struct control {
        struct envd_box *box;
        struct agent *agent;
        uint32_t last_id;
        struct command_list commands;
        struct rpc_list wanted, asked; /* who waits for the next list, and for the one under way */
        bool listing;
        uint32_t list_id;
        size_t n_list;
        struct listed *list; /* of AP_COMMANDS; NULL while there is none */
};

/* --- control.c --- */
/* The connection, opened if there is none. */
int commands_get(struct envd_box *box, struct control **ret, struct err *err);
/* Nothing may be left that waits for it. Accepts NULL. */
struct control *commands_free(struct control *k);
uint32_t commands_id(struct control *k);
/* process_listed() follows for q, unless process_leave() comes first. */
void commands_list(struct control *k, struct rpc *q);
extern const struct agent_ops commands_ops;

/* --- command.c --- */
int command_new(struct control *k, struct command **ret);
void command_free(struct command *c);
/* Who is meant among those held: not one that has ended. */
struct command *command_find(struct control *k, const struct message_who *who);
struct command *command_by_number(struct control *k, uint32_t number);
/* The same among the listed; those that have ended too, if there is no other. */
const struct listed *command_find_listed(const struct control *k, const struct message_who *who);
/* One that is held goes on, or ends before its program began; others do not notice. */
void command_go(struct command *c, bool go);
/* Sends the AP_START in w, which has that id. timeout_ms 0: none. False: too long. */
bool command_start(struct command *c, const struct wr *w, uint32_t id, uint64_t timeout_ms);
void command_settle(struct command *c);
/* Sends input that may be sent. */
void command_pump(struct command *c);
/* Lets the agent send more, if every client can take it. */
void command_grant(struct command *c);
/* A frame about it. Negative: the agent may not say that. */
int command_answer(struct command *c, const struct ap_head *head, const void *body, size_t n, struct err *err);
int command_frame(struct command *c, const struct ap_head *head, const void *body, size_t n, struct err *err);
