/* names.h - words and counts that the renderings share. Private to prove/. */
#pragma once

#include "prove/prove.h"

enum { PROVE_NS = 8, PROVE_MOUNT_NS = 2, PROVE_NET_NS = 3 }; /* the last two: places in prove_ns_names */

extern const char *const prove_severity_names[PROVE_SEVERITIES];
extern const char *const prove_verdict_names[4];
extern const char *const prove_group_names[PROVE_GROUPS];
extern const char *const prove_ns_names[PROVE_NS];

/* Attempts with a verdict; group 0 = all. */
size_t prove_verdicts(const struct prove_report *r, enum prove_verdict v, char group);
bool prove_is_tried(const struct prove_report *r, char group);
/* True if no group was left out. */
bool prove_is_whole(const struct prove_report *r);
bool prove_is_accepted(const struct prove_attempt *a);
bool prove_is_any(const struct prove_attempt *a);

/* The posture in words, one line each; the statement, if there is one, adds what it alone knows. Returns how many. */
enum { PROVE_FACTS = 12 };
struct prove_fact {
        const char *name;
        char value[200];
};
size_t prove_facts(const struct prove_report *r, struct prove_fact ret[PROVE_FACTS]);
