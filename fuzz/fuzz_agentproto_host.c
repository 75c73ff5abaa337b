/* fuzz_agentproto_host.c - what the host reads from an agent that may be anybody: a stream of frames, and datagrams. */
#include <stdlib.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/wr.h"
#include "fileproto/fileproto.h"

/* What was accepted must be the one way to say it. */
static void same(const struct wr *w, const uint8_t *frame, size_t n) {
        if (w->bad || w->len != n || memcmp(w->p, frame, n) != 0)
                abort();
}

static void about_commands(const uint8_t *frame, const struct ap_head *h, struct wr *w) {
        const uint8_t *body = frame + AP_HEAD;
        const char *cwd, *argv[64];
        size_t n = h->length - AP_HEAD;
        struct ap_running run;
        struct ap_command c;
        uint64_t lost;
        bool cut;

        if (h->type == AP_RUNNING && ap_get_running(body, n, &run) == 0) {
                ap_put_running(w, h->id, &run), same(w, frame, h->length);
        } else if (h->type == AP_GAP && ap_get_gap(body, n, &lost) == 0) {
                ap_put_gap(w, h->id, lost), same(w, frame, h->length);
        } else if (h->type == AP_COMMAND && ap_get_command(body, n, &c) == 0) {
                ap_put_command(w, h->id, &c), same(w, frame, h->length);
                (void) ap_get_what(c.what, c.n_what, &cwd, argv, 64, &cut);
        }
}

static void about_files(const uint8_t *frame, const struct ap_head *h, struct wr *w) {
        const uint8_t *body = frame + AP_HEAD;
        size_t n = h->length - AP_HEAD;
        uint64_t total, used;
        struct fp_entry e;
        struct fp_event v;

        if (h->type == AP_ENTRY && fp_get_entry(body, n, &e) == 0)
                fp_put_entry(w, h->id, &e), same(w, frame, h->length);
        else if (h->type == AP_EVENT && fp_get_event(body, n, &v) == 0)
                fp_put_event(w, h->id, &v), same(w, frame, h->length);
        else if (h->type == AP_USAGE && fp_get_usage(body, n, &total, &used) == 0)
                fp_put_usage(w, h->id, total, used), same(w, frame, h->length);
}

static void one(const uint8_t *frame, const struct ap_head *h) {
        static uint8_t again[65536];
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
        about_commands(frame, h, &w);
        about_files(frame, h, &w);
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
