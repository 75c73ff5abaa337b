/* test_text.c - signatures, modes, times, ends, paths, ranges, codes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "envd/query.h"
#include "envd/rpc.h"
#include "envd/text.h"
#include "envd/transfer.h"

static void signature_is_e2bs(void **state) {
        char s[ENVD_SIGNATURE], with_end[ENVD_SIGNATURE];

        (void) state;
        text_signature(s, "hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", NULL);
        assert_string_equal(s, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
        text_signature(with_end, "hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", "1");
        assert_string_not_equal(s, with_end);
}

static void query_is_signed_by_its_token_only(void **state) {
        struct query q;

        (void) state;
        assert_int_equal(envd_query_read("path=hello.txt&username=user&signature="
                                         "v1_gUtH%2Fs9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E&utm=x",
                                         &q),
                         0);
        assert_true(envd_query_is_signed(&q, "read", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"));
        assert_false(envd_query_is_signed(&q, "write", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"));
        assert_false(envd_query_is_signed(&q, "read", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e1"));
        assert_false(envd_query_is_expired(&q, UINT64_MAX));
        assert_int_equal(envd_query_read("signature_expiration=100", &q), 0);
        assert_false(envd_query_is_expired(&q, 100));
        assert_true(envd_query_is_expired(&q, 101));
        assert_int_equal(envd_query_read("signature_expiration=never", &q), 0);
        assert_true(envd_query_is_expired(&q, 0));
        assert_int_equal(envd_query_read("path=a&path=b", &q), -EINVAL);
        assert_int_equal(envd_query_read("path=%00", &q), -EINVAL);
}

static void modes_are_gos(void **state) {
        static const struct {
                uint32_t mode;
                const char *text;
        } cases[] = {
                { S_IFREG | 0644, "-rw-r--r--" },
                { S_IFDIR | 0755, "drwxr-xr-x" },
                { S_IFLNK | 0777, "Lrwxrwxrwx" },
                { S_IFDIR | 01777, "dtrwxrwxrwx" },
                { S_IFREG | 04755, "urwxr-xr-x" },
                { S_IFREG | 06755, "ugrwxr-xr-x" },
                { S_IFIFO | 0600, "prw-------" },
                { S_IFSOCK | 0600, "Srw-------" },
                { S_IFCHR | 0666, "Dcrw-rw-rw-" },
                { S_IFBLK | 0660, "Drw-rw----" },
                { 0, "----------" },
                { UINT32_MAX, "ugtrwxrwxrwx" },
        };
        char text[ENVD_MODE];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                text_mode(text, cases[i].mode);
                assert_string_equal(text, cases[i].text);
        }
}

static void times_have_the_digits_they_need(void **state) {
        static const struct {
                int64_t s;
                uint32_t ns;
                const char *text;
        } cases[] = {
                { 0, 0, "1970-01-01T00:00:00Z" },
                { 1700000000, 120000000, "2023-11-14T22:13:20.120Z" },
                { 1700000000, 123456000, "2023-11-14T22:13:20.123456Z" },
                { 1700000000, 1, "2023-11-14T22:13:20.000000001Z" },
                { -1, 0, "1969-12-31T23:59:59Z" },
                { INT64_MAX, 0, "1970-01-01T00:00:00Z" },
                { INT64_MIN, 2000000000, "1970-01-01T00:00:00Z" },
        };
        char text[ENVD_TIME];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                text_time(text, cases[i].s, cases[i].ns);
                assert_string_equal(text, cases[i].text);
        }
}

static void ends_are_gos(void **state) {
        char text[ENVD_EXIT];

        (void) state;
        text_exit(text, false, 2);
        assert_string_equal(text, "exit status 2");
        text_exit(text, true, 9);
        assert_string_equal(text, "signal: killed");
        text_exit(text, true, 11);
        assert_string_equal(text, "signal: segmentation fault");
        text_exit(text, true, 40);
        assert_string_equal(text, "signal: signal 40");
}

static void paths_are_absolute_and_plain(void **state) {
        static const struct {
                const char *given, *path;
        } cases[] = {
                { "", "/home/u" },
                { "~", "/home/u" },
                { "~/a", "/home/u/a" },
                { "a//b/./c/", "/home/u/a/b/c" },
                { "..", "/home" },
                { "../../../..", "/" },
                { "/", "/" },
                { "/a/../../b", "/b" },
                { "/.../..a/a..", "/.../..a/a.." },
        };
        char path[32];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(text_path(path, sizeof(path), "/home/u", cases[i].given), 0);
                assert_string_equal(path, cases[i].path);
        }
        assert_int_equal(text_path(path, sizeof(path), "/home/u", "~other"), -EINVAL);
        assert_int_equal(text_path(path, sizeof(path), "/", "123456789012345678901234567890"), 0);
        assert_int_equal(text_path(path, sizeof(path), "/", "1234567890123456789012345678901"), -ENAMETOOLONG);
        assert_string_equal(text_name("/a/b"), "b");
        assert_string_equal(text_name("/"), "/");
}

static void secrets_are_compared_whole(void **state) {
        (void) state;
        assert_true(text_is_secret("abc", "abc"));
        assert_false(text_is_secret("ab", "abc"));
        assert_false(text_is_secret("abcd", "abc"));
        assert_false(text_is_secret("", "abc"));
}

static void ranges_lie_inside(void **state) {
        uint64_t at = 0, n = 0;

        (void) state;
        assert_int_equal(transfer_range("bytes=0-99", 10, &at, &n), 1);
        assert_int_equal(at, 0);
        assert_int_equal(n, 10);
        assert_int_equal(transfer_range("bytes=-1", 10, &at, &n), 1);
        assert_int_equal(at, 9);
        assert_int_equal(n, 1);
        assert_int_equal(transfer_range("bytes=9-", 10, &at, &n), 1);
        assert_int_equal(transfer_range("bytes=10-", 10, &at, &n), -ERANGE);
        assert_int_equal(transfer_range("bytes=-5", 0, &at, &n), -ERANGE);
        assert_int_equal(transfer_range("bytes=-", 10, &at, &n), 0);
        assert_int_equal(transfer_range("bytes=1-2,4-5", 10, &at, &n), 0);
        assert_int_equal(transfer_range("bytes=99999999999999999999-", 10, &at, &n), 0);
}

static void codes_have_connects_names(void **state) {
        (void) state;
        assert_string_equal(rpc_code_name(rpc_code_of(-ENOENT)), "not_found");
        assert_int_equal(rpc_code_status(rpc_code_of(-ENOENT)), 404);
        assert_string_equal(rpc_code_name(rpc_code_of(-EEXIST)), "already_exists");
        assert_string_equal(rpc_code_name(rpc_code_of(-4095)), "internal");
        for (int i = 0; i < RPC_CODES; i++)
                assert_true(rpc_code_name((enum rpc_code) i) && rpc_code_status((enum rpc_code) i) >= 400);
}

static ssize_t envelope(const char *bytes, size_t n) {
        struct evbuffer *b = evbuffer_new();
        ssize_t r;

        assert_int_equal(evbuffer_add(b, bytes, n), 0);
        r = rpc_envelope(b);
        evbuffer_free(b);
        return r;
}

static void envelopes_are_whole_plain_and_short(void **state) {
        (void) state;
        assert_int_equal(envelope("\0\0\0\0", 4), 0);
        assert_int_equal(envelope("\0\0\0\0\0", 5), 5);
        assert_int_equal(envelope("\0\0\0\0\2{", 6), 0);
        assert_int_equal(envelope("\0\0\0\0\2{}x", 8), 7);
        assert_int_equal(envelope("\1\0\0\0\2{}", 7), -EPROTO);
        assert_int_equal(envelope("\2\0\0\0\2{}", 7), -EPROTO);
        assert_int_equal(envelope("\0\xff\0\0\0", 5), -EMSGSIZE);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(signature_is_e2bs),
                cmocka_unit_test(query_is_signed_by_its_token_only),
                cmocka_unit_test(modes_are_gos),
                cmocka_unit_test(times_have_the_digits_they_need),
                cmocka_unit_test(ends_are_gos),
                cmocka_unit_test(paths_are_absolute_and_plain),
                cmocka_unit_test(secrets_are_compared_whole),
                cmocka_unit_test(ranges_lie_inside),
                cmocka_unit_test(codes_have_connects_names),
                cmocka_unit_test(envelopes_are_whole_plain_and_short),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
