/*
 * job.c - connections about files: who has one, who waits for one. See job.h.
 *
 * Invariant: a connection that is kept for others has nothing under way. Whoever leaves in the middle of something
 * takes the connection with him.
 */
#include "envd/job.h"

#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>

#include "agentproto/agentproto.h"
#include "base/err.h"
#include "base/wr.h"
#include "fileproto/fileproto.h"

struct worker {
        TAILQ_ENTRY(worker) link; /* while idle */
        struct pool *pool;
        struct agent *agent;
        struct job *job; /* NULL: idle */
        uint32_t uid, last_id;
        bool is_watch, heard; /* it has said something */
};
TAILQ_HEAD(worker_list, worker);
TAILQ_HEAD(job_list, job);

struct pool {
        struct envd_box *box;
        struct worker_list idle;
        unsigned n, n_idle, n_watch; /* n: with the idle ones, without watches */
        struct job_list waiting;
        struct event *timer, *wake;
};

/* There may be one for somebody who waits; from the top of the loop, because we are in the middle of another's. */
static void wake(struct pool *p) {
        if (!TAILQ_EMPTY(&p->waiting))
                event_active(p->wake, EV_TIMEOUT, 0);
}

static void worker_free(struct worker *w) {
        struct pool *p = w->pool;

        if (!w->job) {
                TAILQ_REMOVE(&p->idle, w, link);
                p->n_idle--;
        } else
                w->job->worker = NULL;
        if (w->is_watch)
                p->n_watch--;
        else
                p->n--;
        (void) agent_close(w->agent);
        free(w);
        wake(p);
}

static void fail(struct job *j, int r) {
        j->ops->on_failed(j->owner, r);
}

int job_error(const uint8_t *body, size_t n, char *step, size_t cap) {
        uint32_t err_no;

        if (ap_get_error(body, n, &err_no, step, cap) < 0 || err_no == 0 || err_no > 4095)
                return -EPROTO;
        return -(int) err_no;
}

/* There is nobody at the other end. */
static void refused(struct worker *w, int r, const char *step) {
        struct job *j = w->job;

        worker_free(w);
        j->launching = true; /* the owner may answer at once */
        if (j->call && call_relaunch(j->call, r, step))
                return;
        j->launching = false;
        fail(j, r);
}

static int on_refused(struct worker *w, const uint8_t *body, size_t n, struct err *err) {
        char step[32];
        int r = job_error(body, n, step, sizeof(step));

        if (r == -EPROTO)
                return err_set(err, r, ERR_PEER, "malformed error");
        refused(w, r, step);
        return 0;
}

static int on_frame(void *data, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct worker *w = data;

        if (!w->job)
                return err_set(err, -EPROTO, ERR_PEER, "a worker speaks without being asked");
        if (head->id == 0 && head->type == AP_ERROR)
                return on_refused(w, body, n, err);
        w->heard = true;
        return w->job->ops->on_frame(w->job->owner, head, body, n, err);
}

static void on_room(void *data) {
        const struct worker *w = data;

        if (w->job && w->job->ops->on_room)
                w->job->ops->on_room(w->job->owner);
}

static void on_down(void *data, const struct err *err) {
        struct worker *w = data;
        struct job *j = w->job;
        struct envd_event ev = { .kind = ENVD_AGENT, .user = "", .text = err->msg };

        if (err->code == -EPROTO)
                (void) envd_box_tell(w->pool->box, &ev);
        if (j && !w->heard && err->code == -ECONNRESET) {
                refused(w, -EPIPE, "launcher"); /* who died with our connection in its hands */
                return;
        }
        worker_free(w);
        if (j)
                fail(j, err->code);
}

static const struct agent_ops worker_ops = { FP_FRAME_MAX, on_frame, on_room, on_down };

static int worker_open(struct pool *p, struct job *j, struct err *err) {
        uint32_t uid = j->call->user->uid;
        struct worker *w = calloc(1, sizeof(*w));
        struct wr f = agent_frame();

        if (!w)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "connection about files");
        if (agent_open(p->box->envd, p->box->target->socket, &worker_ops, w, &w->agent, err) < 0) {
                free(w);
                return err->code;
        }
        w->pool = p;
        w->uid = uid;
        w->is_watch = j->is_watch;
        w->job = j;
        if (w->is_watch)
                p->n_watch++;
        else
                p->n++;
        ap_put_u32(&f, AP_FILES, 0, uid);
        (void) agent_send(w->agent, &f);
        j->worker = w;
        return 0;
}

static struct worker *find_idle(const struct pool *p, uint32_t uid) {
        struct worker *w;

        TAILQ_FOREACH(w, &p->idle, link)
        if (w->uid == uid)
                return w;
        return NULL;
}

