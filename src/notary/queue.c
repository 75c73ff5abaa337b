/*
 * queue.c - a ring of jobs between the requests and the disk.
 *
 * released <= done <= added <= pushed <= released + NOTARY_QUEUE. queue_turn() takes all jobs there are, up to BATCH,
 * and makes them durable with one commit; requests that come meanwhile wait in their sockets, and are the next batch:
 * the busier the notary, the larger the groups. There is no second thread: handing a job over and back would take as
 * long as the disk. Jobs for which nobody waits do not make it begin, for a while: the commit of the next that matters
 * takes them along. They are made into records when they come, so that whoever waits then waits for his own only. The
 * ring is allocated once, so memory does not grow.
 *
 * Documents for which nobody waits are written in a quiet moment behind the commit of their batch and its answers: who
 * was answered has something to do now, often on the same processor. But before anything is read that was asked for
 * later.
 */
#include "notary/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

enum {
        BATCH = 256,
        DOCUMENTS = 2 * BATCH,
        DOCUMENT_BYTES = 1 << 20,
        RETAIN_S = 600,
        SYNC_MS = 200,
        LINGER_JOBS = NOTARY_IN_FLIGHT / 4
};

static const uint64_t MS = 1000000; /* in nanoseconds */

struct document {
        char tenant[AUDIT_NAME], sandbox[ID_TEXT], what[8];
        char *text;
        size_t n;
};

struct queue {
        const struct notary_settings *s;
        struct ledger *ledger;
        struct job *jobs;
        struct document documents[DOCUMENTS]; /* to be written */
        size_t n_documents, document_bytes;
        uint64_t pushed, added, done, released; /* added: given to the ledger, which has not committed them */
        uint64_t urgent;                        /* behind the last job that somebody waits for */
        uint64_t oldest_ns;                     /* since when jobs wait */
        uint64_t quiet_ns;                      /* when nobody has waited for a while */
        uint64_t sync_ns;                       /* when documents are to be durable; 0: they are */
        uint64_t retain_ns;                     /* the next look at what may be dropped */
};

static struct job *job_at(const struct queue *q, uint64_t i) {
        return &q->jobs[i % NOTARY_QUEUE];
}

/* The place of a job is free as soon as it is told done, so a document that is written later is put aside. */
static void document_keep(struct queue *q, struct job *j) {
        struct document *d = &q->documents[q->n_documents++];

        *d = (struct document){ .text = TAKE_PTR(j->text), .n = j->n };
        memcpy(d->tenant, j->ev.tenant, sizeof(d->tenant));
        memcpy(d->sandbox, j->ev.sandbox, sizeof(d->sandbox));
        memcpy(d->what, j->what, sizeof(d->what));
        q->document_bytes += j->n;
}

static int document_write(struct queue *q, struct document *d, struct err *err) {
        AUTO_FREE char *text = TAKE_PTR(d->text);

        return ledger_statement(q->ledger, d->tenant, d->sandbox, d->what, text, d->n, err);
}

