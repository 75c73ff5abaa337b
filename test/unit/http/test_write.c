/* test_write.c - what is written is what was meant: nothing injected, nothing of another hop passed on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "http/http.h"

static void drained_is(struct evbuffer *b, const char *text) {
        assert_int_equal(evbuffer_get_length(b), strlen(text));
        assert_memory_equal(evbuffer_pullup(b, -1), text, strlen(text));
        assert_int_equal(evbuffer_drain(b, strlen(text)), 0);
}

static void heads_are_written_whole(void **state) {
        struct evbuffer *to = evbuffer_new();
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };

        (void) state;
        http_add(&lines, "Host", "a");
        http_addf(&lines, "X-N", "%d", 7);
        http_add(&lines, "X-Empty", "");
        assert_int_equal(http_write_request_head(to, "GET", "/x?y", &lines, &err), 0);
        drained_is(to, "GET /x?y HTTP/1.1\r\nHost: a\r\nX-N: 7\r\nX-Empty: \r\n\r\n");
        assert_int_equal(http_write_response_head(to, 404, NULL, &err), 0);
        drained_is(to, "HTTP/1.1 404 Not Found\r\n\r\n");
        assert_int_equal(http_write_response_head(to, 599, NULL, &err), 0);
        drained_is(to, "HTTP/1.1 599 Unnamed\r\n\r\n");
        buf_done(&lines);
        evbuffer_free(to);
}

static void nothing_can_be_injected(void **state) {
        static const char *const values[] = { "a\r\nX: b", "a\nb", "a\rb", "a\x01", "a\x7f" };
        static const char *const names[] = { "", "a b", "a:", "a\r\n", "X\xc3" };
        static const char *const targets[] = { "", "/ x", "/\r\nHost: b", "/#a", "/\x80" };
        struct evbuffer *to = evbuffer_new();
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                struct buf one = BUF_INIT(HTTP_HEAD_MAX), two = BUF_INIT(HTTP_HEAD_MAX);

                http_add(&one, "X", values[i]);
                http_add(&one, "Y", "good again");
                http_add(&two, names[i], "x");
                assert_int_equal(http_write_response_head(to, 200, &one, &err), -EINVAL);
                assert_int_equal(http_write_request_head(to, "GET", "/", &two, &err), -EINVAL);
                assert_int_equal(http_write_request_head(to, "GET", targets[i], NULL, &err), -EINVAL);
                buf_done(&one);
                buf_done(&two);
        }
        assert_int_equal(http_write_request_head(to, "G T", "/", NULL, &err), -EINVAL);
        assert_int_equal(http_write_response_head(to, 99, NULL, &err), -EINVAL);
        assert_int_equal(http_write_response_head(to, 1000, NULL, &err), -EINVAL);
        assert_int_equal(evbuffer_get_length(to), 0);
        evbuffer_free(to);
}

static void heads_too_large_are_not_written(void **state) {
        struct evbuffer *to = evbuffer_new();
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        AUTO_FREE char *target = calloc(1, HTTP_LINE_MAX + 1);
        struct err err = { 0 };

        (void) state;
        for (int i = 0; i < 1200; i++)
                http_add(&lines, "X-Long", "01234567890123456789");
        assert_true(lines.bad);
        assert_int_equal(http_write_response_head(to, 200, &lines, &err), -EINVAL);
        assert_non_null(target);
        memset(target, '/', HTTP_LINE_MAX);
        assert_int_equal(http_write_request_head(to, "GET", target, NULL, &err), -EMSGSIZE);
        assert_int_equal(evbuffer_get_length(to), 0);
        buf_done(&lines);
        evbuffer_free(to);
}

static const struct http_head passing = {
        .headers = { { "Host", "a" },
                     { "Connection", "close, X-Hop, Upgrade, Host" },
                     { "x-hop", "secret" },
                     { "Keep-Alive", "timeout=5" },
                     { "Proxy-Authorization", "secret" },
                     { "proxy-connection", "keep-alive" },
                     { "TE", "trailers" },
                     { "Trailer", "X" },
                     { "Transfer-Encoding", "chunked" },
                     { "Content-Length", "5" },
                     { "Upgrade", "websocket" },
                     { "Expect", "100-continue" },
                     { "Cookie", "c" },
                     { "X-End", "e" } },
        .n_headers = 14,
        .has_length = true,
        .length = 5,
        .body = HTTP_BODY_LENGTH,
};

static void nothing_of_this_hop_is_passed_on(void **state) {
        static const char *const drop[] = { "cookie", NULL };
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);

        (void) state;
        http_add_forwarded(&lines, &passing, NULL, false);
        assert_string_equal(buf_str(&lines), "Host: a\r\nCookie: c\r\nX-End: e\r\n");
        buf_done(&lines);
        http_add_forwarded(&lines, &passing, drop, true);
        assert_string_equal(buf_str(&lines), "Host: a\r\nX-End: e\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n");
        buf_done(&lines);
}

static void framing_is_made_for_the_receiver(void **state) {
        static const struct {
                enum http_body body;
                bool has_length;
                unsigned minor;
                enum http_body how;
                const char *text;
        } rows[] = {
                { HTTP_BODY_NONE, false, 1, HTTP_BODY_NONE, "" },
                { HTTP_BODY_NONE, true, 1, HTTP_BODY_NONE, "Content-Length: 7\r\n" }, /* HEAD, 304 */
                { HTTP_BODY_LENGTH, true, 0, HTTP_BODY_LENGTH, "Content-Length: 7\r\n" },
                { HTTP_BODY_CHUNKED, false, 1, HTTP_BODY_CHUNKED, "Transfer-Encoding: chunked\r\n" },
                { HTTP_BODY_CHUNKED, false, 0, HTTP_BODY_CLOSE, "" },
                { HTTP_BODY_CLOSE, false, 1, HTTP_BODY_CHUNKED, "Transfer-Encoding: chunked\r\n" },
                { HTTP_BODY_CLOSE, false, 0, HTTP_BODY_CLOSE, "" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct http_head head = { .body = rows[i].body, .has_length = rows[i].has_length, .length = 7 };
                struct buf lines = BUF_INIT(HTTP_HEAD_MAX);

                assert_int_equal(http_add_framing(&lines, &head, rows[i].minor), rows[i].how);
                assert_string_equal(buf_str(&lines), rows[i].text);
                buf_done(&lines);
        }
}

