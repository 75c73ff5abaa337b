/*
 * agentproto.h - the frames between the host and the agent inside a sandbox. Pure: bytes in, values out.
 * layers: allow-long one protocol, read from top to bottom; frames about files are in fileproto.h
 *
 * Frame: u32 length of what follows, u16 type, u32 id, body; big-endian. `id` numbers the command or, in a request, the
 * request. The host treats every byte from an agent as hostile; the agent checks the host's just as strictly.
 *
 * Two modes: with a connected control socket the agent serves one host and ends with it (`gabion run`); with listening
 * sockets it lives on by itself and serves whoever connects. docs/protocol/agent.md has the order of things in both.
 *
 * The control socket (descriptor 3 of the agent) is a stream. Beside it is the gate (descriptor 4, SEQPACKET): the
 * process that will become the command applies every control to itself, then sends one AP_READY datagram over the gate
 * with SCM_RIGHTS { the host's end of a fresh SEQPACKET pair, the seccomp listener if one was asked for }. It closes
 * what it handed over, says one byte 's' (settled) on the pair and waits there. The host learns the sender's pid from
 * SCM_CREDENTIALS, reads the controls back, and answers one byte 'g' on the pair; anything else, or its closing, ends
 * the process. If exec then fails it sends AP_EXEC_FAILED over the pair. A control that cannot be applied is told by
 * AP_ERROR over the gate, in place of AP_READY. With AP_SAY_HERE it sends an empty AP_HERE before the filter, so that
 * the host may begin to read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rd;
struct wr;

enum {
        AP_HEAD = 10,              /* bytes before the body */
        AP_FRAME_MAX = 256 * 1024, /* head and body */
        AP_CHUNK = 32 * 1024,      /* most bytes in one AP_OUTPUT or AP_STDIN */
        AP_ARGS_MAX = 4096,        /* arguments, and variables, of one command */
        AP_RLIMITS = 16,
        AP_FILTER_MAX = 4096,  /* instructions: the kernel's own limit */
        AP_PATH_MAX = 4096,    /* cwd, with its NUL */
        AP_STATUS_TEXT = 3072, /* /proc/self/status, as the command read it */
        AP_ENV_MAX = 65536,    /* a whole AP_ENV */
        AP_TAG = 256,          /* a command's tag, with its NUL */
        AP_WHAT = 2048,        /* what is kept of a command's arguments */
        AP_COMMANDS = 64,      /* at once in one sandbox */
        AP_KEPT = 65536,       /* output kept for each command */
        AP_KEPT_MS = 30000,    /* how long an exit is kept */
        AP_FD_CONTROL = 3,
        AP_FD_GATE = 4,
        AP_FD_LANDLOCK = 5,
};

enum ap_type {
        /* host -> agent */
        AP_CONFIGURE = 1, /* u64 capabilities the agent keeps; once, first */
        AP_SPAWN = 2,     /* struct ap_spawn */
        AP_STDIN = 3,     /* bytes (at most AP_CHUNK); only as many as were credited */
        AP_STDIN_EOF = 4,
        AP_SIGNAL = 5, /* u32 signal, to the command's process group */
        AP_RESIZE = 6, /* u16 rows, u16 columns */
        AP_CREDIT = 7, /* u32 more bytes of output the host will take */
        AP_ENV = 8,    /* u16 n, n texts: variables of every command of a sandbox; gate only */
        AP_START = 9,  /* struct ap_start */
        AP_LIST = 10,
        AP_ATTACH = 11, /* struct ap_attach */
        AP_DETACH = 12,
        AP_FILES = 13, /* u32 uid; first frame: this connection is about files from here on (fileproto.h) */
        AP_PORT = 14,  /* u32 port; first frame: after AP_DONE this connection is a stream to that port inside */
        AP_GO = 15,    /* u32 1 or 0: the AP_START with this id and AP_HOLD goes on, or ends before its program began */
        /* host -> file worker: fileproto.h */
        AP_STAT = 16,
        AP_LIST_DIR = 17,
        AP_MKDIR = 18,
        AP_MOVE = 19,
        AP_REMOVE = 20,
        AP_READ = 21,
        AP_WRITE = 22,
        AP_DATA = 23,     /* bytes (1 to AP_CHUNK), either way */
        AP_DATA_END = 24, /* no more of them */
        AP_SET_XATTRS = 25,
        AP_WATCH = 26,
        AP_DISK = 27,
        /* agent -> host */
        AP_STARTED = 32,      /* u32 pid inside */
        AP_OUTPUT = 33,       /* u8 stream (1, 2), bytes */
        AP_EXITED = 34,       /* struct ap_exit; after all output of the command itself */
        AP_STDIN_CREDIT = 35, /* u32 more bytes of input the agent will take */
        AP_ERROR = 36,        /* u32 errno, str step; over the gate, or in answer to a request */
        AP_RUNNING = 37,      /* struct ap_running; answer to AP_START and AP_ATTACH */
        AP_COMMAND = 38,      /* struct ap_command; AP_LIST is answered by some, then AP_DONE */
        AP_GAP = 39,          /* u64 bytes of output that are lost; those that follow come after them */
        AP_DETACHED = 40,     /* another connection has attached to the command */
        AP_DONE = 41,
        AP_ENTRY = 42,
        AP_EVENT = 43,
        AP_USAGE = 44,
        /* command -> host, over gate or pair */
        AP_READY = 64,
        AP_EXEC_FAILED = 65, /* u32 errno */
        AP_HERE = 66,        /* over the gate, before AP_READY, if AP_SAY_HERE asks for it */
};

