/*
 * network.c - see network.h.
 *
 * Calls to egress wait for its answer, for a bounded time: it is a process of ours, and one that does not answer is
 * killed. What must outlive it lies in RUN/egress.keep, so a warden that is started again goes on with the same
 * certificate and the same addresses.
 */
#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "egressctl/egressctl.h"
#include "egressctl/trust.h"
#include "egressctl/truststore.h"
#include "guard.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/net_flags.h"
#include "sandbox/netpool.h"
#include "sandbox/sandbox.h"

enum {
        RETRY_FIRST_MS = 50,
        RETRY_LAST_MS = 5000,
        STEADY_S = 60,    /* after that long a death is a first one again */
        TOLD_AT_ONCE = 8, /* sandboxes, before others get their turn */
        AGAIN_MS = 1000,  /* for a sandbox that could not be told */
        NAMESPACES = 8,   /* ready */
};

static struct {
        const char *upstream_proxy, *bind, *ca_bundle; /* NULL: none */
        struct policy_resolve resolve[POLICY_NET_RESOLVE];
        size_t n_resolve;
} settings;

static struct {
        struct egressctl *egress; /* NULL: nobody has needed it yet */
        struct watch watch;       /* its socket, which egressctl owns */
        struct netpool *pool;
        struct map *boxes;      /* those with a network, by netbox.id */
        struct buf trust, java; /* what sandboxes with certificates of their own trust; for Java */
        uint64_t started_ns, again_ns;
        unsigned restarts;
        bool untold; /* some box may have to be told */
        bool paused;
} net;

int network_option(const char *name, const char *value, struct err *err) {
        struct addr a;

        if (str_eq(name, "resolve") && settings.n_resolve == POLICY_NET_RESOLVE)
                return err_set(err, -E2BIG, ERR_INVALID, "--resolve: at most %d", POLICY_NET_RESOLVE);
        if (str_eq(name, "resolve"))
                return policy_net_flag_resolve(value, &settings.resolve[settings.n_resolve++], err);
        if (str_eq(name, "bind") && addr_parse(value, &a) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--bind: '%.60s' is no address", value);
        if (str_eq(name, "upstream-proxy") && !str_has_prefix(value, "http://") && !str_has_prefix(value, "socks5://"))
                return err_set(err, -EINVAL, ERR_INVALID,
                               "--upstream-proxy: http://HOST:PORT or socks5://HOST:PORT is expected");
        if (str_eq(name, "ca-bundle") && value[0] != '/')
                return err_set(err, -EINVAL, ERR_INVALID, "--ca-bundle: an absolute path is wanted");
        *(str_eq(name, "bind")        ? &settings.bind
          : str_eq(name, "ca-bundle") ? &settings.ca_bundle
                                      : &settings.upstream_proxy) = value;
        return 0;
}

struct plan_way_out network_way_out(const struct policy *ceiling, const char *bind) {
        return (struct plan_way_out){ .ceiling = ceiling,
                                      .resolve = settings.resolve,
                                      .n_resolve = settings.n_resolve,
                                      .upstream_proxy = settings.upstream_proxy,
                                      .bind = bind && bind[0] ? bind : settings.bind,
                                      .ca_bundle = settings.ca_bundle };
}

int network_document(const struct policy *policy, const struct policy *ceiling, const struct addr *bind, char **ret,
                     struct err *err) {
        return policy_egress_text_from(policy, ceiling, settings.resolve, settings.n_resolve, bind, ret, err);
}

struct egressctl *network_egress(void) {
        return net.egress;
}

int network_namespace(struct netns *ret) {
        return net.pool ? netpool_take(net.pool, ret) : -EAGAIN;
}

static int certificates_read(struct err *err) {
        int r = trust_bundle(settings.ca_bundle ? settings.ca_bundle : PLAN_BUNDLE, net.egress, &net.trust, err);

        net.java = BUF_INIT(TRUST_BYTES);
        if (r == 0)
                r = truststore_jks(buf_str(&net.trust), &net.java, err);
        if (r == 0 && net.java.bad)
                r = err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (r < 0) {
                buf_done(&net.trust);
                buf_done(&net.java);
                net.trust = net.java = (struct buf){ 0 };
        }
        return r;
}

/* Read once: the same for all, as long as this warden lives. */
int network_certificates(struct plan *plan, struct err *err) {
        int r = plan->own_certificates && !net.trust.p ? certificates_read(err) : 0;

        if (r < 0 || !plan->own_certificates)
                return r;
        plan->certificates = buf_str(&net.trust);
        plan->java_store = net.java.p;
        plan->n_java_store = net.java.len;
        return 0;
}

/* --- what egress says --- */

static void on_record(void *arg, const char *text, size_t len) {
        CLEANUP(json_freep) struct json *record = NULL;
        AUTO_FREE char *line = NULL;
        struct err e = { 0 };
        const char *name, *decision;
        struct box *b;

        (void) arg;
        /* Written again by us: it may have been taken over, but speaks in whole documents, of sandboxes of ours. */
        if (json_parse("record", text, len, &record, &e) < 0)
                return;
        name = json_get_str(record, "sandbox");
        b = name && net.boxes ? map_get(net.boxes, name, strlen(name)) : NULL;
        if (!b || json_get(record, "alert") || json_get(record, "file"))
                return; /* of what others tell in the same way (guard.c) it says nothing */
        decision = json_get_str(record, "decision");
        if (!b->net->live) {
                b->net->canaries += decision && str_eq(decision, "deny");
                return;
        }
        json_set_str(record, "sandbox", b->id);
        if (json_text(record, false, &line, &e) == 0)
                record_keep(b->id, line);
        guard_attempt(b, record);
}

/* Later each time, so that a process that cannot live does not eat the machine. */
static void on_death(const char *why) {
        uint64_t now = clock_mono_ns(), wait = RETRY_FIRST_MS;
        struct box *b;

        net.watch.fd = -1; /* egressctl has closed it */
        net.paused = false;
        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->net)
                        b->net->told = false;
        }
        if (now - net.started_ns > STEADY_S * 1000000000ull)
                net.restarts = 0;
        for (unsigned i = 0; i < net.restarts && wait < RETRY_LAST_MS; i++)
                wait *= 2;
        net.restarts++;
        net.again_ns = now + (wait < RETRY_LAST_MS ? wait : RETRY_LAST_MS) * 1000000u;
        warden_log("%s; connections of sandboxes are refused until it is back", why);
}

