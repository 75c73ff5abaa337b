/* test_stream.c - whole connections: who is accepted, who is refused by whom, and how they end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/own.h"
#include "pair.h"
#include "tls/ossl.h"

#define NAME "www.example.com"

static struct tls_ca *ca;
static struct tls_mint *mint;
static struct tls_client *client; /* trusts ca */
static struct pair pair;

static int set_up_group(void **state) {
        struct err err = { 0 };

        (void) state;
        (void) signal(SIGPIPE, SIG_IGN); /* as every user of sockets must */
        if (tls_ca_new("Gabion test", 30, &ca, &err) < 0 || tls_mint_new(ca, 4, &mint, &err) < 0)
                return -1;
        return tls_client_new(NULL, tls_ca_pem(ca), &client, &err);
}

static int tear_down_group(void **state) {
        (void) state;
        client = tls_client_free(client);
        mint = tls_mint_free(mint);
        ca = tls_ca_free(ca);
        return 0;
}

static int set_up(void **state) {
        (void) state;
        pair_start(&pair);
        return 0;
}

static int tear_down(void **state) {
        (void) state;
        pair_done(&pair);
        return 0;
}

static void serve(const char *name) {
        pair_serve(&pair, mint, name);
}

static void dial(struct tls_client *with, const char *name) {
        pair_dial(&pair, with, name);
}

/* A client with a mind of its own. */
static SSL *foreign(const char *name, const char *alpn, int max_version) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL *ssl;

        assert_non_null(ctx);
        assert_int_equal(SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION), 1);
        assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0"), 1);
        ssl = SSL_new(ctx);
        SSL_CTX_free(ctx);
        if (name)
                assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
        if (alpn)
                assert_int_equal(SSL_set_alpn_protos(ssl, (const unsigned char *) alpn, (unsigned) strlen(alpn)), 0);
        return ssl;
}

static void dial_foreign(SSL *ssl) {
        struct bufferevent *bev =
                bufferevent_openssl_socket_new(pair.base, pair.fds[1], ssl, BUFFEREVENT_SSL_CONNECTING,
                                               BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);

        assert_non_null(bev);
        pair.fds[1] = -1;
        pair_watch(&pair.client, bev);
}

static void both_ends_talk(void **state) {
        (void) state;
        serve(NAME);
        dial(client, NAME);
        end_say(&pair.client, "hello");
        pair_run(&pair, 5);
        assert_true(pair.server.connected && pair.client.connected);
        assert_string_equal(pair.server.first, "hello");
        assert_string_equal(pair.client.version, "TLSv1.3");
        end_say(&pair.server, "world");
        pair_idle(&pair, 20);
        assert_string_equal(pair.client.first, "world");
}

static void the_socket_variant_talks_too(void **state) {
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        (void) state;
        serve(NAME);
        assert_int_equal(tls_connect_fd(client, pair.base, pair.fds[1], NAME, &bev, &err), 0);
        pair.fds[1] = -1;
        pair_watch(&pair.client, bev);
        end_say(&pair.client, "hello");
        pair_run(&pair, 5);
        assert_string_equal(pair.server.first, "hello");
}

/* As after CONNECT, or after tls_peek_look(): the hello has been read already, and no more comes before an answer. */
static void a_hello_that_was_read_before_is_used(void **state) {
        struct bufferevent *under = pair_plain(&pair, 0), *bev = NULL;
        struct err err = { 0 };

        (void) state;
        (void) bufferevent_enable(under, EV_READ);
        dial(client, NAME);
        pair_idle(&pair, 50);
        assert_true(evbuffer_get_length(bufferevent_get_input(under)) > 100);
        assert_int_equal(tls_accept(mint, under, NAME, &bev, &err), 0);
        pair_watch(&pair.server, bev);
        pair_run(&pair, 0);
        assert_true(pair.server.connected && pair.client.connected);
}

static void a_server_refuses_to_be_somebody_else(void **state) {
        (void) state;
        serve(NAME);
        dial(client, "evil.example");
        pair_run(&pair, 1);
        assert_false(pair.server.connected);
        assert_false(pair.client.connected);
        assert_int_equal(pair.client.err.code, -EPROTO);
        assert_non_null(strstr(pair.client.err.msg, "unrecognized name"));
}

