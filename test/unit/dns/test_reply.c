/* test_reply.c - replies of servers: what is believed, and what each kind of broken one is called. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dns/reply.h"
#include "packet.h"

enum { ID = 0x4242, FLAGS = 0x8180 };

static const struct reply_question question = { .id = ID, .type = DNS_A, .name = "a.example" };
static const uint8_t v4[] = { 192, 0, 2, 1 };

static int decode(const struct packet *p, struct reply *ret) {
        uint8_t *copy = malloc(p->n > 0 ? p->n : 1);
        int r;

        assert_non_null(copy);
        memcpy(copy, p->b, p->n);
        r = reply_decode(copy, p->n, &question, ret);
        free(copy);
        return r;
}

static void start(struct packet *p, uint16_t flags, uint16_t n_answers) {
        packet_start(p, ID, flags, (const uint16_t[]){ 1, n_answers, 0, 0 });
        packet_question(p, "A.Example", 1, 1);
}

static void the_question_is_an_ordinary_query(void **state) {
        struct packet want = packet_query(ID, "a.example", DNS_A);
        uint8_t b[REPLY_QUESTION_MAX];

        (void) state;
        assert_int_equal(reply_ask(&question, b), want.n);
        assert_memory_equal(b, want.b, want.n);
}

static void codes_of_the_header(void **state) {
        static const struct {
                uint16_t flags;
                int code;
        } rows[] = { { FLAGS, -ENODATA },         { FLAGS | 3, -ENOENT },     { FLAGS | 2, -EIO },
                     { FLAGS | 5, -EIO },         { FLAGS | 1, -EIO },        { FLAGS | 0x200, -EMSGSIZE },
                     { FLAGS & 0x7fff, -EAGAIN }, { FLAGS | 0x1000, -EAGAIN } };
        struct reply rep;
        struct packet p;

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                start(&p, rows[i].flags, 0);
                assert_int_equal(decode(&p, &rep), rows[i].code);
        }
        packet_start(&p, ID, FLAGS | 5, (const uint16_t[]){ 0, 0, 0, 0 });
        assert_int_equal(decode(&p, &rep), -EIO);
        packet_start(&p, ID, FLAGS | 3, (const uint16_t[]){ 0, 0, 0, 0 }); /* too important without the name */
        assert_int_equal(decode(&p, &rep), -EAGAIN);
        packet_start(&p, ID + 1, FLAGS, (const uint16_t[]){ 1, 0, 0, 0 });
        packet_question(&p, "a.example", 1, 1);
        assert_int_equal(decode(&p, &rep), -EAGAIN);
}

static void another_question_is_not_ours(void **state) {
        static const struct {
                const char *name;
                uint16_t type, class;
        } rows[] = { { "b.example", 1, 1 },
                     { "a.example", 28, 1 },
                     { "a.example", 1, 3 },
                     { "a.example.com", 1, 1 },
                     { "", 1, 1 } };
        struct reply rep;
        struct packet p;

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                packet_start(&p, ID, FLAGS, (const uint16_t[]){ 1, 1, 0, 0 });
                packet_question(&p, rows[i].name, rows[i].type, rows[i].class);
                packet_record(&p, "a.example", 1, 60, v4, 4);
                assert_int_equal(decode(&p, &rep), -EAGAIN);
        }
}

static void addresses_and_the_shortest_ttl(void **state) {
        struct reply rep;
        struct packet p;

        (void) state;
        start(&p, FLAGS, 4);
        packet_alias(&p, "a.example", 500, "b.example");
        packet_record(&p, "b.example", 1, 300, v4, 4);
        packet_record(&p, "b.example", 1, 200, v4, 4);
        packet_record(&p, "b.example", 16, 1, "text", 4);
        assert_int_equal(decode(&p, &rep), 0);
        assert_int_equal(rep.n_addrs, 2);
        assert_int_equal(rep.ttl_s, 200);
        assert_int_equal(addr_to_u32(&rep.addrs[0]), 0xc0000201);
}

