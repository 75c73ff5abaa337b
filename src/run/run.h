/*
 * run.h - one command in one sandbox, from options to result, in the calling process: no daemon.
 *
 * This is the library entry that `gabion run` uses. The caller must have one thread, standard input, output and error
 * open, and nothing above them that it wants to keep private from this library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"

struct err;
struct json;
struct policy_resolve;

enum { RUN_DENIALS = 64, RUN_ENV = 512, RUN_EVENT_TEXT = 4 + ID_TEXT };

/* What only a run with a network needs. */
struct run_network {
        const struct policy *ceiling;         /* the operator's side; NULL: none */
        const struct policy_resolve *resolve; /* names that lead elsewhere */
        size_t n_resolve;
        const char *upstream_proxy, *bind; /* NULL: none */
        const char *ca_bundle;             /* certificates to trust instead of the host's; NULL: the host's */
        const char *log_path;              /* the egress log; NULL: none is kept */
        struct netns *ready;               /* taken from a pool (sandbox/netpool.h); NULL: made at the start */
};

struct run_options {
        struct policy *policy;   /* mount sources are made canonical in place */
        const char *const *argv; /* the command; NULL-terminated */
        const char *const *env;  /* whole environment of the command; NULL-terminated */
        const char *cwd;         /* NULL: the home directory */
        const char *name;        /* NULL: none; also the host name inside */
        const char *home;        /* the caller's home directory on the host, or NULL; never shown inside */
        bool tty;
        bool no_stdin;
        unsigned off; /* enum plan_off */
        bool sensitive_mounts;
        const char *evidence_path; /* NULL: no statement is written */
        struct run_network net;
        const char *audit;  /* a log's directory or a notary's socket; NULL: the notary of this machine, if any */
        const char *tenant; /* whose chain; NULL: "local" */
        bool show_evidence; /* a card on standard error */
        bool want_details;  /* fill run_result.evidence and the usage that takes time to read */
        bool quiet;         /* no denial lines on standard error */
        bool last;          /* the process ends after this run: what needs no answer may be removed after it */
        const void *agent;  /* the agent's image */
        size_t agent_bytes;
        enum sandbox_weaken weaken;
        bool unchecked; /* the twin only: a failed read-back is said, and the command runs all the same */
};

enum run_reason {
        RUN_EXITED,
        RUN_SIGNALLED,
        RUN_TIMEOUT,
        RUN_OOM,
        RUN_LIMIT,
        RUN_KILLED_BY_USER,
        RUN_KILLED_BY_POLICY,
        RUN_LOST,
};

struct run_denial {
        char event[RUN_EVENT_TEXT], time[CLOCK_TEXT];
        char code[48], rule[64], what[96];
        char policy[HASH_TEXT]; /* under which it was refused; "": the one of the start */
        const char *hint;
        unsigned count; /* how often this very attempt was made */
};

struct run_result {
        char sandbox[ID_TEXT];
        int exit_code; /* what `gabion run` returns */
        int signal;    /* 0 = none */
        enum run_reason reason;
        double duration_ms, cpu_ms;
        uint64_t memory_peak_bytes;
        unsigned orphans; /* processes and threads that outlived the command and were ended with the sandbox */
        bool output_truncated;
        bool stdout_mid_line; /* what was written to standard output does not end with a newline */
        size_t n_denials;
        unsigned denials_suppressed;
        char policy[HASH_TEXT], evidence[HASH_TEXT]; /* "" unless asked for */
        char mismatch[224];                          /* the twin only: the control that was not as planned */
        struct run_denial denials[RUN_DENIALS];
};

/* Runs to the end. Negative when Gabion itself failed (nothing of the command may have happened, or it was ended);
 * 0 with *ret filled otherwise, whatever the command did. */
int run_command(const struct run_options *o, struct run_result *ret, struct err *err);

/* Compiles the plan that run_command() would execute; for `gabion plan`. */
int run_plan(const struct run_options *o, struct plan *ret, struct err *err);

const char *run_reason_name(enum run_reason r);
/* The denials so far, a list. The caller owns *ret. */
int run_denials_json(const struct run_result *r, struct json **ret, struct err *err);
/* The result as the document of `--json`. The caller owns *ret. */
int run_result_json(const struct run_result *r, struct json **ret, struct err *err);
