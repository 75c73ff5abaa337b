/*
 * record.h - what a run tells the audit log. Private to run/.
 *
 * Off unless a notary listens or the caller named a log; then required: what cannot be recorded does not happen. Events
 * are sent as they come; their acknowledgements are waited for before the command is released, and at the end. With a
 * log of its own a run has a notary beside it, in a process of its own: the supervisor, which reads the bytes of a
 * sandbox, never holds the signing key, and its death is recorded too.
 */
#pragma once

#include "notary/notary.h"
#include "run/run.h"

struct evidence;
struct json;
struct plan;

enum { RECORD_GROUPS = CGROUP_V1_MAX + 1, RECORD_PATH = 320, RECORD_WAIT_MS = 15000 };

struct record {
        struct notary_client c;
        pid_t notary; /* ours; 0: none */
        bool on;
        bool begun; /* the log knows of the sandbox */
        char tenant[AUDIT_NAME], actor[AUDIT_NAME], policy[HASH_TEXT], sandbox[ID_TEXT];
        const char *command; /* argv[0] */
        char *policy_text, *plan_text;
        char groups[RECORD_GROUPS][RECORD_PATH]; /* directories of the control group, to look whether they are gone */
        size_t n_groups;
        pid_t agent;
        uint64_t disk_bytes, requested_ms;
};

/* Finds or starts the notary. Before anything else: a process that is not the supervisor's shares nothing with it. */
int record_open(const struct run_options *o, struct record *r, struct err *err);
/* Sandbox and command, before it is released. Does not wait. */
int record_begin(struct record *r, const struct run_options *o, const struct plan *plan, const struct sandbox *sb,
                 struct err *err);
/* Waits until all that was sent is durable. */
int record_wait(struct record *r, struct err *err);
/* The plan as text: work for a moment in which we would only wait. */
int record_plan(struct record *r, const struct plan *plan, struct err *err);
/* What was read back, with plan and policy. Does not wait. */
int record_evidence(struct record *r, const struct plan *plan, const struct sandbox *sb, struct evidence *ev,
                    struct err *err);
/* A refusal under its event; code decides what kind it is. */
void record_denial(struct record *r, const struct run_denial *d);
/* An attempt, as egress reports it (docs/protocol/egress.md). */
void record_network(struct record *r, const struct json *attempt);
/* Another policy is about to be in force. Waits. */
int record_policy(struct record *r, const char *name, const char hash[HASH_TEXT], struct err *err);
/* Anything else: init it with record_event(), then send it. */
void record_event(const struct record *r, enum audit_kind kind, struct audit_event *ret);
void record_send(struct record *r, const struct audit_event *ev);
/* For the loop: a descriptor to wait on, or -1, and what to do when it is readable. Negative: the log has failed, and
 * the sandbox must end. */
int record_fd(const struct record *r);
int record_take(struct record *r, struct err *err);
/* The end of the command and of the sandbox; before it is removed. */
void record_end(struct record *r, const struct sandbox *sb, const struct run_result *res, bool started);
/* After everything was removed: the receipt. ok: cleaning up reported no failure. Waits. */
int record_removed(struct record *r, const struct plan *plan, bool ok, struct err *err);
void record_close(struct record *r);
