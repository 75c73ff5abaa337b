/*
 * state.h - what the agent's files share. Private to src/agent.
 *
 * Nothing here is allocated: one struct agent lies in zeroed memory, of which only the pages in use cost anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "agentproto/agentproto.h"

enum {
        AGENT_COMMANDS = 8,
        AGENT_STDIN = 64 * 1024,    /* most input the agent holds for one command; announced at its start */
        AGENT_ANSWER = 128,         /* no frame but AP_OUTPUT is longer */
        AGENT_RESERVE = 1024,       /* room for answers behind a full AP_OUTPUT */
        AGENT_OUTPUT = AP_HEAD + 1, /* what precedes the bytes of an AP_OUTPUT */
};

enum agent_exit { /* how the agent ends; the table is in docs/protocol/agent.md */
                  AGENT_HOST_GONE = 0,
                  AGENT_NO_PDEATHSIG = 10,
                  AGENT_NO_DUMPABLE = 11,
                  AGENT_NO_NULL = 12,
                  AGENT_NO_CLOEXEC = 13,
                  AGENT_NO_BOUNDING = 14,
                  AGENT_NO_SCOPE = 15,
                  AGENT_NO_SIGNALS = 16,
                  AGENT_NO_EPOLL = 17,
                  AGENT_BAD_FRAME = 20, /* the host sent something malformed or not allowed now */
                  AGENT_NO_CAPSET = 21,
                  AGENT_BAD_CONTROL = 22, /* reading or writing the control socket failed */
};

enum child_exit { CHILD_FAILED = 125, CHILD_NO_EXEC = 127 };

/* The control socket: one frame at least coming in, one AP_OUTPUT and some answers going out. */
struct link {
        bool readable, writable; /* until the kernel says EAGAIN; epoll (edge-triggered) sets them again */
        size_t in_len, in_high;
        size_t out_start, out_end;
        uint8_t out[AGENT_OUTPUT + AP_CHUNK + AGENT_RESERVE];
        _Alignas(4096) uint8_t in[AP_FRAME_MAX];
};

struct stream {
        int fd; /* -1: ended */
        bool ready;
        uint32_t drain; /* once the command has ended: bytes still to be taken from here */
};

struct command {
        bool used, tty, exited;
        uint32_t id;
        pid_t pid;
        uint64_t credit; /* output the host will still take */
        struct stream out[2];
        int in_fd; /* -1: closed, or never there */
        bool in_ready, in_eof;
        uint32_t in_granted;     /* bytes the host may still send */
        uint32_t in_owed;        /* bytes to be granted again */
        size_t in_start, in_end; /* held bytes */
        struct ap_exit exit;
        uint8_t in[AGENT_STDIN + 1]; /* one more for a terminal's ^D */
};

struct agent {
        int epoll_fd, signal_fd, scope_fd;
        struct sockaddr_un scope; /* the name that no command may reach; see AP_READY.scope_errno */
        socklen_t scope_len;
        bool configured, reap;
        struct link link;
        struct command commands[AGENT_COMMANDS];
        const char *vectors[2 * AP_ARGS_MAX + 2];
};

/* What the process that will become a command needs. */
struct child {
        const struct ap_spawn *spawn;
        uint32_t id;
        int stdio[3]; /* -1: stays /dev/null */
        const struct agent *agent;
};

/* --- link.c: the control socket. Ends the agent when the host is gone. --- */
bool link_flush(struct link *l);
bool link_fill(struct link *l);
/* Space for one answer (AGENT_ANSWER bytes at least) is there. */
bool link_has_room(const struct link *l);
/* Everything was handed to the kernel, so that a whole AP_OUTPUT fits. */
bool link_is_empty(const struct link *l);
/* Where the next answer is written, and the statement that it was. */
struct wr link_answer(struct link *l);
void link_commit(struct link *l, const struct wr *w);
/* Forgets the first n bytes that came in. */
void link_eat(struct link *l, size_t n);

/* --- frames.c: what the host may say, and when. --- */
/* Serves the frames that are there; true if there was one. Ends the agent on a bad one. */
bool frames_serve(struct agent *a);

/* --- command.c: commands, their input and output. --- */
struct command *command_find(struct agent *a, uint32_t id);
/* Answers with AP_STARTED or AP_ERROR. */
void command_start(struct agent *a, uint32_t id, const struct ap_spawn *spawn);
/* Moves what can be moved without waiting; true if something was. */
bool command_pump(struct agent *a, struct command *c);
/* Reaps some of the ended processes. */
void command_reap(struct agent *a);
/* False: more than was granted, or after the end. */
bool command_stdin(struct command *c, const void *p, size_t n);
bool command_stdin_eof(struct command *c);

/* --- stdio.c: the descriptors of a command. --- */
struct stdio {
        int agent[3]; /* the agent's ends, not blocking; a terminal's are [0] and [1] */
        int child[3];
};
int stdio_open(struct stdio *s, const struct ap_spawn *spawn, const char **ret_step);
void stdio_close(int fds[3]);

/* --- child.c: from fork to exec. --- */
_Noreturn void child_run(const struct child *c);

/* --- exec.c --- */
/* Returns only on failure: an errno. */
int exec_search(const char *const argv[], const char *const envp[]);

/* --- main.c --- */
/* Parent-death signal and non-dumpable: the kernel clears both whenever the agent's file-system ids change. */
int agent_guard(void);
