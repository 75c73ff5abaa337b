/* test_messages.c - every message: read back as written, and refused when cut, stretched or saying what nobody may. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/wr.h"
#include "egressproto/egressproto.h"

#define SANDBOX "abcdefghij0123456789"

static uint8_t bytes[EGP_MESSAGE_MAX + 16];

static const struct egp_message samples[] = {
        { .type = EGP_CONFIG, .request = 1 },
        { .type = EGP_ADD, .request = 2, .sandbox = SANDBOX },
        { .type = EGP_UPDATE, .request = 3, .sandbox = SANDBOX, .drop_existing = true },
        { .type = EGP_REMOVE, .request = 4, .sandbox = SANDBOX },
        { .type = EGP_PING, .request = UINT32_MAX },
        { .type = EGP_READY, .request = 1, .with_certificate = true },
        { .type = EGP_READY, .request = 1 },
        { .type = EGP_OK, .request = 2 },
        { .type = EGP_FAILED, .request = 3, .text = "document: policy: wrong" },
        { .type = EGP_RECORD, .record = "{}", .n_record = 2 },
};

static size_t put(const struct egp_message *m) {
        struct wr w = wr_to(bytes, EGP_MESSAGE_MAX);

        egp_put(&w, m);
        return w.bad ? 0 : w.len;
}

static void messages_are_read_back_whole(void **state) {
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                const struct egp_message *in = &samples[i];
                struct egp_message out;
                size_t n = put(in);

                assert_true(n > 0);
                assert_int_equal(egp_get(bytes, n, &out), 0);
                assert_int_equal(out.type, in->type);
                assert_int_equal(out.request, in->request);
                assert_string_equal(out.sandbox, in->sandbox);
                assert_int_equal(out.drop_existing, in->drop_existing);
                assert_int_equal(out.with_certificate, in->with_certificate);
                assert_string_equal(out.text, in->text);
                assert_int_equal(out.n_record, in->n_record);
                if (in->record)
                        assert_memory_equal(out.record, in->record, in->n_record);
        }
}

static void cut_and_stretched_messages_are_refused(void **state) {
        struct egp_message out;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                size_t n = put(&samples[i]);

                /* A record is whatever follows its head, so it has no wrong length but none. */
                for (size_t cut = 0; cut < (samples[i].type == EGP_RECORD ? 7 : n); cut++)
                        assert_int_equal(egp_get(bytes, cut, &out), -EBADMSG);
                bytes[n] = 0;
                if (samples[i].type != EGP_RECORD)
                        assert_int_equal(egp_get(bytes, n + 1, &out), -EBADMSG);
        }
}

static void values_out_of_range_are_neither_written_nor_read(void **state) {
        static const struct egp_message bad[] = {
                { .type = EGP_PING, .request = 0 },
                { .type = EGP_RECORD, .request = 1, .record = "{}", .n_record = 2 },
                { .type = EGP_RECORD, .record = "", .n_record = 0 },
                { .type = EGP_RECORD, .record = (const char *) bytes, .n_record = EGP_RECORD_MAX + 1 },
                { .type = EGP_ADD, .request = 1, .sandbox = "abcdefghij012345678" },
                { .type = EGP_ADD, .request = 1, .sandbox = "abcdefghij01234567/9" },
                { .type = EGP_FAILED, .request = 1, .text = "" },
                { .type = EGP_FAILED, .request = 1, .text = "\033[2J" },
                { .type = (enum egp_type) 6, .request = 1 },
                { .type = (enum egp_type) 0, .request = 1 },
        };
        static const uint8_t ping_of_nobody[] = { 0, EGP_PING, 0, 0, 0, 0 };
        static const uint8_t unknown[] = { 0, 6, 0, 0, 0, 1 };
        static const uint8_t flag_of_two[] = { 0, EGP_READY, 0, 0, 0, 1, 2 };
        struct egp_message out;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(put(&bad[i]), 0);
        assert_int_equal(egp_get(ping_of_nobody, sizeof(ping_of_nobody), &out), -EBADMSG);
        assert_int_equal(egp_get(unknown, sizeof(unknown), &out), -EBADMSG);
        assert_int_equal(egp_get(flag_of_two, sizeof(flag_of_two), &out), -EBADMSG);
}

static void descriptors_are_counted(void **state) {
        static const uint8_t expected[] = { 1, 4, 1, 0, 0, 2, 1, 0, 0, 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
                for (size_t n = 0; n <= EGP_FDS_MAX + 1; n++)
                        assert_int_equal(egp_n_fds(&samples[i], n),
                                         n == expected[i] || (samples[i].type == EGP_CONFIG && n == 2));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_are_read_back_whole),
                cmocka_unit_test(cut_and_stretched_messages_are_refused),
                cmocka_unit_test(values_out_of_range_are_neither_written_nor_read),
                cmocka_unit_test(descriptors_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
