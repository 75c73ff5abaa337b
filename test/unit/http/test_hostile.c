/* test_hostile.c - what clients get that are slow, endless, wrong or many. usage: test_http_hostile CASES */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "cases.h"
#include "site.h"

#define HOST " HTTP/1.1\r\nHost: a.example\r\n"
enum { SHORT_MS = 300, MANY = 1000, CAP = 40 };

static const char *cases_folder;
static struct site site;

static int start(void **state) {
        static const struct http_server_config config = {
                .idle_ms = 8000, .head_ms = SHORT_MS, .read_ms = SHORT_MS, .write_ms = SHORT_MS, .linger_ms = SHORT_MS
        };

        (void) state;
        site_start(&site, &config);
        return 0;
}

static int start_small(void **state) {
        static const struct http_server_config config = { .max_conns = CAP };

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

static uint64_t now_ms(void) {
        return clock_mono_ns() / 1000000;
}

/* The status in "refused 400 ..." of the expectation; NULL if there is none. */
static const char *refused_with(const struct http_case *c) {
        const char *at = strstr(c->expected, "refused ");

        return at ? at + 8 : NULL;
}

static void check_verdict(const struct http_case *c, const char *want) {
        AUTO_FD int fd = site_connect(&site);
        unsigned heads = site.facts->n_heads;
        struct site_reply r = { 0 };
        char got[16];

        site_send(fd, c->bytes, c->n);
        site_read(fd, "GET", &r);
        (void) snprintf(got, sizeof(got), "%u ", r.status);
        if (!str_has_prefix(want, got))
                fail_msg("%s: answered %s", c->name, got);
        assert_false(r.keep_alive);
        assert_true(site_ended(fd));
        /* A bad body has had its head; nothing smuggled behind it had one. */
        assert_in_range(site.facts->n_heads, heads, heads + str_has_prefix(c->expected, "head "));
}

static void every_data_case_is_answered_with_its_verdict(void **state) {
        struct http_case *cases;
        size_t n = cases_read(cases_folder, &cases), n_tried = 0;

        (void) state;
        for (size_t i = 0; i < n; i++) {
                const struct http_case *c = &cases[i];

                if (!c->response && refused_with(c)) {
                        check_verdict(c, refused_with(c));
                        n_tried++;
                }
                free(c->bytes);
                free(c->expected);
        }
        free(cases);
        assert_true(n_tried > 100);
}

static void a_trickling_head_meets_its_deadline(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        uint64_t begin = now_ms();

        (void) state;
        for (const char *s = "GET /" HOST "X-Slow: aaaaaaaaaaaaaaaaaaaaaaa"; *s && now_ms() - begin < 2 * SHORT_MS;
             s++) {
                if (send(fd, s, 1, MSG_NOSIGNAL) != 1)
                        break;
                usleep(20 * 1000);
        }
        site_read(fd, "GET", &r);
        assert_int_equal(r.status, 408);
        assert_in_range(now_ms() - begin, SHORT_MS - 50, 10 * SHORT_MS);
}

static void a_body_that_stops_meets_its_deadline(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "POST /sum" HOST "Content-Length: 100\r\n\r\nabc", "POST", &r);
        assert_int_equal(r.status, 408);
        assert_true(site_ended(fd));
        EVENTUALLY(site.facts->last_result == -ETIMEDOUT);
}

static void a_handler_that_pauses_is_not_the_clients_fault(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        static char body[5000];

        (void) state;
        site_say(fd, "POST /stall" HOST "Content-Length: 5000\r\n\r\n");
        site_send(fd, body, sizeof(body));
        site_read(fd, "POST", &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body, "5000");
}

static void giant_heads_are_told_so(void **state) {
        AUTO_FREE char *text = malloc(200001);
        struct site_reply r = { 0 };

        (void) state;
        assert_non_null(text);
        memset(text, 'a', 200000);
        text[200000] = '\0';
        for (int i = 0; i < 3; i++) {
                AUTO_FD int fd = site_connect(&site);

                site_say(fd, i == 0 ? "GET /" : i == 1 ? "GET /" HOST "X: " : "GET /" HOST);
                for (int k = 0; i == 2 && k < 120; k++)
                        site_say(fd, "X-A: b\r\n");
                if (i < 2)
                        site_say(fd, text);
                site_read(fd, "GET", &r);
                assert_int_equal(r.status, i == 0 ? 414 : 431);
                assert_true(site_ended(fd));
        }
}

