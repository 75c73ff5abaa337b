/* test_json.c - JSON text in and out, and the builder. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"

static void parses(const char *text) {
        CLEANUP(json_freep) struct json *j = NULL;
        struct err err = { 0 };

        if (json_parse("t", text, strlen(text), &j, &err) < 0)
                fail_msg("%s: %s", text, err.msg);
}

static void refuses(const char *text, size_t n, const char *part) {
        struct json *j = NULL;
        struct err err = { 0 };

        assert_int_equal(json_parse("req", text, n, &j, &err), -EINVAL);
        assert_null(j);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, part))
                fail_msg("'%s' does not say '%s'", err.msg, part);
}

static void text_is(const struct json *j, const char *want) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        assert_int_equal(json_text(j, false, &text, &err), 0);
        assert_string_equal(text, want);
}

static void strict_json_is_enforced(void **state) {
        static const char *const bad[] = { "",
                                           "{",
                                           "{\"a\":1} x",
                                           "[1,]",
                                           "{\"a\":1,\"a\":2}",
                                           "[NaN]",
                                           "[01]",
                                           "\"s\"",
                                           "1",
                                           "[\"\\u0000\"]",
                                           "['a']",
                                           "[1]]",
                                           "[1e999]",
                                           "[+1]",
                                           "// c\n[]",
                                           "[\"\xff\"]",
                                           "[\"\xed\xa0\x80\"]" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                refuses(bad[i], strlen(bad[i]), "req:");
        refuses("[1]\0", 4, "req:");
        parses(" [1, -2, 3.5e3, \"\\ud83d\\ude00\", true, null] \n");
}

static void error_names_the_line_and_has_no_control_characters(void **state) {
        struct json *j = NULL;
        struct err err = { 0 };

        (void) state;
        refuses("[\n1,\n}", 6, "req:3: not JSON");
        assert_int_equal(json_parse("a\nb", "[\x1b]", 3, &j, &err), -EINVAL);
        for (const char *p = err.msg; *p; p++)
                assert_true((unsigned char) *p >= 0x20);
}

static void nest(char *dst, size_t depth) {
        memset(dst, '[', depth);
        memset(dst + depth, ']', depth);
        dst[2 * depth] = '\0';
}

static void depth_is_limited(void **state) {
        char text[4 * JSON_DEPTH];

        (void) state;
        nest(text, JSON_DEPTH);
        parses(text);
        nest(text, JSON_DEPTH + 1);
        refuses(text, strlen(text), "deeper than 16");
        parses("[\"[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\"]"); /* brackets in strings do not count */
}

static void node_count_is_limited_exactly(void **state) {
        AUTO_FREE char *text = malloc(3 * JSON_NODES + 3);
        char *p = text;

        (void) state;
        assert_non_null(text);
        *p++ = '[';
        for (int i = 0; i < JSON_NODES - 1; i++) { /* the list itself is a value as well */
                memcpy(p, i % 2 ? "[]," : "{},", 3);
                p += 3;
        }
        memcpy(p - 1, "]", 2);
        parses(text);
        memcpy(p - 1, ",1]", 4);
        refuses(text, strlen(text), "more than 20000");
}

static void canonical_text_sorts_and_pretty_text_keeps_order(void **state) {
        CLEANUP(json_freep) struct json *j = json_new_object();
        AUTO_FREE char *pretty = NULL;
        struct json *list = json_new_array();
        struct err err = { 0 };

        (void) state;
        json_set_str(j, "z", "ä");
        json_set_int(j, "b", INT64_MAX);
        json_set_real(j, "r", 12.3);
        json_set_bool(j, "a", true);
        json_set_str(j, "n", NULL);
        json_add_str(list, "x");
        json_add(list, json_new_object());
        json_set(j, "l", list);
        text_is(j, "{\"a\":true,\"b\":9223372036854775807,\"l\":[\"x\",{}],\"n\":null,\"r\":12.3,\"z\":\"ä\"}");
        assert_int_equal(json_text(j, true, &pretty, &err), 0);
        assert_memory_equal(pretty, "{\n  \"z\": ", 9);
}

static void a_missing_child_fails_the_whole(void **state) {
        CLEANUP(json_freep) struct json *j = json_new_object();
        struct json *list = json_new_array();
        struct err err = { 0 };
        char *text = NULL;

        (void) state;
        json_set_int(j, "a", 1);
        json_add(list, NULL);
        json_add_str(list, "later");
        json_set(j, "l", list);
        json_set_int(j, "b", 2);
        assert_int_equal(json_text(j, false, &text, &err), -ENOMEM);
        assert_null(text);
        assert_int_equal(json_text(NULL, false, &text, &err), -ENOMEM);
        json_set_int(NULL, "a", 1); /* no crash */
        json_set(NULL, "a", json_new_array());
}

