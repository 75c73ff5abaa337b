/*
 * check.c - sandboxes that run are compared with their plans: when a wire says that something was changed (trip.c), on
 * a schedule, and when somebody asks.
 *
 * Theory of operation. One child process, never two, reads up to CHECK_BATCH sandboxes again: first those whose wires
 * were touched, after CHECK_SOON_MS; then those that have no wires, every CHECK_EVERY_MS; then, in a batch every
 * CHECK_SLOW_MS, those whose last reading is oldest, because no wire tells of processes. So the cost has a ceiling, and
 * with many sandboxes the schedule becomes slower instead of dearer. Wires are laid by the loop, a few at a time, some
 * moment after a sandbox has begun to run, and it is read then: no create waits for it.
 *
 * A difference must be seen twice: a process between fork and exec looks odd for a moment. The child itself freezes
 * what is to be frozen, because that must not wait for anybody; what it found it reports, and the loop remembers it,
 * ends what is to be ended, and tells the daemon.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"
#include "evidence/evidence.h"
#include "json/json.h"
#include "sandbox/sandbox.h"
#include "state.h"

enum {
        CHECK_TICK_MS = 500,
        CHECK_SOON_MS = 20,
        CHECK_AGAIN_MS = 250, /* between two readings of one that is changed all the time */
        CHECK_EVERY_MS = 1000,
        CHECK_SLOW_MS = 4000,
        CHECK_ROUND_MS = 10000, /* none more often, if it has wires */
        CHECK_BATCH = 8,
        CHECK_LAY = 16, /* wires in one turn */
        CHECK_LAY_MS = 100,
        CHECK_YOUNG_MS = 100, /* one that was read back just now: many do not live longer */
        CHECK_CONFIRM_MS = 60,
};

static const uint64_t ms = 1000000; /* in nanoseconds */

static struct {
        uint64_t next_ns, slow_ns;
        bool busy;
} schedule;

/* What the child is to look at. */
struct looking {
        struct box *boxes[CHECK_BATCH]; /* the most urgent first */
        size_t n;
        bool asked; /* by somebody: a sandbox that cannot be read is a failure then */
};

/* --- in the child --- */

static int namespaces(const struct box *b, const struct json *doc, struct evidence *first, struct err *err) {
        static const char *const names[EVIDENCE_NS] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" };
        const struct json *all = json_get(json_get(doc, "evidence"), "namespaces");

        for (size_t i = 0; i < EVIDENCE_NS; i++) {
                const char *text = json_get_str(json_get(all, names[i]), "sandbox");

                if (!text || str_copy(first->ns[i], sizeof(first->ns[0]), text) < 0)
                        return err_set(err, -EBADMSG, ERR_INTERNAL, "sandbox %s: its evidence has no namespace %s",
                                       b->id, names[i]);
        }
        return 0;
}

/* The plan, and what is needed to read it back. */
static int prepare(const struct box *b, struct plan *plan, struct sandbox *sb, struct evidence *first,
                   struct err *err) {
        static struct policy policy;
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct record rec = { .offset = b->offset };
        int r = record_tree(b, &doc, err);

        policy_default(&policy); /* what it had is forgotten: this process lives for one batch */
        if (r == 0 && !json_get(doc, "policy"))
                r = err_set(err, -ESTALE, ERR_INTERNAL, "record of sandbox %s: it has no policy", b->id);
        if (r == 0)
                r = policy_decode(json_get(doc, "policy"), &policy, err);
        if (r == 0)
                r = launch_plan_of(b, &policy, json_get_bool(doc, "own_certificates", false), plan, err);
        if (r == 0)
                r = namespaces(b, doc, first, err);
        return r < 0 ? r : launch_hold(b, plan, &rec, sb, err);
}

/* 0, or 1 and *ret; negative: it cannot be said. */
static int look(const struct box *b, struct evidence_drift *ret, uint8_t *ret_action, struct err *err) {
        static struct evidence first;
        static struct plan plan;
        static struct sandbox sb;
        int r = prepare(b, &plan, &sb, &first, err);

        if (r < 0)
                return r;
        r = evidence_again(&plan, &sb, &first, ret);
        if (r == 1) {
                (void) poll(NULL, 0, CHECK_CONFIRM_MS);
                r = evidence_again(&plan, &sb, &first, ret);
        }
        *ret_action = (uint8_t) plan.policy->monitor.on_drift;
        if (r == 1 && plan.policy->monitor.on_drift == POLICY_FREEZE && cgroup_freeze(&sb.cgroup, true, err) < 0)
                *ret_action = WP_KILLS; /* it cannot be frozen */
        if (plan.net)
                sandbox_net_close(&sb);
        launch_let_go(&sb);
        return r < 0 ? err_set(err, r, ERR_NOT_FOUND, "sandbox %s has ended", b->id) : r;
}

