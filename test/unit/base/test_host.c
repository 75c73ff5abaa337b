/* test_host.c - one spelling per host name, and nothing that somebody else could read as an address. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/host.h"
#include "base/own.h"

#define LABEL63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-0123456789"
#define NAME253                                                                                                        \
        LABEL63 "." LABEL63 "." LABEL63 "."                                                                            \
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-01234567"

static void good_names_become_canonical(void **state) {
        static const char *const rows[][2] = {
                { "example.com", "example.com" },
                { "EXAMPLE.Com", "example.com" },
                { "example.com.", "example.com" },
                { "localhost", "localhost" },
                { "a", "a" },
                { "r3---sn.video.example", "r3---sn.video.example" },
                { "my_bucket.example", "my_bucket.example" },
                { "_http._tcp.example", "_http._tcp.example" },
                { "1.example", "1.example" },
                { "xn--bcher-kva.example", "xn--bcher-kva.example" },
                { "4.3.2.1.in-addr.arpa", "4.3.2.1.in-addr.arpa" },
                { "0xg", "0xg" },
                { NAME253, NAME253 },
                { NAME253 ".", NAME253 },
        };
        char name[HOST_NAME];

        (void) state;
        assert_int_equal(strlen(NAME253), 253);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(host_canonical(rows[i][0], strlen(rows[i][0]), name), 0);
                assert_string_equal(name, rows[i][1]);
        }
}

static void everything_else_is_refused(void **state) {
        static const char *const rows[] = {
                "",           ".",      "..",         "a..b",          ".a",
                "a..",        "-a.com", "a-.com",     "a b",           "a/b",
                "a:80",       "user@a", "a%2e",       "b\xc3\xbc",     "a\n",
                "*.a",        "[::1]",  "::1",        "127.0.0.1",     "127.1",
                "2130706433", "0x7f.1", "0x7f000001", "0X7F.0x1",      "a.0x",
                "1.2.3.4.",   "a.1",    "0177.0.0.1", LABEL63 "x.com", NAME253 "x",
        };
        char name[HOST_NAME] = "untouched";

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(host_canonical(rows[i], strlen(rows[i]), name), -EINVAL);
        assert_int_equal(host_canonical("a\0b.com", 7, name), -EINVAL);
        assert_string_equal(name, "untouched");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(good_names_become_canonical),
                cmocka_unit_test(everything_else_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
