/* test_parse.c - the kernel's texts about control groups, of machines of every kind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "cgroup/parse.h"

static const char hybrid[] =
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:10 - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:11 master:2 - cgroup cgroup rw,memory\n"
        "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
        "38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
        "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
        "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

static const char hybrid_member[] = "9:name=systemd:/user.slice/a\n"
                                    "8:pids:/user.slice/user-1000.slice\n"
                                    "4:memory:/box/d5b29e\n"
                                    "3:cpuset:/\n"
                                    "1:cpu,cpuacct:/user.slice\n"
                                    "0::/user.slice/user-1000.slice/run:7.scope\n";

static const struct cgroup_mount *find(const struct cgroup_layout *l, bool v2, unsigned ctls) {
        for (size_t i = 0; i < l->n; i++)
                if (l->mounts[i].v2 == v2 && (l->mounts[i].ctls & ctls) == ctls)
                        return &l->mounts[i];
        return NULL;
}

static void hybrid_machine_has_each_controller_and_v2(void **state) {
        struct cgroup_layout l;

        (void) state;
        cgroup_parse_mountinfo(hybrid, &l);
        assert_int_equal(l.n, 6); /* cpuset and name=systemd are nobody's business */
        assert_string_equal(find(&l, true, 0)->point, "/sys/fs/cgroup/unified");
        assert_string_equal(find(&l, false, BIT(CGROUP_CPU) | BIT(CGROUP_CPUACCT))->point,
                            "/sys/fs/cgroup/cpu,cpuacct");
        assert_string_equal(find(&l, false, BIT(CGROUP_MEMORY))->root, "/");
        assert_non_null(find(&l, false, BIT(CGROUP_IO)));
        assert_non_null(find(&l, false, BIT(CGROUP_FREEZER)));
        assert_non_null(find(&l, false, BIT(CGROUP_PIDS)));
}

static void pure_v2_machine_is_one_mount(void **state) {
        struct cgroup_layout l;

        (void) state;
        cgroup_parse_mountinfo("29 22 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
                               "rw,nsdelegate,memory_recursiveprot\n",
                               &l);
        assert_int_equal(l.n, 1);
        assert_true(l.mounts[0].v2);
        assert_int_equal(l.mounts[0].ctls, 0);
        assert_string_equal(l.mounts[0].point, "/sys/fs/cgroup");
}

static void container_without_own_namespace_sees_its_group_as_root(void **state) {
        struct cgroup_layout l;
        char home[CGROUP_PATH], own[CGROUP_PATH];

        (void) state;
        cgroup_parse_mountinfo("900 880 0:32 /docker/4f1c /sys/fs/cgroup/memory ro,nosuid master:11 - cgroup cgroup "
                               "rw,memory\n",
                               &l);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.mounts[0].root, "/docker/4f1c");
        assert_int_equal(cgroup_parse_member("4:memory:/docker/4f1c\n", false, CGROUP_MEMORY, own, sizeof(own)), 0);
        assert_int_equal(cgroup_parse_home(l.mounts[0].root, own, home, sizeof(home)), 0);
        assert_string_equal(home, "");
}

static void escapes_in_mount_points_are_undone(void **state) {
        struct cgroup_layout l;

        (void) state;
        cgroup_parse_mountinfo("1 2 0:3 /a\\134b /mnt/my\\040groups\\011x rw - cgroup2 none rw\n", &l);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.mounts[0].root, "/a\\b");
        assert_string_equal(l.mounts[0].point, "/mnt/my groups\tx");
}

static void malformed_lines_are_left_out(void **state) {
        static const char *const bad[] = {
                "",
                "\n\n",
                " cgroup",
                "1 2 0:3 / /x rw cgroup2 none rw\n",           /* no separator */
                "1 2 0:3 / /x rw - cgroup2 none",              /* no options */
                "1 2 0:3 / x rw - cgroup2 none rw\n",          /* relative point */
                "1 2 0:3 / /x\\9 rw - cgroup2 none rw\n",      /* not octal */
                "1 2 0:3 / /x\\000y rw - cgroup2 none rw\n",   /* a NUL */
                "1 2 0:3 / /x\\04 rw - cgroup2 none rw\n",     /* short escape */
                "1 2 0:3 / /x rw - cgroup none rw,name=sys\n", /* carries nothing of ours */
                "1 2 0:3 / /x rw - cgroup3 none rw,memory\n",  /* another file system */
                "1 2 0:3 / /x rw - ext4 cgroup2 rw,memory\n",  /* only the source is named so */
                "1 2 0:3 / /x rw - cgroup none rw,memoryx\n",  /* only the prefix is right */
        };
        struct cgroup_layout l;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                cgroup_parse_mountinfo(bad[i], &l);
                assert_int_equal(l.n, 0);
        }
}

