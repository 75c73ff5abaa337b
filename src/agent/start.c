/*
 * start.c - requests about commands in a sandbox that lives on by itself: start, attach, list.
 *
 * A command belongs to no connection: it starts for one, may lose it, and may be taken over by another. Only one at a
 * time hears of it; the host spreads output further if it wants to.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "state.h"

enum { COMMAND_MAX = AP_HEAD + AP_WHAT + AP_TAG + 64 }; /* a whole AP_COMMAND */

/* Hands the descriptors and the frame, as it came, to the launcher. */
static int give(const struct launcher *u, const struct command *c, const struct stdio *s, int hold_fd, uint8_t *body,
                size_t n) {
        int fds[4] = { 0, 1, 2, hold_fd }; /* /dev/null, all three */

        for (int i = 0; i < 3; i++)
                if (s->child[i] >= 0)
                        fds[i] = s->child[i];
        ap_head_put(body - AP_HEAD, AP_START, c->number, n);
        return launcher_send(u, body - AP_HEAD, n + AP_HEAD, fds, hold_fd < 0 ? 3 : 4);
}

/* The command keeps the end that lets its child go. */
static int open_hold(struct command *c, int *ret) {
        int p[2];

        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        c->hold_fd = p[1];
        *ret = p[0];
        return 0;
}

bool start_command(struct agent *a, struct conn *l, uint32_t id, uint8_t *body, size_t n) {
        const struct launcher *u;
        struct ap_start start;
        struct stdio_want want;
        struct command *c;
        const char *step = "launcher";
        AUTO_FD int hold = -1;
        struct stdio s;
        int r = -ENOTCONN;

        if (ap_get_start(body, n, &start, a->vectors, ARRAY_SIZE(a->vectors)) < 0)
                return false;
        u = launcher_find(a, start.uid);
        if (!u) {
                conn_error(l, id, r, step);
                return true;
        }
        want = (struct stdio_want){ .tty = start.flags & AP_TTY,
                                    .has_stdin = !(start.flags & AP_NO_STDIN),
                                    .as_user = true,
                                    .uid = u->uid,
                                    .gid = u->gid,
                                    .rows = start.rows,
                                    .columns = start.columns };
        r = stdio_open(a, &s, &want, &step);
        if (r == 0)
                r = command_new(a, &s, &c, &step);
        if (r == 0) {
                c->number = ++a->last_number;
                c->request = id;
                c->uid = u->uid;
                c->tty = want.tty;
                c->credit = start.credit;
                c->conn = l;
                c->reading = true;
                memcpy(c->tag, start.tag, sizeof(c->tag));
                c->n_what = ap_put_what(c->what, start.cwd, start.argv, start.argc);
                step = "launcher";
                if (start.flags & AP_HOLD)
                        r = open_hold(c, &hold);
                if (r == 0)
                        r = give(u, c, &s, hold, body, n);
                if (r < 0)
                        command_release(a, c);
        }
        stdio_close(s.agent);
        stdio_close(s.child);
        if (r < 0)
                conn_error(l, id, r, step);
        return true;
}

bool start_go(struct agent *a, struct conn *l, uint32_t id, const void *body, size_t n) {
        struct command *c;
        uint32_t go;
        ssize_t r;

        if (ap_get_u32(body, n, &go) < 0 || go > 1)
                return false;
        EACH_COMMAND (a, c) {
                if (c->conn != l || c->request != id || c->hold_fd == 0)
                        continue;
                if (!go) {
                        conn_error(l, id, -ECANCELED, "hold");
                        command_release(a, c);
                        break;
                }
                r = sys_write(c->hold_fd, "g", 1);
                if (r < 0)
                        launcher_listen(a); /* nobody is there to go; who told his number is reaped */
                if (r < 0 && c->pid == 0 && c->fail_errno == 0) {
                        conn_error(l, id, -ESRCH, "hold");
                        command_release(a, c);
                        break;
                }
                (void) close(TAKE(c->hold_fd, 0));
                c->started = c->announce = c->pid > 0;
                break;
        }
        return true;
}

