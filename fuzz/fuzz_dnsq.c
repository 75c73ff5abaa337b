/* fuzz_dnsq.c - the reply to a question of ours: an address, none, or nonsense. */
#include <stdlib.h>

#include "base/addr.h"
#include "base/dnsq.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct addr a = { 0 };
        uint16_t id = size >= 2 ? (uint16_t) (data[0] << 8 | data[1]) : 0;
        int r = dnsq_read(data, size, id, &a);

        if (r == 1 ? a.family != ADDR_V4 : r > 0)
                abort();
        return 0;
}
