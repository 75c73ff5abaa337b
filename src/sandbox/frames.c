/* frames.c - what the agent is told at first: its capabilities, and the command or launcher with all its controls. */
#include "sandbox/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "sandbox/gate.h"

enum {
        /* What the agent needs to drop a command to its user, and to signal it: SETGID, SETUID, SETPCAP, KILL. */
        AGENT_CAPS = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 5,
};

static uint32_t controls(const struct plan *plan, const struct child *c) {
        static const struct {
                enum sandbox_weaken weaken;
                uint32_t bit;
        } hooks[] = {
                { WEAKEN_CAPS, AP_DROP_CAPS },
                { WEAKEN_NNP, AP_NO_NEW_PRIVS },
                { WEAKEN_SECCOMP, AP_SECCOMP | AP_SECCOMP_NOTIFY },
                { WEAKEN_LANDLOCK, AP_LANDLOCK },
                { WEAKEN_RLIMIT, AP_RLIMIT },
                { WEAKEN_IDS, AP_IDS },
                { WEAKEN_SECUREBITS, AP_SECUREBITS },
                { WEAKEN_FDS, AP_CLOSE_FDS },
        };
        uint32_t all = AP_DROP_CAPS | AP_NO_NEW_PRIVS | AP_SECCOMP | AP_SECUREBITS | AP_RLIMIT | AP_IDS | AP_CLOSE_FDS |
                       AP_SECCOMP_NOTIFY;

        if (plan->landlock_abi > 0)
                all |= AP_LANDLOCK;
        for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
                if (WEAK(c, hooks[i].weaken))
                        all &= ~hooks[i].bit;
        return all;
}

/* Test hook: one call with this first argument passes before the profile speaks. */
static void filter_widen(struct seccomp_program *prog, uint32_t nr, uint32_t first) {
        enum { LOAD = 0x20, JUMP_EQ = 0x15, RETURN = 0x06, AT_NR = 0, AT_FIRST = 16 };
        static struct sys_bpf_insn wide[4096];
        const struct sys_bpf_insn head[] = { { LOAD, 0, 0, AT_NR },
                                             { JUMP_EQ, 0, 3, nr },
                                             { LOAD, 0, 0, AT_FIRST },
                                             { JUMP_EQ, 0, 1, first },
                                             { RETURN, 0, 0, 0x7fff0000 } };

        memcpy(wide, head, sizeof(head));
        memcpy(wide + ARRAY_SIZE(head), prog->insns, prog->n * sizeof(wide[0]));
        prog->insns = wide;
        prog->n += ARRAY_SIZE(head);
}

/* The frames are in the socket before the agent exists, so that it never waits for us. */
int frames_queue(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, const struct child *c,
                 bool configure, struct err *err) {
        static uint8_t frame[AP_FRAME_MAX];
        struct wr w = wr_to(frame, sizeof(frame));
        struct seccomp_program prog;
        struct ap_spawn s = {
                .flags = (req->tty ? AP_TTY : 0) | (req->no_stdin ? AP_NO_STDIN : 0) |
                         (req->keep ? AP_LAUNCHER : AP_SAY_HERE),
                .controls = controls(plan, c),
                .uid = plan->uid,
                .gid = plan->gid,
                .securebits = PLAN_SECUREBITS,
                .output_credit = req->output_credit,
                .rows = req->rows,
                .columns = req->columns,
                .cwd = req->cwd,
                .argv = (const char **) (uintptr_t) req->argv,
                .envp = (const char **) (uintptr_t) req->envp,
                .n_rlimits = (uint8_t) plan->n_rlimits,
        };

        seccomp_program(WEAK(c, WEAKEN_SECCOMP_OTHER) ? SECCOMP_DEBUG : plan->profile, &prog);
        if (WEAK(c, WEAKEN_FAMILY))
                filter_widen(&prog, SYS_socket, AF_VSOCK);
        if (WEAK(c, WEAKEN_USERNS))
                filter_widen(&prog, SYS_unshare, SYS_CLONE_NEWUSER);
        s.filter = (const uint8_t *) prog.insns;
        s.n_filter = prog.n;
        for (size_t i = 0; i < plan->n_rlimits; i++)
                s.rlimits[i] =
                        (struct ap_rlimit){ plan->rlimits[i].resource, plan->rlimits[i].value, plan->rlimits[i].value };
        if (plan->landlock_abi > 0)
                (void) str_copy(s.probe, sizeof(s.probe), "/.gabion/probe");
        while (s.argv[s.argc])
                s.argc++;
        while (s.envp[s.envc])
                s.envc++;
        if (configure)
                ap_put_configure(&w, WEAK(c, WEAKEN_AGENT_CAPS) ? ~0ull >> 23 : AGENT_CAPS);
        ap_put_spawn(&w, 1, &s);
        if (w.bad)
                return err_set(err, -E2BIG, ERR_INVALID, "command: arguments and environment are larger than %d KiB",
                               AP_FRAME_MAX / 1024 - 16);
        sandbox_send(sb, frame, w.len);
        return sb->out.bad ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory") : 0;
}

int sandbox_launch(const struct plan *plan, struct sandbox *sb, struct err *err) {
        static const char *const argv[] = { "launcher", NULL };
        static const struct sandbox_keep keep;
        const struct sandbox_request req = { .argv = argv, .envp = argv + 1, .cwd = "/", .keep = &keep };
        const struct child c = { .plan = plan };
        int r;

        sb->out = BUF_INIT(FRAMES_MAX);
        sb->pair_fd = sb->listener_fd = -1;
        sb->command_pid = 0;
        sb->control_fd = fcntl(sb->gate_fd, F_DUPFD_CLOEXEC, 0);
        r = sb->control_fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "agent sockets: %s", strerror(errno))
                               : frames_queue(plan, &req, sb, &c, false, err);
        return r < 0 ? r : gate_wait(sb, &c, false, err);
}
