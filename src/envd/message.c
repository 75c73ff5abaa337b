/* message.c - messages from clients, by field tables. See message.h. */
#include "envd/message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "sign/sign.h"

static const struct field_ctx top = { .what = "request" };

/* --- values --- */

static int take_text(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *s = json_str(value);

        if (!s)
                return field_error(ctx, err, "must be a string");
        *(const char **) at = s;
        return 0;
}

static int check_text(const struct field_ctx *ctx, const struct json *value, void *base, struct err *err) {
        (void) base;
        return json_str(value) ? 0 : field_error(ctx, err, "must be a string");
}

static int take_list(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        if (!json_is_array(value))
                return field_error(ctx, err, "must be a list");
        for (size_t i = 0; i < json_len(value); i++) {
                struct field_ctx place = { ctx->what, NULL, ctx, value, NULL, i };

                if (check_text(&place, json_at(value, i), NULL, err) < 0)
                        return -EINVAL;
        }
        *(const struct json **) at = value;
        return 0;
}

struct env_check {
        const struct field_ctx *ctx;
        const struct json *in;
        struct err *err;
};

static int check_variable(void *arg, const char *key, const struct json *value) {
        const struct env_check *c = arg;
        struct field_ctx place = { c->ctx->what, NULL, c->ctx, c->in, key, 0 };

        if (!*key || strchr(key, '='))
                return field_error(&place, c->err, "is no name of a variable");
        return check_text(&place, value, NULL, c->err);
}

static int take_variables(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct env_check check = { ctx, value, err };
        int r = json_each(value, check_variable, &check);

        if (r == 0)
                *(const struct json **) at = value;
        return r;
}

/* --- process.Process --- */

struct size {
        uint32_t rows, cols;
};

static int take_size(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { "cols", FIELD_U32, offsetof(struct size, cols), UINT16_MAX, .required = true },
                { "rows", FIELD_U32, offsetof(struct size, rows), UINT16_MAX, .required = true },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

static int take_pty(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { "size", FIELD_OBJECT, 0, .decode = take_size },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

struct start {
        struct message_start msg; /* first */
        bool stdin_wanted;
        struct size size;
};

static int take_process(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { "cmd", FIELD_ANY, offsetof(struct message_start, cmd), .required = true, .decode = take_text },
                { "args", FIELD_ANY, offsetof(struct message_start, args), .decode = take_list },
                { "envs", FIELD_OBJECT, offsetof(struct message_start, envs), .decode = take_variables },
                { "cwd", FIELD_ANY, offsetof(struct message_start, cwd), .decode = take_text },
        };
        struct message_start *m = at;

        m->process = value;
        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), m, err);
}

static int take_start_pty(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct start *s = at;

        s->msg.pty = true;
        return take_pty(ctx, value, &s->size, err);
}

int message_start_read(const struct json *j, struct message_start *ret, struct err *err) {
        static const struct field fields[] = {
                { "process", FIELD_OBJECT, 0, .required = true, .decode = take_process },
                { "pty", FIELD_OBJECT, 0, .decode = take_start_pty },
                { "tag", FIELD_ANY, offsetof(struct start, msg.tag), .decode = take_text },
                { "stdin", FIELD_BOOL, offsetof(struct start, stdin_wanted), .required = false },
        };
        struct start s = { .stdin_wanted = true, .size = { 24, 80 } };

        if (field_decode(&top, j, fields, ARRAY_SIZE(fields), &s, err) < 0)
                return -EINVAL;
        if (!*s.msg.cmd)
                return err_set(err, -EINVAL, ERR_INVALID, "process.cmd: must not be empty");
        if (s.msg.tag && strlen(s.msg.tag) >= AP_TAG)
                return err_set(err, -EINVAL, ERR_INVALID, "tag: must be shorter than %d bytes", AP_TAG);
        *ret = s.msg;
        ret->no_stdin = !s.stdin_wanted && !s.msg.pty;
        ret->rows = s.size.rows;
        ret->cols = s.size.cols;
        return 0;
}

static int take_who(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { "pid", FIELD_U32, offsetof(struct message_who, pid), INT32_MAX, .min = 1 },
                { "tag", FIELD_ANY, offsetof(struct message_who, tag), .decode = take_text },
        };
        struct message_command *m = at;

        if (field_decode(ctx, value, fields, ARRAY_SIZE(fields), &m->who, err) < 0)
                return -EINVAL;
        if ((m->who.pid > 0) == (m->who.tag && *m->who.tag) || (m->who.tag && strlen(m->who.tag) >= AP_TAG))
                return field_error(ctx, err, "must have a pid or a tag");
        return 0;
}

static int take_input(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { "stdin", FIELD_ANY, offsetof(struct message_command, stdin_data), .decode = take_text },
                { "pty", FIELD_ANY, offsetof(struct message_command, pty_data), .decode = take_text },
        };
        struct message_command *m = at;

        if (field_decode(ctx, value, fields, ARRAY_SIZE(fields), m, err) < 0)
                return -EINVAL;
        return m->stdin_data && m->pty_data ? field_error(ctx, err, "must have stdin or pty, not both") : 0;
}

static int take_resize(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct message_command *m = at;
        struct size size = { 0 };
        int r = take_pty(ctx, value, &size, err);

        m->has_size = r == 0 && size.rows > 0 && size.cols > 0;
        m->rows = size.rows;
        m->cols = size.cols;
        return r;
}

