/* test_ca.c - the local CA: what it says about itself, how it is kept, and what is refused when it is read again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "tls/ossl.h"
#include "tls/tls.h"

static char dir[64];
static int dir_fd = -1;

static int set_up(void **state) {
        (void) state;
        (void) snprintf(dir, sizeof(dir), "/tmp/gabion-ca.XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0;
}

static int tear_down(void **state) {
        (void) state;
        (void) unlinkat(dir_fd, "ca.key", 0);
        (void) unlinkat(dir_fd, "ca.pem", 0);
        (void) close(dir_fd);
        return rmdir(dir);
}

static struct tls_ca *new_ca(void) {
        struct tls_ca *ca = NULL;
        struct err err = { 0 };

        assert_int_equal(tls_ca_new("Gabion test", 30, &ca, &err), 0);
        return ca;
}

static X509 *cert_of(const char *pem) {
        BIO *bio = BIO_new_mem_buf(pem, -1);
        X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

        BIO_free(bio);
        assert_non_null(cert);
        return cert;
}

static double days_left(const ASN1_TIME *t) {
        int days = 0, seconds = 0;

        assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, t), 1);
        return days + seconds / 86400.0;
}

static void it_is_a_ca_for_leaves_only(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca();
        CLEANUP(ossl_x509_freep) X509 *cert = cert_of(tls_ca_pem(ca));

        (void) state;
        assert_int_equal(X509_check_ca(cert), 1);
        assert_int_equal(X509_get_pathlen(cert), 0);
        assert_int_equal(X509_get_key_usage(cert), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
        assert_int_equal(X509_verify(cert, X509_get0_pubkey(cert)), 1);
        assert_true(days_left(X509_get0_notAfter(cert)) > 29.9 && days_left(X509_get0_notAfter(cert)) < 30.1);
        assert_true(days_left(X509_get0_notBefore(cert)) < -0.9);
        assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(cert)), 256);
        assert_null(strstr(tls_ca_pem(ca), "PRIVATE"));
}

static void leaves_are_for_one_name_and_servers_only(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca();
        CLEANUP(ossl_x509_freep) X509 *root = cert_of(tls_ca_pem(ca)), *leaf = NULL, *other = NULL;
        CLEANUP(ossl_pkey_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
        struct err err = { 0 };

        (void) state;
        assert_int_equal(ossl_leaf(ca, "www.example.com", key, &leaf, &err), 0);
        assert_int_equal(X509_verify(leaf, X509_get0_pubkey(root)), 1);
        assert_int_equal(X509_check_issued(root, leaf), X509_V_OK);
        assert_int_equal(X509_check_host(leaf, "www.example.com", 0, 0, NULL), 1);
        assert_int_equal(X509_check_host(leaf, "example.com", 0, 0, NULL), 0);
        assert_int_equal(X509_check_host(leaf, "a.www.example.com", 0, 0, NULL), 0);
        assert_int_equal(X509_check_ca(leaf), 0);
        assert_int_equal(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
        assert_int_equal(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
        assert_true(days_left(X509_get0_notAfter(leaf)) < 7.1);
        assert_true(days_left(X509_get0_notBefore(leaf)) < -0.9);
        assert_int_equal(ossl_leaf(ca, "www.example.com", key, &other, &err), 0);
        assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(leaf), X509_get0_serialNumber(other)), 0);
}

static void names_that_are_no_host_names_get_no_leaf(void **state) {
        static const char *const bad[] = { "", "A.example", "a.example.", "127.0.0.1", "*.example", "a,DNS:b", "a\nb" };
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca();
        CLEANUP(ossl_pkey_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
        CLEANUP(ossl_x509_freep) X509 *leaf = NULL;
        struct err err = { 0 };
        char longest[254];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(ossl_leaf(ca, bad[i], key, &leaf, &err), -EINVAL);
        memset(longest, 'a', sizeof(longest));
        for (size_t i = 63; i < 253; i += 64)
                longest[i] = '.';
        longest[253] = '\0';
        assert_int_equal(ossl_leaf(ca, longest, key, &leaf, &err), 0);
        assert_int_equal(X509_check_host(leaf, longest, 0, 0, NULL), 1);
}

static void a_leaf_never_outlives_its_ca(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = NULL;
        CLEANUP(ossl_pkey_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
        CLEANUP(ossl_x509_freep) X509 *leaf = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_ca_new("short", 1, &ca, &err), 0);
        assert_int_equal(ossl_leaf(ca, "a.example", key, &leaf, &err), 0);
        assert_true(days_left(X509_get0_notAfter(leaf)) < 1.1);
}

static void it_is_kept_and_private(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca(), *again = NULL, *other = new_ca();
        struct err err = { 0 };
        struct stat st;

        (void) state;
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -ENOENT);
        assert_int_equal(tls_ca_save(ca, dir_fd, &err), 0);
        assert_int_equal(fstatat(dir_fd, "ca.key", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(fstatat(dir_fd, "ca.pem", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), 0);
        assert_string_equal(tls_ca_pem(again), tls_ca_pem(ca));
        assert_int_equal(tls_ca_save(other, dir_fd, &err), -EEXIST);
}

static void it_survives_as_text(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca(), *again = NULL, *other = new_ca();
        AUTO_FREE char *text = NULL, *other_text = NULL, *mixed = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_ca_text(ca, &text, &err), 0);
        assert_int_equal(tls_ca_from_text(text, &again, &err), 0);
        assert_string_equal(tls_ca_pem(again), tls_ca_pem(ca));
        assert_int_equal(tls_ca_text(other, &other_text, &err), 0);
        *strstr(other_text, "-----BEGIN CERTIFICATE") = '\0'; /* the key of one with the certificate of another */
        assert_true(asprintf(&mixed, "%s%s", other_text, tls_ca_pem(ca)) > 0);
        assert_int_equal(tls_ca_from_text(mixed, &other, &err), -EBADMSG);
        assert_int_equal(tls_ca_from_text("", &other, &err), -EBADMSG);
}

