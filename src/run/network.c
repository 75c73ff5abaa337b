/*
 * network.c - egress beside a run: started, told about the sandbox, listened to, and started again when it dies.
 *
 * Invariant: while there is no egress nothing listens in the sandbox's namespace, so every connect is refused; nothing
 * else answers in its place.
 */
#include "run/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egressctl/egressctl.h"
#include "json/json.h"
#include "policy/net.h"
#include "run/loop.h"

enum {
        RETRY_FIRST_MS = 100,
        RETRY_LAST_MS = 5000,
        STEADY_S = 60,  /* after that long a death is a first one again */
        EXPECTED_S = 2, /* for so long an attempt is the user's own; egress may count for a second */
};

/* What to do about it, by the code of a denial or the rule of a budget; the sandbox's or the ceiling's. */
static const char *hint_of(const char *code, const char *rule) {
        static const struct {
                const char *what, *hint;
        } hints[] = {
                { "net.private_address", "private addresses are closed to sandboxes; do not retry" },
                { "net.metadata", "metadata services are closed to sandboxes; do not retry" },
                { "budget:connections", "as many connections as the budget allows are open; close some" },
                { "budget:rate", "more new connections a second than the budget allows; slow down" },
                { "budget:bytes_out", "all bytes of the budget are sent; do not retry" },
                { "budget:names", "all different names of the budget are asked for; do not retry" },
                { "net.budget", "more at once than any sandbox may have; slow down" },
        };

        rule += str_has_prefix(rule, "ceiling:") ? strlen("ceiling:") : 0;
        for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
                if (str_eq(code, hints[i].what) || str_eq(rule, hints[i].what))
                        return hints[i].hint;
        return "ask the operator to allow it; do not retry";
}

/* "name:port" of an attempt, the address if it has no name, and no port if it is a question for a name. */
static void what_of(const struct json *record, char dst[NETWORK_WHAT]) {
        const char *name = json_get_str(record, "name"), *address = json_get_str(record, "address");
        const char *what = name ? name : address ? address : "";
        int port = (int) json_get_int(record, "port", 0);

        if (port == 0)
                (void) snprintf(dst, NETWORK_WHAT, "%.280s", what);
        else if (strchr(what, ':'))
                (void) snprintf(dst, NETWORK_WHAT, "[%.270s]:%d", what, port);
        else
                (void) snprintf(dst, NETWORK_WHAT, "%.280s:%d", what, port);
}

static void take(char *dst, size_t cap, const struct json *record, const char *key, const char *otherwise) {
        const char *s = json_get_str(record, key);

        (void) snprintf(dst, cap, "%s", s ? s : otherwise);
}

static void denial_take(struct network *n, const struct json *record, const char *what) {
        int64_t count = json_get_int(record, "count", 1);
        struct run_denial d = { .hint = NULL };

        take(d.event, sizeof(d.event), record, "event", "evt_unknown");
        take(d.code, sizeof(d.code), record, "code", "net.denied");
        take(d.rule, sizeof(d.rule), record, "rule", "default");
        take(d.policy, sizeof(d.policy), record, "policy", "");
        (void) snprintf(d.what, sizeof(d.what), "%.95s", what);
        d.hint = hint_of(d.code, d.rule);
        denial_record(n->loop, &d, count > 0 && count < INT32_MAX ? (unsigned) count : 1);
}

/* True if the user made this attempt himself, a moment ago. */
static bool expected_take(struct network *n, const char *what, const char *line) {
        for (unsigned i = 0; n->expected && i < NETWORK_EXPECTED; i++) {
                struct expected *x = &n->expected[i];

                if (!str_eq(x->what, what) || clock_mono_ns() > x->until_ns)
                        continue;
                free(x->record);
                x->record = strdup(line);
                return true;
        }
        return false;
}

void network_expect(struct network *n, const char *what) {
        struct expected *x;

        if (!n->expected)
                n->expected = calloc(NETWORK_EXPECTED, sizeof(*n->expected));
        if (!n->expected)
                return;
        x = &n->expected[n->n_expected++ % NETWORK_EXPECTED];
        own_freep(&x->record);
        *x = (struct expected){ .until_ns = clock_mono_ns() + EXPECTED_S * 1000000000ull };
        (void) snprintf(x->what, sizeof(x->what), "%s", what);
}

