/*
 * guard.h - the rules of `monitor` and `filesystem.watch` over sandboxes of the server. Private to src/warden.
 *
 * Only a sandbox whose policy has such rules has a guard; the others cost nothing here. What is found is answered at
 * once, whether or not a daemon is there, and told on the way that attempts go (netrecord.c).
 */
#pragma once

#include <stdbool.h>

#include "state.h"

struct json;

/* Before anything of its owner's runs in it. 0 at once if the policy has no rules. */
int guard_start(struct box *b, const struct policy *policy, struct err *err);
/* The same for one that runs already; what can be watched no longer is answered like what breaks a rule. */
void guard_again(struct box *b, const struct policy *policy);
/* Safe for any box; what has happened until now is still told. */
void guard_stop(struct box *b);
/* A refused call. False: nobody needs to hear of more of them. */
bool guard_call(struct box *b);
/* An attempt to reach something, as egress tells it. */
void guard_attempt(struct box *b, const struct json *attempt);
/* Milliseconds until it wants to be called again, or -1. */
int guard_due(void);
