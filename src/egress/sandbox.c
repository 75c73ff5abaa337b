/*
 * sandbox.c - see sandbox.h.
 *
 * Identity is the listener: whatever comes in here is this sandbox's, whatever address it claims. Its sockets are read
 * only while the supervisor takes its records, because an attempt that cannot be recorded must not be made.
 */
#include "egress/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dns/dns.h"
#include "egress/conn.h"
#include "egress/keep.h"
#include "egress/limits.h"
#include "egress/names.h"
#include "egress/record.h"
#include "ipc/ipc.h"

/* --- turns --- */

int sandbox_priority(const struct sandbox *s) {
        return s->share.heavy ? EGRESS_HEAVY : EGRESS_LIGHT;
}

/* Did the loop work for somebody else a moment ago? */
static bool is_contended(const struct sandbox *s, uint64_t now_ns) {
        return now_ns - s->egress->switched_ns < (uint64_t) EGRESS_CONTENDED_MS * 1000000;
}

bool sandbox_begin(struct sandbox *s, uint64_t *ret_begin_ns) {
        uint64_t now = clock_mono_ns();

        if (s->rests)
                return false;
        if (is_contended(s, now) && meter_share_is_spent(&s->share, now)) {
                s->rests = true;
                sandbox_pause(s);
                egress_rest(s->egress);
                return false;
        }
        *ret_begin_ns = now;
        return true;
}

void sandbox_charge(struct sandbox *s, uint64_t ns) {
        uint64_t now = clock_mono_ns();

        (void) meter_share_add(&s->share, now - ns, now);
}

void sandbox_resume(struct sandbox *s) {
        struct conn *c, *next;

        if (!s->rests)
                return;
        s->rests = false;
        sandbox_pause(s);
        for (c = TAILQ_FIRST(&s->conns); c; c = next) {
                next = TAILQ_NEXT(c, link);
                if (c->parked)
                        conn_resume(c);
        }
}

void sandbox_end(struct sandbox *s, uint64_t begin_ns, struct event *ev) {
        uint64_t now = clock_mono_ns();

        (void) meter_share_add(&s->share, begin_ns, now);
        if (s->egress->last != s) {
                s->egress->last = s;
                s->egress->switched_ns = now;
        }
        if (ev && event_get_priority(ev) != sandbox_priority(s))
                (void) event_priority_set(ev, sandbox_priority(s)); /* fails while active again: next time then */
}

/* --- records --- */

void sandbox_note(struct sandbox *s, struct record *r, char *event) {
        r->policy = s->policy->policy_hash;
        ledger_note(s->ledger, r, egress_now_ms(), event);
}

void sandbox_tell(struct sandbox *s, struct record *r) {
        r->policy = s->policy->policy_hash;
        ledger_tell(s->ledger, r);
}

static void send_text(void *arg, const char *text, bool urgent) {
        struct sandbox *s = arg;

        control_record(s->egress->control, &s->source, text, urgent);
}

void sandbox_pause(struct sandbox *s) {
        /* Not at every record: it starts again when half of them are gone. */
        size_t part = s->paused ? 2 : 1;
        bool pause = s->rests || s->source.waiting >= EGRESS_RECORDS_PER_SANDBOX / part ||
                     control_waiting(s->egress->control) >= EGRESS_RECORDS_WAITING / part;

        if (pause == s->paused)
                return;
        s->paused = pause;
        for (unsigned i = 0; i < SANDBOX_SOCKETS; i++)
                (void) (pause ? event_del(s->events[i]) : event_add(s->events[i], NULL));
}

/* --- sockets --- */

static void on_accept(evutil_socket_t fd, short what, void *arg) {
        struct sandbox *s = arg;
        uint64_t begin;

        (void) what;
        if (!sandbox_begin(s, &begin))
                return;
        for (unsigned i = 0; i < EGRESS_ACCEPTS_PER_TURN && !s->paused; i++) {
                int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (client < 0)
                        break;
                conn_accept(s, client);
                sandbox_pause(s);
        }
        sandbox_end(s, begin, s->events[SANDBOX_TCP]);
}

static void on_query(evutil_socket_t fd, short what, void *arg) {
        struct sandbox *s = arg;
        uint64_t begin;

        (void) what;
        if (!sandbox_begin(s, &begin))
                return;
        names_serve(s, fd);
        sandbox_end(s, begin, fd == s->fds[SANDBOX_DNS4] ? s->events[SANDBOX_DNS4] : s->events[SANDBOX_DNS6]);
}

/* They come from the supervisor, but a wrong one would be served under the wrong identity or not at all. */
static int check_socket(int fd, int domain, int type, const char *what, struct err *err) {
        int have_domain = 0, have_type = 0, listens = 0, flags = fcntl(fd, F_GETFL);
        socklen_t n = sizeof(int);

        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &have_domain, &n) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &have_type, &n) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || have_domain != domain || have_type != type ||
            listens != (type == SOCK_STREAM) || flags < 0)
                return err_set(err, -EBADMSG, ERR_PEER, "%s: not a socket of that kind", what);
        if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "%s: %s", what, strerror(errno));
        return 0;
}

static int set_one(int fd, int level, int name, const char *what, struct err *err) {
        int one = 1;

        if (setsockopt(fd, level, name, &one, sizeof(one)) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "%s: %s", what, strerror(errno));
        return 0;
}

