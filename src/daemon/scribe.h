/*
 * scribe.h - the link to the notary: what happens here goes into the audit log, each tenant's into its own chain.
 *
 * What is about to happen is asked for, and happens only when it is durable; while the log cannot be written such
 * requests fail, and so do the actions. What has happened already is noted, and kept here for a while if the notary is
 * away. With `audit: off` there is no scribe, and everything may happen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_event;
struct daemon;
struct err;
struct scribe;

/* failed = NULL: it is durable. fd: memory with the answer of a reading, closed after the call; else -1. */
typedef void (*scribe_fn)(void *arg, const struct err *failed, int fd);

/* Leaves *ret NULL if the operator wants no audit log. */
int scribe_new(struct daemon *d, struct scribe **ret, struct err *err);
/* What was noted is sent, but nobody waits; who asked is told -ECANCELED. */
struct scribe *scribe_free(struct scribe *s);
/* There is a log, and it can be asked now. */
bool scribe_is_up(const struct scribe *s);
/* Nothing is on its way, or nobody would take it: for an orderly stop. */
bool scribe_is_idle(const struct scribe *s);

/* fn is called exactly once, from the loop. s may not be NULL. */
void scribe_ask(struct scribe *s, const struct audit_event *ev, scribe_fn fn, void *arg);
void scribe_read(struct scribe *s, const char *tenant, uint64_t from, uint32_t n, scribe_fn fn, void *arg);
void scribe_dossier(struct scribe *s, const char *tenant, const char *sandbox, scribe_fn fn, void *arg);
/* s may be NULL. */
void scribe_note(struct scribe *s, const struct audit_event *ev);
/* With a document to keep in sealed memory, which is taken: kind is "start" or "end" of a sandbox. */
void scribe_keep(struct scribe *s, const struct audit_event *ev, const char *kind, int fd);
