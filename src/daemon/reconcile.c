/*
 * reconcile.c - see reconcile.h.
 *
 * In the first round nothing new is started before it is done, so nothing can slip through between list and comparison.
 * What has a row and runs is kept, also if whoever asked for it was cut off: nobody knows whether he had heard of it,
 * and it ends when its time is over. Later rounds compare with the table of boxes, and leave alone what came after they
 * began.
 */
#include "daemon/reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/found.h"
#include "daemon/warden.h"
#include "json/json.h"

enum { LISTED_MAX = 2 * CAPACITY_SANDBOXES_MAX, SOON_S = 3, ROUND_S = 60 };

struct reconcile {
        struct daemon *d;
        struct event *timer;
        bool first, busy;
        bool frozen; /* what confirm() has found is */
        uint64_t began_ms;
        struct map *listed;    /* struct wp_listed by id; what has an owner is taken out */
        char (*lost)[ID_TEXT]; /* changed only when store and table are no longer being read */
        size_t n_lost, n_kept, n_orphans;
};

static void round_clear(struct reconcile *c) {
        struct wp_listed *b;
        size_t at = 0;

        while (c->listed && (b = map_next(c->listed, &at)))
                free(b);
        c->listed = map_free(c->listed);
        free(TAKE_PTR(c->lost));
        c->n_lost = c->n_kept = c->n_orphans = 0;
        c->busy = false;
}

static int lose(struct reconcile *c, const char *id) {
        char(*more)[ID_TEXT] = reallocarray(c->lost, c->n_lost + 1, sizeof(*more));

        if (!more)
                return -ENOMEM;
        c->lost = more;
        (void) str_copy(c->lost[c->n_lost++], ID_TEXT, id);
        return 0;
}

/* True if it runs; then it is off the list of what nobody owns. */
static bool confirm(struct reconcile *c, const char *id) {
        const struct wp_listed *b = map_get(c->listed, id, strlen(id));

        if (!b || (b->state != WP_RUNNING && b->state != WP_FROZEN))
                return false;
        c->frozen = b->state == WP_FROZEN;
        free(map_del(c->listed, id, strlen(id)));
        c->n_kept++;
        return true;
}

static int compare_row(void *arg, const struct store_sandbox *row) {
        struct reconcile *c = arg;
        struct err err = { 0 };
        int r;

        if (row->state != STORE_RUNNING || !confirm(c, row->id))
                return lose(c, row->id); /* what runs of it stays on the list */
        r = box_any(c->d, row->id) ? 0 : box_restore(c->d, row, &err);
        if (r == 0 && c->frozen)
                found_frozen(box_any(c->d, row->id));
        return r;
}

static int compare_boxes(struct reconcile *c) {
        struct box *b;
        size_t at = 0;
        int r = 0;

        while (r == 0 && (b = map_next(c->d->boxes, &at))) {
                bool runs = confirm(c, b->id);

                if (!runs && b->created_ms < c->began_ms && !b->ending)
                        r = lose(c, b->id);
                if (runs && c->frozen)
                        found_frozen(b);
        }
        return r;
}

static void on_orphan_ended(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct daemon *d = arg;

        (void) reply;
        if (failed && failed->code != -ENOENT && failed->code != -EALREADY)
                log_error(&d->log, "a sandbox that nobody owns could not be ended", failed);
}

static void end_orphans(struct reconcile *c) {
        const struct wp_listed *b;
        size_t at = 0;

        while ((b = map_next(c->listed, &at))) {
                struct json *more;

                if (box_ending(c->d, b->id) || (!c->first && control_is_making(c->d, b->id)))
                        continue;
                c->n_orphans++;
                more = json_new_object();
                json_set_str(more, "sandbox", b->id);
                json_set_str(more, "tenant", b->tenant);
                log_write(&c->d->log, LOG_WARNING, "ending a sandbox that nobody owns", more);
                warden_ask(c->d->warden, WP_KILL, b->id, on_orphan_ended, c->d);
        }
}

