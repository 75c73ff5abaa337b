/*
 * pool.c - sandboxes made before they are asked for. All that share a shape (a policy but for what can be changed
 * afterwards) are alike. A claim (claim.c) takes one out for good: it is used once, and one that fails on the way is
 * ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "guard.h"
#include "network.h"
#include "policy/net.h"
#include "state.h"

/* With a network it also counts whether certificates are there from the beginning. */
static void shape_hash(const struct known *p, const struct known *ceiling, char dst[HASH_TEXT]) {
        char text[HASH_TEXT + 8];

        (void) str_copy(dst, HASH_TEXT, p->shape);
        if (!policy_net_any(&p->it))
                return;
        (void) snprintf(text, sizeof(text), "%s net %d", dst,
                        policy_net_opens_tls(&p->it, ceiling ? &ceiling->it : NULL));
        hash_text(dst, text, strlen(text));
}

static struct shape *shape_find(const char *hash) {
        struct shape *s;

        TAILQ_FOREACH(s, &warden.shapes, link) {
                if (str_eq(s->hash, hash))
                        return s;
        }
        return NULL;
}

static void shape_free(struct shape *s) {
        known_drop(&s->policy);
        known_drop(&s->ceiling);
        free(s);
}

/* Those who wait get one of their own. */
static void wait_no_more(struct shape *s) {
        struct order *o;

        while ((o = TAILQ_FIRST(&s->waiters))) {
                struct asker asker = o->asker;
                struct err e;

                TAILQ_REMOVE(&s->waiters, o, link);
                s->waiting--;
                if (maker_order(o, &e) < 0)
                        client_reply(asker, NULL, &e);
        }
}

/* Ends what is ready beyond what is wanted; frees a shape that nobody wants and nobody is in. */
static void trim(struct shape *s) {
        struct box *b, *next;

        for (b = TAILQ_FIRST(&warden.boxes); b && s->ready > s->wanted; b = next) {
                next = TAILQ_NEXT(b, link);
                if (b->shape == s && b->state == WP_POOLED) {
                        s->ready--;
                        box_kill(b, (struct asker){ 0 });
                }
        }
        if (s->wanted > 0)
                return;
        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->shape == s)
                        return;
        }
        TAILQ_REMOVE(&warden.shapes, s, link);
        warden.n_shapes--;
        shape_free(s);
}

int pool_set(struct known *p, struct known *ceiling, uint32_t wanted, struct err *err) {
        char hash[HASH_TEXT];
        struct shape *s;

        if (wanted > WP_POOL_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "pool: at most %d", WP_POOL_MAX);
        shape_hash(p, ceiling, hash);
        s = shape_find(hash);
        if (!s && wanted == 0)
                return 0;
        if (!s && warden.n_shapes == WARDEN_SHAPES)
                return err_set(err, -EBUSY, ERR_LIMIT, "more than %d pools", WARDEN_SHAPES);
        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
                s->policy = known_ref(p);
                s->ceiling = known_ref(ceiling);
                memcpy(s->hash, hash, sizeof(s->hash));
                TAILQ_INIT(&s->waiters);
                TAILQ_INSERT_TAIL(&warden.shapes, s, link);
                warden.n_shapes++;
        }
        s->wanted = wanted;
        if (wanted == 0)
                wait_no_more(s);
        trim(s);
        return 0;
}

