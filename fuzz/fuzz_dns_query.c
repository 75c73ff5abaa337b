/* fuzz_dns_query.c - queries of sandboxes, and the answer that each of them gets. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "dns/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct dns_answer a = {
                .ttl_s = 60, .addrs = { addr_v4(0xc6120007) }, .n_addrs = 1, .ptr = "a.example", .prohibited = "no"
        };
        struct dns_query q = { 0 }, again;
        char name[HOST_NAME];
        uint8_t reply[DNS_UDP_MAX];
        struct err err = { 0 };
        struct addr ptr;
        int r;

        if (size > 65535)
                return 0;
        r = dns_query_decode(data, size, &q, &err);
        if (r == -ENOMSG)
                return 0;
        if (r == 0) {
                if (host_canonical(q.name, strlen(q.name), name) < 0 || strcmp(name, q.name) != 0)
                        abort();
                (void) dns_ptr_address(q.name, &ptr);
        } else if (r != -EBADMSG || q.rcode == DNS_NOERROR) {
                abort();
        }
        a.rcode = q.rcode;
        r = dns_answer_build(&q, &a, false, reply, sizeof(reply), &err);
        /* It always fits, and it is an answer: a query decoder has nothing to say to it. */
        if (r < 12 || dns_query_decode(reply, (size_t) r, &again, &err) != -ENOMSG)
                abort();
        return 0;
}
