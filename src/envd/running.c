/*
 * running.c - process.Process: calls about a command that runs, or has just ended.
 *
 * A call about a command which this connection does not hold asks for a list first, and goes on from process_listed().
 * So it makes no difference whether the daemon was restarted since the command began.
 */
#include <signal.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/command.h"
#include "envd/rpc.h"
#include "http/server.h"
#include "json/json.h"

/* Output from this byte on, for clients that lost their connection; ours, not E2B's. */
static const char from_header[] = "Gabion-Output-From";

/* --- which command --- */

static bool out_of_memory(struct rpc *q) {
        rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "out of memory");
        return true;
}

static struct control *reach(struct rpc *q) {
        struct control *k = NULL;
        struct err err = { 0 };

        if (commands_get(q->call.box, &k, &err) < 0)
                rpc_fail(q, RPC_UNAVAILABLE, "the sandbox cannot be reached");
        return k;
}

/* Finds the command and acts on it. */
static void look_for(struct rpc *q, const struct message_who *who, void (*act)(struct rpc *q, struct command *c)) {
        struct control *k = reach(q);
        struct command *c;

        if (!k)
                return;
        q->process.act = act;
        q->process.who = *who;
        if (who->tag && who->tag != q->process.tag) { /* the message that it is in may go before we need it */
                (void) str_copy(q->process.tag, sizeof(q->process.tag), who->tag);
                q->process.who.tag = q->process.tag;
        }
        c = command_find(k, &q->process.who);
        if (c)
                act(q, c);
        else
                commands_list(k, q);
}

/* A command of a list, held from now on. */
static struct command *hold(struct control *k, const struct listed *l) {
        struct command *c = command_by_number(k, l->c.number);

        if (c || command_new(k, &c) < 0)
                return c;
        c->number = l->c.number;
        c->pid = l->c.pid;
        c->tty = l->c.flags & AP_IS_TTY;
        c->has_stdin = l->c.flags & AP_HAS_STDIN;
        c->exited = l->c.flags & AP_HAS_EXITED;
        memcpy(c->tag, l->c.tag, sizeof(c->tag));
        c->config = message_config(l->bytes, l->c.n_what);
        return c;
}

static void act_list(struct rpc *q, struct control *k) {
        struct json *reply = json_new_object(), *all = json_new_array();

        for (size_t i = 0; i < k->n_list; i++) {
                const struct listed *l = &k->list[i];
                const struct command *c = command_by_number(k, l->c.number);
                struct json *one;

                if (l->c.flags & AP_HAS_EXITED)
                        continue;
                one = json_new_object();
                json_set(one, "config", c && c->config ? json_share(c->config) : message_config(l->bytes, l->c.n_what));
                json_set_int(one, "pid", l->c.pid);
                if (l->c.tag[0])
                        json_set_str(one, "tag", l->c.tag);
                json_add(all, one);
        }
        json_set(reply, "processes", all);
        rpc_reply(q, reply);
}

static void act_follow(struct rpc *q, struct command *c) {
        q->process.command = c;
        process_join(q, PROCESS_FOLLOWS, &c->clients);
        command_settle(c);
}

void process_listed(struct rpc *q, struct control *k) {
        const struct listed *l = q->process.act ? command_find_listed(k, &q->process.who) : NULL;
        struct command *c = NULL;

        if (!q->process.act) {
                act_list(q, k);
        } else if (l && (!(l->c.flags & AP_HAS_EXITED) || q->process.act == act_follow)) {
                c = hold(k, l);
                if (c)
                        q->process.act(q, c);
                else
                        (void) out_of_memory(q);
        } else if (q->process.who.pid) {
                rpc_fail(q, RPC_NOT_FOUND, "process with pid %u not found", q->process.who.pid);
        } else {
                rpc_fail(q, RPC_NOT_FOUND, "process with tag '%s' not found", q->process.who.tag);
        }
}

/* --- methods --- */

/* False: it was answered. */
static bool read_message(struct rpc *q, enum message_about about, const struct json *request,
                         struct message_command *ret) {
        struct err err = { 0 };

        if (message_command_read(about, request, ret, &err) == 0)
                return true;
        rpc_fail(q, RPC_INVALID_ARGUMENT, "%s", err.msg);
        return false;
}

static bool list_start(struct rpc *q, const struct json *request) {
        struct control *k = NULL;

        if (json_len(request) > 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "request: must be empty");
        else
                k = reach(q);
        if (k)
                commands_list(k, q);
        return true;
}

static bool connect_start(struct rpc *q, const struct json *request) {
        const char *from = http_header(http_conn_head(q->call.conn), from_header, NULL);
        struct message_command m;

        q->process.from = AP_NOW;
        if (!read_message(q, MESSAGE_WHO, request, &m))
                return true;
        if (from && str_to_u64(from, INT64_MAX, &q->process.from) < 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "%s: must be a number", from_header);
        else
                look_for(q, &m.who, act_follow);
        return true;
}

static void act_write(struct rpc *q, struct command *c) {
        if (q->process.eof && c->tty) {
                rpc_fail(q, RPC_FAILED_PRECONDITION, "a terminal cannot be closed; send it a Ctrl-D");
        } else if (!q->process.eof && c->tty != q->process.is_pty) {
                rpc_fail(q, RPC_INTERNAL,
                         c->tty ? "the process has a terminal: send pty" : "the process has no terminal");
        } else if (!c->has_stdin) {
                rpc_fail(q, RPC_INTERNAL, "standard input is closed, or was never there");
        } else {
                q->process.command = c;
                process_join(q, PROCESS_WRITES, &c->inputs);
                command_settle(c);
        }
}

