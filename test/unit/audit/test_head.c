/* A head is written in one way and read in that way only. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/err.h"

static struct audit_head head_of(unsigned size) {
        struct audit_head h = {
                .tenant = "acme", .last = { 1 }, .segment = 9, .offset = 1234, .time_ms = 1767225600000
        };

        for (unsigned i = 0; i < size; i++)
                merkle_add(&h.tree, (uint8_t[HASH_BYTES]){ (uint8_t) i });
        return h;
}

static void heads_of_all_sizes_come_back(void **state) {
        struct err err = { 0 };

        (void) state;
        for (unsigned n = 0; n < 40; n++) {
                struct audit_head h = head_of(n), back;
                struct buf b = BUF_INIT(AUDIT_HEAD_BYTES);

                audit_head_text(&h, &b);
                assert_int_equal(audit_head_parse(b.p, b.len, &back, &err), 0);
                assert_int_equal(back.tree.size, n);
                assert_int_equal(back.offset, 1234);
                assert_memory_equal(back.tree.peaks, h.tree.peaks, merkle_peaks(n) * HASH_BYTES);
                buf_done(&b);
        }
}

static void first_lines_are_a_checkpoint(void **state) {
        struct audit_head h = head_of(0);
        struct buf b = BUF_INIT(AUDIT_HEAD_BYTES);

        (void) state;
        audit_head_text(&h, &b);
        assert_int_equal(strncmp(b.p, "gabion/acme\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", 59), 0);
        buf_done(&b);
}

static void anything_else_is_refused(void **state) {
        struct audit_head h = head_of(5), back;
        struct buf b = BUF_INIT(AUDIT_HEAD_BYTES);
        struct err err = { 0 };

        (void) state;
        audit_head_text(&h, &b);
        for (size_t n = 0; n < b.len; n++)
                assert_int_equal(audit_head_parse(b.p, n, &back, &err), -EBADMSG);
        for (size_t i = 0; i < b.len; i++) {
                char old = b.p[i];

                if (strchr("0123456789abcdefghijklmnopqrstuvwxyz", old))
                        continue; /* another number or name may be another head: the signature tells them apart */
                b.p[i] = '!';
                assert_int_equal(audit_head_parse(b.p, b.len, &back, &err), -EBADMSG);
                b.p[i] = old;
        }
        buf_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(heads_of_all_sizes_come_back),
                cmocka_unit_test(first_lines_are_a_checkpoint),
                cmocka_unit_test(anything_else_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
