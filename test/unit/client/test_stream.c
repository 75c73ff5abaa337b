/* test_stream.c - messages of streams, events of commands and of servers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "client/state.h"
#include "json/json.h"

static int next(struct evbuffer *in, enum stream_event *ev, struct json **ret) {
        struct err err = { 0 };

        return stream_next(in, ev, ret, &err);
}

static void a_message_comes_when_it_is_whole(void **state) {
        struct evbuffer *whole = evbuffer_new(), *in = evbuffer_new();
        enum stream_event ev;
        struct json *j = NULL;
        char byte;

        (void) state;
        stream_put(whole, "{\"a\":1}");
        while (evbuffer_get_length(whole) > 0) {
                assert_int_equal(next(in, &ev, &j), 0);
                assert_int_equal(ev, STREAM_MORE);
                (void) evbuffer_remove(whole, &byte, 1);
                (void) evbuffer_add(in, &byte, 1);
        }
        assert_int_equal(next(in, &ev, &j), 0);
        assert_int_equal(ev, STREAM_MESSAGE);
        assert_int_equal(json_get_int(j, "a", 0), 1);
        assert_int_equal(evbuffer_get_length(in), 0);
        j = json_free(j);
        evbuffer_free(whole);
        evbuffer_free(in);
}

static void the_last_message_may_have_an_error(void **state) {
        static const char good[] = "\2\0\0\0\0", bad[] = "\2\0\0\0\x1c{\"error\":{\"code\":\"unknown\"}}";
        struct evbuffer *in = evbuffer_new();
        enum stream_event ev;
        struct json *j = NULL;

        (void) state;
        (void) evbuffer_add(in, good, sizeof(good) - 1);
        assert_int_equal(next(in, &ev, &j), 0);
        assert_int_equal(ev, STREAM_END);
        assert_null(j);
        (void) evbuffer_add(in, bad, sizeof(bad) - 1);
        assert_int_equal(next(in, &ev, &j), 0);
        assert_int_equal(ev, STREAM_END);
        assert_string_equal(json_get_str(j, "code"), "unknown");
        j = json_free(j);
        evbuffer_free(in);
}

static void what_is_no_stream_is_refused(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } bad[] = {
                { "\1\0\0\0\2{}", 7 },     /* compressed */
                { "\0\x7f\0\0\0", 5 },     /* too long */
                { "\0\0\0\0\2[]", 7 },     /* no object */
                { "\0\0\0\0\3nul", 8 },    /* no JSON */
                { "\0\0\0\0\2\"\xff", 7 }, /* no text */
                { "HTTP/1.1 200 OK", 15 }, /* another protocol */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct evbuffer *in = evbuffer_new();
                enum stream_event ev;
                struct json *j = NULL;

                (void) evbuffer_add(in, bad[i].bytes, bad[i].n);
                assert_int_equal(next(in, &ev, &j), -EPROTO);
                assert_null(j);
                evbuffer_free(in);
        }
}

static int message(const char *text, struct process_message *m, struct json **keep) {
        struct err err = { 0 };

        *keep = NULL;
        assert_int_equal(json_parse("test", text, strlen(text), keep, &err), 0);
        return process_message_read(*keep, m, &err);
}

static void ends_of_commands_are_understood(void **state) {
        static const struct {
                const char *text;
                int code, signal;
        } ends[] = {
                { "{\"event\":{\"end\":{\"exited\":true}}}", 0, 0 },
                { "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\"}}}", 3, 0 },
                { "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\"}}}", -1, 9 },
                { "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: interrupt\"}}}", -1, 2 },
                { "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: segmentation fault (core dumped)\"}}}", -1,
                  11 },
                { "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: what?\"}}}", -1, 0 },
        };
        struct process_message m;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                struct json *j;

                assert_int_equal(message(ends[i].text, &m, &j), 0);
                assert_int_equal(m.event, PROCESS_END);
                assert_int_equal(m.exit.code, ends[i].code);
                assert_int_equal(m.exit.signal, ends[i].signal);
                (void) json_free(j);
        }
}

