/* test_addr.c - text, prefixes and classes of addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/addr.h"
#include "base/own.h"

static struct addr parse(const char *s) {
        struct addr a = { 0 };

        assert_int_equal(addr_parse(s, &a), 0);
        return a;
}

static void text_is_strict(void **state) {
        static const char *const bad[] = {
                "",           "1",        "1.2.3",     "1.2.3.4.",  "1.2.3.256", "01.2.3.4",   "1.2.3.0x4",
                "0x7f000001", "1.2.3.4 ", " 1.2.3.4",  "+1.2.3.4",  "1..2.3",    "2130706433", "fe80::1%eth0",
                "::g",        "[::1]",    "1.2.3.4:1", "1:2:3:4:5", "::1/128",   "1.2.3.4/8",  "::ffff:1.2.3",
                ":::",        "1::2::3",  "00.0.0.0",
        };
        struct addr a;
        char text[ADDR_TEXT];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(addr_parse(bad[i], &a), -EINVAL);
        a = parse("203.0.113.9");
        assert_int_equal(addr_to_u32(&a), 0xcb007109);
        addr_text(&a, text);
        assert_string_equal(text, "203.0.113.9");
        a = parse("2001:DB8:0:0::1");
        addr_text(&a, text);
        assert_string_equal(text, "2001:db8::1");
        assert_int_equal(addr_to_u32(&a), 0);
        a = parse("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255");
        addr_text(&a, text);
        assert_true(strlen(text) < ADDR_TEXT);
}

/* Each word one of four: all runs of zeros, and all that may carry IPv4. The C library here is glibc. */
static void ipv6_is_spelled_as_glibc_does(void **state) {
        static const uint8_t values[4][2] = { { 0, 0 }, { 0, 1 }, { 0xff, 0xff }, { 1, 2 } };
        char text[ADDR_TEXT], want[ADDR_TEXT];

        (void) state;
        for (unsigned i = 0; i < 1u << 16; i++) {
                struct addr a = { .family = ADDR_V6 };

                for (unsigned w = 0; w < 8; w++)
                        memcpy(a.b + 2 * w, values[i >> 2 * w & 3], 2);
                addr_text(&a, text);
                assert_string_equal(text, inet_ntop(AF_INET6, a.b, want, sizeof(want)));
        }
}

static void prefixes_have_one_spelling(void **state) {
        static const char *const bad[] = { "10.0.0.0/33", "10.0.0.1/8",   "10.0.0.0/", "10.0.0.0/08",
                                           "10.0.0.0/+8", "10/8",         "::1/64",    "::/129",
                                           "/8",          "10.0.0.0/8/8", "::/-1",     "a.b/8" };
        static const char *const good[] = { "10.0.0.0/8", "0.0.0.0/0",    "::/0",
                                            "fd00::/8",   "192.0.2.7/32", "2001:db8::1/128" };
        struct addr_cidr c;
        char text[ADDR_CIDR_TEXT];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(addr_cidr_parse(bad[i], &c), -EINVAL);
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(addr_cidr_parse(good[i], &c), 0);
                addr_cidr_text(&c, text);
                assert_string_equal(text, good[i]);
        }
        assert_int_equal(addr_cidr_parse("192.0.2.7", &c), 0);
        assert_int_equal(c.bits, 32);
        assert_int_equal(addr_cidr_parse("::1", &c), 0);
        assert_int_equal(c.bits, 128);
}

