/* test_server.c - what well-behaved clients get, over real sockets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "site.h"

#define HOST " HTTP/1.1\r\nHost: a.example\r\n"

static struct site site;

static int start(void **state) {
        static const struct http_server_config config = { .linger_ms = 500 };

        (void) state;
        site_start(&site, &config);
        return 0;
}

static int stop(void **state) {
        (void) state;
        return site_stop(&site) ? 0 : -1;
}

static void ask(int fd, const char *text, const char *method, struct site_reply *r) {
        site_say(fd, text);
        site_read(fd, method, r);
}

static void a_connection_serves_many_requests(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        for (int i = 0; i < 3; i++) {
                ask(fd, "GET /" HOST "\r\n", "GET", &r);
                assert_int_equal(r.status, 200);
                assert_string_equal(r.body, "hello");
                assert_true(r.keep_alive && r.has_date && !r.cut);
                assert_int_equal(r.n_rest, 0);
        }
        ask(fd, "GET /" HOST "Connection: close\r\n\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
        assert_false(r.keep_alive);
        assert_true(site_ended(fd));
}

static void a_flushed_reply_does_not_wait_for_the_loop(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "GET /flush" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "at once");
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
        assert_true(site.facts->flushed);
}

static void unix_listeners_serve_as_well(void **state) {
        AUTO_FD int fd = site_connect_unix(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
}

static void replies_without_a_body_have_none(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "HEAD /" HOST "\r\n", "HEAD", &r);
        assert_int_equal(r.status, 200);
        assert_int_equal(r.n_body, 0);
        ask(fd, "HEAD /big?bytes=100000" HOST "\r\n", "HEAD", &r);
        assert_int_equal(r.status, 200);
        ask(fd, "GET /unasked" HOST "\r\n", "GET", &r);
        assert_int_equal(r.status, 204);
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
}

static void http10_clients_get_what_they_understand(void **state) {
        AUTO_FD int fd = site_connect(&site), fd2 = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
        ask(fd, "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
        assert_true(site_ended(fd));
        ask(fd2, "GET /big?bytes=70000 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "GET", &r);
        assert_int_equal(r.n_body, 70000);
        assert_false(r.keep_alive || r.cut);
}

static void pipelined_requests_are_answered_in_order(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        site_say(fd, "GET /slow" HOST "\r\nPOST /sum" HOST "Content-Length: 3\r\n\r\nabcGET /" HOST "\r\n");
        site_read(fd, "GET", &r);
        assert_string_equal(r.body, "slow");
        site_read(fd, "POST", &r);
        assert_string_equal(r.body, "3");
        site_read(fd, "GET", &r);
        assert_string_equal(r.body, "hello");
}

static void a_client_that_shuts_its_side_still_gets_its_answers(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        site_say(fd, "GET /" HOST "\r\nGET /" HOST "\r\n");
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        site_read(fd, "GET", &r);
        assert_string_equal(r.body, "hello");
        site_read(fd, "GET", &r);
        assert_string_equal(r.body, "hello");
        assert_true(site_ended(fd));
}

static void a_reply_that_is_whole_outlives_the_end_of_the_asking(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        site_say(fd, "GET /large" HOST "\r\n"); /* more than sockets hold */
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        usleep(100 * 1000);
        site_read(fd, "GET", &r);
        assert_int_equal(r.n_body, 7 * 1024 * 1024);
        assert_false(r.cut);
}