static void half_a_save_leaves_no_key(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca();
        struct err err = { 0 };
        int fd = openat(dir_fd, "ca.pem", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

        (void) state;
        assert_int_equal(close(fd), 0);
        assert_int_equal(tls_ca_save(ca, dir_fd, &err), -EEXIST);
        assert_int_equal(faccessat(dir_fd, "ca.key", F_OK, 0), -1);
}

static void a_key_that_others_may_read_is_refused(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca(), *again = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_ca_save(ca, dir_fd, &err), 0);
        assert_int_equal(fchmodat(dir_fd, "ca.key", 0640, 0), 0);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -EPERM);
        assert_int_equal(unlinkat(dir_fd, "ca.key", 0), 0);
        assert_int_equal(symlinkat("/etc/hostname", dir_fd, "ca.key"), 0);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -ELOOP);
}

static void files_that_do_not_belong_together_are_refused(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = new_ca(), *other = new_ca(), *again = NULL;
        struct err err = { 0 };
        int fd;

        (void) state;
        assert_int_equal(tls_ca_save(ca, dir_fd, &err), 0);
        assert_int_equal(fd_write_at(dir_fd, "ca.pem", tls_ca_pem(other)), 0);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -EBADMSG);
        fd = openat(dir_fd, "ca.pem", O_TRUNC | O_WRONLY | O_CLOEXEC);
        assert_int_equal(fd_write_all(fd, "nothing\n", 8), 0);
        (void) close(fd);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "ca.pem"));
}

static void a_ca_that_ends_soon_is_refused(void **state) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = NULL, *again = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_ca_new("short", 1, &ca, &err), 0);
        assert_int_equal(tls_ca_save(ca, dir_fd, &err), 0);
        assert_int_equal(tls_ca_load(dir_fd, &again, &err), -EKEYEXPIRED);
        assert_int_equal(tls_ca_new("short", 0, &ca, &err), -EINVAL);
        assert_int_equal(tls_ca_new("", 1, &ca, &err), -EINVAL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_a_ca_for_leaves_only),
                cmocka_unit_test(leaves_are_for_one_name_and_servers_only),
                cmocka_unit_test(names_that_are_no_host_names_get_no_leaf),
                cmocka_unit_test(a_leaf_never_outlives_its_ca),
                cmocka_unit_test(it_survives_as_text),
                CASE(it_is_kept_and_private),
                CASE(half_a_save_leaves_no_key),
                CASE(a_key_that_others_may_read_is_refused),
                CASE(files_that_do_not_belong_together_are_refused),
                CASE(a_ca_that_ends_soon_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
