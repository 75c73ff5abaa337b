/* fuzz_truststore.c - any text as a bundle of certificates (egress gives one of them): the store that comes out of it
 * has as many whole entries as it says, and nothing behind them but the digest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "egressctl/truststore.h"

enum { INPUT_MAX = 256 * 1024, DIGEST = 20 };

static void walk(const struct buf *b) {
        struct rd r = rd_from(b->p, b->len - DIGEST);
        uint32_t count;
        char text[32];

        if (rd_u32(&r) != 0xfeedfeed || rd_u32(&r) != 2)
                abort();
        count = rd_u32(&r);
        for (uint32_t i = 0; i < count; i++) {
                (void) rd_u32(&r);
                rd_str(&r, text, sizeof(text));
                (void) rd_u64(&r);
                rd_str(&r, text, sizeof(text));
                (void) rd_bytes(&r, rd_u32(&r));
        }
        if (!rd_done(&r))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct buf b = BUF_INIT(INPUT_MAX + 1024);
        char *text = size < INPUT_MAX && !memchr(data, 0, size) ? calloc(1, size + 1) : NULL;
        struct err err = { 0 };

        if (!text)
                return 0;
        memcpy(text, data, size);
        if (truststore_jks(text, &b, &err) == 0) {
                if (!b.bad)
                        walk(&b);
        } else if (!err.msg[0])
                abort();
        buf_done(&b);
        free(text);
        return 0;
}
