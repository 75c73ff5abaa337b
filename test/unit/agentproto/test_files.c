/* test_files.c - the real gabion-agent: connections about files. argv[1]: its file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/wr.h"
#include "files_host.h"
#include "process.h"

static void stat_tells_links_and_targets_apart(void **state) {
        struct fp_entry e;

        (void) state;
        make_file("file", "12345");
        assert_int_equal(symlink("file", in_dir("one")), 0);
        assert_int_equal(symlink(in_dir("one"), in_dir("two")), 0);
        assert_int_equal(symlink("nowhere", in_dir("lost")), 0);
        ask_path(AP_STAT, "file");
        e = entry();
        assert_int_equal(e.mode, S_IFREG | 0640);
        assert_int_equal(e.size, 5);
        assert_int_equal(e.target_mode, 0);
        assert_string_equal(e.path, in_dir("file"));
        assert_string_equal(e.target, "");
        assert_true(e.mtime_s > 1600000000);
        ask_path(AP_STAT, "two");
        e = entry();
        assert_true(S_ISLNK(e.mode));
        assert_int_equal(e.target_mode, S_IFREG | 0640);
        assert_string_equal(e.path, in_dir("two"));
        assert_string_equal(e.target, in_dir("file")); /* through both */
        ask_path(AP_STAT, "lost");
        e = entry();
        assert_true(S_ISLNK(e.mode));
        assert_int_equal(e.target_mode, 0);
        assert_string_equal(e.target, "");
        ask_path(AP_STAT, "missing");
        is_error(ENOENT, "stat");
}

/* Names below dir, each followed by a blank; sorted by the caller's wish only. */
static size_t list(uint64_t depth, char *names, size_t cap) {
        size_t n = 0, len = 0;

        ask(AP_LIST_DIR, &(struct fp_request){ .path = dir, .length = depth });
        names[0] = '\0';
        for (;;) {
                struct fp_entry e;

                assert_true(conn_next(conn, 5000));
                if (conn->head.type == AP_DONE)
                        return n;
                assert_int_equal(conn->head.type, AP_ENTRY);
                assert_int_equal(fp_get_entry(conn->body, conn->n, &e), 0);
                len += (size_t) snprintf(names + len, cap - len, "%s ", e.path + strlen(dir) + 1);
                n++;
        }
}

static void list_goes_as_deep_as_asked_and_follows_no_link(void **state) {
        char names[4096];

        (void) state;
        assert_int_equal(mkdir(in_dir("a"), 0755), 0);
        assert_int_equal(mkdir(in_dir("a/b"), 0755), 0);
        make_file("a/b/c", "");
        assert_int_equal(symlink("a", in_dir("l")), 0);
        assert_int_equal(list(0, names, sizeof(names)), 2);
        assert_int_equal(list(1, names, sizeof(names)), 2);
        assert_int_equal(list(2, names, sizeof(names)), 3);
        assert_non_null(strstr(names, "a/b "));
        assert_int_equal(list(UINT64_MAX, names, sizeof(names)), 4);
        assert_non_null(strstr(names, "a/b/c "));
        assert_null(strstr(names, "l/"));
        ask_path(AP_LIST_DIR, "a/b/c");
        is_error(ENOTDIR, "list");
        ask_path(AP_LIST_DIR, "l"); /* the start itself may be one, and its name stays as it was asked for */
        assert_string_equal(entry().path, in_dir("l/b"));
        conn_expect(conn, AP_DONE);
}

static void list_of_many_names_is_whole(void **state) {
        static char names[64 * 1024];

        (void) state;
        for (int i = 0; i < 3000; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "file-%04d", i);
                make_file(name, "");
        }
        assert_int_equal(list(1, names, sizeof(names)), 3000);
}

