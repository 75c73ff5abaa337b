/*
 * prove.h - attacks a throw-away sandbox on this machine, watches from outside, and says what was found.
 *
 * The probe (src/probe) makes the attempts inside; this side plants canaries outside, starts the sandbox as a user
 * would, looks at the attacking process from the host, reads the probe's lines as hostile bytes, and checks that
 * nothing outside was touched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build.h"
#include "base/clock.h"
#include "base/hash.h"
#include "evidence/evidence.h"
#include "run/run.h"

struct buf;
struct err;
struct json;

enum {
        PROVE_ATTEMPTS = 1500,
        PROVE_GROUPS = 10,
        PROVE_CHECKS = 20,
        PROVE_OUTPUT = 512 * 1024,
        PROVE_COMMAND = 1024,
        PROVE_EVIDENCE = 64 * 1024,
        PROVE_DANGEROUS = 96,
        PROVE_ID = 12,
};

enum prove_verdict { PROVE_STOPPED, PROVE_REACHED, PROVE_ABSENT, PROVE_ACCEPTED };
enum prove_severity { PROVE_CRIT, PROVE_HIGH, PROVE_MED, PROVE_LOW, PROVE_CONTROL, PROVE_SEVERITIES };

/* One attempt as the probe reported it; the texts point into prove_report.output. */
struct prove_attempt {
        const char *id, *what, *technique, *note;
        enum prove_severity severity;
        enum prove_verdict verdict;
        int err_no;
        unsigned ms;
};

/* One observation from outside. */
struct prove_check {
        const char *what;
        bool ok;
        char note[120]; /* what is wrong; "" if nothing is */
};

/* The attacking process as the host's /proc showed it while it attacked. */
struct prove_posture {
        bool seen; /* false: no process of this machine runs the probe (another kernel does), or none is shown to us */
        struct evidence_status status;
        unsigned ns_new, ns_known; /* bit i: prove_ns_names[i] */
        char uid_map[160];
};

/* What level of isolation may be claimed, and why not a higher one. docs/isolation.md defines them. */
struct prove_level {
        int level; /* -1: not known */
        char why[200];
};

struct prove_report {
        char subject[32];            /* "gabion", or what else was attacked */
        char command[PROVE_COMMAND]; /* how another sandbox was called; "" for our own */
        const char *config;          /* the OCI runtime configuration that went with it, or NULL */
        char output[PROVE_OUTPUT];
        struct prove_attempt attempts[PROVE_ATTEMPTS];
        size_t n_attempts;
        unsigned deaths; /* attempts that a sandbox died of; it was started again after each */
        struct prove_check checks[PROVE_CHECKS];
        size_t n_checks;
        struct prove_posture posture;
        char evidence[PROVE_EVIDENCE]; /* the statement of `gabion run --evidence`; "" for other sandboxes */
        char evidence_hash[HASH_TEXT];
        uint8_t call_exists[PROVE_DANGEROUS]; /* by index in the table of dangerous calls */
        char time[CLOCK_TEXT];
        char kernel[64], machine[16];
        char version[32], build[BUILD_TEXT];
        char policy[HASH_TEXT], probe[HASH_TEXT];
        bool rootless;
        double seconds;
};

/* options: policy, agent, off and weaken are used; command, environment and streams are replaced. groups: letters of
 * the attempts to make, or NULL for all. */
int prove_run(const struct run_options *options, const char *groups, struct prove_report *ret, struct err *err);

/*
 * The same attempts in another sandbox: a command line in which the word {probe} is replaced by the probe's path,
 * {args} by its arguments, {} by both (which are appended if there is neither). Words are separated by blanks; nothing
 * is quoted, no shell is used.
 */
int prove_wrap(const char *name, const char *command, const char *groups, struct prove_report *ret, struct err *err);

/*
 * The same attempts in a sandbox that we know how to call. -ENOENT: it is not installed; another error: it does not run
 * here, and the message has its own first line.
 */
int prove_peer(const char *name, const char *groups, struct prove_report *ret, struct err *err);
/* Their names and command lines, for help texts; NULL after the last. */
const char *prove_peer_name(size_t i);
const char *prove_peer_command(const char *name);

/* Parses the probe's output in place. Pure and fuzzed: the sandbox wrote it. -EBADMSG on anything odd. */
int prove_parse(struct prove_report *r, size_t n);
/*
 * The output ends in the middle: of which attempt did the sandbox die? That one counts as stopped, and its line is
 * changed in place. Returns how much of the output is to be kept, or -EBADMSG. output[n] must be readable. Pure.
 */
int prove_died(char *output, size_t n, char ret_id[PROVE_ID]);

/* Is this attempt a finding? A control that was refused counts as a low one. */
bool prove_is_finding(const struct prove_attempt *a);
/* Findings of one severity; group 0 = all. */
size_t prove_count(const struct prove_report *r, enum prove_severity s, char group);
/* True if there is no crit or high finding and every check outside held. */
bool prove_passed(const struct prove_report *r);

/*
 * Of the system calls that are dangerous and that this kernel has: how many were tried, and which reached the kernel
 * (answered by its own code, not by a refusal). reached: NULL or room for PROVE_DANGEROUS names. Pure.
 */
struct prove_dangerous {
        size_t known, exist, tried, n_reached;
        const char *reached[PROVE_DANGEROUS];
};
void prove_dangerous(const struct prove_report *r, struct prove_dangerous *ret);

/* The levels of the UK AI Security Institute's sandboxing protocol: host isolation 0..3, network isolation 0..2. */
void prove_host_level(const struct prove_report *r, struct prove_level *ret);
void prove_network_level(const struct prove_report *r, struct prove_level *ret);

/* The first report is the subject, with every attempt; the others are compared with it. */
int prove_json(const struct prove_report *r, struct json **ret, struct err *err);
int prove_json_signed(const struct prove_report *const *reports, size_t n, struct json **ret, struct err *err);
/* Tables for a person; all: list every attempt. */
int prove_print(const struct prove_report *r, bool all, bool colour);
/* One self-contained page. */
void prove_html(const struct prove_report *const *reports, size_t n, struct buf *into);
/* Several subjects side by side, with how each was called. */
void prove_print_table(const struct prove_report *const *reports, size_t n);