const char *network_expected(struct network *n, const char *what) {
        struct err e = { 0 };

        if (n->egress && egressctl_fd(n->egress) >= 0)
                (void) egressctl_ping(n->egress, &e); /* everything that it has to say */
        for (unsigned i = 0; n->expected && i < NETWORK_EXPECTED; i++)
                if (str_eq(n->expected[i].what, what) && n->expected[i].record)
                        return n->expected[i].record;
        return NULL;
}

static void on_record(void *arg, const char *text, size_t len) {
        CLEANUP(json_freep) struct json *record = NULL;
        AUTO_FREE char *line = NULL;
        struct network *n = arg;
        struct err e = { 0 };
        char what[NETWORK_WHAT];
        const char *decision;

        /* Written again by us: what egress sends may be an attacker's, the log's lines are always whole documents. */
        if (json_parse("record", text, len, &record, &e) < 0)
                return;
        if (n->sb) /* and speak of this sandbox, whatever egress says */
                json_set_str(record, "sandbox", n->sb->id);
        if (json_text(record, false, &line, &e) < 0)
                return;
        decision = json_get_str(record, "decision");
        if (!n->loop) {
                n->canaries += decision && str_eq(decision, "deny");
                return;
        }
        if (n->log.fd >= 0 && netlog_add(&n->log, line, strlen(line)) < 0 && !n->log_failed) {
                n->log_failed = true;
                (void) dprintf(STDERR_FILENO, "gabion: egress log %s: it cannot be written\n", n->log.path);
        }
        watch_network(n->loop->watch, record);
        what_of(record, what);
        if (!expected_take(n, what, line) && decision && str_eq(decision, "deny"))
                denial_take(n, record, what);
}

int network_start(const struct run_options *o, struct network *n, struct err *err) {
        struct egressctl_config c = {
                .upstream_proxy = o->net.upstream_proxy,
                .bind = o->net.bind,
                .ca_bundle = o->net.ca_bundle,
        };
        int r;

        *n = (struct network){ .o = o, .log.fd = -1 };
        if (!policy_net_any(o->policy))
                return 0;
        c.open_tls = policy_net_opens_tls(o->policy, o->net.ceiling);
        r = policy_egress_text(o->policy, o->net.ceiling, o->net.resolve, o->net.n_resolve, &n->document, err);
        if (r == 0 && o->net.log_path)
                r = netlog_open(o->net.log_path, &n->log, err);
        if (r == 0)
                r = egressctl_start(&c, on_record, n, &n->egress, err);
        n->started_ns = clock_mono_ns();
        return r;
}

/* Our copies of the listeners go: a dead egress must mean that connects are refused. */
static int hand_over(struct network *n, struct err *err) {
        int r = egressctl_add(n->egress, n->sb->id, n->sb->net.socket_fds, n->document, err);

        sandbox_net_handed_over(n->sb);
        n->sb->egress_pid = egressctl_pid(n->egress);
        return r;
}

int network_add(struct network *n, const struct plan *plan, struct sandbox *sb, struct err *err) {
        if (!n->egress)
                return 0;
        n->sb = sb;
        n->plan = plan;
        return hand_over(n, err);
}

int network_release(struct network *n, struct loop *l, struct err *err) {
        enum { RECORDED = PLAN_NET_CANARIES - 1 }; /* one of them is refused by the kernel alone */
        int r = n->egress ? egressctl_ping(n->egress, err) : 0;

        if (r == 0 && n->egress && n->canaries < RECORDED)
                r = err_set(
                        err, -EBADE, ERR_DENIED,
                        "control network records is not in force: %u of %d refusals were recorded; nothing was started",
                        n->canaries, RECORDED);
        n->loop = l;
        return r;
}

int network_fd(const struct network *n) {
        return n->egress ? egressctl_fd(n->egress) : -1;
}

uint64_t network_due_ns(const struct network *n) {
        if (n->again_ns)
                return n->again_ns;
        return n->egress && egressctl_fd(n->egress) < 0 ? 0 : UINT64_MAX; /* somebody else noticed its death */
}

