/* logs.c - `gabion logs`: the events of one sandbox, oldest first, and with -f those to come. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

enum { PAGE = 500, BEAT_MS = 60 * 1000 };

struct logs {
        struct remote *remote;
        char id[CLIENT_NAME_TEXT];
        bool follow, over, ended;
        uint64_t lines; /* 0: all */
        int64_t last;   /* seq */
        struct evbuffer *in;
        unsigned status;
        int result;
        struct err err;
};

static int set(void *into, int key, const char *value) {
        struct logs *l = into;

        if (key == 'f')
                l->follow = true;
        else if (str_to_u64(value, UINT32_MAX, &l->lines) < 0 || l->lines == 0)
                return cli_usage("logs", "-n '%.40s': a number from 1 on is expected", value);
        return -1;
}

static int print_member(void *arg, const char *key, const struct json *value) {
        AUTO_FREE char *text = NULL;
        struct json *list = json_new_array();
        struct err err = { 0 };

        (void) arg;
        (void) putchar(' ');
        remote_print(key);
        (void) putchar('=');
        if (json_str(value)) {
                remote_print(json_str(value));
        } else {
                json_add(list, json_share(value)); /* only lists and objects have a text */
                if (json_text(list, false, &text, &err) == 0) {
                        text[strlen(text) - 1] = '\0';
                        remote_print(text + 1);
                }
        }
        (void) json_free(list);
        return 0;
}

static int print_event(struct logs *l, const struct json *e) {
        const char *time = json_get_str(e, "time"), *kind = json_get_str(e, "kind");
        struct err err = { 0 };

        l->last = json_get_int(e, "seq", l->last);
        l->ended = l->ended || (kind && (str_eq(kind, "sandbox.ended") || str_eq(kind, "sandbox.failed")));
        if (l->remote->json) {
                (void) remote_print_json(e, false, &err);
        } else {
                remote_print(time ? time : "-");
                (void) putchar(' ');
                remote_print(kind ? kind : "-");
                (void) json_each(json_get(e, "data"), print_member, NULL);
                (void) putchar('\n');
        }
        return fflush(stdout) == 0 ? 0 : -1;
}

static int read_page(struct logs *l, struct json *all, bool *ret_more, struct err *err) {
        struct client_reply reply = { 0 };
        const struct json *events;
        char target[160];
        int n;

        (void) snprintf(target, sizeof(target), "/gabion/v1/events?sandbox=%s&after=%" PRId64 "&limit=%d", l->id,
                        l->last, PAGE);
        n = remote_get(l->remote, target, &reply, err);
        events = n == 0 ? json_get(reply.body, "events") : NULL;
        for (size_t i = 0; i < json_len(events); i++) {
                json_add(all, json_share(json_at(events, i)));
                l->last = json_get_int(json_at(events, i), "seq", l->last);
        }
        *ret_more = json_len(events) == PAGE;
        client_reply_done(&reply);
        return n;
}

static int print_past(struct logs *l, struct err *err) {
        CLEANUP(json_freep) struct json *all = json_new_array();
        bool more = true;
        size_t first;
        int n = 0;

        while (n == 0 && more)
                n = read_page(l, all, &more, err);
        first = l->lines > 0 && json_len(all) > l->lines ? json_len(all) - l->lines : 0;
        for (size_t i = first; n == 0 && i < json_len(all); i++)
                if (print_event(l, json_at(all, i)) < 0)
                        return 0;
        return n;
}

/* --- following --- */

static void on_head(struct client_call *q, const struct http_head *head, void *data) {
        (void) q;
        ((struct logs *) data)->status = head->status;
}

static void stop(struct logs *l, struct client_call *q) {
        l->over = true;
        (void) client_call_cancel(q);
        (void) event_base_loopbreak(client_base(l->remote->client));
}

static void on_body(struct client_call *q, struct evbuffer *body, void *data) {
        struct logs *l = data;
        struct json *event = NULL;
        int r = 0;

        (void) evbuffer_add_buffer(l->in, body);
        while (l->status == 200 && !l->over && (r = client_event_next(l->in, &event, &l->err)) > 0) {
                if (print_event(l, event) < 0 || l->ended)
                        stop(l, q);
                event = json_free(event);
        }
        if (r < 0) {
                l->result = r;
                stop(l, q);
        }
}

static void on_done(struct client_call *q, int result, const struct err *err, void *data) {
        struct logs *l = data;

        (void) q;
        l->over = true;
        l->result = result;
        l->err = *err;
        if (result == 0 && l->status != 200)
                l->result = client_refusal(&l->err, l->status, NULL);
        (void) event_base_loopbreak(client_base(l->remote->client));
}

static int print_rest(struct logs *l, struct err *err) {
        static const struct client_ops ops = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
        struct client_request q = { .method = "GET", .quiet_ms = BEAT_MS };
        struct buf lines = BUF_INIT(256);
        struct client_call *call;
        char target[128];
        int r;

        (void) snprintf(target, sizeof(target), "/gabion/v1/events?sandbox=%s&after=%" PRId64, l->id, l->last);
        http_add(&lines, "Accept", "text/event-stream");
        q.target = target;
        q.lines = &lines;
        l->in = evbuffer_new();
        r = client_call_new(l->remote->client, &q, &ops, l, &call, err);
        while (r == 0 && !l->over)
                (void) event_base_loop(client_base(l->remote->client), EVLOOP_ONCE);
        buf_done(&lines);
        evbuffer_free(l->in);
        if (r == 0 && l->result < 0)
                *err = l->err;
        return r < 0 ? r : l->result;
}

/* A name is one of those that live; what has ended has only its id. */
static int find(struct logs *l, const char *name, struct err *err) {
        struct client_box box;
        int r = client_box_find(l->remote->client, name, &box, err);

        (void) str_copy(l->id, sizeof(l->id), r == 0 ? box.id : name);
        return r < 0 && err->kind == ERR_NOT_FOUND && strlen(name) == ID_LEN ? 0 : r;
}

int remote_logs(struct remote *r, int argc, char **argv) {
        struct logs l = { .remote = r };
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &l);

        if (code >= 0)
                return code;
        if (argc - at != 1)
                return cli_usage("logs", "the id or name of one sandbox is expected");
        if (remote_open(r, &err) < 0 || find(&l, argv[at], &err) < 0 || print_past(&l, &err) < 0)
                return cli_fail(&err);
        if (l.follow && !l.ended && print_rest(&l, &err) < 0)
                return cli_fail(&err);
        return 0;
}
