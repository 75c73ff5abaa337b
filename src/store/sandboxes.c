/*
 * sandboxes.c - sandboxes and events.
 *
 * Invariant: a sandbox that is gone stays gone. Every move names the states it may come from in its WHERE clause, so
 * two writers cannot bring one back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "db.h"

enum { SQL_MAX = 8192 };

#define COLUMNS                                                                                                        \
        "id, tenant, template, name, state, reason, created, ends, ended, cpu_milli, memory, disk, policy_hash,"       \
        " metadata, policy, network, socket"

static int gone(int changed, const char *id, struct err *err) {
        return changed == 0  ? err_set(err, -ENOENT, ERR_NOT_FOUND, "sandbox %.40s is not there", id)
               : changed < 0 ? changed
                             : 0;
}

int store_sandbox_add(struct store *s, const struct store_sandbox *b, struct err *err) {
        sqlite3_stmt *st =
                db_query(s, err, "INSERT INTO sandbox(" COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                         "ssssisuuuuuusssss", b->id, b->tenant, b->template, b->name[0] ? b->name : NULL,
                         (int) b->state, b->reason, b->created_ms, b->ends_ms, b->ended_ms, (uint64_t) b->cpu_milli,
                         b->memory_bytes, b->disk_bytes, b->policy_hash, b->metadata, b->policy, b->network, b->socket);
        int r = db_run(s, st, err);

        return r < 0 ? err_wrap(err, "sandbox %s", b->name[0] ? b->name : b->id) : 0;
}

void store_sandbox_done(struct store_sandbox *b) {
        free(TAKE_PTR(b->metadata));
        free(TAKE_PTR(b->policy));
        free(TAKE_PTR(b->network));
}

static int row_read(sqlite3_stmt *st, struct store_sandbox *b) {
        memset(b, 0, sizeof(*b));
        db_text(st, 0, b->id, sizeof(b->id));
        db_text(st, 1, b->tenant, sizeof(b->tenant));
        db_text(st, 2, b->template, sizeof(b->template));
        db_text(st, 3, b->name, sizeof(b->name));
        b->state = db_u64(st, 4) < STORE_STATES ? (enum store_state) db_u64(st, 4) : STORE_GONE;
        db_text(st, 5, b->reason, sizeof(b->reason));
        b->created_ms = db_u64(st, 6);
        b->ends_ms = db_u64(st, 7);
        b->ended_ms = db_u64(st, 8);
        b->cpu_milli = (uint32_t) db_u64(st, 9);
        b->memory_bytes = db_u64(st, 10);
        b->disk_bytes = db_u64(st, 11);
        db_text(st, 12, b->policy_hash, sizeof(b->policy_hash));
        db_text(st, 16, b->socket, sizeof(b->socket));
        if (db_text_new(st, 13, &b->metadata) < 0 || db_text_new(st, 14, &b->policy) < 0 ||
            db_text_new(st, 15, &b->network) < 0) {
                store_sandbox_done(b);
                return -ENOMEM;
        }
        return 0;
}

int store_sandbox_get(struct store *s, const char *tenant, const char *name_or_id, struct store_sandbox *ret,
                      struct err *err) {
        /* A name can look like another's id: the id is what was meant then. Two texts, so that each has its index. */
        sqlite3_stmt *st = db_query(s, err, "SELECT " COLUMNS " FROM sandbox WHERE id=?2 AND (?1 IS NULL OR tenant=?1)",
                                    "ss", tenant, name_or_id);
        int r = db_step(s, st, err);

        if (r == 0) {
                st = db_query(s, err,
                              "SELECT " COLUMNS " FROM sandbox INDEXED BY sandbox_name WHERE name=?2 AND state<3 AND"
                              " (?1 IS NULL OR tenant=?1) LIMIT 1",
                              "ss", tenant, name_or_id);
                r = db_step(s, st, err);
        }
        if (r == 1) {
                if (row_read(st, ret) < 0)
                        r = err_set(err, -ENOMEM, ERR_INTERNAL, "store: out of memory");
                (void) sqlite3_reset(st);
        }
        return gone(r, name_or_id, err);
}

int store_sandbox_move(struct store *s, const char *id, enum store_state state, const char *reason, uint64_t now_ms,
                       struct err *err) {
        return gone(db_run(s,
                           db_query(s, err, "UPDATE sandbox SET state=?, reason=?, ended=? WHERE id=? AND state<3",
                                    "isus", (int) state, reason, state == STORE_GONE ? now_ms : (uint64_t) 0, id),
                           err),
                    id, err);
}

