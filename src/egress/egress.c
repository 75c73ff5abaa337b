/*
 * egress.c - see egress.h.
 *
 * Theory of operation: one thread, one loop. Requests of the supervisor come first, then sandboxes that use little of
 * the loop, then those that use much; between two callbacks of the last kind the others are asked again. Connections
 * that ended are freed by the reaper, from the top of the loop, where nobody holds a pointer to them.
 */
#include "egress/egress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dns/dns.h"
#include "egress/conn.h"
#include "egress/control.h"
#include "egress/keep.h"
#include "egress/limits.h"
#include "egress/pipes.h"
#include "egress/sandbox.h"
#include "ipc/ipc.h"
#include "tls/tls.h"

enum {
        NS_PER_MS = 1000000,
        RESERVED_FDS = 512, /* pipes, loop, control, look-ups, messages under way */
        FDS_LEAST = 1024,
        CA_DAYS = 30,         /* longer than any sandbox lives */
        LEAVES = 4096,        /* certificates kept ready */
        HEAVY_CALLBACKS = 16, /* of heavy sandboxes, before others are asked again ... */
        HEAVY_US = 100,       /* ... and for at most so long */
};

uint64_t egress_now_ms(void) {
        return clock_mono_ns() / NS_PER_MS;
}

void egress_bury(struct egress *e, struct conn *c) {
        TAILQ_INSERT_TAIL(&e->dead, c, link);
        event_active(e->reaper, EV_TIMEOUT, 0);
}

static void on_reap(evutil_socket_t fd, short what, void *arg) {
        struct egress *e = arg;
        struct conn *c;

        (void) fd;
        (void) what;
        while ((c = TAILQ_FIRST(&e->dead))) {
                TAILQ_REMOVE(&e->dead, c, link);
                conn_free(c);
        }
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        struct egress *e = arg;
        struct sandbox *s;

        (void) fd;
        (void) what;
        TAILQ_FOREACH(s, &e->sandboxes, link)
        sandbox_resume(s);
}

void egress_rest(struct egress *e) {
        static const struct timeval rest = { .tv_usec = EGRESS_REST_US };

        if (!event_pending(e->waker, EV_TIMEOUT, NULL))
                (void) event_add(e->waker, &rest);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg) {
        struct egress *e = arg;
        uint64_t now = egress_now_ms();
        struct sandbox *s;

        (void) fd;
        (void) what;
        TAILQ_FOREACH(s, &e->sandboxes, link)
        sandbox_sweep(s, now);
}

/* --- requests --- */

struct request {
        const struct egp_message *m;
        int *fds; /* those that are kept are set to -1 */
};

static struct sandbox *find(struct egress *e, const char *id) {
        struct sandbox *s;

        TAILQ_FOREACH(s, &e->sandboxes, link)
        if (str_eq(s->id, id))
                return s;
        return NULL;
}

static int add(struct egress *e, const struct request *q, struct err *err) {
        struct sandbox *s;
        int r;

        if (find(e, q->m->sandbox))
                return err_set(err, -EEXIST, ERR_INVALID, "sandbox %s is there already", q->m->sandbox);
        if (e->n_sandboxes >= EGRESS_SANDBOXES)
                return err_set(err, -ENOSPC, ERR_LIMIT, "more than %d sandboxes", EGRESS_SANDBOXES);
        r = sandbox_new(e, q->m->sandbox, q->fds, q->fds[EGP_ADD_DOCUMENT], &s, err);
        if (r < 0)
                return err_wrap(err, "sandbox %s", q->m->sandbox);
        for (unsigned i = 0; i < SANDBOX_SOCKETS; i++)
                q->fds[i] = -1;
        TAILQ_INSERT_TAIL(&e->sandboxes, s, link);
        e->n_sandboxes++;
        return 0;
}

static int update(struct egress *e, const struct request *q, struct err *err) {
        struct sandbox *s = find(e, q->m->sandbox);

        if (!s)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "no sandbox %s", q->m->sandbox);
        return sandbox_update(s, q->fds[0], q->m->drop_existing, err);
}