static void mkdir_makes_parents_and_tells_what_is_there(void **state) {
        struct fp_entry e;

        (void) state;
        ask_path(AP_MKDIR, "x/y/z/");
        e = entry();
        assert_int_equal(e.mode, S_IFDIR | 0755);
        ask_path(AP_MKDIR, "x/y");
        is_error(EEXIST, "exists");
        make_file("file", "");
        ask_path(AP_MKDIR, "file");
        is_error(ENOTDIR, "exists");
        ask_path(AP_MKDIR, "file/below");
        is_error(ENOTDIR, "mkdir");
}

static void move_makes_parents_and_needs_a_source(void **state) {
        (void) state;
        make_file("from", "abc");
        ask(AP_MOVE, &(struct fp_request){ .path = in_dir("from"), .other = in_dir("new/place/to") });
        assert_string_equal(entry().path, in_dir("new/place/to"));
        assert_int_equal(access(in_dir("from"), F_OK), -1);
        ask(AP_MOVE, &(struct fp_request){ .path = in_dir("from"), .other = in_dir("other/place") });
        is_error(ENOENT, "source");
        assert_int_equal(access(in_dir("other"), F_OK), -1);
}

static void remove_takes_everything_and_misses_nothing(void **state) {
        char deep[2048] = "deep", cut[2048];

        (void) state;
        for (int i = 0; i < 100; i++) {
                assert_int_equal(mkdir(in_dir(deep), 0755), 0);
                (void) snprintf(cut, sizeof(cut), "%s/file", deep);
                make_file(cut, "x");
                (void) strcat(deep, "/d");
        }
        make_file("keep", "");
        assert_int_equal(symlink("../keep", in_dir("deep/link")), 0);
        for (int i = 0; i < 500; i++) {
                (void) snprintf(cut, sizeof(cut), "deep/many-%d", i);
                make_file(cut, "");
        }
        ask_path(AP_REMOVE, "deep");
        conn_expect(conn, AP_DONE);
        assert_int_equal(access(in_dir("deep"), F_OK), -1);
        assert_int_equal(access(in_dir("keep"), F_OK), 0);
        ask_path(AP_REMOVE, "deep");
        conn_expect(conn, AP_DONE);
        ask_path(AP_REMOVE, "keep");
        conn_expect(conn, AP_DONE);
        assert_int_equal(access(in_dir("keep"), F_OK), -1);
}

static void tree_that_is_too_deep_is_refused(void **state) {
        char deep[1024] = "deep";

        (void) state;
        for (int i = 0; i < FP_DEPTH + 2; i++) {
                assert_int_equal(mkdir(in_dir(deep), 0755), 0);
                (void) strcat(deep, "/d");
        }
        ask_path(AP_REMOVE, "deep");
        is_error(ELOOP, "depth");
        ask(AP_LIST_DIR, &(struct fp_request){ .path = dir, .length = UINT64_MAX });
        while (conn_next(conn, 5000) && conn->head.type == AP_ENTRY)
                ;
        assert_int_equal(conn->head.type, AP_ERROR);
        ask_path(AP_STAT, "deep"); /* the connection goes on */
        (void) entry();
}

static void write_data(const char *name, const char *p, size_t n) {
        ask_path(AP_WRITE, name);
        while (n > 0) {
                size_t k = n < AP_CHUNK ? n : AP_CHUNK;

                conn_bytes(conn, AP_DATA, 5, p, k);
                p += k;
                n -= k;
        }
        conn_empty(conn, AP_DATA_END, 5);
}

static size_t read_data(const char *name, uint64_t offset, uint64_t length, char *p, size_t cap) {
        size_t n = 0;

        ask(AP_READ, &(struct fp_request){ .path = name, .offset = offset, .length = length });
        (void) entry();
        while (conn_next(conn, 5000) && conn->head.type == AP_DATA) {
                assert_in_range(conn->n, 1, AP_CHUNK);
                assert_true(n + conn->n <= cap);
                memcpy(p + n, conn->body, conn->n);
                n += conn->n;
        }
        assert_int_equal(conn->head.type, AP_DATA_END);
        return n;
}

