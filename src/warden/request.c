/*
 * request.c - what a client may ask. The gate of src/ipc has checked type, size and number of descriptors; each handler
 * decodes its body whole before it does anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "json/json.h"
#include "network.h"
#include "policy/net.h"
#include "state.h"

enum { ANY_STATE = BIT(0) };

static struct asker asker_of(const struct ipc_call *call) {
        const struct client *c = call->gate->owner;

        return (struct asker){ c->number, call->serial };
}

static int malformed(struct err *err, const char *what) {
        return err_set(err, -EBADMSG, ERR_PEER, "%s: malformed request", what);
}

/* The box of the id that is the whole body, in one of the states; WP_POOLED is nobody's. */
static struct box *box_asked(struct ipc_call *call, unsigned states, struct err *err) {
        char id[ID_TEXT];
        struct box *b;

        if (wp_get_id(&call->body, id) < 0) {
                (void) malformed(err, "sandbox id");
                return NULL;
        }
        b = box_find(id);
        if (!b || b->shape) {
                (void) err_set(err, -ENOENT, ERR_NOT_FOUND, "sandbox %s: there is none", id);
                return NULL;
        }
        if (!(states & BIT(b->state))) {
                (void) err_set(err, -EBUSY, ERR_BUSY, "sandbox %s: not in its present state", id);
                return NULL;
        }
        return b;
}

/* With everything written down that was read of it. */
static struct box *box_of(struct ipc_call *call, unsigned states, struct err *err) {
        claim_finish();
        return box_asked(call, states, err);
}

/* Of a request that has no ceiling. */
static int closed_policy(int fd, struct known **ret, struct err *err) {
        int r = known_read(fd, ret, err);

        if (r == 0 && policy_net_any(&(*ret)->it)) {
                known_drop(ret);
                r = err_set(err, -EINVAL, ERR_INVALID, "network: it needs a ceiling");
        }
        return r;
}

/* bind: of a request with a ceiling; NULL: one without. */
static struct order *order_of(struct ipc_call *call, const char *bind, struct err *err) {
        struct order *o = calloc(1, sizeof(*o));
        int r;

        if (!o) {
                (void) err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
                return NULL;
        }
        o->asker = asker_of(call);
        o->asked_ns = clock_mono_ns();
        r = bind ? known_read(call->fds[0], &o->policy, err) : closed_policy(call->fds[0], &o->policy, err);
        if (r == 0)
                r = ipc_blob_read(call->fds[1], WP_ENV_BYTES, &o->env, &o->n_env, err);
        if (r == 0 && wp_env_each(o->env, o->n_env, NULL, NULL) < 0)
                r = err_set(err, -EINVAL, ERR_INVALID, "variables: NAME=value each, with a NUL behind it");
        if (r == 0 && bind)
                r = network_order(o, call->fds[2], bind, err);
        if (r < 0) {
                order_free(o);
                return NULL;
        }
        return o;
}

static int create(struct ipc_call *call, const struct wp_create *c, const char *bind, struct err *err) {
        struct box *b = NULL;
        struct order *o;
        int r;

        if (box_find(c->id))
                return err_set(err, -EEXIST, ERR_INVALID, "sandbox %s exists", c->id);
        o = order_of(call, bind, err);
        if (!o)
                return err->code == -EBADMSG || err->code == -EPROTO ? -EINVAL : err->code;
        if (c->from != WP_COLD_ONLY) {
                r = pool_claim(c, o, call->gate->peer.uid, &b, err);
                if (r == 0)
                        pool_answer(b, o);
                if (r == 0 || c->from == WP_POOL_ONLY || box_find(c->id)) {
                        order_free(o);
                        return r < 0 ? r : IPC_REPLY_LATER;
                }
        }
        o->box = box_new(c->id, c->tenant, err);
        if (o->box && o->document && network_give_order(o, err) < 0)
                box_free(TAKE_PTR(o->box));
        if (!o->box) {
                order_free(o);
                return err->code;
        }
        memcpy(o->box->hostname, c->hostname, sizeof(c->hostname));
        o->box->uid = call->gate->peer.uid;
        o->box->created_ms = clock_real_ms();
        if (c->from == WP_ANY && !bind && pool_wait(o))
                return IPC_REPLY_LATER;
        r = maker_order(o, err);
        return r < 0 ? r : IPC_REPLY_LATER;
}

static int on_create(struct ipc_call *call, struct err *err) {
        struct wp_create c;

        return wp_get_create(&call->body, &c) < 0 ? malformed(err, "create") : create(call, &c, NULL, err);
}

static int on_create_net(struct ipc_call *call, struct err *err) {
        char bind[WP_ADDRESS];
        struct wp_create c;

        return wp_get_create_net(&call->body, &c, bind) < 0 ? malformed(err, "create") : create(call, &c, bind, err);
}

