/* test_route.c - which path is served by which row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "daemon/route.h"

static char args[REQUEST_ARGS][REQUEST_ARG], allow[ROUTE_ALLOW];

static const char *find(const char *method, const char *path) {
        const struct route *r = route_find(method, path, args, allow);

        return r ? r->pattern : "";
}

static void literals_win_over_parameters(void **state) {
        (void) state;
        assert_string_equal(find("GET", "/sandboxes/metrics"), "/sandboxes/metrics");
        assert_string_equal(find("GET", "/sandboxes/metricsx"), "/sandboxes/{sandboxID}");
        assert_string_equal(args[0], "metricsx");
        assert_string_equal(find("DELETE", "/templates/tags"), "/templates/tags");
}

static void parameters_are_decoded_one_by_one(void **state) {
        (void) state;
        assert_string_equal(find("GET", "/templates/aliases/a%2Fb%3Adefault"), "/templates/aliases/{alias}");
        assert_string_equal(args[0], "a/b:default");
        assert_string_equal(find("DELETE", "/gabion/v1/tenants/t/keys/k"),
                            "/gabion/v1/tenants/{tenantID}/keys/{keyID}");
        assert_string_equal(args[0], "t");
        assert_string_equal(args[1], "k");
}

static void unknown_paths_fit_nothing(void **state) {
        static const char *const bad[] = { "/",
                                           "",
                                           "*",
                                           "/sandbox",
                                           "/sandboxes/",
                                           "//sandboxes",
                                           "/sandboxes//timeout",
                                           "/sandboxes/x/timeout/",
                                           "/sandboxes/x/nothing",
                                           "/Sandboxes",
                                           "/v2",
                                           "/gabion/v1",
                                           "/sandboxes/%zz",
                                           "/sandboxes/%00",
                                           "/sandboxes%2Fx" };
        char giant[2048] = "/sandboxes/";

        (void) state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                if (*find("GET", bad[i]))
                        fail_msg("%s was found", bad[i]);
                assert_string_equal(allow, "");
        }
        memset(giant + strlen(giant), 'a', sizeof(giant) - strlen(giant) - 1);
        assert_string_equal(find("GET", giant), "");
}

static void other_methods_are_told_what_is_possible(void **state) {
        (void) state;
        assert_string_equal(find("PUT", "/sandboxes"), "");
        assert_string_equal(allow, "POST, GET");
        assert_string_equal(find("HEAD", "/sandboxes"), "/sandboxes");
        assert_string_equal(find("HEAD", "/sandboxes/x/timeout"), "");
        assert_string_equal(allow, "POST");
        assert_string_equal(find("get", "/sandboxes"), "");
}

static void every_row_is_found_by_its_own_pattern(void **state) {
        const struct route *r;

        (void) state;
        for (size_t i = 0; (r = route_at(i)); i++) {
                assert_ptr_equal(route_find(r->method, r->pattern, args, allow), r);
                assert_non_null(r->fn);
                assert_true(r->verb != VERB_OPEN || strstr(r->pattern, "health"));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(literals_win_over_parameters),
                cmocka_unit_test(parameters_are_decoded_one_by_one),
                cmocka_unit_test(unknown_paths_fit_nothing),
                cmocka_unit_test(other_methods_are_told_what_is_possible),
                cmocka_unit_test(every_row_is_found_by_its_own_pattern),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
