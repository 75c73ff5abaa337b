/*
 * stdio.c - the descriptors through which a command talks: three pipes, or a pseudo terminal.
 *
 * Invariant: whatever the command can open again by way of /proc/self/fd (`echo x >/dev/stderr`) belongs to the
 * command's user, and its ends never share a file description with the agent's, so that "not blocking" stays on our
 * side.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "state.h"

void stdio_close(int fds[3]) {
        for (int i = 0; i < 3; i++) {
                if (fds[i] >= 0)
                        (void) close(fds[i]);
                fds[i] = -1;
        }
}

static int unblock(int fd) {
        return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_pipes(struct stdio *s, bool has_stdin) {
        for (int i = has_stdin ? 0 : 1; i < 3; i++) {
                int p[2], r;

                if (pipe2(p, O_CLOEXEC) < 0)
                        return -errno;
                s->agent[i] = p[i == 0 ? 1 : 0];
                s->child[i] = p[i == 0 ? 0 : 1];
                r = unblock(s->agent[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int open_terminal(struct stdio *s, const struct stdio_want *want) {
        const struct winsize size = { .ws_row = want->rows, .ws_col = want->columns };
        AUTO_FD int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        int unlock = 0;

        if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
                return -errno;
        /* By the master and not by its name: no path is walked, so nothing mounted over /dev/pts can come between. */
        for (int i = want->has_stdin ? 0 : 1; i < 3; i++) {
                s->child[i] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
                if (s->child[i] < 0)
                        return -errno;
        }
        if (want->has_stdin) {
                s->agent[0] = fcntl(master, F_DUPFD_CLOEXEC, 0);
                if (s->agent[0] < 0)
                        return -errno;
        }
        s->agent[1] = TAKE_FD(master);
        return 0;
}

/* setfsuid() and setfsgid() tell nothing about success but by a second call. */
static bool set_owner(uid_t uid, gid_t gid) {
        (void) setfsgid(gid);
        (void) setfsuid(uid);
        return (gid_t) setfsgid((gid_t) -1) == gid && (uid_t) setfsuid((uid_t) -1) == uid;
}

int stdio_open(const struct agent *a, struct stdio *s, const struct stdio_want *want, const char **ret_step) {
        uid_t uid = geteuid();
        gid_t gid = getegid();
        int r;

        *s = (struct stdio){ { -1, -1, -1 }, { -1, -1, -1 } };
        if (want->as_user && !set_owner(want->uid, want->gid)) {
                *ret_step = "owner";
                r = -EPERM;
        } else {
                *ret_step = want->tty ? "terminal" : "pipe";
                r = want->tty ? open_terminal(s, want) : open_pipes(s, want->has_stdin);
        }
        if (want->as_user && (!set_owner(uid, gid) || agent_guard(a) < 0))
                _exit(AGENT_NO_PDEATHSIG); /* half a user, or unguarded: neither may serve another frame */
        if (r < 0) {
                stdio_close(s->agent);
                stdio_close(s->child);
        }
        return r;
}
