/* test_hello.c - the name in a ClientHello, however it is cut up, and everything that must not pass for one. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "hello.h"
#include "tls/tls.h"

static struct tls_inspector *inspector;
static uint8_t bytes[512 * 1024];
static struct hello hello;

static int set_up(void **state) {
        struct err err = { 0 };

        (void) state;
        return tls_inspector_new(&inspector, &err);
}

static int tear_down(void **state) {
        (void) state;
        inspector = tls_inspector_free(inspector);
        return 0;
}

/* All at once, from memory of exactly that size. */
static enum tls_look look(const uint8_t *p, size_t n, struct tls_hello *ret) {
        CLEANUP(tls_peek_freep) struct tls_peek *k = NULL;
        AUTO_FREE uint8_t *copy = malloc(n > 0 ? n : 1);
        struct err err = { 0 };
        enum tls_look r;

        assert_non_null(copy);
        memcpy(copy, p, n);
        memset(ret, 0, sizeof(*ret));
        assert_int_equal(tls_peek_new(inspector, &k, &err), 0);
        r = tls_peek_look(k, copy, n, ret, &err);
        assert_int_equal(r == TLS_REFUSED || r == TLS_NOT_TLS, err.code != 0);
        assert_memory_equal(copy, p, n); /* nothing was consumed */
        return r;
}

static enum tls_look look_hello(struct tls_hello *ret) {
        return look(bytes, hello_records(&hello, 16384, bytes), ret);
}

/* What OpenSSL's client sends first. */
static size_t client_hello(const char *name, int max_version) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        BIO *out = BIO_new(BIO_s_mem());
        SSL *ssl;
        long n;
        char *p = NULL;

        assert_non_null(ctx);
        assert_int_equal(SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION), 1);
        assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0"), 1);
        ssl = SSL_new(ctx);
        if (name)
                assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
        assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *) "\2h2\10http/1.1", 12), 0);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
        (void) SSL_connect(ssl);
        n = BIO_get_mem_data(out, &p);
        memcpy(bytes, p, (size_t) n);
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        return (size_t) n;
}

static void a_real_client(void **state) {
        struct tls_hello h;
        size_t n = client_hello("WWW.Example.com", TLS1_3_VERSION);

        (void) state;
        assert_int_equal(look(bytes, n, &h), TLS_HELLO);
        assert_string_equal(h.name, "www.example.com");
        assert_false(h.ech);
        assert_int_equal(h.version_max, 0x0304);
        assert_int_equal(h.n_alpn, 2);
        assert_string_equal(h.alpn[0], "h2");
        assert_string_equal(h.alpn[1], "http/1.1");
}

static void old_clients_are_understood(void **state) {
        static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION };
        struct tls_hello h;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                size_t n = client_hello("old.example", versions[i]);

                assert_int_equal(look(bytes, n, &h), TLS_HELLO);
                assert_string_equal(h.name, "old.example");
                assert_int_equal(h.version_max, versions[i]);
        }
        hello_start_old(&hello, 0x0301); /* no extensions at all */
        assert_int_equal(look_hello(&h), TLS_HELLO);
        assert_string_equal(h.name, "");
        assert_int_equal(h.version_max, 0x0301);
}

static void every_byte_boundary(void **state) {
        CLEANUP(tls_peek_freep) struct tls_peek *k = NULL;
        struct tls_hello h = { 0 };
        struct err err = { 0 };
        size_t n = client_hello("a.example", TLS1_3_VERSION);

        (void) state;
        assert_int_equal(tls_peek_new(inspector, &k, &err), 0);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(tls_peek_look(k, bytes, i, &h, &err), TLS_MORE); /* byte after byte */
                assert_int_equal(look(bytes, i, &h), TLS_MORE);                   /* and cut there */
        }
        assert_int_equal(tls_peek_look(k, bytes, n, &h, &err), TLS_HELLO);
        assert_string_equal(h.name, "a.example");
        for (size_t cut = 1; cut < n; cut++) {
                struct tls_peek *two = NULL;

                assert_int_equal(tls_peek_new(inspector, &two, &err), 0);
                assert_int_equal(tls_peek_look(two, bytes, cut, &h, &err), TLS_MORE);
                assert_int_equal(tls_peek_look(two, bytes, n, &h, &err), TLS_HELLO);
                tls_peek_free(two);
        }
}

