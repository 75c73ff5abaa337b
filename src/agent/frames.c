/*
 * frames.c - what the host may say, and when.
 *
 * Invariant: everything a frame must satisfy before its handler runs is in the table and in frames_serve(). A frame
 * that breaks a rule ends the connection. Where there is only one host, it ends the agent and with it the sandbox: that
 * host is ours, and a confused one must not go on. A frame for a command that has ended is no error: the two crossed on
 * the wire.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/wr.h"
#include "state.h"

enum { SIGNAL_MAX = 64, PORT_MAX = 65535 };

enum { IN_SOLE = BIT(CONN_SOLE), IN_CONTROL = BIT(CONN_CONTROL), IN_GATE = BIT(CONN_GATE) };

struct frame {
        struct conn *l;
        struct command *c; /* of the frame's id, or NULL */
        uint32_t id;
        uint8_t *body;
        size_t n;
};

/* Each returns false if the host must not go on. */
typedef bool (*frame_fn)(struct agent *a, const struct frame *f);

static void done(struct conn *l, uint32_t id) {
        struct wr w = conn_answer(l);

        ap_put_empty(&w, AP_DONE, id);
        conn_commit(l, &w);
}

static bool on_configure(struct agent *a, const struct frame *f) {
        uint64_t keep;

        if (ap_get_configure(f->body, f->n, &keep) < 0)
                return false;
        if (sys_capset(keep, keep, 0) < 0)
                _exit(AGENT_NO_CAPSET);
        a->configured = true;
        return true;
}

static bool on_spawn(struct agent *a, const struct frame *f) {
        struct ap_spawn spawn;

        if (ap_get_spawn(f->body, f->n, &spawn, a->vectors, ARRAY_SIZE(a->vectors)) < 0 ||
            a->sole == !!(spawn.flags & AP_LAUNCHER) || (a->sole && f->c))
                return false;
        if (a->sole)
                command_spawn(a, f->l, f->id, &spawn);
        else
                launcher_start(a, f->l, f->id, &spawn);
        return true;
}

static bool on_env(struct agent *a, const struct frame *f) {
        int r = 0;

        if (ap_get_env(f->body, f->n, a->vectors, ARRAY_SIZE(a->vectors)) < 0)
                return false;
        a->n_env = AP_HEAD + f->n;
        memcpy(a->env, f->body - AP_HEAD, a->n_env);
        for (size_t i = 0; i < AGENT_LAUNCHERS && r == 0; i++)
                if (a->launchers[i].pid > 0)
                        r = launcher_send(&a->launchers[i], a->env, a->n_env, NULL, 0);
        if (r < 0)
                conn_error(f->l, f->id, r, "launcher");
        else
                done(f->l, f->id);
        return true;
}

static bool on_start(struct agent *a, const struct frame *f) {
        return start_command(a, f->l, f->id, f->body, f->n);
}

static bool on_attach(struct agent *a, const struct frame *f) {
        return start_attach(a, f->l, f->id, f->body, f->n);
}

static bool on_go(struct agent *a, const struct frame *f) {
        return start_go(a, f->l, f->id, f->body, f->n);
}

static bool on_detach(struct agent *a, const struct frame *f) {
        (void) a;
        if (f->c && f->c->conn == f->l)
                start_detach(f->c);
        return f->n == 0;
}

static bool on_list(struct agent *a, const struct frame *f) {
        (void) a;
        if (f->n != 0 || f->l->listing)
                return false;
        f->l->listing = true;
        f->l->list_id = f->id;
        f->l->list_at = 0;
        return true;
}

static bool on_stdin(struct agent *a, const struct frame *f) {
        (void) a;
        return f->n <= AP_CHUNK && (!f->c || f->c->conn != f->l || command_stdin(f->c, f->body, f->n));
}

static bool on_stdin_eof(struct agent *a, const struct frame *f) {
        (void) a;
        return f->n == 0 && (!f->c || f->c->conn != f->l || command_stdin_eof(f->c));
}

static bool on_signal(struct agent *a, const struct frame *f) {
        const struct command *c = f->c;
        uint32_t sig;

        (void) a;
        if (ap_get_u32(f->body, f->n, &sig) < 0 || sig < 1 || sig > SIGNAL_MAX)
                return false;
        /* Only while the command is not reaped is its number surely its own. Before its setsid() it has no group. */
        if (c && c->started && !c->exited && sys_kill(-c->pid, (int) sig) == -ESRCH)
                (void) sys_kill(c->pid, (int) sig);
        return true;
}

