/* clock.c - see clock.h. */
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
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

static bool has_form(const char *s, const char *form) {
        for (; *form; s++, form++)
                if (*form == '0' ? *s < '0' || *s > '9' : *s != *form)
                        return false;
        return true;
}

/* "Z" or "+02:00" at the end. */
static int parse_offset(const char *s, int64_t *ret_s) {
        unsigned hours, minutes;

        *ret_s = 0;
        if (s[0] == 'Z' && !s[1])
                return 0;
        if ((*s != '+' && *s != '-') || !has_form(s + 1, "00:00") || s[6])
                return -EINVAL;
        hours = (unsigned) (s[1] - '0') * 10 + (unsigned) (s[2] - '0');
        minutes = (unsigned) (s[4] - '0') * 10 + (unsigned) (s[5] - '0');
        if (hours > 23 || minutes > 59)
                return -EINVAL;
        *ret_s = (*s == '-' ? -1 : 1) * (int64_t) (hours * 3600 + minutes * 60);
        return 0;
}

int clock_parse(const char *s, uint64_t *ret_ms) {
        struct tm tm = { 0 };
        unsigned ms = 0, scale = 100;
        int64_t offset;
        time_t t;
        int day;

        if (!has_form(s, "0000-00-00T00:00:00") || !strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) || tm.tm_sec > 59)
                return -EINVAL;
        day = tm.tm_mday;
        t = timegm(&tm); /* which makes March out of February 30 */
        if (tm.tm_mday != day)
                return -EINVAL;
        s += 19;
        if (*s == '.') {
                s++;
                if (!has_form(s, "0"))
                        return -EINVAL;
                for (; *s >= '0' && *s <= '9'; s++, scale /= 10)
                        ms += (unsigned) (*s - '0') * scale;
        }
        if (parse_offset(s, &offset) < 0 || t - offset < 0)
                return -EINVAL;
        *ret_ms = (uint64_t) (t - offset) * 1000 + ms;
        return 0;
}

uint64_t clock_real_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

void clock_rfc3339(char dst[CLOCK_TEXT]) {
        clock_rfc3339_at(dst, clock_real_ms());
}
