/* logs.h - a log in a directory of its own, for the tests. */
#pragma once

#include "ledger/ledger.h"

extern char logs_dir[64];

int logs_set_up(void **state);
int logs_tear_down(void **state);
/* Opens the ledger with segments of that size. */
struct ledger *logs_open(uint64_t segment_bytes);
/* Appends n events of a tenant in batches of at most `batch`. */
void logs_fill(struct ledger *l, const char *tenant, unsigned n, unsigned batch);
/* Verifies with the key in the directory (or the one that logs_keep_key() kept). */
struct ledger_verdict logs_verify(const char *tenant);
void logs_keep_key(void);
/* A file of the tenant, whole; the caller frees it. */
char *logs_read(const char *tenant, const char *name, size_t *ret_n);
void logs_write(const char *tenant, const char *name, const char *p, size_t n);
