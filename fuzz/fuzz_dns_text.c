/* fuzz_dns_text.c - resolv.conf and hosts. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/own.h"
#include "dns/dns.h"
#include "dns/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(hosts_freep) struct hosts *hosts = NULL;
        struct dns_result res = { 0 };
        struct err err = { 0 };
        struct dns_config c;

        if (size > 65536)
                return 0;
        dns_config_default(&c);
        if (dns_config_parse(&c, (const char *) data, size, &err) == 0 &&
            (c.n_servers == 0 || c.n_servers > DNS_SERVERS || c.tries == 0 || c.timeout_ms == 0))
                abort();
        if (hosts_parse((const char *) data, size, &hosts) == 0 &&
            hosts_find(hosts, "localhost", DNS_WANT_V4 | DNS_WANT_V6, &res) &&
            (res.n_addrs == 0 || res.n_addrs > DNS_ADDRS))
                abort();
        return 0;
}
