/*
 * record.h - what of this server goes into the audit log, and in which words. docs/audit.md has the table.
 *
 * A request that changes something, or looks at what only few may see, is recorded before it is served, and not served
 * while the log cannot be written. Ending a sandbox is the exception: what is killed can do no more harm.
 */
#pragma once

#include <stdint.h>

struct audit_event;
struct box;
struct daemon;
struct envd_event;
struct err;
struct json;
struct request;
struct store_sandbox;
struct wp_created;

/* Serves an authorised request by its route, now or when it is recorded. */
void record_request(struct request *q);
/* It was refused: code as the client was told. */
void record_refused(struct request *q, const char *code);

/* A sandbox is about to be made. */
void record_create(struct audit_event *ev, const struct store_sandbox *row, const char *key);
/* It runs, by the policy with that hash. The warden is asked for the statement of what was read back, to be kept beside
 * the log; it comes a moment later. */
void record_running(const struct box *b, const char *policy);
/* It has ended. cleaned: the warden saw it go, and everything of it. */
void record_ended(struct daemon *d, const char *tenant, const char *sandbox, const struct json *data, int cleaned);

/* A command is about to start. 0: it may; 1: envd_permitted() will say; negative: it may not. */
int record_command(struct box *b, const struct envd_event *from);
void record_command_ended(struct box *b, const struct envd_event *from);

/* An attempt of a sandbox to reach something, as egress tells it. */
void record_attempt(struct daemon *d, const char *sandbox, const struct json *attempt);

/* Called for every event of the store (events.h); those that the functions above tell are left out. */
void record_event(struct daemon *d, const char *tenant, const char *sandbox, const char *kind, const struct json *data);
