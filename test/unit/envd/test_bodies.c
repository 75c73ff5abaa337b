/* test_bodies.c - multipart bodies and compressed ones, cut anywhere. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "envd/inflate.h"
#include "envd/multipart.h"

#define HEAD(name) "Content-Disposition: form-data; name=\"file\"; filename=\"" name "\"\r\n\r\n"

/* What became of a body, as text: name, data, and so on; NULL: refused. */
static char *read_parts(const char *body, size_t n, size_t step) {
        static struct multipart m;
        struct evbuffer *in = evbuffer_new(), *data = evbuffer_new();
        struct buf out = BUF_INIT(65536);
        struct err err = { 0 };
        char *text = NULL, piece[4096];
        int r = multipart_init(&m, "multipart/form-data; charset=utf-8; boundary=\"a b\"", &err);

        assert_int_equal(r, 0);
        for (size_t at = 0; r == 0 && at < n; at += step) {
                enum multipart_event ev = MULTIPART_DATA;

                (void) evbuffer_add(in, body + at, step < n - at ? step : n - at);
                while (r == 0 && ev != MULTIPART_MORE && ev != MULTIPART_END) {
                        r = multipart_next(&m, in, data, &ev, &err);
                        if (r == 0 && ev == MULTIPART_PART)
                                buf_addf(&out, "[%s|%s|%d:", m.name, m.filename, m.has_filename);
                        for (int k; r == 0 && (k = evbuffer_remove(data, piece, sizeof(piece))) > 0;)
                                buf_add(&out, piece, (size_t) k);
                        if (r == 0 && ev == MULTIPART_PART_END)
                                buf_addf(&out, "]");
                }
        }
        if (r == 0)
                r = multipart_finish(&m, in, &err);
        if (r == 0)
                text = strdup(buf_str(&out));
        buf_done(&out);
        evbuffer_free(in);
        evbuffer_free(data);
        return text;
}

static void parts_are_the_same_however_cut(void **state) {
        static const char body[] = "--a b\r\n" HEAD("x") "\r\n--a \r\n\r\n--a c\r\n--a b\r\nX-Other: 1\r\n" HEAD(
                "dir/\\\"y\\\\z") "\r\n--a b\r\ncontent-disposition:form-data;name=plain\r\n\r\ndata\r\n--a b--\r\n";

        (void) state;
        for (size_t step = 1; step < sizeof(body); step++) {
                char *text = read_parts(body, sizeof(body) - 1, step);

                assert_non_null(text);
                assert_string_equal(text, "[file|x|1:\r\n--a \r\n\r\n--a c][file|dir/\"y\\z|1:][plain||0:data]");
                free(text);
        }
}

static void odd_bodies_are_refused_however_cut(void **state) {
        static const char *const bodies[] = {
                "",
                "\r\n--a b--\r\n",
                "--a b",
                "--a b\r\n",
                "--a b\n" HEAD("x") "d\r\n--a b--",
                "--a b \r\n" HEAD("x") "d\r\n--a b--",
                "--a b\r\n" HEAD("x") "d\r\n--a b-",
                "--a b\r\n" HEAD("x") "d\r\n--a b--x",
                "--a b\r\n" HEAD("x") "d\r\n--a b--\r\n\r\n",
                "--a b\r\n" HEAD("x") "d\r\n--a bx",
                "--a b\r\nContent-Disposition: form-data\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"file\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition : form-data; name=\"file\"\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"f\";\r\n filename=\"x\"\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"f\"; name=\"g\"\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"f\"; size=1\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"f\"\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nd\r\n--a b--",
                "--a b\r\nContent-Disposition: form-data; name=\"\001\"\r\n\r\nd\r\n--a b--",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
                for (size_t step = 1; step <= strlen(bodies[i]) + 1; step++) {
                        char *text = read_parts(bodies[i], strlen(bodies[i]), step);

                        if (text)
                                fail_msg("accepted in steps of %zu: %s", step, bodies[i]);
                }
}

static void boundaries_are_checked(void **state) {
        static const char *const types[] = {
                "multipart/form-data",
                "multipart/form-data; boundary=",
                "multipart/form-data; boundary=\"x \"",
                "multipart/form-data; boundary=x; boundary=y",
                "multipart/form-data; boundary=\"x\ty\"",
                "multipart/form-data; boundary=12345678901234567890123456789012345678901234567890123456789012345678901",
                "multipart/form-datax; boundary=x",
                "multipart/mixed; boundary=x",
                "text/plain",
        };
        static struct multipart m;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (multipart_init(&m, types[i], &err) == 0)
                        fail_msg("accepted: %s", types[i]);
        assert_int_equal(multipart_init(&m, "Multipart/Form-Data;Boundary=----WebKitFormBoundary7MA4YWxk", &err), 0);
}

/* "hello hello hello hello\n", by gzip -9 -n */
static const char packed[] =
        "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9\x00\x00\x88\x59\x0b\x18\x00\x00\x00";

static int unpack(const char *bytes, size_t n, size_t step, char *dst, size_t cap) {
        struct evbuffer *in = evbuffer_new(), *out = evbuffer_new();
        struct inflate *z = NULL;
        struct err err = { 0 };
        int r = inflate_new(&z, &err), k = 0;

        for (size_t at = 0; r == 0 && at < n; at += step) {
                (void) evbuffer_add(in, bytes + at, step < n - at ? step : n - at);
                while ((k = inflate_some(z, in, out, &err)) > 0)
                        ;
                r = k < 0 ? k : 0;
        }
        if (r == 0)
                r = inflate_finish(z, &err);
        k = evbuffer_remove(out, dst, cap - 1);
        dst[k > 0 ? k : 0] = '\0';
        z = inflate_free(z);
        evbuffer_free(in);
        evbuffer_free(out);
        return r;
}

static void gzip_is_unpacked_however_cut(void **state) {
        const size_t n = sizeof(packed) - 1;
        char text[64], twice[2 * sizeof(packed)];

        (void) state;
        for (size_t step = 1; step <= n; step++) {
                assert_int_equal(unpack(packed, n, step, text, sizeof(text)), 0);
                assert_string_equal(text, "hello hello hello hello\n");
        }
        memcpy(twice, packed, n);
        memcpy(twice + n, packed, n);
        assert_int_equal(unpack(twice, 2 * n, 7, text, sizeof(text)), 0);
        assert_string_equal(text, "hello hello hello hello\nhello hello hello hello\n");
        for (size_t cut = 0; cut < n; cut++)
                assert_int_equal(unpack(packed, cut, cut + 1, text, sizeof(text)), -EPROTO);
        twice[n] = 'x';
        assert_int_equal(unpack(twice, n + 1, n + 1, text, sizeof(text)), -EPROTO);
        twice[n - 6] ^= 1; /* the checksum */
        assert_int_equal(unpack(twice, n, n, text, sizeof(text)), -EPROTO);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_are_the_same_however_cut),
                cmocka_unit_test(odd_bodies_are_refused_however_cut),
                cmocka_unit_test(boundaries_are_checked),
                cmocka_unit_test(gzip_is_unpacked_however_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