static int remove_sandbox(struct egress *e, const struct request *q, struct err *err) {
        struct sandbox *s = find(e, q->m->sandbox);

        if (!s)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "no sandbox %s", q->m->sandbox);
        TAILQ_REMOVE(&e->sandboxes, s, link);
        e->n_sandboxes--;
        sandbox_free(s);
        return keep_remove(e->keep, q->m->sandbox, err);
}

static int ping(struct egress *e, const struct request *q, struct err *err) {
        (void) e;
        (void) q;
        (void) err;
        return 0;
}

static int on_request(void *arg, const struct egp_message *m, int *fds, struct err *err) {
        static int (*const ops[])(struct egress *, const struct request *, struct err *) = {
                [EGP_ADD] = add,
                [EGP_UPDATE] = update,
                [EGP_REMOVE] = remove_sandbox,
                [EGP_PING] = ping,
        };
        struct egress *e = arg;
        struct egp_message ok = { .type = EGP_OK, .request = m->request };
        struct request q = { .m = m };
        struct err why = { 0 };

        q.fds = fds;
        /* EGP_CONFIG came before the loop, and comes once. */
        if (m->type >= ARRAY_SIZE(ops) || !ops[m->type])
                return err_set(err, -EPROTO, ERR_PEER, "request %u is not legal now", (unsigned) m->type);
        if (ops[m->type](e, &q, &why) < 0)
                control_fail(e->control, m->request, &why);
        else
                control_answer(e->control, &ok, NULL, 0);
        return 0;
}

static void on_drained(void *arg) {
        struct egress *e = arg;
        struct sandbox *s;

        TAILQ_FOREACH(s, &e->sandboxes, link)
        if (s->paused)
                sandbox_pause(s);
}

static void on_end(void *arg, const struct err *err) {
        struct egress *e = arg;

        if (err) {
                (void) fprintf(stderr, "gabion-egress: %s\n", err->msg);
                e->status = EXIT_FAILURE;
        }
        (void) event_base_loopbreak(e->base);
}

/* --- life --- */

