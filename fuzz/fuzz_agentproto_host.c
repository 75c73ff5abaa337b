/* fuzz_agentproto_host.c - what the host reads from an agent that may be anybody: a stream of frames, and datagrams. */
#include <stdlib.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/wr.h"

/* What was accepted must be the one way to say it. */
static void same(const struct wr *w, const uint8_t *frame, size_t n) {
        if (w->bad || w->len != n || memcmp(w->p, frame, n) != 0)
                abort();
}

static void one(const uint8_t *frame, const struct ap_head *h) {
        static uint8_t again[8192];
        static struct ap_ready ready;
        struct wr w = wr_to(again, sizeof(again));
        const uint8_t *body = frame + AP_HEAD;
        size_t n = h->length - AP_HEAD, n_bytes;
        struct ap_exit e;
        const void *bytes;
        char step[64];
        uint32_t v;
        unsigned stream;

        if (h->type == AP_EXITED && ap_get_exit(body, n, &e) == 0)
                ap_put_exit(&w, h->id, &e), same(&w, frame, h->length);
        else if (h->type == AP_ERROR && ap_get_error(body, n, &v, step, sizeof(step)) == 0)
                ap_put_error(&w, h->id, v, step), same(&w, frame, h->length);
        else if (h->type == AP_OUTPUT && ap_get_output(body, n, &stream, &bytes, &n_bytes) == 0)
                (void) memchr(bytes, 0, n_bytes);
        else if (h->type == AP_READY && ap_get_ready(frame, h->length, &ready) == 0)
                ap_put_ready(&w, &ready), same(&w, frame, h->length);
        else if (h->type == AP_EXEC_FAILED && ap_get_exec_failed(frame, h->length, &v) == 0)
                ap_put_u32(&w, AP_EXEC_FAILED, h->id, v), same(&w, frame, h->length);
        else if ((h->type == AP_STARTED || h->type == AP_STDIN_CREDIT) && ap_get_u32(body, n, &v) == 0)
                ap_put_u32(&w, h->type, h->id, v), same(&w, frame, h->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct ap_head h;

        if (size > 65536)
                return 0;
        while (ap_frame(data, size, &h) == 1) {
                one(data, &h);
                data += h.length;
                size -= h.length;
        }
        return 0;
}
