/* cp_file.c - the contents of one file, to the sandbox and from it, as a stream. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "cli/copy.h"
#include "json/json.h"

enum { PIECE = 64 << 10, ERROR_MAX = 64 << 10 };

struct transfer {
        struct copy *copy;
        struct client_call *call;
        int fd;
        off_t left; /* of an upload; negative: until the end */
        bool upload, sent, over;
        unsigned status;
        struct evbuffer *said; /* an error, or the answer to an upload */
        int result;
        struct err err;
};

static void finish(struct transfer *t, int r) {
        t->result = r;
        t->over = true;
        (void) event_base_loopbreak(client_base(t->copy->remote->client));
}

static void pump(struct transfer *t) {
        static char piece[PIECE];

        while (!t->sent && !client_call_is_full(t->call)) {
                size_t want = t->left >= 0 && t->left < PIECE ? (size_t) t->left : PIECE;
                ssize_t n = want > 0 ? read(t->fd, piece, want) : 0;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 || (n == 0 && t->left > 0)) {
                        int r = n < 0 ? -errno : -EIO;

                        (void) client_call_cancel(t->call);
                        finish(t, err_set(&t->err, r, ERR_INVALID, n < 0 ? "%s" : "it became shorter meanwhile",
                                          strerror(-r)));
                        return;
                }
                if (n == 0) {
                        t->sent = true;
                        client_call_end(t->call);
                        return;
                }
                client_call_write(t->call, piece, (size_t) n);
                t->left -= t->left >= 0 ? n : 0;
        }
}

static void on_room(struct client_call *q, void *data) {
        (void) q;
        pump(data);
}

static void on_head(struct client_call *q, const struct http_head *head, void *data) {
        (void) q;
        ((struct transfer *) data)->status = head->status;
}

static void on_body(struct client_call *q, struct evbuffer *body, void *data) {
        struct transfer *t = data;
        int r = 0;

        if (t->status != 200 || t->upload) {
                (void) evbuffer_remove_buffer(body, t->said, ERROR_MAX - evbuffer_get_length(t->said));
                (void) evbuffer_drain(body, SIZE_MAX);
                return;
        }
        while (r == 0 && evbuffer_get_length(body) > 0) {
                size_t n = evbuffer_get_contiguous_space(body);

                r = fd_write_all(t->fd, evbuffer_pullup(body, (ev_ssize_t) n), n);
                (void) evbuffer_drain(body, n);
        }
        if (r < 0) {
                (void) client_call_cancel(q);
                finish(t, err_set(&t->err, r, ERR_INVALID, "%s", strerror(-r)));
        }
}

static void on_done(struct client_call *q, int result, const struct err *err, void *data) {
        CLEANUP(json_freep) struct json *body = NULL;
        struct transfer *t = data;
        struct err ignored = { 0 };
        size_t n = evbuffer_get_length(t->said);

        (void) q;
        t->err = *err;
        if (result == 0 && t->status != 200) {
                if (n > 0)
                        (void) json_parse("answer", (const char *) evbuffer_pullup(t->said, -1), n, &body, &ignored);
                result = client_refusal(&t->err, t->status, body);
        }
        finish(t, result);
}

static int run(struct transfer *t, struct client_request *q, const char *path, struct err *err) {
        static const struct client_ops ops = {
                .on_head = on_head, .on_body = on_body, .on_room = on_room, .on_done = on_done
        };
        struct buf target = BUF_INIT(HTTP_LINE_MAX);
        int r;

        buf_addf(&target, "/files");
        client_query_add(&target, "path", path);
        if (t->copy->user)
                client_query_add(&target, "username", t->copy->user);
        q->target = buf_str(&target);
        q->box = &t->copy->box;
        t->said = evbuffer_new();
        r = target.bad || !t->said ? err_set(err, -ENAMETOOLONG, ERR_INVALID, "the path is too long")
                                   : client_call_new(t->copy->remote->client, q, &ops, t, &t->call, err);
        if (r == 0 && t->upload)
                pump(t);
        while (r == 0 && !t->over)
                if (event_base_loop(client_base(t->copy->remote->client), EVLOOP_ONCE) < 0)
                        r = err_set(err, -EIO, ERR_INTERNAL, "event loop");
        if (r == 0 && t->result < 0) {
                *err = t->err;
                r = t->result;
        }
        if (t->said)
                evbuffer_free(t->said);
        buf_done(&target);
        return r;
}

int copy_send(struct copy *c, int fd, off_t length, const char *path, struct err *err) {
        struct transfer t = { .copy = c, .fd = fd, .left = length, .upload = true };
        struct client_request q = { .method = "POST",
                                    .type = "application/octet-stream",
                                    .body = length < 0 ? HTTP_BODY_CHUNKED : HTTP_BODY_LENGTH,
                                    .length = length < 0 ? 0 : (uint64_t) length };

        return run(&t, &q, path, err);
}

int copy_receive(struct copy *c, const char *path, int fd, struct err *err) {
        struct transfer t = { .copy = c, .fd = fd };
        struct client_request q = { .method = "GET" };

        return run(&t, &q, path, err);
}
