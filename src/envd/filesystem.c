/*
 * filesystem.c - the calls of filesystem.Filesystem, but for watching (watch.c). Each is one request to a worker of the
 * user, who may do what the user may do and nothing else.
 */
#include <errno.h>
#include <stdlib.h>

#include <event2/buffer.h>

#include "agentproto/agentproto.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "envd/rpc.h"
#include "envd/text.h"
#include "fileproto/fileproto.h"
#include "json/json.h"

/* How a method asks, and what its answer may be. */
struct file_method {
        const char *name;
        unsigned type; /* of the request */
        enum message_about about;
};
static const struct file_method kinds[] = {
        { "Stat", AP_STAT, MESSAGE_PATH },     { "MakeDir", AP_MKDIR, MESSAGE_PATH },
        { "Move", AP_MOVE, MESSAGE_MOVE },     { "ListDir", AP_LIST_DIR, MESSAGE_LIST },
        { "Remove", AP_REMOVE, MESSAGE_PATH },
};

static const struct file_method *kind_of(const struct rpc *q) {
        const char *name = text_name(q->method->path);

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (str_eq(kinds[i].name, name))
                        return &kinds[i];
        abort(); /* the table below has no other */
}

static bool take_path(struct rpc *q, const char *given, char dst[AP_PATH_MAX]) {
        int r = text_path(dst, AP_PATH_MAX, q->call.user->home, given);

        if (r < 0)
                rpc_fail(q, RPC_INVALID_ARGUMENT, "path '%.128s' %s", given,
                         r == -EINVAL ? "names another user's home" : "is too long");
        return r == 0;
}

bool file_read(struct rpc *q, unsigned about, const struct json *request) {
        struct err err = { 0 };

        if (message_file_read((enum message_about) about, request, &q->file.msg, &err) < 0) {
                rpc_fail(q, RPC_INVALID_ARGUMENT, "%s", err.msg);
                return false;
        }
        return take_path(q, q->file.msg.path, q->file.path) && take_path(q, q->file.msg.destination, q->file.other);
}

void file_refused(struct rpc *q, int r, const char *step) {
        const char *path = q->file.path;

        if (r == -EEXIST)
                rpc_fail(q, RPC_ALREADY_EXISTS, "'%.128s' exists already", path);
        else if (r == -ENOTDIR && str_eq(step, "exists"))
                rpc_fail(q, RPC_INVALID_ARGUMENT, "'%.128s' exists already, and is no directory", path);
        else
                rpc_fail(q, rpc_code_of(r), "'%.128s' %s", path, answer_why(r));
}

static void log_call(struct rpc *q, int r) {
        call_tell(&q->call, text_name(q->method->path), q->file.path, r);
}

static struct json *describe(const struct rpc *q, const struct fp_entry *e) {
        const struct envd_target *t = q->call.box->target;

        return message_entry(e, t->users, t->n_users);
}

/* --- answers --- */

static void answered(struct rpc *q, struct json *reply) {
        log_call(q, 0);
        job_end(&q->file.job, true);
        rpc_reply(q, reply);
}

static int on_entry(struct rpc *q, const uint8_t *body, size_t n, struct err *err) {
        struct fp_entry e;
        struct json *reply;

        if (fp_get_entry(body, n, &e) < 0 || kind_of(q)->type == AP_REMOVE)
                return err_set(err, -EPROTO, ERR_PEER, "malformed entry");
        if (!q->file.text) {
                reply = json_new_object();
                json_set(reply, "entry", describe(q, &e));
                answered(q, reply);
        } else {
                CLEANUP(json_freep) struct json *one = describe(q, &e);
                AUTO_FREE char *text = NULL;

                if (json_text(one, false, &text, err) < 0)
                        return -EPROTO;
                (void) evbuffer_add_printf(q->file.text, "%s%s", q->file.n_entries++ ? "," : "{\"entries\":[", text);
                if (evbuffer_get_length(q->file.text) > ENVD_REPLY)
                        rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "the directory has too many entries");
        }
        return 0;
}

