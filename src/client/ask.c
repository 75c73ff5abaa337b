/* ask.c - whole answers: a request, the loop turned until it is answered, and what the server said as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/state.h"
#include "json/json.h"

struct asked {
        struct client *client;
        struct evbuffer *body;
        struct client_reply reply;
        bool over;
        int result;
        struct err err;
};

void client_reply_done(struct client_reply *r) {
        r->body = json_free(r->body);
}

static void on_head(struct client_call *q, const struct http_head *head, void *data) {
        struct asked *a = data;
        const char *next = http_header(head, "X-Next-Token", NULL);

        (void) q;
        a->reply.status = head->status;
        (void) str_copy(a->reply.next_page, sizeof(a->reply.next_page), next ? next : "");
}

static void on_body(struct client_call *q, struct evbuffer *body, void *data) {
        struct asked *a = data;

        (void) evbuffer_add_buffer(a->body, body);
        if (evbuffer_get_length(a->body) <= CLIENT_REPLY_MAX)
                return;
        a->result = err_set(&a->err, -EMSGSIZE, ERR_PEER, "the server's answer is longer than %d MiB",
                            CLIENT_REPLY_MAX >> 20);
        a->over = true;
        (void) client_call_cancel(q);
        (void) event_base_loopbreak(a->client->base);
}

static void on_done(struct client_call *q, int result, const struct err *err, void *data) {
        struct asked *a = data;

        (void) q;
        a->over = true;
        a->result = result;
        a->err = *err;
        (void) event_base_loopbreak(a->client->base);
}

/* --- refusals --- */

int client_refusal(struct err *err, unsigned status, const struct json *body) {
        static const struct {
                unsigned status;
                int code;
                enum err_kind kind;
                const char *hint;
        } known[] = {
                { 400, -EINVAL, ERR_INVALID, "" },
                { 401, -EACCES, ERR_DENIED, "; set GABION_API_KEY, or give --key-file" },
                { 403, -EPERM, ERR_DENIED, "" },
                { 404, -ENOENT, ERR_NOT_FOUND, "" },
                { 409, -EEXIST, ERR_BUSY, "" },
                { 413, -EFBIG, ERR_LIMIT, "" },
                { 429, -EBUSY, ERR_LIMIT, "; try again later" },
                { 501, -ENOSYS, ERR_INVALID, "" },
                { 502, -ENOENT, ERR_NOT_FOUND, "" },
                { 503, -EAGAIN, ERR_BUSY, "; try again later" },
                { 507, -ENOSPC, ERR_LIMIT, "" },
        };
        const struct json *inner = json_is_object(body) ? json_get(body, "error") : NULL;
        const struct json *said = json_is_object(inner) ? inner : json_is_object(body) ? body : NULL;
        const char *message = said ? json_get_str(said, "message") : NULL;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (known[i].status == status)
                        return err_set(err, known[i].code, known[i].kind, "%.200s%s",
                                       message ? message : http_reason(status), known[i].hint);
        if (message)
                return err_set(err, -EIO, ERR_PEER, "%.200s", message);
        return err_set(err, -EIO, ERR_PEER, "the server answers %u %s; is this a Gabion server?", status,
                       http_reason(status));
}

static int read_body(struct asked *a, struct err *err) {
        size_t n = evbuffer_get_length(a->body);
        const char *text = n > 0 ? (const char *) evbuffer_pullup(a->body, -1) : NULL;
        int r = text ? json_parse_long("the server's answer", text, n, CLIENT_VALUES, &a->reply.body, err) : 0;

        if (a->reply.status < 200 || a->reply.status > 299)
                return client_refusal(err, a->reply.status, a->reply.body);
        return r;
}

int client_ask(struct client *c, const struct client_request *request, struct client_reply *ret, struct err *err) {
        static const struct client_ops ops = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
        struct asked a = { .client = c, .body = evbuffer_new() };
        struct client_call *q;
        int r;

        *ret = (struct client_reply){ 0 };
        if (!a.body)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        r = client_call_new(c, request, &ops, &a, &q, err);
        while (r == 0 && !a.over)
                if (event_base_loop(c->base, EVLOOP_ONCE) < 0)
                        r = err_set(err, -EIO, ERR_INTERNAL, "event loop");
        if (r == 0 && a.result < 0) {
                *err = a.err;
                r = a.result;
        }
        if (r == 0)
                r = read_body(&a, err);
        *ret = a.reply;
        evbuffer_free(a.body);
        return r;
}

void client_add_user(struct buf *lines, const char *user) {
        char name[CLIENT_NAME_TEXT + 1], text[STR_BASE64(sizeof(name))];

        if (!user)
                return;
        (void) snprintf(name, sizeof(name), "%s:", user);
        str_base64(text, name, strlen(name));
        http_addf(lines, "Authorization", "Basic %s", text);
}

int client_rpc(struct client *c, const struct client_box *box, const char *method, const char *user,
               struct json *message, struct client_reply *ret, struct err *err) {
        CLEANUP(json_freep) struct json *owned = message;
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        AUTO_FREE char *text = NULL;
        char target[128];
        struct client_request q = { .method = "POST", .target = target, .box = box, .lines = &lines };
        int r = json_text(owned, false, &text, err);

        *ret = (struct client_reply){ 0 };
        if (r < 0)
                return r;
        (void) snprintf(target, sizeof(target), "/%s", method);
        http_add(&lines, "Connect-Protocol-Version", "1");
        client_add_user(&lines, user);
        q.text = text;
        r = client_ask(c, &q, ret, err);
        buf_done(&lines);
        return r;
}

static void copy_member(const struct json *o, const char *key, char *dst, size_t cap) {
        const char *s = json_get_str(o, key);

        (void) str_copy(dst, cap, s ? s : "");
}

int client_box_find(struct client *c, const char *id_or_name, struct client_box *ret, struct err *err) {
        char target[CLIENT_NAME_TEXT + 16];
        const struct client_request q = { .method = "GET", .target = target };
        struct client_reply reply = { 0 };
        int r;

        if (!client_is_name(id_or_name))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.64s' is no id or name of a sandbox", id_or_name);
        (void) snprintf(target, sizeof(target), "/sandboxes/%s", id_or_name);
        r = client_ask(c, &q, &reply, err);
        if (r == 0) {
                *ret = (struct client_box){ 0 };
                copy_member(reply.body, "sandboxID", ret->id, sizeof(ret->id));
                copy_member(reply.body, "name", ret->name, sizeof(ret->name));
                copy_member(reply.body, "envdAccessToken", ret->token, sizeof(ret->token));
                copy_member(reply.body, "trafficAccessToken", ret->traffic, sizeof(ret->traffic));
                copy_member(reply.body, "domain", ret->domain, sizeof(ret->domain));
                if (!client_is_name(ret->id))
                        r = err_set(err, -EPROTO, ERR_PEER, "the server's answer has no sandboxID");
        }
        client_reply_done(&reply);
        return r;
}