static void log_round(struct reconcile *c) {
        struct json *more;

        if (!c->first && c->n_lost == 0 && c->n_orphans == 0)
                return;
        more = json_new_object();
        json_set_int(more, "kept", (int64_t) c->n_kept);
        json_set_int(more, "lost", (int64_t) c->n_lost);
        json_set_int(more, "orphans", (int64_t) c->n_orphans);
        log_write(&c->d->log, LOG_INFO, "store and warden agree", more);
}

static int compare(struct reconcile *c, struct err *err) {
        const struct store_filter live = { .states = BIT(STORE_CREATING) | BIT(STORE_RUNNING) | BIT(STORE_PAUSED) };
        int r = c->first ? store_sandbox_each(c->d->store, &live, compare_row, c, err) : compare_boxes(c);

        if (r < 0)
                return err->code < 0 ? r : err_set(err, r, ERR_INTERNAL, "out of memory");
        for (size_t i = 0; i < c->n_lost; i++)
                box_lost(c->d, c->lost[i]);
        end_orphans(c);
        log_round(c);
        return 0;
}

static int remember(struct reconcile *c, const struct wp_listed *b) {
        struct wp_listed *copy;

        if (b->state == WP_POOLED || b->state == WP_ENDING)
                return 0;
        copy = malloc(sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        *copy = *b;
        if (map_put(c->listed, copy->id, strlen(copy->id), copy) < 0) {
                free(copy);
                return -EBADMSG; /* twice the same id, or more than can be */
        }
        return 0;
}

static void again(struct reconcile *c, unsigned in_s) {
        const struct timeval tv = { .tv_sec = in_s };

        (void) event_add(c->timer, &tv);
}

/* A round is over, one way or the other. */
static void finish(struct reconcile *c, const struct err *failed) {
        bool first = c->first;

        if (failed && !first && failed->code != -EPIPE && failed->code != -ECANCELED)
                log_error(&c->d->log, "comparing with the warden", failed);
        round_clear(c);
        if (first)
                warden_agreed(c->d->warden, failed);
        if (!failed)
                again(c, first ? SOON_S : ROUND_S);
}

static void on_list(void *arg, const struct err *failed, const struct warden_reply *reply) {
        struct reconcile *c = arg;
        struct err err = { 0 };

        for (size_t i = 0; !failed && i < reply->list.n; i++)
                if (remember(c, &reply->list.boxes[i]) < 0) {
                        (void) err_set(&err, -EBADMSG, ERR_PEER, "the warden's list makes no sense");
                        failed = &err;
                }
        if (!failed && reply->list.next) {
                warden_list(c->d->warden, reply->list.next, on_list, c);
                return;
        }
        if (!failed && compare(c, &err) < 0)
                failed = &err;
        finish(c, failed);
}

static void begin(struct reconcile *c, bool first) {
        static const struct err no_memory = { .code = -ENOMEM, .msg = "out of memory" };

        (void) event_del(c->timer);
        c->first = first;
        c->busy = true;
        c->began_ms = clock_real_ms();
        if (map_new(LISTED_MAX, &c->listed) < 0)
                finish(c, &no_memory);
        else
                warden_list(c->d->warden, 0, on_list, c);
}

static void on_timer(int fd, short what, void *arg) {
        struct reconcile *c = arg;

        (void) fd, (void) what;
        if (!c->busy && warden_is_up(c->d->warden))
                begin(c, false);
}

int reconcile_new(struct daemon *d, struct reconcile **ret, struct err *err) {
        struct reconcile *c = calloc(1, sizeof(*c));

        if (c)
                c->d = d;
        if (c)
                c->timer = evtimer_new(d->base, on_timer, c);
        if (!c || !c->timer) {
                free(c);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        }
        *ret = c;
        return 0;
}

struct reconcile *reconcile_free(struct reconcile *c) {
        if (!c)
                return NULL;
        round_clear(c);
        event_free(c->timer);
        free(c);
        return NULL;
}

void reconcile_start(struct reconcile *c) {
        if (!c->busy) /* else the round that the warden's end broke off has not heard of it yet */
                begin(c, true);
        else
                warden_agreed(c->d->warden, &(const struct err){ .code = -EBUSY, .msg = "still comparing" });
}
