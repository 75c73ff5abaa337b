/*
 * gate.c - the moment between "all controls applied" and the first instruction of the user's program.
 *
 * The command-to-be sends its own view of its state over the gate and waits. Its pid is the kernel's word
 * (SCM_CREDENTIALS), not the sandbox's; every byte of the message is hostile.
 */
#include "sandbox/gate.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "sandbox/netns.h"

enum { READY_WAIT_MS = 20000 };

static int oops(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "%s: %s", what, strerror(errno));
}

void gate_flush(struct sandbox *sb) {
        ssize_t n;

        while (sb->out.len > 0 && (n = write(sb->control_fd, sb->out.p, sb->out.len)) > 0)
                buf_eat(&sb->out, (size_t) n);
}

void sandbox_send(struct sandbox *sb, const void *p, size_t n) {
        ssize_t k;

        gate_flush(sb);
        k = n > 0 && sb->out.len == 0 ? write(sb->control_fd, p, n) : 0;
        if (k < 0)
                k = 0;
        if (n > (size_t) k)
                buf_add(&sb->out, (const char *) p + k, n - (size_t) k);
}

static int gate_error(const void *p, size_t n, struct err *err) {
        struct ap_head head;
        uint32_t code;
        char step[64];

        if (ap_frame(p, n, &head) != 1 || head.type != AP_ERROR ||
            ap_get_error((const char *) p + AP_HEAD, n - AP_HEAD, &code, step, sizeof(step)) < 0)
                return err_set(err, -EBADMSG, ERR_PEER, "the agent sent nonsense instead of its state");
        return err_set(err, -(int) (code & 4095), str_eq(step, "chdir") ? ERR_INVALID : ERR_INTERNAL, "%s: %s",
                       str_eq(step, "chdir") ? "working directory (-w)" : step, strerror((int) (code & 4095)));
}

static bool is_here(const void *p, size_t n) {
        struct ap_head head;

        return n == AP_HEAD && ap_frame(p, n, &head) == 1 && head.type == AP_HERE;
}

/* AP_READY from the command: its state, its end of the pair, the seccomp listener, and its pid as the kernel says.
 * 1: it was AP_HERE, the pid alone. */
static int gate_read(struct sandbox *sb, struct err *err) {
        static char data[AP_STATUS_TEXT + 256];
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
        struct iovec iov = { data, sizeof(data) };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
        ssize_t n = recvmsg(sb->gate_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        int fds[4], n_fds = 0;
        pid_t here = sb->command_pid;

        if (n < 0)
                return oops(err, "agent gate");
        for (struct cmsghdr *m = CMSG_FIRSTHDR(&msg); m; m = CMSG_NXTHDR(&msg, m)) {
                if (m->cmsg_level != SOL_SOCKET)
                        continue;
                if (m->cmsg_type == SCM_RIGHTS) {
                        n_fds = (int) ((m->cmsg_len - CMSG_LEN(0)) / sizeof(int));
                        memcpy(fds, CMSG_DATA(m), (size_t) n_fds * sizeof(int));
                } else if (m->cmsg_type == SCM_CREDENTIALS) {
                        struct ucred cred;

                        memcpy(&cred, CMSG_DATA(m), sizeof(cred));
                        sb->command_pid = cred.pid;
                }
        }
        sb->pair_fd = n_fds > 0 ? fds[0] : -1;
        sb->listener_fd = n_fds > 1 ? fds[1] : -1;
        for (int i = 2; i < n_fds; i++)
                (void) close(fds[i]); /* nobody asked for it */
        if (n == 0)
                return err_set(err, -EPIPE, ERR_PEER, "the agent ended early");
        if (here <= 0 && sb->command_pid > 0 && n_fds == 0 && is_here(data, (size_t) n))
                return 1;
        if (ap_get_ready(data, (size_t) n, &sb->ready) < 0)
                return gate_error(data, (size_t) n, err);
        if (here > 0 && here != sb->command_pid)
                return err_set(err, -EBADMSG, ERR_PEER, "the agent sent another process to the gate");
        if (sb->pair_fd < 0 || sb->command_pid <= 0)
                return err_set(err, -EBADMSG, ERR_PEER, "the agent did not say who it is");
        return 0;
}

int gate_child_error(const struct child *c, struct err *err) {
        uint32_t failed = __atomic_load_n(&c->failed, __ATOMIC_ACQUIRE);

        if (failed == 0)
                return err_set(err, -EPIPE, ERR_INTERNAL, "the agent ended before it was ready");
        if (c->job && c->job->step[0])
                return err_set(err, c->code, ERR_INTERNAL, "network namespace: %s: %s", c->job->step,
                               strerror(-c->code));
        return err_set(err, c->code, ERR_INTERNAL, "%s: %s", child_step(failed), strerror(-c->code));
}

int gate_wait(struct sandbox *sb, const struct child *c, bool here, struct err *err) {
        uint64_t until = clock_mono_ns() + (uint64_t) READY_WAIT_MS * 1000000u;

        while (sb->pair_fd < 0) {
                struct pollfd p[3] = {
                        { sb->gate_fd, POLLIN, 0 },
                        { sb->agent_pidfd, POLLIN, 0 },
                        { sb->control_fd, sb->out.len ? POLLOUT : 0, 0 },
                };
                int r;

                gate_flush(sb);
                if (poll(p, 3, 200) < 0 && errno != EINTR)
                        return oops(err, "waiting for the agent");
                if (p[0].revents & POLLIN) {
                        r = gate_read(sb, err);
                        if (r <= 0 || here)
                                return r < 0 ? r : 0;
                        continue;
                }
                if (p[1].revents & POLLIN)
                        return gate_child_error(c, err);
                if (clock_mono_ns() > until)
                        return err_set(err, -ETIMEDOUT, ERR_INTERNAL, "the sandbox was not ready after %d s",
                                       READY_WAIT_MS / 1000);
        }
        return 0;
}

int sandbox_settle(const struct sandbox *sb) {
        struct pollfd p = { sb->pair_fd, POLLIN, 0 };
        char byte;
        int r;

        if (sb->pair_fd < 0) /* behind the gate already */
                return 0;
        do
                r = poll(&p, 1, READY_WAIT_MS);
        while (r < 0 && errno == EINTR);
        if (r <= 0)
                return r < 0 ? -errno : -ETIMEDOUT;
        return read(sb->pair_fd, &byte, 1) == 1 && byte == 's' ? 0 : -EPROTO;
}

int sandbox_release(struct sandbox *sb, struct err *err) {
        if (send(sb->pair_fd, "g", 1, MSG_NOSIGNAL) != 1)
                return oops(err, "releasing the command");
        spawn_let_go(); /* while it starts */
        return 0;
}
