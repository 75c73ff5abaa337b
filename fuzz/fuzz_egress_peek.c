/* fuzz_egress_peek.c - the first bytes of a client: what was said of fewer bytes stays true of more. */
#include <stdint.h>
#include <stdlib.h>

#include "egress/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        enum peek_kind known = PEEK_MORE;

        if (size > 16384)
                return 0;
        for (size_t n = 0; n <= size; n += n < 64 || n + 257 > size ? 1 : 257) {
                enum peek_kind k = peek_kind(data, n);

                if (known != PEEK_MORE && k != known)
                        abort();
                known = k;
        }
        return 0;
}
