/* reconcile.h - what runs and what the store says are made to agree: after a start of ours or of the warden, and every
 * minute. */
#pragma once

struct daemon;
struct err;
struct reconcile;

int reconcile_new(struct daemon *d, struct reconcile **ret, struct err *err);
struct reconcile *reconcile_free(struct reconcile *c);
/*
 * The warden is there (again): asks what runs, and tells warden_agreed(). Rows without a sandbox are gone ("lost"), the
 * others are boxes again. Sandboxes without either are ended: now, and in later rounds those that were still being
 * made.
 */
void reconcile_start(struct reconcile *c);
