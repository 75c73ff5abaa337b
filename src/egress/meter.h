/* meter.h - how much somebody has used: tokens per second, and time on the loop. Pure: the caller says what time it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A bucket of tokens, counted in thousandths so that slow rates do not vanish in rounding. */
struct meter_bucket {
        uint64_t rate, burst; /* tokens per second, and at most */
        uint64_t milli;       /* thousandths of tokens that are there */
        uint64_t at_ns;
};

void meter_bucket_set(struct meter_bucket *b, uint64_t rate, uint64_t burst, uint64_t now_ns);
/* True and one token less, or false. */
bool meter_bucket_take(struct meter_bucket *b, uint64_t now_ns);

/* Time that the loop spent for one sandbox in the current window. */
struct meter_share {
        uint64_t since_ns, used_ns;
        bool heavy; /* in this window or in the one before */
};

/* Adds the time from begin to now; returns s->heavy. */
bool meter_share_add(struct meter_share *s, uint64_t begin_ns, uint64_t now_ns);
/* Has it used up this very window? */
bool meter_share_is_spent(const struct meter_share *s, uint64_t now_ns);
