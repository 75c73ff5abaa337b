/* beside.c - a notary for one writer, forked by it. The writer shares nothing with it but the socket. */
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sys.h"
#include "notary/isolate.h"
#include "notary/notary.h"

/* Each request is refused with the same words, until the writer has gone. */
static void refuse_all(int fd, const struct err *why) {
        struct ipc_msg m;

        while (ipc_recv(fd, &m) > 0) {
                struct rd head = rd_from(m.bytes, m.n);

                (void) rd_u16(&head);
                (void) ipc_reply(fd, rd_u32(&head), NULL, 0, -1, why);
                ipc_msg_done(&m);
        }
}

void notary_beside(int fd, const struct notary_settings *s) {
        const struct ipc_peer self = { .uid = geteuid() };
        struct notary *n = NULL;
        struct err err = { 0 };
        int r;

        /* What the caller had open is not ours: its terminal and pipes would be held open by us. Errors go to it. */
        if (fd > 2)
                (void) sys_close_range(3, (unsigned) fd - 1, 0);
        (void) sys_close_range((unsigned) fd + 1, ~0u, 0);
        (void) close(0);
        (void) close(1);
        (void) sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (r == 0)
                r = notary_new(s, &n, &err);
        if (r == 0)
                r = isolate_calls(&err);
        if (r == 0)
                r = notary_add(n, fd, &self, &err);
        if (r < 0)
                refuse_all(fd, &err);
        else
                (void) notary_serve(n, -1, -1, &err);
        (void) notary_free(n);
        _exit(r < 0);
}
