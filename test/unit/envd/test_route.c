/* test_route.c - whom a request is for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "envd/envd.h"
#include "http/http.h"

/* The result of envd_route() for a request with these header lines. */
static int route(const char *lines, char id[ID_TEXT], uint16_t *port) {
        struct http_parser *p = NULL;
        struct http_event ev;
        struct err err = { 0 };
        char text[1024];
        int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\n\r\n", lines), r;

        assert_int_equal(http_parser_new_request(&p, &err), 0);
        assert_int_equal(http_feed(p, text, (size_t) n, &ev, &err), 0);
        assert_int_equal(ev.type, HTTP_EV_HEAD);
        r = envd_route(http_parser_head(p), id, port);
        p = http_parser_free(p);
        return r;
}

static void sandboxes_are_found(void **state) {
        static const struct {
                const char *lines;
                uint16_t port;
        } cases[] = {
                { "Host: localhost:3000\r\nE2b-Sandbox-Id: abc123\r\nE2b-Sandbox-Port: 80", 80 },
                { "Host: 127.0.0.1\r\nE2b-Sandbox-Id: abc123", ENVD_PORT },
                { "Host: [::1]:3000\r\nE2b-Sandbox-Id: abc123\r\nE2b-Sandbox-Port: 65535", 65535 },
                { "Host: sandbox.e2b.app\r\nE2b-Sandbox-Id: abc123\r\nE2b-Sandbox-Port: 1", 1 },
                { "Host: 3000-abc123.e2b.app", 3000 },
                { "Host: 3000-ABC123.localhost:8080\r\nE2b-Sandbox-Id: other", 3000 }, /* the name says it already */
                { "Host: gabion.example.com\r\nE2b-Sandbox-Id: abc123\r\nE2b-Sandbox-Port: 80", 80 },
                { "Host: 3000-abc123-client1.e2b.app", 3000 }, /* as SDKs before 2.0 write it */
                { "Host: localhost\r\nE2b-Sandbox-Id: abc123-client1", ENVD_PORT },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char id[ID_TEXT] = "";
                uint16_t port = 0;

                assert_int_equal(route(cases[i].lines, id, &port), 1);
                assert_string_equal(id, "abc123");
                assert_int_equal(port, cases[i].port);
        }
}

static void others_are_not(void **state) {
        static const struct {
                const char *lines;
                int r;
        } cases[] = {
                { "Host: localhost", 0 },
                { "Host: api.e2b.app", 0 },
                { "Host: x3000-abc.e2b.app", 0 },
                { "Host: 3000-abc", 0 },
                { "Host: 0-abc.e2b.app", -EINVAL },
                { "Host: 65536-abc.e2b.app", -EINVAL },
                { "Host: 99999999999-abc.e2b.app", -EINVAL },
                { "Host: 3000-a-b-c.e2b.app", -EINVAL },
                { "Host: 3000-a-.e2b.app", -EINVAL },
                { "Host: 3000-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.e2b.app", -EINVAL },
                { "Host: localhost\r\nE2b-Sandbox-Id: ABC", -EINVAL },
                { "Host: localhost\r\nE2b-Sandbox-Id: ../x", -EINVAL },
                { "Host: localhost\r\nE2b-Sandbox-Id: ", -EINVAL },
                { "Host: localhost\r\nE2b-Sandbox-Id: abc\r\nE2b-Sandbox-Port: +80", -EINVAL },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char id[ID_TEXT];
                uint16_t port;

                if (route(cases[i].lines, id, &port) != cases[i].r)
                        fail_msg("%s", cases[i].lines);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(sandboxes_are_found),
                cmocka_unit_test(others_are_not),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
