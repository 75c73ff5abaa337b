/*
 * mint.c - leaves on demand. All leaves of a mint share one key and one context, so a new name costs one signature; a
 * connection answers to the name in its leaf and to no other. A leaf is renewed daily, long before it ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "ossl.h"
#include "tls/tls.h"

enum { RENEW_S = 24 * 60 * 60 };

struct leaf {
        TAILQ_ENTRY(leaf) link;
        X509 *cert;
        time_t born;
        char name[];
};

struct tls_mint {
        const struct tls_ca *ca;
        EVP_PKEY *key;
        SSL_CTX *ctx;
        struct map *by_name;
        TAILQ_HEAD(, leaf) by_use; /* longest ago first */
        size_t max;
};

static void leaf_free(struct leaf *l) {
        X509_free(l->cert); /* connections under way hold their own reference */
        free(l);
}

static void leaf_drop(struct tls_mint *m, struct leaf *l) {
        (void) map_del(m->by_name, l->name, strlen(l->name));
        TAILQ_REMOVE(&m->by_use, l, link);
        leaf_free(l);
}

/* The client must name the host that the leaf is for. */
static int on_name(SSL *s, int *alert, void *arg) {
        const char *name = SSL_get_servername(s, TLSEXT_NAMETYPE_host_name);
        char canonical[HOST_NAME];

        (void) arg;
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        if (!name || host_canonical(name, strlen(name), canonical) < 0 ||
            X509_check_host(SSL_get_certificate(s), canonical, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) != 1)
                return SSL_TLSEXT_ERR_ALERT_FATAL;
        return SSL_TLSEXT_ERR_OK;
}

int tls_mint_new(const struct tls_ca *ca, size_t max_names, struct tls_mint **ret, struct err *err) {
        CLEANUP(tls_mint_freep) struct tls_mint *m = calloc(1, sizeof(*m));

        if (!m)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "leaves: out of memory");
        TAILQ_INIT(&m->by_use);
        m->ca = ca;
        m->max = max_names > 0 ? max_names : 1;
        if (map_new(m->max, &m->by_name) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "leaves: out of memory");
        m->key = EVP_EC_gen("P-256");
        if (!m->key)
                return ossl_err(err, -EIO, "leaf key");
        if (ossl_ctx_new(TLS_server_method(), &m->ctx, err) < 0)
                return err->code;
        (void) SSL_CTX_set_tlsext_servername_callback(m->ctx, on_name);
        ossl_http_only(m->ctx);
        *ret = TAKE_PTR(m);
        return 0;
}

struct tls_mint *tls_mint_free(struct tls_mint *m) {
        struct leaf *l;

        if (!m)
                return NULL;
        while ((l = TAILQ_FIRST(&m->by_use)))
                leaf_drop(m, l);
        map_free(m->by_name);
        EVP_PKEY_free(m->key);
        SSL_CTX_free(m->ctx);
        free(m);
        return NULL;
}

void tls_mint_freep(struct tls_mint **m) {
        *m = tls_mint_free(*m);
}

static int leaf_new(struct tls_mint *m, const char *name, struct leaf **ret, struct err *err) {
        size_t n = strlen(name);
        struct leaf *l = calloc(1, sizeof(*l) + n + 1);
        int r;

        if (!l)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "leaf: out of memory");
        memcpy(l->name, name, n + 1);
        l->born = time(NULL);
        r = ossl_leaf(m->ca, name, m->key, &l->cert, err);
        if (r == 0 && map_count(m->by_name) >= m->max)
                leaf_drop(m, TAILQ_FIRST(&m->by_use));
        if (r == 0 && map_put(m->by_name, l->name, n, l) < 0)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "leaf: out of memory");
        if (r < 0) {
                leaf_free(l);
                return r;
        }
        TAILQ_INSERT_TAIL(&m->by_use, l, link);
        *ret = l;
        return 0;
}

static int leaf_get(struct tls_mint *m, const char *name, struct leaf **ret, struct err *err) {
        struct leaf *l = map_get(m->by_name, name, strlen(name));
        time_t now = time(NULL);

        if (!l)
                return leaf_new(m, name, ret, err);
        if (now < l->born || now - l->born > RENEW_S) {
                leaf_drop(m, l);
                return leaf_new(m, name, ret, err);
        }
        TAILQ_REMOVE(&m->by_use, l, link);
        TAILQ_INSERT_TAIL(&m->by_use, l, link);
        *ret = l;
        return 0;
}

int ossl_server(struct tls_mint *m, const char *name, SSL **ret, struct err *err) {
        CLEANUP(ossl_ssl_freep) SSL *ssl = NULL;
        struct leaf *l = NULL;
        int r = leaf_get(m, name, &l, err);

        if (r < 0)
                return r;
        ssl = SSL_new(m->ctx);
        if (!ssl || SSL_use_certificate(ssl, l->cert) != 1 || SSL_use_PrivateKey(ssl, m->key) != 1)
                return ossl_err(err, -ENOMEM, "TLS");
        *ret = TAKE_PTR(ssl);
        return 0;
}
