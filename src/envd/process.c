/*
 * process.c - process.Process: the start of a command, and what its followers are told. Calls about commands that run
 * are in running.c.
 */
#include "envd/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/command.h"
#include "envd/rpc.h"
#include "envd/text.h"
#include "http/server.h"
#include "json/json.h"

/* --- lists --- */

void process_join(struct rpc *q, enum process_role role, struct rpc_list *list) {
        q->process.role = role;
        q->process.list = list;
        TAILQ_INSERT_TAIL(list, q, process.link);
}

void process_leave(struct rpc *q) {
        if (q->process.list)
                TAILQ_REMOVE(q->process.list, q, process.link);
        q->process.list = NULL;
        q->process.role = PROCESS_ALONE;
}

/* --- told by commands --- */

void process_live(struct rpc *q, uint64_t at) {
        q->process.live = true;
        q->process.next = at;
        rpc_send_json(q, message_started(q->process.command->pid, at));
}

void process_output(struct rpc *q, char *message, size_t n) {
        rpc_send(q, message, n);
}

void process_gap(struct rpc *q, uint64_t bytes) {
        rpc_send_json(q, message_gap(bytes));
}

void process_ended(struct rpc *q, const struct ap_exit *exit, uint32_t exec_errno) {
        q->process.command = NULL;
        rpc_send_json(q, message_ended(exit, exec_errno));
        rpc_finish(q);
        (void) http_flush(q->call.conn);
}

void process_written(struct rpc *q) {
        if (q->method->kind == RPC_CLIENT_STREAM)
                rpc_more(q);
        else
                rpc_reply(q, NULL);
}

void process_lost(struct rpc *q) {
        q->process.command = NULL;
        /* A stream that ends in the middle makes the client ask whether the sandbox is still there. */
        if (q->method->kind == RPC_SERVER_STREAM)
                http_reply_abort(q->call.conn);
        else
                rpc_fail(q, RPC_UNAVAILABLE, "the connection to the sandbox was lost");
}

static struct envd_event event_of(enum envd_kind kind, const struct command *c) {
        const char *cmd = c->config ? json_get_str(c->config, "cmd") : NULL;

        return (struct envd_event){
                .kind = kind, .user = c->user ? c->user->name : "", .text = cmd ? cmd : "", .pid = c->pid
        };
}

void process_announce(struct envd_box *box, const struct command *c) {
        struct envd_event ev = event_of(ENVD_STARTED, c);

        (void) envd_box_tell(box, &ev);
}

void process_gone(struct envd_box *box, const struct command *c, const struct ap_exit *exit) {
        struct envd_event ev = event_of(ENVD_EXITED, c);

        ev.code = exit->signalled ? -(int) exit->code : (int) exit->code;
        ev.lived_ms = c->began_ns ? (clock_mono_ns() - c->began_ns) / 1000000 : 0;
        ev.cpu_us = exit->user_us + exit->system_us;
        ev.max_rss_kib = exit->max_rss_kib;
        (void) envd_box_tell(box, &ev);
}

/* --- start --- */

/* The directory of a command; false: the call was answered. */
static bool find_cwd(struct rpc *q, const struct message_start *m, char dst[AP_PATH_MAX]) {
        const char *home = q->call.user->home, *usual = q->call.box->target->workdir;
        int r = text_path(dst, AP_PATH_MAX, home, m->cwd && *m->cwd ? m->cwd : usual ? usual : home);

        if (r < 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "cwd '%.128s' %s", m->cwd ? m->cwd : "",
                         r == -EINVAL ? "names another user's home" : "is too long");
        return r == 0;
}

/* NAME=value texts of one command, in memory of their own. */
struct variables {
        char bytes[AP_FRAME_MAX];
        const char *list[AP_ARGS_MAX + 1];
        size_t used, n;
};

static int add_variable(struct variables *v, const char *name, const char *value) {
        char *at = v->bytes + v->used;
        size_t room = sizeof(v->bytes) - v->used;
        int n = snprintf(at, room, "%s=%s", name, value);

        if (v->n == AP_ARGS_MAX || n < 0 || (size_t) n >= room)
                return -E2BIG;
        v->used += (size_t) n + 1;
        v->list[v->n++] = at;
        v->list[v->n] = NULL;
        return 0;
}

static int add_given(void *arg, const char *key, const struct json *value) {
        return add_variable(arg, key, json_str(value));
}

static bool has_variable(const char *const *env, const char *name) {
        size_t n = strlen(name);

        for (; env && *env; env++)
                if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
                        return true;
        return false;
}

/* The agent adds the sandbox's own variables where these do not name them; so what is usual must not come first. */
static int set_variables(struct variables *v, const struct rpc *q, const struct message_start *m) {
        const struct envd_user *u = q->call.user;
        const char *const usual[][2] = {
                { "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
                { "HOME", u->home },
                { "USER", u->name },
                { "LOGNAME", u->name },
        };
        int r = 0;

        v->used = v->n = 0;
        v->list[0] = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(usual) && r == 0; i++)
                if (!has_variable(q->call.box->target->env, usual[i][0]) &&
                    !(m->envs && json_get(m->envs, usual[i][0])))
                        r = add_variable(v, usual[i][0], usual[i][1]);
        return r == 0 && m->envs ? json_each(m->envs, add_given, v) : r;
}