static void on_readable(struct watch *w, uint32_t events) {
        struct err e = { 0 };

        if (w->fd < 0 || (record_full() && !(events & (EPOLLHUP | EPOLLERR))))
                return;
        if (egressctl_serve(net.egress, &e) < 0)
                on_death(e.msg);
}

static int watch_it(struct err *err) {
        int r = loop_watch(&net.watch, egressctl_fd(net.egress), on_readable);

        return r < 0 ? err_set(err, r, ERR_INTERNAL, "gabion-egress: %s", strerror(-r)) : 0;
}

/* Not read while the daemon is slow. */
static void pause_it(bool pause) {
        struct epoll_event e = { .events = pause ? 0 : EPOLLIN, .data.ptr = &net.watch };

        if (pause != net.paused && net.watch.fd >= 0 &&
            epoll_ctl(warden.epoll_fd, EPOLL_CTL_MOD, net.watch.fd, &e) == 0)
                net.paused = pause;
}

/* --- its life --- */

int network_start(struct err *err) {
        char keep[WP_PATH + 16];
        const struct egressctl_config c = { .upstream_proxy = settings.upstream_proxy,
                                            .bind = settings.bind,
                                            .ca_bundle = settings.ca_bundle,
                                            .open_tls = true,
                                            .keep_path = keep };
        int r = 0;

        if (net.egress)
                return 0;
        (void) snprintf(keep, sizeof(keep), "%s/egress.keep", warden.run);
        if (!net.boxes || map_count(net.boxes) == 0)
                (void) unlink(keep); /* of sandboxes that are gone */
        net.watch.fd = -1;
        if (!net.pool)
                r = netpool_new(NAMESPACES, &net.pool, err);
        if (r == 0)
                r = egressctl_start(&c, on_record, NULL, &net.egress, err);
        if (r == 0)
                r = watch_it(err);
        if (r < 0)
                net.egress = egressctl_free(net.egress);
        net.started_ns = clock_mono_ns();
        return r;
}