static void contents_go_in_and_come_out(void **state) {
        enum { BIG = 3000001 };
        char *big = malloc(BIG), *back = malloc(BIG);
        struct fp_entry e;

        (void) state;
        assert_non_null(big);
        assert_non_null(back);
        for (size_t i = 0; i < BIG; i++)
                big[i] = (char) (i * 2654435761u >> 13);
        write_data("new/dir/big", big, BIG);
        e = entry();
        assert_int_equal(e.mode, S_IFREG | 0644);
        assert_int_equal(e.size, BIG);
        assert_int_equal(read_data(in_dir("new/dir/big"), 0, UINT64_MAX, back, BIG), BIG);
        assert_memory_equal(big, back, BIG);
        assert_int_equal(read_data(in_dir("new/dir/big"), 1000000, 100001, back, BIG), 100001);
        assert_memory_equal(big + 1000000, back, 100001);
        assert_int_equal(read_data(in_dir("new/dir/big"), BIG + 5, UINT64_MAX, back, BIG), 0);
        write_data("new/dir/big", "short", 5); /* overwrites */
        assert_int_equal(entry().size, 5);
        write_data("empty", NULL, 0);
        assert_int_equal(entry().size, 0);
        assert_true(read_data("/proc/self/status", 0, UINT64_MAX, back, BIG) > 500); /* size 0, and yet not empty */
        free(big);
        free(back);
}

static void what_is_no_file_is_refused_and_the_connection_goes_on(void **state) {
        (void) state;
        assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
        make_file("file", "");
        ask(AP_READ, &(struct fp_request){ .path = dir, .length = UINT64_MAX });
        is_error(EISDIR, "read");
        ask_path(AP_READ, "fifo");
        is_error(EINVAL, "read");
        ask_path(AP_READ, "missing");
        is_error(ENOENT, "read");
        write_data("", "data", 4); /* the directory */
        is_error(EISDIR, "write");
        write_data("fifo", "data", 4);
        is_error(ENXIO, "write");
        write_data("file/below", "data", 4);
        is_error(ENOTDIR, "write");
        write_data("good", "data", 4);
        assert_int_equal(entry().size, 4);
}

static void file_that_grows_too_large_is_told_and_the_rest_dropped(void **state) {
        char *big = calloc(2, SHIM_FILE_MAX);
        struct stat st;

        (void) state;
        assert_non_null(big);
        write_data("big", big, 2 * SHIM_FILE_MAX);
        is_error(EFBIG, "write");
        assert_int_equal(stat(in_dir("big"), &st), 0);
        assert_int_equal(st.st_size, SHIM_FILE_MAX);
        ask_path(AP_STAT, "big");
        (void) entry();
        free(big);
}

static void disk_usage_is_told(void **state) {
        uint64_t total, used;

        (void) state;
        ask(AP_DISK, &(struct fp_request){ .path = dir });
        conn_expect(conn, AP_USAGE);
        assert_int_equal(fp_get_usage(conn->body, conn->n, &total, &used), 0);
        assert_true(total > 0 && used <= total);
        ask_path(AP_DISK, "missing");
        is_error(ENOENT, "disk");
}

