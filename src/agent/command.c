/*
 * command.c - commands: their input and output, their end.
 *
 * Theory of operation. A slot holds one command from its start until its end was told and, in a sandbox that lives on,
 * AP_KEPT_MS longer. epoll is edge-triggered and only sets `ready` marks; the pumps clear a mark when the kernel says
 * EAGAIN. So a stream that may not be read now costs no wake-ups, and nothing has to be registered again later.
 *
 * Output goes into the command's ring first. While a connection reads it, nothing that was not sent yet is overwritten,
 * so a reader without credit stops the command; while nobody reads, the oldest bytes go, and who comes back is told how
 * many.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
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

struct command *command_find(struct agent *a, uint32_t number) {
        struct command *c;

        EACH_COMMAND (a, c)
                if (c->number == number)
                        return c;
        return NULL;
}

static void let_go(struct agent *a, struct command *c) {
        agent_unwatch(a, &c->in_fd);
        agent_unwatch(a, &c->out[0].fd);
        agent_unwatch(a, &c->out[1].fd);
        if (c->hold_fd > 0)
                (void) close(c->hold_fd);
        a->commands_used &= ~(1ull << (c - a->commands));
}

/* For another command at once: giving pages back and getting them again takes longer than clearing the few of a small
 * one. */
static void make_new(struct agent *a, struct command *c) {
        if (c->had_stdin || c->ring.head > AGENT_PAGE) {
                command_release(a, c);
                return;
        }
        let_go(a, c);
        explicit_bzero(c, offsetof(struct command, ring.bytes) + (size_t) c->ring.head);
}

/* Of those that ended and were kept, the oldest makes room. */
static struct command *find_free(struct agent *a) {
        struct command *c, *oldest = NULL;

        if (~a->commands_used)
                return &a->commands[__builtin_ctzll(~a->commands_used)];
        EACH_COMMAND (a, c)
                if (c->told && !c->conn && (!oldest || c->expires_ms < oldest->expires_ms))
                        oldest = c;
        if (oldest)
                make_new(a, oldest);
        return oldest;
}

void command_release(struct agent *a, struct command *c) {
        let_go(a, c);
        /* Gives its pages back, and forgets what passed through them. */
        if (madvise(c, sizeof(*c), MADV_DONTNEED) < 0)
                explicit_bzero(c, sizeof(*c));
}

int command_new(struct agent *a, struct stdio *s, struct command **ret, const char **ret_step) {
        struct command *c = find_free(a);
        uint32_t slot;
        int r = 0;

        *ret_step = "spawn";
        if (!c)
                return -EBUSY;
        slot = (uint32_t) (c - a->commands);
        c->in_fd = s->agent[0];
        c->out[0] = (struct stream){ .fd = s->agent[1], .ready = true };
        c->out[1] = (struct stream){ .fd = s->agent[2], .ready = true };
        c->in_ready = true;
        c->in_owed = c->in_fd >= 0 ? AGENT_STDIN : 0;
        a->commands_used |= 1ull << slot;
        for (uint32_t i = 0; i < 3 && r == 0; i++)
                if (s->agent[i] >= 0)
                        r = agent_watch(a, s->agent[i], i == 0 ? EPOLLOUT : EPOLLIN, KEY_COMMAND, slot * 3 + i);
        memset(s->agent, -1, sizeof(s->agent)); /* the command's from here on */
        if (r < 0)
                command_release(a, c);
        *ret = c;
        return r;
}

/* Over the gate, where the host waits for this command, whoever could not start it. */
static void fail(uint32_t id, int r, const char *step) {
        uint8_t frame[AGENT_ANSWER];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_error(&w, id, (uint32_t) -r, step);
        (void) sys_write(AP_FD_GATE, frame, w.len);
}

