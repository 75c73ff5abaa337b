/* test_text.c - resolv.conf as we understand it. Hosts are tested with the resolver. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "dns/dns.h"

static int parse(struct dns_config *c, const char *text) {
        struct err err = { 0 };

        dns_config_default(c);
        return dns_config_parse(c, text, strlen(text), &err);
}

static void servers_in_their_order(void **state) {
        struct dns_config c;
        char text[ADDR_TEXT];

        (void) state;
        assert_int_equal(parse(&c, "# generated\n; old\nsearch example.com\nnameserver 192.0.2.1\n"
                                   "nameserver\t2001:db8::53   # the second\r\noptions edns0 timeout:1 attempts:3"),
                         0);
        assert_int_equal(c.n_servers, 2);
        addr_text(&c.servers[1].addr, text);
        assert_string_equal(text, "2001:db8::53");
        assert_int_equal(c.servers[0].port, 53);
        assert_int_equal(c.timeout_ms, 1000);
        assert_int_equal(c.tries, 3);
}

static void unusable_lines_are_skipped_and_numbers_bounded(void **state) {
        struct dns_config c;

        (void) state;
        assert_int_equal(parse(&c, "nameserver\nnameserver fe80::1%eth0\nnameserver 1.2.3\nxnameserver 192.0.2.9\n"
                                   "options timeout:99999999999999999999 attempts:0 timeout: attempts:x\n"
                                   "nameserver 192.0.2.1\noptions timeout:1000 attempts:1000"),
                         0);
        assert_int_equal(c.n_servers, 1);
        assert_int_equal(c.timeout_ms, 30000);
        assert_int_equal(c.tries, 5);
        assert_int_equal(parse(&c, "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n"
                                   "nameserver 192.0.2.4\nnameserver 192.0.2.5\n"),
                         0);
        assert_int_equal(c.n_servers, DNS_SERVERS);
}

static void no_server_is_an_error(void **state) {
        struct dns_config c, before;

        (void) state;
        dns_config_default(&before);
        assert_int_equal(parse(&c, ""), -ENOENT);
        assert_int_equal(parse(&c, "search a\n# nameserver 192.0.2.1\n"), -ENOENT);
        assert_memory_equal(&c, &before, sizeof(c));
}

static void files_are_read_and_bounded(void **state) {
        char path[] = "/tmp/gabion-dns.XXXXXX";
        AUTO_FD int fd = mkstemp(path);
        AUTO_FREE char *big = calloc(1, DNS_TEXT_MAX);
        struct err err = { 0 };
        struct dns_config c;

        (void) state;
        dns_config_default(&c);
        assert_int_equal(fd_write_all(fd, "nameserver 192.0.2.1\n", 21), 0);
        assert_int_equal(dns_config_read(&c, path, &err), 0);
        assert_int_equal(c.n_servers, 1);
        memset(big, '\n', DNS_TEXT_MAX);
        assert_int_equal(fd_write_all(fd, big, DNS_TEXT_MAX), 0);
        assert_int_equal(dns_config_read(&c, path, &err), -EFBIG);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(dns_config_read(&c, path, &err), -ENOENT);
        assert_non_null(strstr(err.msg, path));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(servers_in_their_order),
                cmocka_unit_test(unusable_lines_are_skipped_and_numbers_bounded),
                cmocka_unit_test(no_server_is_an_error),
                cmocka_unit_test(files_are_read_and_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
