/*
 * addr.c - see addr.h. Text goes through inet_pton(), which knows neither octal, hex nor short forms of IPv4, and has
 * no zones; classes come from the tables below (IANA's special-purpose registries).
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

struct range4 {
        uint32_t net;
        unsigned bits;
        enum addr_class class;
};

struct range6 {
        uint8_t net[16];
        unsigned bits;
        enum addr_class class;
};

#define IP4(a, b, c, d) ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

/* The first match counts: single addresses stand before the range they are in. */
static const struct range4 ranges4[] = {
        { IP4(169, 254, 169, 254), 32, ADDR_METADATA }, /* AWS, Azure, Google, OpenStack, Oracle, DigitalOcean, ... */
        { IP4(169, 254, 170, 2), 32, ADDR_METADATA },   /* AWS: credentials of ECS tasks */
        { IP4(169, 254, 170, 23), 32, ADDR_METADATA },  /* AWS: credentials of EKS pods */
        { IP4(169, 254, 42, 42), 32, ADDR_METADATA },   /* Scaleway */
        { IP4(169, 254, 0, 23), 32, ADDR_METADATA },    /* Tencent */
        { IP4(100, 100, 100, 200), 32, ADDR_METADATA }, /* Alibaba */
        { IP4(168, 63, 129, 16), 32, ADDR_METADATA },   /* Azure: wire server */
        { IP4(192, 0, 0, 192), 32, ADDR_METADATA },     /* Oracle, classic */
        { IP4(0, 0, 0, 0), 8, ADDR_UNSPECIFIED },         { IP4(10, 0, 0, 0), 8, ADDR_PRIVATE },
        { IP4(100, 64, 0, 0), 10, ADDR_CGNAT },           { IP4(127, 0, 0, 0), 8, ADDR_LOOPBACK },
        { IP4(169, 254, 0, 0), 16, ADDR_LINK_LOCAL },     { IP4(172, 16, 0, 0), 12, ADDR_PRIVATE },
        { IP4(192, 0, 0, 0), 24, ADDR_RESERVED },         { IP4(192, 0, 2, 0), 24, ADDR_DOCUMENTATION },
        { IP4(192, 88, 99, 0), 24, ADDR_RESERVED }, /* relays of 6to4, withdrawn */
        { IP4(192, 168, 0, 0), 16, ADDR_PRIVATE },        { IP4(198, 18, 0, 0), 15, ADDR_BENCHMARK },
        { IP4(198, 51, 100, 0), 24, ADDR_DOCUMENTATION }, { IP4(203, 0, 113, 0), 24, ADDR_DOCUMENTATION },
        { IP4(224, 0, 0, 0), 4, ADDR_MULTICAST },         { IP4(240, 0, 0, 0), 4, ADDR_RESERVED },
};

