/*
 * dns.h - DNS for the egress proxy: what a sandbox asks, what it is told, and the names of the world outside.
 *
 * Queries are decoded label by label and answers are built anew; no packet is ever forwarded in either direction. The
 * only includer of ldns. One thread, one event loop; the pure part (query, answer, book, texts) knows no loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/host.h"

struct err;
struct event_base;

enum {
        DNS_WIRE_NAME = 255,  /* bytes of a name in a packet */
        DNS_UDP_MAX = 1232,   /* most we send by UDP, whatever the client offers */
        DNS_QUERY_MAX = 4096, /* a longer query is refused */
        DNS_ADDRS = 16,       /* per answer; more are left out */
        DNS_WHY_MAX = 128,    /* of struct dns_answer.prohibited; the rest is cut off */
        DNS_BOOK_MAX = 131070,
};

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_PTR = 12, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65 };

enum dns_rcode { DNS_NOERROR, DNS_FORMERR, DNS_SERVFAIL, DNS_NXDOMAIN, DNS_NOTIMP, DNS_REFUSED, DNS_BADVERS = 16 };

/* --- what a sandbox asks --- */

struct dns_query {
        uint16_t id;
        uint8_t opcode;
        bool rd, cd, edns, edns_do;
        enum dns_rcode rcode;                /* DNS_NOERROR, or what dns_answer_build() has to be told */
        char name[HOST_NAME];                /* canonical */
        uint16_t type;                       /* any value: an enum dns_type or something else */
        uint16_t edns_bytes;                 /* what the client can take, 0 without EDNS */
        uint8_t question[DNS_WIRE_NAME + 4]; /* as asked, so that the answer repeats its upper and lower case */
        size_t n_question;                   /* 0: it could not be read, and the answer has none */
};

/*
 * 0: one question of class IN, opcode 0, for a host name. -EBADMSG: refuse with ret->rcode, by dns_answer_build().
 * -ENOMSG: say nothing (an answer, or not even a header). *ret is filled in the first two cases.
 */
int dns_query_decode(const void *p, size_t n, struct dns_query *ret, struct err *err);
/* The address a PTR question is about ("1.0.18.198.in-addr.arpa"): 0 or -EINVAL. IPv4 only. */
int dns_ptr_address(const char *name, struct addr *ret);

/* --- what it is told --- */

/* rcode alone is a refusal; DNS_NOERROR with nothing is NODATA. Addresses of the other family are left out. */
struct dns_answer {
        enum dns_rcode rcode;
        uint32_t ttl_s;
        struct addr addrs[DNS_ADDRS];
        size_t n_addrs;
        const char *ptr;        /* name for a PTR question, or NULL */
        const char *prohibited; /* why, as Extended DNS Error 18 (RFC 8914) for clients with EDNS, or NULL */
};

/*
 * Writes the reply and returns its length. Over UDP an answer that the client cannot take (512 without EDNS) goes
 * without records and with TC. cap of DNS_UDP_MAX is always enough. -EMSGSIZE: does not fit in cap either.
 */
int dns_answer_build(const struct dns_query *q, const struct dns_answer *a, bool tcp, uint8_t *dst, size_t cap,
                     struct err *err);

/* --- fake addresses, per sandbox --- */

struct dns_book;

/* max_names: the budget, at most DNS_BOOK_MAX. The caller owns *ret. */
int dns_book_new(size_t max_names, struct dns_book **ret, struct err *err);
struct dns_book *dns_book_free(struct dns_book *b);
void dns_book_freep(struct dns_book **b);
/*
 * The address of a canonical name, always the same one; given out on first sight, in order, from 198.18.0.1. -EDQUOT
 * (ERR_LIMIT): the budget is spent; names already known still work.
 */
int dns_book_give(struct dns_book *b, const char *name, struct addr *ret, struct err *err);
/* Was it given out already? */
bool dns_book_find(const struct dns_book *b, const char *name, struct addr *ret);
/* NULL: never given out. Borrowed for the life of the book. */
const char *dns_book_name(const struct dns_book *b, const struct addr *a);
/* Names in the order in which they were given: giving them again to an empty book restores it. */
size_t dns_book_count(const struct dns_book *b);
const char *dns_book_at(const struct dns_book *b, size_t i);

/* --- names of the world outside --- */

enum { DNS_SERVERS = 4, DNS_TEXT_MAX = 1 << 20 };

struct dns_server {
        struct addr addr;
        uint16_t port;
};

struct dns_config {
        struct dns_server servers[DNS_SERVERS];
        size_t n_servers;
        unsigned timeout_ms;  /* per try */
        unsigned tries;       /* per server and question */
        unsigned max_pending; /* lookups at a time; more fail with -EBUSY */
        unsigned max_cached;  /* names; 0: no cache */
        unsigned ttl_min_s, ttl_max_s, ttl_negative_s;
};

/* Limits without any server. */
void dns_config_default(struct dns_config *c);
/* Takes "nameserver" lines (and options timeout, attempts) of resolv.conf text. -ENOENT: no usable server in it. */
int dns_config_parse(struct dns_config *c, const char *text, size_t n, struct err *err);
int dns_config_read(struct dns_config *c, const char *path, struct err *err);

struct dns_resolver;

/* Borrows base for its life. n_servers may be 0: then only hosts are found. */
int dns_resolver_new(struct event_base *base, const struct dns_config *c, struct dns_resolver **ret, struct err *err);
/* Lookups still under way are dropped without a callback. Not from within a callback. */
struct dns_resolver *dns_resolver_free(struct dns_resolver *r);
void dns_resolver_freep(struct dns_resolver **r);
/* Names of a hosts file, which go before every server and replace those read earlier. Unusable lines are skipped. */
int dns_resolver_hosts(struct dns_resolver *r, const char *text, size_t n, struct err *err);
int dns_resolver_hosts_read(struct dns_resolver *r, const char *path, struct err *err);

enum { DNS_WANT_V4 = 1, DNS_WANT_V6 = 2 };

struct dns_result {
        int code; /* 0: addresses. -ENOENT: no such name. -ENODATA: no address. -ETIMEDOUT. -EIO: servers fail or lie */
        struct addr addrs[DNS_ADDRS]; /* IPv4 first; not judged: see addr_classify() */
        size_t n_addrs;
        uint32_t ttl_s;
        enum { DNS_FROM_SERVER, DNS_FROM_CACHE, DNS_FROM_HOSTS } from;
};

struct dns_lookup;
typedef void (*dns_done_fn)(const struct dns_result *res, void *arg);

/*
 * Asks for a canonical name; want is DNS_WANT_V4, DNS_WANT_V6 or both. done is called once, from the loop and never
 * from here; the lookup is gone before that. *ret is valid until then, for dns_lookup_cancel() only.
 */
int dns_resolve(struct dns_resolver *r, const char *name, unsigned want, dns_done_fn done, void *arg,
                struct dns_lookup **ret, struct err *err);
/* done will not be called. */
void dns_lookup_cancel(struct dns_lookup *l);