static void bodies_are_framed_and_never_end_early(void **state) {
        struct evbuffer *to = evbuffer_new(), *from = evbuffer_new();
        struct err err = { 0 };

        (void) state;
        assert_int_equal(http_write_body(to, HTTP_BODY_CHUNKED, "hello, chunks", 13, &err), 0);
        assert_int_equal(http_write_body(to, HTTP_BODY_CHUNKED, "", 0, &err), 0); /* "0\r\n\r\n" would end it */
        assert_int_equal(http_write_buffer(to, HTTP_BODY_CHUNKED, from, &err), 0);
        assert_int_equal(evbuffer_add(from, "moved", 5), 0);
        assert_int_equal(http_write_buffer(to, HTTP_BODY_CHUNKED, from, &err), 0);
        assert_int_equal(http_write_end(to, HTTP_BODY_CHUNKED, &err), 0);
        drained_is(to, "d\r\nhello, chunks\r\n5\r\nmoved\r\n0\r\n\r\n");
        assert_int_equal(http_write_body(to, HTTP_BODY_LENGTH, "x", 1, &err), 0);
        assert_int_equal(http_write_body(to, HTTP_BODY_NONE, "y", 1, &err), 0);
        assert_int_equal(evbuffer_add(from, "z", 1), 0);
        assert_int_equal(http_write_buffer(to, HTTP_BODY_NONE, from, &err), 0);
        assert_int_equal(http_write_end(to, HTTP_BODY_LENGTH, &err), 0);
        drained_is(to, "x");
        assert_int_equal(evbuffer_get_length(from), 0);
        evbuffer_free(to);
        evbuffer_free(from);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(heads_are_written_whole),
                cmocka_unit_test(nothing_can_be_injected),
                cmocka_unit_test(heads_too_large_are_not_written),
                cmocka_unit_test(nothing_of_this_hop_is_passed_on),
                cmocka_unit_test(framing_is_made_for_the_receiver),
                cmocka_unit_test(bodies_are_framed_and_never_end_early),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
