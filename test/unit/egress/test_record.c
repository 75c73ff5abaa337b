/* test_record.c - every attempt is told once, by itself or in a count, under the event that the client was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "egress/limits.h"
#include "egress/record.h"
#include "egressproto/egressproto.h"
#include "json/json.h"

#define SANDBOX "abcdefghij0123456789"

enum { SENT_MAX = 128 };

static struct {
        char *texts[SENT_MAX];
        size_t n;
} sent;

static void keep_text(void *arg, const char *text, bool urgent) {
        (void) arg;
        assert_true(urgent);
        assert_true(sent.n < SENT_MAX);
        sent.texts[sent.n++] = strdup(text);
}

static int forget(void **state) {
        (void) state;
        while (sent.n > 0)
                free(sent.texts[--sent.n]);
        return 0;
}

static struct json *parsed(size_t i) {
        struct json *j;
        struct err err = { 0 };

        assert_true(i < sent.n);
        assert_int_equal(json_parse("record", sent.texts[i], strlen(sent.texts[i]), &j, &err), 0);
        return j;
}

static struct record denial(const char *name, uint16_t port) {
        return (struct record){ .kind = "tcp",
                                .name = name,
                                .port = port,
                                .protocol = "tcp",
                                .code = "net.port_not_allowed",
                                .rule = "allow[1]",
                                .side = "sandbox",
                                .policy = "sha256:00" };
}

static struct ledger *new_ledger(void) {
        struct ledger *l;
        struct err err = { 0 };

        assert_int_equal(ledger_new(SANDBOX, keep_text, NULL, &l, &err), 0);
        return l;
}

static void members_without_value_are_absent(void **state) {
        struct record r = denial("a.example", 443);
        struct json *j;
        struct ledger *l = new_ledger();
        char event[RECORD_EVENT];

        (void) state;
        ledger_note(l, &r, 1000, event);
        j = parsed(0);
        assert_string_equal(json_get_str(j, "event"), event);
        assert_string_equal(json_get_str(j, "sandbox"), SANDBOX);
        assert_string_equal(json_get_str(j, "decision"), "deny");
        assert_int_equal(json_get_int(j, "port", 0), 443);
        assert_null(json_get(j, "bytes_out"));
        assert_null(json_get(j, "address"));
        assert_null(json_get(j, "count"));
        json_free(j);
        ledger_free(l);
        assert_int_equal(sent.n, 1);
}

static void repeated_denials_are_counted_under_one_event(void **state) {
        struct ledger *l = new_ledger();
        char first[RECORD_EVENT], again[RECORD_EVENT];
        struct json *j;

        (void) state;
        for (unsigned i = 0; i < 5; i++) {
                struct record r = denial("a.example", 443);

                ledger_note(l, &r, 1000 + i, i == 0 ? first : again);
        }
        assert_string_equal(first, again);
        assert_int_equal(sent.n, 1);
        ledger_sweep(l, 1000 + EGRESS_REPEAT_MS - 1);
        assert_int_equal(sent.n, 1);
        ledger_sweep(l, 1000 + EGRESS_REPEAT_MS);
        assert_int_equal(sent.n, 2);
        j = parsed(1);
        assert_int_equal(json_get_int(j, "count", 0), 4);
        assert_string_equal(json_get_str(j, "event"), first);
        assert_string_equal(json_get_str(j, "name"), "a.example");
        assert_string_equal(json_get_str(j, "rule"), "allow[1]");
        json_free(j);
        ledger_sweep(l, 9000);
        ledger_free(l);
        assert_int_equal(sent.n, 2); /* nothing was left to tell */
}

static void different_denials_are_not_counted_together(void **state) {
        struct ledger *l = new_ledger();
        char event[RECORD_EVENT];
        struct record r[] = { denial("a.example", 443), denial("b.example", 443), denial("a.example", 80) };

        (void) state;
        for (size_t i = 0; i < 3; i++)
                ledger_note(l, &r[i], 1000, event);
        r[0].code = "net.budget";
        ledger_note(l, &r[0], 1000, event);
        assert_int_equal(sent.n, 4);
        ledger_free(l);
        assert_int_equal(sent.n, 4);
}

static void no_attempt_is_lost_when_there_are_too_many_kinds(void **state) {
        struct ledger *l = new_ledger();
        char event[RECORD_EVENT], name[32];
        int64_t told = 0;

        (void) state;
        for (unsigned round = 0; round < 2; round++)
                for (unsigned i = 0; i < EGRESS_REPEATS + 8; i++) {
                        struct record r;

                        (void) snprintf(name, sizeof(name), "n%u.example", i);
                        r = denial(name, 443);
                        ledger_note(l, &r, 1000 + i, event);
                }
        ledger_free(l);
        for (size_t i = 0; i < sent.n; i++) {
                struct json *j = parsed(i);

                told += json_get_int(j, "count", 1);
                json_free(j);
        }
        assert_int_equal(told, 2 * (EGRESS_REPEATS + 8));
}

static void longest_record_fits_the_protocol(void **state) {
        char name[HOST_NAME], path[POLICY_NET_PATH], detail[1000], rule[POLICY_NET_RULE], *text = NULL;
        struct record r;
        struct err err = { 0 };

        (void) state;
        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        memset(path, '\x01', sizeof(path) - 1); /* six characters each in JSON */
        path[sizeof(path) - 1] = '\0';
        memset(detail, '"', sizeof(detail) - 1);
        detail[sizeof(detail) - 1] = '\0';
        memset(rule, 'r', sizeof(rule) - 1);
        rule[sizeof(rule) - 1] = '\0';
        r = denial(name, 65535);
        r.event = "evt_" SANDBOX;
        r.rule = rule;
        r.path = path;
        r.detail = detail;
        r.with_bytes = true;
        r.bytes_in = r.bytes_out = r.duration_ns = INT64_MAX;
        r.method = "PROPPATCHPROPPATCHPROPP";
        r.phase = "close";
        assert_int_equal(addr_parse("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", &r.address), 0);
        assert_int_equal(record_text(&r, SANDBOX, INT64_MAX, &text, &err), 0);
        assert_true(strlen(text) <= EGP_RECORD_MAX);
        free(text);
}

static void side_is_read_off_the_rule(void **state) {
        (void) state;
        assert_string_equal(record_side("ceiling:budget:names"), "ceiling");
        assert_string_equal(record_side("floor:sni"), "floor");
        assert_string_equal(record_side("budget:rate"), "sandbox");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(members_without_value_are_absent, forget),
                cmocka_unit_test_teardown(repeated_denials_are_counted_under_one_event, forget),
                cmocka_unit_test_teardown(different_denials_are_not_counted_together, forget),
                cmocka_unit_test_teardown(no_attempt_is_lost_when_there_are_too_many_kinds, forget),
                cmocka_unit_test_teardown(longest_record_fits_the_protocol, forget),
                cmocka_unit_test(side_is_read_off_the_rule),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
