/*
 * upload.c - POST /files: a file as it is, or some of them as multipart/form-data, perhaps compressed.
 *
 * Theory of operation. Bytes go through at most three stages, `in` (as they came), `plain` (unpacked), `data` (of one
 * part), and then to a worker. pump() moves them on until the worker's connection is full or bytes are missing; what
 * the client sends meanwhile stays with the http layer. Files are written in order on one connection, and each is
 * followed by the request that sets its metadata; the answers come in the same order. The first failure ends it all.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>

#include "agentproto/agentproto.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/inflate.h"
#include "envd/job.h"
#include "envd/multipart.h"
#include "envd/text.h"
#include "envd/transfer.h"
#include "fileproto/fileproto.h"
#include "http/server.h"
#include "json/json.h"

static const char prefix[] = "user.e2b.", metadata_header[] = "x-metadata-";

struct upload {
        struct call call; /* first */
        struct job job;
        struct query query;
        struct multipart *parts; /* NULL: the body is the file */
        struct inflate *packed;  /* NULL: it is not compressed */
        struct evbuffer *in, *plain, *data;
        uint64_t n_plain;
        bool ready, ended, whole, over; /* connected; all has come; all was passed on; answered */
        bool open, skips;               /* a file is being written; a part that is none */
        size_t n_files, n_answers;
        uint32_t next_id; /* of the next answer */
        char path[AP_PATH_MAX];
        struct json *files;
};

static void fail(struct upload *u, unsigned status, const char *why) {
        if (u->over)
                return;
        u->over = true;
        job_end(&u->job, false);
        call_error(&u->call, status, "%s", why);
}

/* The one whose answer is due. */
static void fail_file(struct upload *u, int r) {
        const char *path = json_get_str(json_at(u->files, u->n_answers / 2), "path");
        char why[512];

        call_tell(&u->call, "upload", path, r);
        (void) snprintf(why, sizeof(why), "path '%.256s' %s", path, answer_why(r));
        fail(u, answer_status(r), why);
}

/* --- metadata --- */

/* The headers X-Metadata-*, names in lower case. False: there is too much of it. */
static bool metadata_read(const struct http_head *head, struct fp_xattrs *x, char names[FP_XATTRS][FP_XATTR_NAME]) {
        size_t n = sizeof(metadata_header) - 1, total = 0;

        for (size_t i = 0; i < head->n_headers; i++) {
                const char *key = head->headers[i].name, *value = head->headers[i].value;
                char *name = names[x->n_xattrs];
                size_t at = sizeof(prefix) - 1;

                if (strncasecmp(key, metadata_header, n) != 0 || !key[n])
                        continue;
                total += at + strlen(key + n) + strlen(value);
                if (x->n_xattrs == FP_XATTRS || at + strlen(key + n) >= FP_XATTR_NAME || total > FP_XATTR_BYTES)
                        return false;
                (void) snprintf(name, FP_XATTR_NAME, "%s%s", prefix, key + n);
                text_lower(name);
                x->xattrs[x->n_xattrs++] = (struct fp_xattr){ name, (const uint8_t *) value, (uint16_t) strlen(value) };
        }
        return true;
}

static struct json *metadata_json(const struct http_head *head) {
        char names[FP_XATTRS][FP_XATTR_NAME];
        struct json *j = json_new_object();
        struct fp_xattrs x = { 0 };

        (void) metadata_read(head, &x, names);
        for (size_t i = 0; i < x.n_xattrs; i++)
                json_set_str(j, x.xattrs[i].name + sizeof(prefix) - 1, (const char *) x.xattrs[i].value);
        return j;
}

/* --- one file --- */

static bool is_known(const struct upload *u, const char *path) {
        for (size_t i = 0; i < json_len(u->files); i++)
                if (str_eq(json_get_str(json_at(u->files, i), "path"), path))
                        return true;
        return false;
}

static void remember(struct upload *u) {
        struct json *one = json_new_object(), *metadata = metadata_json(http_conn_head(u->call.conn));

        json_set_str(one, "name", text_name(u->path));
        json_set_str(one, "path", u->path);
        json_set_str(one, "type", "file");
        if (json_len(metadata) > 0)
                json_set(one, "metadata", metadata);
        else
                (void) json_free(metadata);
        json_add(u->files, one);
}

static void file_open(struct upload *u, const char *given) {
        if (u->n_files == ENVD_PARTS)
                fail(u, 400, "too many files in one upload");
        else if (text_path(u->path, sizeof(u->path), u->call.user->home, given) < 0)
                fail(u, 400, "path: names another user's home, or is too long");
        else if (is_known(u, u->path))
                fail(u, 400, "two files for the same path");
        if (u->over)
                return;
        job_ask(&u->job, AP_WRITE, &(struct fp_request){ .path = u->path });
        if (u->n_files == 0)
                u->next_id = u->job.id;
        u->n_files++;
        u->open = true;
        remember(u);
}

