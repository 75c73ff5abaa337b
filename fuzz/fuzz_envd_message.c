/* fuzz_envd_message.c - messages of clients (the first byte says which), queries of /files, byte ranges, gzip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "envd/inflate.h"
#include "envd/message.h"
#include "envd/query.h"
#include "envd/text.h"
#include "envd/transfer.h"
#include "json/json.h"

static void message(uint8_t which, const char *text, size_t n) {
        struct evbuffer *bytes = evbuffer_new();
        struct message_command command;
        struct message_stream stream;
        struct message_start start;
        struct message_file file;
        struct json *j = NULL;
        struct err err = { 0 };

        if (json_parse("request", text, n, &j, &err) == 0) {
                if (which == 0)
                        (void) message_start_read(j, &start, &err);
                else if (which == 1)
                        (void) message_stream_read(j, &stream, &err);
                else if (which < 7 && message_command_read((enum message_about)(which - 2), j, &command, &err) == 0)
                        (void) message_bytes(command.stdin_data ? command.stdin_data : "", bytes);
                else if (which >= 7)
                        (void) message_file_read((enum message_about)(MESSAGE_PATH + which % 5), j, &file, &err);
        }
        (void) json_free(j);
        evbuffer_free(bytes);
}

static void unpack(const uint8_t *data, size_t size) {
        struct evbuffer *in = evbuffer_new(), *out = evbuffer_new();
        struct inflate *z = NULL;
        struct err err = { 0 };
        int n = inflate_new(&z, &err);

        (void) evbuffer_add(in, data, size);
        for (int i = 0; n >= 0 && i < 64 && (i == 0 || n > 0); i++) {
                n = inflate_some(z, in, out, &err);
                if (evbuffer_get_length(out) > ENVD_INFLATE)
                        abort(); /* more at once than it may */
                (void) evbuffer_drain(out, SIZE_MAX);
        }
        z = inflate_free(z);
        evbuffer_free(in);
        evbuffer_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char text[8192], path[AP_PATH_MAX];
        struct query q;
        uint64_t at = 0, n = 0;

        if (size < 1 || size >= sizeof(text))
                return 0;
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        message(data[0] % 12, text, size - 1);
        if (envd_query_read(text, &q) == 0)
                (void) envd_query_is_signed(&q, "read", "token");
        if (transfer_range(text, 1000, &at, &n) == 1 && (at >= 1000 || n == 0 || n > 1000 - at))
                abort();
        if (text_path(path, sizeof(path), "/home/user", text) == 0 &&
            (path[0] != '/' || strstr(path, "//") || strstr(path, "/../")))
                abort();
        unpack(data + 1, size - 1);
        return 0;
}