/* Later each time, so that a process that cannot live does not eat the machine. */
static void retry_later(struct network *n, const char *why) {
        uint64_t now = clock_mono_ns(), wait = RETRY_FIRST_MS;

        if (now - n->started_ns > STEADY_S * 1000000000ull)
                n->restarts = 0;
        for (unsigned i = 0; i < n->restarts && wait < RETRY_LAST_MS; i++)
                wait *= 2;
        n->restarts++;
        n->again_ns = now + (wait < RETRY_LAST_MS ? wait : RETRY_LAST_MS) * 1000000u;
        (void) dprintf(STDERR_FILENO, "gabion: %s; connections are refused until it is back%s\n", why,
                       n->loop && n->loop->raw ? "\r" : "");
}

static void start_again(struct network *n) {
        struct err e = { 0 };
        int r;

        n->again_ns = 0;
        n->started_ns = clock_mono_ns();
        r = sandbox_net_listen(n->sb, n->plan, &e);
        if (r == 0)
                r = egressctl_restart(n->egress, &e);
        if (r == 0)
                r = hand_over(n, &e);
        if (r < 0)
                retry_later(n, e.msg);
}

void network_serve(struct network *n) {
        struct err e = { 0 };

        if (!n->egress)
                return;
        if (n->again_ns && clock_mono_ns() >= n->again_ns)
                start_again(n);
        else if (egressctl_fd(n->egress) >= 0 ? egressctl_serve(n->egress, &e) < 0 : !n->again_ns)
                retry_later(n, e.msg[0] ? e.msg : "gabion-egress has ended");
}

/* A line of our own: policies are part of the story that the log tells. */
static void update_log(struct network *n, const char *hash) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        AUTO_FREE char *line = NULL;
        char event[RUN_EVENT_TEXT] = "evt_", now[CLOCK_TEXT];
        struct err e = { 0 };

        (void) id_new(event + 4);
        clock_rfc3339(now);
        json_set_str(o, "event", event);
        json_set_str(o, "time", now);
        json_set_str(o, "sandbox", n->sb->id);
        json_set_str(o, "kind", "policy");
        json_set_str(o, "decision", "update");
        json_set_str(o, "policy", hash);
        if (n->log.fd >= 0 && json_text(o, false, &line, &e) == 0)
                (void) netlog_add(&n->log, line, strlen(line));
        if (!n->o->quiet)
                (void) dprintf(STDERR_FILENO, "gabion: the network policy is now %s%s\n", hash,
                               n->loop && n->loop->raw ? "\r" : "");
}

int network_update(struct network *n, const char *text, size_t len, bool drop, char ret_hash[HASH_TEXT],
                   struct err *err) {
        static struct policy next; /* large; one sandbox per process */
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *document = NULL;
        struct policy *p = n->o->policy;
        struct policy_net *old = p->net;
        int r;

        policy_default(&next);
        r = json_parse("policy", text, len, &doc, err);
        if (r == 0)
                r = policy_decode(doc, &next, err);
        if (r == 0 && policy_net_opens_tls(&next, n->o->net.ceiling) && !policy_net_opens_tls(p, n->o->net.ceiling))
                r = err_set(err, -EINVAL, ERR_INVALID,
                            "network: methods and paths need TLS to be opened, for which the sandbox was not prepared; "
                            "start it with such a rule");
        p->net = next.net; /* the rest of the policy stays what it was */
        if (r == 0)
                r = policy_hash(p, ret_hash, err);
        if (r == 0)
                r = policy_egress_text(p, n->o->net.ceiling, n->o->net.resolve, n->o->net.n_resolve, &document, err);
        if (r == 0 && n->loop)
                r = record_policy(n->loop->record, p->name, ret_hash, err);
        if (r == 0)
                r = egressctl_update(n->egress, n->sb->id, document, drop, err);
        next.net = r < 0 ? p->net : old;
        if (r < 0)
                p->net = old;
        policy_done(&next);
        if (r < 0)
                return r;
        free(n->document);
        n->document = TAKE_PTR(document);
        update_log(n, ret_hash);
        return 0;
}

void network_end(struct network *n) {
        struct err e = { 0 };

        if (n->egress && n->sb && egressctl_fd(n->egress) >= 0)
                (void) egressctl_remove(n->egress, n->sb->id, &e);
        n->egress = egressctl_free(n->egress);
        netlog_close(&n->log);
        for (unsigned i = 0; n->expected && i < NETWORK_EXPECTED; i++)
                own_freep(&n->expected[i].record);
        own_freep(&n->expected);
        n->expected = NULL;
        buf_done(&n->certificates);
        buf_done(&n->java_store);
        own_freep(&n->document);
        n->document = NULL;
}
