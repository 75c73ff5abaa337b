/*
 * units.c - sizes, durations and CPU counts, as text and back.
 *
 * Text is a decimal number and a unit, without spaces, signs or exponents. Every multiplication is checked against the
 * greatest value first, so nothing can wrap.
 */
#include "policy/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/limits.h"
#include "policy/policy.h"

enum { NUMBER_MAX = 24, DECIMALS = 3, SHOWN = 40 };

struct unit {
        const char *name;
        uint64_t factor;
};

/* Ascending, so that the text functions find the largest exact unit from the end. */
static const struct unit sizes[] = { { "", 1 }, { "K", POLICY_K }, { "M", POLICY_M }, { "G", POLICY_G } };
static const struct unit durations[] = {
        { "ms", 1 },
        { "s", POLICY_SECOND_MS },
        { "m", 60 * POLICY_SECOND_MS },
        { "h", POLICY_HOUR_MS },
        { "d", POLICY_DAY_MS },
};

static void unit_text(const struct unit *units, size_t n, char *dst, uint64_t v) {
        size_t i = n - 1;

        while (i > 0 && (v == 0 || v % units[i].factor != 0))
                i--;
        (void) snprintf(dst, POLICY_UNIT_TEXT, "%" PRIu64 "%s", v / units[i].factor, units[i].name);
}

/* -EINVAL: no such form; -ERANGE: does not fit 64 bits. */
static int unit_parse(const struct unit *units, size_t n, const char *text, uint64_t *ret) {
        size_t digits = strspn(text, "0123456789");
        char number[NUMBER_MAX];

        if (digits == 0)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                int r;

                if (!str_eq(text + digits, units[i].name))
                        continue;
                if (digits >= sizeof(number))
                        return -ERANGE;
                memcpy(number, text, digits);
                number[digits] = '\0';
                r = str_to_u64(number, UINT64_MAX / units[i].factor, ret);
                if (r == 0)
                        *ret *= units[i].factor;
                return r;
        }
        return -EINVAL;
}

int policy_units_size(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) {
        char low[POLICY_UNIT_TEXT], high[POLICY_UNIT_TEXT];
        uint64_t v = 0;
        int r = unit_parse(sizes, ARRAY_SIZE(sizes), text, &v);

        if (r == -EINVAL)
                return err_set(err, r, ERR_INVALID, "'%.*s' is not a size; write bytes, or a number with K, M or G",
                               SHOWN, text);
        if (r < 0 || v < min || v > max) {
                policy_units_size_text(low, min);
                policy_units_size_text(high, max);
                return err_set(err, -ERANGE, ERR_INVALID, "%.*s is out of range; allowed: %s to %s", SHOWN, text, low,
                               high);
        }
        *ret = v;
        return 0;
}

int policy_units_duration_ms(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) {
        char low[POLICY_UNIT_TEXT], high[POLICY_UNIT_TEXT];
        uint64_t v = 0;
        int r = unit_parse(durations, ARRAY_SIZE(durations), text, &v);

        if (r == -EINVAL)
                return err_set(err, r, ERR_INVALID, "'%.*s' is not a duration; write a number with ms, s, m, h or d",
                               SHOWN, text);
        if (r < 0 || v == 0 || v < min || v > max) {
                policy_units_duration_text(low, min > 0 ? min : 1);
                policy_units_duration_text(high, max);
                return err_set(err, -ERANGE, ERR_INVALID, "%.*s is out of range; allowed: %s to %s", SHOWN, text, low,
                               high);
        }
        *ret = v;
        return 0;
}

int policy_units_cpus(const char *text, uint32_t min_milli, uint32_t max_milli, uint32_t *ret_milli, struct err *err) {
        size_t whole = strspn(text, "0123456789");
        size_t decimals = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
        size_t len = whole + (text[whole] == '.') + decimals;
        char low[POLICY_UNIT_TEXT], high[POLICY_UNIT_TEXT];
        uint64_t milli = 0;

        if (whole == 0 || text[len] || (text[whole] == '.' && decimals == 0) || decimals > DECIMALS)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "'%.*s' is not a number of CPUs; write for example 0.5 or 2, with at most %d decimals",
                               SHOWN, text, DECIMALS);
        /* Once above the greatest value it stays there, so long numbers cannot wrap. */
        for (size_t i = 0; i < whole && milli <= max_milli; i++)
                milli = 10 * milli + 1000 * (uint64_t) (text[i] - '0');
        for (size_t i = 0, scale = 100; i < decimals; i++, scale /= 10)
                milli += scale * (uint64_t) (text[whole + 1 + i] - '0');
        if (milli < min_milli || milli > max_milli) {
                policy_units_cpus_text(low, min_milli);
                policy_units_cpus_text(high, max_milli);
                return err_set(err, -ERANGE, ERR_INVALID, "%.*s is out of range; allowed: %s to %s", SHOWN, text, low,
                               high);
        }
        *ret_milli = (uint32_t) milli;
        return 0;
}

void policy_units_size_text(char dst[POLICY_UNIT_TEXT], uint64_t bytes) {
        unit_text(sizes, ARRAY_SIZE(sizes), dst, bytes);
}

void policy_units_duration_text(char dst[POLICY_UNIT_TEXT], uint64_t ms) {
        unit_text(durations, ARRAY_SIZE(durations), dst, ms);
}

void policy_units_cpus_text(char dst[POLICY_UNIT_TEXT], uint32_t milli) {
        int n = snprintf(dst, POLICY_UNIT_TEXT, "%" PRIu32 ".%03" PRIu32, milli / 1000, milli % 1000);

        while (n > 0 && dst[n - 1] == '0')
                dst[--n] = '\0';
        if (n > 0 && dst[n - 1] == '.')
                dst[n - 1] = '\0';
}

int policy_parse_size(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) {
        int r = policy_units_size(text, min, max, ret, err);

        return r < 0 ? err_wrap(err, "%s", field) : 0;
}

int policy_parse_duration_ms(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                             struct err *err) {
        int r = policy_units_duration_ms(text, min, max, ret, err);

        return r < 0 ? err_wrap(err, "%s", field) : 0;
}

int policy_parse_cpus(const char *field, const char *text, uint32_t *ret_milli, struct err *err) {
        int r = policy_units_cpus(text, POLICY_CPU_MILLI_MIN, POLICY_CPU_MILLI_MAX, ret_milli, err);

        return r < 0 ? err_wrap(err, "%s", field) : 0;
}
