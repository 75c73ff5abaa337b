/*
 * notify.c - answers the calls that a profile reports to the host side.
 *
 * Theory of operation. A reported call waits in the kernel; the listener's holder reads a fixed record (number and
 * six arguments) and sends an errno back. The record is the kernel's own, so the sandbox cannot forge it; arguments
 * are plain numbers here and no pointer among them is ever followed. Invariant: the answer is always a refusal. The
 * flag that would let the call run is not in this file, and a call that no note covers is refused too.
 *
 * The listener is polled before it is read: a read would sleep for ever if the caller was killed in between.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sysraw.h"
#include "seccomp/blobs.h"

enum { NOTIFY_RECORD_MAX = 512 }; /* today's records have 80 and 24 bytes */

/* Kernels may have longer records than our headers, and write them whole. */
static int sizes_check(struct err *err) {
        static atomic_bool checked;
        struct seccomp_notif_sizes sizes = { 0 };
        long r;

        if (atomic_load(&checked))
                return 0;
        r = SYS3(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
        if (r < 0)
                return err_set(err, (int) r, ERR_INTERNAL, "seccomp: sizes of notifications");
        if (sizes.seccomp_notif > NOTIFY_RECORD_MAX || sizes.seccomp_notif_resp > NOTIFY_RECORD_MAX)
                return err_set(err, -EOVERFLOW, ERR_INTERNAL, "seccomp: notifications of %u and %u bytes",
                               sizes.seccomp_notif, sizes.seccomp_notif_resp);
        atomic_store(&checked, true);
        return 0;
}

static bool note_holds(const struct seccomp_note *n, const struct seccomp_data *d) {
        if (n->nr != d->nr)
                return false;
        for (unsigned i = 0; i < n->n; i++)
                if (((uint32_t) d->args[n->conds[i].arg] & n->conds[i].mask) != n->conds[i].value)
                        return false;
        return true;
}

static int errno_for(const struct seccomp_blob *b, const struct seccomp_data *d) {
        for (size_t i = 0; i < b->n_notes; i++)
                if (note_holds(&b->notes[i], d))
                        return b->notes[i].code;
        return EPERM;
}

static const char *name_of(const struct seccomp_blob *b, int nr) {
        for (size_t i = 0; i < b->n_rows; i++)
                if (b->rows[i].nr == nr)
                        return b->rows[i].name;
        return "?";
}

int seccomp_notify_answer(int listener_fd, enum seccomp_profile profile, struct seccomp_event *ev, struct err *err) {
        const struct seccomp_blob *b = seccomp_blob(profile);
        union {
                struct seccomp_notif n;
                struct seccomp_notif_resp r;
                char room[NOTIFY_RECORD_MAX];
        } got = { .room = { 0 } }, answer = { .room = { 0 } };
        long r;
        int ready;

        r = sizes_check(err);
        if (r < 0)
                return (int) r;
        ready = sys_poll_in(listener_fd, 0);
        if (ready == -EINTR)
                return 0;
        if (ready < 0 || (!(ready & POLLIN) && (ready & (POLLHUP | POLLERR | POLLNVAL))))
                return err_set(err, ready < 0 ? ready : -ENOTCONN, ERR_PEER, "seccomp: listener is dead");
        if (!(ready & POLLIN))
                return 0;
        r = SYS3(SYS_ioctl, listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &got);
        if (r == -ENOENT || r == -EINTR)
                return 0;
        if (r < 0)
                return err_set(err, (int) r, ERR_INTERNAL, "seccomp: reading a notification");
        answer.r.id = got.n.id;
        answer.r.error = -errno_for(b, &got.n.data);
        r = SYS3(SYS_ioctl, listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return err_set(err, (int) r, ERR_INTERNAL, "seccomp: answering a notification");
        ev->id = got.n.id;
        ev->pid = got.n.pid;
        ev->nr = got.n.data.nr;
        ev->name = name_of(b, got.n.data.nr);
        for (size_t i = 0; i < ARRAY_SIZE(ev->args); i++)
                ev->args[i] = got.n.data.args[i];
        return 1;
}
