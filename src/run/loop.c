/*
 * loop.c - the life of a running command: output, input, signals, refused calls, the clock.
 *
 * One poll() loop. Everything that arrives on the control socket comes from inside the sandbox and is taken as hostile:
 * a frame that is malformed or out of place ends the sandbox. Memory is bounded on both sides by credit: the agent
 * may send only as much output as was granted, and credit is granted as output is written, so a reader that stops
 * reading stops the command and nothing else.
 */
#include "run/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tty.h"
#include "base/wr.h"

enum {
        COMMAND = 1,          /* the only command's id */
        WRITE_AT_ONCE = 4096, /* what a pipe that polls writable takes without blocking */
        TICK_MS = 1000,
        BUFFER_MAX = 2 * AP_FRAME_MAX,
        NOTIFY_BURST = 50, /* refused calls reported at once, then some each second */
        NOTIFY_PER_S = 5,
        PUSHY_SIGNALS = 3,              /* that many requests to end, and it is ended */
        FINDABLE_NS = 20 * 1000 * 1000, /* what ends sooner is never found by another process, and saves the socket */
};

enum {
        AT_CONTROL,
        AT_PAIR,
        AT_LISTENER,
        AT_SIGNAL,
        AT_STDIN,
        AT_STDOUT,
        AT_STDERR,
        AT_EGRESS,
        AT_AUDIT,
        AT_FILES,
        AT_REMOTE,
        AT_COUNT = AT_REMOTE + CONTROL_FDS
};

struct life {
        struct loop *l;
        struct buf in;     /* frames from the agent, not yet whole */
        struct buf out[2]; /* output on its way to standard output and error */
        bool out_gone[2];  /* nobody reads there any more */
        uint64_t written, deadline_ns, started_ns, notify_refill_ns;
        uint32_t stdin_credit;
        bool stdin_open, exited, gone, findable;
        unsigned notify_left, pushes;
        struct ap_exit exit;
        struct err audit; /* why the log failed */
};

static void frame_send(struct life *f, const struct wr *w) {
        sandbox_send(f->l->sb, w->p, w->len);
}

static void send_u32(struct life *f, enum ap_type type, uint32_t v) {
        uint8_t space[32];
        struct wr w = wr_to(space, sizeof(space));

        ap_put_u32(&w, type, COMMAND, v);
        frame_send(f, &w);
}

/* Ends the sandbox now; the reason stands unless one was found earlier. */
static void end_now(struct life *f, enum run_reason reason) {
        struct err e = { 0 };

        if (f->l->result->reason == RUN_EXITED)
                f->l->result->reason = reason;
        if (f->l->sb->has_cgroup)
                (void) cgroup_kill(&f->l->sb->cgroup, &e);
        (void) kill(f->l->sb->agent_pid, SIGKILL);
        f->gone = true;
}

static int on_output(struct life *f, const void *body, size_t n) {
        uint64_t cap = f->l->plan->policy->limits.output_bytes;
        const void *bytes;
        unsigned stream;
        size_t n_bytes;

        if (ap_get_output(body, n, &stream, &bytes, &n_bytes) < 0)
                return -EBADMSG;
        if (f->written + n_bytes > cap) {
                n_bytes = f->written < cap ? (size_t) (cap - f->written) : 0;
                f->l->result->output_truncated = true;
        }
        f->written += n_bytes;
        if (f->out_gone[stream - 1])
                send_u32(f, AP_CREDIT, (uint32_t) n_bytes);
        else
                buf_add(&f->out[stream - 1], bytes, n_bytes);
        if (f->out[stream - 1].bad)
                return -EBADMSG; /* more than was credited */
        if (f->l->result->output_truncated) {
                denial_add(f->l, "limit.output", "limits.output", "more output than the limit",
                           "the command was ended; raise limits.output or write to a file");
                end_now(f, RUN_LIMIT);
        }
        return 0;
}

static int on_frame(struct life *f, const struct ap_head *h, const void *body, size_t n) {
        uint32_t v;

        if (h->id != COMMAND)
                return -EBADMSG;
        if (h->type == AP_OUTPUT)
                return on_output(f, body, n);
        if (h->type == AP_STARTED)
                return 0;
        if (h->type == AP_STDIN_CREDIT) {
                if (ap_get_u32(body, n, &v) < 0 || v > AP_FRAME_MAX || f->stdin_credit > AP_FRAME_MAX)
                        return -EBADMSG;
                f->stdin_credit += v;
                return 0;
        }
        if (h->type == AP_EXITED && !f->exited) {
                f->exited = true;
                return ap_get_exit(body, n, &f->exit);
        }
        return -EBADMSG;
}

