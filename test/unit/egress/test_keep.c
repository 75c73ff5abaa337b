/* test_keep.c - what one process remembered the next one knows, also when the first was killed in between. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "egress/keep.h"

#define A "aaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbb"

static char names[256];

static int collect(void *arg, const char *name, struct err *err) {
        size_t n = strlen(names);

        (void) arg;
        (void) err;
        (void) snprintf(names + n, sizeof(names) - n, "%s ", name);
        return 0;
}

static const char *names_of(const struct keep *k, const char *sandbox) {
        struct err err = { 0 };

        names[0] = '\0';
        assert_int_equal(keep_names(k, sandbox, collect, NULL, &err), 0);
        return names;
}

static struct keep *again(struct keep *k) {
        struct keep *next;
        struct err err = { 0 };
        int fd = dup(keep_fd(k));

        keep_free(k);
        assert_int_equal(keep_new(fd, &next, &err), 0);
        return next;
}

static struct keep *filled(void) {
        struct keep *k;
        struct err err = { 0 };

        assert_int_equal(keep_new(-1, &k, &err), 0);
        assert_string_equal(keep_ca(k), "");
        assert_int_equal(keep_add_name(k, A, "one.example", &err), 0);
        assert_int_equal(keep_set_ca(k, "-----KEY-----", &err), 0);
        assert_int_equal(keep_add_name(k, B, "two.example", &err), 0);
        assert_int_equal(keep_add_name(k, A, "three.example", &err), 0);
        return k;
}

static void next_process_knows_it(void **state) {
        struct keep *k = again(filled());

        (void) state;
        assert_string_equal(keep_ca(k), "-----KEY-----");
        assert_string_equal(names_of(k, A), "one.example three.example ");
        assert_string_equal(names_of(k, B), "two.example ");
        keep_free(k);
}

static void removed_sandbox_is_forgotten(void **state) {
        struct keep *k = filled();
        struct err err = { 0 };

        (void) state;
        assert_int_equal(keep_remove(k, A, &err), 0);
        assert_int_equal(keep_add_name(k, B, "four.example", &err), 0);
        k = again(k);
        assert_string_equal(names_of(k, A), "");
        assert_string_equal(names_of(k, B), "two.example four.example ");
        assert_string_equal(keep_ca(k), "-----KEY-----");
        keep_free(k);
}

static void entry_that_was_cut_is_ignored(void **state) {
        (void) state;
        for (unsigned cut = 1; cut < 20; cut++) {
                struct keep *k = filled();
                struct err err = { 0 };
                struct stat st;

                assert_int_equal(fstat(keep_fd(k), &st), 0);
                assert_int_equal(ftruncate(keep_fd(k), st.st_size - cut), 0);
                k = again(k);
                assert_string_equal(names_of(k, A), "one.example ");
                assert_int_equal(keep_add_name(k, A, "five.example", &err), 0);
                k = again(k);
                assert_string_equal(names_of(k, A), "one.example five.example ");
                keep_free(k);
        }
}

static void foreign_descriptor_is_refused(void **state) {
        struct keep *k;
        struct err err = { 0 };
        int fds[2];

        (void) state;
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(keep_new(fds[0], &k, &err), -EBADMSG);
        assert_int_equal(close(fds[0]), 0); /* it is still ours */
        assert_int_equal(close(fds[1]), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(next_process_knows_it),
                cmocka_unit_test(removed_sandbox_is_forgotten),
                cmocka_unit_test(entry_that_was_cut_is_ignored),
                cmocka_unit_test(foreign_descriptor_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
