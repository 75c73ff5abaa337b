/* test_close.c - how connections are closed: nothing is lost, nothing stays, nothing waits for ever. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/own.h"
#include "pair.h"

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

/* More than any socket buffer holds, and the peer reads late: nothing is lost, and the end is an end. */
static void closing_loses_nothing(struct end *from, struct end *to, size_t n) {
        AUTO_FREE char *big = calloc(1, n + 1);

        assert_non_null(big);
        (void) bufferevent_disable(to->bev, EV_READ);
        assert_int_equal(bufferevent_write(from->bev, big, n), 0);
        tls_close(from->bev);
        from->bev = NULL;
        pair_idle(&pair, 50);
        (void) bufferevent_enable(to->bev, EV_READ);
        pair_run(&pair, SIZE_MAX);
        assert_int_equal(to->n_read, n);
        assert_int_equal(to->err.code, -ENODATA);
}

static void the_server_closes(void **state) {
        (void) state;
        pair_serve(&pair, mint, NAME);
        pair_dial(&pair, client, NAME);
        pair_run(&pair, 0);
        closing_loses_nothing(&pair.server, &pair.client, 2 << 20);
}

static void the_client_closes(void **state) {
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        (void) state;
        pair_serve(&pair, mint, NAME);
        assert_int_equal(tls_connect_fd(client, pair.base, pair.fds[1], NAME, &bev, &err), 0);
        pair.fds[1] = -1;
        pair_watch(&pair.client, bev);
        pair_run(&pair, 0);
        closing_loses_nothing(&pair.client, &pair.server, 2 << 20);
}

static void closing_with_nothing_to_say(void **state) {
        (void) state;
        pair_serve(&pair, mint, NAME);
        pair_dial(&pair, client, NAME);
        pair_run(&pair, 0);
        tls_close(pair.client.bev);
        pair.client.bev = NULL;
        pair_run(&pair, SIZE_MAX);
        assert_int_equal(pair.server.err.code, -ENODATA);
}

/* A refusal can be written at once: it is delivered when the handshake has ended. */
static void closing_before_the_handshake_still_delivers(void **state) {
        (void) state;
        pair_serve(&pair, mint, NAME);
        end_say(&pair.server, "403");
        tls_close(pair.server.bev);
        pair.server.bev = NULL;
        pair_dial(&pair, client, NAME);
        pair_run(&pair, SIZE_MAX);
        assert_string_equal(pair.client.first, "403");
        assert_int_equal(pair.client.err.code, -ENODATA);
}

static void closing_when_the_peer_is_gone_ends_at_once(void **state) {
        (void) state;
        pair_serve(&pair, mint, NAME);
        end_say(&pair.server, "never");
        tls_close(pair.server.bev);
        pair.server.bev = NULL;
        (void) close(pair.fds[1]);
        pair.fds[1] = -1;
        pair_idle(&pair, 50); /* LSan tells whether it is gone */
}

/* The event of the peer's end is still queued when we close; what we have to say is not lost. */
static void closing_after_the_peer_closed_still_delivers(void **state) {
        (void) state;
        pair_serve(&pair, mint, NAME);
        pair_dial(&pair, client, NAME);
        pair_run(&pair, 0);
        assert_int_equal(SSL_shutdown(bufferevent_openssl_get_ssl(pair.client.bev)), 0);
        pair_idle(&pair, 20);
        assert_true(pair.server.over);
        end_say(&pair.server, "bye");
        tls_close(pair.server.bev);
        pair.server.bev = NULL;
        pair_run(&pair, SIZE_MAX);
        assert_string_equal(pair.client.first, "bye");
}

static void closing_waits_no_longer_than_it_must(void **state) {
        AUTO_FREE char *big = calloc(1, 8 << 20);

        (void) state;
        assert_non_null(big);
        pair_serve(&pair, mint, NAME);
        pair_dial(&pair, client, NAME);
        pair_run(&pair, 0);
        (void) bufferevent_disable(pair.client.bev, EV_READ); /* it never reads again */
        assert_int_equal(bufferevent_write(pair.server.bev, big, 8 << 20), 0);
        tls_close(pair.server.bev);
        pair.server.bev = NULL;
        pair_idle(&pair, TLS_CLOSE_S * 1000 + 500);
        (void) bufferevent_enable(pair.client.bev, EV_READ);
        pair_run(&pair, SIZE_MAX);
        assert_int_equal(pair.client.err.code, -ECONNRESET);
        assert_true(pair.client.n_read < 8 << 20);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                CASE(the_server_closes),
                CASE(the_client_closes),
                CASE(closing_with_nothing_to_say),
                CASE(closing_before_the_handshake_still_delivers),
                CASE(closing_when_the_peer_is_gone_ends_at_once),
                CASE(closing_after_the_peer_closed_still_delivers),
                CASE(closing_waits_no_longer_than_it_must),
        };

        return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
