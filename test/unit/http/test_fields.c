/* test_fields.c - values that are lists, weights, media types; hosts, paths and queries. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "http/http.h"

static void headers_are_found_whatever_their_case(void **state) {
        struct http_head head = { .headers = { { "Accept", "a" }, { "X-B", "b" }, { "ACCEPT", "c" } }, .n_headers = 3 };
        size_t at = 0;

        (void) state;
        assert_string_equal(http_header(&head, "accept", NULL), "a");
        assert_string_equal(http_header(&head, "accept", &at), "a");
        assert_string_equal(http_header(&head, "accept", &at), "c");
        assert_null(http_header(&head, "accept", &at));
        assert_null(http_header(&head, "accep", NULL));
}

static void lists_are_read_by_element(void **state) {
        (void) state;
        assert_true(http_list_has("close", "close"));
        assert_true(http_list_has(" a ,\tCLOSE\t, b", "close"));
        assert_true(http_list_has(",,close", "close"));
        assert_true(http_list_has("gzip;q=0.5, br", "gzip"));
        assert_true(http_list_has("x=\"a,close,b\", close", "close"));
        assert_false(http_list_has("x=\"a,close,b\"", "close"));
        assert_false(http_list_has("x=\"\\\",close", "close"));
        assert_false(http_list_has("closed, notclose", "close"));
        assert_false(http_list_has("close d", "close"));
        assert_false(http_list_has("", "close"));
}

static void weights_are_in_thousandths(void **state) {
        static const struct {
                const char *list, *token;
                unsigned weight;
        } rows[] = {
                { "gzip", "gzip", 1000 },
                { "gzip;q=0.5", "gzip", 500 },
                { "gzip;q=0", "gzip", 0 },
                { "gzip; q=0.125, br", "gzip", 125 },
                { "br, *;q=0.1", "gzip", 100 },
                { "gzip;q=0, *", "gzip", 0 },
                { "br", "gzip", 0 },
                { "", "gzip", 0 },
                { "gzip;x=1;Q=0.2", "gzip", 200 },
                { "gzip;q=1.5", "gzip", 0 },
                { "gzip;q=x", "gzip", 0 },
                { "gzip;q=0.1239", "gzip", 123 },
                { "*", "identity", 1000 },
                { "gzip;q=", "gzip", 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(http_list_weight(rows[i].list, rows[i].token), rows[i].weight);
}

static void media_types_are_compared_without_parameters(void **state) {
        (void) state;
        assert_true(http_media_is("application/json", "application/json"));
        assert_true(http_media_is("Application/JSON; charset=utf-8", "application/json"));
        assert_false(http_media_is("application/json2", "application/json"));
        assert_false(http_media_is("text/plain", "application/json"));
        assert_false(http_media_is("text/plain, application/json", "application/json"));
        assert_false(http_media_is("application/json, text/plain", "application/json"));
        assert_false(http_media_is("", "application/json"));
}

static void hosts_have_one_form(void **state) {
        static const struct {
                const char *text, *host;
                uint16_t port;
        } good[] = {
                { "A.Example", "a.example", 0 },   { "a.example.:1", "a.example.", 1 }, { "a_b-c", "a_b-c", 0 },
                { "[::1]:65535", "[::1]", 65535 }, { "10.0.0.1:80", "10.0.0.1", 80 },   { "1.a", "1.a", 0 },
        };
        static const char *const bad[] = {
                "",          ":80",
                "a:",        "a:0",
                "a:065536",  "a:8 0",
                "a b",       "a@b",
                "a/b",       "a%41",
                "a..b",      ".a",
                "[::1",      "[::1]80",
                "[1.2.3.4]", "::1",
                "1.2.3",     "1.2.3.4.5",
                "256.1.1.1", "0x7f.1",
                "a.0x1",     "\xc3\xa4.example",
                "a\t",
        };
        char host[HTTP_HOST_MAX + 1], longest[300];
        uint16_t port;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(http_parse_host(good[i].text, host, &port), 0);
                assert_string_equal(host, good[i].host);
                assert_int_equal(port, good[i].port);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(http_parse_host(bad[i], host, &port), -EINVAL);
        memset(longest, 'a', sizeof(longest));
        for (size_t i = 50; i < sizeof(longest); i += 50)
                longest[i] = '.';
        longest[HTTP_HOST_MAX] = '\0';
        assert_int_equal(http_parse_host(longest, host, &port), 0);
        longest[HTTP_HOST_MAX] = 'a';
        longest[HTTP_HOST_MAX + 1] = '\0';
        assert_int_equal(http_parse_host(longest, host, &port), -EINVAL);
        memset(longest, 'a', 64);
        longest[64] = '\0';
        assert_int_equal(http_parse_host(longest, host, &port), -EINVAL);
}

static void escapes_are_whole_and_never_nul(void **state) {
        char text[8];

        (void) state;
        assert_int_equal(http_percent_decode("a%2Fb%c3", 8, text, sizeof(text)), 0);
        assert_string_equal(text, "a/b\xc3");
        assert_int_equal(http_percent_decode("%2", 2, text, sizeof(text)), -EINVAL);
        assert_int_equal(http_percent_decode("%2Fxx", 2, text, sizeof(text)), -EINVAL); /* n ends it */
        assert_int_equal(http_percent_decode("%2g", 3, text, sizeof(text)), -EINVAL);
        assert_int_equal(http_percent_decode("a%00", 4, text, sizeof(text)), -EINVAL);
        assert_string_equal(text, "");
        assert_int_equal(http_percent_decode("12345678", 8, text, sizeof(text)), -ENAMETOOLONG);
        assert_int_equal(http_percent_decode("1234567", 7, text, sizeof(text)), 0);
        assert_int_equal(http_percent_decode("+", 1, text, sizeof(text)), 0);
        assert_string_equal(text, "+");
}

