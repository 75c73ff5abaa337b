/*
 * download.c - GET /files: one file, or a range of it.
 *
 * The length is announced where it is known to mean something: not for links, whose entry is their own, and not for
 * files that say 0, as those of /proc do. A file that shrinks under us ends the connection, so that nobody takes a part
 * of it for the whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agentproto/agentproto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "envd/job.h"
#include "envd/text.h"
#include "envd/transfer.h"
#include "fileproto/fileproto.h"
#include "http/server.h"

enum step { ASKS, READS, SENDS };

struct download {
        struct call call; /* first */
        struct job job;
        enum step step;
        bool ranged, bounded; /* a range was found; `left` counts */
        uint64_t offset, left, size;
        char path[AP_PATH_MAX];
};

static const char *range_of(const struct download *d) {
        const struct http_head *head = http_conn_head(d->call.conn);

        /* Nothing here can tell whether a file is still the same, so a range under that condition is not one. */
        return http_header(head, "If-Range", NULL) ? NULL : http_header(head, "Range", NULL);
}

static void ask(struct download *d, unsigned type, const char *path) {
        struct fp_request q = { .path = path };

        d->step = type == AP_READ ? READS : ASKS;
        if (type == AP_READ) {
                q.offset = d->ranged ? d->offset : 0;
                q.length = d->ranged ? d->left : UINT64_MAX;
        }
        job_ask(&d->job, type, &q);
}

static void on_ready(void *owner) {
        struct download *d = owner;

        ask(d, range_of(d) ? AP_STAT : AP_READ, d->path);
}

static void fail(struct download *d, int r, bool clean) {
        call_tell(&d->call, "download", d->path, r);
        job_end(&d->job, clean);
        if (d->step == SENDS)
                http_reply_abort(d->call.conn);
        else
                call_error(&d->call, answer_status(r), "path '%.256s' %s", d->path, answer_why(r));
}

/* The file's size, for a range. */
static void on_stat(struct download *d, const struct fp_entry *e) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };
        int r;

        if (S_ISLNK(e->mode) && *e->target && !S_ISLNK(e->target_mode)) {
                ask(d, AP_STAT, e->target);
                return;
        }
        if (!S_ISREG(e->mode)) {
                ask(d, AP_READ, d->path); /* it says what is wrong */
                return;
        }
        d->size = e->size;
        r = e->size == 0 ? 0 : transfer_range(range_of(d), e->size, &d->offset, &d->left);
        if (r < 0) {
                job_end(&d->job, true);
                answer_lines(d->call.envd, d->call.box->target, d->call.conn, 416, NULL, &lines);
                http_addf(&lines, "Content-Range", "bytes */%" PRIu64, e->size);
                if (http_reply(d->call.conn, 416, &lines, NULL, 0, &err) < 0)
                        http_reply_abort(d->call.conn);
                buf_done(&lines);
                return;
        }
        d->ranged = r > 0;
        ask(d, AP_READ, d->path);
}

/* RFC 8187; every byte that is no plain letter or digit is escaped. */
static void add_name(struct buf *lines, const char *path) {
        struct buf value = BUF_INIT(4096);

        buf_addf(&value, "inline; filename*=UTF-8''");
        for (const unsigned char *p = (const unsigned char *) text_name(path); *p; p++)
                if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", *p))
                        buf_add(&value, p, 1);
                else
                        buf_addf(&value, "%%%02X", *p);
        if (!value.bad)
                http_add(lines, "Content-Disposition", buf_str(&value));
        buf_done(&value);
}

static void on_open(struct download *d, const struct fp_entry *e) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        unsigned status = d->ranged ? 206 : 200;
        time_t when = (time_t) e->mtime_s;
        struct err err = { 0 };
        char text[40];
        struct tm tm;

        d->bounded = d->ranged || (S_ISREG(e->mode) && e->size > 0 && e->size <= INT64_MAX);
        if (!d->ranged)
                d->left = e->size;
        answer_lines(d->call.envd, d->call.box->target, d->call.conn, status, "application/octet-stream", &lines);
        add_name(&lines, d->path);
        http_add(&lines, "Accept-Ranges", "bytes");
        if (S_ISREG(e->mode) && when > 0 && gmtime_r(&when, &tm) &&
            strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
                http_add(&lines, "Last-Modified", text);
        if (d->ranged)
                http_addf(&lines, "Content-Range", "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, d->offset,
                          d->offset + d->left - 1, d->size);
        d->step = SENDS;
        if (http_reply_start(d->call.conn, status, &lines, d->bounded ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED, d->left,
                             &err) < 0)
                http_reply_abort(d->call.conn);
        buf_done(&lines);
}

static void on_data(struct download *d, const uint8_t *body, size_t n) {
        struct err err = { 0 };

        if (d->bounded && n > d->left)
                n = (size_t) d->left; /* it has grown since */
        d->left -= d->bounded ? n : 0;
        if (n > 0)
                (void) http_reply_body(d->call.conn, body, n, &err);
        if (http_reply_is_full(d->call.conn))
                agent_pause(job_agent(&d->job));
}

static void on_whole(struct download *d) {
        struct err err = { 0 };

        call_tell(&d->call, "download", d->path, 0);
        job_end(&d->job, true);
        if (d->bounded && d->left > 0)
                http_reply_abort(d->call.conn);
        else
                (void) http_reply_end(d->call.conn, &err);
}

static int on_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct download *d = owner;
        struct fp_entry e;
        char step[32];
        int r;

        if (head->id != d->job.id)
                return err_set(err, -EPROTO, ERR_PEER, "an answer to another request");
        if (head->type == AP_ERROR) {
                r = job_error(body, n, step, sizeof(step));
                if (r == -EPROTO)
                        return err_set(err, r, ERR_PEER, "malformed error");
                fail(d, r, true);
        } else if (head->type == AP_ENTRY && d->step != SENDS && fp_get_entry(body, n, &e) == 0) {
                if (d->step == ASKS)
                        on_stat(d, &e);
                else
                        on_open(d, &e);
        } else if (head->type == AP_DATA && d->step == SENDS && n > 0 && n <= AP_CHUNK) {
                on_data(d, body, n);
        } else if (head->type == AP_DATA_END && d->step == SENDS && n == 0) {
                on_whole(d);
        } else {
                return err_set(err, -EPROTO, ERR_PEER, "a frame that does not belong to a file");
        }
        return 0;
}

static void on_failed(void *owner, int r) {
        fail(owner, r, false);
}

static const struct job_ops job_ops = { .on_ready = on_ready, .on_frame = on_frame, .on_failed = on_failed };

static void on_end(struct call *c) {
        job_start(&((struct download *) c)->job, c, &job_ops, false);
}

static void on_room(struct call *c) {
        struct agent *a = job_agent(&((struct download *) c)->job);

        if (a)
                agent_resume(a);
}

static void on_launched(struct call *c, int r) {
        job_launched(&((struct download *) c)->job, r);
}

static void on_free(struct call *c) {
        job_end(&((struct download *) c)->job, false);
}

static const struct call_ops download_ops = {
        .size = sizeof(struct download),
        .body_max = 1,
        .on_end = on_end,
        .on_room = on_room,
        .on_launched = on_launched,
        .on_free = on_free,
};

void download_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head,
                    const struct envd_user *user, const char *path) {
        struct download *d = call_new(box, c, &download_ops);

        (void) head;
        if (!d)
                return;
        d->call.user = user;
        (void) str_copy(d->path, sizeof(d->path), path); /* text_path() looked at its length */
}
