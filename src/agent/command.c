/*
 * command.c - commands: their start as the agent sees it, their input and output, their end.
 *
 * Theory of operation. A slot holds one command from AP_SPAWN until AP_EXITED was queued. epoll is edge-triggered and
 * only sets `ready` marks; the pumps clear a mark when the kernel says EAGAIN. So a stream that may not be read now (no
 * credit, or the control socket is full) costs no wake-ups, and nothing has to be registered again later.
 *
 * Invariant: AP_EXITED is the last frame of a command and follows all that the command itself wrote. What it wrote is
 * in its pipes when it is reaped, so the length at that moment is what is still taken: processes that it left behind,
 * and that hold the pipe open or go on writing, can neither delay its end nor add to its output.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "base/wr.h"
#include "state.h"

enum {
        REAP_MAX = 64,           /* per turn, so that a storm of orphans does not starve the host */
        CREDIT_STEP = 16 * 1024, /* input is granted again in pieces of at least this, or when all of it drained */
        TTY_DRAIN = 1024 * 1024, /* above what the kernel queues behind a terminal */
        TTY_EOF = 4,             /* ^D, the VEOF of a new terminal */
};

struct command *command_find(struct agent *a, uint32_t id) {
        for (size_t i = 0; i < AGENT_COMMANDS; i++)
                if (a->commands[i].used && a->commands[i].id == id)
                        return &a->commands[i];
        return NULL;
}

static struct command *find_free(struct agent *a) {
        for (size_t i = 0; i < AGENT_COMMANDS; i++)
                if (!a->commands[i].used)
                        return &a->commands[i];
        return NULL;
}

/* Over the gate, where the host waits for this command, whoever could not start it. */
static void fail(uint32_t id, int r, const char *step) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_error(&w, id, (uint32_t) -r, step);
        (void) sys_write(AP_FD_GATE, frame, w.len);
}

