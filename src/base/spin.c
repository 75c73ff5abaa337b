/* spin.c - see spin.h. */
#include "base/spin.h"

#include <sched.h>

#include "base/clock.h"

struct spin spin_for(unsigned us) {
        return (struct spin){ clock_mono_ns() + (uint64_t) us * 1000 };
}

bool spin_on(const struct spin *s) {
        (void) sched_yield();
        return clock_mono_ns() < s->until_ns;
}
