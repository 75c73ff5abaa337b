/* certificates.c - the bundle that the sandbox of a run trusts, and the variables of its command that say so. */
#include <stdio.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egressctl/trust.h"
#include "run/loop.h"

int certificates_make(struct network *n, struct plan *plan, struct err *err) {
        int r;

        if (!plan->own_certificates)
                return 0;
        r = trust_bundle(plan->way_out.ca_bundle ? plan->way_out.ca_bundle : PLAN_BUNDLE, n->egress, &n->certificates,
                         err);
        plan->certificates = buf_str(&n->certificates);
        return r;
}

const char *const *certificates_env(const struct plan *plan, const char *const *env) {
        static char text[TRUST_VARIABLES][sizeof(PLAN_BUNDLE) + 24];
        static const char *all[RUN_ENV + TRUST_VARIABLES + 1];
        size_t n = 0;

        if (!plan->own_certificates)
                return env;
        for (; env[n] && n < RUN_ENV; n++)
                all[n] = env[n];
        for (size_t i = 0, k; i < TRUST_VARIABLES; i++) {
                for (k = 0; env[k] && !str_has_prefix(env[k], trust_variable(i)); k++)
                        ;
                if (env[k])
                        continue; /* the caller knows better */
                (void) snprintf(text[i], sizeof(text[i]), "%s%s", trust_variable(i), PLAN_BUNDLE);
                all[n++] = text[i];
        }
        all[n] = NULL;
        return all;
}
