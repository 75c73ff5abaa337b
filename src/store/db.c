/*
 * db.c - opens the database, brings its schema up to date, runs statements.
 *
 * Write-ahead logging with synchronous=NORMAL: killing any process loses nothing that was committed; a loss of power
 * may lose the last moments, with which the sandboxes of that machine are gone as well. The file is never corrupt.
 *
 * A commit costs more than what is in it. So events, of which there are many, wait in an open transaction: the next
 * other change takes them along, or whoever calls store_settle() in time.
 */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

enum { BUSY_MS = 5000, LENGTH_MAX = 1024 * 1024 };

/* Step n brings a database of version n to n + 1. A released step is never changed. */
static const char *const migrations[] = {
        "CREATE TABLE tenant("
        " id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, disabled INTEGER NOT NULL, created INTEGER NOT NULL,"
        " sandboxes INTEGER NOT NULL, creates_per_s INTEGER NOT NULL, cpu_milli INTEGER NOT NULL,"
        " memory INTEGER NOT NULL, disk INTEGER NOT NULL, ceiling TEXT) STRICT;"
        "CREATE TABLE api_key("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenant(id), name TEXT NOT NULL, role INTEGER NOT NULL,"
        " mask TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, verbs TEXT NOT NULL, templates TEXT NOT NULL,"
        " created INTEGER NOT NULL, expires INTEGER NOT NULL, used INTEGER NOT NULL, revoked INTEGER NOT NULL) STRICT;"
        "CREATE INDEX api_key_tenant ON api_key(tenant);"
        "CREATE TABLE sandbox("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenant(id), template TEXT NOT NULL, name TEXT,"
        " state INTEGER NOT NULL, reason TEXT NOT NULL, created INTEGER NOT NULL, ends INTEGER NOT NULL,"
        " ended INTEGER NOT NULL, cpu_milli INTEGER NOT NULL, memory INTEGER NOT NULL, disk INTEGER NOT NULL,"
        " policy_hash TEXT NOT NULL, metadata TEXT NOT NULL, policy TEXT NOT NULL, network TEXT) STRICT;"
        "CREATE INDEX sandbox_tenant ON sandbox(tenant, created, id);"
        "CREATE INDEX sandbox_live ON sandbox(tenant) WHERE state < 3;"
        "CREATE UNIQUE INDEX sandbox_name ON sandbox(tenant, name) WHERE state < 3;"
        "CREATE TABLE event("
        " seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, tenant TEXT NOT NULL, sandbox TEXT NOT NULL,"
        " kind TEXT NOT NULL, data TEXT NOT NULL) STRICT;"
        "CREATE INDEX event_sandbox ON event(sandbox, seq);",
        "ALTER TABLE sandbox ADD COLUMN socket TEXT NOT NULL DEFAULT '';",
        "CREATE TABLE egress("
        " sandbox TEXT NOT NULL, n INTEGER NOT NULL, denied INTEGER NOT NULL, data TEXT NOT NULL,"
        " PRIMARY KEY(sandbox, n)) STRICT, WITHOUT ROWID;",
        /* What costs a page in each commit and is not needed: sandbox_name has all that live as well, and the newest
         * event is never pruned, so that its number is enough to go on from. */
        "DROP INDEX sandbox_live;"
        "ALTER TABLE event RENAME TO event_before;"
        "CREATE TABLE event("
        " seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, tenant TEXT NOT NULL, sandbox TEXT NOT NULL,"
        " kind TEXT NOT NULL, data TEXT NOT NULL) STRICT;"
        "INSERT INTO event SELECT seq, time, tenant, sandbox, kind, data FROM event_before;"
        "DROP TABLE event_before;"
        "CREATE INDEX event_sandbox ON event(sandbox, seq);",
};
_Static_assert(STORE_GONE == 3, "the indexes above name it");

int db_fail(struct store *s, const char *what, struct err *err) {
        int code = sqlite3_extended_errcode(s->db);

        if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
                return err_set(err, -EEXIST, ERR_BUSY, "%s: it is there already", what);
        return err_set(err, (code & 0xff) == SQLITE_FULL ? -ENOSPC : -EIO, ERR_INTERNAL, "store: %s: %s", what,
                       sqlite3_errmsg(s->db));
}

int db_exec(struct store *s, const char *sql, struct err *err) {
        return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(s, "statement", err);
}

static sqlite3_stmt *prepare(struct store *s, const char *sql, struct err *err) {
        sqlite3_stmt *st = NULL;

        for (size_t i = 0; i < s->n_kept; i++)
                if (s->kept[i].sql == sql) {
                        (void) sqlite3_reset(s->kept[i].st);
                        (void) sqlite3_clear_bindings(s->kept[i].st);
                        return s->kept[i].st;
                }
        if (s->n_kept == STORE_STATEMENTS)
                abort(); /* our own bug: more literals than places */
        if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK) {
                (void) db_fail(s, "statement", err);
                return NULL;
        }
        s->kept[s->n_kept].sql = sql;
        s->kept[s->n_kept++].st = st;
        return st;
}