enum {                   /* ap_spawn.flags, ap_start.flags */
       AP_TTY = 1,       /* a pseudo terminal instead of pipes */
       AP_NO_STDIN = 2,  /* standard input is /dev/null */
       AP_LAUNCHER = 4,  /* ap_spawn only: the process runs no program, but starts every later command of its user */
       AP_HOLD = 8,      /* ap_start only: everything is done but the exec, which waits for AP_GO */
       AP_SAY_HERE = 16, /* ap_spawn only: all is applied but the filter; what cannot change any more may be read */
};
enum { /* ap_spawn.controls: what the command applies to itself; always all of them, but for tests of the read-back */
       AP_DROP_CAPS = 1, /* all five sets empty */
       AP_NO_NEW_PRIVS = 2,
       AP_LANDLOCK = 4,
       AP_SECCOMP = 8,
       AP_SECUREBITS = 16,
       AP_RLIMIT = 32,
       AP_IDS = 64,             /* uid, gid, no supplementary groups */
       AP_CLOSE_FDS = 128,      /* nothing but 0, 1, 2 and the pair stays open */
       AP_SECCOMP_NOTIFY = 256, /* ask for a listener and hand it over */
};

struct ap_rlimit {
        uint8_t resource;
        uint64_t soft, hard;
};

struct ap_spawn {
        uint32_t flags, controls;
        uint32_t uid, gid, securebits;
        uint32_t output_credit;
        uint16_t rows, columns;
        struct ap_rlimit rlimits[AP_RLIMITS];
        uint8_t n_rlimits;
        const uint8_t *filter; /* n_filter instructions of 8 bytes, in the machine's byte order */
        uint16_t n_filter;
        char probe[64]; /* file that DAC allows and no Landlock rule covers; "" = no probe */
        const char *cwd;
        /* Decoded: vectors point into storage given by the caller, strings into the frame (NUL-terminated there). cwd
         * is absolute; argv[0] is looked for in envp's PATH unless it has a slash. */
        const char **argv, **envp; /* NULL-terminated */
        uint16_t argc, envc;
};

/* A command in a sandbox with listening sockets: its controls are its launcher's. */
struct ap_start {
        uint32_t flags, uid, credit;
        uint16_t rows, columns;
        char tag[AP_TAG];
        const char *cwd, **argv, **envp; /* as in ap_spawn */
        uint16_t argc, envc;
};

enum ap_by { AP_BY_NUMBER, AP_BY_PID, AP_BY_TAG };
enum { AP_QUIET = 1 }; /* ap_attach.flags: no output, which goes on being kept; but its input and its end */
#define AP_NOW UINT64_MAX

struct ap_attach {
        uint8_t by, flags;
        uint32_t value; /* number, or pid inside */
        char tag[AP_TAG];
        uint64_t from; /* output from this byte on, counted over both streams; AP_NOW: only new output */
        uint32_t credit;
};

struct ap_running {
        uint32_t number, pid; /* the id of all frames about the command, never given twice; its pid inside */
        uint64_t at;          /* the next byte of output */
};

struct ap_exit {
        uint8_t signalled; /* 0: code is the exit status; 1: code is the signal */
        uint32_t code;
        uint64_t user_us, system_us, max_rss_kib;
};

enum { AP_IS_TTY = 1, AP_HAS_EXITED = 2, AP_HAS_STDIN = 4 };

struct ap_command {
        uint32_t number, pid, uid;
        uint8_t flags;
        uint64_t kept, end; /* first byte of output that is kept; behind the last */
        char tag[AP_TAG];
        const uint8_t *what; /* ap_put_what() */
        uint16_t n_what;
};

