/*
 * ledger.h - the files of the audit log: one directory with a signing key and a chain per tenant. docs/audit.md has the
 * layout.
 *
 * A batch is durable, then its head is signed and made durable, and only then does ledger_commit() return: whatever is
 * behind the newest head was never acknowledged and is cut at the next opening. Several processes may write to one
 * ledger; each batch holds the chain's lock. Reading needs no lock and no key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/audit.h"
#include "sign/sign.h"

struct err;

enum {
        LEDGER_TENANTS = 256,
        LEDGER_PATH = 512,
        LEDGER_BATCH_BYTES = 4 << 20,
        LEDGER_STATEMENT_MAX = 1 << 20,
        LEDGER_KEYS = 64,
};

struct ledger_settings {
        const char *dir;
        const char *node;        /* NULL: the host's name */
        uint64_t segment_bytes;  /* a file is closed beyond this size; 0: 64 MiB */
        uint64_t segment_age_ms; /* or beyond this age; 0: a day */
        gid_t readers;           /* a group that may read; (gid_t) -1: nobody else */
};

/* --- writing --- */
struct ledger;
int ledger_open(const struct ledger_settings *s, struct ledger **ret, struct err *err);
struct ledger *ledger_free(struct ledger *l);
void ledger_freep(struct ledger **l);
/* Cuts what a crash left unfinished in any chain, and records it. Otherwise that happens with a chain's next batch. */
int ledger_recover(struct ledger *l, struct err *err);
/* Adds to the batch. The event's number counts only after ledger_commit(). */
int ledger_append(struct ledger *l, const struct audit_event *ev, uint64_t *ret_seq, struct err *err);
/* Each chain by itself: on failure nothing of its batch has happened. Returns the first failure. */
int ledger_commit(struct ledger *l, struct err *err);
/* How the last ledger_commit() went for one tenant. */
int ledger_result(const struct ledger *l, const char *tenant, struct err *err);
/* Forgets the batch. */
void ledger_undo(struct ledger *l);
/* Keeps a document beside the chain: kind is "start" or "end". Its hash belongs into an event. Of two the first counts.
 * Durable with the next ledger_sync(), which nobody needs to wait for: the record says what is missing if the power
 * goes before. */
int ledger_statement(struct ledger *l, const char *tenant, const char *sandbox, const char *kind, const char *text,
                     size_t n, struct err *err);
int ledger_sync(struct ledger *l, struct err *err);
/* A new signing key: each chain gets a record with the new public key, signed by the old one. */
int ledger_rotate_key(struct ledger *l, struct err *err);
/* Drops closed files that are older; a record says what was dropped, and the hashes stay. Returns how many files. */
int ledger_retain(struct ledger *l, const char *tenant, uint64_t keep_ms, struct err *err);

/* --- reading --- */
bool ledger_is(const char *dir);
/* Calls fn for each tenant, sorted. Stops when fn returns other than 0, and returns that. */
int ledger_tenants(const char *dir, int (*fn)(void *arg, const char *tenant), void *arg, struct err *err);

struct ledger_line {
        const char *text; /* without newline; not terminated */
        size_t n;
        uint64_t seq, offset; /* offset: in its file */
        uint64_t line;        /* in its file, from 1 */
        const char *file;
        bool unfinished; /* there is no newline behind it */
};
/* The records from number `from` on, in order, up to the newest head. They are not verified. Stops like the above. */
int ledger_each(const char *dir, const char *tenant, uint64_t from, int (*fn)(void *arg, const struct ledger_line *l),
                void *arg, struct err *err);
/* The newest head: note (terminated) and its parts. Its signature is not checked. */
int ledger_head(const char *dir, const char *tenant, char note[AUDIT_HEAD_BYTES], struct audit_head *ret,
                struct err *err);
/* A document that ledger_statement() kept. The caller frees *ret. -ENOENT. */
int ledger_statement_read(const char *dir, const char *tenant, const char *sandbox, const char *kind, char **ret,
                          size_t *ret_n, struct err *err);

/* --- verifying --- */
struct ledger_trust {
        uint8_t keys[LEDGER_KEYS][SIGN_PUBLIC]; /* given; changes of keys add others while verifying */
        size_t n_keys;
        const char *saved; /* a head that somebody kept elsewhere (note), or NULL: the log must contain it */
};

struct ledger_verdict {
        bool ok;
        uint64_t size;       /* records according to the newest head */
        uint64_t first_kept; /* 1 unless some were dropped */
        uint64_t time_ms;    /* of the newest head */
        char file[32];       /* of the first bad place; "" if it is not in a file */
        uint64_t line, seq;  /* of the first bad record; 0: none */
        char why[320];
        char note[AUDIT_HEAD_BYTES];   /* the newest head */
        uint8_t (*hashes)[HASH_BYTES]; /* of all records, if asked for; the caller frees them */
};
/* The keys that the ledger itself has: for those who trust its directory. */
int ledger_own_keys(const char *dir, struct ledger_trust *ret, struct err *err);
/* Negative only when it could not be judged; else 0 and the verdict. */
int ledger_verify(const char *dir, const char *tenant, struct ledger_trust *trust, bool want_hashes,
                  struct ledger_verdict *ret, struct err *err);
