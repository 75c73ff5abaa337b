/*
 * hello.c - whose name a ClientHello carries, found by OpenSSL itself.
 *
 * Each connection has a server object that reads the client's bytes from memory. It gets as far as the callback that
 * would choose a certificate, which is told the name, and is stopped there; it has no certificate, and what it writes
 * goes nowhere. So the parser is the one of a real server: repeated extensions, several names, NUL in a name and the
 * like are refused by it. We read only two short lists ourselves (ALPN, versions), for the log and for the reason.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "ossl.h"
#include "tls/tls.h"

enum { EXT_ALPN = 16, EXT_VERSIONS = 43, EXT_ECH = 0xfe0d, EXT_ESNI = 0xffce };
enum { RECORD_HANDSHAKE = 22, RECORD_MAJOR = 3 };

struct tls_inspector {
        SSL_CTX *ctx;
};

struct tls_peek {
        SSL *ssl;
        BIO *in; /* owned by ssl */
        size_t seen;
        bool named; /* OpenSSL has read all extensions */
        enum tls_look look;
        struct tls_hello hello;
        struct err err;
};

static bool extension(SSL *s, unsigned type, struct rd *ret) {
        const unsigned char *p = NULL;
        size_t n = 0;

        if (SSL_client_hello_get0_ext(s, type, &p, &n) != 1)
                return false;
        *ret = rd_from(p, n);
        return true;
}

static bool is_printable(const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (p[i] <= ' ' || p[i] > '~')
                        return false;
        return n > 0;
}

/* RFC 7301: a list of names, each behind its length. */
static void read_alpn(SSL *s, struct tls_hello *h) {
        struct rd r;

        if (!extension(s, EXT_ALPN, &r))
                return;
        (void) rd_u16(&r);
        while (!r.bad && r.left > 0 && h->n_alpn < TLS_ALPNS) {
                size_t n = rd_u8(&r);
                const char *name = rd_bytes(&r, n);

                if (name && n < TLS_ALPN_TEXT && is_printable(name, n)) {
                        memcpy(h->alpn[h->n_alpn], name, n);
                        h->alpn[h->n_alpn++][n] = '\0';
                }
        }
}

/* RFC 8446, 4.2.1: versions behind a length of one byte; without the extension the old field counts. */
static void read_versions(SSL *s, struct tls_hello *h) {
        struct rd r;

        h->version_min = h->version_max = (uint16_t) SSL_client_hello_get0_legacy_version(s);
        if (!extension(s, EXT_VERSIONS, &r))
                return;
        h->version_min = UINT16_MAX;
        h->version_max = 0;
        (void) rd_u8(&r);
        for (uint16_t v = rd_u16(&r); !r.bad; v = rd_u16(&r)) {
                if (v >> 8 != RECORD_MAJOR)
                        continue; /* grease, or a draft */
                h->version_min = v < h->version_min ? v : h->version_min;
                h->version_max = v > h->version_max ? v : h->version_max;
        }
}

static int on_hello(SSL *s, int *alert, void *arg) {
        struct tls_peek *k = SSL_get_app_data(s);
        struct rd r;

        (void) arg;
        *alert = SSL_AD_INTERNAL_ERROR; /* read only if we failed */
        k->hello.ech = extension(s, EXT_ECH, &r) || extension(s, EXT_ESNI, &r);
        read_alpn(s, &k->hello);
        read_versions(s, &k->hello);
        return SSL_CLIENT_HELLO_SUCCESS;
}

/* OpenSSL 3.0 forgets extensions that it does not know, unless somebody asks for them. */
static int want_extension(SSL_CTX *ctx, unsigned type) {
        return SSL_CTX_add_custom_ext(ctx, type, SSL_EXT_CLIENT_HELLO, NULL, NULL, NULL, NULL, NULL) == 1 ? 0 : -EIO;
}

static int on_name(SSL *s, int *alert, void *arg) {
        struct tls_peek *k = SSL_get_app_data(s);
        const char *name = SSL_get_servername(s, TLSEXT_NAMETYPE_host_name);

        (void) arg;
        k->named = true;
        k->look = TLS_HELLO;
        if (name && host_canonical(name, strlen(name), k->hello.name) < 0) {
                k->look = TLS_REFUSED;
                (void) err_set(&k->err, -EBADMSG, ERR_PEER, "ClientHello: the server name is not a host name");
        }
        *alert = SSL_AD_INTERNAL_ERROR;
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* we know enough */
}

