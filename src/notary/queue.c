/*
 * queue.c - a ring of jobs between two threads.
 *
 * Three numbers, each written by one side: pushed (loop), done (writer), released (loop). released <= done <= pushed <=
 * released + NOTARY_QUEUE. The writer takes all jobs there are, up to BATCH, and makes them durable with one commit:
 * the busier the notary, the larger the groups. Jobs for which nobody waits do not make it begin, for a while: the
 * commit of the next that matters takes them along. The ring is allocated once, so memory does not grow.
 *
 * Documents for which nobody waits are written behind the commit of their batch, so that no event waits for a file to
 * be made; but before anything is read that was asked for later.
 */
#include "notary/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

enum { BATCH = 256, RETAIN_S = 600, QUIET_MS = 200, LINGER_JOBS = NOTARY_IN_FLIGHT / 4 };

struct document {
        char tenant[AUDIT_NAME], sandbox[ID_TEXT], what[8];
        char *text;
        size_t n;
};

struct queue {
        const struct notary_settings *s;
        struct ledger *ledger;
        struct job *jobs;
        struct document documents[BATCH]; /* of the last batch, to be written */
        size_t n_documents;
        uint64_t pushed, done, released;
        uint64_t urgent;    /* behind the last job that somebody waits for */
        uint64_t oldest_ns; /* since when jobs wait */
        int done_fd;
        bool stop, started;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
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
}

static int document_write(struct queue *q, struct document *d, struct err *err) {
        AUTO_FREE char *text = TAKE_PTR(d->text);

        return ledger_statement(q->ledger, d->tenant, d->sandbox, d->what, text, d->n, err);
}

static void job_do(struct queue *q, struct job *j) {
        int r = 0;

        switch (j->kind) {
        case JOB_EVENT:
                r = ledger_append(q->ledger, &j->ev, &j->seq, &j->result);
                break;
        case JOB_STATEMENT:
                document_keep(q, j);
                if (!j->lazy)
                        r = document_write(q, &q->documents[--q->n_documents], &j->result);
                break;
        case JOB_ROTATE:
                r = ledger_rotate_key(q->ledger, &j->result);
                break;
        case JOB_READ:
                break;
        }
        if (r >= 0)
                j->result = (struct err){ 0 };
}

static void batch_do(struct queue *q, uint64_t from, uint64_t to) {
        struct err all = { 0 };

        for (uint64_t i = from; i < to; i++)
                job_do(q, job_at(q, i));
        if (ledger_commit(q->ledger, &all) < 0)
                for (uint64_t i = from; i < to; i++) {
                        struct job *j = job_at(q, i);

                        if (j->kind == JOB_EVENT && j->result.code == 0)
                                (void) ledger_result(q->ledger, j->ev.tenant, &j->result);
                }
}