static int on_control(struct life *f) {
        static char chunk[16384];
        const char *p = chunk;
        struct ap_head h;
        ssize_t n = read(f->l->sb->control_fd, chunk, sizeof(chunk));
        size_t used = 0, len;
        int r = 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n < 0 && errno != ECONNRESET) /* reset: the agent was killed with our bytes unread */
                return -errno;
        if (n <= 0) {
                f->gone = true;
                return 0;
        }
        len = (size_t) n;
        if (f->in.len > 0) { /* the rest of a frame; as a rule there is none, and nothing is copied */
                buf_add(&f->in, chunk, len);
                p = f->in.p;
                len = f->in.len;
        }
        while (r == 0 && !f->gone && !f->in.bad && (r = ap_frame(p + used, len - used, &h)) == 1) {
                r = on_frame(f, &h, p + used + AP_HEAD, h.length - AP_HEAD);
                used += h.length;
        }
        if (p != chunk)
                buf_eat(&f->in, used);
        else if (used < len)
                buf_add(&f->in, p + used, len - used);
        return f->in.bad ? -EBADMSG : r;
}

/* Writes what a reader takes, and grants the agent that much again. */
static void on_writable(struct life *f, int stream) {
        struct buf *b = &f->out[stream];
        size_t n = b->len < WRITE_AT_ONCE ? b->len : WRITE_AT_ONCE;
        ssize_t k = write(stream + 1, b->p, n);

        if (k < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (k < 0) { /* like SIGPIPE for a pipeline: the output has no taker, the command goes on */
                f->out_gone[stream] = true;
                k = (ssize_t) b->len;
        }
        if (stream == 0 && k > 0)
                f->l->result->stdout_mid_line = b->p[k - 1] != '\n';
        buf_eat(b, (size_t) k);
        send_u32(f, AP_CREDIT, (uint32_t) k);
}

static void on_stdin(struct life *f) {
        static uint8_t frame[AP_HEAD + AP_CHUNK];
        size_t room = f->stdin_credit < AP_CHUNK ? f->stdin_credit : AP_CHUNK;
        ssize_t n = read(STDIN_FILENO, frame + AP_HEAD, room);
        struct wr w = wr_to(frame, sizeof(frame));

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return;
        if (n <= 0) {
                f->stdin_open = false;
                ap_put_empty(&w, AP_STDIN_EOF, COMMAND);
        } else {
                f->stdin_credit -= (uint32_t) n;
                ap_head_put(frame, AP_STDIN, COMMAND, (size_t) n);
                w.len = AP_HEAD + (size_t) n;
        }
        frame_send(f, &w);
}

/* Ctrl-Z at the caller's shell: the sandbox is frozen, then we stop; and the other way round on return. */
static void on_stop(struct life *f) {
        struct err e = { 0 };

        if (f->l->sb->has_cgroup)
                (void) cgroup_freeze(&f->l->sb->cgroup, true, &e);
        (void) kill(getpid(), SIGSTOP);
        if (f->l->sb->has_cgroup && !f->l->watch->frozen)
                (void) cgroup_freeze(&f->l->sb->cgroup, false, &e);
}

static void on_signal(struct life *f) {
        struct signalfd_siginfo si;
        uint8_t space[32];
        struct wr w = wr_to(space, sizeof(space));
        uint16_t rows, columns;

        if (read(f->l->signal_fd, &si, sizeof(si)) != sizeof(si))
                return;
        switch (si.ssi_signo) {
        case SIGWINCH:
                tty_size(&rows, &columns);
                ap_put_resize(&w, COMMAND, rows, columns);
                if (f->l->o->tty)
                        frame_send(f, &w);
                return;
        case SIGTSTP:
                on_stop(f);
                return;
        case SIGCONT:
                return;
        default:
                send_u32(f, AP_SIGNAL, si.ssi_signo);
                /* What is frozen cannot hear: there the first one counts. */
                if (si.ssi_signo != SIGUSR1 && si.ssi_signo != SIGUSR2 &&
                    (++f->pushes >= PUSHY_SIGNALS || f->l->watch->frozen))
                        end_now(f, RUN_KILLED_BY_USER);
        }
}

/* The pair speaks once more only when exec failed; it closes when exec succeeded. */
static void on_pair(struct life *f) {
        struct sandbox *sb = f->l->sb;
        char data[64];
        ssize_t n = read(sb->pair_fd, data, sizeof(data));
        uint32_t code = 0;

        if (n > 0 && ap_get_exec_failed(data, (size_t) n, &code) == 0) {
                f->l->result->exit_code = code == ENOENT ? 127 : 126;
                (void) dprintf(STDERR_FILENO, "gabion: %.200s: %s%s\n", f->l->o->argv[0],
                               code == ENOENT ? "command not found in the sandbox" : strerror((int) (code & 4095)),
                               f->l->raw ? "\r" : "");
        }
        (void) close(TAKE_FD(sb->pair_fd));
}

static void on_listener(struct life *f) {
        struct sandbox *sb = f->l->sb;
        struct seccomp_event ev;
        struct err e = { 0 };
        char text[96];
        uint64_t now = clock_mono_ns();
        int r;

        while (now - f->notify_refill_ns > 1000000000u / NOTIFY_PER_S && f->notify_left < NOTIFY_BURST) {
                f->notify_refill_ns += 1000000000u / NOTIFY_PER_S;
                f->notify_left++;
        }
        r = seccomp_notify_answer(sb->listener_fd, f->l->plan->profile, &ev, &e);
        if (r == 0)
                return;
        if (r < 0 || f->notify_left == 0) {
                /* A flood: later attempts are refused by the kernel alone, at nobody's cost. */
                if (r == 1) {
                        f->l->result->denials_suppressed++;
                        denial_add(f->l, "sys.call_refused", "syscalls", "a flood of refused calls",
                                   "further ones are refused without a record");
                }
                (void) close(TAKE_FD(sb->listener_fd));
                return;
        }
        f->notify_left--;
        watch_call(f->l->watch);
        seccomp_event_text(&ev, text, sizeof(text));
        denial_add(f->l, "sys.call_refused", policy_syscalls_name(f->l->plan->policy->syscalls), text,
                   "not available in a sandbox; do not retry");
}

static void poll_set(struct life *f, struct pollfd p[AT_COUNT]) {
        struct sandbox *sb = f->l->sb;

        p[AT_CONTROL] = (struct pollfd){ sb->control_fd, (short) (POLLIN | (sb->out.len ? POLLOUT : 0)), 0 };
        p[AT_PAIR] = (struct pollfd){ sb->pair_fd, POLLIN, 0 };
        p[AT_LISTENER] = (struct pollfd){ sb->listener_fd, POLLIN, 0 };
        p[AT_SIGNAL] = (struct pollfd){ f->l->signal_fd, POLLIN, 0 };
        p[AT_STDIN] = (struct pollfd){ f->stdin_open && f->stdin_credit > 0 && !f->exited ? 0 : -1, POLLIN, 0 };
        p[AT_STDOUT] = (struct pollfd){ f->out[0].len ? 1 : -1, POLLOUT, 0 };
        p[AT_STDERR] = (struct pollfd){ f->out[1].len ? 2 : -1, POLLOUT, 0 };
        control_poll(&f->l->control, p + AT_REMOTE);
        p[AT_EGRESS] = (struct pollfd){ network_fd(f->l->net), POLLIN, 0 };
        p[AT_AUDIT] = (struct pollfd){ record_fd(f->l->record), POLLIN, 0 };
        p[AT_FILES] = (struct pollfd){ monitor_fd(&f->l->watch->monitor), POLLIN, 0 };
}

static int wait_ms(struct life *f) {
        uint64_t now = clock_mono_ns(), due = network_due_ns(f->l->net), left;

        if (due > f->deadline_ns)
                due = f->deadline_ns;
        if (due > watch_due_ns(f->l->watch))
                due = watch_due_ns(f->l->watch);
        if (!f->findable && due > f->started_ns + FINDABLE_NS)
                due = f->started_ns + FINDABLE_NS;
        if (now >= due)
                return 0;
        left = (due - now) / 1000000 + 1;
        return left < TICK_MS ? (int) left : TICK_MS;
}

/* The run needs nobody's questions. */
static void make_findable(struct life *f) {
        struct err e = { 0 };

        f->findable = true;
        (void) control_open(&f->l->control, f->l, &e);
}

/* What is due, while the command runs. */
static void on_clock(struct life *f) {
        uint64_t now = clock_mono_ns();

        if (f->exited || f->gone)
                return;
        if (!f->findable && now >= f->started_ns + FINDABLE_NS)
                make_findable(f);
        if (now >= watch_due_ns(f->l->watch))
                watch_look(f->l->watch);
        if (f->l->watch->kill) {
                end_now(f, RUN_KILLED_BY_POLICY);
        } else if (now >= f->deadline_ns) {
                denial_add(f->l, "limit.time", "limits.time", "the time limit", "the command was ended");
                end_now(f, RUN_TIMEOUT);
        }
}

static int serve(struct life *f) {
        struct pollfd p[AT_COUNT];
        struct wr none = wr_to(NULL, 0);
        int r = 0;

        poll_set(f, p);
        if (poll(p, AT_COUNT, wait_ms(f)) < 0)
                return errno == EINTR ? 0 : -errno;
        if (p[AT_SIGNAL].revents)
                on_signal(f);
        if (p[AT_LISTENER].revents)
                on_listener(f);
        if (p[AT_PAIR].revents)
                on_pair(f);
        if (p[AT_EGRESS].revents || clock_mono_ns() >= network_due_ns(f->l->net))
                network_serve(f->l->net);
        control_serve(&f->l->control, p + AT_REMOTE);
        if (p[AT_CONTROL].revents & POLLOUT)
                frame_send(f, &none);
        if (p[AT_CONTROL].revents & (POLLIN | POLLHUP | POLLERR))
                r = on_control(f);
        if (p[AT_STDIN].revents)
                on_stdin(f);
        if (p[AT_STDOUT].revents)
                on_writable(f, 0);
        if (p[AT_STDERR].revents)
                on_writable(f, 1);
        if (p[AT_AUDIT].revents && record_take(f->l->record, &f->audit) < 0) {
                end_now(f, RUN_KILLED_BY_POLICY);
                return f->audit.code;
        }
        if (p[AT_FILES].revents)
                watch_files(f->l->watch);
        on_clock(f);
        return r;
}

/* What was already received is still written, for a bounded time. */
static void drain(struct life *f) {
        uint64_t until = clock_mono_ns() + 5000000000u;

        for (int s = 0; s < 2; s++)
                while (f->out[s].len > 0 && clock_mono_ns() < until) {
                        struct pollfd p = { s + 1, POLLOUT, 0 };

                        if (poll(&p, 1, 100) > 0)
                                on_writable(f, s);
                }
}

int loop_run(struct loop *l, struct err *err) {
        struct life f = { .l = l, .notify_left = NOTIFY_BURST };
        int r = 0;

        f.in = BUF_INIT(BUFFER_MAX);
        f.out[0] = f.out[1] = BUF_INIT(BUFFER_MAX);
        f.started_ns = f.notify_refill_ns = clock_mono_ns();
        f.deadline_ns = f.started_ns + l->plan->policy->limits.time_ms * 1000000u;
        f.stdin_open = !l->o->no_stdin;
        f.findable = l->control.listen_fd >= 0;
        while (r == 0 && !f.exited && !f.gone)
                r = serve(&f);
        if (r < 0 && f.audit.code < 0) {
                *err = f.audit;
        } else if (r < 0) {
                end_now(&f, RUN_LOST);
                (void) err_set(err, r, ERR_PEER, "the sandbox broke its protocol and was ended: %s", strerror(-r));
        }
        drain(&f);
        l->result->duration_ms = (double) (clock_mono_ns() - f.started_ns) / 1e6;
        if (f.exited) {
                l->result->signal = f.exit.signalled ? (int) (f.exit.code & 127) : 0;
                if (l->result->exit_code == 0)
                        l->result->exit_code = f.exit.signalled ? 128 + l->result->signal : (int) (f.exit.code & 255);
                if (f.exit.signalled && l->result->reason == RUN_EXITED)
                        l->result->reason = RUN_SIGNALLED;
                l->result->cpu_ms = (double) (f.exit.user_us + f.exit.system_us) / 1e3;
                l->result->memory_peak_bytes = f.exit.max_rss_kib * 1024;
        } else if (l->result->reason == RUN_EXITED) {
                l->result->reason = RUN_LOST;
        }
        buf_done(&f.in);
        buf_done(&f.out[0]);
        buf_done(&f.out[1]);
        return r;
}
