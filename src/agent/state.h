/*
 * state.h - what the agent's files share. Private to src/agent.
 * layers: allow-long the whole of the agent's state, and every function that more than one file uses
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
        AGENT_CONNS = 16,           /* connections about commands at once, */
        AGENT_GATES = 2,            /* and to the gate beside them */
        AGENT_PORTS = 64,           /* streams to ports inside */
        AGENT_WORKERS = 32,         /* connections about files */
        AGENT_LAUNCHERS = 2,        /* users */
        AGENT_RUNS = 256,           /* changes between standard output and error among kept output */
        AGENT_STDIN = 64 * 1024,    /* most input the agent holds for one command; announced at its start */
        AGENT_ANSWER = 128,         /* no frame but AP_OUTPUT and AP_COMMAND is longer */
        AGENT_RESERVE = 1024,       /* room for answers behind a full AP_OUTPUT */
        AGENT_OUTPUT = AP_HEAD + 1, /* what precedes the bytes of an AP_OUTPUT */
        AGENT_PAGE = 4096,
        AGENT_FD_CHANNEL = 3, /* a launcher's way to the agent, once it has left the gate */
};
#define AGENT_WORKER UINT32_MAX /* instead of a command's number, between launcher and agent */

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
                  AGENT_BAD_FRAME = 20, /* the only host sent something malformed or not allowed now */
                  AGENT_NO_CAPSET = 21,
                  AGENT_BAD_CONTROL = 22, /* reading or writing the only control socket failed */
};

enum child_exit { CHILD_FAILED = 125, CHILD_NO_EXEC = 127 };

/* What an epoll event is about: kind << 16 | index. */
enum agent_key { KEY_COMMAND, KEY_CONN, KEY_PORT, KEY_LAUNCHER, KEY_LISTEN, KEY_CHILD };

enum conn_kind {
        CONN_SOLE,    /* the connected control socket: the agent ends with it */
        CONN_FRESH,   /* accepted; its first frame says what it will be */
        CONN_CONTROL, /* about commands */
        CONN_GATE,    /* the warden's */
};

_Static_assert(AP_COMMANDS == 64, "commands_used has a bit for each");

/* A connection: one frame at least coming in, one AP_OUTPUT and some answers going out. */
struct conn {
        enum conn_kind kind;
        int fd;
        bool readable, writable; /* until the kernel says EAGAIN; epoll (edge-triggered) sets them again */
        bool dead;               /* to be closed at the end of the turn */
        bool listing;            /* an AP_LIST is being answered: */
        uint32_t list_id, list_at;
        size_t in_len, in_high;
        size_t out_start, out_end;
        uint8_t out[AGENT_OUTPUT + AP_CHUNK + AGENT_RESERVE];
        _Alignas(AGENT_PAGE) uint8_t in[AP_FRAME_MAX];
};

struct stream {
        int fd; /* -1: ended */
        bool ready;
        uint32_t drain; /* once the command has ended: bytes still to be taken from here */
};

/* The last bytes of a command's output, of both streams, in the order in which they came. */
struct ring {
        uint64_t tail, head; /* which bytes, counted from the command's first */
        uint32_t first, n;   /* runs in use */
        struct run {
                uint64_t from; /* bytes from here on, up to the next run, are of that stream */
                uint64_t stream;
        } runs[AGENT_RUNS];
        uint8_t bytes[AP_KEPT];
};

struct command {
        bool tty, started, exited, told; /* started: pid is known, and nothing holds it */
        uint32_t number;                 /* the id of its frames */
        uint32_t request, uid;
        pid_t pid;
        struct conn *conn;      /* who hears of its end and gives its input; NULL: nobody */
        bool announce, gap_due; /* AP_RUNNING, AP_GAP are to be sent */
        bool reading;           /* conn also takes its output, and the command waits for that */
        uint64_t at, gap;       /* the next byte for conn; bytes lost before it */
        uint64_t credit;        /* output the host will still take */
        uint64_t expires_ms;    /* the exit is forgotten then */
        uint32_t fail_errno;    /* it could not be started: AP_ERROR is to be sent */
        uint32_t exec_errno;    /* it started, but its program did not */
        char fail_step[16];
        struct stream out[2];
        int hold_fd; /* > 0: the exec waits for one byte from here, and closing it ends the child; see AP_HOLD */
        int in_fd;   /* -1: closed, or never there */
        bool in_ready, in_eof, had_stdin; /* had_stdin: there were bytes in `in` */
        uint32_t in_granted;              /* bytes the host may still send */
        uint32_t in_owed;                 /* bytes to be granted again */
        size_t in_start, in_end;          /* held bytes */
        struct ap_exit exit;
        char tag[AP_TAG];
        uint16_t n_what;
        uint8_t what[AP_WHAT];
        struct ring ring;
        uint8_t in[AGENT_STDIN + 1]; /* one more for a terminal's ^D */
} __attribute__((aligned(AGENT_PAGE)));

