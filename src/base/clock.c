/* clock.c - see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t clock_mono_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

void clock_rfc3339(char dst[CLOCK_TEXT]) {
        struct timespec ts;
        struct tm tm;
        size_t n;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        (void) gmtime_r(&ts.tv_sec, &tm);
        n = strftime(dst, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
        (void) snprintf(dst + n, CLOCK_TEXT - n, ".%03uZ", (unsigned) (ts.tv_nsec / 1000000) % 1000);
}
