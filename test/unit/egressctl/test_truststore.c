/* test_truststore.c - a Java key store, byte for byte; that Java reads it is in test/integration/test_egress_run.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "egressctl/truststore.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"

static int jks(const char *pem, struct buf *into) {
        struct err e = { 0 };
        int r = truststore_jks(pem, into, &e);

        if (r < 0)
                assert_non_null(strstr(e.msg, "certificates: number "));
        return r;
}

static void a_store_is_what_java_would_write(void **state) {
        /* The digest at the end is Python's hashlib over the same bytes. */
        static const char expected[] =
                "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2"
                "\0\0\0\2\0\3ca1\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\3\0\1\2"
                "\0\0\0\2\0\3ca2\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\1\xff"
                "\x15\xe5\xe7\x01\x70\xb5\x05\x7d\x46\x32\x13\x13\x6a\xa3\x5b\x1b\xc0\x89\x18\xb7";
        struct buf b = BUF_INIT(4096);

        (void) state;
        assert_int_equal(jks("# words\n" BEGIN "AA\r\nEC\n" END "more words\n" BEGIN "/w==\n" END, &b), 0);
        assert_int_equal(b.len, sizeof(expected) - 1);
        assert_memory_equal(b.p, expected, b.len);
        buf_done(&b);
}

static void what_is_no_certificate_is_refused(void **state) {
        static const char *const bad[] = {
                BEGIN END, BEGIN "AAEC\n", BEGIN "AA*C\n" END, BEGIN "A===\n" END, BEGIN "/w==AAEC\n" END,
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct buf b = BUF_INIT(4096);

                assert_int_equal(jks(bad[i], &b), -EINVAL);
                buf_done(&b);
        }
}

static void too_much_is_refused(void **state) {
        static char pem[2 * TRUSTSTORE_DER];
        struct buf b = BUF_INIT(sizeof(pem)), small = BUF_INIT(64);

        (void) state;
        memset(pem, 'A', sizeof(pem) - 1);
        memcpy(pem, BEGIN, strlen(BEGIN));
        memcpy(pem + sizeof(pem) - 1 - strlen(END), END, strlen(END));
        assert_int_equal(jks(pem, &b), -E2BIG);
        buf_done(&b);
        assert_int_equal(jks(BEGIN "AAEC\n" END BEGIN "AAEC\n" END BEGIN "AAEC\n" END, &small), 0);
        assert_true(small.bad);
        buf_done(&small);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_store_is_what_java_would_write),
                cmocka_unit_test(what_is_no_certificate_is_refused),
                cmocka_unit_test(too_much_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
