/* test_resolver.c - the resolver against a server on loopback that misbehaves in each of the ways we know. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "dns/dns.h"
#include "server.h"

static struct event_base *base;
static struct server *server;
static struct dns_resolver *resolver;
static struct dns_config config;

static int set_up(void **state) {
        struct err err = { 0 };

        (void) state;
        base = event_base_new();
        server = server_new(base);
        dns_config_default(&config);
        config.servers[config.n_servers++] = server_at(server);
        config.timeout_ms = 100;
        return dns_resolver_new(base, &config, &resolver, &err);
}

static int tear_down(void **state) {
        (void) state;
        resolver = dns_resolver_free(resolver);
        server_free(server);
        event_base_free(base);
        return 0;
}

struct wait {
        struct dns_result res;
        unsigned n_calls;
};

static void on_done(const struct dns_result *res, void *arg) {
        struct wait *w = arg;

        w->res = *res;
        w->n_calls++;
        (void) event_base_loopbreak(base);
}

static void on_late(int fd, short what, void *arg) {
        (void) fd;
        (void) what;
        (void) arg;
        (void) event_base_loopbreak(base);
}

/* Until a lookup is done, at most ms. */
static void turn(unsigned ms) {
        struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
        struct event *late = event_new(base, -1, 0, on_late, NULL);

        (void) event_add(late, &tv);
        (void) event_base_dispatch(base);
        event_free(late);
}

static struct dns_result resolve(const char *name, unsigned want) {
        struct dns_lookup *l = NULL;
        struct wait w = { .n_calls = 0 };
        struct err err = { 0 };

        assert_int_equal(dns_resolve(resolver, name, want, on_done, &w, &l, &err), 0);
        assert_int_equal(w.n_calls, 0); /* never from within the call */
        turn(3000);
        assert_int_equal(w.n_calls, 1);
        return w.res;
}

static void has(const struct dns_result *res, size_t i, const char *text) {
        char got[ADDR_TEXT];

        assert_true(i < res->n_addrs);
        addr_text(&res->addrs[i], got);
        assert_string_equal(got, text);
}

static void addresses_of_both_families(void **state) {
        struct dns_result res = resolve("GOOD.example", DNS_WANT_V4 | DNS_WANT_V6);

        (void) state;
        assert_int_equal(res.code, 0);
        assert_int_equal(res.n_addrs, 2);
        has(&res, 0, "192.0.2.1");
        has(&res, 1, "2001:db8::1");
        assert_int_equal(res.ttl_s, 60);
        assert_int_equal(res.from, DNS_FROM_SERVER);
        res = resolve("four.example", DNS_WANT_V4 | DNS_WANT_V6);
        assert_int_equal(res.n_addrs, 1);
        res = resolve("four.example", DNS_WANT_V6);
        assert_int_equal(res.code, -ENODATA);
}

static void the_cache_answers_the_second_time(void **state) {
        struct dns_result res = resolve("good.example", DNS_WANT_V4);
        unsigned asked = server_n_udp(server);

        (void) state;
        res = resolve("good.example", DNS_WANT_V4);
        assert_int_equal(res.from, DNS_FROM_CACHE);
        has(&res, 0, "192.0.2.1");
        assert_int_equal(server_n_udp(server), asked);
        (void) resolve("nx.example", DNS_WANT_V4);
        asked = server_n_udp(server);
        res = resolve("nx.example", DNS_WANT_V4);
        assert_int_equal(res.code, -ENOENT);
        assert_int_equal(res.from, DNS_FROM_CACHE);
        assert_int_equal(server_n_udp(server), asked);
        res = resolve("short.example", DNS_WANT_V4);
        assert_int_equal(res.ttl_s, config.ttl_min_s);
}

static void failures_have_their_codes(void **state) {
        struct dns_result res;

        (void) state;
        assert_int_equal(resolve("nx.example", DNS_WANT_V4 | DNS_WANT_V6).code, -ENOENT);
        assert_int_equal(resolve("none.example", DNS_WANT_V4 | DNS_WANT_V6).code, -ENODATA);
        assert_int_equal(resolve("fail.example", DNS_WANT_V4).code, -EIO);
        assert_int_equal(resolve("silent.example", DNS_WANT_V4).code, -ETIMEDOUT);
        res = resolve("fail.example", DNS_WANT_V4); /* such things are not remembered */
        assert_int_equal(res.from, DNS_FROM_SERVER);
}