struct ap_ready {
        uint32_t id;
        uint32_t securebits;
        int32_t landlock_errno; /* answer to opening the probe: EACCES when Landlock holds, 0 when it opened */
        int32_t scope_errno;    /* answer to connecting to an abstract socket outside the domain: EPERM when it holds */
        char status[AP_STATUS_TEXT];
};

struct ap_head {
        uint32_t length; /* of the whole frame, head included */
        enum ap_type type;
        uint32_t id;
};

/* Looks at n buffered bytes. 1: a whole frame is there, *ret filled; 0: more bytes needed; -EBADMSG: refuse the peer.
 */
int ap_frame(const void *p, size_t n, struct ap_head *ret);
/* Writes a head for a body of n bytes into the 10 bytes at p. */
void ap_head_put(void *p, enum ap_type type, uint32_t id, size_t body);

/* For encoders: writes a head and returns where; the body follows, and the place is handed to ap_end(). */
size_t ap_begin(struct wr *w, enum ap_type type, uint32_t id);
void ap_end(struct wr *w, size_t at);
/* A text: u32 length, bytes, NUL, so that it is used where it lies. NULL and r->bad if it is none. */
void ap_put_text(struct wr *w, const char *s);
const char *ap_get_text(struct rd *r);

/* Encoders write a whole frame; w->bad if it does not fit. Decoders take the body; -EBADMSG on anything odd. */
void ap_put_u32(struct wr *w, enum ap_type type, uint32_t id, uint32_t v);
void ap_put_empty(struct wr *w, enum ap_type type, uint32_t id);
void ap_put_configure(struct wr *w, uint64_t keep_caps);
void ap_put_resize(struct wr *w, uint32_t id, uint16_t rows, uint16_t columns);
void ap_put_spawn(struct wr *w, uint32_t id, const struct ap_spawn *s);
void ap_put_exit(struct wr *w, uint32_t id, const struct ap_exit *e);
void ap_put_error(struct wr *w, uint32_t id, uint32_t err_no, const char *step);
void ap_put_ready(struct wr *w, const struct ap_ready *r);
void ap_put_env(struct wr *w, const char *const *env, uint16_t n);
void ap_put_start(struct wr *w, uint32_t id, const struct ap_start *s);
void ap_put_attach(struct wr *w, uint32_t id, const struct ap_attach *a);
void ap_put_running(struct wr *w, uint32_t id, const struct ap_running *r);
void ap_put_command(struct wr *w, uint32_t id, const struct ap_command *c);
void ap_put_gap(struct wr *w, uint32_t id, uint64_t lost);
/* Directory ("" if it is very long) and as many arguments as fit into dst; returns the length. */
uint16_t ap_put_what(uint8_t dst[AP_WHAT], const char *cwd, const char *const *argv, uint16_t argc);
int ap_get_u32(const void *body, size_t n, uint32_t *ret);
int ap_get_configure(const void *body, size_t n, uint64_t *ret);
int ap_get_resize(const void *body, size_t n, uint16_t *rows, uint16_t *columns);
/* Decodes in place: strings and filter point into body. vec holds argv and envp and both their NULLs. */
int ap_get_spawn(void *body, size_t n, struct ap_spawn *ret, const char **vec, size_t vec_cap);
/* The same for the others with strings; vec as for ap_get_spawn(), for AP_ENV the variables and a NULL. */
int ap_get_start(void *body, size_t n, struct ap_start *ret, const char **vec, size_t vec_cap);
int ap_get_env(const void *body, size_t n, const char **vec, size_t vec_cap);
int ap_get_attach(const void *body, size_t n, struct ap_attach *ret);
int ap_get_running(const void *body, size_t n, struct ap_running *ret);
int ap_get_command(const void *body, size_t n, struct ap_command *ret);
int ap_get_gap(const void *body, size_t n, uint64_t *ret);
/* Fills argv (NULL-terminated) and *ret_cut, if arguments were left out. */
int ap_get_what(const void *what, size_t n, const char **ret_cwd, const char **argv, size_t cap, bool *ret_cut);
int ap_get_exit(const void *body, size_t n, struct ap_exit *ret);
int ap_get_error(const void *body, size_t n, uint32_t *err_no, char *step, size_t cap);
/* stream is 1 or 2; *bytes borrowed from body. */
int ap_get_output(const void *body, size_t n, unsigned *stream, const void **bytes, size_t *n_bytes);
/* A whole datagram from gate or pair, head included. */
int ap_get_ready(const void *p, size_t n, struct ap_ready *ret);
int ap_get_exec_failed(const void *p, size_t n, uint32_t *err_no);
