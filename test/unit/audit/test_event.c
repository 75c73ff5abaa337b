/* Events survive their journey as a message, and what is not an event does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/audit.h"
#include "base/err.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"

static void event_make(struct audit_event *ev) {
        audit_event_init(ev, AUDIT_NET_CONTACT, "acme", "k3v9x2m4q8r7t1w5z6ab");
        audit_object(ev, "evil.example");
        ev->port = 443;
        ev->decision = AUDIT_DENIED;
        (void) str_copy(ev->code, sizeof(ev->code), "net.name_not_allowed");
        (void) str_copy(ev->rule, sizeof(ev->rule), "default");
        audit_text(ev, "protocol", "tcp");
        audit_number(ev, "bytes_out", -5);
        audit_item(ev, "cgroup", "sbx-0001", "rmdir", true);
}

static void event_comes_back_as_it_was(void **state) {
        struct audit_event a, b;
        uint8_t space[AUDIT_WIRE_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct err err = { 0 };
        struct rd r;

        (void) state;
        event_make(&a);
        audit_event_put(&a, &w);
        assert_false(w.bad);
        r = rd_from(space, w.len);
        assert_int_equal(audit_event_get(&r, &b, &err), 0);
        assert_string_equal(b.object, "evil.example");
        assert_string_equal(b.id, a.id);
        assert_int_equal(b.port, 443);
        assert_int_equal(b.time_ms, a.time_ms);
        assert_int_equal(b.n_fields, 2);
        assert_int_equal(b.fields[1].number, -5);
        assert_string_equal(b.items[0].result, "removed");
        for (size_t cut = 0; cut < w.len; cut++) {
                r = rd_from(space, cut);
                assert_int_equal(audit_event_get(&r, &b, &err), -EBADMSG);
        }
        space[w.len] = 0;
        r = rd_from(space, w.len + 1);
        assert_int_equal(audit_event_get(&r, &b, &err), 0);
        assert_int_equal(r.left, 1); /* what follows is the caller's */
}

static void largest_event_fits_into_a_message(void **state) {
        struct audit_event ev;
        uint8_t space[2 * AUDIT_WIRE_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct err err = { 0 };
        char long_text[2 * AUDIT_OBJECT];

        (void) state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        event_make(&ev);
        audit_object(&ev, long_text);
        assert_int_equal(strlen(ev.object), AUDIT_OBJECT - 1); /* cut, not refused */
        while (ev.n_items < AUDIT_ITEMS)
                audit_item(&ev, long_text, long_text, long_text, false);
        ev.n_fields = 0;
        for (char c = 'a'; ev.n_fields < 8; c++)
                audit_text(&ev, (char[]){ c, '\0' }, long_text);
        assert_int_equal(audit_event_check(&ev, &err), 0);
        audit_event_put(&ev, &w);
        assert_true(w.len <= AUDIT_WIRE_MAX);
}

static void malformed_events_are_refused(void **state) {
        struct audit_event ev;
        struct err err = { 0 };

        (void) state;
#define REFUSED(change)                                                                                                \
        event_make(&ev);                                                                                               \
        assert_int_equal(audit_event_check(&ev, &err), 0);                                                             \
        change;                                                                                                        \
        assert_int_equal(audit_event_check(&ev, &err), -EINVAL)
        REFUSED(ev.kind = AUDIT_KINDS);
        REFUSED(ev.decision = (enum audit_decision) 7);
        REFUSED(ev.tenant[0] = '\0');
        REFUSED(ev.tenant[1] = '/');
        REFUSED(ev.tenant[1] = '.');
        REFUSED(ev.tenant[1] = 'A');
        REFUSED(ev.id[0] = 'x');
        REFUSED(ev.sandbox[3] = '.');
        REFUSED(ev.code[3] = '"');
        REFUSED(memcpy(ev.policy, "md5:", 5));
        REFUSED(ev.time_ms = UINT64_MAX);
        REFUSED(audit_text(&ev, "Key", "x"));
        REFUSED(audit_text(&ev, "protocol", "twice"));
        REFUSED(audit_number(&ev, "large", INT64_MAX));
        REFUSED(audit_text(&ev, "a_key_that_is_longer_than_allowed", "x"));
        REFUSED(for (int i = 0; i < AUDIT_FIELDS; i++) audit_text(&ev, (char[]){ (char) ('a' + i), '\0' }, "x"));
        REFUSED(for (int i = 0; i < AUDIT_ITEMS; i++) audit_item(&ev, "x", "x", "x", true));
}

static void kinds_have_names(void **state) {
        (void) state;
        for (int k = 0; k < AUDIT_KINDS; k++)
                assert_int_equal(audit_kind_find(audit_kind_name((enum audit_kind) k)), k);
        assert_int_equal(audit_kind_find("nothing"), AUDIT_KINDS);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(event_comes_back_as_it_was),
                cmocka_unit_test(largest_event_fits_into_a_message),
                cmocka_unit_test(malformed_events_are_refused),
                cmocka_unit_test(kinds_have_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
