/* sandbox.h - one sandbox: its listeners, its policy, what it has used, its connections. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/id.h"
#include "egress/control.h"
#include "egress/egress.h"
#include "egress/meter.h"
#include "policy/net.h"

struct dns_book;
struct err;
struct event;
struct ledger;
struct stream;

TAILQ_HEAD(stream_list, stream);

enum { SANDBOX_TCP, SANDBOX_DNS4, SANDBOX_DNS6, SANDBOX_SOCKETS };

struct sandbox {
        TAILQ_ENTRY(sandbox) link; /* owned by the egress process's list */
        struct egress *egress;
        char id[ID_TEXT];
        int fds[SANDBOX_SOCKETS];
        struct event *events[SANDBOX_SOCKETS];
        bool rests;  /* it has had its share of the loop */
        bool paused; /* it rests, or its records wait: its sockets are not read */
        struct policy_egress *policy;
        struct policy_net_budget budget;
        struct dns_book *book;
        struct ledger *ledger;
        struct control_source source;
        struct conn_list conns; /* owned, all alive */
        size_t n_conns;
        struct stream_list streams; /* owned: DNS over TCP */
        size_t n_streams;
        size_t n_pipes; /* with bytes in them */
        uint64_t bytes_out;
        struct meter_bucket rate, dns;
        struct meter_share share;
};

/* document_fd is borrowed; fds are taken on success. */
int sandbox_new(struct egress *e, const char *id, const int fds[SANDBOX_SOCKETS], int document_fd, struct sandbox **ret,
                struct err *err);
/* Takes another policy. drop: connections that it does not allow are reset. On failure the old one stays. */
int sandbox_update(struct sandbox *s, int document_fd, bool drop, struct err *err);
/* Ends its connections, with their records unless quiet. */
struct sandbox *sandbox_free(struct sandbox *s);

/* Stops or starts reading its sockets, as the waiting records say. */
void sandbox_pause(struct sandbox *s);
/* Time-outs and counts. */
void sandbox_sweep(struct sandbox *s, uint64_t now_ms);
/*
 * Around everything that the loop does for a sandbox, so that none can take more than its share. False: it has had its
 * share and others are waiting; sandbox_resume() will come. ev: NULL, or the event whose priority follows.
 */
bool sandbox_begin(struct sandbox *s, uint64_t *ret_begin_ns);
void sandbox_end(struct sandbox *s, uint64_t begin_ns, struct event *ev);
/* It may go on; for the timer of the egress process. */
void sandbox_resume(struct sandbox *s);
/* Adds time that nobody measured. */
void sandbox_charge(struct sandbox *s, uint64_t ns);
/* The class of events of this sandbox now. */
int sandbox_priority(const struct sandbox *s);

/* A record of this sandbox with the policy's hash: told at once, or counted (see ledger_note()). */
struct record;
void sandbox_note(struct sandbox *s, struct record *r, char *event);
void sandbox_tell(struct sandbox *s, struct record *r);
