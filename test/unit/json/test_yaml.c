/* test_yaml.c - YAML into the tree: the small schema, and everything that is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"

static void reads_as(const char *yaml, const char *want) {
        CLEANUP(json_freep) struct json *j = NULL;
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        if (json_parse_yaml("t", yaml, strlen(yaml), &j, NULL, &err) < 0)
                fail_msg("%s: %s", yaml, err.msg);
        assert_int_equal(json_text(j, false, &text, &err), 0);
        assert_string_equal(text, want);
}

static void refuses_bytes(const char *yaml, size_t n, const char *want) {
        struct json_lines *lines = NULL;
        struct json *j = NULL;
        struct err err = { 0 };

        assert_int_equal(json_parse_yaml("f.yaml", yaml, n, &j, &lines, &err), -EINVAL);
        assert_null(j);
        assert_null(lines);
        if (!strstr(err.msg, want))
                fail_msg("'%s' does not say '%s'", err.msg, want);
}

static void refuses(const char *yaml, const char *want) {
        refuses_bytes(yaml, strlen(yaml), want);
}

static void plain_scalars_follow_the_small_schema(void **state) {
        (void) state;
        reads_as("[null, ~, true, false]", "[null,null,true,false]");
        reads_as("a:\nb: ''", "{\"a\":null,\"b\":\"\"}");
        reads_as("[0, -7, 42, 9223372036854775807, 1.5, -0.25, 1e3, 2E-2]",
                 "[0,-7,42,9223372036854775807,1.5,-0.25,1000.0,0.02]");
        reads_as("[yes, no, on, off, True, NULL, Null, 010, 0x10, 0o7, "
                 "+1, .5, 1., 1_000, .inf, .nan, 1e, -, 12:30, 1.e2]",
                 "[\"yes\",\"no\",\"on\",\"off\",\"True\",\"NULL\",\"Null\",\"010\","
                 "\"0x10\",\"0o7\",\"+1\",\".5\",\"1.\","
                 "\"1_000\",\".inf\",\".nan\",\"1e\",\"-\",\"12:30\",\"1.e2\"]");
}

static void quoted_scalars_are_strings(void **state) {
        (void) state;
        reads_as("['1', \"true\", 'null', \"\\u00e4\"]", "[\"1\",\"true\",\"null\",\"ä\"]");
        reads_as("- |\n  1\n- >\n  true\n", "[\"1\\n\",\"true\\n\"]");
}

static void keys_are_text_whatever_they_look_like(void **state) {
        (void) state;
        reads_as("1: a\ntrue: b\n? c\n: d\n", "{\"1\":\"a\",\"c\":\"d\",\"true\":\"b\"}");
}

static void nested_containers_keep_their_order(void **state) {
        (void) state;
        reads_as("a: [ {b: 1, c: [2, {d: 3}]}, [] , {} ]\ne: 4",
                 "{\"a\":[{\"b\":1,\"c\":[2,{\"d\":3}]},[],{}],\"e\":4}");
}

static void what_json_cannot_say_is_refused(void **state) {
        (void) state;
        refuses("a: &x 1\nb: 2", "f.yaml:1: anchors are not allowed");
        refuses("a: &x [1]", "anchors are not allowed");
        refuses("a: 1\nb: *x", "f.yaml:2: aliases are not allowed");
        refuses("a: !!str 1", "f.yaml:1: tags are not allowed");
        refuses("a: ! x", "tags are not allowed");
        refuses("a: !x {b: c}", "tags are not allowed");
        refuses("%YAML 1.1\n---\na: 1", "directives are not allowed");
        refuses("%TAG ! !x\n---\na: 1", "directives are not allowed");
        refuses("a: 1\n---\nb: 2", "f.yaml:2: only one document");
        refuses("? [a]\n: 1", "f.yaml:1: a key must be plain text");
        refuses("? {a: b}\n: 1", "a key must be plain text");
        refuses("a: 1\nb: 2\na: 3", "f.yaml:3: key 'a' is there twice");
        refuses("a: 1\n'a': 3", "key 'a' is there twice");
        refuses("a: \"x\\0y\"", "f.yaml:1: a NUL character");
        refuses("\"x\\0y\": 1", "NUL character");
        refuses("a: 99999999999999999999", "f.yaml:1: number 99999999999999999999 is out of range");
        refuses("a: 1e999", "out of range");
}

static void what_is_no_document_is_refused(void **state) {
        (void) state;
        refuses("", "empty");
        refuses("# only a comment\n", "empty");
        refuses("text", "must be a mapping");
        refuses("a: 1\n b: 2", "f.yaml:2: not YAML");
        refuses("a: [1, 2", "not YAML");
        refuses("a: \t- x\n\tb", "not YAML");
        refuses("a: \xff\xfe", "f.yaml: not YAML");
        refuses("a: \xed\xa0\x80", "not YAML");
        refuses("a: \x1b", "not YAML");
        refuses_bytes("a: b\0c", 6, "not YAML");
        refuses_bytes("\xff\xfe"
                      "a\0:\0 \0001\0",
                      10, "not YAML"); /* UTF-16 */
}

static void depth_is_limited(void **state) {
        char text[4 * JSON_DEPTH] = "";

        (void) state;
        memset(text, '[', JSON_DEPTH);
        memset(text + JSON_DEPTH, ']', JSON_DEPTH);
        reads_as(text, text);
        memset(text, '[', JSON_DEPTH + 1);
        memset(text + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
        refuses(text, "nested deeper than 16");
}

static void node_count_is_limited_exactly(void **state) {
        struct buf b = BUF_INIT(1 << 20);
        struct json *j = NULL;
        struct err err = { 0 };

        (void) state;
        for (int i = 0; i < JSON_NODES - 1; i++)
                buf_addf(&b, "k%d: \n", i);
        assert_int_equal(json_parse_yaml("t", b.p, b.len, &j, NULL, &err), 0);
        assert_int_equal(json_len(j), JSON_NODES - 1);
        j = json_free(j);
        buf_addf(&b, "last: 1\n");
        refuses(b.p, "f.yaml:20000: more than 20000 values");
        buf_done(&b);
}

static void messages_have_no_control_characters(void **state) {
        struct json *j = NULL;
        struct err err = { 0 };
        static const char yaml[] = "\"\\e[2J\\u009b\": 1\n\"\\e[2J\\u009b\": 2\n";

        (void) state;
        assert_int_equal(json_parse_yaml("t", yaml, strlen(yaml), &j, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "t:2: key '?[2J?\?' is there twice");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(plain_scalars_follow_the_small_schema),
                cmocka_unit_test(quoted_scalars_are_strings),
                cmocka_unit_test(keys_are_text_whatever_they_look_like),
                cmocka_unit_test(nested_containers_keep_their_order),
                cmocka_unit_test(what_json_cannot_say_is_refused),
                cmocka_unit_test(what_is_no_document_is_refused),
                cmocka_unit_test(depth_is_limited),
                cmocka_unit_test(node_count_is_limited_exactly),
                cmocka_unit_test(messages_have_no_control_characters),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
