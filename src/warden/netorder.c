/*
 * netorder.c - a sandbox with a network on its way from an order to the gate: rules and certificates before the fork;
 * in the maker the listeners, which go to egress through the warden, and the proof that what must be refused is refused
 * and recorded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"
#include "egressctl/egressctl.h"
#include "egressctl/trust.h"
#include "evidence/evidence.h"
#include "json/json.h"
#include "network.h"
#include "policy/net.h"
#include "sandbox/netpool.h"
#include "sandbox/sandbox.h"

enum { ASK_LISTENERS = JOB_ASKS, ASK_PROVEN };

/* All canaries but one, which the kernel refuses alone. */
enum { RECORDED = PLAN_NET_CANARIES - 1 };

/* --- the order --- */

static bool has_variable(const struct order *o, const char *name) {
        for (size_t at = 0; at < o->n_env; at += strlen(o->env + at) + 1)
                if (str_has_prefix(o->env + at, name))
                        return true;
        return false;
}

/* name has its '='. What the caller set is left alone. */
static int set_variable(struct order *o, const char *name, const char *value, struct err *err) {
        size_t n = strlen(name), k = strlen(value) + 1;
        char *more;

        if (has_variable(o, name))
                return 0;
        more = o->n_env + n + k <= WP_ENV_BYTES ? realloc(o->env, o->n_env + n + k) : NULL;
        if (!more)
                return err_set(err, -E2BIG, ERR_LIMIT, "variables: more than %d KiB", WP_ENV_BYTES / 1024);
        o->env = more;
        memcpy(o->env + o->n_env, name, n);
        memcpy(o->env + o->n_env + n, value, k);
        o->n_env += n + k;
        return 0;
}

/* Variables by which programs find the bundle. */
static int trust_it(struct order *o, struct err *err) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < TRUST_VARIABLES; i++)
                r = set_variable(o, trust_variable(i), PLAN_BUNDLE, err);
        if (r == 0 && !warden.facts.has_java_bundle)
                r = set_variable(o, "JAVA_TOOL_OPTIONS=", "-Djavax.net.ssl.trustStore=/" PLAN_JAVA, err);
        return r;
}

static bool own_certificates(const struct order *o) {
        const struct plan_way_out way = network_way_out(&o->ceiling->it, o->bind);

        return way.ca_bundle || policy_net_opens_tls(&o->policy->it, &o->ceiling->it);
}

int network_order(struct order *o, int ceiling_fd, const char *bind, struct err *err) {
        struct addr from = { .family = ADDR_NONE };
        int r;

        if (!policy_net_any(&o->policy->it))
                return 0;
        r = known_read(ceiling_fd, &o->ceiling, err);
        if (r < 0)
                return r;
        if (bind[0] && addr_parse(bind, &from) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "source address: '%s' is none", bind);
        (void) str_copy(o->bind, sizeof(o->bind), bind);
        r = network_document(&o->policy->it, &o->ceiling->it, &from, &o->document, err);
        if (r == 0 && own_certificates(o))
                r = trust_it(o, err);
        return r < 0 ? r : network_start(err);
}

int network_give_order(struct order *o, struct err *err) {
        int r = network_give(o->box, o->document, own_certificates(o), err);

        if (r == 0 && o->bind[0])
                (void) addr_parse(o->bind, &o->box->net->bind);
        return r;
}

int network_order_closed(struct order *o, struct err *err) {
        static struct policy plain; /* large; shares everything but the network */
        int r;

        if (!policy_net_any(&o->policy->it))
                return 0;
        plain = o->policy->it;
        plain.net = NULL;
        r = network_document(&plain, NULL, &(const struct addr){ .family = ADDR_NONE }, &o->document, err);
        if (r == 0)
                r = network_start(err);
        return r < 0 ? r : network_give(o->box, o->document, own_certificates(o), err);
}

int network_prepare(struct order *o, struct plan *plan, int *fds[NETWORK_FDS], size_t *ret_n, struct err *err) {
        size_t n = 0;
        int r = network_certificates(plan, err);

        *ret_n = 0;
        if (r < 0 || !plan->net || network_namespace(&o->netns) < 0)
                return r;
        o->has_netns = true;
        fds[n++] = &o->netns.ns_fd;
        fds[n++] = &o->netns.route_fd;
        fds[n++] = &o->netns.filter_fd;
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++)
                fds[n++] = &o->netns.socket_fds[i];
        for (size_t i = 0; i < PLAN_NET_CANARIES; i++)
                fds[n++] = &o->netns.canary_fds[i];
        *ret_n = n;
        return 0;
}

void network_prepared(struct order *o) {
        if (o->has_netns)
                netpool_drop(&o->netns);
        o->has_netns = false;
}

/* --- in the maker --- */

