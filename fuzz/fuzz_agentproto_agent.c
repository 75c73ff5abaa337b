/* fuzz_agentproto_agent.c - what the agent reads from the host: a stream of frames, AP_SPAWN above all. */
#include <stdlib.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/wr.h"

enum { INPUT_MAX = 65536 };

static const char *vectors[2 * AP_ARGS_MAX + 2];

/* What was accepted must be the one way to say it. */
static void same(const struct wr *w, const uint8_t *frame, size_t n) {
        if (w->bad || w->len != n || memcmp(w->p, frame, n) != 0)
                abort();
}

static void one(uint8_t *frame, const struct ap_head *h) {
        static uint8_t again[INPUT_MAX];
        struct wr w = wr_to(again, sizeof(again));
        size_t n = h->length - AP_HEAD;
        uint8_t *body = frame + AP_HEAD;
        struct ap_spawn s;
        uint16_t rows, columns;
        uint64_t caps;
        uint32_t v;

        if (h->type == AP_SPAWN && ap_get_spawn(body, n, &s, vectors, 64) == 0)
                ap_put_spawn(&w, h->id, &s), same(&w, frame, h->length);
        else if (h->type == AP_CONFIGURE && h->id == 0 && ap_get_configure(body, n, &caps) == 0)
                ap_put_configure(&w, caps), same(&w, frame, h->length);
        else if (h->type == AP_RESIZE && ap_get_resize(body, n, &rows, &columns) == 0)
                ap_put_resize(&w, h->id, rows, columns), same(&w, frame, h->length);
        else if ((h->type == AP_SIGNAL || h->type == AP_CREDIT) && ap_get_u32(body, n, &v) == 0)
                ap_put_u32(&w, h->type, h->id, v), same(&w, frame, h->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t *copy = size > INPUT_MAX ? NULL : malloc(size ? size : 1); /* no larger: ASan sees the end */
        size_t at = 0;
        struct ap_head h;

        if (!copy)
                return 0;
        memcpy(copy, data, size);
        for (; ap_frame(copy + at, size - at, &h) == 1; at += h.length)
                one(copy + at, &h);
        free(copy);
        return 0;
}
