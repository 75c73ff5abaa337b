/* tenants.c - tenants and their API keys. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "db.h"

#define TENANT_COLUMNS "id, name, disabled, created, sandboxes, creates_per_s, cpu_milli, memory, disk"
#define KEY_COLUMNS "id, tenant, name, role, mask, verbs, templates, created, expires, used, revoked"

static const char *const roles[STORE_ROLES] = { "admin", "developer", "auditor" };

const char *store_role_name(enum store_role r) {
        return (unsigned) r < STORE_ROLES ? roles[r] : "unknown";
}

int store_role_parse(const char *name, enum store_role *ret) {
        for (unsigned i = 0; i < STORE_ROLES; i++)
                if (str_eq(roles[i], name)) {
                        *ret = (enum store_role) i;
                        return 0;
                }
        return -EINVAL;
}

static int none(int changed, const char *what, struct err *err) {
        return changed == 0 ? err_set(err, -ENOENT, ERR_NOT_FOUND, "no such %s", what) : changed < 0 ? changed : 0;
}

static void tenant_read(sqlite3_stmt *st, struct store_tenant *t) {
        memset(t, 0, sizeof(*t));
        db_text(st, 0, t->id, sizeof(t->id));
        db_text(st, 1, t->name, sizeof(t->name));
        t->disabled = db_u64(st, 2) != 0;
        t->created_ms = db_u64(st, 3);
        t->quota.sandboxes = (uint32_t) db_u64(st, 4);
        t->quota.creates_per_s = (uint32_t) db_u64(st, 5);
        t->quota.cpu_milli = (uint32_t) db_u64(st, 6);
        t->quota.memory_bytes = db_u64(st, 7);
        t->quota.disk_bytes = db_u64(st, 8);
}

int store_tenant_add(struct store *s, const struct store_tenant *t, struct err *err) {
        const struct store_quota *q = &t->quota;
        int r = db_run(s,
                       db_query(s, err, "INSERT INTO tenant(" TENANT_COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?)", "ssiuuuuuu",
                                t->id, t->name, (int) t->disabled, t->created_ms, (uint64_t) q->sandboxes,
                                (uint64_t) q->creates_per_s, (uint64_t) q->cpu_milli, q->memory_bytes, q->disk_bytes),
                       err);

        return r < 0 ? err_wrap(err, "tenant %s", t->name) : 0;
}

int store_tenant_update(struct store *s, const struct store_tenant *t, struct err *err) {
        const struct store_quota *q = &t->quota;

        return none(db_run(s,
                           db_query(s, err,
                                    "UPDATE tenant SET name=?, disabled=?, sandboxes=?, creates_per_s=?, cpu_milli=?,"
                                    " memory=?, disk=? WHERE id=?",
                                    "siuuuuus", t->name, (int) t->disabled, (uint64_t) q->sandboxes,
                                    (uint64_t) q->creates_per_s, (uint64_t) q->cpu_milli, q->memory_bytes,
                                    q->disk_bytes, t->id),
                           err),
                    "tenant", err);
}

int store_tenant_get(struct store *s, const char *id_or_name, struct store_tenant *ret, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT " TENANT_COLUMNS " FROM tenant WHERE id=?1 OR name=?1 LIMIT 1", "s",
                                    id_or_name);
        int r = db_step(s, st, err);

        if (r == 1) {
                tenant_read(st, ret);
                (void) sqlite3_reset(st);
        }
        return none(r, "tenant", err);
}

int store_tenant_each(struct store *s, store_tenant_fn fn, void *arg, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT " TENANT_COLUMNS " FROM tenant ORDER BY created, id", "");
        struct store_tenant t;
        int r;

        while ((r = db_step(s, st, err)) == 1) {
                tenant_read(st, &t);
                r = fn(arg, &t);
                if (r != 0) {
                        (void) sqlite3_reset(st);
                        return r;
                }
        }
        return r;
}

int store_tenant_set_ceiling(struct store *s, const char *id, const char *json, struct err *err) {
        return none(db_run(s, db_query(s, err, "UPDATE tenant SET ceiling=? WHERE id=?", "ss", json, id), err),
                    "tenant", err);
}

int store_tenant_ceiling(struct store *s, const char *id, char **ret, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT ceiling FROM tenant WHERE id=?", "s", id);
        int r = db_step(s, st, err);

        if (r == 1) {
                if (db_text_new(st, 0, ret) < 0)
                        r = err_set(err, -ENOMEM, ERR_INTERNAL, "store: out of memory");
                (void) sqlite3_reset(st);
        }
        return none(r, "tenant", err);
}

static void key_read(sqlite3_stmt *st, struct store_key *k) {
        memset(k, 0, sizeof(*k));
        db_text(st, 0, k->id, sizeof(k->id));
        db_text(st, 1, k->tenant, sizeof(k->tenant));
        db_text(st, 2, k->name, sizeof(k->name));
        k->role = db_u64(st, 3) < STORE_ROLES ? (enum store_role) db_u64(st, 3) : STORE_AUDITOR;
        db_text(st, 4, k->mask, sizeof(k->mask));
        db_text(st, 5, k->verbs, sizeof(k->verbs));
        db_text(st, 6, k->templates, sizeof(k->templates));
        k->created_ms = db_u64(st, 7);
        k->expires_ms = db_u64(st, 8);
        k->used_ms = db_u64(st, 9);
        k->revoked = db_u64(st, 10) != 0;
}

int store_key_add(struct store *s, const struct store_key *k, const uint8_t hash[STORE_HASH], struct err *err) {
        int r = db_run(s,
                       db_query(s, err, "INSERT INTO api_key(" KEY_COLUMNS ", hash) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
                                "sssisssuuuib", k->id, k->tenant, k->name, (int) k->role, k->mask, k->verbs,
                                k->templates, k->created_ms, k->expires_ms, k->used_ms, (int) k->revoked, hash),
                       err);

        return r < 0 ? err_wrap(err, "API key %s", k->name) : 0;
}

int store_key_find(struct store *s, const uint8_t hash[STORE_HASH], struct store_key *ret, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT " KEY_COLUMNS " FROM api_key WHERE hash=?", "b", hash);
        int r = db_step(s, st, err);

        if (r == 1) {
                key_read(st, ret);
                (void) sqlite3_reset(st);
        }
        return none(r, "API key", err);
}

int store_key_used(struct store *s, const char *id, uint64_t now_ms, struct err *err) {
        return none(db_run(s, db_query(s, err, "UPDATE api_key SET used=? WHERE id=?", "us", now_ms, id), err),
                    "API key", err);
}

int store_key_revoke(struct store *s, const char *tenant, const char *id, struct err *err) {
        return none(db_run(s,
                           db_query(s, err, "UPDATE api_key SET revoked=1 WHERE tenant=? AND id=?", "ss", tenant, id),
                           err),
                    "API key", err);
}

int store_key_each(struct store *s, const char *tenant, store_key_fn fn, void *arg, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT " KEY_COLUMNS " FROM api_key WHERE tenant=? ORDER BY created, id",
                                    "s", tenant);
        struct store_key k;
        int r;

        while ((r = db_step(s, st, err)) == 1) {
                key_read(st, &k);
                r = fn(arg, &k);
                if (r != 0) {
                        (void) sqlite3_reset(st);
                        return r;
                }
        }
        return r;
}