static int check_sockets(const int fds[SANDBOX_SOCKETS], struct err *err) {
        int r = check_socket(fds[SANDBOX_TCP], AF_INET6, SOCK_STREAM, "TCP listener", err);

        if (r == 0)
                r = check_socket(fds[SANDBOX_DNS4], AF_INET, SOCK_DGRAM, "DNS socket", err);
        if (r == 0)
                r = check_socket(fds[SANDBOX_DNS6], AF_INET6, SOCK_DGRAM, "DNS socket for IPv6", err);
        /* Accepted sockets inherit it, which saves a call for each. */
        if (r == 0)
                r = set_one(fds[SANDBOX_TCP], IPPROTO_TCP, TCP_NODELAY, "TCP listener", err);
        if (r == 0)
                r = set_one(fds[SANDBOX_DNS4], IPPROTO_IP, IP_PKTINFO, "DNS socket", err);
        if (r == 0)
                r = set_one(fds[SANDBOX_DNS6], IPPROTO_IPV6, IPV6_RECVPKTINFO, "DNS socket for IPv6", err);
        return r;
}

/* --- life --- */

static int read_document(int fd, struct policy_egress **ret, struct err *err) {
        AUTO_FREE char *text = NULL;
        size_t n;
        int r = ipc_blob_read(fd, EGP_DOCUMENT_MAX, &text, &n, err);

        return r < 0 ? r : policy_egress_read(text, n, ret, err);
}

/* Takes the policy. What was used stays used. */
static void set_policy(struct sandbox *s, struct policy_egress *policy) {
        uint64_t now = clock_mono_ns();

        policy_egress_free(s->policy);
        s->policy = policy;
        policy_net_budget(policy, &s->budget);
        meter_bucket_set(&s->rate, s->budget.max[POLICY_NET_RATE], s->budget.max[POLICY_NET_RATE], now);
}

static int give_again(void *arg, const char *name, struct err *err) {
        struct sandbox *s = arg;
        char canonical[HOST_NAME];
        struct addr a;

        if (host_canonical(name, strlen(name), canonical) < 0 || !str_eq(name, canonical))
                return err_set(err, -EBADMSG, ERR_PEER, "keep: not a host name");
        return dns_book_give(s->book, name, &a, err);
}

static int set_up(struct sandbox *s, int document_fd, struct err *err) {
        struct policy_egress *policy;
        int r = read_document(document_fd, &policy, err);

        if (r < 0)
                return r;
        set_policy(s, policy);
        meter_bucket_set(&s->dns, EGRESS_DNS_RATE, EGRESS_DNS_BURST, clock_mono_ns());
        r = ledger_new(s->id, send_text, s, &s->ledger, err);
        if (r == 0)
                r = dns_book_new(DNS_BOOK_MAX, &s->book, err);
        if (r == 0)
                r = keep_names(s->egress->keep, s->id, give_again, s, err);
        return r;
}

static int arm(struct sandbox *s, const int fds[SANDBOX_SOCKETS], struct err *err) {
        for (unsigned i = 0; i < SANDBOX_SOCKETS; i++) {
                s->events[i] = event_new(s->egress->base, fds[i], EV_READ | EV_PERSIST,
                                         i == SANDBOX_TCP ? on_accept : on_query, s);
                if (!s->events[i] || event_priority_set(s->events[i], EGRESS_LIGHT) < 0 ||
                    event_add(s->events[i], NULL) < 0)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        return 0;
}

int sandbox_new(struct egress *e, const char *id, const int fds[SANDBOX_SOCKETS], int document_fd, struct sandbox **ret,
                struct err *err) {
        struct sandbox *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        *s = (struct sandbox){ .egress = e, .fds = { -1, -1, -1 } };
        TAILQ_INIT(&s->conns);
        TAILQ_INIT(&s->streams);
        (void) str_copy(s->id, sizeof(s->id), id);
        r = check_sockets(fds, err);
        if (r == 0)
                r = set_up(s, document_fd, err);
        if (r == 0)
                r = arm(s, fds, err);
        if (r < 0) {
                sandbox_free(s);
                return r;
        }
        memcpy(s->fds, fds, sizeof(s->fds));
        *ret = s;
        return 0;
}

struct sandbox *sandbox_free(struct sandbox *s) {
        struct conn *c;
        struct stream *x;

        if (!s)
                return NULL;
        while ((c = TAILQ_FIRST(&s->conns)))
                conn_end(c, "sandbox ended", true);
        while ((x = TAILQ_FIRST(&s->streams)))
                stream_free(x);
        s->ledger = ledger_free(s->ledger);
        for (unsigned i = 0; i < SANDBOX_SOCKETS; i++) {
                if (s->events[i])
                        event_free(s->events[i]);
                own_closep(&s->fds[i]);
        }
        control_forget(s->egress->control, &s->source);
        if (s->egress->last == s)
                s->egress->last = NULL;
        dns_book_free(s->book);
        policy_egress_free(s->policy);
        free(s);
        return NULL;
}

int sandbox_update(struct sandbox *s, int document_fd, bool drop, struct err *err) {
        struct policy_egress *policy;
        struct conn *c, *next;
        int r = read_document(document_fd, &policy, err);

        if (r < 0)
                return r;
        /* Verdicts of open connections borrow from the policy that goes. */
        TAILQ_FOREACH(c, &s->conns, link)
        c->verdict.path = NULL;
        set_policy(s, policy);
        for (c = TAILQ_FIRST(&s->conns); drop && c; c = next) {
                next = TAILQ_NEXT(c, link);
                conn_judge_again(c);
        }
        return 0;
}

void sandbox_sweep(struct sandbox *s, uint64_t now_ms) {
        struct conn *c, *next;

        for (c = TAILQ_FIRST(&s->conns); c; c = next) {
                next = TAILQ_NEXT(c, link);
                conn_sweep(c, now_ms);
        }
        ledger_sweep(s->ledger, now_ms);
        sandbox_pause(s);
}
