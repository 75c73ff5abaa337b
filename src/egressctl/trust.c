/* trust.c - see trust.h. */
#include "egressctl/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "egressctl/egressctl.h"

enum { BUNDLE_MAX = 4 << 20 };

const char *trust_variable(size_t i) {
        static const char *const names[TRUST_VARIABLES] = { "SSL_CERT_FILE=",      "NODE_EXTRA_CA_CERTS=",
                                                            "REQUESTS_CA_BUNDLE=", "GIT_SSL_CAINFO=",
                                                            "CURL_CA_BUNDLE=",     "PIP_CERT=" };

        return names[i];
}

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

int trust_bundle(const char *path, struct egressctl *e, struct buf *into, struct err *err) {
        int r;

        *into = BUF_INIT(TRUST_BYTES);
        r = bundle_read(path, into, err);
        if (r == 0)
                r = egressctl_wait_ready(e, err);
        if (r == 0 && egressctl_certificate(e))
                buf_addf(into, "%s", egressctl_certificate(e));
        if (r == 0 && into->bad)
                r = err_set(err, -E2BIG, ERR_LIMIT, "certificates: larger than %d MiB", BUNDLE_MAX >> 20);
        return r;
}