static void bodies_stream_both_ways_at_once(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        char piece[64];

        (void) state;
        site_say(fd, "POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
        assert_true(recv(fd, piece, sizeof(piece), MSG_PEEK) > 0); /* the reply begins before the request ends */
        site_say(fd, "6\r\nsecond\r\n0\r\n\r\n");
        site_read(fd, "POST", &r);
        assert_string_equal(r.body, "firstsecond");
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
}

static void expectations_are_met_before_the_body(void **state) {
        AUTO_FD int fd = site_connect(&site), fd2 = site_connect(&site);
        struct site_reply r = { 0 };
        char text[64] = "";

        (void) state;
        site_say(fd, "POST /sum" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assert_int_equal(recv(fd, text, 25, MSG_WAITALL), 25);
        assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
        ask(fd, "12345", "POST", &r);
        assert_string_equal(r.body, "5");
        /* An answer in place of the 100: nobody can know whether the body still comes, so the connection ends. */
        ask(fd2, "POST /early" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", "POST", &r);
        assert_string_equal(r.body, "hello");
        assert_false(r.keep_alive);
        assert_true(site_ended(fd2));
}

static void an_unread_body_does_not_disturb_the_next_request(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        static char body[100000];

        (void) state;
        site_say(fd, "POST /early" HOST "Content-Length: 100000\r\n\r\n");
        site_read(fd, "POST", &r);
        assert_string_equal(r.body, "hello");
        assert_true(r.keep_alive);
        site_send(fd, body, sizeof(body));
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
}

static void a_body_too_large_to_throw_away_ends_the_connection(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "POST /early" HOST "Content-Length: 300000\r\n\r\nxyz", "POST", &r);
        assert_string_equal(r.body, "hello");
        assert_false(r.keep_alive);
        assert_true(site_ended(fd));
}

static void a_handler_can_take_a_body_at_its_own_pace(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        static char body[200000];

        (void) state;
        site_say(fd, "POST /pause" HOST "Content-Length: 200000\r\n\r\n");
        site_send(fd, body, sizeof(body));
        site_read(fd, "POST", &r);
        assert_string_equal(r.body, "200000");
}

static void long_replies_wait_for_their_reader(void **state) {
        AUTO_FD int fd = site_connect(&site);
        unsigned heads = site.facts->n_heads;
        struct site_reply r = { 0 };

        (void) state;
        site_say(fd, "GET /big?bytes=30000000" HOST "\r\n");
        EVENTUALLY(site.facts->n_heads > heads);
        usleep(200 * 1000); /* time enough to fill what can be filled */
        assert_in_range(site.facts->most_waiting, 1, HTTP_WRITE_HIGH + 2 * 16384);
        site_read(fd, "GET", &r);
        assert_int_equal(r.n_body, 30000000);
        assert_true(r.keep_alive && !r.cut);
}

static void an_upgraded_connection_is_handed_over_with_its_bytes(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        char text[16] = "";

        (void) state;
        ask(fd, "GET /upgrade" HOST "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nearly", "GET", &r);
        assert_int_equal(r.status, 101);
        memcpy(text, r.rest, r.n_rest);
        if (r.n_rest < 5)
                assert_int_equal(recv(fd, text + r.n_rest, 5 - r.n_rest, MSG_WAITALL), 5 - r.n_rest);
        assert_string_equal(text, "early");
        site_say(fd, "later");
        assert_int_equal(recv(fd, text, 5, MSG_WAITALL), 5);
        assert_string_equal(text, "later");
}

static void bad_replies_never_look_like_good_ones(void **state) {
        AUTO_FD int fd = site_connect(&site), fd2 = site_connect(&site), fd3 = site_connect(&site);
        AUTO_FD int fd4 = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "GET /bad" HOST "\r\n", "GET", &r);
        assert_int_equal(r.status, 500);
        assert_string_equal(r.body, "bad");
        ask(fd, "GET /none" HOST "\r\n", "GET", &r);
        assert_int_equal(r.status, 500);
        assert_string_equal(r.body, "{\"code\":500,\"message\":\"nobody answers\"}\n");
        ask(fd2, "GET /abort" HOST "\r\n", "GET", &r);
        assert_true(r.cut || r.status == 0);
        ask(fd3, "GET /short" HOST "\r\n", "GET", &r);
        assert_true(r.cut || r.status == 0);
        /* Whose end is the end of the body must not end in order. */
        site_say(fd4, "GET /abort HTTP/1.0\r\nHost: a\r\n\r\n");
        assert_int_equal(recv(fd4, r.body, sizeof(r.body), MSG_WAITALL), -1);
        assert_int_equal(errno, ECONNRESET);
}

static void every_request_is_given_back_once(void **state) {
        AUTO_FD int fd = site_connect(&site);
        unsigned done = site.facts->n_done;
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "GET /slow" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "slow");
        ask(fd, "GET /" HOST "\r\n", "GET", &r);
        assert_int_equal(site.facts->n_done, done + 1);
        assert_int_equal(site.facts->last_result, 0);
}

/* The last one: the server takes nobody afterwards. */
static void draining_finishes_what_has_begun(void **state) {
        AUTO_FD int idle = site_connect(&site), busy = site_connect(&site);
        struct site_reply r = { 0 };
        unsigned heads;

        (void) state;
        ask(idle, "GET /" HOST "\r\n", "GET", &r);
        heads = site.facts->n_heads;
        site_say(busy, "GET /slow" HOST "\r\n");
        EVENTUALLY(site.facts->n_heads > heads);
        site_drain(&site);
        assert_true(site_ended(idle));
        site_read(busy, "GET", &r);
        assert_string_equal(r.body, "slow");
        assert_false(r.keep_alive);
        assert_true(site_ended(busy));
        EVENTUALLY(site.facts->n_empty == 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_connection_serves_many_requests),
                cmocka_unit_test(a_flushed_reply_does_not_wait_for_the_loop),
                cmocka_unit_test(unix_listeners_serve_as_well),
                cmocka_unit_test(replies_without_a_body_have_none),
                cmocka_unit_test(http10_clients_get_what_they_understand),
                cmocka_unit_test(pipelined_requests_are_answered_in_order),
                cmocka_unit_test(a_client_that_shuts_its_side_still_gets_its_answers),
                cmocka_unit_test(a_reply_that_is_whole_outlives_the_end_of_the_asking),
                cmocka_unit_test(bodies_stream_both_ways_at_once),
                cmocka_unit_test(expectations_are_met_before_the_body),
                cmocka_unit_test(an_unread_body_does_not_disturb_the_next_request),
                cmocka_unit_test(a_body_too_large_to_throw_away_ends_the_connection),
                cmocka_unit_test(a_handler_can_take_a_body_at_its_own_pace),
                cmocka_unit_test(long_replies_wait_for_their_reader),
                cmocka_unit_test(an_upgraded_connection_is_handed_over_with_its_bytes),
                cmocka_unit_test(bad_replies_never_look_like_good_ones),
                cmocka_unit_test(every_request_is_given_back_once),
                cmocka_unit_test(draining_finishes_what_has_begun),
        };
        return cmocka_run_group_tests(tests, start, stop);
}
