/*
 * main.c - gabion-agent: the first process of a sandbox. It starts commands, carries their bytes, reaps, and nothing
 * else.
 *
 * Theory of operation. The host's set-up child executes this program from a sealed descriptor as uid 0 of the sandbox's
 * user namespace, with no arguments that matter, no environment, and descriptors 3 (control), 4 (gate), 5 (Landlock
 * rules). start() narrows the process before it reads a byte; then one loop waits for the host and for children alike,
 * because a host that has died must always be noticed. When the agent ends, the kernel ends all of its pid namespace.
 *
 * Capabilities: the bounding set is emptied here, which needs CAP_SETPCAP; AP_CONFIGURE then names the few that stay.
 * They are needed to become the command's user (SETUID, SETGID), to set its securebits (SETPCAP), and to signal it
 * (KILL); all of them are over this sandbox's user namespace alone, which owns no other namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "state.h"

enum { KEY_CONTROL = 1000, KEY_CHILD = 1001 }; /* epoll keys above those of commands (3 * slot + descriptor) */

static struct agent agent; /* zeroed memory: see state.h */

int agent_guard(void) {
        int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

        return r < 0 ? r : sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static bool open_null(void) {
        for (int i = 0; i < 3; i++)
                if (open("/dev/null", O_RDWR) != i) /* 0-2 were closed, and the lowest free number is given */
                        return false;
        return true;
}

static bool seal_descriptors(void) {
        for (int fd = AP_FD_CONTROL; fd <= AP_FD_GATE; fd++)
                if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                        return false;
        /* Without Landlock there is no rule set; a command that asks for it then fails by itself. */
        return fcntl(AP_FD_LANDLOCK, F_SETFD, FD_CLOEXEC) == 0 || errno == EBADF;
}

static bool empty_bounding_set(void) {
        for (unsigned long cap = 0;; cap++) {
                int r = sys_prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);

                if (r < 0)
                        return r == -EINVAL && cap > 0; /* past the last one this kernel knows */
        }
}

/* The kernel picks the abstract name: nobody can have taken it before us. */
static bool bind_scope(struct agent *a) {
        struct sockaddr_un any = { .sun_family = AF_UNIX };

        a->scope_len = sizeof(a->scope);
        a->scope_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        return a->scope_fd >= 0 && bind(a->scope_fd, (struct sockaddr *) &any, sizeof(any.sun_family)) == 0 &&
               getsockname(a->scope_fd, (struct sockaddr *) &a->scope, &a->scope_len) == 0;
}

static bool catch_children(struct agent *a) {
        sigset_t all, child;

        /* All are blocked: SIGPIPE would come with every command that closes its input. */
        if (sigfillset(&all) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0 || sigemptyset(&child) < 0 ||
            sigaddset(&child, SIGCHLD) < 0)
                return false;
        a->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
        return a->signal_fd >= 0;
}

static bool watch(const struct agent *a, int fd, uint32_t events, uint32_t key) {
        struct epoll_event e = { .events = events | EPOLLET, .data.u32 = key };

        return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool open_loop(struct agent *a) {
        a->link.readable = a->link.writable = true;
        a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        return a->epoll_fd >= 0 && watch(a, AP_FD_CONTROL, EPOLLIN | EPOLLOUT, KEY_CONTROL) &&
               watch(a, a->signal_fd, EPOLLIN, KEY_CHILD);
}

static void require(bool ok, enum agent_exit otherwise) {
        if (!ok)
                _exit((int) otherwise);
}

static void start(struct agent *a) {
        require(sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, AGENT_NO_PDEATHSIG);
        /* A host that died before that line sends no signal any more, but its end of the socket is closed. */
        require(!(sys_poll_in(AP_FD_CONTROL, 0) & EPOLLHUP), AGENT_HOST_GONE);
        require(sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, AGENT_NO_DUMPABLE);
        require(open_null(), AGENT_NO_NULL);
        require(seal_descriptors(), AGENT_NO_CLOEXEC);
        require(empty_bounding_set(), AGENT_NO_BOUNDING);
        require(bind_scope(a), AGENT_NO_SCOPE);
        require(catch_children(a), AGENT_NO_SIGNALS);
        require(open_loop(a), AGENT_NO_EPOLL);
}

/* One turn over everything that can go on without waiting; true if something did. */
static bool turn(struct agent *a) {
        bool moved = link_flush(&a->link);

        moved |= link_fill(&a->link);
        moved |= frames_serve(a);
        if (a->reap) {
                command_reap(a);
                moved = true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(a->commands); i++)
                if (a->commands[i].used)
                        moved |= command_pump(a, &a->commands[i]);
        return moved;
}

static void mark(struct agent *a, uint32_t key, uint32_t events) {
        struct command *c;

        if (key == KEY_CONTROL) {
                if (events & EPOLLHUP)
                        _exit(AGENT_HOST_GONE); /* even if frames are left: nobody waits for their effect */
                a->link.readable |= (events & EPOLLIN) != 0;
                a->link.writable |= (events & EPOLLOUT) != 0;
        } else if (key == KEY_CHILD) {
                struct signalfd_siginfo info;

                a->reap = true;
                while (read(a->signal_fd, &info, sizeof(info)) > 0)
                        ;
        } else {
                c = &a->commands[key / 3]; /* a mark too many on a slot used anew costs one EAGAIN */
                if (key % 3 == 0)
                        c->in_ready = true;
                else
                        c->out[key % 3 - 1].ready = true;
        }
}

int main(void) {
        struct agent *a = &agent;

        start(a);
        for (;;) {
                struct epoll_event events[2 + 3 * AGENT_COMMANDS];
                int n;

                while (turn(a))
                        ;
                n = epoll_wait(a->epoll_fd, events, ARRAY_SIZE(events), -1);
                if (n < 0 && errno != EINTR)
                        _exit(AGENT_NO_EPOLL);
                for (int i = 0; i < n; i++)
                        mark(a, events[i].data.u32, events[i].events);
        }
}
