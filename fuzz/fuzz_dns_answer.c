/* fuzz_dns_answer.c - replies of servers to one fixed question. */
#include <stdint.h>
#include <stdlib.h>

#include "dns/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const struct reply_question questions[] = { { 0x4242, DNS_A, "a.example" },
                                                           { 0x4242, DNS_AAAA, "a.example" } };

        if (size > REPLY_MAX)
                return 0;
        for (unsigned i = 0; i < 2; i++) {
                struct reply rep = { .n_addrs = 0 };
                int r = reply_decode(data, size, &questions[i], &rep);

                if (r > 0 || (r == 0 && (rep.n_addrs == 0 || rep.n_addrs > DNS_ADDRS)))
                        abort();
                for (size_t k = 0; r == 0 && k < rep.n_addrs; k++)
                        if (rep.addrs[k].family != (i == 0 ? ADDR_V4 : ADDR_V6))
                                abort();
        }
        return 0;
}
