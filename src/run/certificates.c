/*
 * certificates.c - what a sandbox trusts when egress opens its TLS, or the operator brought certificates along: one
 * bundle in the place where programs look, and the variables by which the others are told.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "egressctl/egressctl.h"
#include "run/loop.h"

enum { BUNDLE_MAX = 4 << 20 };

static int bundle_read(const char *path, struct buf *into, struct err *err) {
        AUTO_FREE char *text = malloc(BUNDLE_MAX);
        int n = text ? fd_read_at(AT_FDCWD, path, text, BUNDLE_MAX) : -ENOMEM;

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "certificates %.150s: %s", path, strerror(-n));
        if (strlen(text) != (size_t) n || !strstr(text, "-----BEGIN CERTIFICATE-----"))
                return err_set(err, -EINVAL, ERR_INVALID, "certificates %.150s: no certificate in PEM form is there",
                               path);
        buf_add(into, text, (size_t) n);
        buf_addf(into, "\n");
        return 0;
}

int certificates_make(struct network *n, struct plan *plan, struct err *err) {
        int r;

        if (!plan->own_certificates)
                return 0;
        n->certificates = BUF_INIT(BUNDLE_MAX + 128 * 1024);
        r = bundle_read(plan->way_out.ca_bundle ? plan->way_out.ca_bundle : PLAN_BUNDLE, &n->certificates, err);
        if (r == 0)
                r = egressctl_wait_ready(n->egress, err);
        if (r == 0 && egressctl_certificate(n->egress))
                buf_addf(&n->certificates, "%s", egressctl_certificate(n->egress));
        if (r == 0 && n->certificates.bad)
                r = err_set(err, -E2BIG, ERR_LIMIT, "certificates: larger than %d MiB", BUNDLE_MAX >> 20);
        plan->certificates = buf_str(&n->certificates);
        return r;
}

const char *const *certificates_env(const struct plan *plan, const char *const *env) {
        static const char *const names[] = { "SSL_CERT_FILE=",  "NODE_EXTRA_CA_CERTS=", "REQUESTS_CA_BUNDLE=",
                                             "GIT_SSL_CAINFO=", "CURL_CA_BUNDLE=",      "PIP_CERT=" };
        static char text[ARRAY_SIZE(names)][sizeof(PLAN_BUNDLE) + 24];
        static const char *all[RUN_ENV + ARRAY_SIZE(names) + 1];
        size_t n = 0;

        if (!plan->own_certificates)
                return env;
        for (; env[n] && n < RUN_ENV; n++)
                all[n] = env[n];
        for (size_t i = 0, k; i < ARRAY_SIZE(names); i++) {
                for (k = 0; env[k] && !str_has_prefix(env[k], names[i]); k++)
                        ;
                if (env[k])
                        continue; /* the caller knows better */
                (void) snprintf(text[i], sizeof(text[i]), "%s%s", names[i], PLAN_BUNDLE);
                all[n++] = text[i];
        }
        all[n] = NULL;
        return all;
}
