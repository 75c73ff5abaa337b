/*
 * main.c - gabion-agent: the first process of a sandbox. It starts commands, carries their bytes, reaps, and nothing
 * else.
 *
 * Theory of operation. The host's set-up child executes this program from a sealed descriptor as uid 0 of the sandbox's
 * user namespace, with no arguments that matter, no environment, and descriptors 3 (control), 4 (gate), 5 (Landlock
 * rules). start() narrows the process before it reads a byte; then one loop waits for the host and for children alike,
 * because a host that has died must always be noticed. When the agent ends, the kernel ends all of its pid namespace.
 *
 * If 3 is connected, its other end is the only host, and the agent lives as long as that does. If 3 listens, and 4 too,
 * the agent lives on by itself: hosts come and go, and the sandbox ends when somebody kills it from outside.
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "state.h"

enum { TURNS = 16, EVENTS = 64 };

static struct agent agent __attribute__((aligned(AGENT_PAGE))); /* zeroed memory: see state.h */

int agent_guard(const struct agent *a) {
        int r = a->sole ? sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) : 0;

        return r < 0 ? r : sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int agent_watch(const struct agent *a, int fd, uint32_t events, enum agent_key kind, uint32_t index) {
        struct epoll_event e = { .events = events | EPOLLET, .data.u32 = (uint32_t) kind << 16 | index };

        return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void agent_unwatch(const struct agent *a, int *fd) {
        if (*fd < 0)
                return;
        (void) epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
        (void) close(*fd);
        *fd = -1;
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

static bool listen_at(struct agent *a, unsigned which) {
        int fd = which == 0 ? AP_FD_CONTROL : AP_FD_GATE;

        a->accept[which] = true;
        return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && agent_watch(a, fd, EPOLLIN, KEY_LISTEN, which) == 0;
}

static bool open_loop(struct agent *a) {
        a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (a->epoll_fd < 0 || agent_watch(a, a->signal_fd, EPOLLIN, KEY_CHILD, 0) < 0)
                return false;
        return a->sole ? conn_open(a, AP_FD_CONTROL, CONN_SOLE) != NULL : listen_at(a, 0) && listen_at(a, 1);
}

static bool is_listening(int fd) {
        int listens = 0;
        socklen_t n = sizeof(listens);

        return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens;
}

static void require(bool ok, enum agent_exit otherwise) {
        if (!ok)
                _exit((int) otherwise);
}

static void start(struct agent *a) {
        /* Where huge pages are given unasked, which is Debian's default, the first byte here would cost 2 MiB. */
        (void) madvise(a, sizeof(*a), MADV_NOHUGEPAGE);
        a->sole = !is_listening(AP_FD_CONTROL);
        if (a->sole) {
                require(sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, AGENT_NO_PDEATHSIG);
                /* A host that died before that line sends no signal any more, but its end of the socket is closed. */
                require(!(sys_poll_in(AP_FD_CONTROL, 0) & EPOLLHUP), AGENT_HOST_GONE);
        }
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
        bool moved = false;
        struct command *c;
        struct conn *l;

        EACH_CONN (a, l) {
                moved |= conn_flush(l);
                moved |= conn_fill(l);
                moved |= frames_serve(a, l);
                moved |= start_list(a, l);
        }
        for (size_t i = 0; i < AGENT_LAUNCHERS; i++)
                while (launcher_serve(a, &a->launchers[i]))
                        moved = true;
        if (a->reap) {
                command_reap(a);
                moved = true;
        }
        for (size_t i = 0; i < AGENT_PORTS; i++)
                if (a->ports[i].used)
                        moved |= port_pump(a, &a->ports[i]);
        EACH_COMMAND (a, c)
                moved |= command_pump(a, c);
        conn_bury(a);
        for (unsigned i = 0; i < ARRAY_SIZE(a->accept); i++) /* now, so that who left makes room */
                if (a->accept[i])
                        moved |= conn_accept(a, i);
        return moved;
}

/* A mark too many on a slot used anew costs one EAGAIN. */
static void mark(struct agent *a, uint32_t key, uint32_t events) {
        uint32_t index = key & 0xffff;
        bool in = events & (EPOLLIN | EPOLLHUP | EPOLLERR), out = events & (EPOLLOUT | EPOLLHUP | EPOLLERR);
        struct signalfd_siginfo info;

        switch ((enum agent_key)(key >> 16)) {
        case KEY_COMMAND:
                if (index % 3 == 0)
                        a->commands[index / 3].in_ready = true;
                else
                        a->commands[index / 3].out[index % 3 - 1].ready = true;
                break;
        case KEY_CONN:
                if (a->sole && (events & EPOLLHUP))
                        _exit(AGENT_HOST_GONE); /* even if frames are left: nobody waits for their effect */
                a->conns[index].readable |= in;
                a->conns[index].writable |= out;
                break;
        case KEY_PORT:
                a->ports[index / 2].readable[index % 2] |= in;
                a->ports[index / 2].writable[index % 2] |= out;
                break;
        case KEY_LAUNCHER:
                a->launchers[index].readable = true;
                break;
        case KEY_LISTEN:
                a->accept[index] = true;
                break;
        case KEY_CHILD:
                a->reap = true;
                while (read(a->signal_fd, &info, sizeof(info)) > 0)
                        ;
                break;
        }
}

int main(void) {
        struct agent *a = &agent;

        start(a);
        for (;;) {
                struct epoll_event events[EVENTS];
                bool moved = true;
                int n;

                for (int i = 0; i < TURNS && moved; i++)
                        moved = turn(a);
                n = epoll_wait(a->epoll_fd, events, EVENTS, moved ? 0 : command_expire(a));
                if (n < 0 && errno != EINTR)
                        _exit(AGENT_NO_EPOLL);
                for (int i = 0; i < n; i++)
                        mark(a, events[i].data.u32, events[i].events);
        }
}