static int on_done(struct rpc *q, struct err *err) {
        if (kind_of(q)->type != AP_REMOVE && kind_of(q)->type != AP_LIST_DIR)
                return err_set(err, -EPROTO, ERR_PEER, "an end in place of an entry");
        if (!q->file.text) {
                answered(q, NULL);
                return 0;
        }
        (void) evbuffer_add_printf(q->file.text, "%s", q->file.n_entries ? "]}" : "{\"entries\":[]}");
        log_call(q, 0);
        job_end(&q->file.job, true);
        rpc_reply_text(q, q->file.text);
        return 0;
}

static int on_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct rpc *q = owner;
        char step[32];
        int r;

        if (head->id != q->file.job.id)
                return err_set(err, -EPROTO, ERR_PEER, "an answer to another request");
        switch ((int) head->type) {
        case AP_ENTRY:
                return on_entry(q, body, n, err);
        case AP_DONE:
                return n == 0 ? on_done(q, err) : err_set(err, -EPROTO, ERR_PEER, "malformed end");
        case AP_ERROR:
                r = job_error(body, n, step, sizeof(step));
                if (r == -EPROTO)
                        return err_set(err, r, ERR_PEER, "malformed error");
                log_call(q, r);
                job_end(&q->file.job, true);
                file_refused(q, r, step);
                return 0;
        default:
                return err_set(err, -EPROTO, ERR_PEER, "a frame that no worker sends");
        }
}

/* --- requests --- */

static void on_ready(void *owner) {
        struct rpc *q = owner;
        struct fp_request ask = {
                .flags = FP_WITH_XATTRS,
                .length = q->file.msg.depth ? q->file.msg.depth : 1,
                .path = q->file.path,
                .other = q->file.other,
        };
        const struct file_method *k = kind_of(q);

        if (k->type != AP_LIST_DIR)
                ask.length = 0;
        if (k->type != AP_MOVE)
                ask.other = "";
        job_ask(&q->file.job, k->type, &ask);
}

static void on_failed(void *owner, int r) {
        struct rpc *q = owner;

        rpc_fail(q, rpc_code_of(r), "%s",
                 r == -EBUSY ? "too many requests about files at once" : "the sandbox cannot be reached");
}

static const struct job_ops file_ops = { .on_ready = on_ready, .on_frame = on_frame, .on_failed = on_failed };

static bool start(struct rpc *q, const struct json *request) {
        const struct file_method *k = kind_of(q);

        if (!file_read(q, k->about, request))
                return true;
        if (k->type == AP_LIST_DIR && !(q->file.text = evbuffer_new()))
                rpc_fail(q, RPC_RESOURCE_EXHAUSTED, "out of memory");
        else
                job_start(&q->file.job, &q->call, &file_ops, false);
        return true;
}

static void launched(struct rpc *q, int r) {
        job_launched(&q->file.job, r);
}

static void stop(struct rpc *q) {
        job_end(&q->file.job, false);
        if (q->file.text)
                evbuffer_free(TAKE_PTR(q->file.text));
        free(TAKE_PTR(q->file.watch.name));
}

#define METHOD(name) "/filesystem.Filesystem/" name
static const char beat[] = "{\"keepalive\":{}}";

const struct rpc_method file_methods[] = {
        { METHOD("Stat"), RPC_UNARY, NULL, start, NULL, NULL, launched, stop },
        { METHOD("MakeDir"), RPC_UNARY, NULL, start, NULL, NULL, launched, stop },
        { METHOD("Move"), RPC_UNARY, NULL, start, NULL, NULL, launched, stop },
        { METHOD("ListDir"), RPC_UNARY, NULL, start, NULL, NULL, launched, stop },
        { METHOD("Remove"), RPC_UNARY, NULL, start, NULL, NULL, launched, stop },
        { METHOD("WatchDir"), RPC_SERVER_STREAM, beat, watch_start, NULL, watch_room, launched, stop },
        { METHOD("CreateWatcher"), RPC_UNARY, NULL, watch_create, NULL, NULL, launched, stop },
        { METHOD("GetWatcherEvents"), RPC_UNARY, NULL, watch_poll, NULL, NULL, NULL, stop },
        { METHOD("RemoveWatcher"), RPC_UNARY, NULL, watch_remove, NULL, NULL, NULL, stop },
        { 0 },
};
