/* answer.c - replies that are not messages of Connect: errors as E2B's API has them, the proxy's failures, CORS. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "envd/state.h"
#include "http/server.h"
#include "json/json.h"

void answer_lines(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *type,
                  struct buf *lines) {
        if (type)
                http_add(lines, "Content-Type", type);
        http_add(lines, "Cache-Control", "no-store");
        http_add(lines, "X-Content-Type-Options", "nosniff");
        http_add(lines, "Access-Control-Allow-Origin", "*");
        http_add(lines, "Access-Control-Expose-Headers", "*");
        if (e->config.on_reply)
                e->config.on_reply(t, c, status, lines, e->config.arg);
}

void answer_json(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, struct json *body) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        answer_lines(e, t, c, status, "application/json", &lines);
        if (json_text(body, false, &text, &err) < 0 || http_reply(c, status, &lines, text, strlen(text), &err) < 0)
                http_reply_abort(c);
        (void) json_free(body);
        buf_done(&lines);
}

void answer_empty(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };

        answer_lines(e, t, c, status, NULL, &lines);
        if (http_reply(c, status, &lines, NULL, 0, &err) < 0)
                http_reply_abort(c);
        buf_done(&lines);
}

void answer_describe(struct envd *e, struct envd_target *t, struct http_conn *c, struct json *error) {
        if (e->config.on_error)
                e->config.on_error(t, c, error, e->config.arg);
}

__attribute__((format(printf, 5, 0))) static void error_v(struct envd *e, struct envd_target *t, struct http_conn *c,
                                                          unsigned status, const char *fmt, va_list ap) {
        struct envd_event ev = { .kind = ENVD_REFUSED, .user = "", .code = (int) status };
        struct json *body = json_new_object();
        char why[512];

        (void) vsnprintf(why, sizeof(why), fmt, ap);
        json_set_int(body, "code", status);
        json_set_str(body, "message", why);
        answer_describe(e, t, c, body);
        ev.text = why;
        if (t && e->config.on_event)
                (void) e->config.on_event(t, &ev, e->config.arg);
        answer_json(e, t, c, status, body);
}

void answer_error(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        error_v(e, t, c, status, fmt, ap);
        va_end(ap);
}

void call_error(struct call *c, unsigned status, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        error_v(c->envd, c->box ? c->box->target : NULL, c->conn, status, fmt, ap);
        va_end(ap);
}

void answer_gateway(struct envd *e, struct envd_target *t, struct http_conn *c, unsigned status, const char *id,
                    const char *message, uint16_t port) {
        struct json *body = json_new_object();

        json_set_str(body, "sandboxId", id);
        json_set_str(body, "message", message);
        if (port > 0)
                json_set_int(body, "port", port);
        json_set_int(body, "code", status);
        answer_describe(e, t, c, body);
        answer_json(e, t, c, status, body);
}

static const struct {
        int err_no;
        unsigned status;
        const char *why;
} files[] = {
        { ENOENT, 404, "does not exist" },
        { EISDIR, 400, "is a directory" },
        { ENOTDIR, 400, "is not a directory" },
        { EINVAL, 400, "is not a regular file" },
        { ENAMETOOLONG, 400, "is too long" },
        { ELOOP, 400, "has too many links, or is too deep" },
        { EACCES, 403, "may not be accessed by this user" },
        { EPERM, 403, "may not be changed by this user" },
        { EROFS, 403, "is read-only" },
        { EEXIST, 409, "exists already" },
        { ENOTEMPTY, 409, "is not empty" },
        { EXDEV, 409, "is on another file system" },
        { ENOSPC, 507, "does not fit: no space is left" },
        { EDQUOT, 507, "does not fit: the quota is used up" },
        { EFBIG, 507, "does not fit: it would be too large" },
        { EBUSY, 429, "is busy, or there are too many requests" },
        { EOPNOTSUPP, 501, "is on a file system that cannot do this" },
        { ENOSYS, 501, "cannot be treated so under this sandbox's policy" },
        { ENOTCONN, 503, "cannot be reached now" },
        { ECONNRESET, 503, "cannot be reached now" },
        { ECONNREFUSED, 503, "cannot be reached now" },
        { EPIPE, 503, "cannot be reached now" },
        { EPROTO, 503, "cannot be reached now" },
};

unsigned answer_status(int r) {
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (files[i].err_no == -r)
                        return files[i].status;
        return 500;
}

const char *answer_why(int r) {
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (files[i].err_no == -r)
                        return files[i].why;
        return "could not be treated";
}
