/* fuzz_addr.c - addresses, prefixes and host names as text: what is accepted has one spelling. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char s[512], text[ADDR_CIDR_TEXT], name[HOST_NAME], again[HOST_NAME];
        struct addr a, b;
        struct addr_cidr c, d;

        if (size >= sizeof(s))
                return 0;
        memcpy(s, data, size);
        s[size] = '\0';
        if (addr_parse(s, &a) == 0) {
                addr_text(&a, text);
                if (addr_parse(text, &b) < 0 || !addr_eq(&a, &b) || addr_classify(&a) >= ADDR_CLASSES)
                        abort();
                if (host_canonical(s, strlen(s), name) == 0)
                        abort(); /* nothing is both */
        }
        if (addr_cidr_parse(s, &c) == 0) {
                addr_cidr_text(&c, text);
                if (addr_cidr_parse(text, &d) < 0 || c.bits != d.bits || !addr_cidr_contains(&c, &d.base))
                        abort();
        }
        if (host_canonical(s, size, name) == 0 &&
            (host_canonical(name, strlen(name), again) < 0 || strcmp(name, again) != 0))
                abort();
        return 0;
}
