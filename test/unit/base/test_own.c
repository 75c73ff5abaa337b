/* test_own.c - scope-bound ownership: closed and freed at the end of the scope, unless handed on. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/own.h"

static int is_open(int fd) {
        return fcntl(fd, F_GETFD) >= 0;
}

static int open_one(void) {
        int fd = open("/", O_PATH | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

static void descriptors_are_closed_at_the_end_of_the_scope(void **state) {
        int number;

        (void) state;
        {
                AUTO_FD int fd = open_one();

                number = fd;
                assert_true(is_open(number));
        }
        assert_false(is_open(number));
}

static void a_taken_descriptor_stays_open(void **state) {
        int number;

        (void) state;
        {
                AUTO_FD int fd = open_one();

                number = TAKE_FD(fd);
                assert_int_equal(fd, -1);
        }
        assert_true(is_open(number));
        (void) close(number);
}

static void a_taken_pointer_is_not_freed(void **state) {
        char *kept;

        (void) state;
        {
                AUTO_FREE char *p = calloc(1, 8);

                kept = TAKE_PTR(p);
                assert_null(p);
        }
        assert_non_null(kept);
        kept[7] = 'x'; /* ASan would object to freed memory */
        free(kept);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(descriptors_are_closed_at_the_end_of_the_scope),
                cmocka_unit_test(a_taken_descriptor_stays_open),
                cmocka_unit_test(a_taken_pointer_is_not_freed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
