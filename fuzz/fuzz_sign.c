/* fuzz_sign.c - signed statements from strangers. The key is fixed, so nothing can open but what it signed: nothing
 * here. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/own.h"
#include "sign/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t pub[SIGN_PUBLIC] = { 0x3d, 0x40, 0x17, 0xc3, 0xe8, 0x43, 0x89, 0x5a };
        AUTO_FREE char *payload = NULL;
        struct err err = { 0 };

        if (size <= 65536 && sign_open((const char *) data, size, "application/x", pub, &payload, &err) == 0)
                abort();
        return 0;
}