static int make_loop(struct egress *e, struct err *err) {
        static const struct timeval sweep = { .tv_usec = EGRESS_SWEEP_US };
        static const struct timeval turn = { .tv_usec = HEAVY_US };
        struct event_config *c = event_config_new();

        if (c && event_config_set_max_dispatch_interval(c, &turn, HEAVY_CALLBACKS, EGRESS_HEAVY) == 0 &&
            event_config_set_flag(c, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0)
                e->base = event_base_new_with_config(c);
        if (c)
                event_config_free(c);
        if (!e->base || event_base_priority_init(e->base, EGRESS_PRIORITIES) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "no event loop");
        e->reaper = event_new(e->base, -1, 0, on_reap, e);
        e->sweeper = event_new(e->base, -1, EV_PERSIST, on_sweep, e);
        e->waker = event_new(e->base, -1, 0, on_wake, e);
        if (!e->reaper || !e->sweeper || !e->waker || event_priority_set(e->waker, EGRESS_LIGHT) < 0 ||
            event_priority_set(e->reaper, EGRESS_FIRST) < 0 || event_priority_set(e->sweeper, EGRESS_FIRST) < 0 ||
            event_add(e->sweeper, &sweep) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "no event loop");
        return 0;
}

static int make_resolver(struct egress *e, struct err *err) {
        struct dns_config c;
        int r = 0;

        dns_config_default(&c);
        if (e->config.resolv_conf[0])
                r = dns_config_read(&c, e->config.resolv_conf, err);
        /* A machine without name servers can still reach what its hosts file and the operator's overrides name. */
        if (r == 0 || r == -ENOENT)
                r = dns_resolver_new(e->base, &c, &e->resolver, err);
        if (r == 0 && e->config.hosts[0])
                r = dns_resolver_hosts_read(e->resolver, e->config.hosts, err);
        return r == -ENOENT ? 0 : r;
}

static int make_tls(struct egress *e, struct err *err) {
        int r = tls_inspector_new(&e->inspector, err);

        if (r < 0 || !e->config.open_tls)
                return r;
        if (keep_ca(e->keep)[0]) {
                r = tls_ca_from_text(keep_ca(e->keep), &e->ca, err);
        } else {
                AUTO_FREE char *text = NULL;

                r = tls_ca_new("Gabion egress", CA_DAYS, &e->ca, err);
                if (r == 0)
                        r = tls_ca_text(e->ca, &text, err);
                if (r == 0)
                        r = keep_set_ca(e->keep, text, err);
                if (text)
                        explicit_bzero(text, strlen(text));
        }
        if (r == 0)
                r = e->certificate_fd = ipc_blob_make(tls_ca_pem(e->ca), strlen(tls_ca_pem(e->ca)), err);
        if (r >= 0)
                r = tls_mint_new(e->ca, LEAVES, &e->mint, err);
        if (r == 0)
                r = tls_client_new(e->config.ca_bundle[0] ? e->config.ca_bundle : NULL, NULL, &e->client, err);
        return r;
}

static int read_config(struct egress *e, int fd, struct err *err) {
        AUTO_FREE char *text = NULL;
        size_t n;
        int r = ipc_blob_read(fd, EGP_DOCUMENT_MAX, &text, &n, err);

        return r < 0 ? r : config_read(text, n, &e->config, err);
}

static const struct control_ops control_ops = { on_request, on_drained, on_end };

int egress_new(int control_fd, int config_fd, int old_keep_fd, struct egress **ret, struct err *err) {
        struct egress *e = calloc(1, sizeof(*e));
        struct rlimit files;
        int r;

        if (!e)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        e->certificate_fd = -1;
        TAILQ_INIT(&e->sandboxes);
        TAILQ_INIT(&e->dead);
        r = getrlimit(RLIMIT_NOFILE, &files) < 0 ? err_set(err, -errno, ERR_INTERNAL, "getrlimit") : 0;
        if (r == 0 && files.rlim_cur < FDS_LEAST)
                r = err_set(err, -EMFILE, ERR_LIMIT, "open files: %llu are too few",
                            (unsigned long long) files.rlim_cur);
        if (r == 0)
                e->max_open = (files.rlim_cur - RESERVED_FDS) / CONN_LEGS;
        if (r == 0)
                r = read_config(e, config_fd, err);
        if (r == 0)
                r = make_loop(e, err);
        if (r == 0)
                r = keep_new(old_keep_fd, &e->keep, err);
        if (r == 0)
                r = make_resolver(e, err);
        if (r == 0)
                r = make_tls(e, err);
        if (r == 0)
                r = pipes_new(EGRESS_PIPES, &e->pipes, err);
        if (r == 0)
                r = control_new(e->base, control_fd, &control_ops, e, &e->control, err);
        if (r < 0) {
                egress_free(e);
                return r;
        }
        *ret = e;
        return 0;
}

struct egress *egress_free(struct egress *e) {
        struct sandbox *s;

        if (!e)
                return NULL;
        while ((s = TAILQ_FIRST(&e->sandboxes))) {
                TAILQ_REMOVE(&e->sandboxes, s, link);
                sandbox_free(s);
        }
        if (e->reaper)
                on_reap(-1, 0, e);
        dns_resolver_free(e->resolver);
        tls_mint_free(e->mint);
        tls_ca_free(e->ca);
        tls_client_free(e->client);
        tls_inspector_free(e->inspector);
        pipes_free(e->pipes);
        keep_free(e->keep);
        own_closep(&e->certificate_fd);
        control_free(e->control);
        if (e->reaper)
                event_free(e->reaper);
        if (e->sweeper)
                event_free(e->sweeper);
        if (e->waker)
                event_free(e->waker);
        if (e->base)
                event_base_free(e->base);
        free(e);
        return NULL;
}

void egress_ready(struct egress *e, uint32_t request) {
        struct egp_message m = { .type = EGP_READY, .request = request, .with_certificate = e->ca };
        const int fds[] = { [EGP_READY_KEEP] = keep_fd(e->keep), [EGP_READY_CERTIFICATE] = e->certificate_fd };

        control_answer(e->control, &m, fds, e->ca ? 2 : 1);
}

int egress_run(struct egress *e) {
        (void) event_base_loop(e->base, 0);
        return e->status;
}
