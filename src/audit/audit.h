/*
 * audit.h - the record of what sandboxes did: events, one hash chain per tenant, a Merkle tree over it with signed
 * heads, files, and their verification with nothing but a public key. docs/audit.md explains the formats.
 *
 * Names may appear in an event, content never: an event is a closed set of short fields, none of which is for
 * arguments, output, file contents, values of variables or secrets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/id.h"
#include "merkle/merkle.h"

struct buf;
struct err;
struct json;
struct rd;
struct wr;

enum {
        AUDIT_ID = 4 + ID_TEXT, /* "evt_" + 20 */
        AUDIT_NAME = 64,
        AUDIT_OBJECT = 256,
        AUDIT_KEY = 24,
        AUDIT_VALUE = 160,
        AUDIT_FIELDS = 20,
        AUDIT_ITEMS = 12,
        AUDIT_WIRE_MAX = 4000, /* an event as a message */
        AUDIT_LINE_MAX = 16384,
        AUDIT_HEAD_BYTES = 4096,
};

/* What happened. The table in event.c gives each its OCSF class and activity. */
enum audit_kind {
        AUDIT_LOG_STARTED,
        AUDIT_LOG_KEY_CHANGED,
        AUDIT_LOG_DROPPED, /* retention */
        AUDIT_LOG_CUT,     /* what a crash had left unfinished */
        AUDIT_SANDBOX_CREATED,
        AUDIT_SANDBOX_ENDED,
        AUDIT_SANDBOX_REMOVED, /* with the result of the cleaning up */
        AUDIT_SANDBOX_FROZEN,
        AUDIT_SANDBOX_RESUMED,
        AUDIT_EXEC_STARTED,
        AUDIT_EXEC_ENDED,
        AUDIT_LIMIT_REACHED,
        AUDIT_CALL_REFUSED,
        AUDIT_NET_CONTACT,
        AUDIT_NET_NAME,
        AUDIT_NET_REQUEST,
        AUDIT_FILE_READ,
        AUDIT_FILE_WRITTEN,
        AUDIT_SECRET_USED,
        AUDIT_SECRET_CHANGED,
        AUDIT_PACKAGE_INSTALLED,
        AUDIT_POLICY_CHANGED,
        AUDIT_ADMIN,
        AUDIT_EVIDENCE, /* the read-back of a start */
        AUDIT_DRIFT,
        AUDIT_ALERT, /* of the runtime monitor */
        AUDIT_KINDS
};
enum audit_decision { AUDIT_NOTED, AUDIT_ALLOWED, AUDIT_DENIED };

struct audit_field {
        char key[AUDIT_KEY]; /* [a-z_]+ */
        char text[AUDIT_VALUE];
        int64_t number;
        bool is_number;
};

/* One thing that was removed, or not. */
struct audit_item {
        char kind[AUDIT_KEY], id[AUDIT_NAME], method[AUDIT_KEY], result[AUDIT_KEY];
};

struct audit_event {
        enum audit_kind kind;
        enum audit_decision decision;
        char id[AUDIT_ID]; /* "": the log gives one */
        uint64_t time_ms;  /* since 1970; 0: now */
        char tenant[AUDIT_NAME];
        char sandbox[ID_TEXT];     /* "": none */
        char actor[AUDIT_NAME];    /* user or key; "": the sandbox itself */
        char object[AUDIT_OBJECT]; /* program, host, path, secret, package, control: a name */
        uint16_t port;             /* of a contact; else 0 */
        char code[AUDIT_NAME];     /* of a denial, dotted; "": none */
        char rule[AUDIT_NAME];     /* that decided */
        char policy[HASH_TEXT];    /* hash; "": none */
        struct audit_field fields[AUDIT_FIELDS];
        size_t n_fields;
        struct audit_item items[AUDIT_ITEMS];
        size_t n_items;
        bool bad; /* sticky: something did not fit; audit_event_check() refuses */
};

/* Dotted name ("exec.started"), and back; AUDIT_KINDS if unknown. */
const char *audit_kind_name(enum audit_kind k);
enum audit_kind audit_kind_find(const char *name);

/* A new event of a kind, with id and time. */
void audit_event_init(struct audit_event *ev, enum audit_kind kind, const char *tenant, const char *sandbox);
/* Values that are too long are cut: a name must not be able to suppress its record. Too many fields are a bug. */
void audit_object(struct audit_event *ev, const char *name);
void audit_text(struct audit_event *ev, const char *key, const char *value);
void audit_number(struct audit_event *ev, const char *key, int64_t value);
void audit_item(struct audit_event *ev, const char *kind, const char *id, const char *method, bool ok);
/* A program by its name, without its folder and never its arguments, and what it is for. */
void audit_program(struct audit_event *ev, const char *command);
/* An attempt to reach a host, as egress reports it. */
enum audit_kind audit_attempt_kind(const struct json *attempt);
void audit_attempt(struct audit_event *ev, const struct json *attempt);
/* Tenant, kind, codes and keys are well formed. */
int audit_event_check(const struct audit_event *ev, struct err *err);
bool audit_tenant_ok(const char *tenant);
/* In a message, for ipc; more may follow. Untrusted on the way back, fuzzed. */
void audit_event_put(const struct audit_event *ev, struct wr *w);
int audit_event_get(struct rd *r, struct audit_event *ret, struct err *err);

/* Where a record stands. */
struct audit_place {
        uint64_t seq; /* from 1 */
        uint8_t prev[HASH_BYTES];
        uint64_t logged_ms;
        const char *node; /* name of this machine */
};
/* The event as a line of canonical OCSF JSON without its newline, and its hash. */
int audit_record_make(const struct audit_event *ev, const struct audit_place *at, struct buf *to,
                      uint8_t ret_hash[HASH_BYTES], struct err *err);
/* Checks a line against its own hash and tells its place. -EBADMSG and what is wrong. Untrusted, fuzzed. */
int audit_record_read(const char *line, size_t n, uint64_t *ret_seq, uint8_t ret_prev[HASH_BYTES],
                      uint8_t ret_hash[HASH_BYTES], struct err *err);
/* The same, and that it stands in this place. */
int audit_record_check(const char *line, size_t n, uint64_t seq, const uint8_t prev[HASH_BYTES],
                       uint8_t ret_hash[HASH_BYTES], struct err *err);

/* What is signed after each batch: the text of a C2SP checkpoint with a few lines of our own. */
struct audit_head {
        char tenant[AUDIT_NAME];
        uint8_t last[HASH_BYTES]; /* of the last record */
        uint64_t segment, offset; /* the file in which it ends, by the number of its first record, and where */
        uint64_t time_ms;
        struct merkle tree;
};
void audit_head_text(const struct audit_head *h, struct buf *to);
int audit_head_parse(const char *text, size_t n, struct audit_head *ret, struct err *err);
