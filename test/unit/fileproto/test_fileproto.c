/* test_fileproto.c - frames about files: read back whole, refused when cut, stretched or impossible. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/wr.h"
#include "fileproto/fileproto.h"

static uint8_t bytes[FP_FRAME_MAX];
static struct wr w;

static const uint8_t *const body = bytes + AP_HEAD;

/* Length of the body of the one frame that must be there. */
static size_t length(void) {
        struct ap_head h;

        assert_false(w.bad);
        assert_int_equal(ap_frame(bytes, w.len, &h), 1);
        assert_int_equal(h.length, w.len);
        return w.len - AP_HEAD;
}

static int get_request(enum ap_type type, const struct fp_request *in, struct fp_request *out) {
        w = wr_to(bytes, sizeof(bytes));
        fp_put_request(&w, type, 1, in);
        return fp_get_request(type, body, length(), out);
}

static void request_is_read_back_and_its_paths_are_absolute(void **state) {
        static char long_path[AP_PATH_MAX + 1];
        struct fp_request in = { .flags = FP_WITH_XATTRS | FP_RECURSIVE,
                                 .offset = 1ull << 40,
                                 .length = 7,
                                 .path = "/a" },
                          out;
        size_t n;

        (void) state;
        assert_int_equal(get_request(AP_READ, &in, &out), 0);
        assert_true(out.flags == in.flags && out.offset == in.offset && out.length == 7);
        assert_string_equal(out.path, "/a");
        assert_string_equal(out.other, "");
        n = length();
        for (size_t k = 0; k < n; k++)
                assert_int_equal(fp_get_request(AP_READ, body, k, &out), -EBADMSG);
        assert_int_equal(get_request(AP_MOVE, &in, &out), -EBADMSG); /* to where? */
        in.other = "/b";
        assert_int_equal(get_request(AP_READ, &in, &out), -EBADMSG);
        assert_int_equal(get_request(AP_MOVE, &in, &out), 0);
        in.other = "b";
        assert_int_equal(get_request(AP_MOVE, &in, &out), -EBADMSG);
        in = (struct fp_request){ .path = "a" };
        assert_int_equal(get_request(AP_STAT, &in, &out), -EBADMSG);
        memset(long_path, '/', AP_PATH_MAX);
        in.path = long_path;
        assert_int_equal(get_request(AP_STAT, &in, &out), -EBADMSG);
        long_path[AP_PATH_MAX - 1] = '\0';
        assert_int_equal(get_request(AP_STAT, &in, &out), 0);
        in.flags = 8;
        assert_int_equal(get_request(AP_STAT, &in, &out), -EBADMSG);
}

static struct fp_entry sample(void) {
        struct fp_entry e = { .mode = 0120777,
                              .target_mode = 0100644,
                              .uid = 1000,
                              .gid = 1001,
                              .size = 1ull << 50,
                              .mtime_s = -5,
                              .mtime_ns = 999999999,
                              .path = "/l",
                              .target = "/t",
                              .n_xattrs = 2 };

        e.xattrs[0] = (struct fp_xattr){ "user.a", (const uint8_t *) "\0\1", 2 };
        e.xattrs[1] = (struct fp_xattr){ "user.b", (const uint8_t *) "", 0 };
        return e;
}

static int get_entry(const struct fp_entry *in, struct fp_entry *out) {
        w = wr_to(bytes, sizeof(bytes));
        fp_put_entry(&w, 1, in);
        return fp_get_entry(body, length(), out);
}