static void path_too_long_is_left_out_not_cut(void **state) {
        struct cgroup_layout l;
        char line[3 * CGROUP_PATH], name[2 * CGROUP_PATH];

        (void) state;
        memset(name, 'a', sizeof(name));
        name[CGROUP_PATH - 2] = '\0'; /* with its slash one byte below the capacity */
        (void) snprintf(line, sizeof(line), "1 2 0:3 / /%s rw - cgroup2 none rw\n", name);
        cgroup_parse_mountinfo(line, &l);
        assert_int_equal(l.n, 1);
        assert_int_equal(strlen(l.mounts[0].point), CGROUP_PATH - 1);
        name[CGROUP_PATH - 2] = 'a';
        name[CGROUP_PATH - 1] = '\0';
        (void) snprintf(line, sizeof(line), "1 2 0:3 / /%s rw - cgroup2 none rw\n", name);
        cgroup_parse_mountinfo(line, &l);
        assert_int_equal(l.n, 0);
}

static void usual_place_wins_over_other_mounts(void **state) {
        struct cgroup_layout l;

        (void) state;
        cgroup_parse_mountinfo("1 2 0:3 / /chroot/cg rw - cgroup2 none rw\n"
                               "2 2 0:3 / /sys/fs/cgroup rw - cgroup2 none rw\n"
                               "3 2 0:3 / /later rw - cgroup2 none rw\n",
                               &l);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.mounts[0].point, "/sys/fs/cgroup");
}

static void last_mount_at_one_place_is_on_top(void **state) {
        struct cgroup_layout l;

        (void) state;
        cgroup_parse_mountinfo("1 2 0:3 / /sys/fs/cgroup rw - cgroup2 none rw\n"
                               "2 2 0:3 /box /sys/fs/cgroup rw - cgroup2 none rw\n",
                               &l);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.mounts[0].root, "/box");
}

static void more_hierarchies_than_fit_are_ignored(void **state) {
        char text[4096] = "";
        struct cgroup_layout l;
        size_t n = 0;

        (void) state;
        for (int i = 1; i < 16; i++) /* each bit pattern passes for a hierarchy of its own */
                n += (size_t) snprintf(text + n, sizeof(text) - n, "1 2 0:3 / /m%d rw - cgroup none rw%s%s%s%s\n", i,
                                       i & 1 ? ",memory" : "", i & 2 ? ",cpu" : "", i & 4 ? ",pids" : "",
                                       i & 8 ? ",blkio" : "");
        cgroup_parse_mountinfo(text, &l);
        assert_int_equal(l.n, CGROUP_MOUNTS);
}

static void member_line_is_found_by_controller(void **state) {
        char path[CGROUP_PATH];

        (void) state;
        assert_int_equal(cgroup_parse_member(hybrid_member, false, CGROUP_MEMORY, path, sizeof(path)), 0);
        assert_string_equal(path, "/box/d5b29e");
        assert_int_equal(cgroup_parse_member(hybrid_member, false, CGROUP_CPUACCT, path, sizeof(path)), 0);
        assert_string_equal(path, "/user.slice");
        assert_int_equal(cgroup_parse_member(hybrid_member, true, CGROUP_CTLS, path, sizeof(path)), 0);
        assert_string_equal(path, "/user.slice/user-1000.slice/run:7.scope"); /* the colon belongs to the path */
        assert_int_equal(cgroup_parse_member(hybrid_member, false, CGROUP_FREEZER, path, sizeof(path)), -ENOENT);
        assert_int_equal(cgroup_parse_member("4:memory:/docker/4f1c", true, CGROUP_CTLS, path, sizeof(path)), -ENOENT);
        assert_int_equal(cgroup_parse_member("4:memory:rel\n", false, CGROUP_MEMORY, path, sizeof(path)), -EINVAL);
        assert_int_equal(cgroup_parse_member("4:memory:/123456\n", false, CGROUP_MEMORY, path, 7), -ENAMETOOLONG);
        assert_int_equal(cgroup_parse_member("4:memory\n:::\n", false, CGROUP_MEMORY, path, sizeof(path)), -ENOENT);
}

