/* test_netlog.c - the egress log: lines of several writers, folders that are made, and one file kept when it is full.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"
#include "run/netlog.h"

static char folder[64], path[128], old[136];

static int make(void **state) {
        (void) state;
        (void) snprintf(folder, sizeof(folder), "/tmp/gabion-netlog-XXXXXX");
        assert_non_null(mkdtemp(folder));
        (void) snprintf(path, sizeof(path), "%s/a/b/log", folder);
        (void) snprintf(old, sizeof(old), "%s.1", path);
        return 0;
}

static int clean(void **state) {
        char dir[128];

        (void) state;
        (void) unlink(path);
        (void) unlink(old);
        (void) snprintf(dir, sizeof(dir), "%s/a/b", folder);
        (void) rmdir(dir);
        (void) snprintf(dir, sizeof(dir), "%s/a", folder);
        (void) rmdir(dir);
        return rmdir(folder);
}

static void text_is(const char *file, const char *want) {
        char text[256];

        assert_true(fd_read_at(AT_FDCWD, file, text, sizeof(text)) >= 0);
        assert_string_equal(text, want);
}

static void two_writers_append_whole_lines(void **state) {
        struct netlog a, b;
        struct err e = { 0 };
        struct stat st;

        (void) state;
        assert_int_equal(netlog_open(path, &a, &e), 0);
        assert_int_equal(netlog_open(path, &b, &e), 0);
        assert_int_equal(netlog_add(&a, "one", 3), 0);
        assert_int_equal(netlog_add(&b, "two", 3), 0);
        assert_int_equal(netlog_add(&a, "three", 5), 0);
        text_is(path, "one\ntwo\nthree\n");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        netlog_close(&a);
        netlog_close(&b);
        assert_int_equal(a.fd, -1);
}

static void a_full_file_is_renamed_once_for_all_writers(void **state) {
        struct netlog a, b;
        struct err e = { 0 };

        (void) state;
        assert_int_equal(netlog_open(path, &a, &e), 0);
        assert_int_equal(netlog_open(path, &b, &e), 0);
        assert_int_equal(ftruncate(a.fd, NETLOG_BYTES), 0);
        assert_int_equal(netlog_add(&a, "new", 3), 0);
        text_is(path, "new\n");
        assert_int_equal(netlog_add(&b, "also new", 8), 0); /* it still had the old file open */
        text_is(path, "new\nalso new\n");
        assert_int_equal(ftruncate(b.fd, NETLOG_BYTES), 0);
        assert_int_equal(netlog_add(&b, "newest", 6), 0);
        text_is(path, "newest\n");
        netlog_close(&a);
        netlog_close(&b);
}

static void what_is_no_file_is_refused(void **state) {
        struct netlog l;
        struct err e = { 0 };
        char there[80];

        (void) state;
        assert_true(netlog_open(folder, &l, &e) < 0);
        assert_true(netlog_open("/dev/null", &l, &e) < 0);
        assert_int_equal(l.fd, -1);
        (void) snprintf(there, sizeof(there), "%s/link", folder);
        assert_int_equal(symlink("/tmp/elsewhere", there), 0);
        assert_true(netlog_open(there, &l, &e) < 0);
        assert_int_equal(unlink(there), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(two_writers_append_whole_lines, make, clean),
                cmocka_unit_test_setup_teardown(a_full_file_is_renamed_once_for_all_writers, make, clean),
                cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, make, clean),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
