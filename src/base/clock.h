/* clock.h - time in the two forms we use: a monotonic count, and RFC 3339 text in UTC. */
#pragma once

#include <stdint.h>

enum { CLOCK_TEXT = 32 };

uint64_t clock_mono_ns(void);
/* Now, as 2026-11-15T02:05:28.123Z. */
void clock_rfc3339(char dst[CLOCK_TEXT]);