static void every_size_of_records(void **state) {
        static const size_t chunks[] = { 1, 2, 3, 4, 5, 7, 64, 100 };
        struct tls_hello h;

        (void) state;
        hello_start(&hello);
        hello_name(&hello, "split.example", 13);
        for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
                size_t n = hello_records(&hello, chunks[i], bytes);

                assert_int_equal(look(bytes, n, &h), TLS_HELLO);
                assert_string_equal(h.name, "split.example");
                assert_int_equal(look(bytes, n - 1, &h), TLS_MORE);
        }
}

static void bytes_behind_the_hello_do_not_matter(void **state) {
        struct tls_hello h;
        size_t n = client_hello("a.example", TLS1_3_VERSION);

        (void) state;
        memset(bytes + n, 0xff, 100000);
        assert_int_equal(look(bytes, n + 100000, &h), TLS_HELLO);
        assert_string_equal(h.name, "a.example");
}

static void the_answer_stays(void **state) {
        CLEANUP(tls_peek_freep) struct tls_peek *k = NULL, *bad = NULL;
        struct tls_hello h = { 0 };
        struct err err = { 0 };
        size_t n = client_hello("a.example", TLS1_3_VERSION);

        (void) state;
        assert_int_equal(tls_peek_new(inspector, &k, &err), 0);
        for (int i = 0; i < 3; i++) {
                memset(&h, 0, sizeof(h));
                assert_int_equal(tls_peek_look(k, bytes, n + (size_t) i, &h, &err), TLS_HELLO);
                assert_string_equal(h.name, "a.example");
        }
        assert_int_equal(tls_peek_new(inspector, &bad, &err), 0);
        for (int i = 0; i < 3; i++) {
                memset(&err, 0, sizeof(err));
                assert_int_equal(tls_peek_look(bad, "SSH-2.0-OpenSSH\r\n", 17, &h, &err), TLS_NOT_TLS);
                assert_int_equal(err.code, -EPROTO);
        }
}

static void grease_is_ignored(void **state) {
        struct tls_hello h;

        (void) state;
        hello_start_old(&hello, 0x0303);
        hello_ext(&hello, 0x0a0a, "", 0);
        hello_name(&hello, "grease.example", 14);
        hello_ext(&hello, 43, "\x06\xfa\xfa\x03\x04\x03\x03", 7);
        hello_ext(&hello, 10, "\x00\x04\x2a\x2a\x00\x1d", 6);
        hello_ext(&hello, 13, "\x00\x02\x04\x03", 4);
        hello_ext(&hello, 16, "\x00\x0c\x02\x0a\x0a\x08http/1.1", 14);
        hello_ext(&hello, 0x1a1a, "\0", 1);
        assert_int_equal(look_hello(&h), TLS_HELLO);
        assert_string_equal(h.name, "grease.example");
        assert_int_equal(h.version_min, 0x0303);
        assert_int_equal(h.version_max, 0x0304);
        assert_int_equal(h.n_alpn, 1);
        assert_string_equal(h.alpn[0], "http/1.1");
}

static void ech_is_seen(void **state) {
        static const uint16_t types[] = { 0xfe0d, 0xffce };
        struct tls_hello h;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                hello_start(&hello);
                hello_name(&hello, "public.example", 14);
                hello_ext(&hello, types[i], "\0\0\1\0\1\1\0\0\0\0", 10);
                assert_int_equal(look_hello(&h), TLS_HELLO);
                assert_true(h.ech);
                assert_string_equal(h.name, "public.example");
        }
}

