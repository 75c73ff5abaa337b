/* main.c - gabion-egress: started by a supervisor with a control socket on descriptor 3. See docs/protocol/egress.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "egress/egress.h"
#include "egress/isolate.h"
#include "egressproto/egressproto.h"
#include "ipc/ipc.h"

static int fail(const struct err *err) {
        (void) fprintf(stderr, "gabion-egress: %s\n", err->msg);
        return EXIT_FAILURE;
}

/* Tells the supervisor why there will be no READY. */
static void say_failed(uint32_t request, const struct err *why) {
        struct egp_message m = { .type = EGP_FAILED, .request = request };
        uint8_t bytes[EGP_MESSAGE_MAX];
        struct wr w = wr_to(bytes, sizeof(bytes));

        (void) snprintf(m.text, sizeof(m.text), "%s", why->msg);
        egp_put(&w, &m);
        if (!w.bad)
                (void) ipc_send(EGP_FD, bytes, w.len, NULL, 0);
}

/* The first message must be the configuration; without it nothing can be isolated to fit. */
static int wait_config(struct ipc_msg *msg, struct egp_message *m, struct err *err) {
        int r = ipc_recv(EGP_FD, msg);

        if (r <= 0)
                return r == 0 ? 0 : err_set(err, r, ERR_PEER, "control socket: cannot be read");
        if (egp_get(msg->bytes, msg->n, m) < 0 || m->type != EGP_CONFIG || !egp_n_fds(m, msg->n_fds))
                return err_set(err, -EPROTO, ERR_PEER, "control socket: the first message is no configuration");
        return 1;
}

static int set_up(struct ipc_msg *msg, uint32_t request, struct egress **ret, struct err *err) {
        int *keep = &msg->fds[EGP_CONFIG_KEEP], none = -1;
        int r = egress_new(EGP_FD, msg->fds[EGP_CONFIG_DOCUMENT], msg->n_fds > 1 ? *keep : none, ret, err);

        if (r == 0 && msg->n_fds > 1)
                *keep = -1;
        if (r == 0)
                r = isolate_files(err);
        if (r == 0)
                r = isolate_calls(err);
        if (r == 0)
                egress_ready(*ret, request);
        return r;
}

int main(void) {
        struct ipc_msg msg;
        struct egp_message m;
        struct egress *e = NULL;
        struct err err = { 0 };
        int r = isolate_start(&err);

        if (r == 0)
                r = isolate_user(&err);
        if (r < 0)
                return fail(&err);
        r = wait_config(&msg, &m, &err);
        if (r <= 0)
                return r == 0 ? EXIT_SUCCESS : fail(&err);
        r = set_up(&msg, m.request, &e, &err);
        ipc_msg_done(&msg);
        if (r < 0) {
                say_failed(m.request, &err);
                egress_free(e);
                return fail(&err);
        }
        r = egress_run(e);
        egress_free(e);
        return r;
}