/* A stream to a port inside: bytes go through two pipes and never through our memory. Side 0 is the host's. */
struct port {
        bool used, connecting, v6;
        uint32_t id;
        uint16_t number;
        int fds[2];
        bool readable[2], writable[2];
        struct flow {
                int pipe[2];
                size_t held;
                bool eof, shut;
        } flows[2]; /* [i]: read from side i */
};

/* A process with every control of one user's commands, which starts them. See launcher.c. */
struct launcher {
        pid_t pid;                  /* 0: none */
        uint32_t uid, gid, pending; /* workers that have not told their pid yet */
        int fd;
        bool readable;
};

struct agent {
        bool sole; /* one host, connected, with which we end */
        bool configured, reap;
        int epoll_fd, signal_fd, scope_fd;
        struct sockaddr_un scope; /* the name that no command may reach; see AP_READY.scope_errno */
        socklen_t scope_len;
        bool accept[2]; /* connections may wait at control, gate */
        uint32_t last_number;
        struct launcher launchers[AGENT_LAUNCHERS];
        pid_t workers[AGENT_WORKERS];
        uint32_t n_workers; /* with pending ones */
        size_t n_env;
        uint8_t env[AP_ENV_MAX]; /* the last AP_ENV */
        struct port ports[AGENT_PORTS];
        const char *vectors[2 * AP_ARGS_MAX + 2];
        /* One bit for each in use: looking at the others would touch their pages. */
        uint64_t conns_used, commands_used;
        struct conn conns[AGENT_CONNS + AGENT_GATES];
        struct command commands[AP_COMMANDS];
};

/* Whatever is in use when the loop starts; the body may release what it looks at. */
#define EACH_COMMAND(a, c)                                                                                             \
        for (uint64_t commands_left_ = (a)->commands_used;                                                             \
             commands_left_ && ((c) = &(a)->commands[__builtin_ctzll(commands_left_)], true);                          \
             commands_left_ &= commands_left_ - 1)
#define EACH_CONN(a, l)                                                                                                \
        for (uint64_t conns_left_ = (a)->conns_used;                                                                   \
             conns_left_ && ((l) = &(a)->conns[__builtin_ctzll(conns_left_)], true); conns_left_ &= conns_left_ - 1)

/* What the process that will become a command or a launcher needs. */
struct child {
        const struct ap_spawn *spawn;
        uint32_t id;
        int stdio[3]; /* -1: stays /dev/null */
        int gate_fd;
        struct agent *agent;
};

/* --- main.c --- */
/* Parent-death signal and non-dumpable: the kernel clears both whenever the agent's file-system ids change. */
int agent_guard(const struct agent *a);
/* Edge-triggered; 0 or negative errno. */
int agent_watch(const struct agent *a, int fd, uint32_t events, enum agent_key kind, uint32_t index);
/* Takes it out of epoll and closes it. By hand: a process forked meanwhile may still hold the file, and with it the
 * registration. */
void agent_unwatch(const struct agent *a, int *fd);

/* --- conn.c: connections. The death of the only host ends the agent. --- */
struct conn *conn_open(struct agent *a, int fd, enum conn_kind kind);
/* Takes connections that wait at control (0) or gate (1); true if there was one. */
bool conn_accept(struct agent *a, unsigned which);
/* Closes those that are dead. */
void conn_bury(struct agent *a);
bool conn_flush(struct conn *l);
bool conn_fill(struct conn *l);
/* Space for one answer (AGENT_ANSWER bytes at least) is there. */
bool conn_has_room(const struct conn *l);
/* Everything was handed to the kernel, so that a whole AP_OUTPUT fits. */
bool conn_is_empty(const struct conn *l);
/* Where the next answer is written, and the statement that it was. */
struct wr conn_answer(struct conn *l);
void conn_commit(struct conn *l, const struct wr *w);
void conn_error(struct conn *l, uint32_t id, int r, const char *step);
/* AP_ERROR at once, on a socket that carried no frame of ours yet. */
void conn_refuse(int fd, uint32_t id, int r, const char *step);
/* Forgets the first n bytes that came in. */
void conn_eat(struct conn *l, size_t n);

