/* log.h - one JSON object per line on standard error. Never a secret, never content: ids, names, numbers, our words. */
#pragma once

#include <stdint.h>

#include "daemon/config.h"

struct err;
struct json;
struct store_event;

struct log {
        int fd;
        enum log_level level;
        uint64_t dropped; /* lines that nobody took: a reader that stands still must not stop the service */
};

/* A line with "message" and the members of more, which is taken and may be NULL. */
void log_write(struct log *l, enum log_level level, const char *message, struct json *more);
/* An event, whose data is given as a value too. */
void log_event(struct log *l, const struct store_event *e, const struct json *data);
/* A failure that ends here. */
void log_error(struct log *l, const char *what, const struct err *err);
