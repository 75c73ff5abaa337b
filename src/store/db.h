/* db.h - statements on the store's database, as the files of this component share them. Private. */
#pragma once

#include <sqlite3.h>

#include "store/store.h"

enum { STORE_STATEMENTS = 56 };

struct store {
        sqlite3 *db;
        struct {
                const char *sql; /* compared by address: a literal of the caller */
                sqlite3_stmt *st;
        } kept[STORE_STATEMENTS];
        size_t n_kept;
        bool gathering; /* a transaction is open: events, and what store_begin() asked for */
        bool held;      /* it stays open until store_settle() */
};

/*
 * A statement, reset, with its parameters bound. fmt has a letter for each: s text (NULL = null), i int64, u uint64,
 * b 32 bytes. sql must be a literal: it is compiled once. NULL on failure, with *err filled.
 */
sqlite3_stmt *db_query(struct store *s, struct err *err, const char *sql, const char *fmt, ...);
/* Runs a statement that gives no row, and settles what was gathered. Returns how many rows it changed, or negative
 * (-EEXIST for a taken name). */
int db_run(struct store *s, sqlite3_stmt *st, struct err *err);
/* 1: a row is there; 0: no more; negative. */
int db_step(struct store *s, sqlite3_stmt *st, struct err *err);
/* From now on changes wait for store_settle(). */
int db_gather(struct store *s, struct err *err);
/* Nothing of what was gathered has happened. */
void db_undo(struct store *s);
/* Several statements, separated by semicolons. */
int db_exec(struct store *s, const char *sql, struct err *err);

/* Columns of the row that is there. */
void db_text(sqlite3_stmt *st, int column, char *dst, size_t cap);
/* -ENOMEM; *ret is NULL for null. The caller frees it. */
int db_text_new(sqlite3_stmt *st, int column, char **ret);
uint64_t db_u64(sqlite3_stmt *st, int column);
/* A failure of SQLite as an error of ours. */
int db_fail(struct store *s, const char *what, struct err *err);
