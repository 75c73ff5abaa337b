/* process.h - a command in a sandbox: started, followed to its end, and found again when the connection is lost. */
#pragma once

#include "client/client.h"

struct client_process;

struct client_exit {
        int code;   /* -1: ended by a signal */
        int signal; /* 0: none, or not known */
        char error[128];
};
enum client_stream { CLIENT_STDOUT, CLIENT_STDERR, CLIENT_PTY };
struct client_process_config {
        const char *user, *cwd; /* NULL: the sandbox's own */
        const char *const *argv;
        const struct json *env; /* an object; NULL: none */
        bool tty, wants_input;
        uint16_t rows, columns;
        uint64_t timeout_ms; /* 0: none */
        /* The owner takes what it can from `bytes`; if some stays, client_process_resume() is awaited. */
        void (*on_output)(enum client_stream stream, struct evbuffer *bytes, void *data);
        void (*on_started)(void *data);
        /* Input can be written again. */
        void (*on_room)(void *data);
        /* Something that the user should know: output that is lost, a connection that was. */
        void (*on_note)(const char *text, void *data);
        /* The last. err: NULL, or why nobody knows how it ended; -ETIME: its time was over. */
        void (*on_end)(const struct client_exit *exit, const struct err *err, void *data);
        void *data;
};
/* Starts a command and follows it, also over a restart of the server. Borrows box; copies config. */
int client_process_new(struct client *c, const struct client_box *box, const struct client_process_config *config,
                       struct client_process **ret, struct err *err);
struct client_process *client_process_free(struct client_process *p);
void client_process_resume(struct client_process *p);
/* After on_started(). */
void client_process_input(struct client_process *p, const void *bytes, size_t n);
void client_process_close_input(struct client_process *p);
bool client_process_is_full(const struct client_process *p);
void client_process_resize(struct client_process *p, uint16_t rows, uint16_t columns);
void client_process_signal(struct client_process *p, int signal);
