/*
 * dossiers.c - the reading thread. It reads the files like any reader and opens the key for itself, so it shares
 * nothing with the writer but the directory. Started with the first request: most notaries, and all that belong to one
 * run, never need it.
 */
#include "notary/dossiers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "dossier/dossier.h"
#include "ledger/ledger.h"

enum { WAITING = 8 };

struct request {
        struct dossier_reply reply;
        char tenant[AUDIT_NAME], sandbox[ID_TEXT]; /* "": records */
        uint64_t from;
        uint32_t left;
        int into;
};

struct dossiers {
        const char *dir;
        int done_fd;
        struct request ring[WAITING];
        uint64_t asked, done, taken;
        bool started, stop;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
};

struct page {
        struct buf text;
        uint32_t left;
        uint64_t next; /* 0: that was all */
};

static int page_add(void *arg, const struct ledger_line *l) {
        struct page *p = arg;

        if (p->left == 0 || p->text.len > NOTARY_READ_BYTES) {
                p->next = l->seq;
                return 1;
        }
        buf_addf(&p->text, "%s", p->text.p[p->text.len - 1] == '[' ? "" : ",");
        buf_add(&p->text, l->text, l->n);
        p->left--;
        return 0;
}

/* Records as they are written, and the newest head, as one JSON text. */
static int page_make(const char *dir, const struct request *r, char **ret, struct err *err) {
        struct page p = { .text = BUF_INIT(NOTARY_READ_BYTES + 2 * AUDIT_LINE_MAX), .left = r->left };
        char note[AUDIT_HEAD_BYTES];
        struct audit_head head;
        int x = ledger_head(dir, r->tenant, note, &head, err);

        buf_addf(&p.text, "{\"head\":\"");
        for (const char *at = x < 0 ? "" : note; *at; at++) /* its lines have no quotes */
                buf_add(&p.text, *at == '\n' ? "\\n" : at, *at == '\n' ? 2 : 1);
        buf_addf(&p.text, "\",\"records\":[");
        if (x == 0)
                x = ledger_each(dir, r->tenant, r->from, page_add, &p, err);
        else if (x == -ENOENT || x == -ENODATA)
                x = 0; /* nothing was ever recorded of that tenant */
        buf_addf(&p.text, "],\"next\":%" PRIu64 "}", p.next);
        if (x >= 0 && p.text.bad)
                x = err_set(err, -EFBIG, ERR_LIMIT, "audit: the records do not fit");
        *ret = x < 0 ? NULL : TAKE_PTR(p.text.p);
        buf_done(&p.text);
        return x < 0 ? x : 0;
}

static void make(const char *dir, struct request *r) {
        AUTO_FREE char *text = NULL;
        int e = r->sandbox[0] ? dossier_make(dir, r->tenant, r->sandbox, &text, &r->reply.result)
                              : page_make(dir, r, &text, &r->reply.result);

        if (e == 0) {
                r->reply.result = (struct err){ 0 };
                e = fd_write_all(r->into, text, strlen(text));
                if (e < 0)
                        (void) err_set(&r->reply.result, e, ERR_PEER, "dossier: %s", strerror(-e));
        }
        (void) close(r->into);
}

static void *reader(void *arg) {
        struct dossiers *d = arg;

        (void) pthread_mutex_lock(&d->lock);
        for (;;) {
                while (d->asked == d->done && !d->stop)
                        (void) pthread_cond_wait(&d->wake, &d->lock);
                if (d->stop)
                        break;
                (void) pthread_mutex_unlock(&d->lock);
                make(d->dir, &d->ring[d->done % WAITING]);
                (void) pthread_mutex_lock(&d->lock);
                d->done++;
                (void) eventfd_write(d->done_fd, 1);
        }
        (void) pthread_mutex_unlock(&d->lock);
        return NULL;
}

int dossiers_new(const char *dir, struct dossiers **ret, struct err *err) {
        struct dossiers *d = calloc(1, sizeof(*d));

        if (!d)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "notary: out of memory");
        d->dir = dir;
        d->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        (void) pthread_mutex_init(&d->lock, NULL);
        (void) pthread_cond_init(&d->wake, NULL);
        *ret = d;
        return d->done_fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "notary: eventfd: %s", strerror(errno)) : 0;
}

struct dossiers *dossiers_free(struct dossiers *d) {
        if (!d)
                return NULL;
        if (d->started) {
                (void) pthread_mutex_lock(&d->lock);
                d->stop = true;
                (void) pthread_cond_signal(&d->wake);
                (void) pthread_mutex_unlock(&d->lock);
                (void) pthread_join(d->thread, NULL);
        }
        for (uint64_t i = d->done; i < d->asked; i++)
                (void) close(d->ring[i % WAITING].into);
        (void) pthread_cond_destroy(&d->wake);
        (void) pthread_mutex_destroy(&d->lock);
        own_closep(&d->done_fd);
        free(d);
        return NULL;
}

int dossiers_done_fd(const struct dossiers *d) {
        return d->done_fd;
}

int dossiers_ask(struct dossiers *d, const struct dossier_ask *a, int into, struct err *err) {
        struct request *r = &d->ring[d->asked % WAITING];
        int e = 0;

        /* Only memory has seals: a pipe or a file of the peer's choice could keep the thread for ever. */
        if (fcntl(into, F_GET_SEALS) < 0)
                return err_set(err, -EBADMSG, ERR_PEER, "dossier: the descriptor is not memory");
        if (d->asked - d->taken == WAITING)
                return err_set(err, -EBUSY, ERR_BUSY, "notary: %d dossiers are being made; try again", WAITING);
        if (!d->started)
                e = pthread_create(&d->thread, NULL, reader, d);
        if (e != 0)
                return err_set(err, -e, ERR_INTERNAL, "notary: thread: %s", strerror(e));
        d->started = true;
        *r = (struct request){ .reply = a->reply, .into = into, .from = a->from, .left = a->n };
        (void) str_copy(r->tenant, sizeof(r->tenant), a->tenant);
        (void) str_copy(r->sandbox, sizeof(r->sandbox), a->sandbox ? a->sandbox : "");
        (void) pthread_mutex_lock(&d->lock);
        d->asked++;
        (void) pthread_cond_signal(&d->wake);
        (void) pthread_mutex_unlock(&d->lock);
        return 0;
}

bool dossiers_done(struct dossiers *d, struct dossier_reply *ret) {
        eventfd_t count;
        uint64_t done;

        (void) eventfd_read(d->done_fd, &count);
        (void) pthread_mutex_lock(&d->lock);
        done = d->done;
        (void) pthread_mutex_unlock(&d->lock);
        if (d->taken == done)
                return false;
        *ret = d->ring[d->taken++ % WAITING].reply;
        return true;
}