static void aliases_are_followed_within_the_answer(void **state) {
        struct dns_result res = resolve("alias.example", DNS_WANT_V4);

        (void) state;
        assert_int_equal(res.code, 0);
        has(&res, 0, "192.0.2.1");
        assert_int_equal(res.ttl_s, 30); /* the shortest on the way */
}

static void only_the_name_asked_for_counts(void **state) {
        struct dns_result res = resolve("other.example", DNS_WANT_V4);

        (void) state;
        assert_int_equal(res.code, -ENODATA);
        res = resolve("victim.example", DNS_WANT_V4);
        assert_int_equal(res.from, DNS_FROM_SERVER); /* nothing was learnt about it */
}

static void lies_are_passed_over(void **state) {
        struct dns_result res = resolve("lies.example", DNS_WANT_V4);

        (void) state;
        assert_int_equal(res.code, 0);
        assert_int_equal(res.n_addrs, 1);
        has(&res, 0, "192.0.2.1");
        assert_int_equal(server_n_udp(server), 1);
}

static void a_cut_answer_is_asked_again_by_tcp(void **state) {
        struct dns_result res = resolve("cut.example", DNS_WANT_V4);

        (void) state;
        assert_int_equal(res.code, 0);
        has(&res, 0, "192.0.2.2");
        assert_int_equal(server_n_tcp(server), 1);
        assert_int_equal(resolve("cutoff.example", DNS_WANT_V4).code, -EIO);
        assert_int_equal(resolve("long.example", DNS_WANT_V4).code, -EIO);
}

static void a_lost_packet_is_sent_again_from_another_port(void **state) {
        uint16_t port, id;
        struct dns_result res = resolve("good.example", DNS_WANT_V4);

        (void) state;
        port = server_last_port(server);
        id = server_last_id(server);
        res = resolve("once.example", DNS_WANT_V4);
        assert_int_equal(res.code, 0);
        assert_int_equal(server_n_udp(server), 3);
        assert_true(port != server_last_port(server) || id != server_last_id(server));
}

static void a_slow_family_does_not_hold_the_other(void **state) {
        uint64_t start = clock_mono_ns();
        struct err err = { 0 };
        struct dns_result res;

        (void) state;
        resolver = dns_resolver_free(resolver);
        config.timeout_ms = 1000; /* and two tries */
        assert_int_equal(dns_resolver_new(base, &config, &resolver, &err), 0);
        res = resolve("v6silent.example", DNS_WANT_V4 | DNS_WANT_V6);
        assert_int_equal(res.code, 0);
        has(&res, 0, "192.0.2.1");
        assert_true(clock_mono_ns() - start < 900ull * 1000 * 1000);
}

static void a_dead_server_is_skipped(void **state) {
        struct err err = { 0 };

        (void) state;
        resolver = dns_resolver_free(resolver);
        config.servers[1] = config.servers[0];
        config.n_servers = 2;
        config.servers[0] = (struct dns_server){ .addr = addr_v4(0x7f000001), .port = 1 };
        assert_int_equal(dns_resolver_new(base, &config, &resolver, &err), 0);
        assert_int_equal(resolve("good.example", DNS_WANT_V4).code, 0);
        assert_int_equal(resolve("silent.example", DNS_WANT_V4).code, -EIO);
}

static void hosts_go_first(void **state) {
        static const char text[] = "# a comment\n127.0.0.1 localhost LOCAL.example # me\n::1\tlocalhost\n"
                                   "bad line\n10.0.0.1 -x 10.1\n192.0.2.77 good.example";
        struct err err = { 0 };
        struct dns_result res;

        (void) state;
        assert_int_equal(dns_resolver_hosts(resolver, text, strlen(text), &err), 0);
        res = resolve("good.example", DNS_WANT_V4);
        has(&res, 0, "192.0.2.77");
        assert_int_equal(res.from, DNS_FROM_HOSTS);
        res = resolve("good.example", DNS_WANT_V6);
        assert_int_equal(res.code, -ENODATA);
        res = resolve("localhost", DNS_WANT_V4 | DNS_WANT_V6);
        assert_int_equal(res.n_addrs, 2);
        has(&res, 1, "::1");
        res = resolve("local.example", DNS_WANT_V4);
        has(&res, 0, "127.0.0.1");
        assert_int_equal(server_n_udp(server), 0);
}

