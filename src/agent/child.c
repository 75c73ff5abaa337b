/*
 * child.c - from fork to exec: the process that will become a command, or a launcher, puts every control on itself.
 *
 * Theory of operation. The controls are one table in the order in which they must happen; each row says which bit of
 * ap_spawn.controls asks for it. The first failure is told over the gate, with the row's name, and ends the process:
 * a control is on or there is no command. Then the process reports what the kernel says about it (AP_READY), waits for
 * the host to compare that with the plan, and only on its word starts the program.
 *
 * Why this order: limits and securebits need capabilities, so they precede their loss; the directory is entered as the
 * user, so that nobody is put where he may not go; Landlock and seccomp need no_new_privs; the probes need Landlock but
 * must come before seccomp, whose filter may refuse what they do; the filter is last, so that it has to allow no more
 * than read, write, sendmsg, close and execve for our sake.
 *
 * Descriptors meanwhile: 0-2 the command's, 3 our end of the pair, 4 the gate, 5 the Landlock rules, 6 the host's end
 * of the pair, 7 /proc/self/status, opened before Landlock could refuse it and read after everything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "base/wr.h"
#include "state.h"

enum { FD_PAIR = 3, FD_PEER = 6, FD_STATUS = 7, FD_FREE = 8 };

struct self {
        const struct child *c;
        const struct ap_spawn *spawn;
        struct ap_ready ready;
        int listener;
};

/* Moves *fd to the number where the rest of this file expects it. */
static int place(int fd, int at) {
        int r;

        if (fd < 0)
                return -errno;
        r = dup3(fd, at, O_CLOEXEC);
        (void) close(fd);
        return r < 0 ? -errno : 0;
}

static int do_stdio(struct self *s) {
        bool tty = s->spawn->flags & AP_TTY;
        int r;

        for (int i = 0; i < 3; i++)
                if (s->c->stdio[i] >= 0 && dup2(s->c->stdio[i], i) < 0)
                        return -errno;
        (void) umask(022);
        r = sys_setsid();
        if (r < 0)
                return r;
        return tty && ioctl(STDOUT_FILENO, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

static int do_signals(struct self *s) {
        /* All 64, past libc, which keeps some to itself; all-zero is "default" in the kernel's own layout. Ignored
         * signals would survive exec: the host may have been started by nohup. */
        static const uint64_t dfl[4], none;
        int r = 0;

        (void) s;
        for (int sig = 1; sig <= 64 && r == 0; sig++)
                if (sig != SIGKILL && sig != SIGSTOP)
                        r = (int) SYS4(SYS_rt_sigaction, sig, dfl, 0, sizeof(none));
        return r < 0 ? r : (int) SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
}

static int do_pair(struct self *s) {
        int pair[2], r, q;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        if (s->c->gate_fd != AP_FD_GATE && dup3(s->c->gate_fd, AP_FD_GATE, O_CLOEXEC) < 0)
                return -errno;
        r = place(pair[0], FD_PAIR); /* also ends our hold on the control socket */
        q = place(pair[1], FD_PEER);
        if (r < 0 || q < 0)
                return r < 0 ? r : q;
        return place(open("/proc/self/status", O_RDONLY | O_CLOEXEC), FD_STATUS);
}

static int do_rlimits(struct self *s) {
        int r = 0;

        for (size_t i = 0; i < s->spawn->n_rlimits && r == 0; i++) {
                const struct ap_rlimit *l = &s->spawn->rlimits[i];
                const uint64_t value[2] = { l->soft, l->hard };

                r = (int) SYS4(SYS_prlimit64, 0, l->resource, value, 0);
        }
        return r;
}

static int do_securebits(struct self *s) {
        return sys_prctl(PR_SET_SECUREBITS, s->spawn->securebits, 0, 0, 0);
}

static int do_groups(struct self *s) {
        (void) s;
        return sys_setgroups_none();
}

static int do_gid(struct self *s) {
        return sys_setresgid(s->spawn->gid);
}

static int do_uid(struct self *s) {
        return sys_setresuid(s->spawn->uid);
}

static int do_chdir(struct self *s) {
        return sys_chdir(s->spawn->cwd);
}

static int do_caps(struct self *s) {
        int r = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

        (void) s;
        return r < 0 ? r : sys_capset(0, 0, 0); /* the agent emptied the bounding set at its start */
}

static int do_no_new_privs(struct self *s) {
        (void) s;
        return sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int do_landlock(struct self *s) {
        (void) s;
        return sys_landlock_restrict(AP_FD_LANDLOCK, 0);
}

/* Landlock cannot be read back, so it is tried. Here is no failure: what came out is for the host to judge. */
static int do_probes(struct self *s) {
        int securebits = sys_prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), fd;

        if (securebits < 0)
                return securebits;
        s->ready.securebits = (uint32_t) securebits;
        if (s->spawn->probe[0]) {
                fd = sys_openat(AT_FDCWD, s->spawn->probe, O_RDONLY | O_CLOEXEC, 0);
                s->ready.landlock_errno = fd < 0 ? -fd : 0;
                if (fd >= 0)
                        (void) close(fd);
        }
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *) &s->c->agent->scope, s->c->agent->scope_len) < 0)
                s->ready.scope_errno = errno;
        (void) close(fd);
        return 0;
}

