/* fuzz_export.c - lines that are, or are not, records, in every form. */
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "export/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        for (int f = 0; f < EXPORT_FORMS; f++) {
                struct buf b = BUF_INIT(65536);
                struct err err = { 0 };

                export_begin((enum export_form) f, "n", &b);
                (void) export_add((enum export_form) f, (const char *) data, size, &b, &err);
                export_end((enum export_form) f, &b);
                buf_done(&b);
        }
        return 0;
}
