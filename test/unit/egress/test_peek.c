/* test_peek.c - what a client speaks is told from its first bytes, however they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "egress/peek.h"

static const struct {
        const char *bytes;
        enum peek_kind kind;
} cases[] = {
        { "GET / HTTP/1.1\r\n", PEEK_HTTP },
        { "GET / HTTP/1.0\n", PEEK_HTTP },
        { "M-SEARCH * HTTP/1.1\r\n", PEEK_HTTP },
        { "CONNECT a.example:443 HTTP/1.1\r\n", PEEK_HTTP },
        { "GET http://a.example/ HTTP/1.1\r\nHost: b\r\n", PEEK_HTTP },
        { "PRI * HTTP/2.0\r\n\r\n", PEEK_OTHER },
        { "GET /\r\n", PEEK_OTHER },       /* HTTP/0.9 */
        { "GET key\r\n", PEEK_OTHER },     /* redis, inline */
        { "HTTP/1.1\r\n", PEEK_OTHER },    /* no method */
        { " HTTP/1.1\r\n", PEEK_OTHER },   /* nothing before the version */
        { "GET HTTP/1.1\r\n", PEEK_HTTP }, /* the parser will refuse it */
        { "get / HTTP/1.1\r\n", PEEK_OTHER },
        { "\r\nGET / HTTP/1.1\r\n", PEEK_OTHER },
        { "ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1\r\n", PEEK_OTHER },
        { "SSH-2.0-OpenSSH\r\n", PEEK_OTHER },
        { "\x16\x03\x01", PEEK_TLS },
        { "\x16\x02", PEEK_OTHER },
        { "\x80\x2e\x01", PEEK_OTHER }, /* SSLv2 */
        { "\xff", PEEK_OTHER },
        { "GET", PEEK_MORE },
        { "GET / HTTP/1.1\r", PEEK_MORE },
        { "\x16", PEEK_MORE },
        { "", PEEK_MORE },
};

static void first_bytes_are_told_apart(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (peek_kind(cases[i].bytes, strlen(cases[i].bytes)) != cases[i].kind)
                        fail_msg("case %zu: %s", i, cases[i].bytes);
}

static void nothing_is_said_too_early(void **state) {
        (void) state;
        /* Whatever fewer bytes say is either "more" or the same. */
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t n = 0; n < strlen(cases[i].bytes); n++) {
                        enum peek_kind k = peek_kind(cases[i].bytes, n);

                        assert_true(k == PEEK_MORE || k == cases[i].kind);
                }
}

static void long_first_line_is_no_request(void **state) {
        static char bytes[PEEK_LINE_MAX + 64];

        (void) state;
        memset(bytes, 'a', sizeof(bytes));
        memcpy(bytes, "GET /", 5);
        assert_int_equal(peek_kind(bytes, PEEK_LINE_MAX - 1), PEEK_MORE);
        assert_int_equal(peek_kind(bytes, sizeof(bytes)), PEEK_OTHER);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(first_bytes_are_told_apart),
                cmocka_unit_test(nothing_is_said_too_early),
                cmocka_unit_test(long_first_line_is_no_request),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