/* A server with a mind of its own: a good certificate of a trusted CA, whoever is asked for. */
static void serve_foreign(int max_version) {
        CLEANUP(ossl_pkey_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
        CLEANUP(ossl_x509_freep) X509 *leaf = NULL;
        CLEANUP(ossl_ctx_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
        struct err err = { 0 };

        assert_int_equal(ossl_leaf(ca, NAME, key, &leaf, &err), 0);
        assert_int_equal(SSL_CTX_use_certificate(ctx, leaf), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
        assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
        pair_watch(&pair.server, bufferevent_openssl_filter_new(pair.base, pair_plain(&pair, 0), SSL_new(ctx),
                                                                BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE));
}

static void a_certificate_for_another_name_is_not_accepted(void **state) {
        (void) state;
        serve_foreign(TLS1_3_VERSION);
        dial(client, "evil.example");
        pair_run(&pair, 1);
        assert_false(pair.client.connected);
        assert_int_equal(pair.client.err.code, -EKEYREJECTED);
        assert_non_null(strstr(pair.client.err.msg, "hostname mismatch"));
}

static void servers_cannot_renegotiate(void **state) {
        (void) state;
        serve_foreign(TLS1_2_VERSION);
        dial(client, NAME);
        pair_run(&pair, 0);
        assert_string_equal(pair.client.version, "TLSv1.2");
        assert_int_equal(SSL_renegotiate(bufferevent_openssl_get_ssl(pair.server.bev)), 1);
        end_say(&pair.server, "again");
        pair_idle(&pair, 100);
        assert_int_equal(SSL_total_renegotiations(bufferevent_openssl_get_ssl(pair.client.bev)), 0);
}

static void an_unknown_ca_is_not_accepted(void **state) {
        CLEANUP(tls_client_freep) struct tls_client *strict = NULL;
        CLEANUP(tls_ca_freep) struct tls_ca *other = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_ca_new("other", 30, &other, &err), 0);
        assert_int_equal(tls_client_new(NULL, tls_ca_pem(other), &strict, &err), 0);
        serve(NAME);
        dial(strict, NAME);
        pair_run(&pair, 1);
        assert_int_equal(pair.client.err.code, -EKEYREJECTED);
        assert_false(pair.client.connected);
        assert_int_equal(pair.server.err.code, -EPROTO); /* it hears the alert */
        assert_non_null(strstr(pair.server.err.msg, "unknown ca"));
}

static void clients_that_name_nobody_or_another_are_refused(void **state) {
        static const char *const names[] = { NULL, "evil.example", "example.com", "a.www.example.com" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                if (i > 0) {
                        pair_done(&pair);
                        pair_start(&pair);
                }
                serve(NAME);
                dial_foreign(foreign(names[i], NULL, TLS1_3_VERSION));
                pair_run(&pair, 1);
                assert_false(pair.server.connected);
                assert_int_equal(pair.server.err.code, -EPROTO);
        }
}

static void case_and_a_last_dot_do_not_matter(void **state) {
        (void) state;
        serve(NAME);
        dial_foreign(foreign("WWW.Example.COM.", NULL, TLS1_3_VERSION));
        pair_run(&pair, 0);
        assert_true(pair.server.connected);
}

static void http_1_1_or_nothing(void **state) {
        const unsigned char *p = NULL;
        unsigned n = 0;

        (void) state;
        serve(NAME);
        dial_foreign(foreign(NAME, "\2h2\10http/1.1", TLS1_3_VERSION));
        pair_run(&pair, 0);
        assert_true(pair.client.connected);
        SSL_get0_alpn_selected(bufferevent_openssl_get_ssl(pair.client.bev), &p, &n);
        assert_int_equal(n, 8);
        assert_memory_equal(p, "http/1.1", 8);
        pair_done(&pair);
        pair_start(&pair);
        serve(NAME);
        dial_foreign(foreign(NAME, "\2h2", TLS1_3_VERSION));
        pair_run(&pair, 1);
        assert_false(pair.server.connected);
}

static void old_versions_are_refused(void **state) {
        static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
                if (i > 0) {
                        pair_done(&pair);
                        pair_start(&pair);
                }
                serve(NAME);
                dial_foreign(foreign(NAME, NULL, versions[i]));
                pair_run(&pair, versions[i] == TLS1_2_VERSION ? 0 : 1);
                assert_int_equal(pair.server.connected, versions[i] == TLS1_2_VERSION);
        }
}

static void no_tickets_no_sessions_no_renegotiation(void **state) {
        SSL *ssl;

        (void) state;
        serve(NAME);
        dial_foreign(foreign(NAME, NULL, TLS1_2_VERSION));
        pair_run(&pair, 0);
        ssl = bufferevent_openssl_get_ssl(pair.client.bev);
        assert_false(SSL_SESSION_has_ticket(SSL_get_session(ssl)));
        end_say(&pair.client, "before");
        pair_run(&pair, 6);
        assert_int_equal(SSL_renegotiate(ssl), 1);
        end_say(&pair.client, "after");
        pair_idle(&pair, 100);
        assert_int_equal(SSL_total_renegotiations(bufferevent_openssl_get_ssl(pair.server.bev)), 0);
        pair_done(&pair);
        pair_start(&pair);
        serve(NAME);
        dial_foreign(foreign(NAME, NULL, TLS1_3_VERSION));
        end_say(&pair.client, "x");
        pair_run(&pair, 1);
        end_say(&pair.server, "y");
        pair_idle(&pair, 50);
        assert_int_equal(pair.client.n_read, 1);
        assert_false(SSL_SESSION_is_resumable(SSL_get_session(bufferevent_openssl_get_ssl(pair.client.bev))));
}

static void a_cut_is_no_end(void **state) {
        (void) state;
        serve(NAME);
        dial(client, NAME);
        end_say(&pair.client, "part");
        pair_run(&pair, 4);
        bufferevent_free(pair.client.bev); /* without close_notify */
        pair.client.bev = NULL;
        pair_run(&pair, SIZE_MAX);
        assert_int_equal(pair.server.err.code, -ECONNRESET);
}

static void a_cut_is_no_end_for_the_socket_variant(void **state) {
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        (void) state;
        serve(NAME);
        assert_int_equal(tls_connect_fd(client, pair.base, pair.fds[1], NAME, &bev, &err), 0);
        pair.fds[1] = -1;
        pair_watch(&pair.client, bev);
        end_say(&pair.server, "part");
        pair_run(&pair, 4);
        bufferevent_free(pair.server.bev);
        pair.server.bev = NULL;
        pair_run(&pair, SIZE_MAX);
        assert_int_equal(pair.client.err.code, -ECONNRESET);
}

/* What OpenSSL has decrypted when the buffer was full is read when there is room, though the socket says nothing more.
 */
static void a_full_buffer_leaves_nothing_behind(void **state) {
        enum { ALL = 16000 };
        static char text[ALL + 1];
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        (void) state;
        memset(text, 'x', ALL);
        serve(NAME);
        assert_int_equal(tls_connect_fd(client, pair.base, pair.fds[1], NAME, &bev, &err), 0);
        pair.fds[1] = -1;
        bufferevent_setwatermark(bev, EV_READ, 0, ALL / 16);
        pair_watch(&pair.client, bev);
        pair_run(&pair, 0);
        end_say(&pair.server, text);
        pair_run(&pair, ALL);
        assert_int_equal(pair.client.n_read, ALL);
}

static void bad_names_are_refused_before_anything_is_said(void **state) {
        static const char *const bad[] = { "", "A.example", "127.0.0.1", "a.example." };
        struct bufferevent *under = pair_plain(&pair, 0), *bev = NULL;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(tls_connect(client, under, bad[i], &bev, &err), -EINVAL);
                assert_int_equal(tls_accept(mint, under, bad[i], &bev, &err), -EINVAL);
        }
        bufferevent_free(under); /* still ours */
}

