/* server.c - TLS for a server of our own, under a certificate that the operator has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>

#include "base/err.h"
#include "base/own.h"
#include "ossl.h"
#include "tls/tls.h"

struct tls_server {
        SSL_CTX *ctx;
};

static int check_key_file(const char *path, struct err *err) {
        struct stat st;

        if (stat(path, &st) < 0)
                return err_set(err, -errno, ERR_INVALID, "certificate-key %.150s: %s", path, strerror(errno));
        if (st.st_mode & S_IRWXO)
                return err_set(err, -EPERM, ERR_INVALID, "certificate-key %.150s: everybody may use it; chmod 600",
                               path);
        return 0;
}

int tls_server_new(const char *certificate, const char *key, struct tls_server **ret, struct err *err) {
        struct tls_server *s = NULL;
        CLEANUP(ossl_ctx_freep) SSL_CTX *ctx = NULL;
        int r = check_key_file(key, err);

        if (r == 0)
                r = ossl_ctx_new(TLS_server_method(), &ctx, err);
        if (r < 0)
                return r;
        ossl_http_only(ctx);
        if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1)
                return ossl_err(err, -EINVAL, "certificate: no chain in PEM can be read");
        if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1)
                return ossl_err(err, -EINVAL, "certificate-key: no key of this certificate can be read");
        s = calloc(1, sizeof(*s));
        if (!s)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        s->ctx = TAKE_PTR(ctx);
        *ret = s;
        return 0;
}

struct tls_server *tls_server_free(struct tls_server *s) {
        if (s)
                SSL_CTX_free(s->ctx);
        free(s);
        return NULL;
}

struct bufferevent *tls_server_open(struct tls_server *s, struct event_base *base, int fd) {
        SSL *ssl = SSL_new(s->ctx);
        struct bufferevent *bev = NULL;

        if (ssl) /* which is taken, also on failure */
                bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                     BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        if (!bev) {
                ERR_clear_error();
                (void) close(fd);
                return NULL;
        }
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 0);
        if (ossl_read_on(bev) < 0) {
                bufferevent_free(bev);
                return NULL;
        }
        return bev;
}

void tls_server_bye(struct bufferevent *bev) {
        SSL *ssl = bufferevent_openssl_get_ssl(bev);

        if (ssl && SSL_is_init_finished(ssl))
                (void) SSL_shutdown(ssl); /* if it does not fit, the client sees an end without it */
        ERR_clear_error();
}
