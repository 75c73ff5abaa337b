/* test_config.c - settings: one meaning for file and command line, and errors that name the field. */
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
#include "daemon/config.h"

static int read_text(const char *text, struct config *c, struct err *err) {
        char path[] = "/tmp/gabion-config-XXXXXX";
        int fd = mkstemp(path), r;

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
        (void) close(fd);
        *err = (struct err){ 0 };
        config_default(c);
        r = config_read(c, path, err);
        if (r == 0)
                r = config_check(c, err);
        (void) unlink(path);
        return r;
}

static void refuses(const char *text, const char *part) {
        static struct config c;
        struct err err;
        int r = read_text(text, &c, &err);

        if (r >= 0 || !strstr(err.msg, part))
                fail_msg("%s: %d '%s'; wanted '%s'", text, r, err.msg, part);
        config_done(&c);
}

static void everything_can_be_said_in_a_file(void **state) {
        static struct config c;
        struct err err;

        (void) state;
        if (read_text(
                    "listen: [ '127.0.0.1:4000', 'unix:/run/x' ]\ndata: /srv/gabion\ndomain: box.example\nkeep: true\n"
                    "log: warning\ntimeout_max: 3600\nceiling: public\n"
                    "quota: { sandboxes: 5, creates_per_s: 10, cpu: 2.5, memory: 1G, disk: 2G }\n"
                    "capacity: { sandboxes: 50, cpu: 8, memory: 16G, disk: 100G, reserve: 1G }\n"
                    "queue: { waiting: 10, waiting_tenant: 5, starting: 4, wait: 3s }\n"
                    "source_addresses: { red: 192.0.2.7, blue: '2001:DB8::1' }\n",
                    &c, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(c.n_listen, 2);
        assert_string_equal(config_source(&c, "red"), "192.0.2.7");
        assert_string_equal(config_source(&c, "blue"), "2001:db8::1");
        assert_string_equal(config_source(&c, "green"), "");
        assert_string_equal(c.listen[1], "unix:/run/x");
        assert_string_equal(c.domain, "box.example");
        assert_true(c.keep && c.level == LOG_WARNING && c.timeout_max_s == 3600 && c.ceiling.net);
        assert_true(c.quota.sandboxes == 5 && c.quota.creates_per_s == 10 && c.quota.cpu_milli == 2500);
        assert_true(c.quota.memory_bytes == 1 << 30 && c.quota.disk_bytes == UINT64_C(2) << 30);
        assert_true(c.capacity.sandboxes == 50 && c.capacity.cpu_milli == 8000 && c.capacity.reserve_bytes == 1 << 30);
        assert_true(c.queue.waiting == 10 && c.queue.starting == 4 && c.queue.wait_ms == 3000);
        config_done(&c);
}

static void loopback_has_a_domain(void **state) {
        static struct config c;
        struct err err = { 0 };

        (void) state;
        config_default(&c);
        assert_int_equal(config_check(&c, &err), 0);
        assert_string_equal(c.listen[0], "127.0.0.1:3000");
        assert_string_equal(c.domain, "localhost:3000");
        assert_null(c.ceiling.net);
        config_done(&c);
        config_default(&c);
        assert_int_equal(config_set(&c, "listen", "0.0.0.0:80", &err), 0);
        assert_int_equal(config_check(&c, &err), 0);
        assert_string_equal(c.domain, "");
        config_done(&c);
}

static void errors_name_the_field(void **state) {
        (void) state;
        refuses("lisen: []\n", ":1: lisen: unknown key; did you mean 'listen'?");
        refuses("source_addresses: { red: here }\n", "source_addresses");
        refuses("source_addresses: [ 192.0.2.1 ]\n", "source_addresses");
        refuses("data: here\n", "data: 'here' is not an absolute path");
        refuses("domain: 'a b'\n", "domain");
        refuses("domain: '[::1]'\n", "domain");
        refuses("log: loud\n", "log: 'loud' is not one of");
        refuses("timeout_max: 0\n", "timeout_max");
        refuses("quota: { memory: lots }\n", "quota.memory");
        refuses("capacity: { sandboxes: 0 }\n", "capacity.sandboxes");
        refuses("queue: { wait: soon }\n", "queue.wait");
        refuses("ceiling: /does/not/exist\n", "ceiling");
        refuses("policy: /does/not/exist\n", "policy");
        refuses("listen: [ 7 ]\n", "listen[0]");
        refuses("[]\n", "must be a mapping");
}

static void policy_may_have_no_network(void **state) {
        static struct config c;
        char path[] = "/tmp/gabion-policy-XXXXXX";
        static const char text[] = "version: 1\nnetwork: { preset: public }\n";
        struct err err = { 0 };
        int fd = mkstemp(path);

        (void) state;
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
        (void) close(fd);
        config_default(&c);
        assert_int_equal(config_set(&c, "policy", path, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "ceiling"));
        config_done(&c);
        (void) unlink(path);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_can_be_said_in_a_file),
                cmocka_unit_test(loopback_has_a_domain),
                cmocka_unit_test(errors_name_the_field),
                cmocka_unit_test(policy_may_have_no_network),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
