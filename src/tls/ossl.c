/* ossl.c - see ossl.h. */
#include "ossl.h"

#include <errno.h>

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>
#include <openssl/err.h>

#include "base/err.h"
#include "base/own.h"

void ossl_ctx_freep(SSL_CTX **p) {
        SSL_CTX_free(*p);
        *p = NULL;
}

void ossl_ssl_freep(SSL **p) {
        SSL_free(*p);
        *p = NULL;
}

void ossl_x509_freep(X509 **p) {
        X509_free(*p);
        *p = NULL;
}

void ossl_pkey_freep(EVP_PKEY **p) {
        EVP_PKEY_free(*p);
        *p = NULL;
}

void ossl_bio_freep(BIO **p) {
        BIO_free_all(*p);
        *p = NULL;
}

int ossl_err(struct err *err, int code, const char *what) {
        unsigned long e = ERR_get_error();
        const char *reason = e != 0 ? ERR_reason_error_string(e) : NULL;

        ERR_clear_error();
        return err_set(err, code, code == -EIO || code == -ENOMEM ? ERR_INTERNAL : ERR_PEER, "%s: %s", what,
                       reason ? reason : "no reason given");
}

int ossl_ctx_new(const SSL_METHOD *method, SSL_CTX **ret, struct err *err) {
        CLEANUP(ossl_ctx_freep) SSL_CTX *ctx = SSL_CTX_new(method);

        if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
                return ossl_err(err, -EIO, "TLS context");
        SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
        /* The system's configuration may say otherwise; a cut must never look like an end. */
        SSL_CTX_clear_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        (void) SSL_CTX_set_num_tickets(ctx, 0);
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
        *ret = TAKE_PTR(ctx);
        return 0;
}

/* Clients that can do HTTP/1.1 get it; those that offer protocols without it hear that there is none. */
static int on_alpn(SSL *s, const unsigned char **out, unsigned char *n_out, const unsigned char *in, unsigned n_in,
                   void *arg) {
        static const unsigned char ours[] = "\x08http/1.1";
        unsigned char *chosen = NULL;

        (void) s;
        (void) arg;
        if (SSL_select_next_proto(&chosen, n_out, ours, sizeof(ours) - 1, in, n_in) != OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_ALERT_FATAL;
        *out = chosen;
        return SSL_TLSEXT_ERR_OK;
}

void ossl_http_only(SSL_CTX *ctx) {
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
}

static void on_room(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg) {
        struct bufferevent *bev = arg;

        (void) input;
        if (info->n_deleted > 0 && SSL_pending(bufferevent_openssl_get_ssl(bev)) > 0)
                event_active(&bev->ev_read, EV_READ, 0);
}

int ossl_read_on(struct bufferevent *bev) {
        return evbuffer_add_cb(bufferevent_get_input(bev), on_room, bev) ? 0 : -ENOMEM;
}
