/*
 * message.h - the messages of process.Process and filesystem.Filesystem: JSON in, structs out, and back. Pure.
 *
 * Texts in what is read are borrowed from the document. An unknown member, or one of a wrong type, is -EINVAL with its
 * name in the message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentproto/agentproto.h"
#include "envd/limits.h"

struct ap_exit;
struct envd_user;
struct err;
struct evbuffer;
struct fp_entry;
struct json;

struct message_start {
        const char *cmd, *cwd, *tag;    /* cwd, tag: NULL if not given */
        const struct json *process;     /* for lists of commands */
        const struct json *args, *envs; /* NULL if not given; all texts */
        bool pty, no_stdin;
        uint32_t rows, cols;
};
struct message_who {
        uint32_t pid; /* 0: by tag */
        const char *tag;
};
/* The first two are E2B's; the others are for `gabion exec`, which passes on what its terminal sends. */
enum message_signal {
        MESSAGE_SIGKILL,
        MESSAGE_SIGTERM,
        MESSAGE_SIGINT,
        MESSAGE_SIGHUP,
        MESSAGE_SIGQUIT,
        MESSAGE_SIGUSR1,
        MESSAGE_SIGUSR2,
};
/* Which members a message may have. */
enum message_about {
        MESSAGE_WHO,
        MESSAGE_SIGNAL,
        MESSAGE_INPUT,
        MESSAGE_RESIZE,
        MESSAGE_DATA, /* of a stream of input */
        MESSAGE_PATH,
        MESSAGE_MOVE,
        MESSAGE_LIST,
        MESSAGE_WATCH,
        MESSAGE_WATCHER,
};
/* What Connect, SendInput, SendSignal, CloseStdin and Update have to say. */
struct message_command {
        struct message_who who;
        const char *stdin_data, *pty_data; /* base64; at most one */
        bool has_size;
        uint32_t rows, cols;
        int signal; /* enum message_signal, or -1 */
};
/* A message of StreamInput: one of them. */
struct message_stream {
        bool has_start, has_data, has_keepalive;
        struct message_command start, data;
};
struct message_file {
        const char *path, *destination, *watcher; /* "" if not given */
        uint32_t depth;
        bool recursive, with_entry, network;
};

int message_start_read(const struct json *j, struct message_start *ret, struct err *err);
int message_command_read(enum message_about about, const struct json *j, struct message_command *ret, struct err *err);
int message_stream_read(const struct json *j, struct message_stream *ret, struct err *err);
int message_file_read(enum message_about about, const struct json *j, struct message_file *ret, struct err *err);
/* Decodes base64 (of either alphabet, padded or not) to the end of `to`. -EINVAL. */
int message_bytes(const char *base64, struct evbuffer *to);

/* Events of a command. The text of an output event begins ENVD_ENVELOPE bytes behind its start; returns its length. */
enum message_stream_name { MESSAGE_STDOUT, MESSAGE_STDERR, MESSAGE_PTY };
#define MESSAGE_OUTPUT (ENVD_ENVELOPE + 64 + (AP_CHUNK + 2) / 3 * 4)
size_t message_output(char dst[MESSAGE_OUTPUT], enum message_stream_name stream, const void *p, size_t n);
struct json *message_started(uint32_t pid, uint64_t at);
struct json *message_gap(uint64_t bytes);
/* exec_errno: the program could not be executed; else 0. */
struct json *message_ended(const struct ap_exit *exit, uint32_t exec_errno);
/* What a list of commands says of one; what is as in ap_command. */
struct json *message_config(const void *what, size_t n);

/* EntryInfo. name: "" = the last part of its path. */
struct json *message_entry(const struct fp_entry *e, const struct envd_user *users, size_t n_users);
/* The file event of that kind, or NULL if there is none (FP_OVERFLOW). Takes entry (may be NULL). */
struct json *message_event(unsigned what, const char *name, struct json *entry);