int network_hand_over(const struct plan *plan, struct sandbox *sb, struct record *rec, struct err *err) {
        uint8_t space[16];
        struct wr w = wr_to(space, sizeof(space));
        struct ipc_msg answer;
        struct stat st;
        struct rd body;
        int r;

        if (!plan->net)
                return 0;
        if (fstat(sb->net.ns_fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "network namespace: %s", strerror(errno));
        rec->netns = st.st_ino;
        wr_u8(&w, ASK_LISTENERS);
        wr_u64(&w, rec->netns);
        r = job_ask(&w, sb->net.socket_fds, PLAN_NET_SOCKETS, &answer, &body, err);
        if (r < 0)
                return r;
        sandbox_net_handed_over(sb); /* our copies go: a dead egress must mean that connects are refused */
        sb->egress_pid = (pid_t) rd_u32(&body);
        return rd_done(&body) ? 0 : err_set(err, -EBADMSG, ERR_INTERNAL, "the warden spoke nonsense");
}

static int enough(unsigned recorded, struct err *err) {
        return recorded >= RECORDED
                       ? 0
                       : err_set(err, -EBADE, ERR_DENIED,
                                 "control network records is not in force: %u of %d refusals were recorded; nothing "
                                 "was started",
                                 recorded, RECORDED);
}

int network_proven(const struct plan *plan, struct err *err) {
        uint8_t kind = ASK_PROVEN;
        const struct wr w = { .p = &kind, .len = 1, .cap = 1 };
        struct ipc_msg answer;
        struct rd body;
        int r = plan->net ? job_ask(&w, NULL, 0, &answer, &body, err) : 0;

        return r < 0 || !plan->net ? r : enough(rd_u32(&body), err);
}

/* --- in the warden --- */

static int on_listeners(struct box *b, struct ipc_msg *m, struct rd *body, struct err *err) {
        uint64_t netns = rd_u64(body);
        struct stat st;
        int r;

        if (!b || !b->net || m->n_fds != PLAN_NET_SOCKETS || !rd_done(body) || netns == 0)
                return err_set(err, -EBADMSG, ERR_INTERNAL, "a maker spoke nonsense");
        r = egressctl_add(network_egress(), b->net->id, m->fds, b->net->document, err);
        if (r < 0)
                return r;
        b->net->told = true;
        b->net->netns = netns;
        for (size_t i = 0; i < PLAN_NET_SOCKETS; i++)
                b->net->inodes[i] = fstat(m->fds[i], &st) == 0 ? st.st_ino : 0;
        return 0;
}

/* Everything that was tried has been told by now. From here on it is the sandbox itself that tries. */
static int on_proven(struct box *b, struct err *err) {
        int r = b && b->net ? egressctl_ping(network_egress(), err)
                            : err_set(err, -EBADMSG, ERR_INTERNAL, "a maker spoke nonsense");

        if (r == 0)
                b->net->live = true;
        return r;
}

void network_asked(struct job *j, struct ipc_msg *m) {
        struct box *b = j->order ? j->order->box : NULL;
        struct rd body = rd_from(m->bytes, m->n);
        uint8_t kind = rd_u8(&body), space[8];
        struct wr w = wr_to(space, sizeof(space));
        struct err e = { 0 };
        int r = kind == ASK_LISTENERS ? on_listeners(b, m, &body, &e)
                : kind == ASK_PROVEN  ? on_proven(b, &e)
                                      : err_set(&e, -EBADMSG, ERR_INTERNAL, "a maker spoke nonsense");

        wr_u8(&w, 1);
        if (r == 0)
                wr_u32(&w, kind == ASK_LISTENERS ? (uint32_t) egressctl_pid(network_egress()) : b->net->canaries);
        job_answer(j, &w, r < 0 ? &e : NULL);
}

int network_claim(struct box *b, const struct order *o, const struct plan *plan, struct sandbox *sb,
                  struct evidence *ev, struct err *err) {
        char *document = plan->net ? strdup(o->document) : NULL;
        int r;

        if (!plan->net)
                return 0;
        if (!b->net || !b->net->told || !document) {
                free(document);
                return err_set(err, -EPIPE, ERR_BUSY, "gabion-egress has ended");
        }
        free(b->net->document);
        b->net->document = document;
        if (o->bind[0])
                (void) addr_parse(o->bind, &b->net->bind);
        b->net->canaries = 0;
        r = egressctl_update(network_egress(), b->net->id, document, false, err);
        if (r == 0)
                r = sandbox_net_attach(sb, err);
        sb->egress_pid = egressctl_pid(network_egress());
        memcpy(sb->net.inodes, b->net->inodes, sizeof(sb->net.inodes));
        if (r == 0)
                r = evidence_canary(plan, sb, ev, err);
        if (r == 0)
                r = egressctl_ping(network_egress(), err);
        if (r == 0)
                r = enough(b->net->canaries, err);
        b->net->live = r == 0;
        return r;
}
