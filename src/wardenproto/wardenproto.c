/* wardenproto.c - see wardenproto.h. What a decoder accepts its encoder writes back byte for byte. */
#include "wardenproto/wardenproto.h"

#include <errno.h>
#include <string.h>

#include "base/rd.h"
#include "base/wr.h"

enum { VARS_MAX = 4096 };

static bool is_id(const char *s) {
        return strlen(s) == ID_LEN && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ID_LEN;
}

/* A name that can stand in a file name, a log line and a host name. */
static bool is_name(const char *s) {
        return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == strlen(s) &&
               s[0] != '.' && s[0] != '-';
}

static bool is_plain(const char *s) {
        for (; *s; s++)
                if (*s < ' ' || *s > '~')
                        return false;
        return true;
}

static int done(const struct rd *r, bool ok) {
        return rd_done(r) && ok ? 0 : -EBADMSG;
}

void wp_put_id(struct wr *w, const char *id) {
        wr_str(w, id);
}

int wp_get_id(struct rd *r, char id[ID_TEXT]) {
        rd_str(r, id, ID_TEXT);
        return done(r, is_id(id));
}

int wp_get_u32(struct rd *r, uint32_t *ret) {
        *ret = rd_u32(r);
        return done(r, true);
}

void wp_put_create(struct wr *w, const struct wp_create *c) {
        wr_str(w, c->id);
        wr_str(w, c->tenant);
        wr_str(w, c->hostname);
        wr_u8(w, c->from);
}

static bool get_create(struct rd *r, struct wp_create *ret) {
        rd_str(r, ret->id, sizeof(ret->id));
        rd_str(r, ret->tenant, sizeof(ret->tenant));
        rd_str(r, ret->hostname, sizeof(ret->hostname));
        ret->from = rd_u8(r);
        return is_id(ret->id) && ret->tenant[0] && is_name(ret->tenant) && is_name(ret->hostname) &&
               !strchr(ret->hostname, '_') && ret->from < WP_FROMS;
}

int wp_get_create(struct rd *r, struct wp_create *ret) {
        bool ok = get_create(r, ret);

        return done(r, ok);
}

void wp_put_create_net(struct wr *w, const struct wp_create *c, const char *bind) {
        wp_put_create(w, c);
        wr_str(w, bind);
}

int wp_get_create_net(struct rd *r, struct wp_create *ret, char bind[WP_ADDRESS]) {
        bool ok = get_create(r, ret);

        rd_str(r, bind, WP_ADDRESS);
        return done(r, ok && is_plain(bind));
}

void wp_put_created(struct wr *w, const struct wp_created *c) {
        wr_u8(w, c->from_pool);
        wr_u32(w, c->slot);
        wr_u32(w, c->pid);
        wr_u64(w, c->took_us);
        wr_str(w, c->socket);
        wr_str(w, c->policy);
        wp_put_hashes(w, &c->read_back);
}

int wp_get_created(struct rd *r, struct wp_created *ret) {
        uint8_t from_pool = rd_u8(r);

        ret->from_pool = from_pool;
        ret->slot = rd_u32(r);
        ret->pid = rd_u32(r);
        ret->took_us = rd_u64(r);
        rd_str(r, ret->socket, sizeof(ret->socket));
        rd_str(r, ret->policy, sizeof(ret->policy));
        return wp_get_hashes(r, &ret->read_back) == 0 && from_pool <= 1 && ret->socket[0] == '/' ? 0 : -EBADMSG;
}

