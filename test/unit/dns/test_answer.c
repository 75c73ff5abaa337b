/* test_answer.c - our answers as another implementation of DNS reads them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <ldns/ldns.h>

#include "base/err.h"
#include "dns/dns.h"
#include "packet.h"

static struct dns_query ask(const char *name, uint16_t type, bool edns, uint16_t size) {
        struct dns_query q;
        struct err err = { 0 };
        struct packet p;

        packet_start(&p, 0x1234, 0x0100, (const uint16_t[]){ 1, 0, 0, edns });
        packet_question(&p, name, type, 1);
        if (edns)
                packet_edns(&p, size, 0x8000);
        assert_int_equal(dns_query_decode(p.b, p.n, &q, &err), 0);
        return q;
}

/* The caller frees the packet. */
static ldns_pkt *build(const struct dns_query *q, const struct dns_answer *a, bool tcp, size_t *ret_n) {
        uint8_t b[DNS_UDP_MAX];
        struct err err = { 0 };
        ldns_pkt *pkt = NULL;
        int n = dns_answer_build(q, a, tcp, b, sizeof(b), &err);

        assert_true(n > 0);
        assert_int_equal(ldns_wire2pkt(&pkt, b, (size_t) n), LDNS_STATUS_OK);
        assert_true(ldns_pkt_qr(pkt));
        assert_true(ldns_pkt_ra(pkt));
        assert_int_equal(ldns_pkt_id(pkt), q->id);
        assert_int_equal(ldns_pkt_nscount(pkt), 0);
        if (ret_n)
                *ret_n = (size_t) n;
        return pkt;
}

static struct addr address(const char *s) {
        struct addr a;

        assert_int_equal(addr_parse(s, &a), 0);
        return a;
}

static void an_address_with_its_ttl(void **state) {
        struct dns_query q = ask("WwW.example.com", DNS_A, true, 1232);
        struct dns_answer a = { .ttl_s = 60, .addrs = { address("198.18.0.7"), address("2001:db8::1") }, .n_addrs = 2 };
        ldns_pkt *pkt = build(&q, &a, false, NULL);
        ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_answer(pkt), 0);
        char *text = ldns_rr2str(rr), *question = ldns_rr2str(ldns_rr_list_rr(ldns_pkt_question(pkt), 0));

        (void) state;
        assert_int_equal(ldns_pkt_ancount(pkt), 1); /* the other family is no answer to this question */
        assert_string_equal(text, "WwW.example.com.\t60\tIN\tA\t198.18.0.7\n");
        assert_non_null(strstr(question, "WwW.example.com."));
        assert_true(ldns_pkt_edns(pkt));
        assert_true(ldns_pkt_edns_do(pkt));
        assert_int_equal(ldns_pkt_edns_udp_size(pkt), DNS_UDP_MAX);
        assert_false(ldns_pkt_tc(pkt));
        assert_false(ldns_pkt_aa(pkt));
        assert_true(ldns_pkt_rd(pkt));
        free(text);
        free(question);
        ldns_pkt_free(pkt);
}

static void ipv6_and_names(void **state) {
        struct dns_query q6 = ask("a.example", DNS_AAAA, false, 0),
                         qp = ask("7.0.18.198.in-addr.arpa", DNS_PTR, false, 0);
        struct dns_answer a6 = { .ttl_s = 5,
                                 .addrs = { address("198.18.0.7"), address("fd00:6e77:1::7") },
                                 .n_addrs = 2 };
        struct dns_answer ap = { .ttl_s = 5, .ptr = "www.example.com" };
        ldns_pkt *pkt = build(&q6, &a6, false, NULL);
        char *text = ldns_rr2str(ldns_rr_list_rr(ldns_pkt_answer(pkt), 0));

        (void) state;
        assert_int_equal(ldns_pkt_ancount(pkt), 1);
        assert_string_equal(text, "a.example.\t5\tIN\tAAAA\tfd00:6e77:1::7\n");
        assert_false(ldns_pkt_edns(pkt));
        free(text);
        ldns_pkt_free(pkt);
        pkt = build(&qp, &ap, false, NULL);
        text = ldns_rr2str(ldns_rr_list_rr(ldns_pkt_answer(pkt), 0));
        assert_string_equal(text, "7.0.18.198.in-addr.arpa.\t5\tIN\tPTR\twww.example.com.\n");
        free(text);
        ldns_pkt_free(pkt);
}

static void refusals_and_nodata_have_no_records(void **state) {
        static const enum dns_rcode codes[] = { DNS_NOERROR,  DNS_FORMERR, DNS_SERVFAIL,
                                                DNS_NXDOMAIN, DNS_NOTIMP,  DNS_REFUSED };
        struct dns_query q = ask("a.example", DNS_HTTPS, true, 4096);

        (void) state;
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
                struct dns_answer a = { .rcode = codes[i], .addrs = { address("198.18.0.7") }, .n_addrs = 1 };
                ldns_pkt *pkt = build(&q, &a, false, NULL);

                assert_int_equal(ldns_pkt_get_rcode(pkt), codes[i]);
                assert_int_equal(ldns_pkt_qdcount(pkt), 1);
                assert_int_equal(ldns_pkt_ancount(pkt), 0);
                ldns_pkt_free(pkt);
        }
}

