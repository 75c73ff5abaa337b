/*
 * dossiers.c - the reading thread. It reads the files like any reader and opens the key for itself, so it shares
 * nothing with the writer but the directory. Started with the first request: most notaries, and all that belong to one
 * run, never need it.
 */
#include "notary/dossiers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "dossier/dossier.h"

enum { WAITING = 8 };

struct request {
        struct dossier_reply reply;
        char tenant[AUDIT_NAME], sandbox[ID_TEXT];
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

static void make(const char *dir, struct request *r) {
        AUTO_FREE char *text = NULL;
        int e = dossier_make(dir, r->tenant, r->sandbox, &text, &r->reply.result);

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

int dossiers_ask(struct dossiers *d, const struct dossier_reply *to, const char *tenant, const char *sandbox, int into,
                 struct err *err) {
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
        *r = (struct request){ .reply = *to, .into = into };
        (void) str_copy(r->tenant, sizeof(r->tenant), tenant);
        (void) str_copy(r->sandbox, sizeof(r->sandbox), sandbox);
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