static void start_again(void) {
        struct err e = { 0 };

        net.again_ns = 0;
        net.started_ns = clock_mono_ns();
        if (egressctl_restart(net.egress, &e) < 0 || watch_it(&e) < 0)
                on_death(e.msg);
        else
                net.untold = true;
}

/* New listeners in a living sandbox's namespace, for egress. */
static int tell(struct box *b, struct err *err) {
        static struct sandbox sb;
        static struct plan plan;
        uint64_t netns;
        int r;

        plan.net = plan_net();
        sb = (struct sandbox){ .agent_pid = b->pid, .proc_fd = warden.proc_fd };
        r = sandbox_net_open(&sb, &netns, err);
        /* Alive after it was opened: then that was the process that we hold. */
        if (r == 0 && sys_poll_in(b->end.fd, 0) != 0)
                r = err_set(err, -ESRCH, ERR_NOT_FOUND, "it has ended");
        if (r == 0 && netns != b->net->netns)
                r = err_set(err, -EBADE, ERR_DENIED, "its agent is in another network namespace");
        if (r == 0)
                r = sandbox_net_listen(&sb, &plan, err);
        if (r == 0)
                r = egressctl_add(net.egress, b->net->id, sb.net.socket_fds, b->net->document, err);
        sandbox_net_handed_over(&sb);
        memcpy(b->net->inodes, sb.net.inodes, sizeof(b->net->inodes));
        sandbox_net_close(&sb);
        b->net->told = r == 0;
        return r;
}

/* Some of those that egress does not know. Milliseconds, or -1 when there are none left. */
static int tell_some(void) {
        uint64_t now = clock_mono_ns();
        struct box *b;
        int done = 0, wait_ms = -1;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                struct err e = { 0 };

                if (!b->net || b->net->told || b->net->netns == 0 || b->end.fd < 0 || b->state == WP_MAKING ||
                    b->state == WP_ENDING)
                        continue;
                if (b->net->retry_ns > now) {
                        wait_ms = wait_ms < 0 ? AGAIN_MS : wait_ms;
                        continue;
                }
                if (done++ == TOLD_AT_ONCE)
                        return 0;
                if (tell(b, &e) == 0)
                        continue;
                b->net->retry_ns = now + AGAIN_MS * 1000000ull;
                wait_ms = AGAIN_MS;
                if (e.code != -ESRCH)
                        warden_log("sandbox %s: its network: %s", b->id, e.msg);
                if (egressctl_fd(net.egress) < 0)
                        return 0;
        }
        net.untold = wait_ms >= 0;
        return wait_ms;
}

static void pool_turn(void) {
        struct err e = { 0 };

        if (netpool_fd(net.pool) >= 0 && sys_poll_in(netpool_fd(net.pool), 0) > 0 && netpool_collect(net.pool, &e) < 0)
                warden_log("%s", e.msg);
        if (netpool_fd(net.pool) < 0 && netpool_ready(net.pool) < NAMESPACES / 2 && netpool_fill(net.pool, &e) < 0)
                warden_log("%s", e.msg);
}

int network_turn(void) {
        struct err e = { 0 };
        uint64_t now;

        record_pump();
        if (!net.egress && !net.untold)
                return -1;
        if (!net.egress && network_start(&e) < 0) {
                warden_log("%s", e.msg);
                return AGAIN_MS;
        }
        pool_turn();
        if (egressctl_fd(net.egress) < 0 && net.again_ns == 0)
                on_death("gabion-egress has ended"); /* somebody else's call noticed */
        now = clock_mono_ns();
        if (net.again_ns > now)
                return (int) ((net.again_ns - now) / 1000000) + 1;
        if (net.again_ns)
                start_again();
        pause_it(record_full());
        return net.untold && net.again_ns == 0 ? tell_some() : net.again_ns ? RETRY_FIRST_MS : -1;
}

/* --- boxes --- */

