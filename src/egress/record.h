/* record.h - one attempt as the supervisor hears of it, and the counting of denials that repeat themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/id.h"
#include "policy/net.h"

struct err;

enum { RECORD_EVENT = 4 + ID_TEXT }; /* "evt_" and an id */

/* Strings are borrowed; NULL or "" ones, and addresses of no family, are left out. kind, protocol, code and side are
 * constants; code is "" when nothing was denied. */
struct record {
        const char *event, *kind, *name;
        struct addr address;
        uint16_t port;
        const char *protocol; /* "tls" "http" "https" "tcp" "dns" */
        bool allowed;
        const char *code, *rule, *side;
        bool with_bytes;
        uint64_t bytes_out, bytes_in, duration_ns;
        const char *method, *path, *phase, *detail;
        const char *policy; /* hash */
};

/* The JSON text of a record, at most EGP_RECORD_MAX bytes. count: 0 leaves it out. The caller frees *ret. */
int record_text(const struct record *r, const char *sandbox, uint64_t count, char **ret, struct err *err);

/* Whose rule it is: "ceiling" and "floor" rules begin with their side, all others are the sandbox's. */
const char *record_side(const char *rule);

/* Takes over one text for the supervisor. */
typedef void (*ledger_send_fn)(void *arg, const char *text);

struct ledger; /* of one sandbox */

/* sandbox is borrowed for its life. */
int ledger_new(const char *sandbox, ledger_send_fn send, void *arg, struct ledger **ret, struct err *err);
/* Tells the counts that are left. */
struct ledger *ledger_free(struct ledger *l);
/*
 * Writes the event of this attempt to event, and sends the record or, if an identical one (kind, name, address, port,
 * code, method) was sent in the last EGRESS_REPEAT_MS, counts it under that one's event.
 */
void ledger_note(struct ledger *l, struct record *r, uint64_t now_ms, char event[RECORD_EVENT]);
/* Sends a record as it is; r->event must be set. */
void ledger_tell(struct ledger *l, const struct record *r);
/* A new event. */
void ledger_event(char event[RECORD_EVENT]);
/* Sends the counts of windows that have ended. */
void ledger_sweep(struct ledger *l, uint64_t now_ms);