static void documents_write(struct queue *q) {
        struct err err = { 0 };

        while (q->n_documents > 0)
                if (document_write(q, &q->documents[--q->n_documents], &err) < 0)
                        (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
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

/* Waits for jobs, at most until the next look at what may be dropped. False: the end. */
static bool wait_for_jobs(struct queue *q, uint64_t until_ns, uint64_t *ret_from, uint64_t *ret_to) {
        bool stop;

        (void) pthread_mutex_lock(&q->lock);
        while (q->urgent <= q->done && q->pushed - q->done < LINGER_JOBS && !q->stop) {
                uint64_t until = q->oldest_ns + NOTARY_LINGER_MS * 1000000ull;
                struct timespec ts;

                if (q->pushed == q->done || until > until_ns)
                        until = until_ns;
                ts = (struct timespec){ .tv_sec = (time_t) (until / 1000000000),
                                        .tv_nsec = (long) (until % 1000000000) };
                if (pthread_cond_timedwait(&q->wake, &q->lock, &ts) == ETIMEDOUT)
                        break;
        }
        *ret_from = q->done;
        *ret_to = batch_end(q);
        stop = q->stop && q->pushed == q->done;
        (void) pthread_mutex_unlock(&q->lock);
        return !stop;
}

static void tell_done(struct queue *q, uint64_t to) {
        (void) pthread_mutex_lock(&q->lock);
        q->done = to;
        q->oldest_ns = clock_mono_ns();
        (void) pthread_mutex_unlock(&q->lock);
        (void) eventfd_write(q->done_fd, 1);
}

static void *writer(void *arg) {
        struct queue *q = arg;
        uint64_t from, to, retain_ns = clock_mono_ns();
        struct err err = { 0 };
        bool unsynced = false;

        for (;;) {
                uint64_t soon = clock_mono_ns() + QUIET_MS * 1000000ull;

                if (!wait_for_jobs(q, unsynced && soon < retain_ns ? soon : retain_ns, &from, &to))
                        break;
                if (clock_mono_ns() >= retain_ns) {
                        if (q->s->n_keeps > 0)
                                (void) ledger_tenants(q->s->log.dir, retain_one, q, &err);
                        retain_ns = clock_mono_ns() + RETAIN_S * 1000000000ull;
                }
                if (from == to) { /* a quiet moment: documents become durable, which nobody waits for */
                        if (ledger_sync(q->ledger, &err) < 0)
                                (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
                        unsynced = false;
                        continue;
                }
                batch_do(q, from, to);
                tell_done(q, to);
                documents_write(q);
                unsynced = true;
        }
        return NULL;
}

int queue_new(const struct notary_settings *s, struct queue **ret, struct err *err) {
        struct queue *q = calloc(1, sizeof(*q));
        pthread_condattr_t attr;
        int r;

        if (!q)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");
        q->s = s;
        q->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        q->jobs = calloc(NOTARY_QUEUE, sizeof(*q->jobs));
        (void) pthread_mutex_init(&q->lock, NULL);
        (void) pthread_condattr_init(&attr);
        (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&q->wake, &attr);
        (void) pthread_condattr_destroy(&attr);
        r = q->done_fd < 0 || !q->jobs ? err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory")
                                       : ledger_open(&s->log, &q->ledger, err);
        if (r == 0 && s->recover)
                r = ledger_recover(q->ledger, err);
        if (r == 0) {
                r = -pthread_create(&q->thread, NULL, writer, q);
                if (r < 0)
                        (void) err_set(err, r, ERR_INTERNAL, "notary: thread: %s", strerror(-r));
        }
        q->started = r == 0;
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
        if (q->started) {
                (void) pthread_mutex_lock(&q->lock);
                q->stop = true;
                (void) pthread_cond_signal(&q->wake);
                (void) pthread_mutex_unlock(&q->lock);
                (void) pthread_join(q->thread, NULL);
        }
        (void) ledger_free(q->ledger);
        own_closep(&q->done_fd);
        (void) pthread_cond_destroy(&q->wake);
        (void) pthread_mutex_destroy(&q->lock);
        free(q->jobs);
        free(q);
        return NULL;
}

int queue_done_fd(const struct queue *q) {
        return q->done_fd;
}

struct job *queue_place(struct queue *q) {
        return queue_place_at(q, 0);
}

struct job *queue_place_at(struct queue *q, size_t i) {
        return q->pushed + i - q->released < NOTARY_QUEUE ? job_at(q, q->pushed + i) : NULL;
}

void queue_push(struct queue *q) {
        bool wakes;

        (void) pthread_mutex_lock(&q->lock);
        wakes = !job_at(q, q->pushed)->lazy || q->pushed == q->done || q->pushed - q->done >= LINGER_JOBS;
        if (q->pushed == q->done)
                q->oldest_ns = clock_mono_ns();
        q->pushed++;
        if (!job_at(q, q->pushed - 1)->lazy)
                q->urgent = q->pushed;
        if (wakes)
                (void) pthread_cond_signal(&q->wake);
        (void) pthread_mutex_unlock(&q->lock);
}

struct job *queue_done(struct queue *q) {
        uint64_t done;

        (void) pthread_mutex_lock(&q->lock);
        done = q->done;
        (void) pthread_mutex_unlock(&q->lock);
        return q->released < done ? job_at(q, q->released) : NULL;
}

void queue_release(struct queue *q) {
        q->released++;
}

bool queue_idle(const struct queue *q) {
        return q->released == q->pushed;
}
