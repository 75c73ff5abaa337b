/* names.h - words and counts that the renderings share. Private to prove/. */
#pragma once

#include "prove/prove.h"

extern const char *const prove_severity_names[PROVE_SEVERITIES];
extern const char *const prove_verdict_names[4];
extern const char *const prove_group_names[PROVE_GROUPS];

/* Attempts with a verdict; group 0 = all. */
size_t prove_verdicts(const struct prove_report *r, enum prove_verdict v, char group);
bool prove_is_accepted(const struct prove_attempt *a);
bool prove_is_any(const struct prove_attempt *a);
