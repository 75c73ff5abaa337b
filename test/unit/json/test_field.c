/* test_field.c - field tables: types, ranges, unknown keys, and the place in every message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

struct inner {
        uint32_t memory;
        uint32_t io;
};

struct outer {
        char name[8];
        uint32_t count;
        uint64_t big;
        bool on;
        int color;
        struct inner inner;
        char text[8];
        int list[4];
        size_t n_list;
        int any;
};

static int decode_inner(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "memory",
                  .type = FIELD_U32,
                  .offset = offsetof(struct inner, memory),
                  .size = 100,
                  .min = 10 },
                { .key = "io", .type = FIELD_U32, .offset = offsetof(struct inner, io), .size = 100 },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

static int decode_text(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        if (field_text(value, at, sizeof(((struct outer *) 0)->text)) < 0)
                return field_error(ctx, err, "too long");
        return 0;
}

static int decode_element(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct outer *o = at;
        char text[8];

        if (field_text(value, text, sizeof(text)) < 0 || !str_eq(text, "ok"))
                return field_error(ctx, err, "must be ok");
        o->list[o->n_list] = (int) ctx->index;
        o->n_list++;
        return 0;
}

static int decode_any(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) ctx;
        (void) err;
        *(int *) at = json_is_array(value) ? 1 : 2;
        return 0;
}

static const char *const colors[] = { "red", "green", NULL };

#define AT(m) offsetof(struct outer, m)
static const struct field fields[] = {
        { .key = "name", .type = FIELD_STR, .offset = AT(name), .size = 8, .required = true },
        { .key = "count", .type = FIELD_U32, .offset = AT(count), .size = 4, .min = 2 },
        { .key = "big", .type = FIELD_U64, .offset = AT(big), .size = SIZE_MAX },
        { .key = "on", .type = FIELD_BOOL, .offset = AT(on) },
        { .key = "color", .type = FIELD_ENUM, .offset = AT(color), .names = colors },
        { .key = "inner", .type = FIELD_OBJECT, .offset = AT(inner), .decode = decode_inner },
        { .key = "text", .type = FIELD_TEXT, .offset = AT(text), .decode = decode_text },
        { .key = "list", .type = FIELD_LIST, .size = 4, .decode = decode_element },
        { .key = "any", .type = FIELD_ANY, .offset = AT(any), .decode = decode_any },
};
#undef AT

static int decode(const char *yaml, struct outer *o, struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        struct field_ctx ctx = { .what = "f.yaml" };

        if (json_parse_yaml("f.yaml", yaml, strlen(yaml), &doc, &lines, err) < 0)
                fail_msg("%s", err->msg);
        ctx.lines = lines;
        return field_decode(&ctx, doc, fields, ARRAY_SIZE(fields), o, err);
}

static void says(const char *yaml, const char *want) {
        struct outer o = { 0 };
        struct err err = { 0 };

        assert_int_equal(decode(yaml, &o, &err), -EINVAL);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.msg, want);
}

static void every_type_reaches_its_member(void **state) {
        struct outer o = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode("{name: abcdefg, count: 4, big: 9223372036854775807, on: true, color: green, "
                                "inner: {memory: 10, io: 0}, text: 0.1, list: [ok, ok], any: []}",
                                &o, &err),
                         0);
        assert_string_equal(o.name, "abcdefg");
        assert_int_equal(o.count, 4);
        assert_int_equal(o.big, INT64_MAX);
        assert_true(o.on);
        assert_int_equal(o.color, 1);
        assert_int_equal(o.inner.memory, 10);
        assert_string_equal(o.text, "0.1");
        assert_int_equal(o.n_list, 2);
        assert_int_equal(o.list[1], 1);
        assert_int_equal(o.any, 1);
}

static void wrong_types_and_ranges_are_refused(void **state) {
        (void) state;
        says("name: abcdefgh", "f.yaml:1: name: must be shorter than 8 bytes");
        says("name: 7", "f.yaml:1: name: must be a string; put it in quotes");
        says("name: null", "f.yaml:1: name: must be a string");
        says("count: 1", "f.yaml:1: count: must be between 2 and 4");
        says("count: 5", "f.yaml:1: count: must be between 2 and 4");
        says("count: -1", "f.yaml:1: count: must be between 2 and 4");
        says("count: 2.0", "f.yaml:1: count: must be a whole number");
        says("count: '2'", "f.yaml:1: count: must be a whole number");
        says("on: yes", "f.yaml:1: on: must be true or false");
        says("color: blue", "f.yaml:1: color: must be one of: red green");
        says("color: 1", "f.yaml:1: color: must be one of: red green");
        says("inner: 5", "f.yaml:1: inner: must be a mapping (key: value)");
        says("inner:", "f.yaml:1: inner: must be a mapping (key: value)");
        says("list: ok", "f.yaml:1: list: must be a list");
        says("list: [ok, ok, ok, ok, ok]", "f.yaml:1: list: must have at most 4 elements");
        says("text: true", "f.yaml:1: text: must be a string or a number");
        says("text: [1]", "f.yaml:1: text: must be a string or a number");
        says("text: 12345678", "f.yaml:1: text: too long");
        says("[1]", "f.yaml:1: must be a mapping (key: value)");
}

static void a_missing_key_is_reported_where_it_should_be(void **state) {
        (void) state;
        says("# comment\n\ncount: 3\n", "f.yaml:3: name: is required");
}

static void an_unknown_key_names_the_near_one_and_all(void **state) {
        (void) state;
        says("name: x\ninner:\n  io: 1\n  memroy: 2\n",
             "f.yaml:4: inner.memroy: unknown key; did you mean 'memory'? allowed: memory io");
        says("name: x\ninner: {ab: 1}\n", "f.yaml:2: inner.ab: unknown key; allowed: memory io");
        says("name: x\ninner: {memory_bytes: 1}\n", "f.yaml:2: inner.memory_bytes: unknown key; allowed: memory io");
}

static void lines_hold_for_values_that_are_one_node(void **state) {
        (void) state;
        /* true and null are the same node wherever they are written */
        says("any: true\non: true\nname: a\ncount: true\n", "f.yaml:4: count: must be a whole number");
        says("any:\n  - null\nlist:\n  - ok\n  - null\n", "f.yaml:5: list[1]: must be ok");
        says("any: [true, true]\nlist: [ok,\n\n true]", "f.yaml:4: list[1]: must be ok");
}

