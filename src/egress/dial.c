/*
 * dial.c - see dial.h.
 *
 * Order: where does it lead (a literal address, the operator's override, or a look-up), which of these addresses may be
 * dialled (policy, floor), then one after the other until one answers. Only an address that was judged here is ever
 * handed to connect(), so a name that changes its address in between gains nothing. With an upstream proxy the judged
 * address is what the proxy is asked for.
 */
#include "egress/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "dns/dns.h"
#include "egress/limits.h"
#include "egress/proxy.h"
#include "egress/sandbox.h"

enum { OUT_MAX = 4096, ANSWER_MAX = 16 << 10, MS_PER_S = 1000 };

struct dial {
        struct sandbox *sandbox;
        const char *name; /* NULL: a literal address */
        uint16_t port;    /* that the sandbox asked for */
        dial_done_fn done;
        void *arg;
        struct dns_lookup *lookup;
        struct addr addrs[EGRESS_DIAL_TRIES]; /* judged; with a proxy, first those of the destination, then its own */
        size_t n_addrs, at;
        uint16_t to_port;
        bool direct; /* the operator said where: no proxy in between */
        bool via_proxy;
        struct addr destination; /* via_proxy: what it is asked for; of no family if it gets the name */
        struct proxy *proxy;
        struct buf out;
        int fd;
        struct event event;
        bool armed;
        struct dial_result res;
};

static void disarm(struct dial *d) {
        if (d->armed)
                (void) event_del(&d->event);
        d->armed = false;
}

static void dial_free(struct dial *d) {
        disarm(d);
        if (d->lookup)
                dns_lookup_cancel(d->lookup);
        own_closep(&d->fd);
        proxy_free(d->proxy);
        buf_done(&d->out);
        free(d);
}

void dial_cancel(struct dial *d) {
        if (d)
                dial_free(d);
}

static int fail(struct dial *d, const char *problem) {
        d->res.fd = -1;
        d->res.problem = problem;
        return 1;
}

/* Hands the result over; d is gone afterwards. */
static void finish(struct dial *d) {
        struct dial_result res = d->res;
        dial_done_fn done = d->done;
        void *arg = d->arg;

        d->fd = res.fd >= 0 ? -1 : d->fd;
        dial_free(d);
        done(&res, arg);
}

static const char *problem_of(int code) {
        switch (code) {
        case ECONNREFUSED:
                return "upstream: connection refused";
        case ETIMEDOUT:
                return "upstream: no answer in time";
        case EHOSTUNREACH:
        case ENETUNREACH:
                return "upstream: no route";
        case EADDRNOTAVAIL:
                return "upstream: source address is not of this machine";
        default:
                return "upstream: connect failed";
        }
}

static void arm(struct dial *d, short what, event_callback_fn fn) {
        static const struct timeval wait = { .tv_sec = EGRESS_DIAL_MS / MS_PER_S };

        disarm(d);
        (void) event_assign(&d->event, d->sandbox->egress->base, d->fd, what, fn, d);
        (void) event_priority_set(&d->event, sandbox_priority(d->sandbox));
        d->armed = event_add(&d->event, &wait) == 0;
}

static void on_proxy(evutil_socket_t fd, short what, void *arg);

/* Sends what the proxy has to hear. 0: wait for it or for its answer; 1: failed. */
static int proxy_say(struct dial *d) {
        while (d->out.len > 0) {
                ssize_t n = send(d->fd, d->out.p, d->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno == EAGAIN) {
                        arm(d, EV_WRITE, on_proxy);
                        return 0;
                }
                if (n < 0)
                        return fail(d, "upstream proxy: connection lost");
                buf_eat(&d->out, (size_t) n);
        }
        arm(d, EV_READ, on_proxy);
        return 0;
}

