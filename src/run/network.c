/*
 * network.c - egress beside a run: started, told about the sandbox, listened to, and started again when it dies.
 *
 * Invariant: while there is no egress nothing listens in the sandbox's namespace, so every connect is refused; nothing
 * else answers in its place.
 */
#include "run/network.h"

#include <errno.h>
#include <stdio.h>
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
        STEADY_S = 60, /* after that long a death is a first one again */
};

static const char *hint_of(const char *code) {
        static const struct {
                const char *code, *hint;
        } hints[] = {
                { "net.budget", "the policy's budget is used up; do not retry" },
                { "net.private_address", "private addresses are closed to sandboxes; do not retry" },
                { "net.metadata", "metadata services are closed to sandboxes; do not retry" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
                if (str_eq(code, hints[i].code))
                        return hints[i].hint;
        return "ask the operator to allow it; do not retry";
}

static void denial_take(struct network *n, const struct json *record) {
        const char *name = json_get_str(record, "name"), *address = json_get_str(record, "address");
        const char *code = json_get_str(record, "code"), *rule = json_get_str(record, "rule");
        const char *event = json_get_str(record, "event");
        int64_t port = json_get_int(record, "port", 0), count = json_get_int(record, "count", 1);
        const char *what = name ? name : address ? address : "";
        bool six = strchr(what, ':') != NULL;
        char text[96];

        (void) snprintf(text, sizeof(text), port ? six ? "[%.80s]:%d" : "%.84s:%d" : "%.90s", what, (int) port);
        denial_record(n->loop, event ? event : "evt_unknown", code ? code : "net.denied", rule ? rule : "default", text,
                      hint_of(code ? code : ""), count > 0 ? (unsigned) count : 1);
}

static void on_record(void *arg, const char *text, size_t len) {
        CLEANUP(json_freep) struct json *record = NULL;
        AUTO_FREE char *line = NULL;
        struct network *n = arg;
        struct err e = { 0 };
        const char *decision;

        /* Written again by us: what egress sends may be an attacker's, the log's lines are always whole documents. */
        if (json_parse("record", text, len, &record, &e) < 0 || json_text(record, false, &line, &e) < 0)
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
        if (decision && str_eq(decision, "deny"))
                denial_take(n, record);
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
        return n->again_ns ? n->again_ns : UINT64_MAX;
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
        else if (egressctl_fd(n->egress) >= 0 && egressctl_serve(n->egress, &e) < 0)
                retry_later(n, e.msg);
}

void network_end(struct network *n) {
        struct err e = { 0 };

        if (n->egress && n->sb && egressctl_fd(n->egress) >= 0)
                (void) egressctl_remove(n->egress, n->sb->id, &e);
        n->egress = egressctl_free(n->egress);
        netlog_close(&n->log);
        buf_done(&n->certificates);
        own_freep(&n->document);
        n->document = NULL;
}