static void entry_is_read_back_whole(void **state) {
        struct fp_entry in = sample(), out;
        size_t n;

        (void) state;
        assert_int_equal(get_entry(&in, &out), 0);
        assert_true(out.mode == in.mode && out.target_mode == in.target_mode && out.size == in.size);
        assert_true(out.uid == 1000 && out.gid == 1001 && out.mtime_s == -5 && out.mtime_ns == 999999999);
        assert_string_equal(out.path, "/l");
        assert_string_equal(out.target, "/t");
        assert_int_equal(out.n_xattrs, 2);
        assert_memory_equal(out.xattrs[0].value, "\0\1", 2);
        n = length();
        for (size_t k = 0; k < n; k++)
                assert_int_equal(fp_get_entry(body, k, &out), -EBADMSG);
        in.mtime_ns = 1000000000;
        assert_int_equal(get_entry(&in, &out), -EBADMSG);
        in = sample();
        in.target = "relative";
        assert_int_equal(get_entry(&in, &out), -EBADMSG);
        in = sample();
        in.path = "";
        assert_int_equal(get_entry(&in, &out), -EBADMSG);
}

static void attributes_are_bounded_and_users_own(void **state) {
        static uint8_t big[FP_XATTR_BYTES];
        struct fp_entry in = sample(), out;

        (void) state;
        in.xattrs[1].name = "security.capability";
        assert_int_equal(get_entry(&in, &out), -EBADMSG);
        in = sample();
        in.xattrs[1].value = big;
        in.xattrs[1].n = FP_XATTR_BYTES - 14;
        assert_int_equal(get_entry(&in, &out), 0);
        in.xattrs[1].n++;
        assert_int_equal(get_entry(&in, &out), -EBADMSG);
        in.n_xattrs = FP_XATTRS + 1;
        w = wr_to(bytes, sizeof(bytes));
        fp_put_entry(&w, 1, &in);
        assert_true(w.bad);
}

static void new_attributes_have_the_prefix_that_is_replaced(void **state) {
        struct fp_xattrs in = { .path = "/f", .prefix = "user.e2b.", .n_xattrs = 1 }, out;

        (void) state;
        in.xattrs[0] = (struct fp_xattr){ "user.e2b.k", (const uint8_t *) "v", 1 };
        for (int i = 0; i < 4; i++) {
                in.xattrs[0].name = i == 1 ? "user.other" : "user.e2b.k";
                in.prefix = i == 2 ? "trusted." : "user.e2b.";
                in.path = i == 3 ? "f" : "/f";
                w = wr_to(bytes, sizeof(bytes));
                fp_put_xattrs(&w, 1, &in);
                assert_int_equal(fp_get_xattrs(body, length(), &out), i == 0 ? 0 : -EBADMSG);
        }
}

static void event_and_usage_are_read_back(void **state) {
        struct fp_event in = { .what = FP_RENAME, .has_entry = 1, .name = "sub/f" }, out;
        uint64_t total, used;

        (void) state;
        w = wr_to(bytes, sizeof(bytes));
        fp_put_event(&w, 1, &in);
        assert_int_equal(fp_get_event(body, length(), &out), 0);
        assert_true(out.what == FP_RENAME && out.has_entry);
        assert_string_equal(out.name, "sub/f");
        for (int i = 0; i < 3; i++) {
                in = (struct fp_event){ .what = i == 0   ? 0
                                                : i == 1 ? FP_OVERFLOW + 1
                                                         : FP_CREATE,
                                        .has_entry = 2,
                                        .name = "" };
                w = wr_to(bytes, sizeof(bytes));
                fp_put_event(&w, 1, &in);
                assert_int_equal(fp_get_event(body, length(), &out), -EBADMSG);
        }
        w = wr_to(bytes, sizeof(bytes));
        fp_put_usage(&w, 1, 10, 3);
        assert_int_equal(fp_get_usage(body, length(), &total, &used), 0);
        assert_true(total == 10 && used == 3);
        w = wr_to(bytes, sizeof(bytes));
        fp_put_usage(&w, 1, 3, 10); /* more than all */
        assert_int_equal(fp_get_usage(body, length(), &total, &used), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(request_is_read_back_and_its_paths_are_absolute),
                cmocka_unit_test(entry_is_read_back_whole),
                cmocka_unit_test(attributes_are_bounded_and_users_own),
                cmocka_unit_test(new_attributes_have_the_prefix_that_is_replaced),
                cmocka_unit_test(event_and_usage_are_read_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
