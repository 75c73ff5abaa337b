/*
 * calls_tty.c - terminals: pushing input, line disciplines, hanging up.
 *
 * Nothing is ever pushed into a terminal: TIOCSTI and TIOCLINUX get an address that cannot be read, which the kernel
 * looks at only after it has granted the command (EFAULT). Whatever needs a terminal makes its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sysraw.h"
#include "probe/calls.h"

enum { IOC_STI = 0x5412, IOC_LINUX = 0x541c, IOC_SETD = 0x5423, IOC_VHANGUP = 0x5437 };

/* Runs in a child: a session of its own with a terminal of its own. Exit status: 0 = done, else the errno. */
static int own_terminal_ioctl(void *arg) {
        const long *cmd = arg;
        int discipline = 0; /* N_TTY, what it has anyway */
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, n = 0;
        char name[32];
        long ret;

        if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0 || setsid() < 0)
                return ENODEV;
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0 || ioctl(slave, TIOCSCTTY, n) < 0)
                return ENODEV;
        ret = SYS3(SYS_ioctl, slave, *cmd, (*cmd & 0xffffffff) == IOC_SETD ? (void *) &discipline : CALLS_BAD);
        return ret < 0 ? (int) -ret : 0;
}

static void own_terminal(struct probe_result *r, long cmd) {
        int e = calls_in_child(own_terminal_ioctl, &cmd);

        if (e == ENODEV)
                probe_absent(r, "no terminal to be had");
        else if (e == 0 || e == EFAULT)
                probe_reached(r, "on a terminal of its own");
        else
                probe_stopped(r, e < 0 ? 0 : e, e < 0 ? "killed" : "");
}

static void callers_terminal(struct probe_result *r, long cmd) {
        AUTO_FD int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
        int fds[] = { 0, 1, 2, tty };
        int last = 0;

        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                long ret = fds[i] >= 0 && isatty(fds[i]) ? SYS3(SYS_ioctl, fds[i], cmd, CALLS_BAD) : 1;

                if (ret == 0 || ret == -EFAULT) {
                        probe_reached(r, "on the caller's terminal");
                        return;
                }
                if (ret < 0)
                        last = (int) -ret;
        }
        if (last)
                probe_stopped(r, last, "on the caller's terminal");
        else
                probe_absent(r, "no terminal was passed in");
}

#define TTY_TRY(id, how, cmd)                                                                                          \
        void calls_##id(const struct probe_canaries *c, struct probe_result *r) {                                      \
                (void) c;                                                                                              \
                how(r, cmd);                                                                                           \
        }

TTY_TRY(c20a, callers_terminal, IOC_STI)
TTY_TRY(c20b, own_terminal, IOC_STI)
TTY_TRY(c20c, callers_terminal, IOC_LINUX)
TTY_TRY(c20d, own_terminal, IOC_SETD)
TTY_TRY(c20e, own_terminal, CALLS_UPPER | IOC_SETD)
TTY_TRY(c43b, own_terminal, IOC_VHANGUP)

/* In a session without a terminal there is nothing to hang up. */
static int hang_up(void *arg) {
        long ret;

        (void) arg;
        if (setsid() < 0)
                return EPERM;
        ret = SYS0(SYS_vhangup);
        return ret < 0 ? (int) -ret : 0;
}

void calls_c43a(const struct probe_canaries *c, struct probe_result *r) {
        int e = calls_in_child(hang_up, NULL);

        (void) c;
        calls_answer(r, e < 0 ? -EPERM : -e);
}