/* RFC 8914: dig shows the text, and others ignore it. */
static void a_refusal_says_why_to_those_who_can_hear(void **state) {
        static const char longest[] =
                "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
                "12345678901234567890123456789012345678901234567890123456789";
        struct dns_query with = ask("a.example", DNS_A, true, 512), without = ask("a.example", DNS_A, false, 0);
        struct dns_answer a = { .rcode = DNS_REFUSED, .prohibited = "not allowed by rule" };
        ldns_pkt *pkt = build(&with, &a, false, NULL);
        ldns_rdf *data = ldns_pkt_edns_data(pkt);

        (void) state;
        assert_non_null(data);
        assert_int_equal(ldns_rdf_size(data), 6 + 19);
        assert_memory_equal(ldns_rdf_data(data), "\0\17\0\25\0\22not allowed by rule", 6 + 19);
        ldns_pkt_free(pkt);
        pkt = build(&without, &a, false, NULL);
        assert_int_equal(ldns_pkt_arcount(pkt), 0);
        ldns_pkt_free(pkt);
        a.prohibited = longest;
        pkt = build(&with, &a, false, NULL);
        assert_int_equal(ldns_rdf_size(ldns_pkt_edns_data(pkt)), 6 + DNS_WHY_MAX);
        ldns_pkt_free(pkt);
}

static void bad_queries_are_answered(void **state) {
        struct packet p;
        struct dns_query q;
        struct err err = { 0 };
        ldns_pkt *pkt;

        (void) state;
        packet_start(&p, 9, 0x1100, (const uint16_t[]){ 1, 0, 0, 0 }); /* opcode 2 */
        assert_int_equal(dns_query_decode(p.b, p.n, &q, &err), -EBADMSG);
        pkt = build(&q, &(struct dns_answer){ .rcode = q.rcode }, false, NULL);
        assert_int_equal(ldns_pkt_get_rcode(pkt), DNS_NOTIMP);
        assert_int_equal(ldns_pkt_get_opcode(pkt), 2);
        assert_int_equal(ldns_pkt_qdcount(pkt), 0);
        ldns_pkt_free(pkt);
        packet_start(&p, 9, 0, (const uint16_t[]){ 1, 0, 0, 1 });
        packet_question(&p, "a.example", 1, 1);
        packet_edns(&p, 1232, 0x00050000);
        assert_int_equal(dns_query_decode(p.b, p.n, &q, &err), -EBADMSG);
        pkt = build(&q, &(struct dns_answer){ .rcode = q.rcode }, false, NULL);
        assert_int_equal(ldns_pkt_get_rcode(pkt), 0);
        assert_int_equal(ldns_pkt_edns_extended_rcode(pkt), 1); /* 16 = BADVERS */
        assert_int_equal(ldns_pkt_edns_version(pkt), 0);
        ldns_pkt_free(pkt);
}

static void too_large_for_udp_is_cut(void **state) {
        static const char name[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-0123456789."
                                   "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-0123456789."
                                   "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz-0123456789.example";
        struct dns_query plain = ask(name, DNS_AAAA, false, 0), edns = ask(name, DNS_AAAA, true, 4096);
        struct dns_answer a = { .ttl_s = 5, .n_addrs = DNS_ADDRS };
        ldns_pkt *pkt;
        size_t n;

        (void) state;
        for (int i = 0; i < DNS_ADDRS; i++)
                a.addrs[i] = address("2001:db8::1");
        pkt = build(&plain, &a, false, &n);
        assert_true(ldns_pkt_tc(pkt));
        assert_int_equal(ldns_pkt_ancount(pkt), 0);
        assert_true(n <= 512);
        ldns_pkt_free(pkt);
        pkt = build(&plain, &a, true, &n);
        assert_false(ldns_pkt_tc(pkt));
        assert_int_equal(ldns_pkt_ancount(pkt), DNS_ADDRS);
        ldns_pkt_free(pkt);
        pkt = build(&edns, &a, false, &n);
        assert_false(ldns_pkt_tc(pkt));
        assert_int_equal(ldns_pkt_ancount(pkt), DNS_ADDRS);
        ldns_pkt_free(pkt);
}

static void small_buffers_fail(void **state) {
        struct dns_query q = ask("a.example", DNS_A, true, 1232);
        struct dns_answer a = { .ttl_s = 60, .addrs = { address("198.18.0.7") }, .n_addrs = 1 };
        struct err err = { 0 };
        uint8_t b[64];
        int n = dns_answer_build(&q, &a, false, b, sizeof(b), &err);

        (void) state;
        assert_true(n > 0);
        for (int cap = 0; cap < n; cap++)
                assert_int_equal(dns_answer_build(&q, &a, false, b, (size_t) cap, &err), -EMSGSIZE);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_address_with_its_ttl),
                cmocka_unit_test(ipv6_and_names),
                cmocka_unit_test(refusals_and_nodata_have_no_records),
                cmocka_unit_test(a_refusal_says_why_to_those_who_can_hear),
                cmocka_unit_test(bad_queries_are_answered),
                cmocka_unit_test(too_large_for_udp_is_cut),
                cmocka_unit_test(small_buffers_fail),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
