/* log.c - see log.h. */
#include "daemon/log.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"

enum { LINE_MAX = 4096 }; /* what a pipe takes whole */

void log_write(struct log *l, enum log_level level, const char *message, struct json *more) {
        static const char *const names[] = { [LOG_ERROR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info" };
        CLEANUP(json_freep) struct json *line = more ? more : json_new_object();
        struct pollfd p = { .fd = l->fd, .events = POLLOUT };
        AUTO_FREE char *text = NULL;
        char now[CLOCK_TEXT];
        struct err err;
        size_t n;

        if (level > l->level)
                return;
        clock_rfc3339(now);
        json_set_str(line, "time", now);
        json_set_str(line, "level", names[level]);
        json_set_str(line, "message", message);
        n = json_text(line, false, &text, &err) < 0 ? 0 : strlen(text);
        if (n == 0 || n >= LINE_MAX || poll(&p, 1, 0) != 1) {
                l->dropped++;
                return;
        }
        text[n] = '\n'; /* in place of its NUL */
        if (write(l->fd, text, n + 1) != (ssize_t) n + 1)
                l->dropped++;
}

void log_error(struct log *l, const char *what, const struct err *err) {
        struct json *more = json_new_object();

        json_set_str(more, "error", err->msg);
        log_write(l, LOG_ERROR, what, more);
}
