/* addr.h - IP addresses as values: strict text, prefixes, and what kind of place an address is. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct sockaddr_storage;

enum { ADDR_TEXT = 46, ADDR_CIDR_TEXT = 50 };

enum addr_family { ADDR_NONE = 0, ADDR_V4 = 4, ADDR_V6 = 6 };

/* A plain value in network order; an IPv4 address is the first four bytes and the others are zero. */
struct addr {
        enum addr_family family;
        uint8_t b[16];
};

struct addr_cidr {
        struct addr base; /* no bit is set behind the prefix */
        unsigned bits;
};

/*
 * Where an address leads. Everything but ADDR_PUBLIC is closed below user policy. An address space that nobody has
 * described yet is ADDR_RESERVED, so a gap in the tables is a refusal.
 */
enum addr_class {
        ADDR_PUBLIC,
        ADDR_LOOPBACK,
        ADDR_PRIVATE,    /* RFC 1918, ULA, site-local, local NAT64 */
        ADDR_LINK_LOCAL, /* 169.254/16, fe80::/10 */
        ADDR_CGNAT,      /* 100.64/10 */
        ADDR_MULTICAST,
        ADDR_UNSPECIFIED, /* ::, 0/8 ("this network") */
        ADDR_DOCUMENTATION,
        ADDR_BENCHMARK, /* 198.18/15: where our own fake addresses are */
        ADDR_RESERVED,
        ADDR_METADATA, /* credentials of cloud machines, by a list of names in addr.c */
        ADDR_CLASSES,
};

/* 0 or -EINVAL. IPv4 is four decimals without leading zeros, nothing else; IPv6 has no zone. */
int addr_parse(const char *s, struct addr *ret);
void addr_text(const struct addr *a, char dst[ADDR_TEXT]);
struct addr addr_v4(uint32_t host_order);
/* Host order; 0 for anything but IPv4. */
uint32_t addr_to_u32(const struct addr *a);
bool addr_eq(const struct addr *a, const struct addr *b);

/* "ADDRESS/BITS", or an address alone for itself. -EINVAL also when bits behind the prefix are set. */
int addr_cidr_parse(const char *s, struct addr_cidr *ret);
void addr_cidr_text(const struct addr_cidr *c, char dst[ADDR_CIDR_TEXT]);
/* Same family only, except that a v4-mapped address is its IPv4 address, as it is for the kernel. */
bool addr_cidr_contains(const struct addr_cidr *c, const struct addr *a);

/*
 * The IPv4 address that an IPv6 address stands for: v4-mapped, v4-compatible, SIIT, NAT64, 6to4, Teredo (the client).
 * Whoever denies an IPv4 prefix must look at this one, too. False if there is none.
 */
bool addr_embedded(const struct addr *a, struct addr *ret);
/* IPv6 that carries IPv4 has the class of the inner address, unless that one is public and the form itself is not. */
enum addr_class addr_classify(const struct addr *a);
/* "public", "loopback", ..., for logs and reasons. */
const char *addr_class_name(enum addr_class c);

/* -EAFNOSUPPORT for other families. A v4-mapped address becomes IPv4. ret_port may be NULL. */
int addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret, uint16_t *ret_port);
/* The length for connect() and bind(). */
size_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret);