static void prefixes_contain(void **state) {
        static const struct {
                const char *cidr, *addr;
                bool in;
        } rows[] = {
                { "10.0.0.0/8", "10.255.255.255", true },
                { "10.0.0.0/8", "11.0.0.0", false },
                { "172.16.0.0/12", "172.31.0.1", true },
                { "172.16.0.0/12", "172.32.0.1", false },
                { "0.0.0.0/0", "1.2.3.4", true },
                { "0.0.0.0/0", "2001:db8::1", false },
                { "::/0", "1.2.3.4", false },
                { "10.0.0.0/8", "::ffff:10.1.1.1", true },
                { "::ffff:0:0/96", "::ffff:1.2.3.4", true },
                { "10.0.0.0/8", "64:ff9b::10.1.1.1", false },
                { "192.0.2.7/32", "192.0.2.7", true },
                { "192.0.2.7/32", "192.0.2.6", false },
                { "2001:db8::/33", "2001:db8:8000::", false },
                { "2001:db8::/33", "2001:db8:7fff::", true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct addr a = parse(rows[i].addr);
                struct addr_cidr c;

                assert_int_equal(addr_cidr_parse(rows[i].cidr, &c), 0);
                assert_int_equal(addr_cidr_contains(&c, &a), rows[i].in);
        }
}

static void classes(void **state) {
        static const struct {
                const char *addr;
                enum addr_class class;
        } rows[] = {
                { "8.8.8.8", ADDR_PUBLIC },
                { "1.1.1.1", ADDR_PUBLIC },
                { "223.255.255.255", ADDR_PUBLIC },
                { "2606:4700::1111", ADDR_PUBLIC },
                { "3ffe::1", ADDR_PUBLIC },
                { "127.0.0.1", ADDR_LOOPBACK },
                { "127.255.255.255", ADDR_LOOPBACK },
                { "::1", ADDR_LOOPBACK },
                { "10.0.0.1", ADDR_PRIVATE },
                { "172.16.0.1", ADDR_PRIVATE },
                { "172.31.255.255", ADDR_PRIVATE },
                { "172.15.0.1", ADDR_PUBLIC },
                { "172.32.0.1", ADDR_PUBLIC },
                { "192.168.1.1", ADDR_PRIVATE },
                { "fd12:3456::1", ADDR_PRIVATE },
                { "fc00::1", ADDR_PRIVATE },
                { "fec0::1", ADDR_PRIVATE },
                { "64:ff9b:1::1", ADDR_PRIVATE },
                { "169.254.1.1", ADDR_LINK_LOCAL },
                { "fe80::1", ADDR_LINK_LOCAL },
                { "febf::1", ADDR_LINK_LOCAL },
                { "100.64.0.1", ADDR_CGNAT },
                { "100.127.255.255", ADDR_CGNAT },
                { "100.128.0.1", ADDR_PUBLIC },
                { "100.63.255.255", ADDR_PUBLIC },
                { "224.0.0.1", ADDR_MULTICAST },
                { "239.255.255.255", ADDR_MULTICAST },
                { "ff02::1", ADDR_MULTICAST },
                { "0.0.0.0", ADDR_UNSPECIFIED },
                { "0.1.2.3", ADDR_UNSPECIFIED },
                { "::", ADDR_UNSPECIFIED },
                { "192.0.2.1", ADDR_DOCUMENTATION },
                { "198.51.100.1", ADDR_DOCUMENTATION },
                { "203.0.113.1", ADDR_DOCUMENTATION },
                { "2001:db8::1", ADDR_DOCUMENTATION },
                { "3fff:fff::1", ADDR_DOCUMENTATION },
                { "198.18.0.1", ADDR_BENCHMARK },
                { "198.19.255.255", ADDR_BENCHMARK },
                { "198.20.0.1", ADDR_PUBLIC },
                { "2001:2::1", ADDR_BENCHMARK },
                { "192.0.0.1", ADDR_RESERVED },
                { "192.88.99.1", ADDR_RESERVED },
                { "240.0.0.1", ADDR_RESERVED },
                { "255.255.255.255", ADDR_RESERVED },
                { "100::1", ADDR_RESERVED },
                { "2001:10::1", ADDR_RESERVED },
                { "5f00::1", ADDR_RESERVED },
                { "4000::1", ADDR_RESERVED },
                { "169.254.169.254", ADDR_METADATA },
                { "169.254.170.2", ADDR_METADATA },
                { "100.100.100.200", ADDR_METADATA },
                { "168.63.129.16", ADDR_METADATA },
                { "192.0.0.192", ADDR_METADATA },
                { "fd00:ec2::254", ADDR_METADATA },
                { "fd00:ec2::23", ADDR_METADATA },
                { "fd20:ce::254", ADDR_METADATA },
                { "fe80::a9fe:a9fe", ADDR_METADATA },
                { "168.63.129.17", ADDR_PUBLIC },
                { "fd00:ec2::253", ADDR_PRIVATE },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct addr a = parse(rows[i].addr);

                if (addr_classify(&a) != rows[i].class)
                        fail_msg("%s is %s", rows[i].addr, addr_class_name(addr_classify(&a)));
        }
}

/* Every way to write 169.254.169.254, 10.0.0.1 and 8.8.8.8 as IPv6. */
static void ipv6_that_carries_ipv4_has_its_class(void **state) {
        static const struct {
                const char *addr, *inner;
                enum addr_class class;
        } rows[] = {
                { "::ffff:169.254.169.254", "169.254.169.254", ADDR_METADATA },
                { "::ffff:0:169.254.169.254", "169.254.169.254", ADDR_METADATA },
                { "::169.254.169.254", "169.254.169.254", ADDR_METADATA },
                { "64:ff9b::a9fe:a9fe", "169.254.169.254", ADDR_METADATA },
                { "2002:a9fe:a9fe::1", "169.254.169.254", ADDR_METADATA },
                { "2001:0:808:808::5601:5601", "169.254.169.254", ADDR_METADATA },
                { "2001:0:7f00:1::f7f7:f7f7", "8.8.8.8", ADDR_LOOPBACK }, /* the Teredo server is 127.0.0.1 */
                { "2001:0:808:808::f7f7:f7f7", "8.8.8.8", ADDR_PUBLIC },
                { "::ffff:127.0.0.1", "127.0.0.1", ADDR_LOOPBACK },
                { "64:ff9b::10.0.0.1", "10.0.0.1", ADDR_PRIVATE },
                { "2002:a00:1::", "10.0.0.1", ADDR_PRIVATE },
                { "::ffff:8.8.8.8", "8.8.8.8", ADDR_PUBLIC },
                { "64:ff9b::8.8.8.8", "8.8.8.8", ADDR_PUBLIC },
                { "2002:808:808::1", "8.8.8.8", ADDR_PUBLIC },
                { "::8.8.8.8", "8.8.8.8", ADDR_RESERVED },
                { "::ffff:0:8.8.8.8", "8.8.8.8", ADDR_RESERVED },
        };
        struct addr none = parse("2606:4700::1111"), inner;

        (void) state;
        assert_false(addr_embedded(&none, &inner));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct addr a = parse(rows[i].addr), want = parse(rows[i].inner);

                assert_true(addr_embedded(&a, &inner));
                assert_true(addr_eq(&inner, &want));
                if (addr_classify(&a) != rows[i].class)
                        fail_msg("%s is %s", rows[i].addr, addr_class_name(addr_classify(&a)));
        }
}

