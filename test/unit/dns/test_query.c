/* test_query.c - what counts as a question, and with which code everything else is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "dns/dns.h"
#include "packet.h"

/* On memory of exactly its size, so that a read past the end is seen under ASan. */
static int decode(const struct packet *p, struct dns_query *ret) {
        uint8_t *copy = malloc(p->n > 0 ? p->n : 1);
        struct err err = { 0 };
        int r;

        assert_non_null(copy);
        memcpy(copy, p->b, p->n);
        memset(ret, 0, sizeof(*ret));
        r = dns_query_decode(copy, p->n, ret, &err);
        free(copy);
        assert_int_equal(r, err.code);
        return r;
}

static void refused(const struct packet *p, enum dns_rcode rcode) {
        struct dns_query q;

        assert_int_equal(decode(p, &q), -EBADMSG);
        assert_int_equal(q.rcode, rcode);
}

static void a_plain_question(void **state) {
        struct packet p = packet_query(0xbeef, "WWW.Example.com", DNS_A);
        struct dns_query q;

        (void) state;
        assert_int_equal(decode(&p, &q), 0);
        assert_int_equal(q.id, 0xbeef);
        assert_string_equal(q.name, "www.example.com");
        assert_int_equal(q.type, DNS_A);
        assert_int_equal(q.rcode, DNS_NOERROR);
        assert_true(q.rd);
        assert_false(q.edns);
        assert_int_equal(q.edns_bytes, 0);
        assert_int_equal(q.n_question, p.n - 12);
        assert_memory_equal(q.question, p.b + 12, q.n_question); /* with its upper case */
}

static void edns_is_read(void **state) {
        struct packet p;
        struct dns_query q;

        (void) state;
        packet_start(&p, 1, 0x0110, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 65, 1);
        packet_edns(&p, 4096, 0x8000);
        assert_int_equal(decode(&p, &q), 0);
        assert_true(q.edns && q.edns_do && q.cd);
        assert_int_equal(q.edns_bytes, 4096);
        assert_int_equal(q.type, DNS_HTTPS);
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_edns(&p, 100, 0);
        assert_int_equal(decode(&p, &q), 0);
        assert_int_equal(q.edns_bytes, 512); /* RFC 6891, 6.2.3 */
        assert_false(q.rd || q.edns_do);
}

static void unknown_edns_version_is_badvers(void **state) {
        struct packet p;

        (void) state;
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_edns(&p, 1232, 0x00010000);
        refused(&p, DNS_BADVERS);
}

/* What evdns took for "good", for three labels, and for a normal query (style, 5.4c). */
static void labels_are_exact(void **state) {
        static const struct {
                const char *wire;
                size_t n;
        } rows[] = {
                { "\5good\0\4evil\3com", 16 },
                { "\5a.b.c\3com", 11 },
                { "\4a b \3com", 10 },
                { "\3a\\b\3com", 9 },
                { "\2-a\3com", 8 },
                { "\2a-\3com", 8 },
                { "\3b\xc3\xbc\3com", 9 },
                { "\1*\3com", 7 },
                { "\3"
                  "1.2\3"
                  "3.4",
                  9 },
                { "\1"
                  "1\1"
                  "2\1"
                  "3\1"
                  "4",
                  9 },
                { "", 1 },
                { "\4"
                  "0x7f\3"
                  "0x1",
                  10 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct packet p;

                packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 0 });
                packet_bytes(&p, rows[i].wire, rows[i].n);
                packet_u16(&p, 1);
                packet_u16(&p, 1);
                refused(&p, DNS_REFUSED);
        }
}

static void other_operations_are_not_implemented(void **state) {
        (void) state;
        for (uint16_t opcode = 1; opcode < 16; opcode++) {
                struct packet p = packet_query(7, "a.example", DNS_A);
                struct dns_query q;

                p.b[2] = (uint8_t) (opcode << 3);
                assert_int_equal(decode(&p, &q), -EBADMSG);
                assert_int_equal(q.rcode, DNS_NOTIMP);
                assert_int_equal(q.opcode, opcode);
                assert_int_equal(q.id, 7);
        }
}

static void other_classes_are_refused(void **state) {
        static const uint16_t classes[] = { 0, 3, 4, 254, 255 };

        (void) state;
        for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
                struct packet p;

                packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 0 });
                packet_question(&p, "version.bind", 16, classes[i]);
                refused(&p, DNS_REFUSED);
        }
}

static void counts_must_be_one_question(void **state) {
        static const uint16_t counts[][4] = { { 0, 0, 0, 0 }, { 2, 0, 0, 0 }, { 1, 1, 0, 0 },    { 1, 0, 1, 0 },
                                              { 1, 0, 0, 2 }, { 1, 0, 0, 1 }, { 65535, 0, 0, 0 } };

        (void) state;
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                struct packet p;

                packet_start(&p, 1, 0, counts[i]);
                packet_question(&p, "a.example", 1, 1);
                packet_question(&p, "b.example", 1, 1);
                refused(&p, DNS_FORMERR);
        }
}

