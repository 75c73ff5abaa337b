/*
 * agentproto.h - the frames between the host and the agent inside a sandbox. Pure: bytes in, values out.
 *
 * Frame: u32 length of what follows, u16 type, u32 id, body; big-endian. `id` numbers the command. The host treats
 * every byte from an agent as hostile; the agent checks the host's just as strictly.
 *
 * The control socket (descriptor 3 of the agent) is a stream. Beside it is the gate (descriptor 4, SEQPACKET): the
 * process that will become the command applies every control to itself, then sends one AP_READY datagram over the gate
 * with SCM_RIGHTS { the host's end of a fresh SEQPACKET pair, the seccomp listener if one was asked for }. It closes
 * what it handed over, says one byte 's' (settled) on the pair and waits there. The host learns the sender's pid from
 * SCM_CREDENTIALS, reads the controls back, and answers one byte 'g' on the pair; anything else, or its closing, ends
 * the process. If exec then fails it sends AP_EXEC_FAILED over the pair. A control that cannot be applied is told by
 * AP_ERROR over the gate, in place of AP_READY.
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
        /* agent -> host */
        AP_STARTED = 32,      /* u32 pid inside */
        AP_OUTPUT = 33,       /* u8 stream (1, 2), bytes */
        AP_EXITED = 34,       /* struct ap_exit; after all output of the command itself */
        AP_STDIN_CREDIT = 35, /* u32 more bytes of input the agent will take */
        AP_ERROR = 36,        /* u32 errno, str step; over the gate only */
        /* command -> host, over gate or pair */
        AP_READY = 64,
        AP_EXEC_FAILED = 65, /* u32 errno */
};

enum {                  /* ap_spawn.flags */
       AP_TTY = 1,      /* a pseudo terminal instead of pipes */
       AP_NO_STDIN = 2, /* standard input is /dev/null */
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

struct ap_exit {
        uint8_t signalled; /* 0: code is the exit status; 1: code is the signal */
        uint32_t code;
        uint64_t user_us, system_us, max_rss_kib;
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

/* Encoders write a whole frame; w->bad if it does not fit. Decoders take the body; -EBADMSG on anything odd. */
void ap_put_u32(struct wr *w, enum ap_type type, uint32_t id, uint32_t v);
void ap_put_empty(struct wr *w, enum ap_type type, uint32_t id);
void ap_put_configure(struct wr *w, uint64_t keep_caps);
void ap_put_resize(struct wr *w, uint32_t id, uint16_t rows, uint16_t columns);
void ap_put_spawn(struct wr *w, uint32_t id, const struct ap_spawn *s);
void ap_put_exit(struct wr *w, uint32_t id, const struct ap_exit *e);
void ap_put_error(struct wr *w, uint32_t id, uint32_t err_no, const char *step);
void ap_put_ready(struct wr *w, const struct ap_ready *r);
int ap_get_u32(const void *body, size_t n, uint32_t *ret);
int ap_get_configure(const void *body, size_t n, uint64_t *ret);
int ap_get_resize(const void *body, size_t n, uint16_t *rows, uint16_t *columns);
/* Decodes in place: strings and filter point into body. vec holds argv and envp and both their NULLs. */
int ap_get_spawn(void *body, size_t n, struct ap_spawn *ret, const char **vec, size_t vec_cap);
int ap_get_exit(const void *body, size_t n, struct ap_exit *ret);
int ap_get_error(const void *body, size_t n, uint32_t *err_no, char *step, size_t cap);
/* stream is 1 or 2; *bytes borrowed from body. */
int ap_get_output(const void *body, size_t n, unsigned *stream, const void **bytes, size_t *n_bytes);
/* A whole datagram from gate or pair, head included. */
int ap_get_ready(const void *p, size_t n, struct ap_ready *ret);
int ap_get_exec_failed(const void *p, size_t n, uint32_t *err_no);