static void no_name_is_an_empty_name(void **state) {
        struct tls_hello h;
        size_t n = client_hello(NULL, TLS1_3_VERSION);

        (void) state;
        assert_int_equal(look(bytes, n, &h), TLS_HELLO);
        assert_string_equal(h.name, "");
}

static void odd_names_are_refused(void **state) {
        static const struct {
                const char *name;
                size_t n;
        } rows[] = {
                { "127.0.0.1", 9 },    { "::1", 3 },       { "[::1]", 5 }, { "a\0.evil.example", 15 },
                { "a b", 3 },          { "*.example", 9 }, { "", 0 },      { ".", 1 },
                { "a..b", 4 },         { "b\xc3\xbc", 3 }, { "1", 1 },     { "a.example:1", 11 },
                { "u@a.example", 11 },
        };
        struct tls_hello h;
        char longest[300];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                hello_start(&hello);
                hello_name(&hello, rows[i].name, rows[i].n);
                assert_int_equal(look_hello(&h), TLS_REFUSED);
        }
        memset(longest, 'a', sizeof(longest));
        hello_start(&hello);
        hello_name(&hello, longest, sizeof(longest));
        assert_int_equal(look_hello(&h), TLS_REFUSED);
        hello_start(&hello);
        hello_name(&hello, "A.Example.", 10);
        assert_int_equal(look_hello(&h), TLS_HELLO);
        assert_string_equal(h.name, "a.example");
}

static void several_names_are_refused(void **state) {
        struct tls_hello h;

        (void) state;
        hello_start(&hello); /* two entries of one list */
        hello_ext(&hello, 0, "\0\12\0\0\2aa\0\0\2bb", 12);
        assert_int_equal(look_hello(&h), TLS_REFUSED);
        hello_start(&hello); /* the extension twice */
        hello_name(&hello, "a.example", 9);
        hello_name(&hello, "b.example", 9);
        assert_int_equal(look_hello(&h), TLS_REFUSED);
        hello_start(&hello); /* bytes behind the list */
        hello_ext(&hello, 0, "\0\5\0\0\2aax", 8);
        assert_int_equal(look_hello(&h), TLS_REFUSED);
        hello_start(&hello); /* an entry of another type */
        hello_ext(&hello, 0, "\0\5\1\0\2aa", 7);
        assert_int_equal(look_hello(&h), TLS_REFUSED);
}

static void too_long_is_refused_at_the_limit(void **state) {
        static uint8_t padding[40000];
        struct tls_hello h;
        size_t n;

        (void) state;
        hello_start(&hello);
        hello_ext(&hello, 21, padding, sizeof(padding));
        hello_name(&hello, "late.example", 12);
        n = hello_records(&hello, 16384, bytes);
        assert_int_equal(look(bytes, TLS_HELLO_MAX - 1, &h), TLS_MORE);
        assert_int_equal(look(bytes, TLS_HELLO_MAX, &h), TLS_REFUSED);
        assert_int_equal(look(bytes, n, &h), TLS_REFUSED);
        hello_start(&hello);
        hello_ext(&hello, 21, padding, 30000);
        hello_name(&hello, "fits.example", 12);
        n = hello_records(&hello, 16384, bytes);
        assert_int_equal(look(bytes, n, &h), TLS_HELLO);
        assert_string_equal(h.name, "fits.example");
}

static void what_is_not_tls(void **state) {
        static const char *const rows[] = { "GET / HTTP/1.1\r\n\r\n",
                                            "SSH-2.0-OpenSSH_9.2\r\n",
                                            "\x80\x2e\x01\x00\x02",
                                            "\x15\x03\x01\x00\x02\x02\x28",
                                            "\x17\x03\x03",
                                            "\x16\x02",
                                            "E",
                                            "\xff" };
        struct tls_hello h;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(look((const uint8_t *) rows[i], strlen(rows[i]), &h), TLS_NOT_TLS);
        assert_int_equal(look((const uint8_t *) "", 0, &h), TLS_MORE);
        assert_int_equal(look((const uint8_t *) "\x16", 1, &h), TLS_MORE);
}

