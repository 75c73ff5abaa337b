/*
 * loop.c - the one loop. Level-triggered; nothing is freed inside a callback of the thing being freed: clients are
 * marked dead and buried at the end of a turn, and a watch that was dropped in the same turn is passed over.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "guard.h"
#include "network.h"
#include "state.h"

enum { EVENTS = 64 };

static struct epoll_event events[EVENTS];
static int n_events;

int loop_watch(struct watch *w, int fd, void (*fn)(struct watch *w, uint32_t events)) {
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = w };

        w->fd = fd;
        w->fn = fn;
        return epoll_ctl(warden.epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void loop_drop(struct watch *w) {
        if (w->fd < 0)
                return;
        (void) epoll_ctl(warden.epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
        (void) close(TAKE_FD(w->fd));
        for (int i = 0; i < n_events; i++)
                if (events[i].data.ptr == w)
                        events[i].data.ptr = NULL;
}

static void on_signal(struct watch *w, uint32_t what) {
        struct signalfd_siginfo si;

        (void) what;
        while (read(w->fd, &si, sizeof(si)) == (ssize_t) sizeof(si)) {
                if (si.ssi_signo == SIGCHLD)
                        box_reap();
                else
                        warden.stop = true;
        }
}

int loop_open(struct err *err) {
        sigset_t set;
        int fd;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        warden.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd < 0 || warden.epoll_fd < 0 || loop_watch(&warden.signals, fd, on_signal) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "event loop: %s", strerror(errno));
        return 0;
}

void loop_turn(void) {
        static int wait_ms; /* the first turn waits for nothing */
        int later[6];

        n_events = epoll_wait(warden.epoll_fd, events, EVENTS, wait_ms);
        for (int i = 0; i < n_events; i++) {
                struct watch *w = events[i].data.ptr;

                if (w)
                        w->fn(w, events[i].events);
        }
        client_bury();
        /* Last, so that a caller sees what this turn has ended, before another one waits. */
        wait_ms = box_retry();
        later[0] = pool_fill();
        later[1] = network_turn();
        later[2] = check_due();
        later[3] = recover_again();
        later[4] = guard_due();
        later[5] = claim_due();
        maker_next();
        for (size_t i = 0; i < ARRAY_SIZE(later); i++)
                if (wait_ms < 0 || (later[i] >= 0 && later[i] < wait_ms))
                        wait_ms = later[i];
}