static void every_class_has_a_name(void **state) {
        (void) state;
        for (int i = 0; i < ADDR_CLASSES; i++)
                assert_non_null(addr_class_name((enum addr_class) i));
        assert_string_equal(addr_class_name(ADDR_METADATA), "metadata");
}

static void sockaddr_round_trip(void **state) {
        static const char *const rows[] = { "192.0.2.1", "2001:db8::1", "::1" };
        struct sockaddr_storage ss;
        struct sockaddr other = { .sa_family = AF_UNIX };
        struct addr a, b;
        uint16_t port = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                a = parse(rows[i]);
                assert_int_equal(addr_to_sockaddr(&a, 4711, &ss),
                                 a.family == ADDR_V4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
                assert_int_equal(addr_from_sockaddr((struct sockaddr *) &ss, &b, &port), 0);
                assert_true(addr_eq(&a, &b));
                assert_int_equal(port, 4711);
        }
        a = parse("::ffff:192.0.2.9");
        (void) addr_to_sockaddr(&a, 1, &ss);
        assert_int_equal(addr_from_sockaddr((struct sockaddr *) &ss, &b, NULL), 0);
        a = parse("192.0.2.9");
        assert_true(addr_eq(&a, &b));
        assert_int_equal(addr_from_sockaddr(&other, &b, NULL), -EAFNOSUPPORT);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_strict),
                cmocka_unit_test(ipv6_is_spelled_as_glibc_does),
                cmocka_unit_test(prefixes_have_one_spelling),
                cmocka_unit_test(prefixes_contain),
                cmocka_unit_test(classes),
                cmocka_unit_test(ipv6_that_carries_ipv4_has_its_class),
                cmocka_unit_test(every_class_has_a_name),
                cmocka_unit_test(sockaddr_round_trip),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
