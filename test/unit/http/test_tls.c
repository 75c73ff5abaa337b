/* test_tls.c - a server whose connections are TLS: the transport is the caller's, the HTTP the same. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/server.h"

static struct event_base *base;
static unsigned n_finished, n_done;

static SSL_CTX *server_context(void) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *cert = X509_new();

        assert_true(ctx && key && cert);
        assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), 0));
        assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
        assert_int_equal(X509_set_pubkey(cert, key), 1);
        assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
        assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
        X509_free(cert);
        EVP_PKEY_free(key);
        return ctx;
}

static struct bufferevent *wrap(struct event_base *b, int fd, void *arg) {
        return bufferevent_openssl_socket_new(b, fd, SSL_new(arg), BUFFEREVENT_SSL_ACCEPTING,
                                              BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
}

static void finish(struct bufferevent *bev, void *arg) {
        (void) arg;
        n_finished++;
        (void) SSL_shutdown(bufferevent_openssl_get_ssl(bev));
}

static void echo_body(struct http_conn *c, struct evbuffer *body, void *data) {
        struct err err = { 0 };

        (void) data;
        assert_int_equal(http_reply_buffer(c, body, &err), 0);
}

static void echo_end(struct http_conn *c, void *data) {
        struct err err = { 0 };

        (void) data;
        assert_int_equal(http_reply_end(c, &err), 0);
}

static void echo_done(struct http_conn *c, int result, void *data) {
        (void) c, (void) data;
        assert_int_equal(result, 0);
        n_done++;
}

static void on_head(struct http_conn *c, const struct http_head *head, void *arg) {
        static const struct http_handler echo = { .on_body = echo_body, .on_end = echo_end, .on_done = echo_done };
        struct err err = { 0 };

        (void) arg;
        http_accept(c, &echo, NULL, 0);
        assert_int_equal(http_reply_start(c, 200, NULL, HTTP_BODY_LENGTH, head->length, &err), 0);
}

struct client {
        short ended; /* what the last event was */
};

static void on_client_event(struct bufferevent *bev, short what, void *arg) {
        struct client *c = arg;

        (void) bev;
        if (what & BEV_EVENT_CONNECTED)
                return;
        c->ended = what;
        (void) event_base_loopbreak(base);
}

static int listen_on_loopback(struct sockaddr_in *in) {
        socklen_t len = sizeof(*in);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        *in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        assert_int_equal(bind(fd, (struct sockaddr *) in, sizeof(*in)), 0);
        assert_int_equal(listen(fd, 8), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) in, &len), 0);
        return fd;
}

static void tls_connections_are_served_and_end_in_order(void **state) {
        SSL_CTX *ctx = server_context(), *client_ctx = SSL_CTX_new(TLS_client_method());
        struct http_transport tls = { .wrap = wrap, .finish = finish, .arg = ctx };
        struct http_server_config config = { .on_head = on_head };
        struct http_server *server = NULL;
        struct client client = { 0 };
        struct timeval limit = { .tv_sec = 10 };
        struct bufferevent *bev;
        struct err err = { 0 };
        struct sockaddr_in in;
        static char body[300000];
        struct evbuffer *got;

        (void) state;
        base = event_base_new();
        assert_int_equal(http_server_new(&server, base, &config, &err), 0);
        assert_int_equal(http_server_listen(server, listen_on_loopback(&in), &tls, &err), 0);
        bev = bufferevent_openssl_socket_new(base, -1, SSL_new(client_ctx), BUFFEREVENT_SSL_CONNECTING,
                                             BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(bev, NULL, NULL, on_client_event, &client);
        (void) bufferevent_enable(bev, EV_READ | EV_WRITE);
        assert_int_equal(bufferevent_socket_connect(bev, (struct sockaddr *) &in, sizeof(in)), 0);
        memset(body, 'x', sizeof(body));
        (void) evbuffer_add_printf(bufferevent_get_output(bev),
                                   "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                                   "POST /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                                   sizeof(body));
        (void) bufferevent_write(bev, body, sizeof(body));
        (void) event_base_loopexit(base, &limit);
        (void) event_base_dispatch(base);
        /* An end without close_notify would be an error: a reply that ends with its connection must not look whole. */
        assert_int_equal(client.ended, BEV_EVENT_READING | BEV_EVENT_EOF);
        got = bufferevent_get_input(bev);
        assert_true(evbuffer_search(got, "\r\n\r\nabcHTTP/1.1 200 OK\r\n", 24, NULL).pos > 0);
        assert_true(evbuffer_get_length(got) > sizeof(body));
        assert_int_equal(evbuffer_pullup(got, -1)[evbuffer_get_length(got) - 1], 'x');
        assert_int_equal(n_finished, 1);
        assert_int_equal(n_done, 2);
        bufferevent_free(bev);
        server = http_server_free(server);
        event_base_free(base);
        SSL_CTX_free(ctx);
        SSL_CTX_free(client_ctx);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(tls_connections_are_served_and_end_in_order) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