static void file_data(struct upload *u, struct evbuffer *data) {
        size_t n;

        while (u->open && (n = evbuffer_get_length(data)) > 0)
                agent_send_bytes(job_agent(&u->job), AP_DATA, u->job.id, data, n < AP_CHUNK ? n : AP_CHUNK);
        (void) evbuffer_drain(data, SIZE_MAX); /* of a part that is no file */
}

static void file_close(struct upload *u) {
        char names[FP_XATTRS][FP_XATTR_NAME];
        struct fp_xattrs x = { .path = u->path, .prefix = prefix };
        struct wr w = agent_frame();

        if (!u->open)
                return;
        u->open = false;
        ap_put_empty(&w, AP_DATA_END, u->job.id);
        (void) agent_send(job_agent(&u->job), &w);
        w = agent_frame();
        (void) metadata_read(http_conn_head(u->call.conn), &x, names);
        fp_put_xattrs(&w, job_id(&u->job), &x);
        (void) agent_send(job_agent(&u->job), &w);
}

/* --- stages --- */

/* Something of a multipart body; false: more is needed, or it is over. */
static bool pass_parts(struct upload *u) {
        enum multipart_event ev = MULTIPART_MORE;
        struct err err = { 0 };

        if (multipart_next(u->parts, u->plain, u->data, &ev, &err) < 0) {
                fail(u, 400, err.msg);
                return false;
        }
        switch (ev) {
        case MULTIPART_PART:
                u->skips = !str_eq(u->parts->name, "file");
                if (!u->skips && !u->query.has_path && !*u->parts->filename)
                        fail(u, 400, "a file needs a path, or a part's filename");
                else if (!u->skips)
                        file_open(u, u->query.has_path ? u->query.path : u->parts->filename);
                break;
        case MULTIPART_DATA:
                file_data(u, u->data);
                break;
        case MULTIPART_PART_END:
                file_close(u);
                break;
        case MULTIPART_MORE:
        case MULTIPART_END:
                return false;
        }
        return !u->over;
}

static bool pass_file(struct upload *u) {
        if (evbuffer_get_length(u->plain) == 0)
                return false;
        file_data(u, u->plain);
        return true;
}

/* Some bytes from `in` to `plain`; false: there are none, or it is over. */
static bool unpack(struct upload *u) {
        size_t before = evbuffer_get_length(u->plain);
        struct err err = { 0 };
        int r = 1;

        if (u->packed)
                r = inflate_some(u->packed, u->in, u->plain, &err);
        else if (evbuffer_get_length(u->in) > 0)
                (void) http_move(u->plain, u->in);
        else
                r = 0;
        if (r < 0)
                fail(u, 400, err.msg);
        u->n_plain += evbuffer_get_length(u->plain) - before;
        if (u->n_plain > ENVD_UPLOAD)
                fail(u, 413, "the upload is too large");
        return r > 0 && !u->over;
}

static void finish(struct upload *u) {
        struct err err = { 0 };
        int r = u->packed ? inflate_finish(u->packed, &err) : 0;

        if (r == 0 && u->parts)
                r = multipart_finish(u->parts, u->plain, &err);
        if (r < 0) {
                fail(u, 400, err.msg);
                return;
        }
        file_close(u); /* of a multipart body all are closed */
        u->whole = true;
}

static void answer(struct upload *u) {
        if (u->over || !u->whole || u->n_answers < 2 * u->n_files)
                return;
        u->over = true;
        job_end(&u->job, true);
        answer_json(u->call.envd, u->call.box->target, u->call.conn, 200, TAKE_PTR(u->files));
}

static void pump(struct upload *u) {
        if (!u->ready || u->over || u->whole)
                return;
        if (!u->parts && u->n_files == 0)
                file_open(u, u->query.path);
        while (!u->over) {
                if (agent_is_full(job_agent(&u->job)))
                        return;
                if (!(u->parts ? pass_parts(u) : pass_file(u)) && !unpack(u))
                        break;
        }
        if (!u->over && u->ended)
                finish(u);
        answer(u);
}

/* --- the worker --- */

static void on_ready(void *owner) {
        struct upload *u = owner;

        if (u->n_files > 0) { /* what was sent over the first connection is lost */
                fail(u, 503, "the sandbox could not take the upload; try again");
                return;
        }
        u->ready = true;
        pump(u);
        if (!u->over && !u->ended)
                http_resume(u->call.conn);
}

