/*
 * prove.h - attacks a throw-away sandbox on this machine, watches from outside, and says what was found.
 *
 * The probe (src/probe) makes the attempts inside; this side plants canaries outside, starts the sandbox as a user
 * would, reads the probe's lines as hostile bytes, and checks that nothing outside was touched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"
#include "run/run.h"

struct buf;
struct err;
struct json;

enum { PROVE_ATTEMPTS = 1500, PROVE_GROUPS = 10, PROVE_CHECKS = 8, PROVE_OUTPUT = 512 * 1024 };

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
};

struct prove_report {
        char subject[32]; /* "gabion", or what else was attacked */
        char output[PROVE_OUTPUT];
        struct prove_attempt attempts[PROVE_ATTEMPTS];
        size_t n_attempts;
        struct prove_check checks[PROVE_CHECKS];
        size_t n_checks;
        char time[CLOCK_TEXT];
        char kernel[64], machine[16];
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

/* Other sandboxes that we know how to call, hardened as their manuals suggest; NULL if the name is unknown. The program
 * to look for is the first word. */
const char *prove_peer(const char *name);
/* Their names, for help texts; NULL after the last. */
const char *prove_peer_name(size_t i);

/* Parses the probe's output in place. Pure and fuzzed: the sandbox wrote it. -EBADMSG on anything odd. */
int prove_parse(struct prove_report *r, size_t n);

/* Is this attempt a finding? A control that was refused counts as a low one. */
bool prove_is_finding(const struct prove_attempt *a);
/* Findings of one severity; group 0 = all. */
size_t prove_count(const struct prove_report *r, enum prove_severity s, char group);
/* True if there is no crit or high finding and every check outside held. */
bool prove_passed(const struct prove_report *r);

int prove_json(const struct prove_report *r, struct json **ret, struct err *err);
/* Tables for a person; all: list every attempt. */
int prove_print(const struct prove_report *r, bool all, bool colour);
/* One self-contained page. */
void prove_html(const struct prove_report *r, struct buf *into);
/* Several subjects side by side, one line each. */
void prove_print_table(const struct prove_report *const *reports, size_t n);
