/* What the observer notices on the host. It looks at this very machine, which other people use meanwhile. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "prove/observe.h"
#include "prove/outside.h"

static struct prove_report r;

static const struct prove_check *look(const char *what) {
        for (size_t i = 0; i < r.n_checks; i++)
                if (strstr(r.checks[i].what, what))
                        return &r.checks[i];
        return NULL;
}

static void a_changed_thing_is_named(void **state) {
        struct outside before;

        (void) state;
        memset(&r, 0, sizeof(r));
        outside_look(&before);
        outside_check(&before, &r);
        assert_true(look("settings")->ok);
        assert_true(look("device nodes")->ok);
        r.n_checks = 0;
        for (size_t i = 0; i < OUTSIDE_THINGS; i++) /* as if each had been another one before */
                before.things[i][10] ^= 1;
        outside_check(&before, &r);
        assert_false(look("settings")->ok);
        assert_true(str_has_prefix(look("settings")->note, "/"));
        assert_true(str_has_prefix(look("device nodes")->note, "/dev/"));
        assert_false(look("key files")->ok);
        outside_done(&before);
}

/* The map says which ids are the sandbox's; here it is said to have our own, which observe_range() would refuse. */
static void a_new_listening_socket_of_the_sandbox_is_seen(void **state) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct buf before = BUF_INIT(OUTSIDE_LISTENERS), after = BUF_INIT(OUTSIDE_LISTENERS);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) state;
        outside_listeners(&before);
        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 1), 0);
        outside_listeners(&after);
        assert_in_range(outside_listeners_new(&before, &after, getuid(), 1), 1, 99);
        assert_int_equal(outside_listeners_new(&after, &after, getuid(), 1), 0);
        assert_int_equal(outside_listeners_new(&before, &after, getuid() + 1, 10), 0);
        (void) close(fd);
        buf_done(&before);
        buf_done(&after);
}

static void ids_of_a_sandbox_are_those_of_nobody_else(void **state) {
        struct prove_posture p = { .seen = true };
        uint64_t base, size;

        (void) state;
        (void) str_copy(p.uid_map, sizeof(p.uid_map), "         0 2052128768      65536\n");
        assert_true(observe_range(&p, &base, &size));
        assert_int_equal(base, 2052128768);
        assert_int_equal(size, 65536);
        (void) str_copy(p.uid_map, sizeof(p.uid_map), "         0          0 4294967295\n");
        assert_false(observe_range(&p, &base, &size));
        (void) snprintf(p.uid_map, sizeof(p.uid_map), "0 %u 1\n", getuid());
        assert_false(observe_range(&p, &base, &size));
        p.uid_map[0] = '\0';
        assert_false(observe_range(&p, &base, &size));
        (void) str_copy(p.uid_map, sizeof(p.uid_map), "0 99999999999999999999 1");
        assert_false(observe_range(&p, &base, &size));
}

static void nothing_is_seen_of_an_attack_that_is_not_there(void **state) {
        struct prove_posture p;

        (void) state;
        observe_posture("gabion-no-such-attack-is-under-way", &p);
        assert_false(p.seen);
        assert_int_equal(observe_left("gabion-no-such-attack-is-under-way", &p), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_changed_thing_is_named),
                cmocka_unit_test(a_new_listening_socket_of_the_sandbox_is_seen),
                cmocka_unit_test(ids_of_a_sandbox_are_those_of_nobody_else),
                cmocka_unit_test(nothing_is_seen_of_an_attack_that_is_not_there),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
