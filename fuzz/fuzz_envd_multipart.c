/* fuzz_envd_multipart.c - bodies of uploads: cut anywhere they have the same parts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "envd/multipart.h"

enum { MAX = 16384 };

/* Everything that was learned of a body, as text. */
static void run(const uint8_t *data, size_t size, size_t step, struct buf *out) {
        static struct multipart m;
        struct evbuffer *in = evbuffer_new(), *part = evbuffer_new();
        struct err err = { 0 };
        char piece[1024];
        int r = multipart_init(&m, "multipart/form-data; boundary=b", &err);

        for (size_t at = 0; r == 0 && at < size; at += step) {
                enum multipart_event ev = MULTIPART_DATA;

                (void) evbuffer_add(in, data + at, step < size - at ? step : size - at);
                while (r == 0 && ev != MULTIPART_MORE && ev != MULTIPART_END) {
                        r = multipart_next(&m, in, part, &ev, &err);
                        if (r == 0 && ev == MULTIPART_PART)
                                buf_addf(out, "[%s|%s|%d:", m.name, m.filename, m.has_filename);
                        for (int n; (n = evbuffer_remove(part, piece, sizeof(piece))) > 0;)
                                buf_add(out, piece, (size_t) n);
                        if (r == 0 && ev == MULTIPART_PART_END)
                                buf_addf(out, "]");
                }
        }
        buf_addf(out, "%d", r < 0 ? r : multipart_finish(&m, in, &err));
        evbuffer_free(in);
        evbuffer_free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct buf whole = BUF_INIT(8 * MAX), cut = BUF_INIT(8 * MAX);

        if (size > MAX)
                return 0;
        run(data, size, size + 1, &whole);
        run(data, size, 1 + size % 7, &cut);
        if (whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), whole.len) != 0)
                abort();
        buf_done(&whole);
        buf_done(&cut);
        return 0;
}
