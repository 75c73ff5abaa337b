/* test_mint.c - leaves are kept by name, make room, and are renewed in time. time() is the test's (see meson.build). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "tls/ossl.h"
#include "tls/tls.h"

static time_t skew;
static struct tls_ca *ca;

time_t __real_time(time_t *t);
time_t __wrap_time(time_t *t);

time_t __wrap_time(time_t *t) {
        time_t now = __real_time(NULL) + skew;

        if (t)
                *t = now;
        return now;
}

static int set_up(void **state) {
        struct err err = { 0 };

        (void) state;
        skew = 0;
        return tls_ca_new("Gabion test", 30, &ca, &err);
}

static int tear_down(void **state) {
        (void) state;
        ca = tls_ca_free(ca);
        return 0;
}

/* The certificate that a connection would show. The caller owns it. */
static X509 *leaf(struct tls_mint *m, const char *name) {
        CLEANUP(ossl_ssl_freep) SSL *ssl = NULL;
        struct err err = { 0 };
        X509 *cert;

        assert_int_equal(ossl_server(m, name, &ssl, &err), 0);
        cert = SSL_get_certificate(ssl);
        assert_int_equal(X509_up_ref(cert), 1);
        return cert;
}

static void names_keep_their_leaf(void **state) {
        CLEANUP(tls_mint_freep) struct tls_mint *m = NULL;
        CLEANUP(ossl_x509_freep) X509 *a = NULL, *again = NULL, *b = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_mint_new(ca, 4, &m, &err), 0);
        a = leaf(m, "a.example");
        again = leaf(m, "a.example");
        b = leaf(m, "b.example");
        assert_ptr_equal(a, again);
        assert_ptr_not_equal(a, b);
        assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(a), X509_get0_pubkey(b)), 1); /* one key for all */
}

static void the_one_used_longest_ago_makes_room(void **state) {
        CLEANUP(tls_mint_freep) struct tls_mint *m = NULL;
        CLEANUP(ossl_x509_freep) X509 *a = NULL, *b = NULL, *c = NULL, *a2 = NULL, *a3 = NULL, *b2 = NULL;
        CLEANUP(ossl_ssl_freep) SSL *under_way = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_mint_new(ca, 2, &m, &err), 0);
        a = leaf(m, "a.example");
        b = leaf(m, "b.example");
        assert_int_equal(ossl_server(m, "b.example", &under_way, &err), 0);
        a2 = leaf(m, "a.example"); /* now b is older */
        c = leaf(m, "c.example");
        a3 = leaf(m, "a.example");
        b2 = leaf(m, "b.example");
        assert_ptr_equal(a, a2);
        assert_ptr_equal(a, a3);
        assert_ptr_not_equal(b, b2);
        assert_ptr_equal(SSL_get_certificate(under_way), b); /* connections keep what they have */
}

static void leaves_are_renewed_after_a_day_or_when_the_clock_went_back(void **state) {
        CLEANUP(tls_mint_freep) struct tls_mint *m = NULL;
        CLEANUP(ossl_x509_freep) X509 *a = NULL, *hours = NULL, *day = NULL, *back = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_mint_new(ca, 2, &m, &err), 0);
        a = leaf(m, "a.example");
        skew = 23 * 3600;
        hours = leaf(m, "a.example");
        skew = 25 * 3600;
        day = leaf(m, "a.example");
        skew = 0;
        back = leaf(m, "a.example");
        assert_ptr_equal(a, hours);
        assert_ptr_not_equal(a, day);
        assert_ptr_not_equal(day, back);
}

static void names_that_are_no_host_names_cost_no_leaf(void **state) {
        CLEANUP(tls_mint_freep) struct tls_mint *m = NULL;
        CLEANUP(ossl_x509_freep) X509 *a = NULL, *again = NULL;
        struct err err = { 0 };
        SSL *ssl = NULL;

        (void) state;
        assert_int_equal(tls_mint_new(ca, 1, &m, &err), 0);
        a = leaf(m, "a.example");
        assert_int_equal(ossl_server(m, "*.example", &ssl, &err), -EINVAL);
        again = leaf(m, "a.example");
        assert_ptr_equal(a, again);
}

/* Not a benchmark: minting happens in the event loop, so a mistake of two orders must not pass. */
static void a_leaf_is_quick(void **state) {
        enum { ROUNDS = 50 };
        CLEANUP(tls_mint_freep) struct tls_mint *m = NULL;
        struct err err = { 0 };
        uint64_t start, ns;

        (void) state;
        assert_int_equal(tls_mint_new(ca, 1, &m, &err), 0);
        start = clock_mono_ns();
        for (int i = 0; i < ROUNDS; i++)
                X509_free(leaf(m, i % 2 ? "a.example" : "b.example"));
        ns = (clock_mono_ns() - start) / ROUNDS;
        print_message("a leaf: %llu ns\n", (unsigned long long) ns);
        assert_true(ns < 50000000);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                CASE(names_keep_their_leaf),
                CASE(the_one_used_longest_ago_makes_room),
                CASE(leaves_are_renewed_after_a_day_or_when_the_clock_went_back),
                CASE(names_that_are_no_host_names_cost_no_leaf),
                CASE(a_leaf_is_quick),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