static void paths_are_walked_by_segment(void **state) {
        static const char *const want[] = { "files", "a/b", "", "c" };
        const char *path = "/files/a%2fb//c", *bad = "/%zz", *relative = "x/y";
        char text[16];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                assert_int_equal(http_path_next(&path, text, sizeof(text)), 1);
                assert_string_equal(text, want[i]);
        }
        assert_int_equal(http_path_next(&path, text, sizeof(text)), 0);
        assert_int_equal(http_path_next(&bad, text, sizeof(text)), -EINVAL);
        assert_int_equal(http_path_next(&relative, text, sizeof(text)), -EINVAL);
}

static void plain_paths_mean_one_thing(void **state) {
        static const char *const plain[] = {
                "/", "/a", "/a/", "/a/b.c", "/a/...", "/.a", "/a%20b", "/%C3%A4", "/a..b"
        };
        static const char *const odd[] = { "",        "a",     "//",   "/a//b",   "/.",     "/..",
                                           "/a/../b", "/a/.",  "/%2e", "/%2E%2e", "/.%2e/", "/a%2fb",
                                           "/a%5cb",  "/a%00", "/a%",  "/%zz",    "/a\\b" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
                if (!http_path_is_plain(plain[i]))
                        fail_msg("%s", plain[i]);
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
                if (http_path_is_plain(odd[i]))
                        fail_msg("%s", odd[i]);
}

static void queries_are_walked_by_pair(void **state) {
        static const char *const want[][2] = { { "a", "1" }, { "b c", "d=e" }, { "f", "" }, { "g", "" }, { "", "h" } };
        const char *query = "&a=1&&b+c=d%3De&f&g=&=h&", *bad = "a=%4", *large = "a=123456789012345678";
        char name[16], value[16];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                assert_int_equal(http_query_next(&query, name, sizeof(name), value, sizeof(value)), 1);
                assert_string_equal(name, want[i][0]);
                assert_string_equal(value, want[i][1]);
        }
        assert_int_equal(http_query_next(&query, name, sizeof(name), value, sizeof(value)), 0);
        assert_int_equal(http_query_next(&bad, name, sizeof(name), value, sizeof(value)), -EINVAL);
        assert_int_equal(http_query_next(&large, name, sizeof(name), value, sizeof(value)), -ENAMETOOLONG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(headers_are_found_whatever_their_case),
                cmocka_unit_test(lists_are_read_by_element),
                cmocka_unit_test(weights_are_in_thousandths),
                cmocka_unit_test(media_types_are_compared_without_parameters),
                cmocka_unit_test(hosts_have_one_form),
                cmocka_unit_test(escapes_are_whole_and_never_nul),
                cmocka_unit_test(paths_are_walked_by_segment),
                cmocka_unit_test(plain_paths_mean_one_thing),
                cmocka_unit_test(queries_are_walked_by_pair),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