void wp_put_usage(struct wr *w, const struct wp_usage *u) {
        const uint64_t all[] = {
                u->memory_bytes, u->memory_cache_bytes, u->memory_peak_bytes, u->memory_limit_bytes, u->cpu_us,
                u->tasks,        u->oom_kills,          u->pids_refused,      u->disk_bytes,         u->disk_limit_bytes
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                wr_u64(w, all[i]);
}

int wp_get_usage(struct rd *r, struct wp_usage *ret) {
        uint64_t *const all[] = { &ret->memory_bytes,
                                  &ret->memory_cache_bytes,
                                  &ret->memory_peak_bytes,
                                  &ret->memory_limit_bytes,
                                  &ret->cpu_us,
                                  &ret->tasks,
                                  &ret->oom_kills,
                                  &ret->pids_refused,
                                  &ret->disk_bytes,
                                  &ret->disk_limit_bytes };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                *all[i] = rd_u64(r);
        return done(r, true);
}

void wp_put_list(struct wr *w, const struct wp_list *l) {
        wr_u16(w, l->n);
        w->bad |= l->n > WP_LISTED;
        for (size_t i = 0; !w->bad && i < l->n; i++) {
                const struct wp_listed *b = &l->boxes[i];

                wr_str(w, b->id);
                wr_str(w, b->tenant);
                wr_u8(w, b->state);
                wr_u32(w, b->slot);
                wr_u32(w, b->pid);
                wr_u64(w, b->created_ms);
        }
        wr_u32(w, l->next);
}

int wp_get_list(struct rd *r, struct wp_list *ret) {
        bool ok = true;

        ret->n = rd_u16(r);
        if (ret->n > WP_LISTED)
                return -EBADMSG;
        for (size_t i = 0; ok && i < ret->n; i++) {
                struct wp_listed *b = &ret->boxes[i];

                rd_str(r, b->id, sizeof(b->id));
                rd_str(r, b->tenant, sizeof(b->tenant));
                b->state = rd_u8(r);
                b->slot = rd_u32(r);
                b->pid = rd_u32(r);
                b->created_ms = rd_u64(r);
                ok = is_id(b->id) && is_name(b->tenant) && b->state < WP_STATES;
        }
        ret->next = rd_u32(r);
        return done(r, ok);
}

void wp_put_launch(struct wr *w, const char *id, uint32_t uid) {
        wr_str(w, id);
        wr_u32(w, uid);
}

int wp_get_launch(struct rd *r, char id[ID_TEXT], uint32_t *ret_uid) {
        rd_str(r, id, ID_TEXT);
        *ret_uid = rd_u32(r);
        return done(r, is_id(id));
}

static void put_end(struct wr *w, const struct wp_end *e) {
        wr_u8(w, e->reason);
        wr_u64(w, e->memory_peak_bytes);
        wr_u64(w, e->cpu_us);
        wr_u64(w, e->oom_kills);
}

static bool get_end(struct rd *r, struct wp_end *ret) {
        ret->reason = rd_u8(r);
        ret->memory_peak_bytes = rd_u64(r);
        ret->cpu_us = rd_u64(r);
        ret->oom_kills = rd_u64(r);
        return ret->reason < WP_REASONS;
}

void wp_put_end(struct wr *w, const struct wp_end *e) {
        put_end(w, e);
}

int wp_get_end(struct rd *r, struct wp_end *ret) {
        bool ok = get_end(r, ret);

        return done(r, ok);
}

void wp_put_event(struct wr *w, const struct wp_event *e) {
        wr_u8(w, e->kind);
        wr_str(w, e->id);
        wr_str(w, e->tenant);
        if (e->kind == WP_ENDED) {
                put_end(w, &e->end);
        } else if (e->kind == WP_DRIFTED) {
                wr_str(w, e->text);
                wr_str(w, e->found);
                wr_u8(w, e->action);
        } else {
                wr_str(w, e->text);
                wr_u32(w, e->suppressed);
        }
}

int wp_get_event(struct rd *r, struct wp_event *ret) {
        bool ok = true;

        *ret = (struct wp_event){ .kind = rd_u8(r) };
        rd_str(r, ret->id, sizeof(ret->id));
        rd_str(r, ret->tenant, sizeof(ret->tenant));
        if (ret->kind == WP_ENDED) {
                ok = get_end(r, &ret->end);
        } else if (ret->kind == WP_DRIFTED) {
                rd_str(r, ret->text, sizeof(ret->text));
                rd_str(r, ret->found, sizeof(ret->found));
                ret->action = rd_u8(r);
                ok = ret->action < WP_ACTIONS && is_plain(ret->found);
        } else {
                rd_str(r, ret->text, sizeof(ret->text));
                ret->suppressed = rd_u32(r);
        }
        return done(r, ok && ret->kind < WP_KINDS && is_id(ret->id) && is_name(ret->tenant) && is_plain(ret->text));
}

void wp_put_check(struct wr *w, const struct wp_check *c) {
        wr_u8(w, c->drift);
        wr_str(w, c->control);
        wr_str(w, c->found);
}

int wp_get_check(struct rd *r, struct wp_check *ret) {
        uint8_t drift = rd_u8(r);

        *ret = (struct wp_check){ .drift = drift == 1 };
        rd_str(r, ret->control, sizeof(ret->control));
        rd_str(r, ret->found, sizeof(ret->found));
        return done(r, drift < 2 && is_plain(ret->control) && is_plain(ret->found));
}

void wp_put_status(struct wr *w, const struct wp_status *s) {
        const uint32_t all[] = { s->running, s->making, s->queued, s->pooled, s->pool_wanted, s->ending };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                wr_u32(w, all[i]);
}

int wp_get_status(struct rd *r, struct wp_status *ret) {
        uint32_t *const all[] = { &ret->running, &ret->making,      &ret->queued,
                                  &ret->pooled,  &ret->pool_wanted, &ret->ending };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                *all[i] = rd_u32(r);
        return done(r, true);
}

void wp_put_network(struct wr *w, const struct wp_network *n) {
        wr_str(w, n->id);
        wr_u8(w, n->drop);
}

int wp_get_network(struct rd *r, struct wp_network *ret) {
        uint8_t drop;

        rd_str(r, ret->id, sizeof(ret->id));
        drop = rd_u8(r);
        ret->drop = drop;
        return done(r, is_id(ret->id) && drop <= 1);
}

void wp_put_hash(struct wr *w, const char hash[HASH_TEXT]) {
        wr_str(w, hash);
}

void wp_put_hashes(struct wr *w, const struct wp_hashes *h) {
        wr_str(w, h->evidence);
        wr_str(w, h->plan);
}

int wp_get_hashes(struct rd *r, struct wp_hashes *ret) {
        rd_str(r, ret->evidence, sizeof(ret->evidence));
        rd_str(r, ret->plan, sizeof(ret->plan));
        return done(r, is_plain(ret->evidence) && is_plain(ret->plan));
}

int wp_get_hash(struct rd *r, char hash[HASH_TEXT]) {
        rd_str(r, hash, HASH_TEXT);
        return done(r, is_plain(hash));
}

void wp_put_lost(struct wr *w, uint32_t lost) {
        wr_u32(w, lost);
}

bool wp_put_record(struct wr *w, const char id[ID_TEXT], const char *json) {
        struct wr before = *w;

        wr_str(w, id);
        wr_str(w, json);
        if (!w->bad)
                return true;
        *w = before;
        return false;
}

int wp_get_records(struct rd *r, struct wp_records *ret) {
        bool ok = true;

        ret->lost = rd_u32(r);
        for (ret->n = 0; ok && !r->bad && r->left > 0 && ret->n < WP_RECORDS_MAX; ret->n++) {
                rd_str(r, ret->at[ret->n].id, ID_TEXT);
                rd_str(r, ret->at[ret->n].json, WP_RECORD);
                ok = is_id(ret->at[ret->n].id);
        }
        return done(r, ok);
}

int wp_env_each(const char *p, size_t n, void (*fn)(void *arg, const char *var), void *arg) {
        int count = 0;

        if (n > WP_ENV_BYTES || (n > 0 && p[n - 1] != '\0'))
                return -EBADMSG;
        for (size_t at = 0, len; at < n; at += len + 1, count++) {
                const char *equals;

                len = strlen(p + at);
                equals = memchr(p + at, '=', len);
                if (!equals || equals == p + at || count == VARS_MAX)
                        return -EBADMSG;
                if (fn)
                        fn(arg, p + at);
        }
        return count;
}
