/*
 * stream.c - opened connections as bufferevents.
 *
 * Callbacks are deferred, so nothing of the caller runs inside a frame of OpenSSL. A cut connection is an error and
 * never an end: libevent is not allowed to take one for the other. Closing is the hard part: with a filter,
 * close_notify lands in the output of the bufferevent below, which would be freed together with its bytes. So the one
 * below is kept by a reference of our own until it has written them.
 */
#include <errno.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>

#include "base/err.h"
#include "ossl.h"
#include "tls/tls.h"

enum { OPTIONS = BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS };

/* ssl is taken in any case: on failure libevent frees it, as it would have later. */
static int wrap(struct bufferevent *under, SSL *ssl, enum bufferevent_ssl_state state, struct bufferevent **ret,
                struct err *err) {
        struct bufferevent *bev =
                bufferevent_openssl_filter_new(bufferevent_get_base(under), under, ssl, state, OPTIONS);

        if (!bev)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 0);
        *ret = bev;
        return 0;
}

int tls_accept(struct tls_mint *m, struct bufferevent *under, const char *name, struct bufferevent **ret,
               struct err *err) {
        SSL *ssl = NULL;
        int r = ossl_server(m, name, &ssl, err);

        return r < 0 ? r : wrap(under, ssl, BUFFEREVENT_SSL_ACCEPTING, ret, err);
}

int tls_connect(struct tls_client *c, struct bufferevent *under, const char *name, struct bufferevent **ret,
                struct err *err) {
        SSL *ssl = NULL;
        int r = ossl_client(c, name, &ssl, err);

        return r < 0 ? r : wrap(under, ssl, BUFFEREVENT_SSL_CONNECTING, ret, err);
}

int tls_connect_fd(struct tls_client *c, struct event_base *base, int fd, const char *name, struct bufferevent **ret,
                   struct err *err) {
        struct bufferevent *bev;
        SSL *ssl = NULL;
        int r = ossl_client(c, name, &ssl, err);

        if (r < 0)
                return r;
        bev = bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_CONNECTING, OPTIONS);
        if (!bev)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 0);
        *ret = bev;
        return 0;
}

int tls_error(struct bufferevent *bev, short what, struct err *err) {
        SSL *ssl = bufferevent_openssl_get_ssl(bev);
        long verdict = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
        unsigned long e = bufferevent_get_openssl_error(bev);

        while (bufferevent_get_openssl_error(bev) != 0)
                ; /* one reason is enough, and the next call starts afresh */
        /* After close_notify the end of the socket is no news, but libevent reports it as an error of its own. */
        if ((what & BEV_EVENT_EOF) || (e == 0 && ssl && (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN)))
                return err_set(err, -ENODATA, ERR_PEER, "TLS: closed by the peer");
        if (verdict != X509_V_OK)
                return err_set(err, -EKEYREJECTED, ERR_PEER, "TLS: certificate not accepted: %s",
                               X509_verify_cert_error_string(verdict));
        if (e == 0 || ERR_GET_REASON(e) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
                return err_set(err, -ECONNRESET, ERR_PEER, "TLS: cut off by the peer");
        return err_set(err, -EPROTO, ERR_PEER, "TLS: %s",
                       ERR_reason_error_string(e) ? ERR_reason_error_string(e) : "?");
}

const char *tls_version(struct bufferevent *bev) {
        SSL *ssl = bufferevent_openssl_get_ssl(bev);

        return ssl && SSL_is_init_finished(ssl) ? SSL_get_version(ssl) : "";
}

static void on_flushed(struct bufferevent *under, void *arg) {
        (void) arg;
        (void) bufferevent_decref(under);
}

static void on_flush_failed(struct bufferevent *under, short what, void *arg) {
        (void) what;
        on_flushed(under, arg);
}

/* All plain bytes have gone into TLS records: say the end, and let go. */
static void on_written(struct bufferevent *bev, void *arg) {
        static const struct timeval patience = { .tv_sec = TLS_CLOSE_S };
        struct bufferevent *under = bufferevent_get_underlying(bev);
        SSL *ssl = bufferevent_openssl_get_ssl(bev);

        (void) arg;
        if (SSL_is_init_finished(ssl))
                (void) SSL_shutdown(ssl);
        ERR_clear_error();
        if (under)
                bufferevent_incref(under);
        bufferevent_free(bev);
        if (!under)
                return;
        if (evbuffer_get_length(bufferevent_get_output(under)) == 0) {
                (void) bufferevent_decref(under);
                return;
        }
        bufferevent_setcb(under, NULL, on_flushed, on_flush_failed, NULL);
        (void) bufferevent_set_timeouts(under, NULL, &patience);
        (void) bufferevent_disable(under, EV_READ);
        (void) bufferevent_enable(under, EV_WRITE);
}

static void on_write_failed(struct bufferevent *bev, short what, void *arg) {
        (void) arg;
        if (what & ~BEV_EVENT_CONNECTED)
                bufferevent_free(bev);
}

void tls_close(struct bufferevent *bev) {
        static const struct timeval patience = { .tv_sec = TLS_CLOSE_S };

        (void) bufferevent_disable(bev, EV_READ);
        if (evbuffer_get_length(bufferevent_get_output(bev)) == 0) {
                on_written(bev, NULL);
                return;
        }
        bufferevent_setcb(bev, NULL, on_written, on_write_failed, NULL);
        bufferevent_setwatermark(bev, EV_WRITE, 0, 0);
        (void) bufferevent_set_timeouts(bev, NULL, &patience);
        (void) bufferevent_enable(bev, EV_WRITE);
}
