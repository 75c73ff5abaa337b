/* What a report may claim: calls that reach the kernel, and levels of isolation, each only on facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "prove/dangerous.h"
#include "prove/names.h"

static struct prove_report r;

#define HEAD "gabion-probe 1\n"
#define ROW(id, severity, verdict) id "\t" severity "\t" verdict "\t1\t20\twhat\tCVE\tnote\n"

static void parse(const char *text) {
        memset(&r, 0, sizeof(r));
        memcpy(r.output, text, strlen(text));
        assert_int_equal(prove_parse(&r, strlen(text)), 0);
        memset(r.call_exists, 1, sizeof(r.call_exists));
        r.posture.seen = true;
        r.posture.ns_known = r.posture.ns_new = 0xff;
}

static void a_call_reaches_the_kernel_if_any_attempt_on_it_does(void **state) {
        struct prove_dangerous d;

        (void) state;
        parse(HEAD ROW("C02a", "high", "stopped") ROW("C02b", "high", "reached") ROW("C02c", "high", "stopped")
                      ROW("C01a", "high", "stopped") "end 4\n");
        prove_dangerous(&r, &d);
        assert_int_equal(d.tried, 2);
        assert_int_equal(d.n_reached, 1);
        assert_string_equal(d.reached[0], "bpf");
        assert_int_equal(d.exist, d.known);
}

static void accepted_counts_and_absent_calls_do_not(void **state) {
        struct prove_dangerous d;

        (void) state;
        parse(HEAD ROW("C05a", "high", "accepted") ROW("C08a", "crit", "absent") "end 2\n");
        prove_dangerous(&r, &d);
        assert_int_equal(d.n_reached, 1);
        assert_string_equal(d.reached[0], "ptrace");
        memset(r.call_exists, 0, sizeof(r.call_exists)); /* a kernel that has none of them */
        prove_dangerous(&r, &d);
        assert_int_equal(d.exist + d.tried + d.n_reached, 0);
}

static void this_kernel_has_the_calls_that_every_kernel_has(void **state) {
        uint8_t exists[PROVE_DANGEROUS];
        struct prove_dangerous d;

        (void) state;
        parse(HEAD ROW("C11g", "high", "reached") ROW("C05b", "high", "reached") "end 2\n");
        dangerous_exist(exists);
        memcpy(r.call_exists, exists, sizeof(exists));
        prove_dangerous(&r, &d);
        assert_int_equal(d.n_reached, 2); /* mount and ptrace are there */
        assert_in_range(d.exist, 30, d.known);
}

static int host(void) {
        struct prove_level l;

        prove_host_level(&r, &l);
        assert_true(l.why[0]);
        return l.level;
}

static int network(void) {
        struct prove_level l;

        prove_network_level(&r, &l);
        assert_true(l.why[0]);
        return l.level;
}

static void the_host_level_rests_on_namespaces_that_were_seen(void **state) {
        (void) state;
        parse(HEAD ROW("A01", "crit", "stopped") "end 1\n");
        assert_int_equal(host(), 1);
        r.posture.ns_new &= ~BIT(PROVE_MOUNT_NS);
        assert_int_equal(host(), 0);
        r.posture.ns_known &= ~BIT(PROVE_MOUNT_NS);
        assert_int_equal(host(), -1);
        r.posture.ns_known = r.posture.ns_new = 0xff;
        r.posture.seen = false;
        assert_int_equal(host(), -1);
}

static void the_network_level_rests_on_attempts(void **state) {
        (void) state;
        parse(HEAD ROW("A01", "crit", "stopped") "end 1\n");
        assert_int_equal(network(), -1);
        parse(HEAD ROW("H01", "high", "stopped") ROW("H24c", "med", "accepted") "end 2\n");
        assert_int_equal(network(), 2);
        (void) snprintf(r.evidence, sizeof(r.evidence), "{\"network\":{\"egress\":\"none\"}}");
        assert_int_equal(network(), 2);
        (void) snprintf(r.evidence, sizeof(r.evidence), "{\"network\":{\"egress\":\"policy\"}}");
        assert_int_equal(network(), 1);
        r.posture.ns_new &= ~BIT(PROVE_NET_NS);
        assert_int_equal(network(), 0);
        parse(HEAD ROW("H01", "high", "reached") "end 1\n");
        assert_int_equal(network(), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_call_reaches_the_kernel_if_any_attempt_on_it_does),
                cmocka_unit_test(accepted_counts_and_absent_calls_do_not),
                cmocka_unit_test(this_kernel_has_the_calls_that_every_kernel_has),
                cmocka_unit_test(the_host_level_rests_on_namespaces_that_were_seen),
                cmocka_unit_test(the_network_level_rests_on_attempts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
