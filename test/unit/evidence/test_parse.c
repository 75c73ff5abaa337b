/* test_parse.c - the two texts of procfs that the read-back believes: nothing missing, nothing twice, nothing odd. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "evidence/evidence.h"

/* As Linux 6.18 writes it, for a command at the gate. */
static const char *const lines[] = {
        "Name:\tsh\n",
        "Umask:\t0022\n",
        "State:\tS (sleeping)\n",
        "Tgid:\t2\n",
        "Pid:\t2\n",
        "PPid:\t1\n",
        "TracerPid:\t0\n",
        "Uid:\t301000\t301001\t301002\t301003\n",
        "Gid:\t4294967294\t301001\t301002\t301003\n",
        "FDSize:\t64\n",
        "Groups:\t \n",
        "NStgid:\t2\n",
        "VmHWM:\t     100 kB\n",
        "SigQ:\t1/96343\n",
        "CapInh:\t0000000000000001\n",
        "CapPrm:\t0000000000000002\n",
        "CapEff:\t000001ffffffffff\n",
        "CapBnd:\tffffffffffffffff\n",
        "CapAmb:\t0000000000000005\n",
        "NoNewPrivs:\t1\n",
        "Seccomp:\t2\n",
        "Seccomp_filters:\t1\n",
        "Speculation_Store_Bypass:\tthread vulnerable\n",
        "nonvoluntary_ctxt_switches:\t2\n",
};

static char text[4096];
static struct evidence_status status;

/* All lines, with one of them left out (NULL) or replaced. */
static const char *with(const char *key, const char *instead) {
        size_t at = 0;

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                const char *line = key && str_has_prefix(lines[i], key) ? instead : lines[i];
                size_t n = line ? strlen(line) : 0;

                if (n > 0)
                        memcpy(text + at, line, n);
                at += n;
        }
        text[at] = '\0';
        return text;
}

static void refused(const char *key, const char *instead) {
        struct evidence_status untouched = { .seen = 12345 };

        if (evidence_parse_status(with(key, instead), &untouched) != -EBADMSG)
                fail_msg("accepted: %s", instead ? instead : key);
        assert_int_equal(untouched.seen, 12345);
}

static void status_of_a_real_process_is_read_in_full(void **state) {
        (void) state;
        assert_int_equal(evidence_parse_status(with(NULL, NULL), &status), 0);
        assert_int_equal(status.uid[0], 301000);
        assert_int_equal(status.uid[3], 301003);
        assert_int_equal(status.gid[0], 4294967294);
        assert_int_equal(status.gid[1], 301001);
        assert_false(status.has_groups);
        assert_int_equal(status.inheritable, 1);
        assert_int_equal(status.permitted, 2);
        assert_int_equal(status.effective, 0x1ffffffffff);
        assert_int_equal(status.bounding, UINT64_MAX);
        assert_int_equal(status.ambient, 5);
        assert_int_equal(status.no_new_privs, 1);
        assert_int_equal(status.seccomp, 2);
        assert_int_equal(status.seccomp_filters, 1);
}

