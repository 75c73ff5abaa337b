/*
 * process.c - a command in a sandbox: started, followed to its end, and found again when the connection is lost.
 *
 * Theory of operation. The output is one stream of the server (Start, then Connect). Each byte of it is counted, so
 * that after a cut the rest can be asked for; bytes that nobody has any more are told as a gap. Input is a stream of
 * ours (StreamInput), because of which keys arrive in order and a server that is slow slows the writer down. Signals
 * and sizes are small calls beside them, whose answers nobody waits for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/command.h"
#include "json/json.h"

enum { ERROR_MAX = 64 << 10, GONE_MS = 1000 };

static uint64_t now_ms(void) {
        return clock_mono_ns() / 1000000;
}

static void finish(struct client_process *p, const struct client_exit *exit, const struct err *err) {
        if (p->ended)
                return;
        p->ended = true;
        p->follow = client_call_cancel(p->follow);
        p->input = client_call_cancel(p->input);
        p->config.on_end(exit, err, p->config.data);
}

void command_fail(struct client_process *p, const struct err *err) {
        finish(p, NULL, err);
}

/* --- output --- */

/* True: the owner has taken all there was. */
static bool give(struct client_process *p) {
        if (evbuffer_get_length(p->out) > 0)
                p->config.on_output(p->stream, p->out, p->config.data);
        return evbuffer_get_length(p->out) == 0;
}

static void on_start(struct client_process *p, const struct process_message *m) {
        bool first = p->pid == 0;

        p->pid = m->pid;
        p->at = m->at;
        command_open_input(p);
        if (first && p->config.on_started)
                p->config.on_started(p->config.data);
        if (!first && p->noted)
                p->config.on_note("connected again", p->config.data);
        p->noted = false;
        p->again_until_ms = 0;
}

static void on_message(struct client_process *p, const struct json *message) {
        struct process_message m;
        struct err err = { 0 };
        char note[80];
        ssize_t n;

        if (process_message_read(message, &m, &err) < 0) {
                command_fail(p, &err);
                return;
        }
        switch (m.event) {
        case PROCESS_START:
                on_start(p, &m);
                break;
        case PROCESS_DATA:
                n = process_bytes(m.base64, p->out);
                p->stream = m.stream;
                p->at += n > 0 ? (uint64_t) n : 0;
                if (n < 0) {
                        (void) err_set(&err, (int) n, ERR_PEER, "the server sends output that is no base64");
                        command_fail(p, &err);
                }
                break;
        case PROCESS_GAP:
                p->at += m.at;
                (void) snprintf(note, sizeof(note), "%" PRIu64 " bytes of output are lost", m.at);
                p->config.on_note(note, p->config.data);
                break;
        case PROCESS_END:
                finish(p, &m.exit, NULL);
                break;
        case PROCESS_OTHER:
                break;
        }
}

/* The last message of a stream: an error, or that there is none. */
static void on_last(struct client_process *p, const struct json *error) {
        const char *code = error ? json_get_str(error, "code") : NULL,
                   *why = error ? json_get_str(error, "message") : NULL;
        struct err err = { 0 };
        int r = -EIO;

        if (code && str_eq(code, "deadline_exceeded"))
                r = -ETIME;
        else if (code && str_eq(code, "not_found") && p->pid)
                why = "the command has ended, and how is not known";
        else if (code && str_eq(code, "unauthenticated") && p->config.user)
                why = "the sandbox has no such user";
        (void) err_set(&err, r, ERR_PEER, "%.200s",
                       why ? why : "the server ends the stream without saying how the command ended");
        command_fail(p, &err);
}

static void take_messages(struct client_process *p) {
        while (!p->ended && give(p)) {
                CLEANUP(json_freep) struct json *message = NULL;
                enum stream_event ev;
                struct err err = { 0 };

                if (p->ended)
                        return;
                if (stream_next(p->in, &ev, &message, &err) < 0)
                        command_fail(p, &err);
                else if (ev == STREAM_MORE)
                        return;
                else if (ev == STREAM_END)
                        on_last(p, message);
                else
                        on_message(p, message);
        }
}

static void on_head(struct client_call *q, const struct http_head *head, void *data) {
        struct client_process *p = data;

        (void) q;
        p->status = head->status;
}

static void on_body(struct client_call *q, struct evbuffer *body, void *data) {
        struct client_process *p = data;

        (void) q;
        if (p->status == 200 && evbuffer_get_length(p->out) > 0)
                return; /* stays where it is until the owner has taken that */
        (void) evbuffer_add_buffer(p->in, body);
        if (p->status == 200)
                take_messages(p);
        else if (evbuffer_get_length(p->in) > ERROR_MAX)
                (void) evbuffer_drain(p->in, SIZE_MAX);
}

void client_process_resume(struct client_process *p) {
        take_messages(p);
        if (!p->ended && p->follow && evbuffer_get_length(p->out) == 0)
                client_call_resume(p->follow);
}

/* --- following --- */

static void on_followed(struct client_call *q, int result, const struct err *err, void *data);

static int follow(struct client_process *p, const char *target, const char *message, struct err *err) {
        static const struct client_ops ops = { .on_head = on_head, .on_body = on_body, .on_done = on_followed };
        struct client_request r = { .method = "POST",
                                    .target = target,
                                    .box = p->box,
                                    .type = COMMAND_STREAM_TYPE,
                                    .body = HTTP_BODY_LENGTH,
                                    .length = strlen(message) + CLIENT_ENVELOPE,
                                    .quiet_ms = CLIENT_BEAT_MS };
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct evbuffer *body = evbuffer_new();
        int n;

        http_add(&lines, "Connect-Protocol-Version", "1");
        http_addf(&lines, "Keepalive-Ping-Interval", "%d", CLIENT_BEAT_S);
        client_add_user(&lines, p->config.user);
        if (p->config.timeout_ms > 0 && !p->pid)
                http_addf(&lines, "Connect-Timeout-Ms", "%" PRIu64, p->config.timeout_ms);
        if (p->pid)
                http_addf(&lines, "Gabion-Output-From", "%" PRIu64, p->at);
        r.lines = &lines;
        p->status = 0;
        (void) evbuffer_drain(p->in, SIZE_MAX);
        n = body ? client_call_new(p->client, &r, &ops, p, &p->follow, err)
                 : err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (n == 0) {
                stream_put(body, message);
                client_call_write_buffer(p->follow, body);
        }
        if (body)
                evbuffer_free(body);
        buf_done(&lines);
        return n;
}

