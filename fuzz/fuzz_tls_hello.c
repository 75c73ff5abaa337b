/* fuzz_tls_hello.c - the first bytes of connections. Fed in two pieces and whole: both must say the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "tls/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum tls_look look(struct tls_inspector *i, const uint8_t *p, size_t first, size_t n, struct tls_hello *ret) {
        CLEANUP(tls_peek_freep) struct tls_peek *k = NULL;
        struct err err = { 0 };

        if (tls_peek_new(i, &k, &err) < 0)
                abort();
        (void) tls_peek_look(k, p, first, ret, &err);
        return tls_peek_look(k, p, n, ret, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct tls_inspector *inspector;
        struct tls_hello a = { 0 }, b = { 0 };
        char name[HOST_NAME];
        struct err err = { 0 };

        if (size > 65536 || (!inspector && tls_inspector_new(&inspector, &err) < 0))
                return 0;
        if (look(inspector, data, 0, size, &a) != look(inspector, data, size / 2, size, &b) ||
            memcmp(&a, &b, sizeof(a)) != 0)
                abort();
        if (a.name[0] && (host_canonical(a.name, strlen(a.name), name) < 0 || strcmp(a.name, name) != 0))
                abort();
        return 0;
}
