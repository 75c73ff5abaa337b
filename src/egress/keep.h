/*
 * keep.h - what outlives this process: a memfd that the supervisor holds and gives to the next one.
 *
 * It has the CA's key and certificate, and the names that each sandbox was given addresses for, in their order. Nobody
 * but this program reads it.
 */
#pragma once

#include <stddef.h>

#include "base/id.h"

struct err;
struct keep;

/* from_fd: the memfd of the process before, taken on success; -1: a new one. */
int keep_new(int from_fd, struct keep **ret, struct err *err);
struct keep *keep_free(struct keep *k);
/* For EGP_READY. Borrowed. */
int keep_fd(const struct keep *k);

/* The CA as text (key and certificate, PEM), "" if there is none yet. Borrowed until the next change. */
const char *keep_ca(const struct keep *k);
int keep_set_ca(struct keep *k, const char *pem, struct err *err);

/* A sandbox got its next name. */
int keep_add_name(struct keep *k, const char sandbox[ID_TEXT], const char *name, struct err *err);
/* Calls fn with each name of a sandbox, in order, until it fails. */
int keep_names(const struct keep *k, const char sandbox[ID_TEXT],
               int (*fn)(void *arg, const char *name, struct err *err), void *arg, struct err *err);
/* Forgets what belongs to a sandbox. */
int keep_remove(struct keep *k, const char sandbox[ID_TEXT], struct err *err);