static void follow_later(struct client_process *p, const struct err *why) {
        static const struct timeval soon = { .tv_usec = CLIENT_AGAIN_MS * 1000L };
        bool gone = p->status == 502 && p->again_until_ms > 0 &&
                    now_ms() + CLIENT_AGAIN_MAX_MS - GONE_MS > p->again_until_ms;

        if (p->again_until_ms == 0)
                p->again_until_ms = now_ms() + CLIENT_AGAIN_MAX_MS;
        if (gone || now_ms() >= p->again_until_ms || event_add(p->again, &soon) < 0) {
                command_fail(p, why);
                return;
        }
        /* Worth a word only if it takes longer than a restart. */
        if (!p->noted && p->status != 502 && now_ms() + CLIENT_AGAIN_MAX_MS - GONE_MS > p->again_until_ms) {
                p->noted = true;
                p->config.on_note("the connection to the server was lost; trying again", p->config.data);
        }
}

static void on_again(int fd, short what, void *arg) {
        struct client_process *p = arg;
        struct err err = { 0 };
        char text[64];

        (void) fd, (void) what;
        (void) snprintf(text, sizeof(text), "{\"process\":{\"pid\":%" PRIu32 "}}", p->pid);
        if (!p->ended && follow(p, "/process.Process/Connect", text, &err) < 0)
                follow_later(p, &err);
}

static bool is_worth_another(const struct client_process *p, int result) {
        if (result == 0)
                return p->status == 502 || p->status == 503;
        return result != -EPROTO && result != -EMSGSIZE && result != -EKEYREJECTED && result != -ENOMEM;
}

/* The stream is over, but the command is not known to be. */
static void on_followed(struct client_call *q, int result, const struct err *err, void *data) {
        struct client_process *p = data;
        CLEANUP(json_freep) struct json *body = NULL;
        struct err why = *err, ignored = { 0 };
        size_t n = evbuffer_get_length(p->in);

        (void) q;
        p->follow = NULL;
        if (p->ended)
                return;
        if (result == 0 && p->status == 200) {
                (void) err_set(&why, -ECONNRESET, ERR_PEER,
                               "the server ends the stream without saying how the command ended");
        } else if (result == 0) {
                if (n > 0)
                        (void) json_parse("answer", (const char *) evbuffer_pullup(p->in, -1), n, &body, &ignored);
                (void) client_refusal(&why, p->status, body);
        }
        if (!p->pid || !is_worth_another(p, result)) {
                command_fail(p, &why);
                return;
        }
        p->input = client_call_cancel(p->input);
        if (p->config.wants_input && !p->config.tty && !p->input_over) {
                command_fail_input(p);
                return;
        }
        follow_later(p, &why);
}

static int put_start(const struct client_process_config *config, char **ret, struct err *err) {
        CLEANUP(json_freep) struct json *message = json_new_object();
        struct json *process = json_new_object(), *args = json_new_array(), *pty, *size;

        json_set_str(process, "cmd", config->argv[0]);
        for (size_t i = 1; config->argv[i]; i++)
                json_add_str(args, config->argv[i]);
        json_set(process, "args", args);
        if (config->env)
                json_set(process, "envs", json_share(config->env));
        if (config->cwd)
                json_set_str(process, "cwd", config->cwd);
        json_set(message, "process", process);
        if (config->tty) {
                pty = json_new_object();
                size = json_new_object();
                json_set_int(size, "rows", config->rows);
                json_set_int(size, "cols", config->columns);
                json_set(pty, "size", size);
                json_set(message, "pty", pty);
        }
        json_set_bool(message, "stdin", config->wants_input);
        return json_text(message, false, ret, err);
}

int client_process_new(struct client *c, const struct client_box *box, const struct client_process_config *config,
                       struct client_process **ret, struct err *err) {
        struct client_process *p = calloc(1, sizeof(*p));
        AUTO_FREE char *text = NULL;
        int r = p ? put_start(config, &text, err) : err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");

        if (r < 0) {
                free(p);
                return r;
        }
        p->client = c;
        p->box = box;
        p->config = *config;
        p->in = evbuffer_new();
        p->out = evbuffer_new();
        p->again = event_new(c->base, -1, 0, on_again, p);
        if (!p->in || !p->out || !p->again)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        else if (config->user && str_copy(p->user, sizeof(p->user), config->user) < 0)
                r = err_set(err, -EINVAL, ERR_INVALID, "user: the name is too long");
        p->config.user = config->user ? p->user : NULL;
        if (r == 0)
                r = follow(p, "/process.Process/Start", text, err);
        if (r < 0) {
                (void) client_process_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

struct client_process *client_process_free(struct client_process *p) {
        if (!p)
                return NULL;
        p->follow = client_call_cancel(p->follow);
        p->input = client_call_cancel(p->input);
        if (p->in)
                evbuffer_free(p->in);
        if (p->out)
                evbuffer_free(p->out);
        if (p->again)
                event_free(p->again);
        if (p->beat)
                event_free(p->beat);
        free(p);
        return NULL;
}
