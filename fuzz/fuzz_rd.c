/*
 * fuzz_rd.c - the bounded reader under sequences of calls: the first half of the input says which getters to call, the
 * second is what they read. Whatever is asked, it stays inside its bytes, and once bad it yields nothing more.
 */
#include <assert.h>
#include <string.h>

#include "base/rd.h"

enum { INPUT_MAX = 4096, STR_MAX = 32 };

static void step(struct rd *r, uint8_t op) {
        bool was_bad = r->bad;
        size_t left = r->left;
        uint64_t got = 0;
        char str[STR_MAX] = "x";

        switch (op % 6) {
        case 0:
                got = rd_u8(r);
                break;
        case 1:
                got = rd_u16(r);
                break;
        case 2:
                got = rd_u32(r);
                break;
        case 3:
                got = rd_u64(r);
                break;
        case 4:
                got = rd_bytes(r, op) != NULL;
                break;
        default:
                rd_str(r, str, 1 + op % STR_MAX);
                assert(strlen(str) <= op % STR_MAX);
                got = (uint8_t) str[0];
        }
        assert(r->left <= left);
        assert(!was_bad || (r->bad && got == 0 && r->left == left));
        assert(!r->bad || !rd_done(r));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t n_ops = size / 2;
        struct rd r = rd_from(data + n_ops, size - n_ops);

        if (size > INPUT_MAX)
                return 0;
        for (size_t i = 0; i < n_ops; i++)
                step(&r, data[i]);
        return 0;
}
