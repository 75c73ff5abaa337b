/* test_user.c - accounts as /etc/passwd has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/user.h"

static void names_are_found_in_the_file(void **state) {
        uid_t uid = 7;
        gid_t gid = 7;

        (void) state;
        assert_true(user_find("root", &uid, &gid));
        assert_int_equal(uid, 0);
        assert_int_equal(gid, 0);
        assert_false(user_find("no-such-user-here", &uid, &gid));
        assert_false(user_find("", &uid, &gid));
}

static void services_are_never_root(void **state) {
        bool made_up;
        uid_t uid;
        gid_t gid;

        (void) state;
        assert_int_equal(user_service("root", &uid, &gid, &made_up), -EPERM);
        assert_int_equal(user_service("0", &uid, &gid, &made_up), -EPERM);
        assert_int_equal(user_service("no-such-user-here", &uid, &gid, &made_up), -ENOENT);
        assert_int_equal(user_service("-1", &uid, &gid, &made_up), -ENOENT);
        assert_int_equal(user_service("4294967295", &uid, &gid, &made_up),
                         -ENOENT); /* means "unchanged" to the kernel */
        assert_int_equal(user_service("12345", &uid, &gid, &made_up), 0);
        assert_true(uid == 12345 && gid == 12345 && !made_up);
        assert_int_equal(user_service("", &uid, &gid, &made_up), 0);
        assert_true(uid != 0 && (!made_up || uid == 65533));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_found_in_the_file),
                cmocka_unit_test(services_are_never_root),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