static int watch(const struct agent *a, const struct command *c, int which, int fd) {
        struct epoll_event e = { .events = (which == 0 ? EPOLLOUT : EPOLLIN) | EPOLLET };

        if (fd < 0)
                return 0;
        e.data.u32 = (uint32_t) (c - a->commands) * 3 + (uint32_t) which;
        return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* Taken out of epoll by hand: a process forked meanwhile may still hold the file, and with it the registration. */
static void unwatch(const struct agent *a, int *fd) {
        if (*fd < 0)
                return;
        (void) epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
        (void) close(*fd);
        *fd = -1;
}

static void release(const struct agent *a, struct command *c) {
        unwatch(a, &c->in_fd);
        unwatch(a, &c->out[0].fd);
        unwatch(a, &c->out[1].fd);
        explicit_bzero(c->in, c->in_end);
        c->used = false;
}

static int start(struct agent *a, struct command *c, const struct ap_spawn *spawn, struct stdio *s) {
        struct child child = { .spawn = spawn, .id = c->id, .agent = a };
        long pid;
        int r = 0;

        for (int i = 0; i < 3 && r == 0; i++) {
                child.stdio[i] = s->child[i];
                r = watch(a, c, i, s->agent[i]);
        }
        if (r < 0)
                return r;
        /* As vfork(): the child borrows our memory and we wait until it has exec'd or ended, which the host decides.
         * Nothing is copied, and nothing of ours can change under it. A host that dies ends us by PDEATHSIG. */
        pid = SYS5(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
        if (pid ==
            -EINVAL) /* before Linux 6.3 exec does not enter the time namespace, and memory may not be shared into it */
                pid = SYS5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
                child_run(&child);
        if (pid < 0)
                return (int) pid;
        c->pid = (pid_t) pid;
        return 0;
}

void command_start(struct agent *a, uint32_t id, const struct ap_spawn *spawn) {
        struct command *c = find_free(a);
        const char *step;
        struct stdio s;
        struct wr w;
        int r;

        if (!c) {
                fail(id, -EBUSY, "spawn");
                return;
        }
        r = stdio_open(&s, spawn, &step);
        if (r < 0) {
                fail(id, r, step);
                return;
        }
        memset(c, 0, offsetof(struct command, in)); /* not the input itself: that would touch all of its pages */
        c->out[0] = (struct stream){ .fd = s.agent[1], .ready = true };
        c->out[1] = (struct stream){ .fd = s.agent[2], .ready = true };
        c->in_fd = s.agent[0];
        c->in_ready = true;
        c->in_owed = c->in_fd >= 0 ? AGENT_STDIN : 0;
        c->credit = spawn->output_credit;
        c->tty = spawn->flags & AP_TTY;
        c->id = id;
        c->used = true;
        r = start(a, c, spawn, &s);
        stdio_close(s.child);
        if (r < 0) {
                release(a, c);
                fail(id, r, "fork");
                return;
        }
        w = link_answer(&a->link);
        ap_put_u32(&w, AP_STARTED, id, (uint32_t) c->pid);
        link_commit(&a->link, &w);
}

bool command_stdin(struct command *c, const void *p, size_t n) {
        if (c->in_eof || n > c->in_granted)
                return false;
        c->in_granted -= (uint32_t) n;
        if (c->in_fd < 0) { /* the command no longer reads: the host's sender must not hang on that */
                c->in_owed += (uint32_t) n;
                return true;
        }
        if (n > AGENT_STDIN - c->in_end) {
                memmove(c->in, c->in + c->in_start, c->in_end - c->in_start);
                c->in_end -= c->in_start;
                c->in_start = 0;
        }
        memcpy(c->in + c->in_end, p, n);
        c->in_end += n;
        return true;
}

bool command_stdin_eof(struct command *c) {
        if (c->in_eof)
                return false;
        c->in_eof = true;
        if (c->tty && c->in_fd >= 0)
                c->in[c->in_end++] = TTY_EOF;
        return true;
}

static bool pump_in(struct agent *a, struct command *c) {
        size_t held = c->in_end - c->in_start;
        ssize_t n;

        if (c->in_fd < 0)
                return false;
        if (held == 0) {
                if (c->in_eof && !c->tty)
                        unwatch(a, &c->in_fd);
                return false;
        }
        if (!c->in_ready)
                return false;
        n = write(c->in_fd, c->in + c->in_start, held);
        if (n < 0 && errno == EAGAIN) {
                c->in_ready = false;
                return false;
        }
        if (n < 0) { /* nobody reads any more; SIGPIPE is blocked */
                n = (ssize_t) held;
                unwatch(a, &c->in_fd);
        }
        c->in_owed += (uint32_t) n;
        c->in_start += (size_t) n;
        if (c->in_start == c->in_end)
                c->in_start = c->in_end = 0;
        return true;
}

static bool grant(struct agent *a, struct command *c) {
        struct wr w;

        if (c->in_owed == 0 || c->in_eof || (c->in_owed < CREDIT_STEP && c->in_end > 0) || !link_has_room(&a->link))
                return false;
        w = link_answer(&a->link);
        ap_put_u32(&w, AP_STDIN_CREDIT, c->id, c->in_owed);
        link_commit(&a->link, &w);
        c->in_granted += c->in_owed;
        c->in_owed = 0;
        return true;
}

/* True if a command that has ended left nothing to read: known without reading, so that no credit is needed. */
static bool is_drained(const struct command *c, const struct stream *s) {
        if (!c->exited)
                return false;
        return s->drain == 0 || (c->tty && !(sys_poll_in(s->fd, 0) & (int) EPOLLIN));
}

static bool pump_out(struct agent *a, struct command *c, unsigned which) {
        struct stream *s = &c->out[which];
        struct link *l = &a->link;
        size_t most = AP_CHUNK;
        ssize_t n;

        if (s->fd < 0 || !s->ready)
                return false;
        if (is_drained(c, s)) {
                unwatch(a, &s->fd);
                return true;
        }
        if (c->credit == 0 || !link_is_empty(l))
                return false;
        if (c->credit < most)
                most = (size_t) c->credit;
        if (c->exited && s->drain < most)
                most = s->drain;
        n = read(s->fd, l->out + AGENT_OUTPUT, most);
        if (n < 0 && errno == EAGAIN && !c->exited) {
                s->ready = false;
                return false;
        }
        if (n <= 0) { /* end of file; a terminal says EIO */
                unwatch(a, &s->fd);
                return true;
        }
        ap_head_put(l->out, AP_OUTPUT, c->id, (size_t) n + 1);
        l->out[AP_HEAD] = (uint8_t) (which + 1);
        l->out_end = AGENT_OUTPUT + (size_t) n;
        c->credit -= (uint64_t) n;
        if (c->exited)
                s->drain -= (uint32_t) n;
        (void) link_flush(l); /* at once, so that the next stream finds the buffer empty again */
        return true;
}

bool command_pump(struct agent *a, struct command *c) {
        struct wr w;
        bool moved = pump_in(a, c);

        moved |= grant(a, c);
        moved |= pump_out(a, c, 0);
        moved |= pump_out(a, c, 1);
        if (!c->exited || c->out[0].fd >= 0 || c->out[1].fd >= 0 || !link_has_room(&a->link))
                return moved;
        w = link_answer(&a->link);
        ap_put_exit(&w, c->id, &c->exit);
        link_commit(&a->link, &w);
        release(a, c);
        return true;
}

static uint64_t to_us(const struct timeval *t) {
        return (uint64_t) t->tv_sec * 1000000 + (uint64_t) t->tv_usec;
}

static void on_end(const struct agent *a, struct command *c, int status, const struct rusage *ru) {
        bool signalled = WIFSIGNALED(status);

        c->exited = true;
        c->exit = (struct ap_exit){
                .signalled = signalled,
                .code = (uint32_t) (signalled ? WTERMSIG(status) : WEXITSTATUS(status)),
                .user_us = to_us(&ru->ru_utime),
                .system_us = to_us(&ru->ru_stime),
                .max_rss_kib = (uint64_t) ru->ru_maxrss,
        };
        unwatch(a, &c->in_fd);
        for (size_t i = 0; i < ARRAY_SIZE(c->out); i++) {
                int held = 0;

                if (c->out[i].fd >= 0 && !c->tty)
                        (void) ioctl(c->out[i].fd, FIONREAD, &held);
                c->out[i].drain = c->tty ? TTY_DRAIN : (uint32_t) held;
                c->out[i].ready = true;
        }
}

void command_reap(struct agent *a) {
        for (int i = 0; i < REAP_MAX; i++) {
                struct rusage ru;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &ru);

                if (pid <= 0) {
                        a->reap = false;
                        return;
                }
                for (size_t k = 0; k < AGENT_COMMANDS; k++) {
                        struct command *c = &a->commands[k];

                        if (c->used && !c->exited && c->pid == pid)
                                on_end(a, c, status, &ru);
                }
        }
}