int tls_inspector_new(struct tls_inspector **ret, struct err *err) {
        CLEANUP(tls_inspector_freep) struct tls_inspector *i = calloc(1, sizeof(*i));

        if (!i)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        if (ossl_ctx_new(TLS_server_method(), &i->ctx, err) < 0)
                return err->code;
        /* Old clients are understood, too: what becomes of them is not decided here. */
        if (SSL_CTX_set_min_proto_version(i->ctx, 0) != 1 || SSL_CTX_set_cipher_list(i->ctx, "ALL:@SECLEVEL=0") != 1 ||
            want_extension(i->ctx, EXT_ECH) < 0 || want_extension(i->ctx, EXT_ESNI) < 0)
                return ossl_err(err, -EIO, "TLS context");
        SSL_CTX_set_client_hello_cb(i->ctx, on_hello, NULL);
        (void) SSL_CTX_set_tlsext_servername_callback(i->ctx, on_name);
        *ret = TAKE_PTR(i);
        return 0;
}

struct tls_inspector *tls_inspector_free(struct tls_inspector *i) {
        if (i)
                SSL_CTX_free(i->ctx);
        free(i);
        return NULL;
}

void tls_inspector_freep(struct tls_inspector **i) {
        *i = tls_inspector_free(*i);
}

int tls_peek_new(struct tls_inspector *i, struct tls_peek **ret, struct err *err) {
        CLEANUP(tls_peek_freep) struct tls_peek *k = calloc(1, sizeof(*k));
        BIO *out;

        if (!k)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        k->ssl = SSL_new(i->ctx);
        k->in = k->ssl ? BIO_new(BIO_s_mem()) : NULL;
        out = k->in ? BIO_new(BIO_s_null()) : NULL;
        if (!out) {
                (void) BIO_free(k->in);
                return ossl_err(err, -ENOMEM, "TLS");
        }
        SSL_set_bio(k->ssl, k->in, out);
        SSL_set_app_data(k->ssl, k);
        SSL_set_accept_state(k->ssl);
        *ret = TAKE_PTR(k);
        return 0;
}

static enum tls_look refuse(struct tls_peek *k, const char *why) {
        (void) err_set(&k->err, -EBADMSG, ERR_PEER, "ClientHello: %s", why);
        return TLS_REFUSED;
}

/* Lets OpenSSL read what has come. */
static enum tls_look step(struct tls_peek *k) {
        unsigned long e;
        int r;

        ERR_clear_error();
        r = SSL_accept(k->ssl);
        if (k->named) {
                ERR_clear_error();
                return k->look;
        }
        if (SSL_get_error(k->ssl, r) == SSL_ERROR_WANT_READ)
                return k->seen < TLS_HELLO_MAX ? TLS_MORE : refuse(k, "too long");
        e = ERR_get_error();
        ERR_clear_error();
        return refuse(k, e != 0 ? ERR_reason_error_string(e) : "malformed");
}

enum tls_look tls_peek_look(struct tls_peek *k, const void *p, size_t n, struct tls_hello *ret, struct err *err) {
        const uint8_t *b = p;
        size_t fresh;

        if (k->look == TLS_MORE && ((n >= 1 && b[0] != RECORD_HANDSHAKE) || (n >= 2 && b[1] != RECORD_MAJOR))) {
                k->look = TLS_NOT_TLS;
                (void) err_set(&k->err, -EPROTO, ERR_PEER, "not TLS");
        }
        n = n < TLS_HELLO_MAX ? n : TLS_HELLO_MAX;
        fresh = n > k->seen ? n - k->seen : 0;
        if (k->look == TLS_MORE && fresh > 0) {
                if (BIO_write(k->in, b + k->seen, (int) fresh) != (int) fresh) {
                        k->look = refuse(k, "out of memory");
                } else {
                        k->seen = n;
                        k->look = step(k);
                }
        }
        if (k->look == TLS_HELLO)
                *ret = k->hello;
        else if (k->look != TLS_MORE)
                *err = k->err;
        return k->look;
}

struct tls_peek *tls_peek_free(struct tls_peek *k) {
        if (k)
                SSL_free(k->ssl);
        free(k);
        return NULL;
}

void tls_peek_freep(struct tls_peek **k) {
        *k = tls_peek_free(*k);
}
