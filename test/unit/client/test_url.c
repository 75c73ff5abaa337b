/* test_url.c - where a server may be, and how targets are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "client/client.h"

static void servers_are_found_by_url(void **state) {
        static const struct {
                const char *text;
                enum client_scheme scheme;
                const char *host;
                unsigned port;
                const char *shown;
        } good[] = {
                { "http://127.0.0.1:3000", CLIENT_HTTP, "127.0.0.1", 3000, "http://127.0.0.1:3000" },
                { "http://Example.COM/", CLIENT_HTTP, "example.com", 80, "http://example.com:80" },
                { "http://[::1]:8080", CLIENT_HTTP, "[::1]", 8080, "http://[::1]:8080" },
                { "https://gabion.example", CLIENT_HTTPS, "gabion.example", 443, "https://gabion.example:443" },
                { "unix:/run/x.sock", CLIENT_UNIX, "localhost", 80, "unix:/run/x.sock" },
                { "unix:///run/x.sock", CLIENT_UNIX, "localhost", 80, "unix:/run/x.sock" },
        };
        struct client_url u;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(client_url_parse(good[i].text, &u, &err), 0);
                assert_int_equal(u.scheme, good[i].scheme);
                assert_string_equal(u.host, good[i].host);
                assert_int_equal(u.port, good[i].port);
                assert_string_equal(u.text, good[i].shown);
        }
}

static void other_texts_are_refused_by_name(void **state) {
        static const char *const bad[] = { "",
                                           "127.0.0.1:3000",
                                           "ftp://x",
                                           "http://",
                                           "http://host/path",
                                           "http://user@host",
                                           "http://host:99999",
                                           "http://a b",
                                           "https://127.0.0.1",
                                           "unix:relative",
                                           "unix:",
                                           "http://host\r\nX: y" };
        struct client_url u;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct err err = { 0 };

                assert_true(client_url_parse(bad[i], &u, &err) < 0);
                assert_non_null(strstr(err.msg, "server '"));
        }
}

static void a_socket_of_any_length_is_not_cut(void **state) {
        char text[160] = "unix:/";
        struct client_url u;
        struct err err = { 0 };

        (void) state;
        memset(text + 6, 'a', 120);
        assert_true(client_url_parse(text, &u, &err) < 0);
}

static void values_of_queries_are_encoded(void **state) {
        struct buf target = BUF_INIT(256);

        (void) state;
        buf_addf(&target, "/files");
        client_query_add(&target, "path", "/home/u ser/a&b=c?#%+");
        client_query_add(&target, "username", "\xc3\xa9");
        assert_string_equal(buf_str(&target), "/files?path=/home/u%20ser/a%26b%3Dc%3F%23%25%2B&username=%C3%A9");
        buf_done(&target);
}

static void names_of_sandboxes_are_letters_digits_and_dashes(void **state) {
        (void) state;
        assert_true(client_is_name("a"));
        assert_true(client_is_name("my-box-2"));
        assert_false(client_is_name(""));
        assert_false(client_is_name("A"));
        assert_false(client_is_name("a/b"));
        assert_false(client_is_name("../x"));
        assert_false(client_is_name("a\n"));
        assert_false(client_is_name("0123456789012345678901234567890123456789012345678901234567890123"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(servers_are_found_by_url),
                cmocka_unit_test(other_texts_are_refused_by_name),
                cmocka_unit_test(a_socket_of_any_length_is_not_cut),
                cmocka_unit_test(values_of_queries_are_encoded),
                cmocka_unit_test(names_of_sandboxes_are_letters_digits_and_dashes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
