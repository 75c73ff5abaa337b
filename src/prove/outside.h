/* outside.h - the parts of the host that an escape would touch, before and after. Private to prove/. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "prove/prove.h"

enum { OUTSIDE_THINGS = 48, OUTSIDE_LISTENERS = 256 * 1024 };

struct outside {
        char mounts[HASH_TEXT], modules[HASH_TEXT];
        char things[OUTSIDE_THINGS][HASH_TEXT];
        struct {
                mode_t mode; /* 0: not there */
                uid_t uid;
                gid_t gid;
        } nodes[OUTSIDE_THINGS]; /* of the things that are device nodes */
        struct buf listeners;    /* "address uid" of each, one per line */
};

void outside_look(struct outside *ret);
/* Looks again, and adds a line to the report for each kind of thing. */
void outside_check(const struct outside *before, struct prove_report *r);
/* Gives the host's device nodes back to whom they belonged: some runtimes give away the /dev/null that they are run
 * with, and the host would suffer long after the proof. */
void outside_restore(const struct outside *before);
void outside_done(struct outside *o);

/* Adds the listening sockets of this network namespace. */
void outside_listeners(struct buf *into);
/* How many of these ids are there now and were not before? */
size_t outside_listeners_new(const struct buf *before, const struct buf *after, uint64_t base, uint64_t size);
