/*
 * stream.c - opened connections as bufferevents.
 *
 * Callbacks are deferred, so nothing of the caller runs inside a frame of OpenSSL. A cut connection is an error and
 * never an end: libevent is not allowed to take one for the other. Closing is the hard part: with a filter,
 * close_notify lands in the output of the bufferevent below, which would be freed together with its bytes. So the one
 * below is kept by a reference of our own until it has written them.
 */
#include <errno.h>
#include <stdlib.h>

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
        if (ossl_read_on(bev) < 0) {
                bufferevent_free(bev);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "TLS: out of memory");
        }
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

struct closing {
        struct bufferevent *bev, *under; /* under is bev's, and NULL on a socket */
        struct evbuffer_cb_entry *watch;
        struct event *step;     /* time-out: no progress for too long */
        struct event *writable; /* of the socket, for a close_notify that did not fit */
        bool said;
};

static struct evbuffer *lowest_output(const struct closing *c) {
        return bufferevent_get_output(c->under ? c->under : c->bev);
}

static void closing_end(struct closing *c) {
        if (c->watch)
                (void) evbuffer_remove_cb_entry(lowest_output(c), c->watch);
        if (c->step)
                event_free(c->step);
        if (c->writable)
                event_free(c->writable);
        bufferevent_free(c->bev);
        free(c);
}

/* Whether there is nothing more to wait for. */
static bool closing_done(struct closing *c) {
        SSL *ssl = bufferevent_openssl_get_ssl(c->bev);

        if (evbuffer_get_length(bufferevent_get_output(c->bev)) > 0)
                return false;
        if (!c->said && SSL_is_init_finished(ssl)) {
                int r = SSL_shutdown(ssl);

                if (r < 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_WRITE && event_add(c->writable, NULL) == 0)
                        return false;
                ERR_clear_error();
        }
        c->said = true;
        return evbuffer_get_length(lowest_output(c)) == 0;
}

static void on_step(int fd, short what, void *arg) {
        struct closing *c = arg;

        (void) fd;
        if ((what & EV_TIMEOUT) || closing_done(c))
                closing_end(c);
}

static void on_drained(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg) {
        static const struct timeval patience = { .tv_sec = TLS_CLOSE_S };
        struct closing *c = arg;

        if (info->n_deleted > 0)
                (void) event_add(c->step, &patience);
        if (evbuffer_get_length(out) == 0)
                event_active(c->step, EV_WRITE, 0);
}

static void on_closing_written(struct bufferevent *bev, void *arg) {
        const struct closing *c = arg;

        (void) bev;
        event_active(c->step, EV_WRITE, 0);
}

/* An end of reading that was on its way when we closed does not count; libevent switches writing off when it failed. */
static void on_closing_event(struct bufferevent *bev, short what, void *arg) {
        const struct closing *c = arg;
        bool writing = c->under && (bufferevent_get_enabled(c->under) & EV_WRITE);

        if ((what & BEV_EVENT_ERROR) && !(writing && SSL_is_init_finished(bufferevent_openssl_get_ssl(bev))))
                event_active(c->step, EV_TIMEOUT, 0);
}

void tls_close(struct bufferevent *bev) {
        static const struct timeval patience = { .tv_sec = TLS_CLOSE_S };
        struct event_base *base = bufferevent_get_base(bev);
        struct closing *c = calloc(1, sizeof(*c));

        if (!c) {
                bufferevent_free(bev);
                return;
        }
        c->bev = bev;
        c->under = bufferevent_get_underlying(bev);
        c->step = event_new(base, -1, 0, on_step, c);
        c->writable = event_new(base, bufferevent_getfd(bev), EV_WRITE, on_step, c);
        c->watch = c->step ? evbuffer_add_cb(lowest_output(c), on_drained, c) : NULL;
        if (!c->watch || !c->writable || event_add(c->step, &patience) < 0) {
                closing_end(c);
                return;
        }
        bufferevent_setcb(bev, NULL, on_closing_written, on_closing_event, c);
        bufferevent_setwatermark(bev, EV_WRITE, 0, 0);
        (void) bufferevent_set_timeouts(bev, NULL, NULL);
        (void) bufferevent_disable(bev, EV_READ);
        (void) bufferevent_enable(bev, EV_WRITE);
        if (c->under)
                (void) bufferevent_enable(c->under, EV_WRITE);
        event_active(c->step, EV_WRITE, 0);
}