static int order_one(struct shape *s, struct err *err) {
        char id[ID_TEXT];
        struct order *o = calloc(1, sizeof(*o));
        int r = id_new(id);

        if (!o || r < 0) {
                order_free(o);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        o->policy = known_ref(s->policy);
        o->ceiling = known_ref(s->ceiling);
        o->box = box_new(id, "pool", err);
        if (o->box && network_order_closed(o, err) < 0)
                box_free(TAKE_PTR(o->box));
        if (!o->box) {
                order_free(o);
                return err->code;
        }
        o->box->shape = s;
        o->box->created_ms = clock_real_ms();
        s->making++;
        r = maker_order(o, err);
        if (r < 0)
                s->making--;
        return r;
}

/*
 * Whether to make more of them now; else *ret_ns: when to look again, 0: not by itself. Whoever claims one has
 * something to run, and soon asks again if he is one of many: so a pool is filled up when half of it is gone, or
 * nothing was claimed for a moment, and then to the brim.
 */
static bool wants_more(struct shape *s, uint64_t now, uint64_t *ret_ns) {
        *ret_ns = 0;
        if (s->ready + s->making >= s->wanted + s->waiting) {
                s->filling = false;
                return false;
        }
        if (s->waiting > 0 || s->ready + s->making <= s->wanted / 2 || now >= s->quiet_ns)
                s->filling = true;
        *ret_ns = now < s->not_before_ns ? s->not_before_ns : s->quiet_ns;
        return s->filling && now >= s->not_before_ns;
}

int pool_fill(void) {
        uint64_t now = clock_mono_ns(), then;
        struct shape *s;
        int wait_ms = -1;

        TAILQ_FOREACH(s, &warden.shapes, link) {
                struct err e;

                /* A few at a time: the queue belongs to those who wait. */
                while (wants_more(s, now, &then) && s->making < WARDEN_POOL_MAKERS * WARDEN_BATCH)
                        if (order_one(s, &e) < 0)
                                s->not_before_ns = now + WARDEN_BACKOFF_MS * 1000000ull;
                if (then > now) {
                        int ms = (int) ((then - now) / 1000000) + 1;

                        wait_ms = wait_ms < 0 || ms < wait_ms ? ms : wait_ms;
                }
        }
        return wait_ms;
}

void pool_failed(struct box *b) {
        if (!b->shape)
                return;
        b->shape->making--;
        b->shape->failed = true;
        b->shape->not_before_ns = clock_mono_ns() + WARDEN_BACKOFF_MS * 1000000ull;
        wait_no_more(b->shape);
}

void pool_leave(struct box *b) {
        struct shape *s = b->shape;

        free(b->facts);
        b->facts = NULL;
        b->shape = NULL;
        if (s && b->state == WP_POOLED)
                s->ready--;
        if (s)
                trim(s);
}

/* --- the claim --- */

static int claim_from(struct shape *s, const struct wp_create *c, struct order *o, uid_t uid, struct box **ret,
                      struct err *err) {
        struct box *b;
        int r;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->shape == s && b->state == WP_POOLED && (!b->net || b->net->told))
                        break;
        }
        if (!b)
                return err_set(err, -EAGAIN, ERR_BUSY, "no ready sandbox of this kind");
        r = claim_apply(b, c, o, uid, err);
        if (r == 0) {
                r = guard_start(b, &o->policy->it, err);
                if (r < 0)
                        claim_drop();
        }
        if (r < 0) {
                warden_log("pool: a claim failed, and its sandbox is ended: %s", err->msg);
                s->ready--;
                box_kill(b, (struct asker){ 0 });
                return r;
        }
        pool_leave(b);
        b->state = WP_RUNNING;
        b->checked_ns = clock_mono_ns(); /* just now, by the claim */
        b->profile = (enum seccomp_profile) o->policy->it.syscalls;
        *ret = b;
        return 0;
}

void pool_answer(struct box *b, const struct order *o) {
        maker_answer(o, b, true);
        claim_later(b, o);
}

int pool_claim(const struct wp_create *c, struct order *o, uid_t uid, struct box **ret, struct err *err) {
        char hash[HASH_TEXT];
        struct shape *s;
        int r;

        shape_hash(o->policy, o->ceiling, hash);
        o->pool = s = shape_find(hash);
        if (!s || s->ready == 0)
                return err_set(err, -EAGAIN, ERR_BUSY, "no ready sandbox of this kind");
        r = claim_from(s, c, o, uid, ret, err);
        s->quiet_ns = clock_mono_ns() + WARDEN_LATER_MS * 1000000ull;
        return r;
}

/* --- those who came when none was ready --- */

bool pool_wait(struct order *o) {
        struct shape *s = o->pool;

        if (!s || s->wanted == 0 || s->failed || s->waiting == WARDEN_QUEUE)
                return false;
        o->box->state = WP_MAKING;
        TAILQ_INSERT_TAIL(&s->waiters, o, link);
        s->waiting++;
        s->not_before_ns = 0;
        return true;
}

/* A ready one takes the place of the box that has only a name. */
static void give(struct shape *s, struct order *o) {
        struct asker killer = o->box->killer;
        struct wp_create c = { .from = WP_ANY };
        bool kill = o->box->kill;
        uid_t uid = o->box->uid;
        struct err e = { 0 };
        struct box *b;
        int r;

        memcpy(c.id, o->box->id, sizeof(c.id));
        memcpy(c.tenant, o->box->tenant, sizeof(c.tenant));
        memcpy(c.hostname, o->box->hostname, sizeof(c.hostname));
        box_free(TAKE_PTR(o->box));
        r = claim_from(s, &c, o, uid, &b, &e);
        if (r == 0)
                pool_answer(b, o);
        else
                client_reply(o->asker, NULL, &e);
        if (kill && r == 0)
                box_kill(b, killer);
        else if (kill)
                client_reply(killer, NULL, &e);
        order_free(o);
}

void pool_made(struct box *b) {
        struct shape *s = b->shape;
        struct order *o;

        b->state = WP_POOLED;
        s->making--;
        s->ready++;
        s->failed = false;
        while (s->ready > 0 && (o = TAILQ_FIRST(&s->waiters))) {
                TAILQ_REMOVE(&s->waiters, o, link);
                s->waiting--;
                give(s, o);
        }
        trim(s);
}