static void garbage_is_a_protocol_error(void **state) {
        (void) state;
        serve(NAME);
        assert_int_equal(write(pair.fds[1], "GET / HTTP/1.0\r\n\r\n", 18), 18);
        pair_run(&pair, 1);
        assert_int_equal(pair.server.err.code, -EPROTO);
}

static void roots_that_cannot_be_read_are_named(void **state) {
        struct tls_client *c = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(tls_client_new("/nonexistent/ca.pem", NULL, &c, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "/nonexistent/ca.pem"));
        assert_int_equal(tls_client_new(NULL, "no certificate", &c, &err), -EINVAL);
        assert_int_equal(
                tls_client_new(NULL, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &c, &err),
                -EINVAL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                CASE(both_ends_talk),
                CASE(the_socket_variant_talks_too),
                CASE(a_hello_that_was_read_before_is_used),
                CASE(a_server_refuses_to_be_somebody_else),
                CASE(a_certificate_for_another_name_is_not_accepted),
                CASE(servers_cannot_renegotiate),
                CASE(an_unknown_ca_is_not_accepted),
                CASE(clients_that_name_nobody_or_another_are_refused),
                CASE(case_and_a_last_dot_do_not_matter),
                CASE(http_1_1_or_nothing),
                CASE(old_versions_are_refused),
                CASE(no_tickets_no_sessions_no_renegotiation),
                CASE(a_cut_is_no_end),
                CASE(a_cut_is_no_end_for_the_socket_variant),
                CASE(a_full_buffer_leaves_nothing_behind),
                CASE(bad_names_are_refused_before_anything_is_said),
                CASE(garbage_is_a_protocol_error),
                cmocka_unit_test(roots_that_cannot_be_read_are_named),
        };

        return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
