/* command.h - a command's inside, shared by process.c (output, life) and input.c (input, signals, sizes). Private. */
#pragma once

#include "client/process.h"
#include "client/state.h"

#define COMMAND_STREAM_TYPE "application/connect+json"

struct client_process {
        struct client *client;
        const struct client_box *box;
        struct client_process_config config;
        char user[CLIENT_NAME_TEXT];
        /* output */
        struct client_call *follow;
        unsigned status;
        struct evbuffer *in, *out; /* messages that are not whole yet; output that the owner has not taken */
        enum client_stream stream;
        uint32_t pid; /* 0: not started */
        uint64_t at;  /* the next byte of output */
        bool ended, noted;
        struct event *again; /* to follow it once more */
        uint64_t again_until_ms;
        /* input */
        struct client_call *input;
        bool input_over, input_closes;
        struct event *beat;
};

/* process.c: nobody will know how it ended. */
void command_fail(struct client_process *p, const struct err *err);

/* input.c */
/* Opens the stream of input, if one is wanted and none is open. */
void command_open_input(struct client_process *p);
/* The connection is lost, and nobody knows how much of the input arrived. */
void command_fail_input(struct client_process *p);
