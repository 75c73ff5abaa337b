/* meter.c - see meter.h. */
#include "egress/meter.h"

#include "egress/limits.h"

enum { NS_PER_MS = 1000000, NS_PER_US = 1000, MILLI = 1000 };

void meter_bucket_set(struct meter_bucket *b, uint64_t rate, uint64_t burst, uint64_t now_ns) {
        *b = (struct meter_bucket){ .rate = rate, .burst = burst, .milli = burst * MILLI, .at_ns = now_ns };
}

bool meter_bucket_take(struct meter_bucket *b, uint64_t now_ns) {
        uint64_t ms = (now_ns - b->at_ns) / NS_PER_MS;

        /* A token per second and a thousandth per millisecond are the same, so rate * ms needs no division. */
        if (ms > 0) {
                uint64_t room = b->burst * MILLI - b->milli;

                b->milli += b->rate > 0 && ms > room / b->rate ? room : b->rate * ms;
                b->at_ns += ms * NS_PER_MS;
        }
        if (b->milli < MILLI)
                return false;
        b->milli -= MILLI;
        return true;
}

bool meter_share_add(struct meter_share *s, uint64_t begin_ns, uint64_t now_ns) {
        static const uint64_t heavy_ns = (uint64_t) EGRESS_SHARE_HEAVY_US * NS_PER_US;
        static const uint64_t window_ns = (uint64_t) EGRESS_SHARE_US * NS_PER_US;

        if (begin_ns - s->since_ns > window_ns) {
                /* A window that began long ago says nothing about now: only the one just ended counts. */
                s->heavy = s->used_ns > heavy_ns && begin_ns - s->since_ns < 2 * window_ns;
                s->since_ns = begin_ns;
                s->used_ns = 0;
        }
        s->used_ns += now_ns - begin_ns;
        s->heavy = s->heavy || s->used_ns > heavy_ns;
        return s->heavy;
}

bool meter_share_is_spent(const struct meter_share *s, uint64_t now_ns) {
        return s->used_ns > (uint64_t) EGRESS_SHARE_HEAVY_US * NS_PER_US &&
               now_ns - s->since_ns <= (uint64_t) EGRESS_SHARE_US * NS_PER_US;
}