/* Writes the AP_START; false: it is too long. */
static bool put_start(struct wr *w, uint32_t id, const struct rpc *q, const struct message_start *m, const char *cwd) {
        static struct variables v; /* one loop, one thread */
        static const char *argv[AP_ARGS_MAX + 1];
        struct ap_start s = { .uid = q->call.user->uid, .credit = ENVD_WINDOW, .cwd = cwd, .argv = argv };

        s.flags = (m->pty ? AP_TTY : 0) | (m->no_stdin ? AP_NO_STDIN : 0) | (q->call.permitted ? 0 : AP_HOLD);
        s.rows = m->pty ? (uint16_t) m->rows : 0;
        s.columns = m->pty ? (uint16_t) m->cols : 0;
        (void) str_copy(s.tag, sizeof(s.tag), m->tag ? m->tag : ""); /* message_start_read() looked at its length */
        argv[s.argc++] = m->cmd;
        for (size_t i = 0; i < (m->args ? json_len(m->args) : 0); i++) {
                if (s.argc == AP_ARGS_MAX)
                        return false;
                argv[s.argc++] = json_str(json_at(m->args, i));
        }
        argv[s.argc] = NULL;
        if (set_variables(&v, q, m) < 0)
                return false;
        s.envp = v.list;
        s.envc = (uint16_t) v.n;
        ap_put_start(w, id, &s);
        explicit_bzero(v.bytes, v.used);
        return !w->bad;
}

static void not_permitted(struct rpc *q) {
        rpc_fail(q, RPC_PERMISSION_DENIED, "the command may not be started");
}

/* Asks the owner, once; meanwhile the start is prepared and held. False: the call was answered. */
static bool ask_owner(struct rpc *q, const struct message_start *m) {
        struct envd_event ev = { .kind = ENVD_EXEC, .user = q->call.user->name, .text = m->cmd };
        int r;

        if (q->call.asked)
                return true;
        ev.call = q->call.asked = ++q->call.envd->last_asked;
        r = envd_box_tell(q->call.box, &ev);
        q->call.permitted = r == 0;
        if (r < 0)
                not_permitted(q);
        return r >= 0;
}

static void send_start(struct rpc *q) {
        struct message_start m;
        struct control *k = NULL;
        struct command *c = NULL;
        char cwd[AP_PATH_MAX];
        struct err err = { 0 };
        struct wr w;
        uint32_t id;

        if (message_start_read(q->request, &m, &err) < 0) {
                rpc_fail(q, RPC_INVALID_ARGUMENT, "%s", err.msg);
                return;
        }
        if (!find_cwd(q, &m, cwd) || !ask_owner(q, &m))
                return;
        if (commands_get(q->call.box, &k, &err) < 0 || command_new(k, &c) < 0) {
                rpc_fail(q, RPC_UNAVAILABLE, "the sandbox cannot be reached");
                return;
        }
        w = agent_frame();
        id = commands_id(k);
        if (!put_start(&w, id, q, &m, cwd) || !command_start(c, &w, id, q->timeout_ms)) {
                command_free(c);
                rpc_fail(q, RPC_INVALID_ARGUMENT, "arguments and variables are too long");
                return;
        }
        c->user = q->call.user;
        c->hold = q->call.permitted ? COMMAND_FREE : COMMAND_HELD;
        c->began_ns = clock_mono_ns();
        c->tty = m.pty;
        c->has_stdin = !m.no_stdin;
        (void) str_copy(c->tag, sizeof(c->tag), m.tag ? m.tag : "");
        c->config = json_share(m.process);
        q->process.command = c;
        q->process.from = AP_NOW;
        process_join(q, PROCESS_FOLLOWS, &c->clients);
}

bool process_start(struct rpc *q, const struct json *request) {
        (void) request;
        if (call_is_launched(&q->call))
                send_start(q);
        else
                call_launch(&q->call);
        return true;
}

void process_launched(struct rpc *q, int r) {
        if (r < 0)
                rpc_fail(q, RPC_UNAVAILABLE, "user %s has no launcher", q->call.user->name);
        else
                send_start(q);
}

void process_permitted(struct rpc *q, int r) {
        if (r < 0)
                not_permitted(q);
        else if (q->process.command) /* else it waits for a launcher, and starts at once then */
                command_go(q->process.command, true);
}

void process_refused(struct rpc *q, int r, const char *step) {
        struct message_start m;
        struct err err = { 0 };
        const char *cwd;

        q->process.command = NULL;
        if (q->method->start != process_start) {
                rpc_fail(q, str_eq(step, "input") ? RPC_INTERNAL : rpc_code_of(r), "%s",
                         r == -ERANGE  ? "there is no such byte of output yet"
                         : r == -EPIPE ? "standard input is closed, or was never there"
                                       : "process not found, or it has ended");
                return;
        }
        cwd = message_start_read(q->request, &m, &err) == 0 && m.cwd && *m.cwd ? m.cwd : q->call.user->home;
        if (call_relaunch(&q->call, r, step))
                return;
        if (str_eq(step, "chdir")) {
                rpc_fail(q, r == -EACCES ? RPC_PERMISSION_DENIED : RPC_INVALID_ARGUMENT, "cwd '%.128s' %s", cwd,
                         r == -ENOENT   ? "does not exist"
                         : r == -EACCES ? "may not be entered"
                                        : "is no directory");
        } else {
                rpc_fail(q, rpc_code_of(r), "%s",
                         r == -EBUSY ? "too many commands at once" : "the command could not be started");
        }
}

void process_stop(struct rpc *q) {
        struct command *c = TAKE_PTR(q->process.command);
        enum process_role role = q->process.role;

        process_leave(q);
        if (q->process.data)
                evbuffer_free(TAKE_PTR(q->process.data));
        if (role == PROCESS_FOLLOWS || role == PROCESS_WRITES) {
                command_go(c, false); /* nobody has seen it start */
                command_grant(c);     /* perhaps it was q that was slow */
                command_settle(c);
        }
}

void process_room(struct rpc *q) {
        if (q->process.role == PROCESS_FOLLOWS)
                command_grant(q->process.command);
}
