/*
 * network.h - the network of one run: the egress process, its records, and its restart. Private to run/.
 *
 * All functions accept a run without a network (egress = NULL) and then do nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "run/netlog.h"
#include "run/run.h"

struct egressctl;
struct loop;
struct plan;

/* Attempts that the user makes himself (`gabion reach`): logged, but no denials of the command. */
enum { NETWORK_EXPECTED = 64, NETWORK_WHAT = 300 };
struct expected {
        char what[NETWORK_WHAT];
        uint64_t until_ns;
        char *record; /* JSON; NULL: none came */
};

struct network {
        const struct run_options *o;
        struct egressctl *egress; /* NULL: none */
        struct netlog log;
        struct sandbox *sb;
        const struct plan *plan;
        struct loop *loop; /* who hears of denials; NULL until the command is released */
        struct buf certificates, java_store;
        char *document;    /* what egress was told about the sandbox */
        unsigned canaries; /* records of refusals that came before */
        unsigned restarts;
        uint64_t started_ns, again_ns; /* again: when to try a new process; 0 = none is due */
        bool log_failed;
        struct expected *expected; /* NETWORK_EXPECTED of them, NULL while there is none */
        unsigned n_expected;       /* how many there ever were; the oldest are forgotten */
};

/* Starts egress, if the policy has a network. The process comes up beside the caller's next steps. */
int network_start(const struct run_options *o, struct network *n, struct err *err);
/* certificates.c: what the sandbox trusts, into the plan; and the command's variables that say so. */
int certificates_make(struct network *n, struct plan *plan, struct err *err);
const char *const *certificates_env(const struct plan *plan, const char *const *env);
/* Hands the sandbox's listeners over. */
int network_add(struct network *n, const struct plan *plan, struct sandbox *sb, struct err *err);
/* The command is about to start: from now on records are its own. Fails if what was tried before was not recorded. */
int network_release(struct network *n, struct loop *l, struct err *err);
/* For a poll loop: what to wait for (-1 = nothing), until when, and what to do then. */
int network_fd(const struct network *n);
uint64_t network_due_ns(const struct network *n); /* UINT64_MAX: never */
void network_serve(struct network *n);
/* Puts the network of a policy document in force, within the ceiling. On failure everything is as before. */
int network_update(struct network *n, const char *text, size_t len, bool drop, char ret_hash[HASH_TEXT],
                   struct err *err);
/* An attempt of the user's own is about to be made; and what egress said of it, borrowed, NULL: nothing yet. */
void network_expect(struct network *n, const char *what);
const char *network_expected(struct network *n, const char *what);
/* Takes the last records; ends egress. Safe to call at any time, and twice. */
void network_end(struct network *n);
