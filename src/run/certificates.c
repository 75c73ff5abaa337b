/* certificates.c - the bundle that the sandbox of a run trusts, and the variables of its command that say so. */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egressctl/trust.h"
#include "egressctl/truststore.h"
#include "run/loop.h"

int certificates_make(struct network *n, struct plan *plan, struct err *err) {
        int r;

        if (!plan->own_certificates)
                return 0;
        r = trust_bundle(plan->way_out.ca_bundle ? plan->way_out.ca_bundle : PLAN_BUNDLE, n->egress, &n->certificates,
                         err);
        plan->certificates = buf_str(&n->certificates);
        n->java_store = BUF_INIT(n->certificates.max);
        if (r == 0)
                r = truststore_jks(plan->certificates, &n->java_store, err);
        if (r == 0 && n->java_store.bad)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        plan->java_store = n->java_store.p;
        plan->n_java_store = n->java_store.len;
        return r;
}

static bool is_set(const char *const *env, const char *name) {
        while (*env && !str_has_prefix(*env, name))
                env++;
        return *env;
}

const char *const *certificates_env(const struct plan *plan, const char *const *env) {
        static const char java[] = "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/" PLAN_JAVA;
        static char text[TRUST_VARIABLES][sizeof(PLAN_BUNDLE) + 24];
        static const char *all[RUN_ENV + TRUST_VARIABLES + 2];
        size_t n = 0;

        if (!plan->own_certificates)
                return env;
        for (; env[n] && n < RUN_ENV; n++)
                all[n] = env[n];
        for (size_t i = 0; i < TRUST_VARIABLES; i++) {
                if (is_set(env, trust_variable(i)))
                        continue; /* the caller knows better */
                (void) snprintf(text[i], sizeof(text[i]), "%s%s", trust_variable(i), PLAN_BUNDLE);
                all[n++] = text[i];
        }
        if (!plan->java_looks_there && !is_set(env, "JAVA_TOOL_OPTIONS="))
                all[n++] = java; /* a JVM tells about it: only if need be */
        all[n] = NULL;
        return all;
}
