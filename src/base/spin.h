/*
 * spin.h - waiting a moment with open eyes.
 *
 * A processor with nothing to do is put to sleep, and in a virtual machine waking it takes 50 us to 1 ms: longer than
 * most steps of a start. Where an answer is expected within that time we look again and again, giving the processor
 * away to whoever wants it, and sleep only after that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct spin {
        uint64_t until_ns;
};

struct spin spin_for(unsigned us);
/* Lets others run. False once the time is over: the caller should sleep now. */
bool spin_on(const struct spin *s);
