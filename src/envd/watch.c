/*
 * watch.c - changes below a directory: as a stream (WatchDir), or kept until somebody asks (CreateWatcher and so on).
 *
 * Either has a worker to itself. A stream that is not read stops the worker, and the kernel then drops events; that,
 * and a tree too large to be watched, ends the watch with an error, because nobody can know any more what has changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "agentproto/agentproto.h"
#include "base/err.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "envd/rpc.h"
#include "fileproto/fileproto.h"
#include "json/json.h"

struct watcher {
        TAILQ_ENTRY(watcher) link;
        struct envd_box *box;
        char id[ID_TEXT];
        struct job job;
        struct watching state;
        struct json *events;
        size_t n;
        bool lost;           /* events are missing: told once, then it is gone */
        struct event *timer; /* nobody asks for them */
};

static const char lost_text[] = "changes were lost, or there are too many directories";

static int bad(struct err *err, const char *why) {
        return err_set(err, -EPROTO, ERR_PEER, "%s", why);
}

/* One frame of a watch. 1: *ret is an event to tell; 0: nothing yet; -ENOBUFS: events were lost; -EPROTO. */
static int next_event(struct watching *w, const struct envd_target *t, const struct ap_head *head, const uint8_t *body,
                      size_t n, struct json **ret, struct err *err) {
        struct fp_event ev;
        struct fp_entry e;

        if (head->type == AP_ENTRY && w->what && fp_get_entry(body, n, &e) == 0) {
                *ret = message_event(w->what, w->name, message_entry(&e, t->users, t->n_users));
                w->what = 0;
                free(TAKE_PTR(w->name));
                return *ret ? 1 : bad(err, "an event that nobody knows");
        }
        if (head->type != AP_EVENT || w->what || fp_get_event(body, n, &ev) < 0)
                return bad(err, "a frame that no watch sends");
        if (ev.what == FP_OVERFLOW)
                return -ENOBUFS;
        if (!ev.has_entry) {
                *ret = message_event(ev.what, ev.name, NULL);
                return *ret ? 1 : bad(err, "an event that nobody knows");
        }
        w->name = strdup(ev.name);
        w->what = ev.what;
        return w->name ? 0 : err_set(err, -ENOMEM, ERR_INTERNAL, "event");
}

static void ask(struct rpc *q) {
        const struct message_file *m = &q->file.msg;
        struct fp_request r = { .path = q->file.path };

        r.flags = FP_WITH_XATTRS | (m->recursive ? FP_RECURSIVE : 0) | (m->with_entry ? FP_WITH_ENTRY : 0);
        job_ask(&q->file.job, AP_WATCH, &r);
}

static void on_ready(void *owner) {
        ask(owner);
}

static void on_failed(void *owner, int r) {
        struct rpc *q = owner;

        rpc_fail(q, rpc_code_of(r), "%s",
                 r == -EBUSY ? "too many watches at once" : "the connection to the sandbox was lost");
}

/* The answer to the request itself: 1: it is watched; 0: the call was answered; -EPROTO. */
static int on_answer(struct rpc *q, const struct ap_head *head, const uint8_t *body, size_t n, struct err *err) {
        char step[32];
        int r;

        if (head->type == AP_DONE && n == 0)
                return 1;
        r = head->type == AP_ERROR ? job_error(body, n, step, sizeof(step)) : -EPROTO;
        if (r == -EPROTO)
                return bad(err, "no answer to a watch");
        file_refused(q, r, step);
        return 0;
}

/* --- streams --- */

static int on_stream_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct rpc *q = owner;
        struct json *event = NULL, *message;
        int r;

        if (head->id != q->file.job.id)
                return bad(err, "an answer to another request");
        if (!q->file.watched) {
                r = on_answer(q, head, body, n, err);
                q->file.watched = r > 0;
                if (r > 0)
                        rpc_send_text(q, "{\"start\":{}}");
                return r < 0 ? r : 0;
        }
        r = next_event(&q->file.watch, q->call.box->target, head, body, n, &event, err);
        if (r == -ENOBUFS) {
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "%s", lost_text);
                return 0;
        }
        if (r <= 0)
                return r;
        message = json_new_object();
        json_set(message, "filesystem", event);
        rpc_send_json(q, message);
        if (rpc_is_full(q))
                agent_pause(job_agent(&q->file.job));
        return 0;
}

static const struct job_ops stream_ops = { .on_ready = on_ready, .on_frame = on_stream_frame, .on_failed = on_failed };