static int on_kill(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_MAKING) | BIT(WP_RUNNING) | BIT(WP_FROZEN) | BIT(WP_ENDING), err);

        if (!b)
                return err->code;
        if (b->killer.client)
                return err_set(err, -EALREADY, ERR_BUSY, "sandbox %s: it is being ended", b->id);
        box_kill(b, asker_of(call));
        return IPC_REPLY_LATER;
}

static int on_freeze(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_RUNNING), err);
        int r;

        if (!b)
                return err->code;
        r = launch_freeze(b, asker_of(call), err);
        return r < 0 ? r : IPC_REPLY_LATER;
}

static int on_thaw(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_FROZEN), err);
        struct cgroup c;
        int r;

        if (!b)
                return err->code;
        r = box_groups(b, &c, err);
        if (r < 0)
                return r;
        r = cgroup_freeze(&c, false, err);
        cgroup_close(&c);
        if (r == 0)
                b->state = WP_RUNNING;
        return r;
}

static int on_usage(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_RUNNING) | BIT(WP_FROZEN), err);
        struct wp_usage u;
        int r;

        if (!b)
                return err->code;
        r = box_usage(b, &u, err);
        if (r == 0)
                wp_put_usage(call->reply, &u);
        return r;
}

static int by_slot(const void *a, const void *b) {
        const struct box *x = *(struct box *const *) a, *y = *(struct box *const *) b;

        return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* In the order of slots, which does not change between two requests; those that have none yet are left out. */
static int on_list(struct ipc_call *call, struct err *err) {
        static struct box *all[WARDEN_BOXES];
        struct wp_list l = { 0 };
        uint32_t from;
        size_t n = 0;
        struct box *b;

        if (wp_get_u32(&call->body, &from) < 0)
                return malformed(err, "list");
        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (!b->shape && b->state != WP_MAKING && b->slot >= from)
                        all[n++] = b;
        }
        qsort(all, n, sizeof(struct box *), by_slot); /* NOLINT */
        for (size_t i = 0; i < n && l.next == 0; i++) {
                struct wp_listed *to = &l.boxes[l.n];

                if (l.n == WP_LISTED) {
                        l.next = all[i]->slot;
                        break;
                }
                memcpy(to->id, all[i]->id, sizeof(to->id));
                memcpy(to->tenant, all[i]->tenant, sizeof(to->tenant));
                to->state = (uint8_t) all[i]->state;
                to->slot = all[i]->slot;
                to->pid = (uint32_t) all[i]->pid;
                to->created_ms = all[i]->created_ms;
                l.n++;
        }
        wp_put_list(call->reply, &l);
        return 0;
}

static int on_evidence(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_RUNNING) | BIT(WP_FROZEN), err);
        CLEANUP(record_done) struct record rec = { 0 };
        int r;

        if (!b)
                return err->code;
        r = record_of(b, &rec, err);
        if (r == 0 && (!rec.evidence_hash[0] || !rec.evidence))
                r = err_set(err, -ENOENT, ERR_INTERNAL, "sandbox %s: its record has no evidence", b->id);
        if (r == 0)
                call->reply_fd = r = ipc_blob_make(rec.evidence, strlen(rec.evidence), err);
        return r < 0 ? r : 0;
}

static int on_statement(struct ipc_call *call, struct err *err) {
        const struct box *b = box_asked(call, BIT(WP_RUNNING) | BIT(WP_FROZEN), err);
        struct wp_hashes hashes;

        if (!b)
                return err->code;
        if (claim_ask(b, asker_of(call)))
                return IPC_REPLY_LATER;
        call->reply_fd = check_statement(b, &hashes, err);
        if (call->reply_fd < 0)
                return call->reply_fd;
        wp_put_hashes(call->reply, &hashes);
        return 0;
}

static int on_check(struct ipc_call *call, struct err *err) {
        struct box *b = box_of(call, BIT(WP_RUNNING) | BIT(WP_FROZEN), err);
        int r;

        if (!b)
                return err->code;
        r = check_start(b, asker_of(call), err);
        return r < 0 ? r : IPC_REPLY_LATER;
}

static int on_subscribe(struct ipc_call *call, struct err *err) {
        struct client *c = call->gate->owner;

        if (call->body.left > 0)
                return malformed(err, "subscribe");
        c->subscribed = true;
        c->serial = call->serial;
        return IPC_REPLY_LATER;
}

static int on_launch(struct ipc_call *call, struct err *err) {
        char id[ID_TEXT];
        struct box *b;
        uint32_t uid;
        int r;

        if (wp_get_launch(&call->body, id, &uid) < 0)
                return malformed(err, "launch");
        claim_finish();
        b = box_find(id);
        if (!b || b->shape || b->state != WP_RUNNING)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "sandbox %s: there is none that runs", id);
        if (uid != 0 && uid != PLAN_USER)
                return err_set(err, -EINVAL, ERR_INVALID, "user %u: 0 (root) or %d (user)", uid, PLAN_USER);
        r = launch_start(b, uid, asker_of(call), err);
        return r < 0 ? r : IPC_REPLY_LATER;
}