static int on_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct upload *u = owner;
        bool of_metadata = u->n_answers % 2 == 1;
        struct fp_entry e;
        char step[32];
        int r = 0;

        if (head->id != u->next_id || u->n_answers >= 2 * u->n_files)
                return err_set(err, -EPROTO, ERR_PEER, "an answer to another request");
        if (head->type == AP_ERROR) {
                r = job_error(body, n, step, sizeof(step));
                if (r == -EPROTO)
                        return err_set(err, r, ERR_PEER, "malformed error");
                fail_file(u, r);
                return 0;
        }
        if (head->type != AP_ENTRY || fp_get_entry(body, n, &e) < 0)
                return err_set(err, -EPROTO, ERR_PEER, "a frame that does not belong to an upload");
        if (of_metadata)
                call_tell(&u->call, "upload", e.path, 0);
        u->n_answers++;
        u->next_id++;
        answer(u);
        return 0;
}

static void on_worker_room(void *owner) {
        struct upload *u = owner;

        pump(u);
        if (!u->over && !u->ended && evbuffer_get_length(u->in) == 0)
                http_resume(u->call.conn);
}

static void on_failed(void *owner, int r) {
        struct upload *u = owner;

        fail(u, answer_status(r),
             r == -EBUSY ? "too many requests about files at once" : "the sandbox cannot be reached");
}

static const struct job_ops job_ops = { on_ready, on_frame, on_worker_room, on_failed };

/* --- the request --- */

static void on_body(struct call *c, struct evbuffer *body) {
        struct upload *u = (struct upload *) c;

        if (u->over) {
                (void) evbuffer_drain(body, SIZE_MAX);
        } else if (u->ready && evbuffer_get_length(u->in) == 0) {
                (void) http_move(u->in, body);
                pump(u);
        }
}

static void on_end(struct call *c) {
        struct upload *u = (struct upload *) c;

        u->ended = true;
        pump(u);
}

static void on_launched(struct call *c, int r) {
        job_launched(&((struct upload *) c)->job, r);
}

static void on_free(struct call *c) {
        struct upload *u = (struct upload *) c;
        struct evbuffer **buffers[] = { &u->in, &u->plain, &u->data };

        u->over = true;
        job_end(&u->job, false);
        for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
                if (*buffers[i])
                        evbuffer_free(TAKE_PTR(*buffers[i]));
        u->packed = inflate_free(u->packed);
        free(TAKE_PTR(u->parts));
        u->files = json_free(u->files);
}

static const struct call_ops upload_ops = {
        .size = sizeof(struct upload),
        .body_max = ENVD_UPLOAD,
        .on_body = on_body,
        .on_end = on_end,
        .on_launched = on_launched,
        .on_free = on_free,
};

/* 0, or the status of a refusal and why. */
static unsigned prepare(struct upload *u, const struct http_head *head, struct err *err) {
        const char *type = http_header(head, "Content-Type", NULL),
                   *coding = http_header(head, "Content-Encoding", NULL);
        char names[FP_XATTRS][FP_XATTR_NAME];
        struct fp_xattrs x = { 0 };

        u->in = evbuffer_new();
        u->plain = evbuffer_new();
        u->data = evbuffer_new();
        u->files = json_new_array();
        (void) err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (!u->in || !u->plain || !u->data || !u->files)
                return 503;
        if (!metadata_read(head, &x, names)) {
                (void) err_set(err, -EINVAL, ERR_INVALID, "X-Metadata: at most %d, %d bytes in all", FP_XATTRS,
                               FP_XATTR_BYTES);
                return 400;
        }
        if (coding && strcasecmp(coding, "gzip") == 0) {
                if (inflate_new(&u->packed, err) < 0)
                        return 503;
        } else if (coding && strcasecmp(coding, "identity") != 0) {
                (void) err_set(err, -EINVAL, ERR_INVALID, "Content-Encoding must be gzip, or none");
                return 415;
        }
        if (type && http_media_is(type, "application/octet-stream")) {
                (void) err_set(err, -EINVAL, ERR_INVALID, "path is required");
                return *u->query.path ? 0 : 400;
        }
        u->parts = malloc(sizeof(*u->parts));
        return !u->parts ? 503 : multipart_init(u->parts, type ? type : "", err) < 0 ? 400 : 0;
}

void upload_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, const struct envd_user *user,
                  const struct query *q) {
        struct upload *u = call_new(box, c, &upload_ops);
        struct err err = { 0 };
        unsigned status;

        if (!u)
                return;
        u->call.user = user;
        u->query = *q;
        status = prepare(u, head, &err);
        if (status)
                fail(u, status, err.msg);
        else
                job_start(&u->job, &u->call, &job_ops, false);
}