static void home_is_relative_to_the_mount(void **state) {
        static const struct {
                const char *root, *own, *home; /* NULL: cannot be seen */
        } cases[] = {
                { "/", "/", "" },
                { "/", "/user.slice/a.scope", "user.slice/a.scope" },
                { "/docker/x", "/docker/x", "" },
                { "/docker/x", "/docker/x/init", "init" },
                { "/docker/x", "/docker/xy", NULL },
                { "/docker/x", "/other", NULL },
                { "/docker/x", "/", NULL },
                { "/..", "/", NULL },
                { "/../..", "/../..", NULL },
                { "/", "/../outside", NULL },
                { "/", "/a..b/c", "a..b/c" },
                { "/", "/a.scope/gabion-supervisor", "a.scope" },
                { "/", "/gabion-supervisor", "" },
                { "/a/gabion-supervisor", "/a/gabion-supervisor", "" },
                { "/", "/a/xgabion-supervisor", "a/xgabion-supervisor" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char home[CGROUP_PATH] = "unset";
                int r = cgroup_parse_home(cases[i].root, cases[i].own, home, sizeof(home));

                assert_int_equal(r, cases[i].home ? 0 : -ENOENT);
                assert_string_equal(home, cases[i].home ? cases[i].home : "unset");
        }
}

static void keys_match_whole_words(void **state) {
        static const char events[] = "low 0\nhigh 1\nmax 7\noom 2\noom_kill 3\noom_group_kill 4\n";
        uint64_t v = 99;

        (void) state;
        assert_int_equal(cgroup_parse_key(events, "oom_kill", &v), 0);
        assert_int_equal(v, 3);
        assert_int_equal(cgroup_parse_key(events, "oom", &v), 0);
        assert_int_equal(v, 2);
        v = 99;
        assert_int_equal(cgroup_parse_key(events, "oo", &v), -ENOENT);
        assert_int_equal(cgroup_parse_key("max\n", "max", &v), -ENOENT);
        assert_int_equal(cgroup_parse_key("max -1\n", "max", &v), -EINVAL);
        assert_int_equal(cgroup_parse_key("max 99999999999999999999999\n", "max", &v), -ERANGE);
        assert_int_equal(v, 99);
}

static void controllers_are_read_by_v2_names(void **state) {
        (void) state;
        assert_int_equal(cgroup_parse_controllers("cpuset cpu io memory pids\n"),
                         BIT(CGROUP_CPU) | BIT(CGROUP_IO) | BIT(CGROUP_MEMORY) | BIT(CGROUP_PIDS));
        assert_int_equal(cgroup_parse_controllers("blkio cpuset\n"), 0);
        assert_int_equal(cgroup_parse_controllers("\n"), 0);
        assert_int_equal(cgroup_parse_controllers(""), 0);
}

static void words_belong_to_their_line(void **state) {
        static const char io_max[] = "254:0 rbps=1000 wbps=max riops=max wiops=max\n8:0 rbps=max wbps=2000\n";

        (void) state;
        assert_true(cgroup_parse_has_word(io_max, "254:0", "rbps=1000"));
        assert_false(cgroup_parse_has_word(io_max, "254:0", "wbps=2000"));
        assert_false(cgroup_parse_has_word(io_max, "254:0", "rbps=100"));
        assert_false(cgroup_parse_has_word(io_max, "54:0", "rbps=1000"));
        assert_true(cgroup_parse_has_word(io_max, "8:0", "wbps=2000"));
        assert_false(cgroup_parse_has_word("", "8:0", "wbps=2000"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(hybrid_machine_has_each_controller_and_v2),
                cmocka_unit_test(pure_v2_machine_is_one_mount),
                cmocka_unit_test(container_without_own_namespace_sees_its_group_as_root),
                cmocka_unit_test(escapes_in_mount_points_are_undone),
                cmocka_unit_test(malformed_lines_are_left_out),
                cmocka_unit_test(path_too_long_is_left_out_not_cut),
                cmocka_unit_test(usual_place_wins_over_other_mounts),
                cmocka_unit_test(last_mount_at_one_place_is_on_top),
                cmocka_unit_test(more_hierarchies_than_fit_are_ignored),
                cmocka_unit_test(member_line_is_found_by_controller),
                cmocka_unit_test(home_is_relative_to_the_mount),
                cmocka_unit_test(keys_match_whole_words),
                cmocka_unit_test(controllers_are_read_by_v2_names),
                cmocka_unit_test(words_belong_to_their_line),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
