/* fuzz_egressproto.c - one datagram on the control socket: what is accepted must be the one way to say it. */
#include <stdlib.h>
#include <string.h>

#include "base/wr.h"
#include "egressproto/egressproto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static uint8_t again[EGP_MESSAGE_MAX];
        struct wr w = wr_to(again, sizeof(again));
        struct egp_message m;

        if (egp_get(data, size, &m) < 0)
                return 0;
        egp_put(&w, &m);
        if (w.bad || w.len != size || memcmp(again, data, size) != 0)
                abort();
        return 0;
}