int store_sandbox_set_end(struct store *s, const char *id, uint64_t ends_ms, struct err *err) {
        return gone(
                db_run(s, db_query(s, err, "UPDATE sandbox SET ends=? WHERE id=? AND state<3", "us", ends_ms, id), err),
                id, err);
}

int store_sandbox_set_network(struct store *s, const char *id, const char *network, const char *policy,
                              const char *policy_hash, struct err *err) {
        return gone(
                db_run(s,
                       db_query(s, err, "UPDATE sandbox SET network=?, policy=?, policy_hash=? WHERE id=? AND state<3",
                                "ssss", network, policy, policy_hash, id),
                       err),
                id, err);
}

/* The WHERE clause of a filter; every value is a parameter. */
static void filter_sql(const struct store_filter *f, struct buf *sql) {
        /* Those that are gone are many: where they are not asked for, an index without them is used. */
        bool live = f->states && !(f->states & BIT(STORE_GONE));

        buf_addf(sql, "SELECT " COLUMNS " FROM sandbox%s WHERE %s AND (?2 IS NULL OR template=?2) AND created>=?3",
                 live ? " INDEXED BY sandbox_name" : "", f->tenant ? "tenant=?1" : "?1 IS NULL");
        if (live)
                buf_addf(sql, " AND state<3");
        if (f->states) {
                buf_addf(sql, " AND state IN (-1");
                for (unsigned i = 0; i < STORE_STATES; i++)
                        if (f->states & BIT(i))
                                buf_addf(sql, ",%u", i);
                buf_addf(sql, ")");
        }
        for (size_t i = 0; i < f->n_pairs; i++)
                buf_addf(sql,
                         " AND EXISTS (SELECT 1 FROM json_each(metadata) WHERE json_each.key=?%zu AND"
                         " json_each.value=?%zu)",
                         6 + 2 * i, 7 + 2 * i);
        if (f->after_id)
                buf_addf(sql, " AND (created, id) %c (?4, ?5)", f->oldest_first ? '>' : '<');
        buf_addf(sql, " ORDER BY created %s, id %s LIMIT %d", f->oldest_first ? "ASC" : "DESC",
                 f->oldest_first ? "ASC" : "DESC", f->limit ? (int) f->limit : -1);
}

static int filter_bind(sqlite3_stmt *st, const struct store_filter *f) {
        int r = sqlite3_bind_text(st, 1, f->tenant, -1, SQLITE_STATIC);

        r |= sqlite3_bind_text(st, 2, f->template, -1, SQLITE_STATIC);
        r |= sqlite3_bind_int64(st, 3, (sqlite3_int64) f->since_ms);
        if (f->after_id) {
                r |= sqlite3_bind_int64(st, 4, (sqlite3_int64) f->after_ms);
                r |= sqlite3_bind_text(st, 5, f->after_id, -1, SQLITE_STATIC);
        }
        for (size_t i = 0; i < f->n_pairs; i++) {
                r |= sqlite3_bind_text(st, 6 + 2 * (int) i, f->pairs[i].key, -1, SQLITE_STATIC);
                r |= sqlite3_bind_text(st, 7 + 2 * (int) i, f->pairs[i].value, -1, SQLITE_STATIC);
        }
        return r;
}

static void finalize(sqlite3_stmt **st) {
        (void) sqlite3_finalize(*st);
}

int store_sandbox_each(struct store *s, const struct store_filter *f, store_sandbox_fn fn, void *arg, struct err *err) {
        struct buf sql = BUF_INIT(SQL_MAX);
        CLEANUP(finalize) sqlite3_stmt *st = NULL;
        int r;

        if (f->n_pairs > STORE_PAIRS)
                return err_set(err, -E2BIG, ERR_INVALID, "metadata: at most %d pairs", STORE_PAIRS);
        filter_sql(f, &sql);
        r = sql.bad ? SQLITE_NOMEM : sqlite3_prepare_v2(s->db, buf_str(&sql), -1, &st, NULL);
        buf_done(&sql);
        if (r != SQLITE_OK || filter_bind(st, f) != SQLITE_OK)
                return db_fail(s, "list", err);
        while ((r = db_step(s, st, err)) == 1) {
                struct store_sandbox b;

                if (row_read(st, &b) < 0)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "store: out of memory");
                r = fn(arg, &b);
                store_sandbox_done(&b);
                if (r != 0)
                        return r;
        }
        return r;
}