/* As above; what no row names is reserved, because only 2000::/3 has been given out. */
static const struct range6 ranges6[] = {
        { { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, 128, ADDR_METADATA },               /* AWS */
        { { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23 }, 128, ADDR_METADATA },                            /* AWS, EKS */
        { { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 }, 128, ADDR_METADATA },               /* Google */
        { { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 }, 128, ADDR_METADATA },                            /* Scaleway */
        { { 0xfe, 0x80, [12] = 0xa9, [13] = 0xfe, [14] = 0xa9, [15] = 0xfe }, 128, ADDR_METADATA }, /* OpenStack */
        { { 0 }, 128, ADDR_UNSPECIFIED },
        { { [15] = 1 }, 128, ADDR_LOOPBACK },
        { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, ADDR_PRIVATE }, /* NAT64 inside a network */
        { { 0x20, 0x01, 0x00, 0x02 }, 48, ADDR_BENCHMARK },
        { { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDR_DOCUMENTATION },
        { { 0x20, 0x01 }, 32, ADDR_PUBLIC },   /* Teredo: judged by what it carries */
        { { 0x20, 0x01 }, 23, ADDR_RESERVED }, /* protocol assignments, ORCHID */
        { { 0x3f, 0xff }, 20, ADDR_DOCUMENTATION },
        { { 0x20 }, 3, ADDR_PUBLIC },
        { { 0x00, 0x64, 0xff, 0x9b }, 96, ADDR_PUBLIC }, /* NAT64: judged by what it carries */
        { { 0xfc }, 7, ADDR_PRIVATE },
        { { 0xfe, 0x80 }, 10, ADDR_LINK_LOCAL },
        { { 0xfe, 0xc0 }, 10, ADDR_PRIVATE },
        { { 0xff }, 8, ADDR_MULTICAST },
};

/* IPv6 prefixes behind which an IPv4 address stands at offset `at`. */
static const struct {
        uint8_t net[16];
        unsigned bits;
        unsigned at;
        bool inverted;
} carriers[] = {
        { { [10] = 0xff, [11] = 0xff }, 96, 12, false }, /* v4-mapped */
        { { [8] = 0xff, [9] = 0xff }, 96, 12, false },   /* SIIT */
        { { 0x00, 0x64, 0xff, 0x9b }, 96, 12, false },   /* NAT64 */
        { { 0x20, 0x02 }, 16, 2, false },                /* 6to4 */
        { { 0x20, 0x01, 0x00, 0x00 }, 32, 12, true },    /* Teredo: the client, inverted */
        { { 0 }, 96, 12, false },                        /* v4-compatible */
};

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits) {
        unsigned rest = bits % 8;

        if (memcmp(a, b, bits / 8) != 0)
                return false;
        return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

static uint32_t get_u32(const uint8_t *p) {
        return IP4(p[0], p[1], p[2], p[3]);
}

struct addr addr_v4(uint32_t host_order) {
        struct addr a = { .family = ADDR_V4 };

        for (unsigned i = 0; i < 4; i++)
                a.b[i] = (uint8_t) (host_order >> (24 - 8 * i));
        return a;
}

uint32_t addr_to_u32(const struct addr *a) {
        return a->family == ADDR_V4 ? get_u32(a->b) : 0;
}

bool addr_eq(const struct addr *a, const struct addr *b) {
        return a->family == b->family && memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

int addr_parse(const char *s, struct addr *ret) {
        struct addr a = { 0 };

        if (inet_pton(AF_INET, s, a.b) == 1)
                a.family = ADDR_V4;
        else if (inet_pton(AF_INET6, s, a.b) == 1)
                a.family = ADDR_V6;
        else
                return -EINVAL;
        *ret = a;
        return 0;
}

/*
 * As glibc's inet_ntop() has it. musl's spells some otherwise, and the hash of a policy with an address in it must not
 * depend on the program: the first of the longest runs of zeros is "::", and what carries IPv4 and no more ends in it.
 */
static void text_v6(const uint8_t b[16], char dst[ADDR_TEXT]) {
        size_t n = 0, first = 0, zeros = 0;
        unsigned words[8];

        for (size_t i = 0, run = 0; i < 8; i++) {
                words[i] = (unsigned) b[2 * i] << 8 | b[2 * i + 1];
                run = words[i] ? 0 : run + 1;
                if (run > 1 && run > zeros) {
                        zeros = run;
                        first = i + 1 - run;
                }
        }
        for (size_t i = 0; i < 8; i++) {
                const char *colon = i > 0 && i != first + zeros ? ":" : "";

                if (zeros && i == first) {
                        n += (size_t) snprintf(dst + n, ADDR_TEXT - n, "::");
                        i += zeros - 1;
                } else if (i == 6 && first == 0 && (zeros == 6 || (zeros == 5 && words[5] == 0xffff))) {
                        (void) snprintf(dst + n, ADDR_TEXT - n, "%s%u.%u.%u.%u", colon, b[12], b[13], b[14], b[15]);
                        return;
                } else
                        n += (size_t) snprintf(dst + n, ADDR_TEXT - n, "%s%x", colon, words[i]);
        }
}

void addr_text(const struct addr *a, char dst[ADDR_TEXT]) {
        dst[0] = '\0';
        if (a->family == ADDR_V4)
                (void) inet_ntop(AF_INET, a->b, dst, ADDR_TEXT);
        else if (a->family == ADDR_V6)
                text_v6(a->b, dst);
}

int addr_cidr_parse(const char *s, struct addr_cidr *ret) {
        const char *slash = strchr(s, '/');
        size_t n = slash ? (size_t) (slash - s) : strlen(s);
        char text[ADDR_TEXT];
        struct addr_cidr c;
        uint64_t bits;

        if (n >= sizeof(text))
                return -EINVAL;
        memcpy(text, s, n);
        text[n] = '\0';
        if (addr_parse(text, &c.base) < 0)
                return -EINVAL;
        bits = c.base.family == ADDR_V4 ? 32 : 128;
        /* One spelling per number: "/08" would be octal to somebody. */
        if (slash && ((slash[1] == '0' && slash[2]) || str_to_u64(slash + 1, bits, &bits) < 0))
                return -EINVAL;
        c.bits = (unsigned) bits;
        for (unsigned i = c.bits; i < 8 * sizeof(c.base.b); i++)
                if (c.base.b[i / 8] & (0x80u >> (i % 8)))
                        return -EINVAL;
        *ret = c;
        return 0;
}

void addr_cidr_text(const struct addr_cidr *c, char dst[ADDR_CIDR_TEXT]) {
        char text[ADDR_TEXT];

        addr_text(&c->base, text);
        (void) snprintf(dst, ADDR_CIDR_TEXT, "%s/%u", text, c->bits <= 128 ? c->bits : 128);
}

static bool is_mapped(const struct addr *a) {
        return a->family == ADDR_V6 && same_bits(a->b, carriers[0].net, carriers[0].bits);
}

bool addr_cidr_contains(const struct addr_cidr *c, const struct addr *a) {
        struct addr inner;

        if (c->base.family == ADDR_V4 && is_mapped(a) && addr_embedded(a, &inner))
                a = &inner;
        return c->base.family == a->family && same_bits(c->base.b, a->b, c->bits);
}

bool addr_embedded(const struct addr *a, struct addr *ret) {
        if (a->family != ADDR_V6)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(carriers); i++)
                if (same_bits(a->b, carriers[i].net, carriers[i].bits)) {
                        uint32_t v = get_u32(a->b + carriers[i].at);

                        *ret = addr_v4(carriers[i].inverted ? ~v : v);
                        return true;
                }
        return false;
}

static enum addr_class classify4(uint32_t v) {
        for (size_t i = 0; i < ARRAY_SIZE(ranges4); i++)
                if (((v ^ ranges4[i].net) >> (32 - ranges4[i].bits)) == 0)
                        return ranges4[i].class;
        return ADDR_PUBLIC;
}

static enum addr_class classify6(const uint8_t *b) {
        for (size_t i = 0; i < ARRAY_SIZE(ranges6); i++)
                if (same_bits(b, ranges6[i].net, ranges6[i].bits))
                        return ranges6[i].class;
        return ADDR_RESERVED;
}

enum addr_class addr_classify(const struct addr *a) {
        static const uint8_t teredo[4] = { 0x20, 0x01 };
        enum addr_class outer, inside;
        struct addr inner;

        if (a->family == ADDR_V4)
                return classify4(get_u32(a->b));
        if (a->family != ADDR_V6)
                return ADDR_RESERVED;
        outer = classify6(a->b);
        if (outer == ADDR_UNSPECIFIED || outer == ADDR_LOOPBACK || !addr_embedded(a, &inner))
                return outer;
        inside = classify4(get_u32(inner.b));
        if (inside == ADDR_PUBLIC && same_bits(a->b, teredo, 32))
                inside = classify4(get_u32(a->b + 4)); /* the server, through which packets go first */
        if (inside == ADDR_PUBLIC && is_mapped(a))
                return ADDR_PUBLIC; /* the kernel dials the IPv4 address itself */
        return inside == ADDR_PUBLIC ? outer : inside;
}

const char *addr_class_name(enum addr_class c) {
        static const char *const names[ADDR_CLASSES] = {
                [ADDR_PUBLIC] = "public",
                [ADDR_LOOPBACK] = "loopback",
                [ADDR_PRIVATE] = "private",
                [ADDR_LINK_LOCAL] = "link-local",
                [ADDR_CGNAT] = "cgnat",
                [ADDR_MULTICAST] = "multicast",
                [ADDR_UNSPECIFIED] = "unspecified",
                [ADDR_DOCUMENTATION] = "documentation",
                [ADDR_BENCHMARK] = "benchmark",
                [ADDR_RESERVED] = "reserved",
                [ADDR_METADATA] = "metadata",
        };

        return c < ADDR_CLASSES ? names[c] : "reserved";
}

int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret, uint16_t *ret_port) {
        struct addr a = { 0 };
        uint16_t port;

        if (sa->sa_family == AF_INET) {
                const struct sockaddr_in *in = (const void *) sa;

                a.family = ADDR_V4;
                memcpy(a.b, &in->sin_addr, 4);
                port = ntohs(in->sin_port);
        } else if (sa->sa_family == AF_INET6) {
                const struct sockaddr_in6 *in6 = (const void *) sa;

                a.family = ADDR_V6;
                memcpy(a.b, &in6->sin6_addr, 16);
                port = ntohs(in6->sin6_port);
        } else {
                return -EAFNOSUPPORT;
        }
        if (is_mapped(&a))
                (void) addr_embedded(&a, &a);
        *ret = a;
        if (ret_port)
                *ret_port = port;
        return 0;
}

size_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret) {
        memset(ret, 0, sizeof(*ret));
        if (a->family == ADDR_V4) {
                struct sockaddr_in *in = (void *) ret;

                in->sin_family = AF_INET;
                in->sin_port = htons(port);
                memcpy(&in->sin_addr, a->b, 4);
                return sizeof(*in);
        } else {
                struct sockaddr_in6 *in6 = (void *) ret;

                in6->sin6_family = AF_INET6;
                in6->sin6_port = htons(port);
                memcpy(&in6->sin6_addr, a->b, 16);
                return sizeof(*in6);
        }
}
