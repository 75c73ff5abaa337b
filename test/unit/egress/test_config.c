/* test_config.c - the configuration: every member is read, and what is wrong is named without showing a password. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "egress/config.h"

#define REST "\"resolv_conf\":\"/etc/resolv.conf\",\"hosts\":\"/etc/hosts\",\"open_tls\":false"

static int read_text(const char *text, struct config *c, struct err *err) {
        return config_read(text, strlen(text), c, err);
}

static void whole_document_is_read(void **state) {
        static const char text[] =
                "{\"resolv_conf\":\"/r\",\"hosts\":\"/h\",\"open_tls\":true,\"ca_bundle\":\"/c\",\"bind\":\"192.0.2.7\","
                "\"upstream_names\":true,\"upstream_proxy\":\"socks5://me:p%40ss%3a@[2001:db8::1]:1081\"}";
        struct config c;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(read_text(text, &c, &err), 0);
        assert_string_equal(c.resolv_conf, "/r");
        assert_string_equal(c.hosts, "/h");
        assert_string_equal(c.ca_bundle, "/c");
        assert_true(c.open_tls && c.upstream_names);
        assert_int_equal(c.bind.family, ADDR_V4);
        assert_int_equal(c.proxy.kind, CONFIG_PROXY_SOCKS5);
        assert_int_equal(c.proxy.address.family, ADDR_V6);
        assert_int_equal(c.proxy.port, 1081);
        assert_string_equal(c.proxy.user, "me");
        assert_string_equal(c.proxy.password, "p@ss:");
}

static void nulls_and_absence_mean_none(void **state) {
        struct config c;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(read_text("{" REST ",\"bind\":null,\"upstream_proxy\":null,\"ca_bundle\":null}", &c, &err), 0);
        assert_int_equal(c.proxy.kind, CONFIG_PROXY_NONE);
        assert_int_equal(c.bind.family, ADDR_NONE);
        assert_string_equal(c.ca_bundle, "");
        assert_int_equal(read_text("{" REST "}", &c, &err), 0);
        assert_false(c.upstream_names);
}

static void proxy_has_the_usual_ports(void **state) {
        struct config c;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(read_text("{" REST ",\"upstream_proxy\":\"http://Proxy.Example\"}", &c, &err), 0);
        assert_string_equal(c.proxy.name, "proxy.example");
        assert_int_equal(c.proxy.port, 3128);
        assert_int_equal(read_text("{" REST ",\"upstream_proxy\":\"socks5://192.0.2.1/\"}", &c, &err), 0);
        assert_int_equal(c.proxy.port, 1080);
}

static void what_is_wrong_is_named(void **state) {
        static const struct {
                const char *text, *named;
        } bad[] = {
                { "{\"hosts\":\"/h\",\"open_tls\":true}", "resolv_conf" },
                { "{" REST ",\"bind\":7}", "bind" },
                { "{" REST ",\"bind\":\"10.1\"}", "bind" },
                { "{" REST ",\"ca_bundle\":\"relative\"}", "ca_bundle" },
                { "{" REST ",\"unknown\":1}", "unknown" },
                { "{" REST ",\"upstream_proxy\":\"https://secret@x\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://secret@\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://u:sec%0aret@h\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://:secret@h\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://h:0\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://h:70000\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://h/path\"}", "upstream_proxy" },
                { "{" REST ",\"upstream_proxy\":\"http://[::1\"}", "upstream_proxy" },
                { "[]", "configuration" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct config c;
                struct err err = { 0 };

                if (read_text(bad[i].text, &c, &err) != -EINVAL || !strstr(err.msg, bad[i].named) ||
                    strstr(err.msg, "secret"))
                        fail_msg("case %zu: %s", i, err.msg);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(whole_document_is_read),
                cmocka_unit_test(nulls_and_absence_mean_none),
                cmocka_unit_test(proxy_has_the_usual_ports),
                cmocka_unit_test(what_is_wrong_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
