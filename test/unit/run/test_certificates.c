/* test_certificates.c - the variables by which programs learn which certificates to trust. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "plan/plan.h"
#include "run/network.h"

static const char *value(const char *const *env, const char *name) {
        const char *found = NULL;

        for (size_t i = 0; env[i]; i++)
                if (str_has_prefix(env[i], name)) {
                        assert_null(found); /* never twice */
                        found = env[i] + strlen(name);
                }
        return found;
}

static void programs_are_told_unless_the_caller_was_first(void **state) {
        static const char *const env[] = { "A=b", "PIP_CERT=/mine", NULL };
        static struct plan plan = { .own_certificates = true };
        const char *const *all = certificates_env(&plan, env);

        (void) state;
        assert_string_equal(value(all, "A="), "b");
        assert_string_equal(value(all, "PIP_CERT="), "/mine");
        assert_string_equal(value(all, "SSL_CERT_FILE="), PLAN_BUNDLE);
        assert_string_equal(value(all, "JAVA_TOOL_OPTIONS="), "-Djavax.net.ssl.trustStore=/" PLAN_JAVA);
        plan.java_looks_there = true; /* a JVM prints a line about that variable: only where it is needed */
        assert_null(value(certificates_env(&plan, env), "JAVA_TOOL_OPTIONS="));
}

static void the_hosts_own_need_no_words(void **state) {
        static const char *const env[] = { "A=b", NULL };
        static struct plan plan;

        (void) state;
        assert_ptr_equal(certificates_env(&plan, env), env);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(programs_are_told_unless_the_caller_was_first),
                cmocka_unit_test(the_hosts_own_need_no_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