static void json_documents_have_paths_without_lines(void **state) {
        CLEANUP(json_freep) struct json *doc = NULL;
        static const char text[] = "{\"name\":\"a\",\"inner\":{\"io\":101}}";
        const struct field_ctx ctx = { .what = "request" };
        struct outer o = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_parse("request", text, strlen(text), &doc, &err), 0);
        assert_int_equal(field_decode(&ctx, doc, fields, ARRAY_SIZE(fields), &o, &err), -EINVAL);
        assert_string_equal(err.msg, "request: inner.io: must be between 0 and 100");
}

static void huge_keys_fit_the_message(void **state) {
        char yaml[1200], *p = yaml;
        struct outer o = { 0 };
        struct err err = { 0 };

        (void) state;
        memset(p, 'k', 1000);
        memcpy(p + 1000, ": 1\n", 5);
        assert_int_equal(decode(yaml, &o, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "unknown key; allowed: name count big"));
}

static void numbers_become_the_shortest_text(void **state) {
        static const char *const same[] = { "0.1", "0.3", "1.005", "2", "1024", "0.01", "-1", "123456.789", "1e+20" };
        char text[32];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
                CLEANUP(json_freep) struct json *j = NULL;
                char doc[40];
                struct err err = { 0 };

                (void) snprintf(doc, sizeof(doc), "[%s]", same[i]);
                assert_int_equal(json_parse("t", doc, strlen(doc), &j, &err), 0);
                assert_int_equal(field_text(json_at(j, 0), text, sizeof(text)), 0);
                assert_string_equal(text, same[i]);
                assert_int_equal(field_text(j, text, sizeof(text)), -EINVAL);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_type_reaches_its_member),
                cmocka_unit_test(wrong_types_and_ranges_are_refused),
                cmocka_unit_test(a_missing_key_is_reported_where_it_should_be),
                cmocka_unit_test(an_unknown_key_names_the_near_one_and_all),
                cmocka_unit_test(lines_hold_for_values_that_are_one_node),
                cmocka_unit_test(json_documents_have_paths_without_lines),
                cmocka_unit_test(huge_keys_fit_the_message),
                cmocka_unit_test(numbers_become_the_shortest_text),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
