/* units.h - the unit parsers of policy.h for callers that name the field themselves: messages are only the problem. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;

enum { POLICY_UNIT_TEXT = 24 };

int policy_units_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int policy_units_duration_ms(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int policy_units_cpus(const char *text, uint32_t min_milli, uint32_t max_milli, uint32_t *ret_milli, struct err *err);

/* The same values as text, in the largest unit that is exact. */
void policy_units_size_text(char dst[POLICY_UNIT_TEXT], uint64_t bytes);
void policy_units_duration_text(char dst[POLICY_UNIT_TEXT], uint64_t ms);
void policy_units_cpus_text(char dst[POLICY_UNIT_TEXT], uint32_t milli);
