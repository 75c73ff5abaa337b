/*
 * frames.c - what the host may say, and when.
 *
 * Invariant: everything a frame must satisfy before its handler runs is in the table and in frames_serve(). A frame
 * that breaks a rule ends the agent, and with it the sandbox: there is one host, it is ours, and a confused one must
 * not go on. A frame for a command that has ended is no error: the two crossed on the wire.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "state.h"

enum { SIGNAL_MAX = 64 };

/* Each returns false if the host must not go on. c is the command of the frame's id, or NULL. */
typedef bool (*frame_fn)(struct agent *a, struct command *c, uint32_t id, void *body, size_t n);

static bool on_configure(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        uint64_t keep;

        (void) c;
        (void) id;
        if (ap_get_configure(body, n, &keep) < 0)
                return false;
        if (sys_capset(keep, keep, 0) < 0)
                _exit(AGENT_NO_CAPSET);
        a->configured = true;
        return true;
}

static bool on_spawn(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        struct ap_spawn spawn;

        if (c || ap_get_spawn(body, n, &spawn, a->vectors, ARRAY_SIZE(a->vectors)) < 0)
                return false;
        command_start(a, id, &spawn);
        return true;
}

static bool on_stdin(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        (void) a;
        (void) id;
        return n <= AP_CHUNK && (!c || command_stdin(c, body, n));
}

static bool on_stdin_eof(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        (void) a;
        (void) id;
        (void) body;
        return n == 0 && (!c || command_stdin_eof(c));
}

static bool on_signal(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        uint32_t sig;

        (void) a;
        (void) id;
        if (ap_get_u32(body, n, &sig) < 0 || sig < 1 || sig > SIGNAL_MAX)
                return false;
        /* Only while the command is not reaped is its number surely its own. Before its setsid() it has no group. */
        if (c && !c->exited && sys_kill(-c->pid, (int) sig) == -ESRCH)
                (void) sys_kill(c->pid, (int) sig);
        return true;
}

static bool on_resize(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        struct winsize size = { 0 };

        (void) a;
        (void) id;
        if (ap_get_resize(body, n, &size.ws_row, &size.ws_col) < 0)
                return false;
        if (c && c->tty && c->out[0].fd >= 0)
                (void) ioctl(c->out[0].fd, TIOCSWINSZ, &size);
        return true;
}

static bool on_credit(struct agent *a, struct command *c, uint32_t id, void *body, size_t n) {
        uint32_t more;

        (void) a;
        (void) id;
        if (ap_get_u32(body, n, &more) < 0)
                return false;
        if (c)
                c->credit += more;
        return true;
}

/* AP_CONFIGURE comes first and once; everything else comes after it. */
static const frame_fn handlers[] = {
        [AP_CONFIGURE] = on_configure, [AP_SPAWN] = on_spawn,   [AP_STDIN] = on_stdin,   [AP_STDIN_EOF] = on_stdin_eof,
        [AP_SIGNAL] = on_signal,       [AP_RESIZE] = on_resize, [AP_CREDIT] = on_credit,
};

bool frames_serve(struct agent *a) {
        struct link *l = &a->link;
        size_t at = 0;

        /* Each frame is answered at most once, so one free answer is enough to serve it. */
        while (link_has_room(l)) {
                struct ap_head head;
                int r = ap_frame(l->in + at, l->in_len - at, &head);

                if (r == 0)
                        break;
                if (r < 0 || head.type >= ARRAY_SIZE(handlers) || a->configured == (head.type == AP_CONFIGURE) ||
                    !handlers[head.type](a, command_find(a, head.id), head.id, l->in + at + AP_HEAD,
                                         head.length - AP_HEAD))
                        _exit(AGENT_BAD_FRAME);
                at += head.length;
        }
        if (at > 0)
                link_eat(l, at);
        return at > 0;
}
