/* Documents beside a chain: kept, found, and not lost with what a crash left half done. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "logs.h"

static void document_is(const char *sandbox, const char *kind, const char *want) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        size_t n = 0;
        int r = ledger_statement_read(logs_dir, "acme", sandbox, kind, &text, &n, &err);

        assert_int_equal(r, want ? 0 : -ENOENT);
        if (want) {
                assert_int_equal(n, strlen(want));
                assert_string_equal(text, want);
        }
}

/* The number-th file of that end, in order; returns how many there are. */
static size_t file_of(size_t number, const char *end, char path[256]) {
        char pattern[128];
        glob_t g = { 0 };
        size_t n;

        (void) snprintf(pattern, sizeof(pattern), "%s/acme/statements/*.%s", logs_dir, end);
        assert_int_equal(glob(pattern, 0, NULL, &g), 0);
        n = g.gl_pathc;
        assert_true(number <= n);
        (void) snprintf(path, 256, "%s", g.gl_pathv[number - 1]);
        globfree(&g);
        return n;
}

static void append_to(size_t number, const char *end, const char *text) {
        char path[256];
        FILE *f;

        (void) file_of(number, end, path);
        f = fopen(path, "ae");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void documents_are_found_whatever_a_crash_left(void **state) {
        static const char a[] = "k3v9x2m4q8r7t1w5z6aa", b[] = "k3v9x2m4q8r7t1w5z6bb", c[] = "k3v9x2m4q8r7t1w5z6cc";
        struct ledger *l = logs_open(0);
        struct err err = { 0 };
        char path[256];

        (void) state;
        logs_fill(l, "acme", 1, 1);
        document_is(a, "start", NULL);
        assert_int_equal(ledger_statement(l, "acme", a, "start", "{\"a\":1}", 7, &err), 0);
        assert_int_equal(ledger_statement(l, "acme", a, "end", "{}", 2, &err), 0);
        assert_int_equal(ledger_statement(l, "acme", a, "start", "{\"a\":2}", 7, &err), 0);
        document_is(a, "start", "{\"a\":1}"); /* the first counts */
        document_is(a, "end", "{}");
        document_is(b, "start", NULL);
        (void) ledger_free(l);
        append_to(1, "log", "{\"half"); /* a document without its line */
        l = logs_open(0);
        assert_int_equal(ledger_statement(l, "acme", b, "start", "[1]", 3, &err), 0);
        (void) ledger_free(l);
        append_to(2, "idx", "k3v9x2m4q8r7"); /* half a line */
        l = logs_open(0);
        assert_int_equal(ledger_statement(l, "acme", c, "end", "[2]", 3, &err), 0);
        document_is(a, "start", "{\"a\":1}");
        document_is(b, "start", "[1]");
        document_is(c, "end", "[2]");
        (void) ledger_free(l);
        l = logs_open(8); /* a small file: each goes into the next one */
        assert_int_equal(ledger_statement(l, "acme", b, "end", "[3,4,5,6]", 9, &err), 0);
        assert_int_equal(ledger_statement(l, "acme", c, "start", "[7]", 3, &err), 0);
        document_is(b, "end", "[3,4,5,6]");
        document_is(c, "start", "[7]");
        (void) ledger_free(l);
        assert_int_equal(file_of(1, "log", path), 4);
        assert_int_equal(file_of(1, "idx", path), 4);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(documents_are_found_whatever_a_crash_left, logs_set_up, logs_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
