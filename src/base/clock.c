/* clock.c - see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_mono_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

void clock_rfc3339_at(char dst[CLOCK_TEXT], uint64_t ms) {
        time_t t = (time_t) (ms / 1000);
        struct tm tm;
        size_t n;

        (void) gmtime_r(&t, &tm);
        n = strftime(dst, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
        (void) snprintf(dst + n, CLOCK_TEXT - n, ".%03uZ", (unsigned) (ms % 1000));
}

uint64_t clock_real_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

void clock_rfc3339(char dst[CLOCK_TEXT]) {
        clock_rfc3339_at(dst, clock_real_ms());
}
