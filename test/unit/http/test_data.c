/* test_data.c - every case of test/data/http, however the bytes are cut. usage: test_http_data FOLDER */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cases.h"

static void case_is_as_expected(void **state) {
        const struct http_case *c = *state;
        struct buf out = BUF_INIT(4 * CASE_MAX);

        case_dump(c, c->n, 1, &out);
        assert_string_equal(buf_str(&out), c->expected);
        buf_done(&out);
        case_dump(c, 1, 1, &out);
        assert_string_equal(buf_str(&out), c->expected);
        buf_done(&out);
        for (size_t cut = 1; cut < c->n; cut++) {
                case_dump(c, cut, c->n, &out);
                assert_string_equal(buf_str(&out), c->expected);
                buf_done(&out);
        }
}

int main(int argc, char **argv) {
        struct http_case *cases;
        struct CMUnitTest *tests;
        size_t n;

        if (argc != 2)
                return 1;
        n = cases_read(argv[1], &cases);
        tests = calloc(n, sizeof(*tests));
        for (size_t i = 0; tests && i < n; i++)
                tests[i] = (struct CMUnitTest){ .name = cases[i].name,
                                                .test_func = case_is_as_expected,
                                                .initial_state = &cases[i] };
        return _cmocka_run_group_tests("http data", tests, n, NULL, NULL);
}