static void without_servers_only_hosts_are_found(void **state) {
        struct err err = { 0 };

        (void) state;
        resolver = dns_resolver_free(resolver);
        config.n_servers = 0;
        assert_int_equal(dns_resolver_new(base, &config, &resolver, &err), 0);
        assert_int_equal(resolve("good.example", DNS_WANT_V4).code, -EIO);
}

static void bad_names_never_reach_a_server(void **state) {
        static const char *const bad[] = { "", "a b", "1.2.3.4", "::1", "a..b", "*.example" };
        struct dns_lookup *l;
        struct err err = { 0 };
        struct wait w;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(dns_resolve(resolver, bad[i], DNS_WANT_V4, on_done, &w, &l, &err), -EINVAL);
        assert_int_equal(dns_resolve(resolver, "good.example", 0, on_done, &w, &l, &err), -EINVAL);
        assert_int_equal(dns_resolve(resolver, "good.example", 4, on_done, &w, &l, &err), -EINVAL);
}

static void lookups_of_one_name_share_one_question(void **state) {
        struct dns_lookup *l;
        struct err err = { 0 };
        struct wait w[20] = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(w); i++)
                assert_int_equal(dns_resolve(resolver, "good.example", DNS_WANT_V4, on_done, &w[i], &l, &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(w); i++)
                turn(20);
        for (size_t i = 0; i < ARRAY_SIZE(w); i++) {
                assert_int_equal(w[i].n_calls, 1);
                assert_int_equal(w[i].res.code, 0);
        }
        assert_int_equal(server_n_udp(server), 1);
}

static void cancelled_lookups_are_silent_and_make_room(void **state) {
        struct dns_lookup *l[3];
        struct err err = { 0 };
        struct wait w[3] = { 0 };

        (void) state;
        resolver = dns_resolver_free(resolver);
        config.max_pending = 2;
        assert_int_equal(dns_resolver_new(base, &config, &resolver, &err), 0);
        for (int round = 0; round < 5; round++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "silent.r%d.example", round);
                assert_int_equal(dns_resolve(resolver, name, DNS_WANT_V4, on_done, &w[0], &l[0], &err), 0);
                assert_int_equal(dns_resolve(resolver, name, DNS_WANT_V4, on_done, &w[1], &l[1], &err), 0);
                assert_int_equal(dns_resolve(resolver, name, DNS_WANT_V4, on_done, &w[2], &l[2], &err), -EBUSY);
                turn(10);
                dns_lookup_cancel(l[0]);
                dns_lookup_cancel(l[1]);
        }
        /* Cancelled after the result is there, but before the caller heard of it. */
        assert_int_equal(dns_resolve(resolver, "good.example", DNS_WANT_V4, on_done, &w[0], &l[0], &err), 0);
        turn(50);
        assert_int_equal(w[0].n_calls, 1);
        assert_int_equal(dns_resolve(resolver, "good.example", DNS_WANT_V4, on_done, &w[1], &l[1], &err), 0);
        dns_lookup_cancel(l[1]);
        turn(250);
        assert_int_equal(w[1].n_calls, 0);
}

static void freeing_drops_what_is_under_way(void **state) {
        struct dns_lookup *l;
        struct err err = { 0 };
        struct wait w = { 0 };
        unsigned n_calls;

        (void) state;
        assert_int_equal(dns_resolve(resolver, "silent.example", 3, on_done, &w, &l, &err), 0);
        assert_int_equal(dns_resolve(resolver, "cut.example", 3, on_done, &w, &l, &err), 0);
        turn(0);
        n_calls = w.n_calls;
        resolver = dns_resolver_free(resolver);
        turn(50);
        assert_int_equal(w.n_calls, n_calls);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                CASE(addresses_of_both_families),
                CASE(the_cache_answers_the_second_time),
                CASE(failures_have_their_codes),
                CASE(aliases_are_followed_within_the_answer),
                CASE(only_the_name_asked_for_counts),
                CASE(lies_are_passed_over),
                CASE(a_cut_answer_is_asked_again_by_tcp),
                CASE(a_lost_packet_is_sent_again_from_another_port),
                CASE(a_slow_family_does_not_hold_the_other),
                CASE(a_dead_server_is_skipped),
                CASE(hosts_go_first),
                CASE(without_servers_only_hosts_are_found),
                CASE(bad_names_never_reach_a_server),
                CASE(lookups_of_one_name_share_one_question),
                CASE(cancelled_lookups_are_silent_and_make_room),
                CASE(freeing_drops_what_is_under_way),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