sqlite3_stmt *db_query(struct store *s, struct err *err, const char *sql, const char *fmt, ...) {
        sqlite3_stmt *st = prepare(s, sql, err);
        va_list ap;
        int r = SQLITE_OK;

        va_start(ap, fmt);
        for (int i = 0; st && r == SQLITE_OK && fmt[i]; i++)
                switch (fmt[i]) {
                case 's':
                        r = sqlite3_bind_text(st, i + 1, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
                        break;
                case 'i':
                        r = sqlite3_bind_int64(st, i + 1, va_arg(ap, int));
                        break;
                case 'u':
                        r = sqlite3_bind_int64(st, i + 1, (sqlite3_int64) va_arg(ap, uint64_t));
                        break;
                case 'b':
                        r = sqlite3_bind_blob(st, i + 1, va_arg(ap, const void *), STORE_HASH, SQLITE_TRANSIENT);
                        break;
                default:
                        abort(); /* our own bug */
                }
        va_end(ap);
        if (st && r != SQLITE_OK) {
                (void) db_fail(s, "parameter", err);
                return NULL;
        }
        return st;
}

int db_step(struct store *s, sqlite3_stmt *st, struct err *err) {
        int r = st ? sqlite3_step(st) : SQLITE_ERROR;

        if (r == SQLITE_ROW)
                return 1;
        if (!st)
                return err->code < 0 ? err->code : -EIO;
        if (r == SQLITE_DONE) {
                (void) sqlite3_reset(st);
                return 0;
        }
        r = db_fail(s, "statement", err);
        (void) sqlite3_reset(st);
        return r;
}

int db_run(struct store *s, sqlite3_stmt *st, struct err *err) {
        struct err later = { 0 };
        int r = db_step(s, st, err), settled;

        if (r == 0)
                r = sqlite3_changes(s->db);
        settled = s->held ? 0 : store_settle(s, &later);
        if (r >= 0 && settled < 0) {
                *err = later;
                return settled;
        }
        return r;
}

int db_gather(struct store *s, struct err *err) {
        int r = s->gathering ? 0 : db_step(s, db_query(s, err, "BEGIN IMMEDIATE", ""), err);

        s->gathering = r == 0;
        return r;
}

int store_begin(struct store *s, struct err *err) {
        int r = db_gather(s, err);

        s->held = r == 0;
        return r;
}

int store_settle(struct store *s, struct err *err) {
        int r = s->gathering ? db_step(s, db_query(s, err, "COMMIT", ""), err) : 0;

        if (r < 0)
                db_undo(s);
        s->gathering = s->held = false;
        return r;
}

void db_undo(struct store *s) {
        (void) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        s->gathering = s->held = false;
}

void db_text(sqlite3_stmt *st, int column, char *dst, size_t cap) {
        const char *text = (const char *) sqlite3_column_text(st, column);

        dst[0] = '\0';
        if (text)
                (void) str_copy(dst, cap, text); /* what does not fit was not written by us: it shows as empty */
}

int db_text_new(sqlite3_stmt *st, int column, char **ret) {
        const char *text = (const char *) sqlite3_column_text(st, column);

        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

uint64_t db_u64(sqlite3_stmt *st, int column) {
        return (uint64_t) sqlite3_column_int64(st, column);
}

static int migrate_one(struct store *s, size_t version, struct err *err) {
        char set[48];
        int r = db_exec(s, "BEGIN IMMEDIATE", err);

        (void) snprintf(set, sizeof(set), "PRAGMA user_version = %zu", version + 1);
        if (r == 0)
                r = db_exec(s, migrations[version], err);
        if (r == 0)
                r = db_exec(s, set, err);
        if (r == 0)
                return db_exec(s, "COMMIT", err);
        (void) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
        return r;
}

static int migrate(struct store *s, struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "PRAGMA user_version", "");
        int r = db_step(s, st, err);
        uint64_t version = r == 1 ? db_u64(st, 0) : 0;

        if (r < 0)
                return r;
        (void) sqlite3_reset(st);
        if (version > ARRAY_SIZE(migrations))
                return err_set(err, -EPROTO, ERR_INVALID,
                               "the store has version %llu, this program knows %zu; use the newer program",
                               (unsigned long long) version, ARRAY_SIZE(migrations));
        for (r = 0; r == 0 && version < ARRAY_SIZE(migrations); version++)
                r = migrate_one(s, version, err);
        return r;
}

static int set_up(struct store *s, struct err *err) {
        int on = 0, r;

        (void) sqlite3_busy_timeout(s->db, BUSY_MS);
        (void) sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
        (void) sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
        if (sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, &on) != SQLITE_OK || !on ||
            sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &on) != SQLITE_OK || on)
                return db_fail(s, "defensive mode", err);
        r = db_exec(s, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON", err);
        return r < 0 ? r : migrate(s, err);
}

int store_open(const char *path, struct store **ret, struct err *err) {
        CLEANUP(store_closep) struct store *s = calloc(1, sizeof(*s));
        /* Made by us, so that its mode is right from the first moment: it tells who uses this machine for what. */
        AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        int r;

        if (!s)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "store: out of memory");
        if (fd < 0)
                return err_set(err, -errno, ERR_INVALID, "store %.150s: %s", path, strerror(errno));
        if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL) !=
            SQLITE_OK)
                return s->db ? db_fail(s, "open", err) : err_set(err, -ENOMEM, ERR_INTERNAL, "store: out of memory");
        r = set_up(s, err);
        if (r < 0)
                return err_wrap(err, "%.150s", path);
        *ret = TAKE_PTR(s);
        return 0;
}

struct store *store_close(struct store *s) {
        struct err err = { 0 };

        if (!s)
                return NULL;
        (void) store_settle(s, &err);
        for (size_t i = 0; i < s->n_kept; i++)
                (void) sqlite3_finalize(s->kept[i].st);
        (void) sqlite3_close(s->db);
        free(s);
        return NULL;
}

void store_closep(struct store **s) {
        *s = store_close(*s);
}