void start_detach(struct command *c) {
        c->conn = NULL;
        c->reading = c->announce = c->gap_due = false;
}

static bool is_meant(const struct command *c, const struct ap_attach *q) {
        switch ((enum ap_by) q->by) {
        case AP_BY_NUMBER:
                return c->number == q->value;
        case AP_BY_PID:
                return (uint32_t) c->pid == q->value;
        case AP_BY_TAG:
                return str_eq(c->tag, q->tag);
        }
        return false;
}

/* A pid may have been given twice, and a tag too: one that lives is meant rather than one that ended, and the newer. */
static struct command *find(struct agent *a, const struct ap_attach *q) {
        struct command *c, *best = NULL;

        EACH_COMMAND (a, c) {
                if (!c->started || c->announce || !is_meant(c, q)) /* nobody can know it before it is announced */
                        continue;
                if (!best || (best->exited && !c->exited) || (best->exited == c->exited && c->number > best->number))
                        best = c;
        }
        return best;
}

/* The connection that had it is told; one that does not even take that is closed. */
static void take_from(struct command *c) {
        struct wr w;

        if (!conn_has_room(c->conn)) {
                c->conn->dead = true;
                return;
        }
        w = conn_answer(c->conn);
        ap_put_empty(&w, AP_DETACHED, c->number);
        conn_commit(c->conn, &w);
}

bool start_attach(struct agent *a, struct conn *l, uint32_t id, const void *body, size_t n) {
        struct ap_running run;
        struct ap_attach q;
        struct command *c;
        struct wr w;

        if (ap_get_attach(body, n, &q) < 0)
                return false;
        c = find(a, &q);
        if (!c || (q.from != AP_NOW && q.from > c->ring.head)) {
                conn_error(l, id, c ? -ERANGE : -ESRCH, c ? "from" : "attach");
                return true;
        }
        if (c->conn && c->conn != l)
                take_from(c);
        c->conn = l;
        c->reading = !(q.flags & AP_QUIET);
        c->at = q.from == AP_NOW ? c->ring.head : q.from;
        c->gap = c->at < c->ring.tail ? c->ring.tail - c->at : 0;
        c->gap_due = c->reading && c->gap > 0;
        run = (struct ap_running){ .number = c->number, .pid = (uint32_t) c->pid, .at = c->at };
        w = conn_answer(l);
        ap_put_running(&w, id, &run);
        conn_commit(l, &w);
        c->at += c->gap;
        c->credit = q.credit;
        /* Whatever was granted to the connection before: this one starts anew. */
        c->in_granted = 0;
        c->in_owed = c->in_fd >= 0 ? (uint32_t) (AGENT_STDIN - (c->in_end - c->in_start)) : 0;
        return true;
}

static void describe(const struct command *c, struct ap_command *ret) {
        *ret = (struct ap_command){
                .number = c->number,
                .pid = (uint32_t) c->pid,
                .uid = c->uid,
                .flags = (uint8_t) ((c->tty ? AP_IS_TTY : 0) | (c->exited ? AP_HAS_EXITED : 0) |
                                    (c->in_fd >= 0 && !c->in_eof ? AP_HAS_STDIN : 0)),
                .kept = c->ring.tail,
                .end = c->ring.head,
                .what = c->what,
                .n_what = c->n_what,
        };
        memcpy(ret->tag, c->tag, sizeof(ret->tag));
}

bool start_list(struct agent *a, struct conn *l) {
        struct wr w = wr_to(l->out, COMMAND_MAX);
        struct ap_command one;

        if (!l->listing || !conn_is_empty(l))
                return false;
        while (l->list_at < AP_COMMANDS &&
               (!(a->commands_used & 1ull << l->list_at) || !a->commands[l->list_at].started))
                l->list_at++;
        if (l->list_at == AP_COMMANDS) {
                ap_put_empty(&w, AP_DONE, l->list_id);
                l->listing = false;
        } else {
                describe(&a->commands[l->list_at++], &one);
                ap_put_command(&w, l->list_id, &one);
        }
        conn_commit(l, &w);
        return true;
}