static bool on_resize(struct agent *a, const struct frame *f) {
        struct winsize size = { 0 };

        (void) a;
        if (ap_get_resize(f->body, f->n, &size.ws_row, &size.ws_col) < 0)
                return false;
        if (f->c && f->c->tty && f->c->out[0].fd >= 0)
                (void) ioctl(f->c->out[0].fd, TIOCSWINSZ, &size);
        return true;
}

static bool on_credit(struct agent *a, const struct frame *f) {
        uint32_t more;

        (void) a;
        if (ap_get_u32(f->body, f->n, &more) < 0)
                return false;
        if (f->c && f->c->conn == f->l)
                f->c->credit += more;
        return true;
}

/* AP_CONFIGURE comes first and once; everything else comes after it. */
static const struct {
        frame_fn fn;
        unsigned kinds; /* of connections on which it may come */
} handlers[] = {
        [AP_CONFIGURE] = { on_configure, IN_SOLE | IN_GATE },
        [AP_SPAWN] = { on_spawn, IN_SOLE | IN_GATE },
        [AP_STDIN] = { on_stdin, IN_SOLE | IN_CONTROL },
        [AP_STDIN_EOF] = { on_stdin_eof, IN_SOLE | IN_CONTROL },
        [AP_SIGNAL] = { on_signal, IN_SOLE | IN_CONTROL },
        [AP_RESIZE] = { on_resize, IN_SOLE | IN_CONTROL },
        [AP_CREDIT] = { on_credit, IN_SOLE | IN_CONTROL },
        [AP_ENV] = { on_env, IN_GATE },
        [AP_START] = { on_start, IN_CONTROL },
        [AP_LIST] = { on_list, IN_CONTROL },
        [AP_ATTACH] = { on_attach, IN_CONTROL },
        [AP_DETACH] = { on_detach, IN_CONTROL },
        [AP_GO] = { on_go, IN_CONTROL },
};

static bool is_bad(struct agent *a, struct conn *l, size_t at, int r, const struct ap_head *head) {
        struct frame f = { .l = l, .id = head->id, .body = l->in + at + AP_HEAD };

        if (r < 0 || head->type >= ARRAY_SIZE(handlers) || !(handlers[head->type].kinds & BIT(l->kind)) ||
            a->configured == (head->type == AP_CONFIGURE))
                return true;
        f.n = head->length - AP_HEAD;
        f.c = command_find(a, head->id);
        return !handlers[head->type].fn(a, &f);
}

/* The first frame of a connection is looked at where it lies, and taken alone: what follows may be another's to read.
 */
static bool first_frame(struct agent *a, struct conn *l) {
        uint8_t start[AP_HEAD + sizeof(uint32_t)];
        struct ap_head head;
        uint32_t v;
        ssize_t n;

        if (!l->readable || l->dead)
                return false;
        n = recv(l->fd, start, sizeof(start), MSG_DONTWAIT | MSG_PEEK);
        if (n <= 0) {
                l->dead = n == 0 || errno != EAGAIN;
                l->readable = false;
                return l->dead;
        }
        l->kind = CONN_CONTROL;
        if ((size_t) n < sizeof(head.length) + sizeof(uint16_t) || start[sizeof(head.length)] != 0 ||
            (start[sizeof(head.length) + 1] != AP_FILES && start[sizeof(head.length) + 1] != AP_PORT))
                return true;
        /* Both are as long as `start`. Whoever cannot say that much in one piece is not ours. */
        l->dead = !a->configured || ap_frame(start, (size_t) n, &head) != 1 ||
                  ap_get_u32(start + AP_HEAD, head.length - AP_HEAD, &v) < 0 ||
                  recv(l->fd, start, sizeof(start), 0) != n;
        if (l->dead)
                return true;
        if (head.type == AP_FILES)
                launcher_files(a, l, head.id, v);
        else if (v < 1 || v > PORT_MAX)
                l->dead = true;
        else
                port_open(a, l, head.id, v);
        return true;
}

bool frames_serve(struct agent *a, struct conn *l) {
        size_t at = 0;

        if (l->kind == CONN_FRESH)
                return first_frame(a, l);
        /* Each frame is answered at most once, so one free answer is enough to serve it. */
        while (!l->dead && conn_has_room(l)) {
                struct ap_head head = { 0 };
                int r = ap_frame(l->in + at, l->in_len - at, &head);

                if (r == 0)
                        break;
                if (is_bad(a, l, at, r, &head)) {
                        if (a->sole)
                                _exit(AGENT_BAD_FRAME);
                        l->dead = true;
                        break;
                }
                at += head.length;
        }
        if (at > 0)
                conn_eat(l, at);
        return at > 0;
}
