/* odd_egress.c - a gabion-egress that was taken over, or is broken: it speaks the protocol, and then does what the
 * member "upstream_proxy" of its configuration says. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "egressproto/egressproto.h"
#include "ipc/ipc.h"
#include "json/json.h"

static void say(struct egp_message m, int fd) {
        uint8_t space[EGP_MESSAGE_MAX];
        struct wr w = wr_to(space, sizeof(space));

        egp_put(&w, &m);
        (void) ipc_send(EGP_FD, space, w.len, &fd, fd >= 0);
}

static void record(const char *text) {
        say((struct egp_message){ .type = EGP_RECORD, .record = text, .n_record = strlen(text) }, -1);
}

/* Returns what to do with the next request. */
static const char *configure(const struct ipc_msg *raw, const struct egp_message *m) {
        static char mode[64];
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        struct err e = { 0 };
        size_t n;

        if (ipc_blob_read(raw->fds[0], 4096, &text, &n, &e) < 0 || json_parse("c", text, n, &doc, &e) < 0)
                _exit(9);
        (void) snprintf(mode, sizeof(mode), "%s", json_get_str(doc, "upstream_proxy"));
        if (strcmp(mode, "die") == 0)
                _exit(3);
        if (strcmp(mode, "refuse") == 0)
                say((struct egp_message){ .type = EGP_FAILED, .request = m->request, .text = "no such place" }, -1);
        else
                say((struct egp_message){ .type = EGP_READY, .request = m->request }, ipc_blob_make("keep", 4, &e));
        return mode;
}

int main(void) {
        const char *mode = "";

        for (;;) {
                CLEANUP(ipc_msg_done) struct ipc_msg raw;
                struct egp_message m;

                if (ipc_recv(EGP_FD, &raw) != 1 || egp_get(raw.bytes, raw.n, &m) < 0)
                        return 0;
                if (m.type == EGP_CONFIG) {
                        mode = configure(&raw, &m);
                        continue;
                }
                if (strcmp(mode, "nonsense") == 0)
                        (void) ipc_send(EGP_FD, "\0\0nonsense", 10, NULL, 0);
                else if (strcmp(mode, "ask") == 0)
                        say((struct egp_message){ .type = EGP_PING, .request = 1 }, -1);
                else if (strcmp(mode, "ready-again") == 0)
                        say((struct egp_message){ .type = EGP_READY, .request = m.request }, 2);
                else if (strcmp(mode, "killed") == 0)
                        __builtin_trap();
                else if (strcmp(mode, "records") == 0)
                        for (int i = 0; i < 100; i++)
                                record("{\"decision\":\"deny\"}");
                say((struct egp_message){ .type = EGP_OK, .request = m.request }, -1);
        }
}
