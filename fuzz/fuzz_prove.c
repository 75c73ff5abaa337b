/* fuzz_prove.c - the probe's report, which a sandbox writes: whatever it says, nothing is read outside it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prove/prove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct prove_report r;

        if (size > sizeof(r.output))
                return 0;
        memcpy(r.output, data, size);
        if (size < sizeof(r.output)) {
                char id[PROVE_ID];
                int kept;

                r.output[size] = '\0';
                kept = prove_died(r.output, size, id);
                if (kept > (int) size || (kept > 0 && (r.output[kept - 1] != '\n' || id[0] < 'A' || id[0] > 'J')))
                        abort();
        }
        r.n_checks = 0;
        if (prove_parse(&r, size) < 0)
                return 0;
        for (size_t i = 0; i < r.n_attempts; i++)
                if (r.attempts[i].note < r.output ||
                    r.attempts[i].note + strlen(r.attempts[i].note) > r.output + size || r.attempts[i].id[0] < 'A' ||
                    r.attempts[i].id[0] > 'J')
                        abort();
        if (prove_passed(&r) && prove_count(&r, PROVE_CRIT, 0) + prove_count(&r, PROVE_HIGH, 0) > 0)
                abort();
        return 0;
}
