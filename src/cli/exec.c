/*
 * exec.c - `gabion exec` and `gabion shell`: a command in a sandbox, as if it ran here.
 *
 * Standard input is read and output written only when the other side can take it, so that a slow reader of ours slows
 * the command down and not this loop, which has to keep the connection alive. The terminal is put back on every way
 * out.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tty.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "client/process.h"
#include "json/json.h"

enum {
        TIMED_OUT = 124,
        NOT_EXECUTABLE = 126,
        NOT_FOUND = 127,
        KILLED = 137,
        BY_SIGNAL = 128,
        PATIENCE = 3,     /* interrupts, of which the last one kills */
        PIECE = PIPE_BUF, /* what a pipe that is writable takes without blocking */
        READ_MAX = 48 << 10,
        SIGNALS = 7,
};

static const int signals[SIGNALS] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

struct exec {
        struct client *client;
        struct client_process *process;
        bool interactive, tty, raw;
        const char *cwd, *user;
        uint64_t timeout_s;
        struct json *env;
        struct event *input, *output[2], *on_signal[SIGNALS];
        bool always; /* standard input is a file, which no loop can wait for */
        bool mid_line;
        bool deaf; /* nobody reads our output any more */
        unsigned interrupts;
        int killed_by;
        bool over;
        struct client_exit exit;
        struct err err;
};

static int set(void *into, int key, const char *value) {
        struct exec *x = into;
        struct err err = { 0 };

        switch (key) {
        case 'i':
                x->interactive = true;
                break;
        case 't':
                x->tty = true;
                break;
        case 'w':
                x->cwd = value;
                break;
        case 'u':
                x->user = value;
                break;
        case 'e':
                if (!remote_pair(x->env, value, true))
                        return cli_usage("exec", "-e '%.40s': NAME=VALUE or NAME is expected", value);
                break;
        default:
                return remote_seconds("timeout", value, &x->timeout_s, &err) < 0 ? cli_fail(&err) : -1;
        }
        return -1;
}

static void stop(struct exec *x) {
        x->over = true;
        (void) event_base_loopbreak(client_base(x->client));
}

/* --- output --- */

/* False: it cannot take more now. */
static bool write_some(struct exec *x, int fd, struct evbuffer *bytes) {
        size_t n = evbuffer_get_length(bytes) < PIECE ? evbuffer_get_length(bytes) : PIECE;
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        ssize_t k;

        if (poll(&p, 1, 0) == 0)
                return false;
        k = write(fd, evbuffer_pullup(bytes, (ev_ssize_t) n), n);
        if (k < 0 && (errno == EAGAIN || errno == EINTR))
                return errno == EINTR;
        if (k < 0) { /* as if the pipe's end were the command's own */
                x->deaf = true;
                client_process_signal(x->process, SIGTERM);
        }
        if (k > 0)
                x->mid_line = evbuffer_pullup(bytes, (ev_ssize_t) k)[k - 1] != '\n';
        (void) evbuffer_drain(bytes, k < 0 ? SIZE_MAX : (size_t) k);
        return true;
}

static void on_output(enum client_stream stream, struct evbuffer *bytes, void *data) {
        struct exec *x = data;
        int fd = stream == CLIENT_STDERR ? STDERR_FILENO : STDOUT_FILENO;

        if (x->deaf)
                (void) evbuffer_drain(bytes, SIZE_MAX);
        while (evbuffer_get_length(bytes) > 0)
                if (!write_some(x, fd, bytes)) {
                        (void) event_add(x->output[stream == CLIENT_STDERR], NULL);
                        return;
                }
}

static void on_writable(int fd, short what, void *arg) {
        (void) fd, (void) what;
        client_process_resume(((struct exec *) arg)->process);
}

/* --- input --- */

static void read_more(struct exec *x) {
        if (!x->input || x->over)
                return;
        if (x->always)
                event_active(x->input, EV_READ, 0);
        else
                (void) event_add(x->input, NULL);
}

