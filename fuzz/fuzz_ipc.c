/* fuzz_ipc.c - sequences of requests to the gate, and each also taken as a reply. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "ipc/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_text(struct ipc_call *c, struct err *err) {
        char text[16];

        rd_str(&c->body, text, sizeof(text));
        if (!rd_done(&c->body))
                return err_set(err, -EBADMSG, ERR_PEER, "malformed");
        wr_str(c->reply, text);
        return text[0] == '!' ? err_set(err, -EPERM, ERR_DENIED, "%s", text) : IPC_REPLY_NOW;
}

static int on_move(struct ipc_call *c, struct err *err) {
        (void) err;
        c->gate->state = 1;
        return c->body.left ? IPC_REPLY_LATER : IPC_REPLY_NOW;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const struct ipc_op ops[] = {
                [1] = { "text", on_text, BIT(0) | BIT(1), 32, 0, false },
                [2] = { "move", on_move, BIT(0), 4, 0, true },
        };
        struct ipc_gate g = { .ops = ops, .n_ops = ARRAY_SIZE(ops) };
        struct rd r = rd_from(data, size);

        while (!r.bad && r.left > 0) {
                struct ipc_msg m = { 0 };
                uint8_t space[256];
                struct wr reply = wr_to(space, sizeof(space));
                struct err err = { 0 };
                int fd;

                m.n = rd_u8(&r);
                m.n = m.n < r.left ? m.n : r.left;
                memcpy(m.bytes, r.p, m.n);
                r.p += m.n;
                r.left -= m.n;
                if (ipc_dispatch(&g, &m, &reply, &fd, &err) == IPC_REPLY_NOW && (reply.bad || reply.len < IPC_HEAD))
                        abort(); /* every request that passed has a whole reply */
                if (ipc_result(&m, 1, &err) > 0)
                        abort();
        }
        return 0;
}
