/* dial.h - the other leg: look the name up, judge every address, connect to exactly that one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "policy/net.h"

struct dial;
struct err;
struct sandbox;

struct dial_result {
        int fd;              /* connected, non-blocking; -1: failed. The receiver owns it */
        struct addr address; /* that was dialled or denied; of no family if it never came so far */
        bool denied;         /* verdict says why; otherwise it was allowed but did not work */
        struct policy_net_verdict verdict;
        const char *problem; /* for the record, if it did not work; a constant */
};

typedef void (*dial_done_fn)(const struct dial_result *res, void *arg);

/*
 * Dials for a sandbox what its connection wants. 1: *res is filled already. 0: done will be called once, from the loop;
 * *ret is valid until then, for dial_cancel(). The name (canonical) is borrowed until then.
 */
struct dial_target {
        const char *name;           /* or, if NULL, */
        const struct addr *address; /* this one */
        uint16_t port;
};
int dial_start(struct sandbox *s, const struct dial_target *to, dial_done_fn done, void *arg, struct dial_result *res,
               struct dial **ret);
/* Accepts NULL; done will not be called. */
void dial_cancel(struct dial *d);
