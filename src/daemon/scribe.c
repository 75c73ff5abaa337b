/*
 * scribe.c - see scribe.h.
 *
 * Messages wait in to_send, then in sent until the notary answers; replies carry the serial of their request. When the
 * notary goes away, what was asked fails and what was noted is sent again to the next one: a record may then be in the
 * log twice, under the same event id, but is not missing. The number of messages is bounded; notes beyond it are
 * counted, and the log is told of them.
 */
#include "daemon/scribe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "daemon/daemon.h"
#include "daemon/metrics.h"
#include "notary/notary.h"

enum { RETRY_MS = 50, PENDING = 4096, IN_FLIGHT = NOTARY_IN_FLIGHT / 2 };

static const struct err no_room = { .code = -EBUSY, .kind = ERR_BUSY, .msg = "audit: too much waits to be recorded" };

struct letter {
        TAILQ_ENTRY(letter) link;
        uint32_t serial;
        scribe_fn fn; /* NULL: a note */
        void *arg;
        struct err err;
        int fd; /* document, or memory for the answer; -1: none */
        bool is_read;
        size_t n;
        uint8_t bytes[];
};
TAILQ_HEAD(letters, letter);

struct scribe {
        struct daemon *d;
        int fd; /* -1: the notary is away */
        struct event *readable, *writable, *timer, *failing;
        struct letters to_send, sent, failed;
        size_t n, n_sent;
        uint32_t serial;
        uint64_t lost; /* notes for which there was no room */
        bool said;
};

bool scribe_is_up(const struct scribe *s) {
        return s && s->fd >= 0;
}

bool scribe_is_idle(const struct scribe *s) {
        return !s || s->fd < 0 || (TAILQ_EMPTY(&s->to_send) && TAILQ_EMPTY(&s->sent));
}

static void letter_free(struct scribe *s, struct letter *l) {
        own_closep(&l->fd);
        s->n--;
        free(l);
}

/* Told from the top of the loop, so that nobody is called back from inside its own call. */
static void letter_fail(struct scribe *s, struct letter *l, int code, const char *why) {
        (void) err_set(&l->err, code, ERR_BUSY, "audit: %s", why);
        TAILQ_INSERT_TAIL(&s->failed, l, link);
        event_active(s->failing, EV_TIMEOUT, 0);
}

static void on_failing(int fd, short what, void *arg) {
        struct scribe *s = arg;
        struct letters now = TAILQ_HEAD_INITIALIZER(now);
        struct letter *l;

        (void) fd, (void) what;
        TAILQ_CONCAT(&now, &s->failed, link);
        while ((l = TAILQ_FIRST(&now))) {
                TAILQ_REMOVE(&now, l, link);
                l->fn(l->arg, &l->err, -1);
                letter_free(s, l);
        }
}

/* Who asked is told; notes stay, in their order. */
static void give_back(struct scribe *s, struct letters *list, int code, const char *why) {
        struct letters notes = TAILQ_HEAD_INITIALIZER(notes);
        struct letter *l;

        while ((l = TAILQ_FIRST(list))) {
                TAILQ_REMOVE(list, l, link);
                if (l->fn)
                        letter_fail(s, l, code, why);
                else
                        TAILQ_INSERT_TAIL(&notes, l, link);
        }
        TAILQ_CONCAT(list, &notes, link);
}

static void retry_later(struct scribe *s) {
        static const struct timeval soon = { .tv_usec = RETRY_MS * 1000L };

        (void) event_add(s->timer, &soon);
}

static void hang_up(struct scribe *s, const char *why) {
        if (s->fd < 0)
                return;
        log_error(&s->d->log, "the audit log cannot be written",
                  &(struct err){ .code = -EPIPE, .kind = ERR_PEER, .msg = "the notary has gone away" });
        (void) why;
        (void) event_del(s->readable);
        (void) event_del(s->writable);
        (void) close(TAKE_FD(s->fd));
        give_back(s, &s->sent, -EPIPE, "the notary has gone away");
        give_back(s, &s->to_send, -EPIPE, "the notary has gone away");
        TAILQ_CONCAT(&s->sent, &s->to_send, link); /* what was sent is older */
        TAILQ_CONCAT(&s->to_send, &s->sent, link);
        s->n_sent = 0;
        retry_later(s);
}

