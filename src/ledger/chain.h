/* chain.h - one tenant's files. Private to ledger/. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "ledger/ledger.h"

enum { CHAIN_CHUNK = 65536, CHAIN_FILE = 32, CHAIN_SEGMENTS = 65536 };

/* The file of documents that is being written. pack.c */
struct pack {
        int dir_fd, log_fd, idx_fd;
        uint64_t end, idx_end; /* where the next ones go */
        uint64_t day;
        bool dirty, made; /* not durable yet: documents; the files' names */
};
#define PACK_NONE ((struct pack){ .dir_fd = -1, .log_fd = -1, .idx_fd = -1 })

struct chain {
        struct chain *next;
        char tenant[AUDIT_NAME];
        int dir_fd, lock_fd, segment_fd, head_fds[2];
        struct audit_head head;  /* what is durable */
        struct audit_head ahead; /* with the batch */
        int slot;                /* that holds `head` */
        bool known;              /* `head` is what the files said last */
        bool locked;
        bool made;           /* the segment's file is new in this batch */
        bool begun;          /* the next segment has a file, but no head: it goes on there */
        bool old_key;        /* the head is signed by a key that was changed since */
        uint64_t segment_ms; /* when the segment was begun, as far as this process knows */
        struct buf batch;
        struct err result;     /* of the last commit */
        char cut[AUDIT_VALUE]; /* what must be cut and recorded; "": nothing */
        uint64_t cut_end;      /* where it ends */
        char note[2][AUDIT_HEAD_BYTES];
        struct pack pack;
};

struct ledger {
        struct ledger_settings s;
        char dir[LEDGER_PATH], keys[LEDGER_PATH], node[AUDIT_NAME];
        struct sign_key *key;
        struct chain *chains;
        size_t n_chains;
};

int ledger_chain(struct ledger *l, const char *tenant, struct chain **ret, struct err *err);

/* Writing. */
int chain_open(const struct ledger_settings *s, const char *tenant, struct chain **ret, struct err *err);
struct chain *chain_free(struct chain *c);
/* Takes the lock and learns the present state. *key is replaced when somebody else changed it. */
int chain_begin(struct chain *c, const struct ledger_settings *s, struct sign_key **key, struct err *err);
/* Records what must be cut, if there is something; it goes with the commit. */
int chain_settle(struct chain *c, const struct ledger_settings *s, struct err *err);
int chain_add(struct chain *c, const struct ledger_settings *s, const struct audit_event *ev, struct err *err);
int chain_commit(struct chain *c, const struct sign_key *key, struct err *err);
/* Forgets the batch and lets go of the lock. */
void chain_undo(struct chain *c);
/* All n bytes. Plain negative errno. */
int chain_write(int fd, const char *p, size_t n, uint64_t at);
/* How large a file becomes. */
uint64_t chain_file_max(const struct ledger_settings *s);
/* Owner writes, readers read, others nothing; whatever the umask says. */
int chain_shared(const struct ledger_settings *s, int fd, mode_t mode);
/* For reading and writing; with O_CREAT it becomes chain_shared(). */
int chain_file_open(const struct ledger_settings *s, int dir_fd, const char *name, int flags);

/* Reading. */
void chain_file(char dst[CHAIN_FILE], uint64_t first);
int chain_dir(const char *dir, const char *tenant, struct err *err);
/* First numbers of the segments in a directory, sorted; the caller frees *ret. Returns how many. */
int chain_segments(int dir_fd, uint64_t **ret, struct err *err);
/* Both heads as notes, padding removed; "" for one that is not there. */
int chain_notes(int dir_fd, char notes[2][AUDIT_HEAD_BYTES], struct err *err);
/* Reads the lines of a segment up to `until` bytes. l->seq counts from the segment's first number. */
int chain_lines(int dir_fd, uint64_t first, uint64_t until, int (*fn)(void *arg, const struct ledger_line *l),
                void *arg, struct err *err);
/* The kept hashes of dropped records, up to number `last`. The caller frees *ret. */
int chain_leaves(int dir_fd, uint64_t last, uint8_t (**ret)[HASH_BYTES], struct err *err);
/* Removes a note's padding, which is there to keep the size of its file. Returns its length. */
size_t chain_trim(char note[AUDIT_HEAD_BYTES]);
/* What the old key signs when it hands over. */
void chain_handover(struct buf *to, const char *tenant, const uint8_t pub[SIGN_PUBLIC]);