static void compression_in_a_question_is_malformed(void **state) {
        static const char *const names[] = { "\xc0\x0c", "\1a\xc0\x0c", "\xc0\x00", "\xc0\xff", "\xc0", "\1a\xc0\x0e" };

        (void) state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct packet p;

                packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 0 });
                packet_bytes(&p, names[i], i == 2 ? 2 : strlen(names[i]));
                packet_u16(&p, 1);
                packet_u16(&p, 1);
                refused(&p, DNS_FORMERR);
        }
}

/* The type 0x0161 and the class 0x0001 read as a name are "a": a pointer to them leads to a good name. */
static void a_pointer_to_a_good_name_is_malformed_too(void **state) {
        struct packet p;

        (void) state;
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 0 });
        packet_u16(&p, 0xc00e);
        packet_u16(&p, 0x0161);
        packet_u16(&p, 0x0001);
        refused(&p, DNS_FORMERR);
}

static void too_long_names_are_malformed(void **state) {
        struct packet p;

        (void) state;
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 0 });
        for (int i = 0; i < 5; i++)
                packet_bytes(&p,
                             "\x3f"
                             "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk",
                             64);
        packet_u16(&p, 0);
        packet_u32(&p, 0x00010001);
        refused(&p, DNS_FORMERR);
}

static void trailing_and_missing_bytes_are_malformed(void **state) {
        struct packet p = packet_query(1, "a.example", DNS_A);
        struct dns_query q;
        size_t whole = p.n;

        (void) state;
        p.b[p.n++] = 0;
        refused(&p, DNS_FORMERR);
        for (p.n = 12; p.n < whole; p.n++)
                refused(&p, DNS_FORMERR);
        for (p.n = 0; p.n < 12; p.n++)
                assert_int_equal(decode(&p, &q), -ENOMSG);
}

static void oversized_queries_are_malformed(void **state) {
        struct packet p;

        (void) state;
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_question(&p, "", 41, 1232);
        packet_u32(&p, 0);
        packet_u16(&p, 5000);
        memset(p.b + p.n, 0, 5000);
        p.n += 5000;
        refused(&p, DNS_FORMERR);
}

static void answers_get_no_answer(void **state) {
        struct packet p = packet_query(1, "a.example", DNS_A);
        struct dns_query q;

        (void) state;
        p.b[2] |= 0x80;
        assert_int_equal(decode(&p, &q), -ENOMSG);
}

static void other_additional_records_are_malformed(void **state) {
        struct packet p;

        (void) state;
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_record(&p, "", 250, 0, "key", 3);
        refused(&p, DNS_FORMERR);
        packet_start(&p, 1, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_record(&p, "a", 41, 0, "", 0); /* the owner of OPT is the root */
        refused(&p, DNS_FORMERR);
}

static void reverse_names_become_addresses(void **state) {
        static const char *const bad[] = { "in-addr.arpa",
                                           ".in-addr.arpa",
                                           "18.198.in-addr.arpa",
                                           "1.2.3.4.5.in-addr.arpa",
                                           "01.0.18.198.in-addr.arpa",
                                           "a.0.18.198.in-addr.arpa",
                                           "256.0.18.198.in-addr.arpa",
                                           "1.0.18.198.in-addr.arpa.com",
                                           "x1.0.18.198.ip6.arpa",
                                           "1..18.198.in-addr.arpa",
                                           "1000.1000.1000.1000.in-addr.arpa" };
        struct addr a, want;

        (void) state;
        assert_int_equal(dns_ptr_address("7.0.18.198.in-addr.arpa", &a), 0);
        assert_int_equal(addr_parse("198.18.0.7", &want), 0);
        assert_true(addr_eq(&a, &want));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(dns_ptr_address(bad[i], &a), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_plain_question),
                cmocka_unit_test(edns_is_read),
                cmocka_unit_test(unknown_edns_version_is_badvers),
                cmocka_unit_test(labels_are_exact),
                cmocka_unit_test(other_operations_are_not_implemented),
                cmocka_unit_test(other_classes_are_refused),
                cmocka_unit_test(counts_must_be_one_question),
                cmocka_unit_test(compression_in_a_question_is_malformed),
                cmocka_unit_test(a_pointer_to_a_good_name_is_malformed_too),
                cmocka_unit_test(too_long_names_are_malformed),
                cmocka_unit_test(trailing_and_missing_bytes_are_malformed),
                cmocka_unit_test(oversized_queries_are_malformed),
                cmocka_unit_test(answers_get_no_answer),
                cmocka_unit_test(other_additional_records_are_malformed),
                cmocka_unit_test(reverse_names_become_addresses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