static void on_readable(int fd, short what, void *arg) {
        static char piece[READ_MAX];
        struct exec *x = arg;
        ssize_t n = read(fd, piece, sizeof(piece));

        (void) what;
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
                read_more(x);
                return;
        }
        if (n <= 0) {
                client_process_close_input(x->process);
                return;
        }
        client_process_input(x->process, piece, (size_t) n);
        if (!client_process_is_full(x->process))
                read_more(x);
}

/* Files, /dev/null and the like, which epoll does not take. */
static bool is_always_ready(int fd) {
        AUTO_FD int probe = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event ev = { .events = EPOLLIN };

        return probe >= 0 && epoll_ctl(probe, EPOLL_CTL_ADD, fd, &ev) < 0 && errno == EPERM;
}

static void on_started(void *data) {
        struct exec *x = data;

        if (!x->interactive)
                return;
        if (x->tty) {
                x->raw = tty_raw();
                (void) atexit(tty_restore);
        }
        x->always = is_always_ready(STDIN_FILENO);
        x->input = event_new(client_base(x->client), STDIN_FILENO, x->always ? 0 : EV_READ, on_readable, x);
        read_more(x);
}

static void on_room(void *data) {
        read_more(data);
}

/* --- the end --- */

static void on_note(const char *text, void *data) {
        struct exec *x = data;

        (void) fprintf(stderr, "%sgabion: %s\n", x->raw ? "\r" : "", text);
        if (x->raw)
                (void) fputc('\r', stderr);
}

static void on_end(const struct client_exit *exit, const struct err *err, void *data) {
        struct exec *x = data;

        if (err)
                x->err = *err;
        else
                x->exit = *exit;
        stop(x);
}

static void on_late(int fd, short what, void *arg) {
        (void) fd, (void) what;
        stop(arg);
}

static void on_signal(int fd, short what, void *arg) {
        static const struct timeval soon = { .tv_usec = 500 * 1000L };
        struct exec *x = arg;
        uint16_t rows, columns;

        (void) what;
        if (fd == SIGWINCH) {
                tty_size(&rows, &columns);
                if (x->tty)
                        client_process_resize(x->process, rows, columns);
        } else if (x->tty) { /* the terminal goes away, for the command too */
                client_process_signal(x->process, SIGHUP);
                x->killed_by = fd;
                (void) event_base_once(client_base(x->client), -1, EV_TIMEOUT, on_late, x, &soon);
        } else if (fd == SIGINT && ++x->interrupts == PATIENCE) {
                client_process_signal(x->process, SIGKILL);
        } else {
                client_process_signal(x->process, fd);
        }
}

static int exit_code(const struct exec *x, struct remote *r, const char *name, const char *command) {
        struct client_box box;
        struct err err = x->err;
        const char *why;

        if (x->killed_by)
                return BY_SIGNAL + x->killed_by;
        if (err.code == -ETIME)
                remote_warn("%s: %llu s are over", command, (unsigned long long) x->timeout_s);
        if (err.code == -ETIME)
                return TIMED_OUT;
        if (err.code == -ENOENT && client_box_find(r->client, name, &box, &err) == 0)
                err = x->err; /* it lives: what was said counts */
        if (err.code && x->raw && x->mid_line)
                (void) fputc('\n', stderr);
        if (err.code)
                return cli_fail(&err);
        if (x->exit.code < 0)
                return x->exit.signal ? BY_SIGNAL + x->exit.signal : KILLED;
        if (!str_has_prefix(x->exit.error, "exec: "))
                return x->exit.code;
        why = x->exit.error + sizeof("exec: ") - 1;
        remote_warn("%s: %s", command, why);
        return str_eq(why, strerrordesc_np(ENOENT)) ? NOT_FOUND : NOT_EXECUTABLE;
}