static int do_close(struct self *s) {
        (void) s;
        (void) close(AP_FD_LANDLOCK);
        return sys_close_range(FD_FREE, ~0u, 0);
}

/* The filter takes the kernel a while, in which the host reads about us. It learns our pid from the kernel. */
static int do_here(struct self *s) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));

        if (!(s->spawn->flags & AP_SAY_HERE))
                return 0;
        ap_put_empty(&w, AP_HERE, s->c->id);
        return sys_write(AP_FD_GATE, frame, w.len) == (ssize_t) w.len ? 0 : -EPIPE;
}

static int do_seccomp(struct self *s) {
        static struct sys_bpf_insn insns[AP_FILTER_MAX];
        bool notify = s->spawn->controls & AP_SECCOMP_NOTIFY;
        int r;

        memcpy(insns, s->spawn->filter, s->spawn->n_filter * sizeof(insns[0])); /* there they may lie unaligned */
        r = sys_seccomp_filter(insns, s->spawn->n_filter,
                               notify ? SYS_SECCOMP_NEW_LISTENER | SYS_SECCOMP_WAIT_KILLABLE : 0);
        if (r == -EINVAL && notify) /* before Linux 5.19: a signal may then repeat a report, nothing worse */
                r = sys_seccomp_filter(insns, s->spawn->n_filter, SYS_SECCOMP_NEW_LISTENER);
        if (r >= 0 && notify)
                s->listener = r;
        return r < 0 ? r : 0;
}

static int do_status(struct self *s) {
        int r = fd_read_upto(FD_STATUS, s->ready.status, sizeof(s->ready.status));

        (void) close(FD_STATUS);
        return r < 0 ? r : 0;
}

static int do_ready(struct self *s) {
        static uint8_t frame[AP_HEAD + sizeof(struct ap_ready)];
        struct wr w = wr_to(frame, sizeof(frame));
        struct iovec iov = { .iov_base = frame };
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(2 * sizeof(int))];
        } control = { 0 };
        const int fds[2] = { FD_PEER, s->listener };
        size_t n_fds = (s->listener >= 0 ? 2 : 1) * sizeof(int);
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
        struct cmsghdr *head = &control.align;

        ap_put_ready(&w, &s->ready);
        if (w.bad)
                return -EMSGSIZE;
        iov.iov_len = w.len;
        msg.msg_controllen = CMSG_SPACE(n_fds);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(n_fds);
        memcpy(CMSG_DATA(head), fds, n_fds);
        if (sendmsg(AP_FD_GATE, &msg, 0) < 0)
                return -errno;
        /* Our copies go whatever was asked: with the peer's end open here the host's going would not be noticed, and
         * with the listener the command could answer its own notifications. */
        (void) close(FD_PEER);
        if (s->listener >= 0)
                (void) close(s->listener);
        if (s->spawn->controls & AP_CLOSE_FDS)
                (void) close(AP_FD_GATE);
        /* Now, and not earlier, is the table as the host expects it. */
        return sys_write(FD_PAIR, "s", 1) == 1 ? 0 : -EPIPE;
}

static const struct step {
        const char *name; /* the host shows it */
        int (*fn)(struct self *s);
        uint32_t control; /* 0: always */
} steps[] = {
        { "stdio", do_stdio, 0 },
        { "signals", do_signals, 0 },
        { "pair", do_pair, 0 },
        { "rlimit", do_rlimits, AP_RLIMIT },
        { "securebits", do_securebits, AP_SECUREBITS },
        { "groups", do_groups, AP_IDS },
        { "gid", do_gid, AP_IDS },
        { "uid", do_uid, AP_IDS },
        { "chdir", do_chdir, 0 },
        { "capabilities", do_caps, AP_DROP_CAPS },
        { "no_new_privs", do_no_new_privs, AP_NO_NEW_PRIVS },
        { "landlock", do_landlock, AP_LANDLOCK },
        { "probes", do_probes, 0 },
        { "close", do_close, AP_CLOSE_FDS },
        { "here", do_here, 0 },
        { "seccomp", do_seccomp, AP_SECCOMP },
        { "status", do_status, 0 },
        { "ready", do_ready, 0 },
};

static _Noreturn void fail(const struct self *s, int r, const char *step) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_error(&w, s->c->id, (uint32_t) -r, step);
        (void) sys_write(AP_FD_GATE, frame, w.len);
        _exit(CHILD_FAILED);
}

_Noreturn void child_run(const struct child *c) {
        static struct self s;
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));
        char go[2];

        s = (struct self){ .c = c, .spawn = c->spawn, .ready.id = c->id, .listener = -1 };
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                int r = steps[i].control && !(c->spawn->controls & steps[i].control) ? 0 : steps[i].fn(&s);

                if (r < 0)
                        fail(&s, r, steps[i].name);
        }
        if (sys_read(FD_PAIR, go, sizeof(go)) != 1 || go[0] != 'g')
                _exit(CHILD_FAILED);
        if (c->spawn->flags & AP_LAUNCHER)
                launcher_run(c->agent);
        ap_put_u32(&w, AP_EXEC_FAILED, c->id, (uint32_t) exec_search(c->spawn->argv, c->spawn->envp));
        (void) sys_write(FD_PAIR, frame, w.len);
        _exit(CHILD_NO_EXEC);
}
