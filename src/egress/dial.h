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

struct dial_to {
        const char *name; /* canonical, borrowed until the end; NULL: the sandbox dialled an address */
        const struct addr *address;
        uint16_t port;
};

/*
 * Dials for a sandbox. 1: *res is filled already. 0: done will be called once, from the loop; *ret is valid until then,
 * for dial_cancel().
 */
int dial_start(struct sandbox *s, const struct dial_to *to, dial_done_fn done, void *arg, struct dial_result *res,
               struct dial **ret);
/* Accepts NULL; done will not be called. */
void dial_cancel(struct dial *d);
