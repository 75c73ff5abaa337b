/* The probe's report is written inside a sandbox: only a whole and well-formed one counts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "prove/prove.h"

static struct prove_report r;

static int parse(const char *text) {
        memset(&r, 0, sizeof(r));
        memcpy(r.output, text, strlen(text));
        return prove_parse(&r, strlen(text));
}

#define HEAD "gabion-probe 1\n"
#define ROW(id, severity, verdict) id "\t" severity "\t" verdict "\t1\t20\twhat\tCVE\tnote\n"

static void whole_report_is_read(void **state) {
        (void) state;
        assert_int_equal(parse(HEAD ROW("A01", "crit", "stopped") ROW("C12b", "med", "reached") "end 2\n"), 0);
        assert_int_equal(r.n_attempts, 2);
        assert_string_equal(r.attempts[1].id, "C12b");
        assert_string_equal(r.attempts[1].note, "note");
        assert_int_equal(r.attempts[1].severity, PROVE_MED);
        assert_int_equal(r.attempts[0].err_no, 1);
        assert_int_equal(r.attempts[0].ms, 20);
        assert_int_equal(prove_count(&r, PROVE_MED, 0), 1);
        assert_int_equal(prove_count(&r, PROVE_MED, 'A'), 0);
        assert_true(prove_passed(&r));
}

static void cut_or_forged_reports_are_refused(void **state) {
        static const char *const bad[] = {
                "",
                HEAD,
                "gabion-probe 2\nend 0\n",
                HEAD ROW("A01", "crit", "stopped"),                 /* no end */
                HEAD ROW("A01", "crit", "stopped") "end 2\n",       /* one is missing */
                HEAD ROW("A01", "crit", "stopped") "end 1",         /* cut off */
                HEAD ROW("A01", "crit", "stopped") "end 1\nmore\n", /* something behind the end */
                HEAD ROW("Z01", "crit", "stopped") "end 1\n",       /* no such group */
                HEAD ROW("A01", "fatal", "stopped") "end 1\n",
                HEAD ROW("A01", "crit", "fine") "end 1\n",
                HEAD "A01\tcrit\tstopped\t-1\t0\ta\tb\tc\nend 1\n",
                HEAD "A01\tcrit\tstopped\t1\t0\ta\tb\nend 1\n",          /* a field is missing */
                HEAD "A01\tcrit\tstopped\t1\t0\ta\tb\tc\td\nend 1\n",    /* one too many */
                HEAD "A01\tcrit\tstopped\t1\t0\ta\tb\t\033[2J\nend 1\n", /* for the reader's terminal */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(parse(bad[i]), -EBADMSG);
}

static void an_announced_attempt_must_be_the_next_one(void **state) {
        (void) state;
        assert_int_equal(parse(HEAD ROW("A01", "crit", "started") ROW("A01", "crit", "stopped") "end 1\n"), 0);
        assert_int_equal(r.n_attempts, 1);
        assert_int_equal(r.attempts[0].verdict, PROVE_STOPPED);
        assert_int_equal(parse(HEAD ROW("A01", "crit", "started") ROW("A02", "crit", "stopped") "end 1\n"), -EBADMSG);
        assert_int_equal(parse(HEAD ROW("A01", "crit", "started") ROW("A02", "crit", "started") "end 0\n"), -EBADMSG);
        assert_int_equal(parse(HEAD ROW("A01", "crit", "started") "end 0\n"), -EBADMSG);
}

static void a_sandbox_that_died_stopped_the_attempt_under_way(void **state) {
        static const char whole[] = HEAD ROW("A01", "crit", "stopped");
        char text[512], id[PROVE_ID];
        int n;

        (void) state;
        /* the last line is cut in the middle */
        (void) snprintf(text, sizeof(text), "%s%s", whole, ROW("I01a", "high", "started") "I01a\thi");
        n = prove_died(text, strlen(text), id);
        assert_int_equal(n, strlen(whole) + strlen(ROW("I01a", "high", "started")));
        assert_string_equal(id, "I01a");
        (void) snprintf(text + n, sizeof(text) - (size_t) n, "%s", ROW("I02", "high", "reached") "end 3\n");
        assert_int_equal(parse(text), 0);
        assert_int_equal(r.attempts[1].verdict, PROVE_STOPPED);
        assert_int_equal(r.attempts[2].verdict, PROVE_REACHED);
}

static void a_report_that_ends_elsewhere_died_of_nothing(void **state) {
        static const char *const bad[] = { "",
                                           HEAD,
                                           HEAD ROW("A01", "crit", "stopped"),
                                           HEAD "end 0\n",
                                           "x",
                                           "\n",
                                           "\t\t\n",
                                           HEAD "Z\tstarted\n",
                                           HEAD "A01\tcrit\tstart\n",
                                           HEAD "A0123456789abc\tcrit\tstarted\n" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                char text[256], id[PROVE_ID];

                (void) snprintf(text, sizeof(text), "%s", bad[i]);
                assert_int_equal(prove_died(text, strlen(text), id), -EBADMSG);
        }
}

static void crit_or_high_or_a_touched_canary_fails(void **state) {
        (void) state;
        assert_int_equal(parse(HEAD ROW("A01", "high", "reached") "end 1\n"), 0);
        assert_false(prove_passed(&r));
        assert_int_equal(parse(HEAD ROW("A01", "low", "reached") "end 1\n"), 0);
        assert_true(prove_passed(&r));
        r.checks[r.n_checks++] = (struct prove_check){ .what = "canary" };
        assert_false(prove_passed(&r));
        assert_int_equal(parse(HEAD "end 0\n"), 0);
        assert_false(prove_passed(&r)); /* nothing tried proves nothing */
}

static void refused_control_is_a_finding_and_an_allowed_one_is_not(void **state) {
        (void) state;
        assert_int_equal(parse(HEAD ROW("B11", "control", "stopped") ROW("D09", "control", "accepted") "end 2\n"), 0);
        assert_true(prove_is_finding(&r.attempts[0]));
        assert_false(prove_is_finding(&r.attempts[1]));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(whole_report_is_read),
                cmocka_unit_test(cut_or_forged_reports_are_refused),
                cmocka_unit_test(an_announced_attempt_must_be_the_next_one),
                cmocka_unit_test(a_sandbox_that_died_stopped_the_attempt_under_way),
                cmocka_unit_test(a_report_that_ends_elsewhere_died_of_nothing),
                cmocka_unit_test(crit_or_high_or_a_touched_canary_fails),
                cmocka_unit_test(refused_control_is_a_finding_and_an_allowed_one_is_not),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