static void strange_events_are_refused_and_new_ones_left_alone(void **state) {
        static const struct {
                const char *text;
                int result;
        } all[] = {
                { "{\"event\":{\"keepalive\":{}}}", 0 },
                { "{\"event\":{\"news\":{\"x\":[1]}},\"more\":1}", 0 },
                { "{\"event\":{\"start\":{\"pid\":1,\"at\":\"7\",\"new\":true}}}", 0 },
                { "{}", -EPROTO },
                { "{\"event\":[]}", -EPROTO },
                { "{\"event\":{\"start\":{}}}", -EPROTO },
                { "{\"event\":{\"start\":{\"pid\":-1}}}", -EPROTO },
                { "{\"event\":{\"start\":{\"pid\":1,\"at\":\"-7\"}}}", -EPROTO },
                { "{\"event\":{\"data\":{\"stdout\":5}}}", -EPROTO },
                { "{\"event\":{\"end\":{\"exitCode\":70000}}}", -EPROTO },
                { "{\"event\":{\"gap\":{\"bytes\":\"many\"}}}", -EPROTO },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                struct process_message m;
                struct json *j;

                assert_int_equal(message(all[i].text, &m, &j), all[i].result);
                (void) json_free(j);
        }
}

static void output_of_any_length_is_decoded(void **state) {
        static uint8_t bytes[20000], back[sizeof(bytes)];
        static char text[4 * sizeof(bytes)];
        struct evbuffer *to = evbuffer_new();

        (void) state;
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t) (i * 7 + i / 256);
        for (size_t n = 0; n < sizeof(bytes); n += n < 64 ? 1 : 997) {
                static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                char *p = text;

                for (size_t i = 0; i < n; i += 3) {
                        uint32_t v = (uint32_t) bytes[i] << 16 | (i + 1 < n ? (uint32_t) bytes[i + 1] << 8 : 0) |
                                     (i + 2 < n ? bytes[i + 2] : 0);

                        for (int k = 0; k < 4; k++)
                                *p++ = (char) (i + (size_t) k > n && k > 1 ? '=' : digits[v >> (18 - 6 * k) & 63]);
                }
                *p = '\0';
                assert_int_equal(process_bytes(text, to), n);
                assert_int_equal(evbuffer_remove(to, back, sizeof(back)), n);
                assert_memory_equal(bytes, back, n);
        }
        assert_true(process_bytes("Zm9v Zm9v", to) < 0);
        assert_true(process_bytes("Zg==Zg==", to) < 0);
        evbuffer_free(to);
}

static void events_are_lines_up_to_an_empty_one(void **state) {
        static const char text[] =
                "id: 5\nevent: a\ndata: {\"seq\":5}\n\n: alive\n\ndata: {\"seq\":\ndata: 6}\n\ndata: {\"se";
        struct evbuffer *in = evbuffer_new();
        struct json *j = NULL;
        struct err err = { 0 };

        (void) state;
        (void) evbuffer_add(in, text, sizeof(text) - 1);
        for (int seq = 5; seq < 7; seq++) {
                assert_int_equal(client_event_next(in, &j, &err), 1);
                assert_int_equal(json_get_int(j, "seq", 0), seq);
                j = json_free(j);
        }
        assert_int_equal(client_event_next(in, &j, &err), 0);
        assert_int_equal(evbuffer_get_length(in), strlen("data: {\"se"));
        (void) evbuffer_add(in, "\n\n", 2);
        assert_int_equal(client_event_next(in, &j, &err), -EPROTO);
        evbuffer_free(in);
}

static void an_event_without_end_is_refused(void **state) {
        static char line[CLIENT_EVENT_MAX + 2];
        struct evbuffer *in = evbuffer_new();
        struct json *j = NULL;
        struct err err = { 0 };

        (void) state;
        memset(line, 'x', sizeof(line));
        (void) evbuffer_add(in, line, sizeof(line));
        assert_int_equal(client_event_next(in, &j, &err), -EPROTO);
        evbuffer_free(in);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_comes_when_it_is_whole),
                cmocka_unit_test(the_last_message_may_have_an_error),
                cmocka_unit_test(what_is_no_stream_is_refused),
                cmocka_unit_test(ends_of_commands_are_understood),
                cmocka_unit_test(strange_events_are_refused_and_new_ones_left_alone),
                cmocka_unit_test(output_of_any_length_is_decoded),
                cmocka_unit_test(events_are_lines_up_to_an_empty_one),
                cmocka_unit_test(an_event_without_end_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
