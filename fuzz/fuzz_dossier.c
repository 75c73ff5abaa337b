/* fuzz_dossier.c - what is in an opened envelope. The seeds are signed by a key that everybody knows (its secret is 32
 * zero bytes), so that the checks behind the head's signature are reached. */
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "dossier/dossier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t pub[SIGN_PUBLIC] = {
                0x3b, 0x6a, 0x27, 0xbc, 0xce, 0xb6, 0xa4, 0x2d, 0x62, 0xa3, 0xa8, 0xd0, 0x2a, 0x6f, 0x0d, 0x73,
                0x65, 0x32, 0x15, 0x77, 0x1d, 0xe2, 0x43, 0xa6, 0x3a, 0xc0, 0x48, 0xa1, 0x8b, 0x59, 0xda, 0x29,
        };
        struct dossier_facts f;
        struct err err = { 0 };

        (void) dossier_check((const char *) data, size, pub, &f, &err);
        return 0;
}
