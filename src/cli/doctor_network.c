/* doctor_network.c - can this machine give a sandbox a network? Makes a namespace as `gabion run --allow` does, and
 * reads it back. */
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "egressctl/egressctl.h"
#include "sandbox/netpool.h"

/* A whole namespace, or why there is none. */
static int namespace_try(struct err *err) {
        const struct plan plan = { .net = plan_net() };
        struct netpool *pool = NULL;
        static struct sandbox sb;
        const char *control = "";
        int r = netpool_new(1, &pool, err);

        if (r == 0)
                r = netpool_fill(pool, err);
        if (r == 0)
                r = netpool_collect(pool, err);
        if (r == 0 && (r = netpool_take(pool, &sb.net)) == 0) {
                r = sandbox_net_verify(&sb, &plan, &control, err);
                if (r < 0)
                        r = err_wrap(err, "%s", control);
                netpool_drop(&sb.net);
        }
        (void) netpool_free(pool);
        return r;
}

void doctor_network(struct doctor_finding *f) {
        char program[EGRESSCTL_PATH];
        struct err err = { 0 };
        int r = doctor_privileged();

        if (r == 0)
                r = namespace_try(&err);
        if (r < 0) {
                doctor_found(f, DOCTOR_MISSING, "%s", err.msg[0] ? err.msg : strerror(-r));
                doctor_remedy(f, strstr(err.msg, "nftables") ? "as root: modprobe nf_tables && modprobe nft_tproxy, or "
                                                               "boot a kernel with CONFIG_NFT_TPROXY"
                                 : strstr(err.msg, "listeners") || strstr(err.msg, "addresses")
                                         ? "boot without ipv6.disable=1"
                                         : "see 'namespaces' above");
        } else if (egressctl_find(program, &err) < 0) {
                doctor_found(f, DOCTOR_MISSING,
                             "a namespace was made and read back, but gabion-egress is not installed");
                doctor_remedy(f, "make install");
        } else {
                doctor_found(f, DOCTOR_OK, "a namespace with its rules was made and read back; %s", program);
        }
}
