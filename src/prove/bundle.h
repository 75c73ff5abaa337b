/* bundle.h - a throw-away directory for a runtime that wants a root file system: nothing in it but the probe. Private
 * to prove/. */
#pragma once

#include "prove/canary.h"

struct bundle {
        char dir[32];
};

/* The configuration that goes with it, before the probe's arguments and the id maps are filled in. */
const char *bundle_config(void);

/* Makes DIR/config.json and DIR/rootfs with the probe, which is called with argv. b is "" inside on failure, or
 * removed by bundle_remove(). */
int bundle_make(struct bundle *b, const char *const *argv, struct err *err);
/* Removes it, and the control groups that were made under this name. */
void bundle_remove(struct bundle *b, const char *name);