/* u8 1, then for each that differs: u32 slot, u8 action, str control, str found. */
static void look_run(const void *arg) {
        const struct looking *l = arg;
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct err e = { 0 };

        if (launch_reopen(&e) < 0)
                job_failed(&e);
        wr_u8(&w, 1);
        for (size_t i = 0; i < l->n; i++) {
                struct evidence_drift d;
                uint8_t action = 0;
                int r = look(l->boxes[i], &d, &action, &e);

                if (r < 0 && l->asked)
                        job_failed(&e);
                if (r != 1)
                        continue; /* one that has ended meanwhile is no news */
                wr_u32(&w, l->boxes[i]->slot);
                wr_u8(&w, action);
                wr_str(&w, d.control);
                wr_str(&w, d.found);
        }
        _exit(job_report(&w, NULL, 0) < 0);
}

/* --- in the loop --- */

static void plain(char *s) {
        for (; *s; s++)
                if ((unsigned char) *s < 0x20 || (unsigned char) *s > 0x7e)
                        *s = '?';
}

static void found(struct box *b, uint8_t action, struct wp_check *c) {
        struct wp_event e = { .kind = WP_DRIFTED, .action = action };

        plain(c->control);
        plain(c->found);
        if (action == WP_FREEZES && b->state == WP_RUNNING)
                b->state = WP_FROZEN;
        if (str_eq(b->drift, c->control))
                return; /* told before, and only warned of */
        (void) str_copy(b->drift, sizeof(b->drift), c->control);
        warden_log("sandbox %s: %s: %s", b->id, c->control, c->found);
        (void) str_copy(e.id, sizeof(e.id), b->id);
        (void) str_copy(e.tenant, sizeof(e.tenant), b->tenant);
        (void) str_copy(e.text, sizeof(e.text), c->control);
        (void) str_copy(e.found, sizeof(e.found), c->found);
        if (!b->shape)
                client_tell(&e);
        if (action == WP_KILLS || b->shape) /* one of a pool is nobody's yet */
                box_kill(b, (struct asker){ 0 });
}

/* Takes one report. 1: *ret is the last drift in it. */
static int take(struct job *j, struct ipc_msg *m, struct wp_check *ret, struct err *err) {
        struct rd body;
        int r = job_result(m, &body, err), any = 0;

        while (r == 0 && body.left > 0) {
                uint32_t slot = rd_u32(&body);
                uint8_t action = rd_u8(&body);
                struct box *b;

                rd_str(&body, ret->control, sizeof(ret->control));
                rd_str(&body, ret->found, sizeof(ret->found));
                if (body.bad || action >= WP_ACTIONS)
                        return err_set(err, -EBADMSG, ERR_INTERNAL, "a child process spoke nonsense");
                TAILQ_FOREACH(b, &warden.boxes, link) {
                        if (b->slot == slot && b->end.fd >= 0 && (!j->asker.client || j->box == b))
                                break;
                }
                if (b)
                        found(b, action, ret);
                any = 1;
        }
        return r < 0 ? r : any;
}

static void on_looked(struct job *j, struct ipc_msg *m) {
        struct wp_check c;
        struct err e = { 0 };

        schedule.busy = false;
        schedule.next_ns = 0; /* others may wait */
        if (take(j, m, &c, &e) < 0)
                warden_log("a check of sandboxes: %s", e.msg);
}

static void on_checked(struct job *j, struct ipc_msg *m) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));
        struct wp_check c = { 0 };
        struct err e = { 0 };
        int r = take(j, m, &c, &e);

        c.drift = r == 1;
        wp_put_check(&w, &c);
        client_reply(j->asker, r < 0 ? NULL : &w, r < 0 ? &e : NULL);
}

