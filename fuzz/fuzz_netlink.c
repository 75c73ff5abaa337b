/* fuzz_netlink.c - the answers of the kernel about a network namespace: any bytes are compared, none is trusted. The
 * first byte says which dump the rest is. */
#include "base/err.h"
#include "sandbox/netns.h"
#include "sandbox/netns_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct netns_job planned;
        struct netns none;
        struct err e = { 0 };

        if (size < 1 || netns_prepare(plan_net(), WEAKEN_NONE, &none, &planned, &e) < 0)
                return 0;
        (void) netns_compare((enum netns_dump)(data[0] % NETNS_DUMPS), (struct nl_bytes){ data + 1, size - 1 },
                             plan_net(), (struct nl_bytes){ planned.rules, planned.n_rules }, &e);
        return 0;
}