static void flush(struct scribe *s) {
        struct letter *l;

        while (s->fd >= 0 && s->n_sent < IN_FLIGHT && (l = TAILQ_FIRST(&s->to_send))) {
                int r = ipc_send(s->fd, l->bytes, l->n, &l->fd, l->fd >= 0);

                if (r == -EAGAIN) {
                        (void) event_add(s->writable, NULL);
                        return;
                }
                if (r < 0) {
                        hang_up(s, strerror(-r));
                        return;
                }
                TAILQ_REMOVE(&s->to_send, l, link);
                TAILQ_INSERT_TAIL(&s->sent, l, link);
                s->n_sent++;
        }
}

static void on_writable(int fd, short what, void *arg) {
        (void) fd, (void) what;
        flush(arg);
}

static struct letter *letter_new(struct scribe *s, const uint8_t *p, size_t n, uint32_t serial, scribe_fn fn,
                                 void *arg) {
        struct letter *l = n > 0 && s->n < PENDING ? calloc(1, sizeof(*l) + n) : NULL;

        if (!l)
                return NULL;
        s->n++;
        l->serial = serial;
        l->fn = fn;
        l->arg = arg;
        l->fd = -1;
        l->n = n;
        memcpy(l->bytes, p, n);
        return l;
}

static void post(struct scribe *s, struct letter *l) {
        if (s->fd < 0 && l->fn) {
                letter_fail(s, l, -ECONNREFUSED, "the notary is not there");
                return;
        }
        TAILQ_INSERT_TAIL(&s->to_send, l, link);
        flush(s);
}

/* --- what comes --- */

static int on_reply(struct scribe *s, struct ipc_msg *m) {
        struct rd head = rd_from(m->bytes, m->n);
        struct err err = { 0 };
        uint32_t serial;
        struct letter *l;
        int r;

        (void) rd_u16(&head);
        serial = rd_u32(&head);
        TAILQ_FOREACH(l, &s->sent, link) { /* nearly always the first */
                if (l->serial == serial)
                        break;
        }
        if (!l)
                return -EBADMSG;
        r = ipc_result(m, serial, &err);
        if (r == -EPROTO)
                return r;
        TAILQ_REMOVE(&s->sent, l, link);
        s->n_sent--;
        if (l->fn)
                l->fn(l->arg, r < 0 ? &err : NULL, l->is_read ? l->fd : -1);
        else if (r < 0)
                log_error(&s->d->log, "a record was refused", &err);
        metrics_count(s->d->metrics, r < 0 ? METRIC_AUDIT_FAILED : METRIC_AUDIT);
        letter_free(s, l);
        return 0;
}

static void on_readable(int fd, short what, void *arg) {
        struct scribe *s = arg;
        struct ipc_msg m;

        (void) fd, (void) what;
        while (s->fd >= 0) {
                int r = ipc_recv(s->fd, &m);

                if (r == -EAGAIN)
                        break;
                if (r == 1)
                        r = on_reply(s, &m) < 0 ? -EBADMSG : 1;
                if (r >= 0)
                        ipc_msg_done(&m);
                if (r != 1)
                        hang_up(s, r == 0 ? "it closed the connection" : strerror(-r));
        }
        flush(s);
}

/* --- connecting --- */

static void tell_lost(struct scribe *s) {
        struct audit_event ev;
        uint64_t lost = s->lost;

        if (lost == 0)
                return;
        s->lost = 0;
        audit_event_init(&ev, AUDIT_ALERT, NOTARY_TENANT, "");
        audit_object(&ev, "records lost");
        audit_text(&ev, "found", "the notary was away, and there was no more room for what happened");
        audit_number(&ev, "count", (int64_t) lost);
        scribe_note(s, &ev);
}

static void on_timer(int fd, short what, void *arg) {
        struct scribe *s = arg;
        struct err err = { 0 };
        AUTO_FD int link = ipc_connect(s->d->config.audit, &err);
        int r = link < 0 ? link : 0;

        (void) fd, (void) what;
        if (r == 0 && (fcntl(link, F_SETFL, O_NONBLOCK) < 0 ||
                       event_assign(s->readable, s->d->base, link, EV_READ | EV_PERSIST, on_readable, s) < 0 ||
                       event_assign(s->writable, s->d->base, link, EV_WRITE, on_writable, s) < 0 ||
                       event_add(s->readable, NULL) < 0))
                r = err_set(&err, -EIO, ERR_INTERNAL, "audit: the notary cannot be asked");
        if (r < 0) {
                if (!s->said)
                        log_error(&s->d->log, "the notary cannot be reached; trying on", &err);
                s->said = true;
                retry_later(s);
                return;
        }
        s->said = false;
        s->fd = TAKE_FD(link);
        log_write(&s->d->log, LOG_INFO, "the notary is there", NULL);
        flush(s);
        tell_lost(s);
}

