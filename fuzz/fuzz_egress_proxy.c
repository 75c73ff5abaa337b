/* fuzz_egress_proxy.c - what an upstream proxy says, in any pieces: the same outcome, and never a byte too far. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "egress/config.h"
#include "egress/proxy.h"

struct outcome {
        enum proxy_step step;
        size_t used;
};

/* Lets the proxy say everything, `piece` bytes more at a time. */
static struct outcome talk(const struct config *c, const uint8_t *data, size_t size, size_t piece) {
        struct addr address = addr_v4(0xc6336401);
        struct buf out = BUF_INIT(4096);
        struct proxy *p = NULL;
        struct err err = { 0 };
        struct outcome o = { PROXY_MORE, 0 };
        size_t shown = 0, used;

        if (proxy_new(c, NULL, &address, 443, &out, &p, &err) < 0)
                abort();
        while (o.step != PROXY_FAILED && o.step != PROXY_OPEN) {
                o.step = proxy_feed(p, data + o.used, shown - o.used, &out, &used, &err);
                if (used > shown - o.used || (o.step == PROXY_MORE && used > 0))
                        abort();
                o.used += used;
                if (o.step == PROXY_MORE && shown == size)
                        break;
                if (o.step == PROXY_MORE)
                        shown += size - shown < piece ? size - shown : piece;
        }
        proxy_free(p);
        buf_done(&out);
        return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct config c = { .proxy = { .user = "user", .password = "password" } };
        struct outcome whole, cut;

        if (size < 1 || size > 4096)
                return 0;
        c.proxy.kind = data[0] & 1 ? CONFIG_PROXY_HTTP : CONFIG_PROXY_SOCKS5;
        c.proxy.user[0] = data[0] & 2 ? 'u' : '\0';
        whole = talk(&c, data + 1, size - 1, size);
        cut = talk(&c, data + 1, size - 1, 1);
        if (whole.step != cut.step || (whole.step == PROXY_OPEN && whole.used != cut.used))
                abort();
        return 0;
}
