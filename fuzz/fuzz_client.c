/* fuzz_client.c - what a server sends to clients: streams of a command (first byte even) or of events (odd). Cut
 * anywhere they say the same. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/state.h"
#include "json/json.h"

enum { MAX = 16384 };

/* One message more, told in out. 1: go on; 0: more is needed; negative: refused. */
static int take(bool events, struct evbuffer *in, struct evbuffer *bytes, struct buf *out) {
        enum stream_event ev = STREAM_MESSAGE;
        struct process_message m = { 0 };
        struct json *j = NULL;
        struct err err = { 0 };
        int r = events ? client_event_next(in, &j, &err) : stream_next(in, &ev, &j, &err);

        if (r >= 0 && (events ? r == 0 : ev == STREAM_MORE))
                return 0;
        if (r >= 0 && !events && ev == STREAM_MESSAGE) {
                r = process_message_read(j, &m, &err);
                buf_addf(out, "[%d %d %" PRIu32 " %" PRIu64 " %d", r, (int) m.event, m.pid, m.at, m.exit.signal);
                if (r == 0 && m.event == PROCESS_DATA) {
                        buf_addf(out, " %zd", process_bytes(m.base64, bytes));
                        for (char piece[512]; evbuffer_get_length(bytes) > 0;)
                                buf_add(out, piece, (size_t) evbuffer_remove(bytes, piece, sizeof(piece)));
                }
        }
        buf_addf(out, "(%d %zu)", (int) ev, json_len(j));
        j = json_free(j);
        return r < 0 ? r : 1;
}

static void run(bool events, const uint8_t *data, size_t size, size_t step, struct buf *out) {
        struct evbuffer *in = evbuffer_new(), *bytes = evbuffer_new();
        int r = 0;

        for (size_t at = 0; r >= 0 && at < size; at += step) {
                (void) evbuffer_add(in, data + at, step < size - at ? step : size - at);
                do
                        r = take(events, in, bytes, out);
                while (r > 0);
        }
        evbuffer_free(in);
        evbuffer_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct buf whole = BUF_INIT(16 * MAX), cut = BUF_INIT(16 * MAX);
        struct client_url url;
        struct err err = { 0 };
        char text[512];

        if (size < 1 || size > MAX)
                return 0;
        run(data[0] & 1, data + 1, size - 1, size, &whole);
        run(data[0] & 1, data + 1, size - 1, 1 + size % 7, &cut);
        if (whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), whole.len) != 0)
                abort();
        buf_done(&whole);
        buf_done(&cut);
        memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
        text[size < sizeof(text) ? size : sizeof(text) - 1] = '\0';
        (void) client_url_parse(text, &url, &err);
        return 0;
}
