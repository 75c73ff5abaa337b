/*
 * audit_export.c - `gabion audit export`: from the cursor on, in batches, and the cursor moves when a batch was taken.
 *
 * Invariant: nothing is skipped. A batch that the receiver did not take is sent again, now or by the next export; so a
 * receiver may see a record twice, and knows it by its event id. What a receiver refuses for good ends the export, with
 * the cursor in front of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/audit_send.h"
#include "cli/cli.h"
#include "json/json.h"

enum {
        BATCH_RECORDS = 500,
        BATCH_BYTES = 1 << 20,
        IDLE_MS = 500,
        WAIT_FIRST_MS = 500,
        WAIT_MOST_MS = 60000,
        TRIES = 4
};

struct exporting {
        const struct audit_words *w;
        const char *tenant;
        enum export_form form;
        struct sender sender;
        struct buf batch;
        uint64_t next;    /* record to deliver */
        uint64_t batched; /* last one in the batch; 0: none */
        size_t n;
        char id[AUDIT_ID]; /* of a webhook's record */
        char host[AUDIT_NAME];
        struct err *err;
};

/* --- cursor --- */

static int cursor_read(struct exporting *x, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        char text[512];
        const char *tenant;
        int n;

        x->next = 1;
        if (!x->w->cursor)
                return 0;
        n = fd_read_at(AT_FDCWD, x->w->cursor, text, sizeof(text));
        if (n == -ENOENT)
                return 0;
        if (n < 0)
                return err_set(err, n, ERR_INVALID, "--cursor %.150s: %s", x->w->cursor, strerror(-n));
        if (json_parse(x->w->cursor, text, (size_t) n, &doc, err) < 0)
                return err->code;
        tenant = json_get_str(doc, "tenant");
        if (!tenant || !str_eq(tenant, x->tenant) || json_get_int(doc, "next", 0) < 1)
                return err_set(err, -EINVAL, ERR_INVALID, "--cursor %.150s: it is not a cursor of tenant %s",
                               x->w->cursor, x->tenant);
        x->next = (uint64_t) json_get_int(doc, "next", 1);
        return 0;
}

/* Replaced as a whole and durable: the next export must not begin behind what was delivered, nor far before it. */
static int cursor_write(const struct exporting *x, struct err *err) {
        char text[256], path[512];
        AUTO_FD int fd = -1;
        int n;

        if (!x->w->cursor)
                return 0;
        n = snprintf(text, sizeof(text), "{\"next\":%" PRIu64 ",\"tenant\":\"%s\"}\n", x->next, x->tenant);
        (void) snprintf(path, sizeof(path), "%.480s.new", x->w->cursor);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || fd_write_all(fd, text, (size_t) n) < 0 || fsync(fd) < 0 || rename(path, x->w->cursor) < 0)
                return err_set(err, -errno, ERR_INVALID, "--cursor %.150s: %s", x->w->cursor, strerror(errno));
        return 0;
}

/* --- batches --- */

static void batch_clear(struct exporting *x) {
        x->batch.len = 0;
        x->batch.bad = false;
        x->batched = 0;
        x->n = 0;
}

static void id_take(struct exporting *x, const char *line, size_t n) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };
        const char *id = NULL;

        if (json_parse("record", line, n, &doc, &err) == 0)
                id = json_get_str(json_get(doc, "metadata"), "uid");
        (void) snprintf(x->id, sizeof(x->id), "%.24s", id ? id : "");
}

enum { FULL = 1 };

