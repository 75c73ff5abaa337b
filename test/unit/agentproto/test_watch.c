/* test_watch.c - the real gabion-agent: changes of files. argv[1]: its file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files_host.h"
#include "process.h"

/* Waits for an event about a name; others are passed over. */
static void event(enum fp_what what, const char *name, struct fp_entry *ret) {
        for (;;) {
                struct fp_event e;

                conn_expect(conn, AP_EVENT);
                assert_int_equal(fp_get_event(conn->body, conn->n, &e), 0);
                if (e.what != what || strcmp(e.name, name) != 0) {
                        if (e.has_entry)
                                conn_expect(conn, AP_ENTRY);
                        continue;
                }
                assert_int_equal(e.has_entry, ret != NULL);
                if (ret)
                        *ret = entry();
                return;
        }
}

static void watch_tells_changes_also_in_new_directories(void **state) {
        struct fp_entry e;

        (void) state;
        assert_int_equal(mkdir(in_dir("old"), 0755), 0);
        ask(AP_WATCH, &(struct fp_request){ .path = dir, .flags = FP_RECURSIVE });
        conn_expect(conn, AP_DONE);
        make_file("old/a", "x");
        event(FP_CREATE, "old/a", NULL);
        event(FP_MODIFY, "old/a", NULL);
        assert_int_equal(chmod(in_dir("old/a"), 0600), 0);
        event(FP_CHMOD, "old/a", NULL);
        assert_int_equal(mkdir(in_dir("new"), 0755), 0);
        assert_int_equal(mkdir(in_dir("new/er"), 0755), 0);
        make_file("new/er/b", "");
        event(FP_CREATE, "new/er/b", NULL);
        assert_int_equal(rename(in_dir("new/er"), in_dir("old/moved")), 0);
        event(FP_RENAME, "new/er", NULL);
        make_file("old/moved/c", "");
        event(FP_CREATE, "old/moved/c", NULL);
        assert_int_equal(unlink(in_dir("old/moved/c")), 0);
        event(FP_DELETE, "old/moved/c", NULL);
        conn_close(conn);
        conn = conn_open(shim);
        conn_u32(conn, AP_FILES, 1, 0);
        ask(AP_WATCH, &(struct fp_request){ .path = dir, .flags = FP_WITH_ENTRY });
        conn_expect(conn, AP_DONE);
        make_file("old/not-recursive", "");
        make_file("top", "abc");
        event(FP_CREATE, "top", &e);
        assert_string_equal(e.path, in_dir("top"));
}

static void watch_needs_a_directory(void **state) {
        (void) state;
        make_file("file", "");
        ask_path(AP_WATCH, "file");
        is_error(ENOTDIR, "watch");
        ask_path(AP_WATCH, "missing");
        is_error(ENOENT, "watch");
}

static void watch_of_too_many_directories_says_so(void **state) {
        struct fp_event e = { 0 };

        (void) state;
        for (int i = 0; i < FP_WATCHES + 10; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "%d", i);
                assert_int_equal(mkdir(in_dir(name), 0755), 0);
        }
        ask(AP_WATCH, &(struct fp_request){ .path = dir, .flags = FP_RECURSIVE });
        conn_expect(conn, AP_EVENT);
        assert_int_equal(fp_get_event(conn->body, conn->n, &e), 0);
        assert_int_equal(e.what, FP_OVERFLOW);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                FILES_TEST(watch_tells_changes_also_in_new_directories),
                FILES_TEST(watch_needs_a_directory),
                FILES_TEST(watch_of_too_many_directories_says_so),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
