/* client.c - TLS towards the world outside: whom we trust there, and how we look at names. */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "ossl.h"
#include "tls/tls.h"

struct tls_client {
        SSL_CTX *ctx;
};

/* Every certificate of the text; at least one, or it was not what the operator meant. */
static int roots_add(SSL_CTX *ctx, const char *pem) {
        CLEANUP(ossl_bio_freep) BIO *bio = BIO_new_mem_buf(pem, -1);
        unsigned n = 0;

        for (; bio; n++) {
                CLEANUP(ossl_x509_freep) X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

                if (!cert && n > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
                        ERR_clear_error();
                        return 0;
                }
                if (!cert || X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert) != 1)
                        break;
        }
        return -EBADMSG;
}

int tls_client_new(const char *ca_file, const char *extra_pem, struct tls_client **ret, struct err *err) {
        static const unsigned char alpn[] = "\x08http/1.1";
        CLEANUP(tls_client_freep) struct tls_client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        r = ossl_ctx_new(TLS_client_method(), &c->ctx, err);
        if (r < 0)
                return r;
        if (ca_file ? SSL_CTX_load_verify_file(c->ctx, ca_file) != 1 : SSL_CTX_set_default_verify_paths(c->ctx) != 1) {
                r = ossl_err(err, -EINVAL, ca_file ? ca_file : "system CA store");
                err->kind = ERR_INVALID;
                return r;
        }
        if (extra_pem && roots_add(c->ctx, extra_pem) < 0) {
                r = ossl_err(err, -EINVAL, "extra CA certificates");
                err->kind = ERR_INVALID;
                return r;
        }
        SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
        if (SSL_CTX_set_alpn_protos(c->ctx, alpn, sizeof(alpn) - 1) != 0) /* 0 is success, here only */
                return ossl_err(err, -EIO, "TLS context");
        *ret = TAKE_PTR(c);
        return 0;
}

struct tls_client *tls_client_free(struct tls_client *c) {
        if (c)
                SSL_CTX_free(c->ctx);
        free(c);
        return NULL;
}

void tls_client_freep(struct tls_client **c) {
        *c = tls_client_free(*c);
}

int ossl_client(struct tls_client *c, const char *name, SSL **ret, struct err *err) {
        CLEANUP(ossl_ssl_freep) SSL *ssl = NULL;
        char canonical[HOST_NAME];

        /* An empty name would switch the check of names off. */
        if (host_canonical(name, strlen(name), canonical) < 0 || !str_eq(name, canonical))
                return err_set(err, -EINVAL, ERR_INVALID, "TLS: '%.100s' is not a canonical host name", name);
        ssl = SSL_new(c->ctx);
        if (!ssl || SSL_set_tlsext_host_name(ssl, canonical) != 1 || SSL_set1_host(ssl, canonical) != 1)
                return ossl_err(err, -ENOMEM, "TLS");
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        *ret = TAKE_PTR(ssl);
        return 0;
}
