/* test_proxy.c - talks with upstream proxies: byte for byte, in pieces, and never a byte too far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "egress/config.h"
#include "egress/proxy.h"

static struct config config_of(enum config_proxy kind, bool secret) {
        struct config c = { .proxy = { .kind = kind } };

        if (secret) {
                (void) snprintf(c.proxy.user, sizeof(c.proxy.user), "me");
                (void) snprintf(c.proxy.password, sizeof(c.proxy.password), "pass");
        }
        return c;
}

struct talk {
        struct config config;
        struct proxy *proxy;
        struct buf out;
};

static void begin(struct talk *t, enum config_proxy kind, bool secret, const char *name, const char *address) {
        struct addr a;
        struct err err = { 0 };

        *t = (struct talk){ .config = config_of(kind, secret), .out = BUF_INIT(4096) };
        if (address)
                assert_int_equal(addr_parse(address, &a), 0);
        assert_int_equal(proxy_new(&t->config, name, address ? &a : NULL, 443, &t->out, &t->proxy, &err), 0);
}

static void end(struct talk *t) {
        proxy_free(t->proxy);
        buf_done(&t->out);
}

/* The proxy says n bytes and then something of the destination's. Fed byte by byte first. */
static enum proxy_step hear(struct talk *t, const char *bytes, size_t n) {
        char all[512];
        struct err err = { 0 };
        size_t used = 0;
        enum proxy_step step = PROXY_MORE;

        t->out.len = 0;
        memcpy(all, bytes, n);
        memcpy(all + n, "SSH-2.0", 7);
        for (size_t k = 0; k < n; k++) {
                step = proxy_feed(t->proxy, all, k, &t->out, &used, &err);
                if (step == PROXY_FAILED)
                        return step;
                assert_int_equal(step, PROXY_MORE);
                assert_int_equal(used, 0);
        }
        step = proxy_feed(t->proxy, all, n + 7, &t->out, &used, &err);
        if (step != PROXY_FAILED)
                assert_int_equal(used, n);
        return step;
}

static void heard(const struct talk *t, const char *bytes, size_t n) {
        assert_int_equal(t->out.len, n);
        assert_memory_equal(t->out.p, bytes, n);
}

#define BYTES(s) s, sizeof(s) - 1

static void http_connect_asks_for_the_judged_address(void **state) {
        struct talk t;

        (void) state;
        begin(&t, CONFIG_PROXY_HTTP, false, NULL, "203.0.113.7");
        heard(&t, BYTES("CONNECT 203.0.113.7:443 HTTP/1.1\r\nHost: 203.0.113.7:443\r\n\r\n"));
        assert_int_equal(hear(&t, BYTES("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")), PROXY_OPEN);
        end(&t);
}

static void http_connect_writes_ipv6_in_brackets_and_credentials(void **state) {
        struct talk t;

        (void) state;
        begin(&t, CONFIG_PROXY_HTTP, true, NULL, "2001:db8::1");
        heard(&t, BYTES("CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
                        "Proxy-Authorization: Basic bWU6cGFzcw==\r\n\r\n"));
        end(&t);
}

static void http_refusals_and_nonsense_fail(void **state) {
        static const char *const bad[] = {
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
                "SSH-2.0-x\r\n\r\n",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct talk t;

                begin(&t, CONFIG_PROXY_HTTP, false, "a.example", NULL);
                assert_int_equal(hear(&t, bad[i], strlen(bad[i])), PROXY_FAILED);
                end(&t);
        }
}

static void socks_without_password(void **state) {
        struct talk t;

        (void) state;
        begin(&t, CONFIG_PROXY_SOCKS5, false, NULL, "203.0.113.7");
        heard(&t, BYTES("\x05\x01\x00"));
        assert_int_equal(hear(&t, BYTES("\x05\x00")), PROXY_SAY);
        heard(&t, BYTES("\x05\x01\x00\x01\xcb\x00\x71\x07\x01\xbb"));
        assert_int_equal(hear(&t, BYTES("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")), PROXY_OPEN);
        end(&t);
}

static void socks_with_password_and_name(void **state) {
        struct talk t;

        (void) state;
        begin(&t, CONFIG_PROXY_SOCKS5, true, "a.example", NULL);
        heard(&t, BYTES("\x05\x02\x00\x02"));
        assert_int_equal(hear(&t, BYTES("\x05\x02")), PROXY_SAY);
        heard(&t, BYTES("\x01\x02me\x04pass"));
        assert_int_equal(hear(&t, BYTES("\x01\x00")), PROXY_SAY);
        heard(&t, BYTES("\x05\x01\x00\x03\x09"
                        "a.example\x01\xbb"));
        assert_int_equal(hear(&t, BYTES("\x05\x00\x00\x03\x05proxy\x12\x34")), PROXY_OPEN);
        end(&t);
}

static void socks_refusals_fail(void **state) {
        struct talk t;

        (void) state;
        begin(&t, CONFIG_PROXY_SOCKS5, false, "a.example", NULL);
        assert_int_equal(hear(&t, BYTES("\x05\xff")), PROXY_FAILED);
        end(&t);
        begin(&t, CONFIG_PROXY_SOCKS5, false, "a.example", NULL);
        assert_int_equal(hear(&t, BYTES("\x05\x02")), PROXY_FAILED); /* wants a password that nobody gave us */
        end(&t);
        begin(&t, CONFIG_PROXY_SOCKS5, false, "a.example", NULL);
        assert_int_equal(hear(&t, BYTES("\x05\x00")), PROXY_SAY);
        assert_int_equal(hear(&t, BYTES("\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00")), PROXY_FAILED);
        end(&t);
        begin(&t, CONFIG_PROXY_SOCKS5, true, "a.example", NULL);
        assert_int_equal(hear(&t, BYTES("\x05\x02")), PROXY_SAY);
        assert_int_equal(hear(&t, BYTES("\x01\x01")), PROXY_FAILED);
        end(&t);
        begin(&t, CONFIG_PROXY_SOCKS5, false, "a.example", NULL);
        assert_int_equal(hear(&t, BYTES("HT")), PROXY_FAILED);
        end(&t);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(http_connect_asks_for_the_judged_address),
                cmocka_unit_test(http_connect_writes_ipv6_in_brackets_and_credentials),
                cmocka_unit_test(http_refusals_and_nonsense_fail),
                cmocka_unit_test(socks_without_password),
                cmocka_unit_test(socks_with_password_and_name),
                cmocka_unit_test(socks_refusals_fail),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
