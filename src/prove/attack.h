/* attack.h - starting the probe, in our own sandbox or in another, and reading what it says. Private to prove/. */
#pragma once

#include "prove/bundle.h"
#include "prove/canary.h"

/* What the process that holds our sandbox tells the one that watches. Shared memory; written before it ends. */
struct attack_outcome {
        char evidence[HASH_TEXT];
        char mismatch[224]; /* the twin only: the control that was not as planned */
        bool is_oom;        /* the memory limit ended all of it, as it does on control groups v2 */
};

struct attack {
        const struct run_options *options; /* our own sandbox, or */
        const char *command;               /* how another is called */
        bool bundle;                       /* it wants a root file system */
};

/* Makes the attack; fills attempts, posture, evidence. Ends whatever is left of it. */
int attack_make(const struct attack *a, const struct canary *c, struct attack_outcome *outcome, struct prove_report *r,
                struct err *err);

/* Another sandbox, from planting to checking. */
int prove_other(const char *name, const char *command, bool bundle, const char *groups, struct prove_report *ret,
                struct err *err);