static int fork_child(struct agent *a, struct command *c, const struct ap_spawn *spawn, const struct stdio *s) {
        struct child child = { .spawn = spawn, .id = c->number, .gate_fd = AP_FD_GATE, .agent = a };
        long pid;

        memcpy(child.stdio, s->child, sizeof(child.stdio));
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

void command_spawn(struct agent *a, struct conn *l, uint32_t id, const struct ap_spawn *spawn) {
        const struct stdio_want want = {
                .tty = spawn->flags & AP_TTY,
                .has_stdin = !(spawn->flags & AP_NO_STDIN),
                .as_user = spawn->controls & AP_IDS,
                .uid = spawn->uid,
                .gid = spawn->gid,
                .rows = spawn->rows,
                .columns = spawn->columns,
        };
        struct command *c = NULL;
        const char *step;
        struct stdio s;
        struct wr w;
        int r = stdio_open(a, &s, &want, &step);

        if (r == 0)
                r = command_new(a, &s, &c, &step);
        if (r == 0) {
                c->number = id;
                c->tty = want.tty;
                c->credit = spawn->output_credit;
                c->conn = l;
                c->started = c->reading = true;
                step = "fork";
                r = fork_child(a, c, spawn, &s);
                if (r < 0)
                        command_release(a, c);
        }
        stdio_close(s.agent);
        stdio_close(s.child);
        if (r < 0 || !c) {
                fail(id, r, step);
                return;
        }
        w = conn_answer(l);
        ap_put_u32(&w, AP_STARTED, id, (uint32_t) c->pid);
        conn_commit(l, &w);
}

bool command_stdin(struct command *c, const void *p, size_t n) {
        if (c->in_eof || n > c->in_granted)
                return false;
        c->in_granted -= (uint32_t) n;
        c->had_stdin = true;
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
        c->in_eof = c->had_stdin = true;
        if (c->tty && c->in_fd >= 0)
                c->in[c->in_end++] = TTY_EOF;
        return true;
}

static bool pump_in(const struct agent *a, struct command *c) {
        size_t held = c->in_end - c->in_start;
        ssize_t n;

        if (c->in_fd < 0)
                return false;
        if (held == 0) {
                if (c->in_eof && !c->tty)
                        agent_unwatch(a, &c->in_fd);
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
                agent_unwatch(a, &c->in_fd);
        }
        c->in_owed += (uint32_t) n;
        c->in_start += (size_t) n;
        if (c->in_start == c->in_end)
                c->in_start = c->in_end = 0;
        return true;
}

static bool grant(struct command *c) {
        struct wr w;

        if (c->in_owed == 0 || c->in_eof || (c->in_owed < CREDIT_STEP && c->in_end > 0) || !conn_has_room(c->conn))
                return false;
        w = conn_answer(c->conn);
        ap_put_u32(&w, AP_STDIN_CREDIT, c->number, c->in_owed);
        conn_commit(c->conn, &w);
        c->in_granted += c->in_owed;
        c->in_owed = 0;
        return true;
}

/* True if a command that has ended left nothing to read: known without reading. */
static bool is_drained(const struct command *c, const struct stream *s) {
        if (!c->exited)
                return false;
        return s->drain == 0 || (c->tty && !(sys_poll_in(s->fd, 0) & (int) EPOLLIN));
}

static bool pump_out(const struct agent *a, struct command *c, unsigned which) {
        struct stream *s = &c->out[which];
        uint8_t *into;
        size_t most;
        ssize_t n;

        if (s->fd < 0 || !s->ready)
                return false;
        if (is_drained(c, s)) {
                agent_unwatch(a, &s->fd);
                return true;
        }
        most = ring_room(&c->ring, which + 1, c->reading ? c->at : UINT64_MAX, &into);
        if (most == 0)
                return false;
        if (most > AP_CHUNK)
                most = AP_CHUNK;
        if (c->exited && s->drain < most)
                most = s->drain;
        n = read(s->fd, into, most);
        if (n < 0 && errno == EAGAIN && !c->exited) {
                s->ready = false;
                return false;
        }
        if (n <= 0) { /* end of file; a terminal says EIO */
                agent_unwatch(a, &s->fd);
                return true;
        }
        ring_add(&c->ring, which + 1, (size_t) n);
        if (c->exited)
                s->drain -= (uint32_t) n;
        return true;
}

/* Sends kept bytes to who reads them. */
static bool pump_send(struct command *c) {
        struct conn *l = c->conn;
        const uint8_t *from;
        unsigned stream;
        size_t n;

        if (!c->reading || c->credit == 0 || !conn_is_empty(l))
                return false;
        n = ring_peek(&c->ring, c->at, &from, &stream);
        if (n == 0)
                return false;
        if (n > AP_CHUNK)
                n = AP_CHUNK;
        if (n > c->credit)
                n = (size_t) c->credit;
        ap_head_put(l->out, AP_OUTPUT, c->number, n + 1);
        l->out[AP_HEAD] = (uint8_t) stream;
        memcpy(l->out + AGENT_OUTPUT, from, n);
        l->out_end = AGENT_OUTPUT + n;
        c->credit -= n;
        c->at += n;
        (void) conn_flush(l); /* at once, so that the next command finds the buffer empty again */
        return true;
}

static uint64_t now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

/* Everything was read that will be: tells the end, or keeps it for who asks. */
static bool pump_end(struct agent *a, struct command *c) {
        struct wr w;

        if (!c->exited || c->out[0].fd >= 0 || c->out[1].fd >= 0)
                return false;
        if (!c->told) {
                c->told = true;
                c->expires_ms = now_ms() + AP_KEPT_MS;
        }
        if (!c->conn || (c->reading && c->at < c->ring.head) || !conn_has_room(c->conn))
                return false;
        if (c->exec_errno > 0) {
                w = conn_answer(c->conn);
                ap_put_u32(&w, AP_EXEC_FAILED, c->number, c->exec_errno);
                conn_commit(c->conn, &w);
                c->exec_errno = 0;
                return true;
        }
        w = conn_answer(c->conn);
        ap_put_exit(&w, c->number, &c->exit);
        conn_commit(c->conn, &w);
        (void) conn_flush(c->conn); /* the host goes on while we tidy up */
        if (a->sole)
                command_release(a, c);
        else
                start_detach(c);
        return true;
}

/* What the host was not told yet about the start. */
static bool pump_start(struct agent *a, struct command *c) {
        struct ap_running run = { .number = c->number, .pid = (uint32_t) c->pid, .at = c->at };
        struct wr w;

        if (c->hold_fd > 0) /* nothing is told of it, nor why it failed */
                return false;
        if (c->fail_errno > 0 && !c->conn) {
                command_release(a, c);
                return true;
        }
        if (!c->conn || !conn_has_room(c->conn) || (!c->fail_errno && !c->announce && !c->gap_due))
                return false;
        if (c->fail_errno > 0) {
                conn_error(c->conn, c->request, -(int) c->fail_errno, c->fail_step);
                command_release(a, c);
                return true;
        }
        w = conn_answer(c->conn);
        if (c->announce)
                ap_put_running(&w, c->request, &run);
        else
                ap_put_gap(&w, c->number, c->gap);
        conn_commit(c->conn, &w);
        c->gap_due &= c->announce;
        c->announce = false;
        return true;
}

bool command_pump(struct agent *a, struct command *c) {
        bool moved = pump_start(a, c);

        if (!c->started) /* or released, and zeroed */
                return moved;
        moved |= pump_in(a, c);
        moved |= pump_out(a, c, 0);
        moved |= pump_out(a, c, 1);
        if (c->conn && !c->announce && !c->gap_due) {
                moved |= grant(c);
                moved |= pump_send(c);
        }
        return pump_end(a, c) || moved;
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
        agent_unwatch(a, &c->in_fd);
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
                struct command *c;
                struct rusage ru;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &ru);

                if (pid <= 0) {
                        a->reap = false;
                        return;
                }
                launcher_listen(a);
                EACH_COMMAND (a, c)
                        if (!c->exited && c->pid == pid)
                                on_end(a, c, status, &ru);
                launcher_ended(a, pid);
        }
}

int command_expire(struct agent *a) {
        uint64_t now = 0, next = UINT64_MAX;
        struct command *c;

        EACH_COMMAND (a, c) {
                if (!c->told || c->conn)
                        continue;
                now = now ? now : now_ms();
                if (c->expires_ms <= now)
                        command_release(a, c);
                else if (c->expires_ms - now < next)
                        next = c->expires_ms - now;
        }
        return next == UINT64_MAX ? -1 : (int) next;
}