bool watch_start(struct rpc *q, const struct json *request) {
        if (file_read(q, MESSAGE_WATCH, request))
                job_start(&q->file.job, &q->call, &stream_ops, true);
        return true;
}

void watch_room(struct rpc *q) {
        struct agent *a = job_agent(&q->file.job);

        if (a)
                agent_resume(a);
}

/* --- watchers --- */

static void watcher_free(struct watcher *w) {
        TAILQ_REMOVE(&w->box->watchers, w, link);
        job_end(&w->job, false);
        if (w->timer)
                event_free(w->timer);
        (void) json_free(w->events);
        free(w->state.name);
        free(w);
}

void watch_drop(struct envd_box *box) {
        while (!TAILQ_EMPTY(&box->watchers))
                watcher_free(TAILQ_FIRST(&box->watchers));
}

static void on_timer(int fd, short what, void *arg) {
        (void) fd, (void) what;
        watcher_free(arg);
}

static void used(struct watcher *w) {
        static const struct timeval patience = { .tv_sec = ENVD_POLL_MS / 1000 };

        (void) event_add(w->timer, &patience);
}

static int on_watcher_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct watcher *w = owner;
        struct json *event = NULL;
        int r;

        if (head->id != w->job.id)
                return bad(err, "an answer to another request");
        if (w->lost)
                return 0;
        r = next_event(&w->state, w->box->target, head, body, n, &event, err);
        if (r == -ENOBUFS || (r > 0 && w->n == ENVD_EVENTS)) {
                w->lost = true;
                (void) json_free(event);
                return 0;
        }
        if (r > 0) {
                json_add(w->events, event);
                w->n++;
        }
        return r < 0 ? r : 0;
}

static void on_watcher_failed(void *owner, int r) {
        (void) r;
        ((struct watcher *) owner)->lost = true;
}

static const struct job_ops watcher_ops = { .on_frame = on_watcher_frame, .on_failed = on_watcher_failed };

static void watcher_new(struct rpc *q) {
        struct envd_box *box = q->call.box;
        struct watcher *w = calloc(1, sizeof(*w));
        struct json *reply = NULL;

        if (!w || id_new(w->id) < 0 || !(w->timer = evtimer_new(box->envd->config.base, on_timer, w))) {
                free(w);
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        w->box = box;
        w->events = json_new_array();
        TAILQ_INSERT_TAIL(&box->watchers, w, link);
        job_move(&q->file.job, &w->job, w, &watcher_ops);
        used(w);
        reply = json_new_object();
        json_set_str(reply, "watcherId", w->id);
        rpc_reply(q, reply);
}

static int on_create_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct rpc *q = owner;
        int r = head->id == q->file.job.id ? on_answer(q, head, body, n, err)
                                           : bad(err, "an answer to another request");

        if (r > 0)
                watcher_new(q);
        return r < 0 ? r : 0;
}

static const struct job_ops create_ops = { .on_ready = on_ready, .on_frame = on_create_frame, .on_failed = on_failed };

bool watch_create(struct rpc *q, const struct json *request) {
        if (file_read(q, MESSAGE_WATCH, request))
                job_start(&q->file.job, &q->call, &create_ops, true);
        return true;
}

/* NULL: the call was answered. */
static struct watcher *find(struct rpc *q, const struct json *request) {
        struct watcher *w;

        if (!file_read(q, MESSAGE_WATCHER, request))
                return NULL;
        TAILQ_FOREACH(w, &q->call.box->watchers, link)
        if (str_eq(w->id, q->file.msg.watcher))
                return w;
        rpc_fail(q, RPC_NOT_FOUND, "watcher '%.64s' not found", q->file.msg.watcher);
        return NULL;
}

bool watch_poll(struct rpc *q, const struct json *request) {
        struct watcher *w = find(q, request);
        struct json *reply;

        if (!w)
                return true;
        if (w->lost && w->n == 0) {
                watcher_free(w);
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "%s", lost_text);
                return true;
        }
        reply = json_new_object();
        json_set(reply, "events", w->events);
        w->events = json_new_array();
        w->n = 0;
        used(w);
        rpc_reply(q, reply);
        return true;
}

bool watch_remove(struct rpc *q, const struct json *request) {
        struct watcher *w = find(q, request);

        if (!w)
                return true;
        watcher_free(w);
        rpc_reply(q, NULL);
        return true;
}