/* Looks at what the proxy said and takes only what it said itself: the rest is the destination's. 1: finished. */
static int proxy_hear(struct dial *d) {
        static char bytes[ANSWER_MAX];
        ssize_t n = recv(d->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
        struct err err = { 0 };
        size_t used = 0;
        enum proxy_step step;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0)
                return fail(d, "upstream proxy: connection lost");
        step = proxy_feed(d->proxy, bytes, (size_t) n, &d->out, &used, &err);
        if (used > 0 && recv(d->fd, bytes, used, MSG_DONTWAIT) != (ssize_t) used)
                return fail(d, "upstream proxy: connection lost");
        if (step == PROXY_FAILED || (step == PROXY_MORE && n == (ssize_t) sizeof(bytes)))
                return fail(d, "upstream proxy: refused the connection");
        if (step == PROXY_OPEN) {
                d->res.fd = d->fd;
                return 1;
        }
        if (step == PROXY_SAY)
                return proxy_say(d);
        arm(d, EV_READ, on_proxy);
        return 0;
}

static void on_proxy(evutil_socket_t fd, short what, void *arg) {
        struct dial *d = arg;
        int r;

        (void) fd;
        d->armed = false;
        if (what & EV_TIMEOUT)
                r = fail(d, "upstream proxy: no answer in time");
        else
                r = what & EV_READ ? proxy_hear(d) : proxy_say(d);
        if (r > 0)
                finish(d);
}

/* The socket is connected. 1: that is all; 0: the proxy comes first. */
static int connected(struct dial *d) {
        const struct addr *to = d->destination.family == ADDR_NONE ? NULL : &d->destination;
        struct err err = { 0 };

        if (!d->via_proxy) {
                d->res.fd = d->fd;
                d->res.address = d->addrs[d->at];
                return 1;
        }
        d->out = BUF_INIT(OUT_MAX);
        if (proxy_new(&d->sandbox->egress->config, to ? NULL : d->name, to, d->port, &d->out, &d->proxy, &err) < 0)
                return fail(d, "upstream proxy: out of memory");
        return proxy_say(d);
}

static int try_next(struct dial *d);