/* Base64 of the message into the call's buffer; false: it was answered. */
static bool take_data(struct rpc *q, const struct message_command *m) {
        const char *text = m->pty_data ? m->pty_data : m->stdin_data;

        if (!q->process.data)
                q->process.data = evbuffer_new();
        q->process.is_pty = m->pty_data;
        if (q->process.data && text && message_bytes(text, q->process.data) == 0)
                return true;
        rpc_fail(q, RPC_INVALID_ARGUMENT, "input: must have stdin or pty, in base64");
        return false;
}

static bool input_start(struct rpc *q, const struct json *request) {
        struct message_command m;

        if (read_message(q, MESSAGE_INPUT, request, &m) && take_data(q, &m))
                look_for(q, &m.who, act_write);
        return true;
}

static bool close_start(struct rpc *q, const struct json *request) {
        struct message_command m;

        q->process.data = evbuffer_new();
        q->process.eof = true;
        if (!q->process.data)
                return out_of_memory(q);
        if (read_message(q, MESSAGE_WHO, request, &m))
                look_for(q, &m.who, act_write);
        return true;
}

static void act_found(struct rpc *q, struct command *c) {
        command_settle(c);
        rpc_more(q);
}

static bool stream_start(struct rpc *q, const struct json *request) {
        struct message_stream m;
        struct err err = { 0 };
        bool begun = q->process.who.pid || q->process.who.tag;

        if (message_stream_read(request, &m, &err) < 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "%s", err.msg);
        else if (m.has_start == begun && !m.has_keepalive)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "the first message, and no other, must be start");
        else if (m.has_start)
                look_for(q, &m.start.who, act_found);
        else if (m.has_data && take_data(q, &m.data))
                look_for(q, &q->process.who, act_write);
        return q->process.role == PROCESS_ALONE;
}

static void stream_end(struct rpc *q) {
        rpc_reply(q, NULL);
}

static void act_signal(struct rpc *q, struct command *c) {
        static const uint32_t numbers[] = {
                [MESSAGE_SIGKILL] = SIGKILL, [MESSAGE_SIGTERM] = SIGTERM, [MESSAGE_SIGINT] = SIGINT,
                [MESSAGE_SIGHUP] = SIGHUP,   [MESSAGE_SIGQUIT] = SIGQUIT, [MESSAGE_SIGUSR1] = SIGUSR1,
                [MESSAGE_SIGUSR2] = SIGUSR2
        };
        struct wr w = agent_frame();
        struct message_command m;

        if (!read_message(q, MESSAGE_SIGNAL, q->request, &m))
                return;
        ap_put_u32(&w, AP_SIGNAL, c->number, numbers[m.signal]);
        (void) agent_send(c->control->agent, &w);
        command_settle(c);
        rpc_reply(q, NULL);
}

static bool signal_start(struct rpc *q, const struct json *request) {
        struct message_command m;

        if (read_message(q, MESSAGE_SIGNAL, request, &m))
                look_for(q, &m.who, act_signal);
        return true;
}

static void act_resize(struct rpc *q, struct command *c) {
        struct wr w = agent_frame();
        struct message_command m;

        if (!read_message(q, MESSAGE_RESIZE, q->request, &m))
                return;
        if (!c->tty) {
                rpc_fail(q, RPC_FAILED_PRECONDITION, "the process has no terminal");
                return;
        }
        if (m.has_size) {
                ap_put_resize(&w, c->number, (uint16_t) m.rows, (uint16_t) m.cols);
                (void) agent_send(c->control->agent, &w);
        }
        command_settle(c);
        rpc_reply(q, NULL);
}

static bool update_start(struct rpc *q, const struct json *request) {
        struct message_command m;

        if (read_message(q, MESSAGE_RESIZE, request, &m))
                look_for(q, &m.who, act_resize);
        return true;
}

#define METHOD(name) "/process.Process/" name
static const char beat[] = "{\"event\":{\"keepalive\":{}}}";

const struct rpc_method process_methods[] = {
        { METHOD("Start"), RPC_SERVER_STREAM, beat, process_start, NULL, process_room, process_launched, process_stop },
        { METHOD("Connect"), RPC_SERVER_STREAM, beat, connect_start, NULL, process_room, NULL, process_stop },
        { METHOD("List"), RPC_UNARY, NULL, list_start, NULL, NULL, NULL, process_stop },
        { METHOD("SendInput"), RPC_UNARY, NULL, input_start, NULL, NULL, NULL, process_stop },
        { METHOD("StreamInput"), RPC_CLIENT_STREAM, NULL, stream_start, stream_end, NULL, NULL, process_stop },
        { METHOD("SendSignal"), RPC_UNARY, NULL, signal_start, NULL, NULL, NULL, process_stop },
        { METHOD("CloseStdin"), RPC_UNARY, NULL, close_start, NULL, NULL, NULL, process_stop },
        { METHOD("Update"), RPC_UNARY, NULL, update_start, NULL, NULL, NULL, process_stop },
        { 0 },
};