static void broken_handshakes_are_refused(void **state) {
        struct tls_hello h;
        size_t n = client_hello("a.example", TLS1_3_VERSION);

        (void) state;
        bytes[5] = 2; /* a ServerHello */
        assert_int_equal(look(bytes, n, &h), TLS_REFUSED);
        n = client_hello("a.example", TLS1_3_VERSION);
        bytes[3] = 0xff; /* a record of 64 KiB */
        assert_int_equal(look(bytes, n, &h), TLS_REFUSED);
        n = client_hello("a.example", TLS1_3_VERSION);
        bytes[43] = 33; /* a session id longer than allowed */
        assert_int_equal(look(bytes, n, &h), TLS_REFUSED);
        n = client_hello("a.example", TLS1_3_VERSION);
        bytes[6] = 0xff; /* a message of 16 MiB */
        assert_int_equal(look(bytes, n, &h), TLS_REFUSED);
        hello_start(&hello);
        hello.ext[3] = 200; /* an extension longer than all of them */
        assert_int_equal(look_hello(&h), TLS_REFUSED);
}

/* Thousands of clients that send the start of a record and wait must not get OpenSSL's buffers each. ASan's allocator
 * counts nothing here, so this one bites in the ordinary build. */
static void waiting_for_a_record_holds_little(void **state) {
        enum { CLIENTS = 100, EACH = 4096 };
        struct tls_peek *k[CLIENTS];
        struct tls_hello h;
        struct err err = { 0 };
        size_t n = client_hello("a.example", TLS1_3_VERSION), before = mallinfo2().uordblks;

        (void) state;
        for (int i = 0; i < CLIENTS; i++) {
                assert_int_equal(tls_peek_new(inspector, &k[i], &err), 0);
                assert_int_equal(tls_peek_look(k[i], bytes, n - 1, &h, &err), TLS_MORE);
        }
        assert_true(mallinfo2().uordblks - before < CLIENTS * EACH);
        for (int i = 0; i < CLIENTS; i++)
                assert_int_equal(tls_peek_look(k[i], bytes, n, &h, &err), TLS_HELLO);
        assert_true(mallinfo2().uordblks - before < CLIENTS * EACH); /* and the answer gives them back */
        for (int i = 0; i < CLIENTS; i++)
                tls_peek_free(k[i]);
}

/* Not a benchmark: a bound that only a mistake can break, as a context per hello would. */
static void a_hello_is_cheap(void **state) {
        enum { ROUNDS = 200 };
        struct tls_hello h;
        size_t n = client_hello("a.example", TLS1_3_VERSION);
        uint64_t start = clock_mono_ns(), ns;

        (void) state;
        for (int i = 0; i < ROUNDS; i++)
                assert_int_equal(look(bytes, n, &h), TLS_HELLO);
        ns = (clock_mono_ns() - start) / ROUNDS;
        print_message("a hello of %zu bytes: %llu ns\n", n, (unsigned long long) ns);
        assert_true(ns < 2000000);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_real_client),
                cmocka_unit_test(old_clients_are_understood),
                cmocka_unit_test(every_byte_boundary),
                cmocka_unit_test(every_size_of_records),
                cmocka_unit_test(bytes_behind_the_hello_do_not_matter),
                cmocka_unit_test(the_answer_stays),
                cmocka_unit_test(grease_is_ignored),
                cmocka_unit_test(ech_is_seen),
                cmocka_unit_test(no_name_is_an_empty_name),
                cmocka_unit_test(odd_names_are_refused),
                cmocka_unit_test(several_names_are_refused),
                cmocka_unit_test(too_long_is_refused_at_the_limit),
                cmocka_unit_test(what_is_not_tls),
                cmocka_unit_test(broken_handshakes_are_refused),
                cmocka_unit_test(waiting_for_a_record_holds_little),
                cmocka_unit_test(a_hello_is_cheap),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
