/* test_parse.c - the parser's limits, and what it does between messages; the rules themselves are test/data/http. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "http/http.h"

#define START "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

static void fill(struct buf *b, size_t n) {
        while (n-- > 0)
                buf_add(b, "a", 1);
}

/* Feeds all of b to a fresh parser; 0 at the end or when more is needed, else the failure. */
static int verdict(const struct buf *b, unsigned *ret_status) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        struct http_event ev = { 0 };
        struct err err = { 0 };
        size_t at = 0;
        int r = 0;

        assert_false(b->bad);
        assert_int_equal(http_parser_new_request(&p, &err), 0);
        do {
                r = http_feed(p, b->p + at, b->len - at, &ev, &err);
                at += r == 0 ? ev.used : 0;
        } while (r == 0 && ev.type != HTTP_EV_MORE && ev.type != HTTP_EV_END);
        *ret_status = http_parser_status(p);
        return r;
}

static void lines_may_be_as_long_as_the_limit_and_no_longer(void **state) {
        (void) state;
        for (int over = 0; over < 2; over++) {
                struct buf b = BUF_INIT(100000);
                unsigned status;

                buf_addf(&b, "GET /");
                fill(&b, HTTP_LINE_MAX - strlen("GET / HTTP/1.1") + (size_t) over);
                buf_addf(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                assert_int_equal(status, over ? 414 : 0);
                buf_done(&b);
                buf_addf(&b, START "X: ");
                fill(&b, HTTP_LINE_MAX - 3 + (size_t) over);
                buf_addf(&b, "\r\n\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                assert_int_equal(status, over ? 431 : 0);
                buf_done(&b);
        }
}

static void heads_may_be_as_large_as_the_limit_and_no_larger(void **state) {
        (void) state;
        for (size_t over = 0; over < 2; over++) {
                struct buf b = BUF_INIT(100000);
                unsigned status;

                buf_addf(&b, START);
                while (b.len < HTTP_HEAD_MAX - 2000) {
                        buf_addf(&b, "X: ");
                        fill(&b, 1000);
                        buf_addf(&b, "\r\n");
                }
                buf_addf(&b, "X: ");
                fill(&b, HTTP_HEAD_MAX - b.len - 4 + over);
                buf_addf(&b, "\r\n\r\n");
                assert_int_equal(b.len, HTTP_HEAD_MAX + over);
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                assert_int_equal(status, over ? 431 : 0);
                buf_done(&b);
        }
}

static void headers_are_counted(void **state) {
        (void) state;
        for (int over = 0; over < 2; over++) {
                struct buf b = BUF_INIT(100000);
                unsigned status;

                buf_addf(&b, START);
                for (int i = 1; i < HTTP_HEADERS_MAX + over; i++)
                        buf_addf(&b, "X-%d: %d\r\n", i, i);
                buf_addf(&b, "\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                buf_done(&b);
        }
}

static void chunk_lines_and_trailers_are_bounded(void **state) {
        (void) state;
        for (size_t over = 0; over < 2; over++) {
                struct buf b = BUF_INIT(100000);
                unsigned status;

                buf_addf(&b, CHUNKED "1;");
                fill(&b, HTTP_CHUNK_LINE_MAX - 2 + over);
                buf_addf(&b, "\r\nx\r\n0\r\n\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                buf_done(&b);
                buf_addf(&b, CHUNKED "0\r\n");
                for (size_t i = 0; i < HTTP_TRAILERS_MAX + over; i++)
                        buf_addf(&b, "X: y\r\n");
                buf_addf(&b, "\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                buf_done(&b);
                buf_addf(&b, CHUNKED "0\r\n");
                for (size_t i = 0; i < 4; i++) {
                        buf_addf(&b, "X: ");
                        fill(&b, HTTP_TRAILER_BYTES / 4 - 6 + over);
                        buf_addf(&b, "\r\n");
                }
                buf_addf(&b, "\r\n");
                assert_int_equal(verdict(&b, &status), over ? -EMSGSIZE : 0);
                buf_done(&b);
        }
}

static void framing_stays_in_proportion_to_data(void **state) {
        (void) state;
        for (int longer = 0; longer < 2; longer++) {
                struct buf b = BUF_INIT(1000000);
                unsigned status;

                buf_addf(&b, CHUNKED);
                for (int i = 0; i < 4000; i++)
                        buf_addf(&b, longer ? "1;abcdefghijklmnopqrst\r\nx\r\n" : "1;abcdefghij\r\nx\r\n");
                assert_int_equal(verdict(&b, &status), longer ? -EPROTO : 0);
                buf_done(&b);
        }
}

static void a_refusal_is_for_good_and_has_no_byte_of_the_peer(void **state) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        struct http_event ev;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(http_parser_new_request(&p, &err), 0);
        assert_int_equal(http_feed(p, "EVIL\x01", 5, &ev, &err), -EPROTO);
        assert_int_equal(err.kind, ERR_PEER);
        assert_string_equal(err.msg, "control byte");
        http_parser_next(p, NULL);
        assert_int_equal(http_feed(p, START "\r\n", strlen(START) + 2, &ev, &err), -EPROTO);
        assert_int_equal(http_eof(p, &ev, &err), -EPROTO);
}

static void between_messages_an_end_is_fine(void **state) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        static const char text[] = START "\r\nGET";
        struct http_event ev;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(http_parser_new_request(&p, &err), 0);
        assert_int_equal(http_eof(p, &ev, &err), 0);
        assert_int_equal(ev.type, HTTP_EV_MORE);
        assert_int_equal(http_feed(p, text, sizeof(text) - 1, &ev, &err), 0);
        assert_int_equal(ev.type, HTTP_EV_HEAD);
        assert_int_equal(ev.used, sizeof(text) - 1 - 3);
        for (int i = 0; i < 2; i++) { /* as often as one asks */
                assert_int_equal(http_feed(p, "GET", 3, &ev, &err), 0);
                assert_int_equal(ev.type, HTTP_EV_END);
                assert_int_equal(ev.used, 0);
        }
        assert_int_equal(http_eof(p, &ev, &err), 0);
        http_parser_next(p, NULL);
        assert_false(http_parser_is_busy(p));
        assert_int_equal(http_feed(p, "GET", 3, &ev, &err), 0);
        assert_int_equal(ev.type, HTTP_EV_MORE);
        assert_true(http_parser_is_busy(p));
        assert_int_equal(http_eof(p, &ev, &err), -EPROTO);
}

/* Chains of all sizes: pulling must neither lose nor copy the wrong bytes. */
static void pulling_moves_bodies_between_buffers(void **state) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        struct evbuffer *in = evbuffer_new(), *body = evbuffer_new();
        size_t total = 0, n_events = 0;
        struct http_event ev = { 0 };
        struct err err = { 0 };
        static char block[40000];

        (void) state;
        memset(block, 'b', sizeof(block));
        assert_int_equal(http_parser_new_request(&p, &err), 0);
        for (const char *s = CHUNKED; *s; s += 7) { /* a chain for each: references are not merged */
                size_t n = strnlen(s, 7);

                assert_int_equal(evbuffer_add_reference(in, s, n, NULL, NULL), 0);
                if (n < 7)
                        break;
        }
        for (size_t n = 1; n <= sizeof(block); n *= 3) {
                assert_true(evbuffer_add_printf(in, "%zx\r\n", n) > 0);
                assert_int_equal(evbuffer_add_reference(in, block, n, NULL, NULL), 0);
                assert_int_equal(evbuffer_add(in, "\r\n", 2), 0);
                total += n;
        }
        assert_int_equal(evbuffer_add(in, "0\r\n\r\nrest", 9), 0);
        while (ev.type != HTTP_EV_END && n_events++ < 100)
                assert_int_equal(http_pull(p, in, body, &ev, &err), 0);
        assert_int_equal(evbuffer_get_length(body), total);
        assert_int_equal(evbuffer_get_length(in), 4);
        for (size_t i = 0; i < total; i++)
                assert_int_equal(evbuffer_pullup(body, -1)[i], 'b');
        evbuffer_free(in);
        evbuffer_free(body);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_may_be_as_long_as_the_limit_and_no_longer),
                cmocka_unit_test(heads_may_be_as_large_as_the_limit_and_no_larger),
                cmocka_unit_test(headers_are_counted),
                cmocka_unit_test(chunk_lines_and_trailers_are_bounded),
                cmocka_unit_test(framing_stays_in_proportion_to_data),
                cmocka_unit_test(a_refusal_is_for_good_and_has_no_byte_of_the_peer),
                cmocka_unit_test(between_messages_an_end_is_fine),
                cmocka_unit_test(pulling_moves_bodies_between_buffers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
