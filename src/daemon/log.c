/* log.c - see log.h. */
#include "daemon/log.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "store/store.h"

enum { LINE_MAX = 4096 }; /* what a pipe takes whole */

static const char *const names[] = { [LOG_ERROR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info" };

/* A text, whose NUL becomes a newline. */
static void put(struct log *l, char *text, size_t n) {
        struct pollfd p = { .fd = l->fd, .events = POLLOUT };

        if (n == 0 || n >= LINE_MAX || poll(&p, 1, 0) != 1) {
                l->dropped++;
                return;
        }
        text[n] = '\n';
        if (write(l->fd, text, n + 1) != (ssize_t) n + 1)
                l->dropped++;
}

void log_write(struct log *l, enum log_level level, const char *message, struct json *more) {
        CLEANUP(json_freep) struct json *line = more ? more : json_new_object();
        AUTO_FREE char *text = NULL;
        char now[CLOCK_TEXT];
        struct err err;

        if (level > l->level)
                return;
        clock_rfc3339(now);
        json_set_str(line, "time", now);
        json_set_str(line, "level", names[level]);
        json_set_str(line, "message", message);
        if (json_text(line, false, &text, &err) < 0)
                l->dropped++;
        else
                put(l, text, strlen(text));
}

void log_event(struct log *l, const struct store_event *e, const struct json *data) {
        CLEANUP(buf_done) struct buf line = BUF_INIT(LINE_MAX + 1);
        struct json_emit to = { .to = &line };
        char now[CLOCK_TEXT];

        if (l->level < LOG_INFO)
                return;
        clock_rfc3339_at(now, e->time_ms);
        json_emit_object(&to, NULL);
        json_emit_tree(&to, "data", json_share(data));
        json_emit_text(&to, "kind", e->kind);
        json_emit_str(&to, "level", names[LOG_INFO]);
        json_emit_str(&to, "message", "event");
        json_emit_text(&to, "sandbox", e->sandbox[0] ? e->sandbox : NULL);
        json_emit_int(&to, "seq", (int64_t) e->seq);
        json_emit_text(&to, "tenant", e->tenant);
        json_emit_str(&to, "time", now);
        json_emit_close(&to, '}');
        put(l, line.p, line.bad ? 0 : line.len);
}

void log_error(struct log *l, const char *what, const struct err *err) {
        struct json *more = json_new_object();

        json_set_str(more, "error", err->msg);
        log_write(l, LOG_ERROR, what, more);
}
