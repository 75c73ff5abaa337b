/* reply.h - one question to a server and its reply, as bytes. Pure; private to src/dns. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "dns/dns.h"

enum { REPLY_QUESTION_MAX = 512, REPLY_MAX = 16 * 1024, REPLY_RECORDS = 64, REPLY_ALIASES = 16 };

struct reply_question {
        uint16_t id;
        uint16_t type;    /* DNS_A or DNS_AAAA */
        const char *name; /* canonical */
};

struct reply {
        struct addr addrs[DNS_ADDRS];
        size_t n_addrs;
        uint32_t ttl_s; /* the shortest on the way */
};

/* Length of the packet in dst, or -ENOMEM. */
int reply_ask(const struct reply_question *q, uint8_t dst[REPLY_QUESTION_MAX]);

/*
 * 0: addresses. -ENOENT: no such name. -ENODATA: it has no such address. -EAGAIN: not a reply to this question.
 * -EMSGSIZE: cut off, ask again by TCP. -EIO: the server says it cannot. -EBADMSG: malformed. Untrusted input, fuzzed.
 */
int reply_decode(const void *p, size_t n, const struct reply_question *q, struct reply *ret);