static void attributes_are_replaced_below_their_prefix(void **state) {
        static uint8_t b[4096];
        struct fp_xattrs x = { .path = in_dir("file"), .prefix = "user.e2b.", .n_xattrs = 2 };
        struct fp_entry e;
        struct wr w;

        (void) state;
        make_file("file", "");
        if (setxattr(in_dir("file"), "user.other", "1", 1, 0) < 0) {
                print_message("the file system has no extended attributes\n");
                skip();
        }
        assert_int_equal(setxattr(in_dir("file"), "user.e2b.old", "1", 1, 0), 0);
        x.xattrs[0] = (struct fp_xattr){ "user.e2b.a", (const uint8_t *) "value", 5 };
        x.xattrs[1] = (struct fp_xattr){ "user.e2b.b", (const uint8_t *) "\0\xff", 2 };
        w = wr_to(b, sizeof(b));
        fp_put_xattrs(&w, 5, &x);
        conn_send(conn, b, w.len);
        e = entry();
        assert_int_equal(e.n_xattrs, 3);
        ask(AP_STAT, &(struct fp_request){ .path = in_dir("file") });
        assert_int_equal(entry().n_xattrs, 0); /* only if asked for */
        x.n_xattrs = 0;
        w = wr_to(b, sizeof(b));
        fp_put_xattrs(&w, 5, &x);
        conn_send(conn, b, w.len);
        e = entry();
        assert_int_equal(e.n_xattrs, 1);
        assert_string_equal(e.xattrs[0].name, "user.other");
}

static void workers_are_bounded_and_leave(void **state) {
        struct conn *c[40];
        unsigned refused = 0;
        char step[32];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                static uint8_t b[256];
                struct wr w = wr_to(b, sizeof(b));

                c[i] = conn_open(shim);
                conn_u32(c[i], AP_FILES, 9, 0);
                fp_put_request(&w, AP_STAT, 10, &(struct fp_request){ .path = "/" });
                if (conn_next(c[i], 20) && c[i]->head.type == AP_ERROR) {
                        uint32_t v;

                        assert_int_equal(ap_get_error(c[i]->body, c[i]->n, &v, step, sizeof(step)), 0);
                        assert_int_equal(v, EBUSY);
                        refused++;
                        continue;
                }
                conn_send(c[i], b, w.len);
                conn_expect(c[i], AP_ENTRY);
        }
        assert_int_equal(refused, 40 - 31);
        for (size_t i = 0; i < ARRAY_SIZE(c); i++)
                conn_close(c[i]);
        (void) usleep(100000);
        c[0] = conn_open(shim);
        conn_u32(c[0], AP_FILES, 9, 0);
        assert_false(conn_next(c[0], 50));
        conn_close(c[0]);
}

static void nonsense_ends_the_connection(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } bad[] = {
                { "\0\0\0\6\0\20\0\0\0\1", 10 },         /* AP_STAT without a body */
                { "\0\0\0\6\0\11\0\0\0\1", 10 },         /* AP_START belongs elsewhere */
                { "\0\1\0\7\0\20\0\0\0\1", 10 },         /* longer than any request */
                { "\0\0\0\7\0\27\0\0\0\1x", 11 },        /* data that nobody asked for */
                { "\377\377\377\377\0\20\0\0\0\1", 10 }, /* impossible */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct conn *c = conn_open(shim);

                conn_u32(c, AP_FILES, 1, 0);
                conn_send(c, bad[i].bytes, bad[i].n);
                if (!conn_has_ended(c))
                        fail_msg("bad frame %zu was accepted", i);
                conn_close(c);
        }
        ask_path(AP_STAT, "");
        (void) entry();
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                FILES_TEST(stat_tells_links_and_targets_apart),
                FILES_TEST(list_goes_as_deep_as_asked_and_follows_no_link),
                FILES_TEST(list_of_many_names_is_whole),
                FILES_TEST(mkdir_makes_parents_and_tells_what_is_there),
                FILES_TEST(move_makes_parents_and_needs_a_source),
                FILES_TEST(remove_takes_everything_and_misses_nothing),
                FILES_TEST(tree_that_is_too_deep_is_refused),
                FILES_TEST(contents_go_in_and_come_out),
                FILES_TEST(what_is_no_file_is_refused_and_the_connection_goes_on),
                FILES_TEST(file_that_grows_too_large_is_told_and_the_rest_dropped),
                FILES_TEST(disk_usage_is_told),
                FILES_TEST(attributes_are_replaced_below_their_prefix),
                FILES_TEST(workers_are_bounded_and_leave),
                FILES_TEST(nonsense_ends_the_connection),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
