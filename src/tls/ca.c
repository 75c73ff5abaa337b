/* ca.c - the local CA: made, kept in two files of which only the owner may read the key, and signing leaves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "ossl.h"
#include "tls/tls.h"

enum { DAY_S = 24 * 60 * 60, LEAF_DAYS = 7, CA_DAYS_MAX = 3650, SERIAL_BYTES = 16, PEM_MAX = 16 * 1024 };
enum { BACKDATE_S = DAY_S }; /* clocks inside and outside differ, most of all after a resume */

struct tls_ca {
        EVP_PKEY *key;
        X509 *cert;
        char pem[PEM_MAX];
};

/* One extension, in the words of openssl's configuration files. Never given a value that was not checked. */
static int extend(X509 *cert, X509 *issuer, int nid, const char *value) {
        X509_EXTENSION *ext;
        X509V3_CTX ctx;
        int ok;

        X509V3_set_ctx_nodb(&ctx);
        X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
        ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        ok = ext && X509_add_ext(cert, ext, -1) == 1;
        X509_EXTENSION_free(ext);
        return ok ? 0 : -EIO;
}

static int set_serial(X509 *cert) {
        uint8_t bytes[SERIAL_BYTES];
        BIGNUM *bn;
        int ok;

        if (RAND_bytes(bytes, sizeof(bytes)) != 1)
                return -EIO;
        bytes[0] &= 0x7f; /* RFC 5280: positive */
        bn = BN_bin2bn(bytes, sizeof(bytes), NULL);
        ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
        BN_free(bn);
        return ok ? 0 : -EIO;
}

/* Version, serial, life, subject and key; the extensions are the caller's. */
static int cert_start(X509 *cert, const char *name, time_t end, EVP_PKEY *key) {
        X509_NAME *subject = X509_get_subject_name(cert);

        if (X509_set_version(cert, X509_VERSION_3) != 1 || set_serial(cert) < 0 ||
            !X509_gmtime_adj(X509_getm_notBefore(cert), -BACKDATE_S) || !ASN1_TIME_set(X509_getm_notAfter(cert), end) ||
            X509_set_pubkey(cert, key) != 1)
                return -EIO;
        return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const unsigned char *) name, -1, -1,
                                          0) == 1
                       ? 0
                       : -EIO;
}

/* The certificate as text, kept for trust stores. */
static int pem_keep(struct tls_ca *ca) {
        CLEANUP(ossl_bio_freep) BIO *bio = BIO_new(BIO_s_mem());
        char *p = NULL;
        long n;

        if (!bio || PEM_write_bio_X509(bio, ca->cert) != 1)
                return -EIO;
        n = BIO_get_mem_data(bio, &p);
        if (n <= 0 || n >= PEM_MAX)
                return -EIO;
        memcpy(ca->pem, p, (size_t) n);
        ca->pem[n] = '\0';
        return 0;
}

int tls_ca_new(const char *name, unsigned days, struct tls_ca **ret, struct err *err) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = calloc(1, sizeof(*ca));

        if (!ca)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "CA: out of memory");
        if (days == 0 || days > CA_DAYS_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "CA: days: 1 to %d", CA_DAYS_MAX);
        if (name[0] == '\0' || strlen(name) > 64)
                return err_set(err, -EINVAL, ERR_INVALID, "CA: name: 1 to 64 characters");
        ca->key = EVP_EC_gen("P-256");
        ca->cert = X509_new();
        if (!ca->key || !ca->cert || cert_start(ca->cert, name, time(NULL) + (time_t) days * DAY_S, ca->key) < 0 ||
            X509_set_issuer_name(ca->cert, X509_get_subject_name(ca->cert)) != 1 ||
            extend(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") < 0 ||
            extend(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,cRLSign") < 0 ||
            extend(ca->cert, ca->cert, NID_subject_key_identifier, "hash") < 0 ||
            X509_sign(ca->cert, ca->key, EVP_sha256()) == 0 || pem_keep(ca) < 0)
                return ossl_err(err, -EIO, "CA");
        *ret = TAKE_PTR(ca);
        return 0;
}

struct tls_ca *tls_ca_free(struct tls_ca *ca) {
        if (!ca)
                return NULL;
        EVP_PKEY_free(ca->key);
        X509_free(ca->cert);
        free(ca);
        return NULL;
}

void tls_ca_freep(struct tls_ca **ca) {
        *ca = tls_ca_free(*ca);
}

const char *tls_ca_pem(const struct tls_ca *ca) {
        return ca->pem;
}

static int file_write(int dir_fd, const char *name, unsigned mode, const void *p, size_t n) {
        AUTO_FD int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 ? -errno : 0;

        if (r < 0)
                return r;
        r = fd_write_all(fd, p, n);
        if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir_fd, name, 0);
        return r;
}

int tls_ca_save(const struct tls_ca *ca, int dir_fd, struct err *err) {
        CLEANUP(ossl_bio_freep) BIO *bio = BIO_new(BIO_s_secmem());
        char *p = NULL;
        long n;
        int r;

        if (!bio || PEM_write_bio_PrivateKey(bio, ca->key, NULL, NULL, 0, NULL, NULL) != 1)
                return ossl_err(err, -EIO, "CA");
        n = BIO_get_mem_data(bio, &p);
        r = file_write(dir_fd, "ca.key", 0600, p, n > 0 ? (size_t) n : 0);
        OPENSSL_cleanse(p, n > 0 ? (size_t) n : 0);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "ca.key: %s", strerror(-r));
        r = file_write(dir_fd, "ca.pem", 0644, ca->pem, strlen(ca->pem));
        if (r < 0) {
                (void) unlinkat(dir_fd, "ca.key", 0);
                return err_set(err, r, ERR_INTERNAL, "ca.pem: %s", strerror(-r));
        }
        return 0;
}

