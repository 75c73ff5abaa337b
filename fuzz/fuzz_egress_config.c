/* fuzz_egress_config.c - the configuration of gabion-egress: whatever is accepted is in range. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "egress/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct config c;
        struct err err = { 0 };

        if (size > 65536 || config_read((const char *) data, size, &c, &err) < 0)
                return 0;
        if (c.proxy.kind != CONFIG_PROXY_NONE &&
            (c.proxy.port == 0 || (c.proxy.name[0] == '\0') == (c.proxy.address.family == ADDR_NONE)))
                abort();
        if (strpbrk(c.proxy.user, "\r\n:") || strpbrk(c.proxy.password, "\r\n"))
                abort();
        return 0;
}