static void on_connect(evutil_socket_t fd, short what, void *arg) {
        struct dial *d = arg;
        int code = ETIMEDOUT, r;
        socklen_t n = sizeof(code);

        d->armed = false;
        if ((what & EV_WRITE) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
                code = errno;
        if (code == 0) {
                r = connected(d);
        } else {
                (void) fail(d, problem_of(code));
                d->at++;
                r = try_next(d);
        }
        if (r > 0)
                finish(d);
}

/* Its tenant's own address, or everybody's; family ADDR_NONE: whatever the kernel takes. */
static const struct addr *source_of(const struct dial *d) {
        const struct addr *own = &d->sandbox->policy->bind;

        return own->family != ADDR_NONE ? own : &d->sandbox->egress->config.bind;
}

/* Starts one connect(). Negative errno: this address is no good. 1: connected already. 0: under way. */
static int try_one(struct dial *d, const struct addr *a) {
        const struct addr *from = source_of(d);
        struct sockaddr_storage sa;
        size_t n = addr_to_sockaddr(a, d->to_port, &sa);
        int one = 1;
        struct pollfd p;

        own_closep(&d->fd);
        d->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (d->fd < 0)
                return -errno;
        (void) setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (from->family != ADDR_NONE) {
                struct sockaddr_storage source;
                size_t m = addr_to_sockaddr(from, 0, &source);

                (void) setsockopt(d->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
                if (bind(d->fd, (struct sockaddr *) &source, (socklen_t) m) < 0)
                        return -errno;
        }
        if (connect(d->fd, (struct sockaddr *) &sa, (socklen_t) n) == 0)
                return 1;
        if (errno != EINPROGRESS)
                return -errno;
        /* A near peer has answered already: asking once saves a turn of the loop. */
        p = (struct pollfd){ .fd = d->fd, .events = POLLOUT };
        if (poll(&p, 1, 0) == 1 && p.revents == POLLOUT)
                return 1;
        return 0;
}

/* 0: under way; 1: d->res is filled. */
static int try_next(struct dial *d) {
        for (; d->at < d->n_addrs; d->at++) {
                int r = try_one(d, &d->addrs[d->at]);

                if (r > 0)
                        return connected(d);
                if (r == 0) {
                        arm(d, EV_WRITE, on_connect);
                        return 0;
                }
                (void) fail(d, problem_of(-r));
        }
        return fail(d, d->res.problem ? d->res.problem : "upstream: no address of a family that can be dialled");
}

static void on_proxy_name(const struct dns_result *res, void *arg) {
        struct dial *d = arg;
        int r;

        d->lookup = NULL;
        for (size_t i = 0; i < res->n_addrs && d->n_addrs < EGRESS_DIAL_TRIES; i++)
                d->addrs[d->n_addrs++] = res->addrs[i];
        r = d->n_addrs > 0 ? try_next(d) : fail(d, "upstream proxy: its name has no address");
        if (r > 0)
                finish(d);
}

static int look_up(struct dial *d, const char *name, dns_done_fn done) {
        struct err err = { 0 };

        if (dns_resolve(d->sandbox->egress->resolver, name, DNS_WANT_V4 | DNS_WANT_V6, done, d, &d->lookup, &err) < 0)
                return fail(d, "upstream: too many look-ups at a time");
        return 0;
}

/* The destination is known (d->addrs) or the proxy's matter. */
static int begin(struct dial *d) {
        const struct config *c = &d->sandbox->egress->config;

        if (c->proxy.kind == CONFIG_PROXY_NONE || d->direct)
                return try_next(d);
        d->via_proxy = true;
        if (d->n_addrs > 0)
                d->destination = d->res.address = d->addrs[0];
        d->to_port = c->proxy.port;
        d->n_addrs = 0;
        if (c->proxy.address.family == ADDR_NONE)
                return look_up(d, c->proxy.name, on_proxy_name);
        d->addrs[d->n_addrs++] = c->proxy.address;
        return try_next(d);
}

/* Keeps what may be dialled. When nothing may, the first refusal is the answer. */
static bool judge(struct dial *d, const struct addr *addrs, size_t n) {
        const struct addr *from = source_of(d);
        struct policy_net_verdict v;

        for (size_t i = 0; i < n && d->n_addrs < EGRESS_DIAL_TRIES; i++) {
                const struct policy_net_request q = {
                        .stage = POLICY_NET_ADDRESS, .name = d->name, .port = d->port, .address = &addrs[i]
                };

                policy_net_eval(d->sandbox->policy, &q, &v);
                if (!v.allowed && !d->res.denied) {
                        d->res.denied = true;
                        d->res.verdict = v;
                        d->res.address = addrs[i];
                }
                if (v.allowed && (from->family == ADDR_NONE || from->family == addrs[i].family))
                        d->addrs[d->n_addrs++] = addrs[i];
        }
        if (d->n_addrs > 0)
                d->res.denied = false;
        return !d->res.denied;
}

static void on_name(const struct dns_result *res, void *arg) {
        struct dial *d = arg;
        int r;

        d->lookup = NULL;
        if (res->code == 0)
                r = judge(d, res->addrs, res->n_addrs) ? begin(d) : 1;
        else if (res->code == -ENOENT || res->code == -ENODATA)
                r = fail(d, "upstream: no such name");
        else
                r = fail(d, "upstream: name servers do not answer");
        if (r > 0)
                finish(d);
}

static int start(struct dial *d, const struct addr *literal) {
        const struct policy_resolve *override =
                d->name ? policy_egress_resolve(d->sandbox->policy, d->name, d->port) : NULL;
        const struct config *c = &d->sandbox->egress->config;

        d->direct = override;
        d->to_port = override ? override->to_port : d->port;
        if (override || literal)
                return judge(d, override ? &override->address : literal, 1) ? begin(d) : 1;
        if (c->proxy.kind != CONFIG_PROXY_NONE && c->upstream_names)
                return begin(d);
        return look_up(d, d->name, on_name);
}

int dial_start(struct sandbox *s, const struct dial_to *to, dial_done_fn done, void *arg, struct dial_result *res,
               struct dial **ret) {
        struct dial *d = calloc(1, sizeof(*d));

        if (!d) {
                *res = (struct dial_result){ .fd = -1, .problem = "out of memory" };
                return 1;
        }
        *d = (struct dial){ .sandbox = s, .name = to->name, .port = to->port, .done = done, .arg = arg, .fd = -1 };
        d->res.fd = -1;
        if (start(d, to->name ? NULL : to->address) == 0) {
                *ret = d;
                return 0;
        }
        *res = d->res;
        d->fd = res->fd >= 0 ? -1 : d->fd;
        dial_free(d);
        return 1;
}