static int key_read(int dir_fd, char text[PEM_MAX], struct err *err) {
        AUTO_FD int fd = openat(dir_fd, "ca.key", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "ca.key: %s", strerror(errno));
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
                return err_set(err, -EPERM, ERR_DENIED, "ca.key: must be a file of your own with mode 0600");
        r = fd_read_upto(fd, text, PEM_MAX);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "ca.key: %s", strerror(-r)) : r;
}

static int load(struct tls_ca *ca, const char *key, int n_key, const char *cert, int n_cert, struct err *err) {
        CLEANUP(ossl_bio_freep) BIO *key_bio = BIO_new_mem_buf(key, n_key), *cert_bio = BIO_new_mem_buf(cert, n_cert);
        time_t soon = time(NULL) + DAY_S;

        /* The empty pass phrase keeps OpenSSL from asking the terminal for one. */
        ca->key = key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, NULL, (void *) "") : NULL;
        ca->cert = cert_bio ? PEM_read_bio_X509(cert_bio, NULL, NULL, NULL) : NULL;
        if (!ca->key)
                return ossl_err(err, -EBADMSG, "ca.key");
        if (!ca->cert)
                return ossl_err(err, -EBADMSG, "ca.pem");
        if (X509_check_private_key(ca->cert, ca->key) != 1 || X509_check_ca(ca->cert) != 1) {
                ERR_clear_error();
                return err_set(err, -EBADMSG, ERR_INVALID, "ca.pem: not a CA certificate of the key in ca.key");
        }
        if (X509_cmp_time(X509_get0_notAfter(ca->cert), &soon) <= 0)
                return err_set(err, -EKEYEXPIRED, ERR_INVALID, "ca.pem: ends within a day; make a new one");
        return pem_keep(ca) < 0 ? ossl_err(err, -EIO, "ca.pem") : 0;
}

int tls_ca_load(int dir_fd, struct tls_ca **ret, struct err *err) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = calloc(1, sizeof(*ca));
        char key[PEM_MAX], cert[PEM_MAX];
        int n_key, n_cert, r;

        if (!ca)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "CA: out of memory");
        n_cert = fd_read_at(dir_fd, "ca.pem", cert, sizeof(cert));
        if (n_cert < 0)
                return err_set(err, n_cert, ERR_INTERNAL, "ca.pem: %s", strerror(-n_cert));
        n_key = key_read(dir_fd, key, err);
        if (n_key < 0)
                return n_key;
        r = load(ca, key, n_key, cert, n_cert, err);
        OPENSSL_cleanse(key, sizeof(key));
        if (r < 0)
                return r;
        *ret = TAKE_PTR(ca);
        return 0;
}

int tls_ca_text(const struct tls_ca *ca, char **ret, struct err *err) {
        CLEANUP(ossl_bio_freep) BIO *bio = BIO_new(BIO_s_secmem());
        char *p = NULL;
        long n;

        if (!bio || PEM_write_bio_PrivateKey(bio, ca->key, NULL, NULL, 0, NULL, NULL) != 1 ||
            PEM_write_bio_X509(bio, ca->cert) != 1)
                return ossl_err(err, -EIO, "CA");
        n = BIO_get_mem_data(bio, &p);
        *ret = n > 0 ? strndup(p, (size_t) n) : NULL;
        OPENSSL_cleanse(p, n > 0 ? (size_t) n : 0);
        return *ret ? 0 : err_set(err, -ENOMEM, ERR_INTERNAL, "CA: out of memory");
}

int tls_ca_from_text(const char *text, struct tls_ca **ret, struct err *err) {
        CLEANUP(tls_ca_freep) struct tls_ca *ca = calloc(1, sizeof(*ca));
        int n = (int) strlen(text), r;

        if (!ca)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "CA: out of memory");
        r = load(ca, text, n, text, n, err);
        if (r == 0)
                *ret = TAKE_PTR(ca);
        return r;
}

int ossl_leaf(const struct tls_ca *ca, const char *name, EVP_PKEY *key, X509 **ret, struct err *err) {
        CLEANUP(ossl_x509_freep) X509 *cert = X509_new();
        time_t end = time(NULL) + (time_t) LEAF_DAYS * DAY_S;
        char san[4 + HOST_NAME], canonical[HOST_NAME];

        if (host_canonical(name, strlen(name), canonical) < 0 || !str_eq(name, canonical))
                return err_set(err, -EINVAL, ERR_INVALID, "leaf: '%.100s' is not a canonical host name", name);
        (void) snprintf(san, sizeof(san), "DNS:%s", canonical);
        /* A subject has room for 64; clients look at the alternative name alone. */
        if (!cert || cert_start(cert, strlen(name) <= 64 ? name : "gabion", end, key) < 0 ||
            (X509_cmp_time(X509_get0_notAfter(ca->cert), &end) < 0 &&
             X509_set1_notAfter(cert, X509_get0_notAfter(ca->cert)) != 1) ||
            X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) != 1 ||
            extend(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") < 0 ||
            extend(cert, ca->cert, NID_key_usage, "critical,digitalSignature") < 0 ||
            extend(cert, ca->cert, NID_ext_key_usage, "serverAuth") < 0 ||
            extend(cert, ca->cert, NID_subject_alt_name, san) < 0 ||
            extend(cert, ca->cert, NID_authority_key_identifier, "keyid:always") < 0 ||
            X509_sign(cert, ca->key, EVP_sha256()) == 0)
                return ossl_err(err, -EIO, "leaf");
        *ret = TAKE_PTR(cert);
        return 0;
}