/* --- frames.c: what the host may say, and when. --- */
/* Serves the frames that are there; true if there was one. */
bool frames_serve(struct agent *a, struct conn *l);

/* --- ring.c: kept output. --- */
/* Where bytes of a stream may be put, and how many. Those from `need` on may not be overwritten. */
size_t ring_room(struct ring *r, unsigned stream, uint64_t need, uint8_t **ret);
void ring_add(struct ring *r, unsigned stream, size_t n);
/* The bytes at a place, as many as lie together and are of one stream. */
size_t ring_peek(const struct ring *r, uint64_t at, const uint8_t **ret, unsigned *ret_stream);

/* --- command.c: commands, their input and output. --- */
struct command *command_find(struct agent *a, uint32_t number);
/* A place for a new one, the descriptors already watched; *ret_step on failure. */
struct stdio;
int command_new(struct agent *a, struct stdio *s, struct command **ret, const char **ret_step);
void command_release(struct agent *a, struct command *c);
/* AP_SPAWN of a program: answers with AP_STARTED or AP_ERROR. */
void command_spawn(struct agent *a, struct conn *l, uint32_t id, const struct ap_spawn *spawn);
/* Moves what can be moved without waiting; true if something was. */
bool command_pump(struct agent *a, struct command *c);
/* Reaps some of the ended processes. */
void command_reap(struct agent *a);
/* Forgets exits that are old enough. Milliseconds until the next is, or -1. */
int command_expire(struct agent *a);
/* False: more than was granted, or after the end. */
bool command_stdin(struct command *c, const void *p, size_t n);
bool command_stdin_eof(struct command *c);

/* --- start.c: requests about commands in a sandbox that lives on by itself. --- */
/* False: the frame is malformed. */
bool start_command(struct agent *a, struct conn *l, uint32_t id, uint8_t *body, size_t n);
bool start_attach(struct agent *a, struct conn *l, uint32_t id, const void *body, size_t n);
void start_detach(struct command *c);
/* AP_GO: the same. One that is not held has failed already, or is another connection's. */
bool start_go(struct agent *a, struct conn *l, uint32_t id, const void *body, size_t n);
/* Goes on with an AP_LIST. */
bool start_list(struct agent *a, struct conn *l);

/* --- launcher.c: the agent's side of launchers, and the launcher. --- */
void launcher_start(struct agent *a, struct conn *l, uint32_t id, const struct ap_spawn *spawn);
struct launcher *launcher_find(struct agent *a, uint32_t uid);
int launcher_send(const struct launcher *u, const void *frame, size_t n, const int *fds, size_t n_fds);
/* Serves what a launcher or its children say. */
bool launcher_serve(struct agent *a, struct launcher *u);
/* All that a child said before its end, once it was reaped. */
void launcher_listen(struct agent *a);
/* Gives the connection to a worker of that user. */
void launcher_files(struct agent *a, struct conn *l, uint32_t id, uint32_t uid);
void launcher_ended(struct agent *a, pid_t pid);
_Noreturn void launcher_run(struct agent *a);

/* --- port.c: streams to ports inside. --- */
void port_open(struct agent *a, struct conn *l, uint32_t id, uint32_t number);
bool port_pump(struct agent *a, struct port *p);

/* --- stdio.c: the descriptors of a command. --- */
struct stdio {
        int agent[3]; /* the agent's ends, not blocking; a terminal's are [0] and [1] */
        int child[3];
};
struct stdio_want {
        bool tty, has_stdin, as_user;
        uint32_t uid, gid;
        uint16_t rows, columns;
};
int stdio_open(const struct agent *a, struct stdio *s, const struct stdio_want *want, const char **ret_step);
void stdio_close(int fds[3]);

/* --- child.c: from fork to exec, or to launcher_run(). --- */
_Noreturn void child_run(const struct child *c);

/* --- exec.c --- */
/* Returns only on failure: an errno. */
int exec_search(const char *const argv[], const char *const envp[]);
