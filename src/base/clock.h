/* clock.h - time in the two forms we use: a monotonic count, and RFC 3339 text in UTC. */
#pragma once

#include <stdint.h>

enum { CLOCK_TEXT = 32 };

uint64_t clock_mono_ns(void);
/* Now, as 2026-11-15T02:05:28.123Z. */
void clock_rfc3339(char dst[CLOCK_TEXT]);
/* A time in milliseconds since 1970 in the same form. */
void clock_rfc3339_at(char dst[CLOCK_TEXT], uint64_t ms);
/* The way back: "T" between date and time, any digits of a fraction (those behind milliseconds are dropped), "Z" or an
 * offset. -EINVAL also before 1970. */
int clock_parse(const char *s, uint64_t *ret_ms);
/* Milliseconds since 1970. */
uint64_t clock_real_ms(void);