static const char *const signals[] = { "SIGNAL_SIGKILL", "SIGNAL_SIGTERM", "SIGNAL_SIGINT",  "SIGNAL_SIGHUP",
                                       "SIGNAL_SIGQUIT", "SIGNAL_SIGUSR1", "SIGNAL_SIGUSR2", NULL };

/* The members of a message lie side by side here. */
static const struct field command_fields[] = {
        { "signal", FIELD_ENUM, offsetof(struct message_command, signal), .required = true, .names = signals },
        { "process", FIELD_OBJECT, 0, .required = true, .decode = take_who },
        { "input", FIELD_OBJECT, 0, .required = true, .decode = take_input },
        { "pty", FIELD_OBJECT, 0, .decode = take_resize },
        { "process", FIELD_OBJECT, 0, .required = true, .decode = take_who },
};
static const struct slice {
        size_t first, n;
} command_slices[] = {
        [MESSAGE_WHO] = { 1, 1 },    [MESSAGE_SIGNAL] = { 0, 2 }, [MESSAGE_INPUT] = { 1, 2 },
        [MESSAGE_RESIZE] = { 3, 2 }, [MESSAGE_DATA] = { 2, 1 },
};

static int command_read(const struct field_ctx *ctx, enum message_about about, const struct json *j,
                        struct message_command *ret, struct err *err) {
        const struct slice *s = &command_slices[about];

        *ret = (struct message_command){ .signal = -1 };
        return field_decode(ctx, j, command_fields + s->first, s->n, ret, err);
}

int message_command_read(enum message_about about, const struct json *j, struct message_command *ret, struct err *err) {
        return command_read(&top, about, j, ret, err);
}

static int take_stream_start(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct message_stream *m = at;

        m->has_start = true;
        return command_read(ctx, MESSAGE_WHO, value, &m->start, err);
}

static int take_stream_data(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct message_stream *m = at;

        m->has_data = true;
        return command_read(ctx, MESSAGE_DATA, value, &m->data, err);
}

static int take_keepalive(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        ((struct message_stream *) at)->has_keepalive = true;
        return field_decode(ctx, value, NULL, 0, at, err);
}

int message_stream_read(const struct json *j, struct message_stream *ret, struct err *err) {
        static const struct field fields[] = {
                { "start", FIELD_OBJECT, 0, .decode = take_stream_start },
                { "data", FIELD_OBJECT, 0, .decode = take_stream_data },
                { "keepalive", FIELD_OBJECT, 0, .decode = take_keepalive },
        };

        *ret = (struct message_stream){ 0 };
        if (field_decode(&top, j, fields, ARRAY_SIZE(fields), ret, err) < 0)
                return -EINVAL;
        if (ret->has_start + ret->has_data + ret->has_keepalive != 1)
                return err_set(err, -EINVAL, ERR_INVALID, "a message must have one of: start data keepalive");
        return 0;
}

/* --- filesystem.Filesystem --- */

static const struct field file_fields[] = {
        { "source", FIELD_ANY, offsetof(struct message_file, path), .required = true, .decode = take_text },
        { "destination", FIELD_ANY, offsetof(struct message_file, destination), .required = true, .decode = take_text },
        { "depth", FIELD_U32, offsetof(struct message_file, depth), UINT32_MAX, .min = 0 },
        { "path", FIELD_ANY, offsetof(struct message_file, path), .decode = take_text },
        { "recursive", FIELD_BOOL, offsetof(struct message_file, recursive), .required = false },
        { "includeEntry", FIELD_BOOL, offsetof(struct message_file, with_entry), .required = false },
        { "allowNetworkMounts", FIELD_BOOL, offsetof(struct message_file, network), .required = false },
        { "watcherId", FIELD_ANY, offsetof(struct message_file, watcher), .required = true, .decode = take_text },
};
static const struct slice file_slices[] = {
        [MESSAGE_PATH] = { 3, 1 },  [MESSAGE_MOVE] = { 0, 2 },    [MESSAGE_LIST] = { 2, 2 },
        [MESSAGE_WATCH] = { 3, 4 }, [MESSAGE_WATCHER] = { 7, 1 },
};

int message_file_read(enum message_about about, const struct json *j, struct message_file *ret, struct err *err) {
        const struct slice *s = &file_slices[about];

        *ret = (struct message_file){ "", "", "", .depth = 0 };
        return field_decode(&top, j, file_fields + s->first, s->n, ret, err);
}

/* --- bytes --- */

/* In pieces of whole groups of four letters; only the last may be shorter or padded. */
int message_bytes(const char *base64, struct evbuffer *to) {
        enum { GROUP = 4, PIECE = 4096 };
        size_t left = strlen(base64);

        while (left > 0 && base64[left - 1] == '=')
                left--;
        if (strlen(base64) - left > 2)
                return -EINVAL;
        while (left > 0) {
                char text[PIECE + 1];
                uint8_t bytes[PIECE];
                size_t n = left < PIECE ? left : PIECE, padded = (n + GROUP - 1) / GROUP * GROUP;
                ssize_t k;

                for (size_t i = 0; i < padded; i++)
                        text[i] = i >= n ? '=' : base64[i] == '-' ? '+' : base64[i] == '_' ? '/' : base64[i];
                text[padded] = '\0';
                k = sign_unbase64(bytes, sizeof(bytes), text);
                if (k < 0)
                        return -EINVAL;
                if (evbuffer_add(to, bytes, (size_t) k) < 0)
                        return -ENOMEM;
                base64 += n;
                left -= n;
        }
        return 0;
}