int store_sandbox_sums(struct store *s, const char *tenant, struct store_sums *ret, struct err *err) {
        sqlite3_stmt *st = db_query(s, err,
                                    "SELECT count(*), ifnull(sum(cpu_milli),0), ifnull(sum(memory),0),"
                                    " ifnull(sum(disk),0) FROM sandbox WHERE state<3 AND (?1 IS NULL OR tenant=?1)",
                                    "s", tenant);
        int r = db_step(s, st, err);

        if (r != 1)
                return r < 0 ? r : -EIO;
        *ret = (struct store_sums){ db_u64(st, 0), db_u64(st, 1), db_u64(st, 2), db_u64(st, 3) };
        (void) sqlite3_reset(st);
        return 0;
}

int store_event_add(struct store *s, const struct store_event *e, uint64_t *ret_seq, struct err *err) {
        int r = db_gather(s, err);

        if (r == 0)
                r = db_step(s,
                            db_query(s, err, "INSERT INTO event(time, tenant, sandbox, kind, data) VALUES(?,?,?,?,?)",
                                     "ussss", e->time_ms, e->tenant, e->sandbox, e->kind, e->data),
                            err);
        if (r < 0)
                return r;
        *ret_seq = (uint64_t) sqlite3_last_insert_rowid(s->db);
        return 0;
}

int store_event_each(struct store *s, const struct store_event_filter *f, store_event_fn fn, void *arg,
                     struct err *err) {
        /* Two texts, so that each has its index: those of one sandbox are few among many. */
        static const char all[] = "SELECT seq, time, tenant, sandbox, kind, data FROM event WHERE seq>?3 AND"
                                  " (?1 IS NULL OR tenant=?1) AND ?2 IS NULL ORDER BY seq LIMIT ?4";
        static const char one[] = "SELECT seq, time, tenant, sandbox, kind, data FROM event WHERE sandbox=?2 AND"
                                  " seq>?3 AND (?1 IS NULL OR tenant=?1) ORDER BY seq LIMIT ?4";
        sqlite3_stmt *st =
                db_query(s, err, f->sandbox ? one : all, "ssuu", f->tenant, f->sandbox, f->after, (uint64_t) f->limit);
        int r;

        while ((r = db_step(s, st, err)) == 1) {
                const struct store_event e = { db_u64(st, 0),
                                               db_u64(st, 1),
                                               (const char *) sqlite3_column_text(st, 2),
                                               (const char *) sqlite3_column_text(st, 3),
                                               (const char *) sqlite3_column_text(st, 4),
                                               (const char *) sqlite3_column_text(st, 5) };

                r = fn(arg, &e);
                if (r != 0) {
                        (void) sqlite3_reset(st);
                        return r;
                }
        }
        return r;
}

int store_event_last(struct store *s, const char *sandbox, struct store_last *ret, struct err *err) {
        sqlite3_stmt *st =
                sandbox ? db_query(s, err,
                                   "SELECT seq, time, kind FROM event WHERE sandbox=? ORDER BY seq DESC LIMIT 1", "s",
                                   sandbox)
                        : db_query(s, err, "SELECT seq, time, kind FROM event ORDER BY seq DESC LIMIT 1", "");
        int r = db_step(s, st, err);

        if (r == 0)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "no event of sandbox %.40s", sandbox ? sandbox : "");
        if (r < 0)
                return r;
        *ret = (struct store_last){ .seq = db_u64(st, 0), .time_ms = db_u64(st, 1) };
        db_text(st, 2, ret->kind, sizeof(ret->kind));
        (void) sqlite3_reset(st);
        return 0;
}

int store_prune(struct store *s, uint64_t ended_before_ms, unsigned keep_events, struct err *err) {
        int rows, events, attempts;

        rows = db_run(s, db_query(s, err, "DELETE FROM sandbox WHERE state=3 AND ended<?", "u", ended_before_ms), err);
        if (rows < 0)
                return rows;
        events = db_run(s,
                        db_query(s, err, "DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?", "u",
                                 (uint64_t) keep_events),
                        err);
        if (events < 0)
                return events;
        attempts = db_run(s, db_query(s, err, "DELETE FROM egress WHERE sandbox NOT IN (SELECT id FROM sandbox)", ""),
                          err);
        return attempts < 0 ? attempts : rows + events + attempts;
}