/* Signals end the wait for a command, not before: until then they do what they always do. */
static int run(struct exec *x, const struct client_box *box, const char *const *argv, struct err *err) {
        struct event_base *base = client_base(x->client);
        struct client_process_config config = {
                .user = x->user,
                .cwd = x->cwd,
                .argv = argv,
                .env = x->env,
                .tty = x->tty,
                .wants_input = x->interactive,
                .timeout_ms = x->timeout_s * 1000,
                .on_output = on_output,
                .on_started = on_started,
                .on_room = on_room,
                .on_note = on_note,
                .on_end = on_end,
                .data = x,
        };
        int r;

        tty_size(&config.rows, &config.columns);
        for (size_t i = 0; i < ARRAY_SIZE(x->output); i++)
                x->output[i] = event_new(base, i == 0 ? STDOUT_FILENO : STDERR_FILENO, EV_WRITE, on_writable, x);
        r = client_process_new(x->client, box, &config, &x->process, err);
        for (size_t i = 0; r == 0 && i < SIGNALS; i++) {
                x->on_signal[i] = evsignal_new(base, signals[i], on_signal, x);
                if (!x->on_signal[i] || event_add(x->on_signal[i], NULL) < 0)
                        r = err_set(err, -ENOMEM, ERR_INTERNAL, "signals");
        }
        while (r == 0 && !x->over)
                if (event_base_loop(base, EVLOOP_ONCE) < 0)
                        r = err_set(err, -EIO, ERR_INTERNAL, "event loop");
        tty_restore();
        for (size_t i = 0; i < SIGNALS; i++)
                if (x->on_signal[i])
                        event_free(x->on_signal[i]);
        for (size_t i = 0; i < ARRAY_SIZE(x->output); i++)
                if (x->output[i])
                        event_free(x->output[i]);
        if (x->input)
                event_free(TAKE_PTR(x->input));
        x->process = client_process_free(x->process);
        return r;
}

static int exec(struct remote *r, struct exec *x, const char *name, const char *const *argv) {
        struct client_box box = { 0 };
        struct err err = { 0 };

        if (x->tty && *cli_env("TERM") && !json_get(x->env, "TERM"))
                json_set_str(x->env, "TERM", cli_env("TERM"));
        if (remote_open(r, &err) < 0 || client_box_find(r->client, name, &box, &err) < 0)
                return cli_fail(&err);
        x->client = r->client;
        if (run(x, &box, argv, &err) < 0)
                return cli_fail(&err);
        return exit_code(x, r, box.id, argv[0]);
}

/* Options may stand before the sandbox and behind it; with the first other word the command begins. */
static int read_words(struct remote *r, int argc, char **argv, int *at, struct exec *x, const char **ret_name) {
        int code = remote_options(r, argc, argv, at, set, x);

        if (code >= 0)
                return code;
        if (*at == argc)
                return cli_usage(r->verb->name, "the id or name of a sandbox is expected");
        *ret_name = argv[*at];
        return remote_options(r, argc, argv, at, set, x);
}

int remote_exec(struct remote *r, int argc, char **argv) {
        CLEANUP(json_freep) struct json *env = json_new_object();
        struct exec x = { .env = env };
        const char *name = NULL;
        int at = 0, code = read_words(r, argc, argv, &at, &x, &name);

        if (code >= 0)
                return code;
        if (at == argc)
                return cli_usage("exec", "a command is expected behind the sandbox");
        return exec(r, &x, name, (const char *const *) argv + at);
}

int remote_shell(struct remote *r, int argc, char **argv) {
        static const char *const login[] = { "/bin/sh", "-c", "exec \"$(command -v bash || echo /bin/sh)\" -l", NULL };
        CLEANUP(json_freep) struct json *env = json_new_object();
        struct exec x = { .env = env, .interactive = true, .tty = true };
        const char *name = NULL;
        int at = 0, code = read_words(r, argc, argv, &at, &x, &name);

        if (code >= 0)
                return code;
        return exec(r, &x, name, at < argc ? (const char *const *) argv + at : login);
}