static void documents_write(struct queue *q) {
        struct err err = { 0 };

        for (size_t i = 0; i < q->n_documents; i++)
                if (document_write(q, &q->documents[i], &err) < 0)
                        (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
        q->n_documents = q->document_bytes = 0;
}

static void job_do(struct queue *q, struct job *j) {
        int r = 0;

        switch (j->kind) {
        case JOB_EVENT:
                r = ledger_append(q->ledger, &j->ev, &j->seq, &j->result);
                break;
        case JOB_STATEMENT:
                document_keep(q, j);
                if (!j->lazy) {
                        r = document_write(q, &q->documents[--q->n_documents], &j->result);
                        q->document_bytes -= j->n;
                }
                break;
        case JOB_ROTATE:
                r = ledger_rotate_key(q->ledger, &j->result);
                break;
        case JOB_READ:
                documents_write(q);
                break;
        }
        if (r >= 0)
                j->result = (struct err){ 0 };
}

static void add_until(struct queue *q, uint64_t to) {
        if (q->n_documents > DOCUMENTS - BATCH)
                documents_write(q);
        while (q->added < to)
                job_do(q, job_at(q, q->added++));
}

static void batch_do(struct queue *q, uint64_t to) {
        struct err all = { 0 };

        add_until(q, to);
        if (ledger_commit(q->ledger, &all) < 0)
                for (uint64_t i = q->done; i < to; i++) {
                        struct job *j = job_at(q, i);

                        if (j->kind == JOB_EVENT && j->result.code == 0)
                                (void) ledger_result(q->ledger, j->ev.tenant, &j->result);
                }
        q->done = to;
}

static uint64_t keep_of(const struct notary_settings *s, const char *tenant) {
        uint64_t keep = 0;

        for (size_t i = 0; i < s->n_keeps; i++)
                if (str_eq(s->keeps[i].tenant, tenant))
                        return s->keeps[i].keep_ms;
                else if (!s->keeps[i].tenant[0])
                        keep = s->keeps[i].keep_ms;
        return keep;
}

static int retain_one(void *arg, const char *tenant) {
        const struct queue *q = arg;
        uint64_t keep = keep_of(q->s, tenant);
        struct err err = { 0 };

        if (keep > 0)
                (void) ledger_retain(q->ledger, tenant, keep,
                                     &err); /* tried again later; a damaged log stays as it is */
        return 0;
}

/* A change of keys commits by itself, and reading wants what is before it: each is a batch of its own. */
static uint64_t batch_end(const struct queue *q) {
        uint64_t end = q->done;

        while (end < q->pushed && end < q->done + BATCH && job_at(q, end)->kind != JOB_ROTATE &&
               job_at(q, end)->kind != JOB_READ)
                end++;
        return end == q->done && end < q->pushed ? end + 1 : end;
}

static bool is_due(const struct queue *q, uint64_t now) {
        return q->urgent > q->done || q->pushed - q->done >= LINGER_JOBS ||
               (q->pushed > q->done && now >= q->oldest_ns + NOTARY_LINGER_MS * MS);
}

int queue_wait_ms(const struct queue *q) {
        uint64_t now = clock_mono_ns(), next;

        if (is_due(q, now))
                return 0;
        next = q->pushed > q->done ? q->oldest_ns + NOTARY_LINGER_MS * MS : q->retain_ns;
        if (q->added == q->done && q->n_documents > 0 && q->quiet_ns < next)
                next = q->quiet_ns;
        if (q->sync_ns > 0 && q->sync_ns < next)
                next = q->sync_ns;
        return next <= now ? 0 : (int) ((next - now) / MS) + 1;
}

void queue_turn(struct queue *q) {
        if (is_due(q, clock_mono_ns())) {
                bool urgent = q->urgent > q->done;

                batch_do(q, batch_end(q));
                q->oldest_ns = clock_mono_ns();
                if (urgent)
                        q->quiet_ns = q->oldest_ns + NOTARY_QUIET_MS * MS;
        } else if (q->added < q->pushed) {
                add_until(q, batch_end(q)); /* nobody waits for any of them */
        }
}

void queue_tidy(struct queue *q) {
        uint64_t now = clock_mono_ns();
        struct err err = { 0 };

        if (q->n_documents > 0 && ((now >= q->quiet_ns && q->added == q->done) || q->document_bytes > DOCUMENT_BYTES)) {
                documents_write(q);
                q->sync_ns = q->sync_ns ? q->sync_ns : now + SYNC_MS * MS;
        }
        if (q->sync_ns > 0 && now >= q->sync_ns) { /* nobody waits for this, and one flush is for all of them */
                if (ledger_sync(q->ledger, &err) < 0)
                        (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
                q->sync_ns = 0;
        }
        if (now >= q->retain_ns && q->added == q->done) {
                if (q->s->n_keeps > 0)
                        (void) ledger_tenants(q->s->log.dir, retain_one, q, &err);
                q->retain_ns = clock_mono_ns() + RETAIN_S * (1000 * MS);
        }
}

int queue_new(const struct notary_settings *s, struct queue **ret, struct err *err) {
        struct queue *q = calloc(1, sizeof(*q));
        int r;

        if (!q)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");
        q->s = s;
        q->jobs = calloc(NOTARY_QUEUE, sizeof(*q->jobs));
        r = q->jobs ? ledger_open(&s->log, &q->ledger, err)
                    : err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");
        if (r == 0 && s->recover)
                r = ledger_recover(q->ledger, err);
        if (r < 0) {
                (void) queue_free(q);
                return r;
        }
        *ret = q;
        return 0;
}

struct queue *queue_free(struct queue *q) {
        if (!q)
                return NULL;
        while (q->done < q->pushed) {
                q->urgent = q->pushed;
                queue_turn(q);
                documents_write(q);
        }
        documents_write(q);
        (void) ledger_free(q->ledger);
        free(q->jobs);
        free(q);
        return NULL;
}

struct job *queue_place(struct queue *q) {
        return queue_place_at(q, 0);
}

struct job *queue_place_at(struct queue *q, size_t i) {
        return q->pushed + i - q->released < NOTARY_QUEUE ? job_at(q, q->pushed + i) : NULL;
}

void queue_push(struct queue *q) {
        if (q->pushed == q->done)
                q->oldest_ns = clock_mono_ns();
        q->pushed++;
        if (!job_at(q, q->pushed - 1)->lazy)
                q->urgent = q->pushed;
}

struct job *queue_done(struct queue *q) {
        return q->released < q->done ? job_at(q, q->released) : NULL;
}

void queue_release(struct queue *q) {
        q->released++;
}

bool queue_is_quiet(const struct queue *q) {
        return clock_mono_ns() >= q->quiet_ns;
}

bool queue_idle(const struct queue *q) {
        return q->released == q->pushed;
}