int network_give(struct box *b, const char *document, bool own_certificates, struct err *err) {
        struct netbox *n = calloc(1, sizeof(*n));
        int r = net.boxes ? 0 : map_new(WARDEN_BOXES, &net.boxes);

        if (n)
                n->document = strdup(document);
        if (r == 0 && n && n->document) {
                memcpy(n->id, b->id, sizeof(n->id));
                n->own_certificates = own_certificates;
                r = map_put(net.boxes, n->id, strlen(n->id), b);
        }
        if (r < 0 || !n || !n->document) {
                if (n)
                        free(n->document);
                free(n);
                return err_set(err, r < 0 ? r : -ENOMEM, ERR_INTERNAL, "sandbox %s: its network cannot be kept", b->id);
        }
        b->net = n;
        return 0;
}

int network_adopt(struct box *b, const struct record *rec, struct err *err) {
        CLEANUP(policy_egress_freep) struct policy_egress *rules = NULL;
        int r;

        if (!rec->egress)
                return 0;
        r = policy_egress_read(rec->egress, strlen(rec->egress), &rules, err);
        if (r == 0)
                r = network_give(b, rec->egress, rec->own_certificates, err);
        if (r < 0)
                return r;
        if (rec->egress_id[0] && !str_eq(rec->egress_id, b->net->id)) {
                (void) map_del(net.boxes, b->net->id, strlen(b->net->id));
                memcpy(b->net->id, rec->egress_id, sizeof(b->net->id));
                r = map_put(net.boxes, b->net->id, strlen(b->net->id), b);
        }
        b->net->bind = rules->bind;
        b->net->netns = rec->netns;
        b->net->live = true;
        net.untold = true;
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "sandbox %s: its network cannot be kept", b->id) : 0;
}

void network_leave(struct box *b) {
        struct err e = { 0 };

        if (!b->net)
                return;
        if (b->net->told && net.egress && egressctl_fd(net.egress) >= 0)
                (void) egressctl_remove(net.egress, b->net->id, &e); /* a failure is its death, and noticed */
        (void) map_del(net.boxes, b->net->id, strlen(b->net->id));
        free(b->net->document);
        free(b->net);
        b->net = NULL;
}

/* The record keeps the rules that are in force, beside the policy with which the sandbox was made. */
static int rules_write(const struct box *b, struct record *rec, const char *document, struct err *err) {
        AUTO_FD int fd = record_open(b->slot, O_RDWR);

        if (fd < 0)
                return err_set(err, fd, ERR_INTERNAL, "record of sandbox %s: %s", b->id, strerror(-fd));
        free(rec->egress);
        rec->egress = strdup(document);
        return rec->egress ? record_write(fd, rec, err) : err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
}

static int rules_of(const struct box *b, const struct record *rec, const struct policy *policy,
                    const struct policy *ceiling, char **ret, char ret_hash[HASH_TEXT], struct err *err) {
        static struct policy now; /* large */
        struct policy_net *own;
        int r = record_policy(rec, &now, err);

        if (r < 0)
                return r;
        own = now.net;
        now.net = policy->net; /* borrowed: the rest of the policy stays what it was */
        if (policy_net_opens_tls(&now, ceiling) && !b->net->own_certificates)
                r = err_set(err, -EINVAL, ERR_INVALID,
                            "network: methods and paths need TLS to be opened, for which the sandbox was not prepared");
        if (r == 0)
                r = policy_hash(&now, ret_hash, err);
        if (r == 0)
                r = network_document(&now, ceiling, &b->net->bind, ret, err);
        now.net = own;
        policy_done(&now);
        return r;
}

int network_update(struct box *b, const struct policy *policy, const struct policy *ceiling, bool drop,
                   char ret_hash[HASH_TEXT], struct err *err) {
        CLEANUP(record_done) struct record rec = { 0 };
        AUTO_FREE char *document = NULL;
        struct err undo = { 0 };
        int r = record_of(b, &rec, err);

        if (r == 0)
                r = rules_of(b, &rec, policy, ceiling, &document, ret_hash, err);
        if (r == 0)
                r = rules_write(b, &rec, document, err);
        if (r < 0)
                return r;
        r = b->net->told ? egressctl_update(net.egress, b->net->id, document, drop, err) : 0;
        if (r == -EREMOTEIO) { /* it does not take them, and goes on with the old ones */
                if (rules_write(b, &rec, b->net->document, &undo) < 0)
                        warden_log("%s", undo.msg);
                return r;
        }
        /* One that has died is told when it is back. */
        free(b->net->document);
        b->net->document = TAKE_PTR(document);
        return 0;
}
