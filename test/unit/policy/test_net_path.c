/* test_net_path.c - paths of requests in one form, and what is below a prefix. */
#include <errno.h>

#include "base/str.h"
#include "net_help.h"
#include "policy/net_rules.h"

static void paths_have_one_spelling(void **state) {
        static const struct {
                const char *text, *kept, *bare;
        } cases[] = {
                { "/", "/", "/" },
                { "/a/b/", "/a/b/", "/a/b/" },
                { "/a?b=/../c", "/a", "/a" },
                { "/%61%2D%7e", "/a-~", "/a-~" },
                { "/%40%3a", "/@:", "/@:" },
                { "/a%20b%c3%a4", "/a%20b%C3%A4", "/a%20b%C3%A4" },
                { "/a|b\"", "/a%7Cb%22", "/a%7Cb%22" },
                { "/%3f%23", "/%3F%23", "/%3F%23" },
                { "/a%2fb", "/a%2Fb", "/a/b" },
                { "/a;x=1/b;y", "/a;x=1/b;y", "/a/b" },
                { "/a%3bx/b", "/a%3Bx/b", "/a/b" },
                { "/...", "/...", "/..." },
                { "/.a/b..", "/.a/b..", "/.a/b.." },
                { "/a/;x", "/a/;x", "/a/" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct net_path p;

                assert_int_equal(net_path_read(cases[i].text, &p), 0);
                assert_string_equal(p.kept, cases[i].kept);
                assert_string_equal(p.bare, cases[i].bare);
                assert_int_equal(p.n, strlen(cases[i].kept));
        }
}

static void ambiguous_paths_are_refused(void **state) {
        static const char *const cases[] = {
                "",           "a",        "*",       "http://a/",   "/.",      "/..",     "/a/.",  "/a/..",
                "/./a",       "/../a",    "/a/../b", "/%2e/a",      "/%2E%2e", "/.%2e/a", "/..;a", "/a/..;x=1/b",
                "/.;/a",      "/..%3b/a", "/..%2f",  "/%2e%2e%2fa", "//",      "//a",     "/a//b", "/a/%2fb",
                "/a%2f%2fb",  "/;x/a",    "/a\\b",   "/a%5cb",      "/a%00",   "/a%0ab",  "/a%7f", "/a%25",
                "/a%252e",    "/a%",      "/a%2",    "/a%zz",       "/a%2g",   "/a b",    "/a\tb", "/a\x7f",
                "/a\xc3\xa4", "/a#b",     "/a%1f",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct net_path p;

                if (net_path_read(cases[i], &p) != -EINVAL)
                        fail_msg("'%s' was taken", cases[i]);
        }
}

static void prefixes_end_at_segments(void **state) {
        static const struct {
                const char *prefix, *path;
                bool strict, lenient;
        } cases[] = {
                { "/", "/", true, true },          { "/", "/a", true, true },
                { "/a", "/a", true, true },        { "/a", "/a/b", true, true },
                { "/a", "/ab", false, false },     { "/a", "/A", false, false },
                { "/a", "/a;x", false, true },     { "/a", "/a%2fb", false, true },
                { "/a/", "/a", false, false },     { "/a/", "/a/", true, true },
                { "/a/", "/a/b%2Fc", true, true }, { "/a/b", "/a;x/b", false, true },
                { "/a/b", "/a%2Fb", false, true }, { "/a%2Fb", "/a%2fb/c", true, true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct net_path p;

                assert_int_equal(net_path_read(cases[i].path, &p), 0);
                if (net_path_below(cases[i].prefix, &p, true) != cases[i].strict ||
                    net_path_below(cases[i].prefix, &p, false) != cases[i].lenient)
                        fail_msg("%s %s", cases[i].prefix, cases[i].path);
        }
}

/* Only the beginning is kept, but the whole path is looked at. */
static void long_paths_are_read_to_the_end(void **state) {
        char text[20000];
        struct net_path p;

        (void) state;
        memset(text, 'a', sizeof(text));
        memcpy(text, "/x/", 3);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(net_path_read(text, &p), 0);
        assert_int_equal(p.n, sizeof(text) - 1);
        assert_int_equal(strlen(p.kept), POLICY_NET_PATH);
        assert_true(net_path_below("/x/", &p, true));
        memcpy(text + sizeof(text) - 4, "/..", 3);
        assert_int_equal(net_path_read(text, &p), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(paths_have_one_spelling),
                cmocka_unit_test(ambiguous_paths_are_refused),
                cmocka_unit_test(prefixes_end_at_segments),
                cmocka_unit_test(long_paths_are_read_to_the_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