static void circles_of_aliases_end(void **state) {
        struct reply rep;
        struct packet p;

        (void) state;
        start(&p, FLAGS, 2);
        packet_alias(&p, "a.example", 1, "b.example");
        packet_alias(&p, "b.example", 1, "a.example");
        assert_int_equal(decode(&p, &rep), -EBADMSG);
        start(&p, FLAGS, 1);
        packet_alias(&p, "a.example", 1, "a.example");
        assert_int_equal(decode(&p, &rep), -EBADMSG);
}

static void chains_have_a_limit(void **state) {
        struct reply rep;

        (void) state;
        for (unsigned n = REPLY_ALIASES; n <= REPLY_ALIASES + 1; n++) {
                struct packet p;
                char from[32] = "a.example", to[32];

                start(&p, FLAGS, (uint16_t) (n + 1));
                for (unsigned i = 0; i < n; i++) {
                        (void) snprintf(to, sizeof(to), "c%u.example", i);
                        packet_alias(&p, from, 60, to);
                        memcpy(from, to, sizeof(from));
                }
                packet_record(&p, from, 1, 60, v4, 4);
                assert_int_equal(decode(&p, &rep), n <= REPLY_ALIASES ? 0 : -EBADMSG);
        }
}

static void many_addresses_are_capped(void **state) {
        struct reply rep;
        struct packet p;

        (void) state;
        start(&p, FLAGS, 200);
        for (int i = 0; i < 200; i++)
                packet_record(&p, "a.example", 1, 60, v4, 4);
        assert_int_equal(decode(&p, &rep), 0);
        assert_int_equal(rep.n_addrs, DNS_ADDRS);
}

static void broken_records_are_malformed(void **state) {
        struct reply rep;
        struct packet p;
        size_t whole;

        (void) state;
        start(&p, FLAGS, 1);
        packet_record(&p, "a.example", 1, 60, "\1\2\3", 3);
        assert_int_equal(decode(&p, &rep), -EBADMSG);
        start(&p, FLAGS, 1);
        packet_record(&p, "a.example", 5, 60, "\1b\0x", 4); /* bytes behind the name */
        assert_int_equal(decode(&p, &rep), -EBADMSG);
        start(&p, FLAGS, 2); /* one is missing */
        packet_record(&p, "a.example", 1, 60, v4, 4);
        assert_int_equal(decode(&p, &rep), -EBADMSG);
        start(&p, FLAGS, 1);
        packet_record(&p, "a.example", 1, 60, v4, 4);
        for (whole = p.n, p.n = 12 + 15; p.n < whole; p.n++)
                assert_int_equal(decode(&p, &rep), -EBADMSG);
}

static void compression_loops_are_malformed(void **state) {
        static const char *const owners[] = { "\xc0\x1b", "\1b\xc0\x1b", "\xc0\x1d\xc0\x1b" };
        struct reply rep;
        struct packet p;

        (void) state;
        for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
                start(&p, FLAGS, 1);
                assert_int_equal(p.n, 0x1b);
                packet_bytes(&p, owners[i], strlen(owners[i]));
                packet_u32(&p, 0x00010001);
                packet_u32(&p, 60);
                packet_u16(&p, 4);
                packet_bytes(&p, v4, 4);
                assert_int_equal(decode(&p, &rep), -EBADMSG);
        }
}

static void compressed_owners_are_followed(void **state) {
        struct reply rep;
        struct packet p;

        (void) state;
        start(&p, FLAGS, 1);
        packet_u16(&p, 0xc00c);
        packet_u32(&p, 0x00010001);
        packet_u32(&p, 60);
        packet_u16(&p, 4);
        packet_bytes(&p, v4, 4);
        assert_int_equal(decode(&p, &rep), 0);
        assert_int_equal(rep.n_addrs, 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_question_is_an_ordinary_query),
                cmocka_unit_test(codes_of_the_header),
                cmocka_unit_test(another_question_is_not_ours),
                cmocka_unit_test(addresses_and_the_shortest_ttl),
                cmocka_unit_test(circles_of_aliases_end),
                cmocka_unit_test(chains_have_a_limit),
                cmocka_unit_test(many_addresses_are_capped),
                cmocka_unit_test(broken_records_are_malformed),
                cmocka_unit_test(compression_loops_are_malformed),
                cmocka_unit_test(compressed_owners_are_followed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
