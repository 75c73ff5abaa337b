/*
 * notary.h - the one writer of an audit log: a server that owns key and files, and its client. docs/protocol/notary.md
 * lists the messages.
 *
 * An append is acknowledged when it is durable and covered by a signed head. Requests that arrive while the disk is
 * busy become one batch. When the log cannot be written, the reply is an error, and the writer must not go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/audit.h"
#include "ipc/ipc.h"
#include "ledger/ledger.h"

struct err;

enum notary_type {
        NOTARY_APPEND = 1, /* entries -> u64 number of the last event */
        NOTARY_STATEMENT, /* kind, entries, descriptor -> the same; the document belongs to the first event's sandbox */
        NOTARY_ROTATE,    /* -> ; a new signing key */
        NOTARY_DOSSIER,   /* tenant, sandbox, descriptor to write it to -> */
        NOTARY_READ,      /* tenant, u64 first number, u32 how many, descriptor -> */
        NOTARY_TYPES
};

/* An entry: u8, then an event but for NO_WILL. */
enum notary_entry {
        NOTARY_EVENT = 1,
        NOTARY_WILL = 2,    /* to be appended when the connection ends */
        NOTARY_NO_WILL = 3, /* forgets it */
        NOTARY_NOTE = 4,    /* an event for which nobody waits: it may wait for others, NOTARY_LINGER_MS at most */
};

enum {
        NOTARY_ENTRIES = 4, /* in one message */
        NOTARY_PEERS = 256,
        NOTARY_QUEUE = 512,     /* requests that wait for the disk; then clients wait */
        NOTARY_IN_FLIGHT = 128, /* of one client */
        NOTARY_LINGER_MS = 20,
        NOTARY_QUIET_MS = 3, /* after somebody was answered: what nobody waits for is not done meanwhile */
        NOTARY_WRITERS = 32,
        NOTARY_KEEPS = 32,
        NOTARY_READ_MAX = 1000,      /* records */
        NOTARY_READ_BYTES = 4 << 20, /* more than that does not begin another one */
};

/* Chain of what concerns the notary itself. */
#define NOTARY_TENANT "system"

struct notary_settings {
        struct ledger_settings log;
        /* Who may write besides root and the notary's own user; tenant "": all. */
        struct {
                uid_t uid;
                char tenant[AUDIT_NAME];
        } writers[NOTARY_WRITERS];
        size_t n_writers;
        /* How long files are kept; tenant "": those not named. */
        struct {
                char tenant[AUDIT_NAME];
                uint64_t keep_ms;
        } keeps[NOTARY_KEEPS];
        size_t n_keeps;
        bool recover; /* all chains at once, not each with its next record */
};

/* --- server --- */
struct notary;
/* Opens (and repairs) the log. */
int notary_new(const struct notary_settings *s, struct notary **ret, struct err *err);
struct notary *notary_free(struct notary *n); /* what was queued is written first */
/* Takes a connected socket. */
int notary_add(struct notary *n, int fd, const struct ipc_peer *peer, struct err *err);
/* Serves until stop_fd is readable or, without a listener, until the last peer has gone. listen_fd, stop_fd: -1 = none.
 */
int notary_serve(struct notary *n, int listen_fd, int stop_fd, struct err *err);
/* The life of a notary that belongs to one writer: in a process of its own, which ends with it. When the log cannot be
 * opened, every request is answered with the reason. Takes fd. */
_Noreturn void notary_beside(int fd, const struct notary_settings *s);

/* --- client --- */
struct notary_client {
        int fd; /* -1: none */
        uint32_t serial;
        unsigned waiting; /* replies that have not come yet */
};

/* -ENOENT: there is none. */
int notary_connect(const char *path, struct notary_client *ret, struct err *err);
void notary_close(struct notary_client *c);
/* What belongs together travels in one message, in up to NOTARY_ENTRIES entries. */
struct notary_batch {
        uint8_t space[IPC_MAX];
        struct wr w;
};
void notary_begin(struct notary_batch *b);
void notary_put(struct notary_batch *b, enum notary_entry entry, const struct audit_event *ev); /* NO_WILL: ev = NULL */
/* The batch as a message, for those who send by themselves: its bytes, and how many (0: they do not fit). kind NULL: no
 * document comes with it. */
const uint8_t *notary_message(struct notary_batch *b, const char *kind, uint32_t serial, size_t *ret_n);
/* The two requests that are answered into memory of the one who asks (memfd_create() with MFD_ALLOW_SEALING). */
void notary_ask_dossier(struct wr *w, uint32_t serial, const char *tenant, const char *sandbox);
void notary_ask_read(struct wr *w, uint32_t serial, const char *tenant, uint64_t from, uint32_t n);
/* Sends without waiting for the reply. text: a document to keep (see ledger_statement()), or NULL. */
int notary_send(struct notary_client *c, struct notary_batch *b, const char *kind, const char *text, size_t n,
                struct err *err);
/* One event by itself. */
int notary_append(struct notary_client *c, const struct audit_event *ev, struct err *err);
/* Waits for all replies. The first failure, if any; then nothing that was sent may be taken as recorded. */
int notary_wait(struct notary_client *c, unsigned deadline_ms, struct err *err);
/* The replies that are there, without waiting. */
int notary_take(struct notary_client *c, struct err *err);
int notary_rotate(struct notary_client *c, unsigned deadline_ms, struct err *err);
/* The caller frees *ret (text of the envelope). */
int notary_dossier(struct notary_client *c, const char *tenant, const char *sandbox, unsigned deadline_ms, char **ret,
                   size_t *ret_n, struct err *err);