int scribe_new(struct daemon *d, struct scribe **ret, struct err *err) {
        struct scribe *s;

        if (!d->config.audit[0])
                return 0;
        s = calloc(1, sizeof(*s));
        if (!s)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "audit: out of memory");
        s->d = d;
        s->fd = -1;
        TAILQ_INIT(&s->to_send);
        TAILQ_INIT(&s->sent);
        TAILQ_INIT(&s->failed);
        s->readable = event_new(d->base, -1, 0, on_readable, s);
        s->writable = event_new(d->base, -1, 0, on_writable, s);
        s->timer = evtimer_new(d->base, on_timer, s);
        s->failing = evtimer_new(d->base, on_failing, s);
        *ret = s;
        if (!s->readable || !s->writable || !s->timer || !s->failing)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "audit: out of memory");
        on_timer(-1, 0, s);
        return 0;
}

struct scribe *scribe_free(struct scribe *s) {
        struct letters *lists[] = { &s->sent, &s->to_send };
        struct letter *l;

        if (!s)
                return NULL;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                if (s->failing)
                        give_back(s, lists[i], -ECANCELED, "the service is stopping");
        on_failing(-1, 0, s);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                while ((l = TAILQ_FIRST(lists[i]))) {
                        TAILQ_REMOVE(lists[i], l, link);
                        s->lost++;
                        letter_free(s, l);
                }
        if (s->lost > 0)
                log_error(&s->d->log, "records are lost", &no_room);
        for (size_t i = 0; i < 4; i++) {
                struct event *e[] = { s->readable, s->writable, s->timer, s->failing };

                if (e[i])
                        event_free(e[i]);
        }
        own_closep(&s->fd);
        free(s);
        return NULL;
}

/* --- asking --- */

static struct letter *event_letter(struct scribe *s, const struct audit_event *ev, const char *kind, scribe_fn fn,
                                   void *arg) {
        struct notary_batch b;
        const uint8_t *p;
        size_t n;

        notary_begin(&b);
        notary_put(&b, fn ? NOTARY_EVENT : NOTARY_NOTE, ev);
        p = notary_message(&b, kind, ++s->serial, &n);
        return letter_new(s, p, n, s->serial, fn, arg);
}

void scribe_ask(struct scribe *s, const struct audit_event *ev, scribe_fn fn, void *arg) {
        struct letter *l = event_letter(s, ev, NULL, fn, arg);

        if (l)
                post(s, l);
        else
                fn(arg, &no_room, -1); /* the one case in which nothing can be put off */
}

void scribe_note(struct scribe *s, const struct audit_event *ev) {
        scribe_keep(s, ev, NULL, -1);
}

void scribe_keep(struct scribe *s, const struct audit_event *ev, const char *kind, int fd) {
        AUTO_FD int own = fd;
        struct letter *l = s && (!kind || fd >= 0) ? event_letter(s, ev, kind, NULL, NULL) : NULL;

        if (l) {
                l->fd = TAKE_FD(own);
                post(s, l);
        } else if (s && s->lost++ == 0) {
                log_error(&s->d->log, "records are lost", &no_room);
        }
}

static void read_post(struct scribe *s, const struct wr *w, scribe_fn fn, void *arg) {
        struct letter *l = letter_new(s, w->p, w->bad ? 0 : w->len, s->serial, fn, arg);

        if (l) {
                l->is_read = true;
                l->fd = memfd_create("audit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        }
        if (l && l->fd >= 0) {
                post(s, l);
                return;
        }
        if (l)
                letter_free(s, l);
        fn(arg, &no_room, -1);
}

void scribe_read(struct scribe *s, const char *tenant, uint64_t from, uint32_t n, scribe_fn fn, void *arg) {
        uint8_t bytes[128];
        struct wr w = wr_to(bytes, sizeof(bytes));

        notary_ask_read(&w, ++s->serial, tenant, from, n);
        read_post(s, &w, fn, arg);
}

void scribe_dossier(struct scribe *s, const char *tenant, const char *sandbox, scribe_fn fn, void *arg) {
        uint8_t bytes[128];
        struct wr w = wr_to(bytes, sizeof(bytes));

        notary_ask_dossier(&w, ++s->serial, tenant, sandbox);
        read_post(s, &w, fn, arg);
}
