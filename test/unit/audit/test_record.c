/* A record is canonical JSON whose hash anybody can compute again, and every byte of it counts. */
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
#include "json/json.h"

static const uint8_t prev[HASH_BYTES] = { 0xab };

static void record_make(enum audit_kind kind, enum audit_decision decision, struct buf *to, uint8_t hash[HASH_BYTES]) {
        struct audit_place at = { .seq = 41, .logged_ms = 1767225600001, .node = "node1" };
        struct audit_event ev;
        struct err err = { 0 };

        memcpy(at.prev, prev, HASH_BYTES);
        audit_event_init(&ev, kind, "acme", "k3v9x2m4q8r7t1w5z6ab");
        ev.decision = decision;
        audit_object(&ev, "say \"fingerprint\":{\"algorithm_id\":3 \\ \x01\xff /x");
        (void) str_copy(ev.actor, sizeof(ev.actor), "uid:0");
        (void) str_copy(ev.rule, sizeof(ev.rule), "default");
        ev.port = 443;
        audit_text(&ev, "sequence", "\"sequence\":7");
        audit_number(&ev, "exit_code", 3);
        audit_number(&ev, "duration_ms", 412);
        audit_number(&ev, "bytes_in", 1);
        audit_number(&ev, "bytes_out", 2);
        audit_text(&ev, "version", "1");
        audit_text(&ev, "ip", "203.0.113.9");
        audit_text(&ev, "user", "user");
        audit_item(&ev, "cgroup", "sbx-0001", "rmdir", true);
        if (audit_record_make(&ev, &at, to, hash, &err) < 0)
                fail_msg("%s", err.msg);
}

static void every_kind_is_canonical_and_its_hash_is_right(void **state) {
        (void) state;
        for (int k = 0; k < AUDIT_KINDS; k++)
                for (int d = AUDIT_NOTED; d <= AUDIT_DENIED; d++) {
                        struct buf b = BUF_INIT(AUDIT_LINE_MAX);
                        CLEANUP(json_freep) struct json *doc = NULL;
                        AUTO_FREE char *again = NULL;
                        uint8_t hash[HASH_BYTES], found[HASH_BYTES];
                        struct err err = { 0 };

                        record_make((enum audit_kind) k, (enum audit_decision) d, &b, hash);
                        assert_int_equal(json_parse("record", b.p, b.len, &doc, &err), 0);
                        assert_int_equal(json_text(doc, false, &again, &err), 0);
                        assert_string_equal(again, buf_str(&b));
                        assert_int_equal(audit_record_check(b.p, b.len, 41, prev, found, &err), 0);
                        assert_memory_equal(hash, found, HASH_BYTES);
                        assert_int_equal(json_get_int(doc, "type_uid", 0),
                                         json_get_int(doc, "class_uid", 0) * 100 + json_get_int(doc, "activity_id", 0));
                        buf_done(&b);
                }
}

/* As an outsider would: take the fingerprint out of the parsed tree, write it canonically, hash it. */
static void hash_can_be_computed_from_the_tree(void **state) {
        struct buf b = BUF_INIT(AUDIT_LINE_MAX), without = BUF_INIT(AUDIT_LINE_MAX);
        uint8_t hash[HASH_BYTES];
        char text[HASH_TEXT], want[HASH_HEX], cut[256];
        const char *at;

        (void) state;
        record_make(AUDIT_NET_CONTACT, AUDIT_DENIED, &b, hash);
        str_hex(want, hash, HASH_BYTES);
        (void) snprintf(cut, sizeof(cut), "\"fingerprint\":{\"algorithm_id\":3,\"value\":\"%s\"},", want);
        at = strstr(buf_str(&b), cut);
        assert_non_null(at);
        buf_add(&without, b.p, (size_t) (at - b.p));
        buf_add(&without, at + strlen(cut), strlen(at) - strlen(cut));
        hash_text(text, without.p, without.len);
        assert_string_equal(text + 7, want);
        buf_done(&b);
        buf_done(&without);
}

static void every_bit_counts(void **state) {
        struct buf b = BUF_INIT(AUDIT_LINE_MAX);
        uint8_t hash[HASH_BYTES], found[HASH_BYTES];
        struct err err = { 0 };

        (void) state;
        record_make(AUDIT_EXEC_ENDED, AUDIT_NOTED, &b, hash);
        for (size_t bit = 0; bit < 8 * b.len; bit++) {
                b.p[bit / 8] = (char) (b.p[bit / 8] ^ (1 << bit % 8));
                assert_int_equal(audit_record_check(b.p, b.len, 41, prev, found, &err), -EBADMSG);
                b.p[bit / 8] = (char) (b.p[bit / 8] ^ (1 << bit % 8));
        }
        for (size_t n = 0; n < b.len; n++)
                assert_int_equal(audit_record_check(b.p, n, 41, prev, found, &err), -EBADMSG);
        assert_int_equal(audit_record_check(b.p, b.len, 42, prev, found, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "record 41 stands in its place"));
        assert_int_equal(audit_record_check(b.p, b.len, 41, (uint8_t[HASH_BYTES]){ 0 }, found, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "does not follow"));
        buf_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_kind_is_canonical_and_its_hash_is_right),
                cmocka_unit_test(hash_can_be_computed_from_the_tree),
                cmocka_unit_test(every_bit_counts),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
