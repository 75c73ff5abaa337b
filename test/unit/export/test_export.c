/* Each form carries the record as its receivers read it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "export/export.h"
#include "json/json.h"

static struct buf line;

static int set_up(void **state) {
        const struct audit_place at = { .seq = 41, .logged_ms = 1767225602001, .node = "node 1" };
        struct audit_event ev;
        struct err err = { 0 };
        uint8_t hash[HASH_BYTES];

        (void) state;
        audit_event_init(&ev, AUDIT_NET_CONTACT, "acme", "k3v9x2m4q8r7t1w5z6ab");
        memcpy(ev.id, "evt_03", 7);
        ev.time_ms = 1767225602000;
        ev.decision = AUDIT_DENIED;
        audit_object(&ev, "evil=\\x|y]\".example");
        ev.port = 443;
        (void) str_copy(ev.code, sizeof(ev.code), "net.name_not_allowed");
        line = BUF_INIT(AUDIT_LINE_MAX);
        return audit_record_make(&ev, &at, &line, hash, &err);
}

static int tear_down(void **state) {
        (void) state;
        buf_done(&line);
        return 0;
}

static char *exported(enum export_form f, int times) {
        struct buf b = BUF_INIT(65536);
        struct err err = { 0 };

        export_begin(f, "node1", &b);
        for (int i = 0; i < times; i++)
                assert_int_equal(export_add(f, line.p, line.len, &b, &err), 0);
        export_end(f, &b);
        assert_false(b.bad);
        return b.p;
}

static void ocsf_is_the_line(void **state) {
        AUTO_FREE char *text = exported(EXPORT_OCSF, 1);

        (void) state;
        assert_memory_equal(text, line.p, line.len);
        assert_string_equal(text + line.len, "\n");
}

static void syslog_has_header_data_and_line(void **state) {
        static const char head[] = "<108>1 2026-01-01T00:00:02.000Z node_1 gabion - net.contact [gabion@32473 "
                                   "event=\"evt_03\" code=\"net.name_not_allowed\" tenant=\"acme\" "
                                   "sandbox=\"k3v9x2m4q8r7t1w5z6ab\" seq=\"41\"] \xef\xbb\xbf";
        AUTO_FREE char *text = exported(EXPORT_SYSLOG, 1);
        struct buf b = BUF_INIT(65536);

        (void) state;
        assert_memory_equal(text, head, sizeof(head) - 1);
        assert_string_equal(text + sizeof(head) - 1, buf_str(&line));
        export_frame("abc", 3, &b);
        assert_string_equal(buf_str(&b), "3 abc");
        buf_done(&b);
}

static void cef_escapes_what_it_must(void **state) {
        AUTO_FREE char *text = exported(EXPORT_CEF, 1);

        (void) state;
        assert_non_null(strstr(text, " - CEF:0|Gabion|Gabion|"));
        assert_non_null(strstr(text, "|net.name_not_allowed|net.contact|6|rt=1767225602000 act=blocked "));
        assert_non_null(strstr(text, " dhost=evil\\=\\\\x|y]\".example dpt=443 proto=tcp "));
        assert_non_null(strstr(text, " externalId=evt_03 cs1Label=sandbox cs1=k3v9x2m4q8r7t1w5z6ab "));
        assert_null(strchr(text, '\n'));
}

static void otlp_is_one_request_for_many(void **state) {
        AUTO_FREE char *text = exported(EXPORT_OTLP, 3);
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *logs, *scope, *records, *one;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_parse("otlp", text, strlen(text), &doc, &err), 0);
        logs = json_at(json_get(doc, "resourceLogs"), 0);
        scope = json_at(json_get(logs, "scopeLogs"), 0);
        records = json_get(scope, "logRecords");
        assert_int_equal(json_len(records), 3);
        one = json_at(records, 2);
        assert_string_equal(json_get_str(one, "timeUnixNano"), "1767225602000000000");
        assert_int_equal(json_get_int(one, "severityNumber", 0), 13);
        assert_string_equal(json_get_str(one, "eventName"), "gabion.net.contact");
        assert_string_equal(json_get_str(json_get(one, "body"), "stringValue"), buf_str(&line));
        assert_int_equal(json_len(json_get(json_get(logs, "resource"), "attributes")), 2);
}

static void collector_and_webhook_wrap_the_record(void **state) {
        static const enum export_form both[] = { EXPORT_HEC, EXPORT_WEBHOOK };

        (void) state;
        for (size_t i = 0; i < 2; i++) {
                AUTO_FREE char *text = exported(both[i], 1);
                CLEANUP(json_freep) struct json *doc = NULL;
                const struct json *event;
                struct err err = { 0 };

                assert_int_equal(json_parse("x", text, strlen(text), &doc, &err), 0);
                event = json_get(doc, both[i] == EXPORT_HEC ? "event" : "data");
                assert_string_equal(json_get_str(json_get(event, "metadata"), "uid"), "evt_03");
                if (both[i] == EXPORT_WEBHOOK)
                        assert_string_equal(json_get_str(doc, "type"), "net.contact");
                else
                        assert_non_null(strstr(text, "\"time\":1767225602.000}"));
        }
}

static void signature_is_the_standard_one(void **state) {
        static const char body[] = "{\"test\": 2432232314}";
        struct buf b = BUF_INIT(256);
        struct export_key k;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(export_key_parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &k, &err), 0);
        assert_int_equal(
                export_webhook_sign(&k, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, strlen(body), &b, &err), 0);
        assert_string_equal(buf_str(&b), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        b.len = 0;
        assert_int_equal(export_key_parse("whsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", &k, &err), 0);
        assert_int_equal(export_webhook_sign(&k, "a", 1, body, strlen(body), &b, &err), 0);
        assert_true(str_has_prefix(buf_str(&b), "v1a,"));
        assert_int_equal(export_webhook_sign(&k, "a.b", 1, body, strlen(body), &b, &err), -E2BIG);
        assert_int_equal(export_key_parse("whsec_AAAA", &k, &err), -EINVAL);
        assert_int_equal(export_key_parse("secret", &k, &err), -EINVAL);
        buf_done(&b);
}

static void what_is_no_record_is_refused(void **state) {
        struct buf b = BUF_INIT(65536);
        struct err err = { 0 };

        (void) state;
        for (int f = 0; f < EXPORT_FORMS; f++) {
                assert_true(export_add((enum export_form) f, "{}", 2, &b, &err) < 0);
                assert_true(export_add((enum export_form) f, "nonsense", 8, &b, &err) < 0);
                assert_int_equal(export_form_find(export_form_name((enum export_form) f)), f);
        }
        buf_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(ocsf_is_the_line),
                cmocka_unit_test(syslog_has_header_data_and_line),
                cmocka_unit_test(cef_escapes_what_it_must),
                cmocka_unit_test(otlp_is_one_request_for_many),
                cmocka_unit_test(collector_and_webhook_wrap_the_record),
                cmocka_unit_test(signature_is_the_standard_one),
                cmocka_unit_test(what_is_no_record_is_refused),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