static void endless_bodies_are_cut_off(void **state) {
        static const char *const heads[] = { "POST /sum" HOST "Transfer-Encoding: chunked\r\n\r\n",
                                             "POST /none" HOST "Transfer-Encoding: chunked\r\n\r\n",
                                             "POST /early" HOST "Transfer-Encoding: chunked\r\n\r\n" };
        static char chunk[6 + 0x2710 + 2] = "2710\r\n";

        (void) state;
        memcpy(chunk + sizeof(chunk) - 2, "\r\n", 2);
        for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
                AUTO_FD int fd = site_connect(&site);
                size_t sent = 0;

                site_say(fd, heads[i]);
                while (sent < 16u * 1024 * 1024 && send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
                        sent += sizeof(chunk);
                assert_true(sent < 16u * 1024 * 1024);
        }
        EVENTUALLY(site.facts->last_result == -EMSGSIZE);
}

static void a_length_that_is_too_large_is_refused_before_it_comes(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };

        (void) state;
        ask(fd, "POST /sum" HOST "Content-Length: 1048577\r\nExpect: 100-continue\r\n\r\n", "POST", &r);
        assert_int_equal(r.status, 413);
        assert_true(site_ended(fd));
}

static void tiny_chunks_with_long_extensions_are_refused(void **state) {
        AUTO_FD int fd = site_connect(&site);
        struct site_reply r = { 0 };
        char chunk[256];

        (void) state;
        site_say(fd, "POST /sum" HOST "Transfer-Encoding: chunked\r\n\r\n");
        (void) snprintf(chunk, sizeof(chunk), "1;%0200d\r\nx\r\n", 0);
        for (int i = 0; i < 1000 && send(fd, chunk, strlen(chunk), MSG_NOSIGNAL) > 0; i++)
                ;
        site_read(fd, "POST", &r);
        assert_true(r.status == 400 || r.status == 0); /* 0: the kernel's reset overtook it */
        EVENTUALLY(site.facts->last_result == -EPROTO);
}

static void a_client_that_does_not_read_is_dropped(void **state) {
        AUTO_FD int fd = site_connect(&site);
        unsigned done = site.facts->n_done;

        (void) state;
        site_say(fd, "GET /big?bytes=100000000" HOST "\r\n");
        EVENTUALLY(site.facts->n_done == done + 1);
        assert_int_equal(site.facts->last_result, -ETIMEDOUT);
        assert_in_range(site.facts->most_waiting, 1, HTTP_WRITE_HIGH + 2 * 16384);
}

static void pipelining_without_reading_is_bounded(void **state) {
        AUTO_FD int fd = site_connect(&site);
        static const char request[] = "GET /" HOST "\r\n";
        unsigned heads = site.facts->n_heads;
        size_t sent = 0;

        (void) state;
        while (sent < 256u * 1024 * 1024 && send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0)
                sent += sizeof(request) - 1;
        assert_true(sent < 256u * 1024 * 1024);
        assert_true(site.facts->n_heads > heads);
        assert_in_range(site.facts->most_waiting, 1, HTTP_WRITE_HIGH + 2 * 16384);
}

static void a_client_that_leaves_is_noticed_while_the_handler_thinks(void **state) {
        int fd = site_connect(&site);
        unsigned heads = site.facts->n_heads, done = site.facts->n_done;

        (void) state;
        site_say(fd, "GET /hold" HOST "\r\n");
        EVENTUALLY(site.facts->n_heads == heads + 1);
        (void) close(fd);
        EVENTUALLY(site.facts->n_done == done + 1);
        assert_int_equal(site.facts->last_result, -ECONNRESET);
}

static void noise_is_refused(void **state) {
        unsigned char noise[512];

        (void) state;
        srand(7);
        for (int i = 0; i < 200; i++) {
                AUTO_FD int fd = site_connect(&site);
                unsigned heads = site.facts->n_heads;
                struct site_reply r = { 0 };

                for (size_t k = 0; k < sizeof(noise); k++)
                        noise[k] = (unsigned char) (rand() >> 5);
                site_send(fd, noise, sizeof(noise));
                site_read(fd, "GET", &r);
                assert_int_equal(r.status, 400);
                assert_int_equal(site.facts->n_heads, heads);
        }
}