static void status_without_any_one_line_is_refused(void **state) {
        static const char *const keys[] = { "Uid:",    "Gid:",    "Groups:", "CapInh:",  "CapPrm:", "CapEff:",
                                            "CapBnd:", "CapAmb:", "NoNew",   "Seccomp:", "Seccomp_" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                refused(keys[i], NULL);
        assert_int_equal(evidence_parse_status("", &status), -EBADMSG);
        assert_int_equal(evidence_parse_status("\n\n\n", &status), -EBADMSG);
}

static void status_with_a_line_twice_is_refused(void **state) {
        (void) state;
        refused("CapEff:", "CapEff:\t0000000000000000\nCapEff:\t0000000000000000\n");
        refused("Name:", "Name:\tx\nUid:\t0\t0\t0\t0\n");
        refused("nonvol", "Groups:\t\n");
        refused("nonvol", "Seccomp:\t2\n");
}

static void status_with_odd_numbers_is_refused(void **state) {
        static const struct {
                const char *key, *line;
        } rows[] = {
                { "CapEff:", "CapEff:\t\n" },
                { "CapEff:", "CapEff:\t00000000000000000\n" }, /* 17 digits */
                { "CapEff:", "CapEff:\t0x00\n" },
                { "CapEff:", "CapEff:\t00000000000000FF\n" },
                { "CapEff:", "CapEff:\t0000000000000000 0000000000000001\n" },
                { "CapEff:", "CapEff:\t-1\n" },
                { "Seccomp:", "Seccomp:\t12345678901\n" }, /* 11 digits */
                { "Seccomp:", "Seccomp:\t2x\n" },
                { "Seccomp:", "Seccomp:\n" },
                { "NoNew", "NoNewPrivs:\t1 1\n" },
                { "Uid:", "Uid:\t1000\t1000\t1000\n" },
                { "Uid:", "Uid:\t1000\t1000\tx\t1000\n" },
                { "Uid:", "Uid:\t\n" },
                { "Gid:", "Gid:\t1000\n" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                refused(rows[i].key, rows[i].line);
}

static void status_knows_whether_there_are_groups(void **state) {
        (void) state;
        assert_int_equal(evidence_parse_status(with("Groups:", "Groups:\t27 1000 \n"), &status), 0);
        assert_true(status.has_groups);
        assert_int_equal(evidence_parse_status(with("Groups:", "Groups:\t0\n"), &status), 0);
        assert_true(status.has_groups);
        assert_int_equal(evidence_parse_status(with("Groups:", "Groups:\n"), &status), 0);
        assert_false(status.has_groups);
}

static void keys_count_at_the_beginning_of_a_line_only(void **state) {
        (void) state;
        assert_int_equal(evidence_parse_status(with("Name:", "Name:\tCapEff:\t0\n"), &status), 0);
        assert_int_equal(status.effective, 0x1ffffffffff);
        refused("CapEff:", " CapEff:\t0000000000000000\n");
        refused("CapEff:", "capeff:\t0000000000000000\n");
}

static void the_last_line_needs_no_newline(void **state) {
        (void) state;
        assert_int_equal(evidence_parse_status(with("nonvol", ""), &status), 0);
        (void) with("Speculation", "");
        text[strlen(text) - strlen("\nnonvoluntary_ctxt_switches:\t2\n")] = '\0';
        assert_int_equal(evidence_parse_status(text, &status), 0);
        assert_int_equal(status.seccomp_filters, 1);
}

static struct evidence_mount mounts[4];

static int parse(const char *table) {
        assert_true(strlen(table) < sizeof(text));
        memcpy(text, table, strlen(table) + 1);
        memset(mounts, 0, sizeof(mounts));
        return evidence_parse_mounts(text, mounts, ARRAY_SIZE(mounts));
}

static void mounts_of_a_real_table_are_cut_into_fields(void **state) {
        (void) state;
        assert_int_equal(parse("64 65 0:40 / /proc ro,nosuid,nodev,noexec,relatime - proc none rw\n"
                               "92 65 254:0 /usr /usr ro,nosuid,nodev,relatime - ext4 /dev/vda rw,discard\n"
                               "88 65 0:41 /tmp /tmp rw,nosuid,nodev,relatime - tmpfs none rw,size=458752k,mode=755\n"),
                         3);
        assert_string_equal(mounts[0].root, "/");
        assert_string_equal(mounts[0].target, "/proc");
        assert_string_equal(mounts[0].options, "ro,nosuid,nodev,noexec,relatime");
        assert_string_equal(mounts[0].fstype, "proc");
        assert_string_equal(mounts[0].source, "none");
        assert_string_equal(mounts[1].root, "/usr");
        assert_string_equal(mounts[1].source, "/dev/vda");
        assert_string_equal(mounts[2].target, "/tmp");
        for (size_t i = 0; i < 3; i++)
                assert_false(mounts[i].propagates);
        assert_int_equal(parse(""), 0);
}

static void mounts_that_propagate_are_marked(void **state) {
        (void) state;
        assert_int_equal(parse("1 0 0:1 / /a rw shared:7 - tmpfs none rw\n"
                               "2 0 0:1 / /b rw master:1 propagate_from:2 - tmpfs none rw\n"
                               "3 0 0:1 / /c rw unbindable - tmpfs none rw\n"
                               "4 0 0:1 / /d rw unbindable shared:1 master:2 - tmpfs none rw"),
                         4);
        assert_true(mounts[0].propagates);
        assert_true(mounts[1].propagates);
        assert_false(mounts[2].propagates);
        assert_true(mounts[3].propagates);
        assert_string_equal(mounts[3].fstype, "tmpfs");
        /* The tag's name in any other field means nothing. */
        assert_int_equal(parse("1 0 0:1 /shared:1 /master:2 rw - tmpfs shared:3 shared:4\n"), 1);
        assert_false(mounts[0].propagates);
}

static void mounts_undo_the_kernels_escapes(void **state) {
        (void) state;
        assert_int_equal(parse("1 0 0:1 /a\\040b /c\\011d\\012e\\134f rw - ext4 /dev/x\\040y rw\n"), 1);
        assert_string_equal(mounts[0].root, "/a b");
        assert_string_equal(mounts[0].target, "/c\td\ne\\f");
        assert_string_equal(mounts[0].source, "/dev/x\\040y");
        /* What is no escape stays. */
        assert_int_equal(parse("1 0 0:1 / /a\\04 rw - ext4 x rw\n1 0 0:1 / /b\\089 rw - ext4 x rw\n"), 2);
        assert_string_equal(mounts[0].target, "/a\\04");
        assert_string_equal(mounts[1].target, "/b\\089");
        /* A dash in a path is not the separator; a path that is a dash cannot be: paths begin with a slash. */
        assert_int_equal(parse("1 0 0:1 /- /x-y rw - ext4 - rw\n"), 1);
        assert_string_equal(mounts[0].target, "/x-y");
        assert_string_equal(mounts[0].source, "-");
}

static void mounts_cut_short_anywhere_are_refused(void **state) {
        static const char whole[] = "92 65 254:0 /usr /usr ro,nosuid shared:3 - ext4 /dev/vda rw";
        size_t last = strlen("92 65 254:0 /usr /usr ro,nosuid shared:3 - ext4 ");

        (void) state;
        for (size_t n = 1; n <= last; n++) {
                char cut[sizeof(whole) + 1];

                memcpy(cut, whole, n);
                cut[n] = '\0';
                if (parse(cut) != -EBADMSG)
                        fail_msg("accepted: '%s'", cut);
        }
        assert_int_equal(parse(whole), 1);
        assert_int_equal(parse("\n"), -EBADMSG);
        assert_int_equal(parse("1 0 0:1 / /a rw - tmpfs none rw\n\n2 0 0:1 / /b rw - tmpfs none rw\n"), -EBADMSG);
}

static void more_mounts_than_room_are_refused(void **state) {
        static const char line[] = "1 0 0:1 / /a rw - tmpfs none rw\n";
        char table[8 * sizeof(line)] = "";

        (void) state;
        for (size_t i = 0; i < 4; i++)
                memcpy(table + i * (sizeof(line) - 1), line, sizeof(line));
        assert_int_equal(parse(table), 4);
        memcpy(table + 4 * (sizeof(line) - 1), line, sizeof(line));
        assert_int_equal(parse(table), -E2BIG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(status_of_a_real_process_is_read_in_full),
                cmocka_unit_test(status_without_any_one_line_is_refused),
                cmocka_unit_test(status_with_a_line_twice_is_refused),
                cmocka_unit_test(status_with_odd_numbers_is_refused),
                cmocka_unit_test(status_knows_whether_there_are_groups),
                cmocka_unit_test(keys_count_at_the_beginning_of_a_line_only),
                cmocka_unit_test(the_last_line_needs_no_newline),
                cmocka_unit_test(mounts_of_a_real_table_are_cut_into_fields),
                cmocka_unit_test(mounts_that_propagate_are_marked),
                cmocka_unit_test(mounts_undo_the_kernels_escapes),
                cmocka_unit_test(mounts_cut_short_anywhere_are_refused),
                cmocka_unit_test(more_mounts_than_room_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
