/* input.c - what goes to a command: input as one stream, signals and sizes as small calls that nobody waits for. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/command.h"
#include "json/json.h"

static const char keepalive[] = "{\"keepalive\":{}}";

/* --- small calls --- */

static void on_small_done(struct client_call *q, int result, const struct err *err, void *data) {
        (void) q, (void) result, (void) err, (void) data;
}

static struct json *message_about(const struct client_process *p) {
        struct json *message = json_new_object(), *who = json_new_object();

        json_set_int(who, "pid", p->pid);
        json_set(message, "process", who);
        return message;
}

/* Takes message. */
static void small_call(struct client_process *p, const char *target, struct json *message) {
        static const struct client_ops ops = { .on_done = on_small_done };
        struct client_request r = { .method = "POST", .target = target, .box = p->box };
        AUTO_FREE char *text = NULL;
        struct client_call *q;
        struct err err = { 0 };

        if (!p->ended && p->pid && json_text(message, false, &text, &err) == 0) {
                r.text = text;
                (void) client_call_new(p->client, &r, &ops, NULL, &q, &err); /* who follows the command hears more */
        }
        (void) json_free(message);
}

void client_process_resize(struct client_process *p, uint16_t rows, uint16_t columns) {
        struct json *message = message_about(p), *pty = json_new_object(), *size = json_new_object();

        json_set_int(size, "rows", rows);
        json_set_int(size, "cols", columns);
        json_set(pty, "size", size);
        json_set(message, "pty", pty);
        small_call(p, "/process.Process/Update", message);
}

void client_process_signal(struct client_process *p, int signal) {
        static const struct {
                int signal;
                const char *name;
        } names[] = { { SIGINT, "SIGNAL_SIGINT" },   { SIGHUP, "SIGNAL_SIGHUP" },   { SIGQUIT, "SIGNAL_SIGQUIT" },
                      { SIGTERM, "SIGNAL_SIGTERM" }, { SIGKILL, "SIGNAL_SIGKILL" }, { SIGUSR1, "SIGNAL_SIGUSR1" },
                      { SIGUSR2, "SIGNAL_SIGUSR2" } };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (names[i].signal == signal) {
                        struct json *message = message_about(p);

                        json_set_str(message, "signal", names[i].name);
                        small_call(p, "/process.Process/SendSignal", message);
                }
}

/* --- input --- */

void command_fail_input(struct client_process *p) {
        struct err err = { 0 };

        (void) err_set(&err, -ECONNRESET, ERR_PEER,
                       "the connection was lost while input was open; how much of it arrived is not known");
        command_fail(p, &err);
}

static void on_input_done(struct client_call *q, int result, const struct err *err, void *data) {
        struct client_process *p = data;

        (void) q, (void) err;
        p->input = NULL;
        if (result < 0) { /* the connection is lost; a terminal gets another one together with its output */
                if (!p->config.tty)
                        command_fail_input(p);
                return;
        }
        if (p->input_closes)
                small_call(p, "/process.Process/CloseStdin", message_about(p));
        p->input_over = true; /* what is written now goes nowhere, as into a closed pipe */
        if (p->config.on_room && !p->ended)
                p->config.on_room(p->config.data);
}

static void on_input_room(struct client_call *q, void *data) {
        struct client_process *p = data;

        (void) q;
        if (p->config.on_room && !p->ended)
                p->config.on_room(p->config.data);
}

static void input_send(struct client_process *p, const char *text) {
        struct evbuffer *bytes = evbuffer_new();

        if (!bytes)
                return;
        stream_put(bytes, text);
        client_call_write_buffer(p->input, bytes);
        evbuffer_free(bytes);
}

static void on_beat(int fd, short what, void *arg) {
        struct client_process *p = arg;

        (void) fd, (void) what;
        if (p->input && !p->input_closes)
                input_send(p, keepalive);
}

void command_open_input(struct client_process *p) {
        static const struct client_ops ops = { .on_room = on_input_room, .on_done = on_input_done };
        static const struct timeval every = { .tv_sec = CLIENT_INPUT_BEAT_S };
        const struct client_request r = { .method = "POST",
                                          .target = "/process.Process/StreamInput",
                                          .box = p->box,
                                          .type = COMMAND_STREAM_TYPE,
                                          .body = HTTP_BODY_CHUNKED,
                                          .quiet_ms = UINT32_MAX };
        struct err err = { 0 };
        char text[64];

        if (p->input || p->input_over || !p->config.wants_input)
                return;
        if (!p->beat)
                p->beat = event_new(p->client->base, -1, EV_PERSIST, on_beat, p);
        if (!p->beat || event_add(p->beat, &every) < 0 ||
            client_call_new(p->client, &r, &ops, p, &p->input, &err) < 0) {
                p->input_over = true;
                return;
        }
        (void) snprintf(text, sizeof(text), "{\"start\":{\"process\":{\"pid\":%" PRIu32 "}}}", p->pid);
        input_send(p, text);
}

void client_process_input(struct client_process *p, const void *bytes, size_t n) {
        const char *at = bytes;

        while (n > 0 && p->input && !p->input_closes) {
                static char base64[STR_BASE64(CLIENT_INPUT_PIECE)], text[sizeof(base64) + 64];
                size_t k = n < CLIENT_INPUT_PIECE ? n : CLIENT_INPUT_PIECE;

                str_base64(base64, at, k);
                (void) snprintf(text, sizeof(text), "{\"data\":{\"input\":{\"%s\":\"%s\"}}}",
                                p->config.tty ? "pty" : "stdin", base64);
                input_send(p, text);
                at += k;
                n -= k;
        }
}

void client_process_close_input(struct client_process *p) {
        static const char eot = 4;

        if (!p->input || p->input_closes)
                return;
        if (p->config.tty) { /* a terminal has no end, only a key for it */
                client_process_input(p, &eot, 1);
                return;
        }
        p->input_closes = true;
        client_call_end(p->input);
}

bool client_process_is_full(const struct client_process *p) {
        return p->input && client_call_is_full(p->input);
}