static int on_pool(struct ipc_call *call, struct err *err) {
        CLEANUP(known_drop) struct known *policy = NULL;
        uint32_t wanted;
        int r;

        if (wp_get_u32(&call->body, &wanted) < 0)
                return malformed(err, "pool");
        r = closed_policy(call->fds[0], &policy, err);
        return r < 0 ? r : pool_set(policy, NULL, wanted, err);
}

static int on_pool_net(struct ipc_call *call, struct err *err) {
        CLEANUP(known_drop) struct known *policy = NULL, *ceiling = NULL;
        uint32_t wanted;
        int r;

        if (wp_get_u32(&call->body, &wanted) < 0)
                return malformed(err, "pool");
        r = known_read(call->fds[0], &policy, err);
        if (r == 0)
                r = known_read(call->fds[1], &ceiling, err);
        return r < 0 ? r : pool_set(policy, policy_net_any(&policy->it) ? ceiling : NULL, wanted, err);
}

static int on_network(struct ipc_call *call, struct err *err) {
        CLEANUP(known_drop) struct known *policy = NULL, *ceiling = NULL;
        char hash[HASH_TEXT];
        struct wp_network n;
        struct box *b;
        int r;

        if (wp_get_network(&call->body, &n) < 0)
                return malformed(err, "network");
        claim_finish();
        b = box_find(n.id);
        if (!b || b->shape || (b->state != WP_RUNNING && b->state != WP_FROZEN))
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "sandbox %s: there is none", n.id);
        if (!b->net)
                return err_set(err, -ENETDOWN, ERR_INVALID, "sandbox %s was made without a network", n.id);
        r = known_read(call->fds[0], &policy, err);
        if (r == 0)
                r = known_read(call->fds[1], &ceiling, err);
        if (r == 0)
                r = network_update(b, &policy->it, &ceiling->it, n.drop, hash, err);
        if (r == 0)
                wp_put_hash(call->reply, hash);
        return r;
}

static int on_records(struct ipc_call *call, struct err *err) {
        if (call->body.left > 0)
                return malformed(err, "records");
        record_ask(asker_of(call));
        return IPC_REPLY_LATER;
}

static int on_status(struct ipc_call *call, struct err *err) {
        struct wp_status s = { .making = warden.n_makers, .queued = warden.n_orders };
        struct shape *p;
        struct box *b;

        if (call->body.left > 0)
                return malformed(err, "status");
        TAILQ_FOREACH(p, &warden.shapes, link) {
                s.pool_wanted += p->wanted;
        }
        TAILQ_FOREACH(b, &warden.boxes, link) {
                s.running += b->state == WP_RUNNING || b->state == WP_FROZEN;
                s.pooled += b->state == WP_POOLED;
                s.ending += b->state == WP_ENDING;
        }
        wp_put_status(call->reply, &s);
        return 0;
}

const struct ipc_op request_ops[WP_TYPES] = {
        [WP_CREATE] = { "create", on_create, ANY_STATE, 256, 2, false },
        [WP_KILL] = { "kill", on_kill, ANY_STATE, 32, 0, false },
        [WP_FREEZE] = { "freeze", on_freeze, ANY_STATE, 32, 0, false },
        [WP_THAW] = { "thaw", on_thaw, ANY_STATE, 32, 0, false },
        [WP_USAGE] = { "usage", on_usage, ANY_STATE, 32, 0, false },
        [WP_LIST] = { "list", on_list, ANY_STATE, 4, 0, false },
        [WP_EVIDENCE] = { "evidence", on_evidence, ANY_STATE, 32, 0, false },
        [WP_SUBSCRIBE] = { "subscribe", on_subscribe, ANY_STATE, 0, 0, true },
        [WP_LAUNCH] = { "launch", on_launch, ANY_STATE, 40, 0, false },
        [WP_POOL] = { "pool", on_pool, ANY_STATE, 4, 1, false },
        [WP_STATUS] = { "status", on_status, ANY_STATE, 0, 0, false },
        [WP_CREATE_NET] = { "create", on_create_net, ANY_STATE, 256, 3, false },
        [WP_POOL_NET] = { "pool", on_pool_net, ANY_STATE, 4, 2, false },
        [WP_NETWORK] = { "network", on_network, ANY_STATE, 40, 2, false },
        [WP_RECORDS] = { "records", on_records, ANY_STATE, 0, 0, false },
        [WP_STATEMENT] = { "statement", on_statement, ANY_STATE, 32, 0, false },
        [WP_CHECK] = { "check", on_check, ANY_STATE, 32, 0, false },
};