int check_start(struct box *b, struct asker asker, struct err *err) {
        const struct looking l = { .boxes = { b }, .n = 1, .asked = true };
        struct job *j = warden.n_jobs < WARDEN_JOBS ? job_start(look_run, &l, false, err) : NULL;

        if (!j)
                return err->code < 0 ? err->code : err_set(err, -EAGAIN, ERR_BUSY, "too many things at once");
        j->done = on_checked;
        j->box = b;
        j->asker = asker;
        return 0;
}

void check_soon(struct box *b) {
        uint64_t soon = clock_mono_ns() + CHECK_SOON_MS * ms;

        b->tripped = true;
        if (schedule.next_ns > soon)
                schedule.next_ns = soon;
}

/* Wires for some of those that have none. True: there are more. */
static bool lay_some(void) {
        uint64_t real_ms = clock_real_ms();
        bool more = false;
        unsigned n = 0;
        struct box *b;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                if (b->trip || b->untrippable || b->state != WP_RUNNING || b->end.fd < 0)
                        continue;
                if (real_ms - b->created_ms < CHECK_YOUNG_MS) {
                        more = true;
                        continue;
                }
                if (n++ == CHECK_LAY)
                        return true;
                b->untrippable = trip_lay(b) < 0;
                b->tripped = true; /* what was changed before */
        }
        return more;
}

/* How long ago it must have been read to be read now; 0: not now. */
static uint64_t wait_of(const struct box *b, bool slow) {
        if (b->state != WP_RUNNING || b->end.fd < 0)
                return 0;
        if (b->tripped)
                return CHECK_AGAIN_MS;
        return !b->trip ? CHECK_EVERY_MS : slow ? CHECK_ROUND_MS : 0;
}

static bool is_before(const struct box *a, const struct box *b) {
        return a->tripped != b->tripped ? a->tripped : a->checked_ns < b->checked_ns;
}

/* The most urgent ones, in order. */
static void choose(struct looking *l, uint64_t now, bool slow) {
        struct box *b;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                uint64_t wait = wait_of(b, slow);
                size_t at = l->n;

                if (wait == 0 || now - b->checked_ns < wait * ms)
                        continue;
                while (at > 0 && is_before(b, l->boxes[at - 1]))
                        at--;
                if (at == CHECK_BATCH)
                        continue;
                l->n += l->n < CHECK_BATCH;
                for (size_t i = l->n - 1; i > at; i--)
                        l->boxes[i] = l->boxes[i - 1];
                l->boxes[at] = b;
        }
}

static void look_now(struct looking *l, uint64_t now) {
        struct err e = { 0 };
        struct job *j = job_start(look_run, l, false, &e);

        if (!j) {
                warden_log("a check of sandboxes: %s", e.msg);
                return;
        }
        for (size_t i = 0; i < l->n; i++) {
                l->boxes[i]->checked_ns = now;
                l->boxes[i]->tripped = false;
        }
        j->done = on_looked;
        schedule.busy = true;
}

int check_due(void) {
        uint64_t now = clock_mono_ns();
        struct looking l = { 0 };
        bool slow = now >= schedule.slow_ns;
        int wait_ms;

        if (warden.n_boxes == 0)
                return -1;
        if (now < schedule.next_ns)
                return (int) ((schedule.next_ns - now) / ms + 1);
        wait_ms = lay_some() ? CHECK_LAY_MS : CHECK_TICK_MS;
        if (!schedule.busy && warden.n_jobs < WARDEN_JOBS / 2)
                choose(&l, now, slow);
        if (l.n > 0)
                look_now(&l, now);
        if (slow)
                schedule.slow_ns = now + CHECK_SLOW_MS * ms;
        schedule.next_ns = now + (uint64_t) wait_ms * ms;
        return wait_ms;
}

int check_statement(const struct box *b, struct wp_hashes *ret, struct err *err) {
        static struct plan plan;
        CLEANUP(record_done) struct record rec = { 0 };
        int r = record_of(b, &rec, err);

        if (r == 0 && (!rec.evidence_hash[0] || !rec.evidence || !rec.policy))
                r = err_set(err, -ENOENT, ERR_INTERNAL, "sandbox %s: its record has no evidence", b->id);
        if (r == 0)
                r = launch_plan(b, &rec, &plan, err);
        if (r < 0)
                return r;
        memcpy(ret->evidence, rec.evidence_hash, sizeof(ret->evidence));
        memcpy(ret->plan, plan.hash, sizeof(ret->plan));
        return statement_make(&plan, &rec, err);
}