static int batch_add(void *arg, const struct ledger_line *l) {
        struct exporting *x = arg;
        size_t most = sender_is_single(x->form) ? 1 : BATCH_RECORDS;
        size_t before = x->batch.len;
        struct buf one = BUF_INIT(BATCH_BYTES);
        int r = 0;

        if (x->n == most || x->batch.len > BATCH_BYTES / 2)
                return FULL;
        if (x->n == 0)
                export_begin(x->form, x->host, &x->batch);
        if (sender_is_framed(&x->sender, x->form)) {
                r = export_add(x->form, l->text, l->n, &one, x->err);
                sender_frame(&x->sender, &one, &x->batch);
        } else {
                r = export_add(x->form, l->text, l->n, &x->batch, x->err);
                if (x->sender.kind == SEND_FILE && x->form != EXPORT_OCSF && x->form != EXPORT_OTLP)
                        buf_add(&x->batch, "\n", 1);
        }
        buf_done(&one);
        if (r < 0) {
                x->batch.len = before;
                return err_wrap(x->err, "record %" PRIu64, l->seq);
        }
        if (x->form == EXPORT_WEBHOOK)
                id_take(x, l->text, l->n);
        x->batched = l->seq;
        x->n++;
        return 0;
}

/* Until it was taken. Alone: a few times; following: for ever, ever more slowly. */
static int deliver(struct exporting *x, struct err *err) {
        unsigned wait = WAIT_FIRST_MS;
        int r;

        for (unsigned i = 1;; i++) {
                unsigned asked = 0;

                r = sender_send(&x->sender, &x->batch, x->id, &asked, err);
                if (r != -EAGAIN)
                        return r;
                if (!x->w->follow && i == TRIES)
                        return err_set(err, -EAGAIN, ERR_BUSY,
                                       "%.100s does not take records now: %.120s; nothing is lost, export again later",
                                       x->w->to, sender_why(&x->sender));
                wait = asked > wait ? asked : wait;
                (void) poll(NULL, 0, (int) (wait < WAIT_MOST_MS ? wait : WAIT_MOST_MS));
                wait = wait < WAIT_MOST_MS / 2 ? 2 * wait : WAIT_MOST_MS;
        }
}

/* One batch. 1: there may be more; 0: nothing was there. */
static int step(struct exporting *x, struct err *err) {
        int r;

        batch_clear(x);
        r = ledger_each(x->w->log, x->tenant, x->next, batch_add, x, err);
        if (r < 0)
                return r;
        if (x->n == 0)
                return 0;
        export_end(x->form, &x->batch);
        if (x->sender.kind == SEND_FILE && x->form == EXPORT_OTLP)
                buf_add(&x->batch, "\n", 1);
        if (x->batch.bad)
                return err_set(err, -E2BIG, ERR_LIMIT, "export: record %" PRIu64 " is too large for this form",
                               x->next);
        r = deliver(x, err);
        if (r < 0)
                return r;
        x->next = x->batched + 1;
        r = cursor_write(x, err);
        return r < 0 ? r : 1;
}

int audit_export(const struct audit_words *w) {
        struct exporting x = { .w = w, .tenant = w->tenant ? w->tenant : "local" };
        struct err err = { 0 };
        uint64_t before;
        int r;

        if (w->n_args > 0)
                return cli_usage("audit", "export: no arguments are expected");
        x.err = &err;
        (void) gethostname(x.host, sizeof(x.host) - 1);
        x.form = export_form_find(w->format);
        if (x.form == EXPORT_FORMS)
                return cli_usage("audit", "--format '%.20s': ocsf, syslog, cef, otlp, hec or webhook is expected",
                                 w->format);
        x.batch = BUF_INIT((size_t) 2 * BATCH_BYTES);
        r = sender_open(&x.sender, x.form, w->to, w->secret, w->headers, &err);
        if (r == 0)
                r = cursor_read(&x, &err);
        before = x.next;
        while (r >= 0) {
                r = step(&x, &err);
                if (r == 0 && !w->follow)
                        break;
                if (r == 0)
                        (void) poll(NULL, 0, IDLE_MS);
        }
        sender_close(&x.sender);
        buf_done(&x.batch);
        if (x.sender.kind != SEND_FILE)
                (void) fprintf(stderr, "gabion: %" PRIu64 " records were delivered; next is %" PRIu64 "%s\n",
                               x.next - before, x.next,
                               x.sender.rejected ? "; some were rejected by the receiver" : "");
        return r < 0 ? cli_fail(&err) : 0;
}