static void nan_fails_the_whole(void **state) {
        CLEANUP(json_freep) struct json *j = json_new_object();
        struct err err = { 0 };
        char *text = NULL;

        (void) state;
        json_set_real(j, "a", (double) NAN);
        assert_int_equal(json_text(j, false, &text, &err), -ENOMEM);
}

static void a_string_that_is_not_utf8_is_kept_visible(void **state) {
        CLEANUP(json_freep) struct json *j = json_new_array();

        (void) state;
        json_add_str(j, "a\xff"
                        "b");
        json_add_str(j, "\xc0\xaf\xed\xa0\x80\xc3");
        json_add_str(j, "\xf4\x8f\xbf\xbf");
        text_is(j, "[\"a\xef\xbf\xbd"
                   "b\",\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"\xf4\x8f\xbf\xbf\"]");
        assert_true(json_is_utf8("\xe2\x82\xac"));
        assert_false(json_is_utf8("\xf4\x90\x80\x80"));
}

static void reading_another_type_gives_the_default(void **state) {
        CLEANUP(json_freep) struct json *j = NULL;
        static const char text[] = "{\"s\":\"x\",\"i\":7,\"b\":true,\"l\":[1,2],\"r\":1.5}";
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_parse("t", text, strlen(text), &j, &err), 0);
        assert_string_equal(json_get_str(j, "s"), "x");
        assert_null(json_get_str(j, "i"));
        assert_int_equal(json_get_int(j, "i", 3), 7);
        assert_int_equal(json_get_int(j, "r", 3), 3);
        assert_int_equal(json_get_int(j, "none", 3), 3);
        assert_true(json_get_bool(j, "b", false));
        assert_true(json_get_bool(j, "s", true));
        assert_int_equal(json_len(json_get(j, "l")), 2);
        assert_int_equal(json_len(j), 5);
        assert_non_null(json_at(json_get(j, "l"), 1));
        assert_null(json_at(json_get(j, "l"), 2));
        assert_null(json_at(j, 0));
        assert_null(json_get(json_get(j, "l"), "s"));
        assert_true(json_is_object(j) && json_is_array(json_get(j, "l")) && !json_is_array(NULL));
        assert_null(json_free(NULL));
}

static int collect(void *arg, const char *key, const struct json *value) {
        struct json *to = arg;

        json_add_str(to, key);
        json_add_str(to, json_str(value));
        return key[0] == 'c' ? 7 : 0;
}

static void members_are_walked_until_told_to_stop(void **state) {
        static const char text[] = "{\"b\":\"1\",\"a\":2,\"c\":\"3\",\"d\":\"4\"}";
        CLEANUP(json_freep) struct json *j = NULL, *seen = json_new_array();
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_parse("t", text, strlen(text), &j, &err), 0);
        assert_int_equal(json_each(j, collect, seen), 7);
        text_is(seen, "[\"b\",\"1\",\"a\",null,\"c\",\"3\"]");
        assert_int_equal(json_each(seen, collect, seen), 0);
        assert_int_equal(json_each(NULL, collect, seen), 0);
}

static void a_shared_value_outlives_its_first_owner(void **state) {
        struct json *first = json_new_object(), *second = json_new_array(), *third;

        (void) state;
        json_set_int(first, "n", 1);
        json_add(second, json_share(first));
        (void) json_free(first);
        text_is(second, "[{\"n\":1}]");
        third = json_clone(second);
        json_add_int(third, 2);
        text_is(third, "[{\"n\":1},2]");
        text_is(second, "[{\"n\":1}]");
        (void) json_free(third);
        (void) json_free(second);
        assert_null(json_share(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(strict_json_is_enforced),
                cmocka_unit_test(error_names_the_line_and_has_no_control_characters),
                cmocka_unit_test(depth_is_limited),
                cmocka_unit_test(node_count_is_limited_exactly),
                cmocka_unit_test(canonical_text_sorts_and_pretty_text_keeps_order),
                cmocka_unit_test(a_missing_child_fails_the_whole),
                cmocka_unit_test(nan_fails_the_whole),
                cmocka_unit_test(a_string_that_is_not_utf8_is_kept_visible),
                cmocka_unit_test(reading_another_type_gives_the_default),
                cmocka_unit_test(members_are_walked_until_told_to_stop),
                cmocka_unit_test(a_shared_value_outlives_its_first_owner),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