/* 0: it has one; -EAGAIN: it must wait. */
static int give_one(struct pool *p, struct job *j) {
        struct worker *w = j->is_watch ? NULL : find_idle(p, j->call->user->uid);
        struct err err = { 0 };

        if (w) {
                TAILQ_REMOVE(&p->idle, w, link);
                p->n_idle--;
                w->job = j;
                j->worker = w;
                return 0;
        }
        if (j->is_watch)
                return p->n_watch < ENVD_WATCHERS ? worker_open(p, j, &err) : -EBUSY;
        if (p->n >= ENVD_WORKERS && p->n_idle > 0)
                worker_free(TAILQ_FIRST(&p->idle));
        return p->n < ENVD_WORKERS ? worker_open(p, j, &err) : -EAGAIN;
}

static void begin(struct job *j) {
        struct pool *p = j->call->box->pool;
        int r = give_one(p, j);

        if (r == -EAGAIN) {
                j->waiting = true;
                TAILQ_INSERT_TAIL(&p->waiting, j, link);
        } else if (r < 0) {
                fail(j, r);
        } else {
                j->ops->on_ready(j->owner);
        }
}

void job_start(struct job *j, struct call *c, const struct job_ops *ops, bool is_watch) {
        *j = (struct job){ .call = c, .owner = c, .ops = ops, .is_watch = is_watch };
        if (call_is_launched(c)) {
                begin(j);
        } else {
                j->launching = true;
                call_launch(c);
        }
}

void job_launched(struct job *j, int r) {
        if (!j->launching)
                return;
        j->launching = false;
        if (r < 0)
                fail(j, -ENOTCONN);
        else
                begin(j);
}

/* Those that wait get what has become free, in their order. */
static void on_wake(int fd, short what, void *arg) {
        struct pool *p = arg;
        struct job *j;

        (void) fd, (void) what;
        while ((j = TAILQ_FIRST(&p->waiting))) {
                int r = give_one(p, j);

                if (r == -EAGAIN)
                        return;
                TAILQ_REMOVE(&p->waiting, j, link);
                j->waiting = false;
                if (r < 0)
                        fail(j, r);
                else
                        j->ops->on_ready(j->owner);
        }
}

static void on_timer(int fd, short what, void *arg) {
        struct pool *p = arg;

        (void) fd, (void) what;
        while (!TAILQ_EMPTY(&p->idle))
                worker_free(TAILQ_FIRST(&p->idle));
}

void job_end(struct job *j, bool clean) {
        static const struct timeval idle = { .tv_sec = ENVD_IDLE_MS / 1000 };
        struct worker *w = j->worker;
        struct pool *p;

        j->launching = false;
        if (j->waiting) {
                TAILQ_REMOVE(&j->call->box->pool->waiting, j, link);
                j->waiting = false;
        }
        if (!w)
                return;
        p = w->pool;
        if (clean && !w->is_watch && (p->n_idle < ENVD_IDLE_WORKERS || !TAILQ_EMPTY(&p->waiting))) {
                j->worker = NULL;
                w->job = NULL;
                TAILQ_INSERT_TAIL(&p->idle, w, link);
                p->n_idle++;
                (void) event_add(p->timer, &idle);
                wake(p);
        } else
                worker_free(w);
}

void job_move(struct job *from, struct job *to, void *owner, const struct job_ops *ops) {
        *to = (struct job){ .owner = owner, .ops = ops, .worker = from->worker, .is_watch = true, .id = from->id };
        from->worker = NULL;
        to->worker->job = to;
}

uint32_t job_id(struct job *j) {
        if (++j->worker->last_id == 0)
                j->worker->last_id = 1;
        j->id = j->worker->last_id;
        return j->id;
}

void job_ask(struct job *j, unsigned type, const struct fp_request *q) {
        struct wr w = agent_frame();

        fp_put_request(&w, type, job_id(j), q);
        (void) agent_send(j->worker->agent, &w); /* two paths, shorter than AP_PATH_MAX each, always fit */
}

struct agent *job_agent(const struct job *j) {
        return j->worker ? j->worker->agent : NULL;
}

int pool_new(struct envd_box *box) {
        struct pool *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->box = box;
        TAILQ_INIT(&p->idle);
        TAILQ_INIT(&p->waiting);
        p->timer = evtimer_new(box->envd->config.base, on_timer, p);
        p->wake = evtimer_new(box->envd->config.base, on_wake, p);
        if (!p->timer || !p->wake) {
                (void) pool_free(p);
                return -ENOMEM;
        }
        box->pool = p;
        return 0;
}

struct pool *pool_free(struct pool *p) {
        if (!p)
                return NULL;
        on_timer(-1, 0, p);
        if (p->timer)
                event_free(p->timer);
        if (p->wake)
                event_free(p->wake);
        free(p);
        return NULL;
}