static void a_thousand_idle_connections_disturb_nobody(void **state) {
        static int fds[MANY];
        struct site_reply r = { 0 };
        uint64_t begin = now_ms();

        (void) state;
        for (int i = 0; i < MANY; i++) {
                fds[i] = site_connect(&site);
                if (i % 2)
                        site_say(fds[i], "GET /" HOST "\r\n");
        }
        for (int i = 1; i < MANY; i += 2) {
                r.n_rest = 0;
                site_read(fds[i], "GET", &r);
                assert_string_equal(r.body, "hello");
        }
        for (int i = 0; i < 100; i++) {
                ask(fds[1], "GET /" HOST "\r\n", "GET", &r);
                assert_string_equal(r.body, "hello");
        }
        assert_true(site.facts->most_conns >= MANY);
        assert_true(now_ms() - begin < 5000);
        for (int i = 0; i < MANY; i++)
                (void) close(fds[i]);
}

static void the_longest_idle_goes_when_there_are_too_many(void **state) {
        int fds[2 * CAP];
        struct site_reply r = { 0 };

        (void) state;
        for (int i = 0; i < 2 * CAP; i++) {
                fds[i] = site_connect(&site);
                r.n_rest = 0;
                ask(fds[i], "GET /" HOST "\r\n", "GET", &r);
                assert_string_equal(r.body, "hello");
                assert_in_range(site.facts->n_conns, 1, CAP);
        }
        for (int i = 0; i < CAP; i++)
                assert_true(site_ended(fds[i]));
        ask(fds[2 * CAP - 1], "GET /" HOST "\r\n", "GET", &r);
        assert_string_equal(r.body, "hello");
        for (int i = 0; i < 2 * CAP; i++)
                (void) close(fds[i]);
}

static void when_all_are_busy_the_next_is_told(void **state) {
        int fds[CAP], last;
        unsigned heads = site.facts->n_heads, done = site.facts->n_done;
        struct site_reply r = { 0 };

        (void) state;
        for (int i = 0; i < CAP; i++) {
                fds[i] = site_connect(&site);
                site_say(fds[i], "GET /hold" HOST "\r\n");
        }
        EVENTUALLY(site.facts->n_heads == heads + CAP);
        last = site_connect(&site);
        site_read(last, "GET", &r);
        assert_int_equal(r.status, 503);
        assert_string_equal(r.body, "{\"code\":503,\"message\":\"too many connections\"}\n");
        assert_false(r.keep_alive || r.cut);
        (void) close(last);
        for (int i = 0; i < CAP; i++)
                (void) close(fds[i]);
        EVENTUALLY(site.facts->n_done == done + CAP);
}

static void freeing_the_server_gives_all_requests_back(void **state) {
        AUTO_FD int fd = site_connect(&site);
        unsigned heads = site.facts->n_heads, done = site.facts->n_done;

        (void) state;
        site_say(fd, "GET /hold" HOST "\r\n");
        EVENTUALLY(site.facts->n_heads == heads + 1);
        assert_true(site_stop(&site));
        assert_int_equal(site.facts->n_done, done + 1);
        assert_int_equal(site.facts->last_result, -ECANCELED);
        (void) start_small(NULL); /* for stop() */
}

int main(int argc, char **argv) {
        static const struct CMUnitTest slow[] = {
                cmocka_unit_test(every_data_case_is_answered_with_its_verdict),
                cmocka_unit_test(a_trickling_head_meets_its_deadline),
                cmocka_unit_test(a_body_that_stops_meets_its_deadline),
                cmocka_unit_test(a_handler_that_pauses_is_not_the_clients_fault),
                cmocka_unit_test(giant_heads_are_told_so),
                cmocka_unit_test(endless_bodies_are_cut_off),
                cmocka_unit_test(a_length_that_is_too_large_is_refused_before_it_comes),
                cmocka_unit_test(tiny_chunks_with_long_extensions_are_refused),
                cmocka_unit_test(a_client_that_does_not_read_is_dropped),
                cmocka_unit_test(pipelining_without_reading_is_bounded),
                cmocka_unit_test(a_client_that_leaves_is_noticed_while_the_handler_thinks),
                cmocka_unit_test(noise_is_refused),
                cmocka_unit_test(a_thousand_idle_connections_disturb_nobody),
        };
        static const struct CMUnitTest many[] = {
                cmocka_unit_test(the_longest_idle_goes_when_there_are_too_many),
                cmocka_unit_test(when_all_are_busy_the_next_is_told),
                cmocka_unit_test(freeing_the_server_gives_all_requests_back),
        };
        struct rlimit files = { 0 };

        if (argc != 2 || getrlimit(RLIMIT_NOFILE, &files) < 0)
                return 1;
        cases_folder = argv[1];
        files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
        (void) setrlimit(RLIMIT_NOFILE, &files);
        return cmocka_run_group_tests(slow, start, stop) + cmocka_run_group_tests(many, start_small, stop);
}
