/* fuzz_agentproto_agent.c - what agent, launcher and worker read: a stream of frames, AP_SPAWN and AP_START above all.
 */
#include <stdlib.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/wr.h"
#include "fileproto/fileproto.h"

enum { INPUT_MAX = 65536 };

static const char *vectors[2 * AP_ARGS_MAX + 2];

/* What was accepted must be the one way to say it. */
static void same(const struct wr *w, const uint8_t *frame, size_t n) {
        if (w->bad || w->len != n || memcmp(w->p, frame, n) != 0)
                abort();
}

static void about_files(const uint8_t *frame, const struct ap_head *h, struct wr *w) {
        const uint8_t *body = frame + AP_HEAD;
        size_t n = h->length - AP_HEAD;
        struct fp_xattrs x;
        struct fp_request q;

        if (h->type == AP_SET_XATTRS && fp_get_xattrs(body, n, &x) == 0)
                fp_put_xattrs(w, h->id, &x), same(w, frame, h->length);
        else if (h->type >= AP_STAT && h->type <= AP_DISK && fp_get_request(h->type, body, n, &q) == 0)
                fp_put_request(w, h->type, h->id, &q), same(w, frame, h->length);
}

/* The order of the vector is the frame's: a launcher reads what the agent passed on. */
static void about_commands(uint8_t *frame, const struct ap_head *h, struct wr *w) {
        uint8_t *body = frame + AP_HEAD, what[AP_WHAT];
        size_t n = h->length - AP_HEAD;
        struct ap_attach a;
        struct ap_start s;
        uint16_t count = 0;

        if (h->type == AP_START && ap_get_start(body, n, &s, vectors, 64) == 0) {
                ap_put_start(w, h->id, &s), same(w, frame, h->length);
                (void) ap_put_what(what, s.cwd, s.argv, s.argc);
        } else if (h->type == AP_ATTACH && ap_get_attach(body, n, &a) == 0) {
                ap_put_attach(w, h->id, &a), same(w, frame, h->length);
        } else if (h->type == AP_ENV && h->id == 0 && ap_get_env(body, n, vectors, 64) == 0) {
                while (vectors[count])
                        count++;
                ap_put_env(w, vectors, count), same(w, frame, h->length);
        }
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
        else if ((h->type == AP_SIGNAL || h->type == AP_CREDIT || h->type == AP_GO) && ap_get_u32(body, n, &v) == 0)
                ap_put_u32(&w, h->type, h->id, v), same(&w, frame, h->length);
        about_commands(frame, h, &w);
        about_files(frame, h, &w);
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
