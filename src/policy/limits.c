/*
 * limits.c - the limits by name: one table serves the schema, the command line and the final check, so that they
 * cannot disagree about a range.
 */
#include "policy/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/policy.h"
#include "policy/units.h"

enum limit_unit { UNIT_SIZE, UNIT_DURATION, UNIT_CPUS, UNIT_COUNT };

static const struct limit {
        const char *name;
        enum limit_unit unit;
        size_t offset; /* CPUS and COUNT: of a uint32_t; the others: of a uint64_t */
        uint64_t min;
        uint64_t max;
        bool zero; /* 0 is allowed besides the range */
} limits[] = {
#define AT(member) offsetof(struct policy_limits, member)
        { "memory", UNIT_SIZE, AT(memory_bytes), POLICY_MEMORY_MIN, POLICY_MEMORY_MAX, false },
        { "cpu", UNIT_CPUS, AT(cpu_milli), POLICY_CPU_MILLI_MIN, POLICY_CPU_MILLI_MAX, false },
        { "pids", UNIT_COUNT, AT(pids), POLICY_PIDS_MIN, POLICY_PIDS_MAX, false },
        { "disk", UNIT_SIZE, AT(disk_bytes), POLICY_DISK_MIN, POLICY_DISK_MAX, false },
        { "time", UNIT_DURATION, AT(time_ms), POLICY_TIME_MS_MIN, POLICY_TIME_MS_MAX, false },
        { "output", UNIT_SIZE, AT(output_bytes), POLICY_OUTPUT_MIN, POLICY_OUTPUT_MAX, false },
        { "files", UNIT_COUNT, AT(files), POLICY_FILES_MIN, POLICY_FILES_MAX, false },
        { "io", UNIT_SIZE, AT(io_bytes_per_s), POLICY_IO_MIN, POLICY_IO_MAX, true },
#undef AT
};

static bool is_wide(const struct limit *m) {
        return m->unit == UNIT_SIZE || m->unit == UNIT_DURATION;
}

static int parse_count(const struct limit *m, const char *text, uint32_t *ret, struct err *err) {
        uint64_t v = 0;
        int r = str_to_u64(text, m->max, &v);

        if (r == -EINVAL)
                return err_set(err, r, ERR_INVALID, "'%.40s' is not a whole number", text);
        if (r < 0 || v < m->min)
                return err_set(err, -ERANGE, ERR_INVALID, "%.40s is out of range; allowed: %" PRIu64 " to %" PRIu64,
                               text, m->min, m->max);
        *ret = (uint32_t) v;
        return 0;
}

static int parse(const struct limit *m, struct policy_limits *l, const char *text, struct err *err) {
        void *at = (char *) l + m->offset;

        if (m->zero && str_eq(text, "0")) {
                *(uint64_t *) at = 0;
                return 0;
        }
        switch (m->unit) {
        case UNIT_SIZE:
                return policy_units_size(text, m->min, m->max, at, err);
        case UNIT_DURATION:
                return policy_units_duration_ms(text, m->min, m->max, at, err);
        case UNIT_CPUS:
                return policy_units_cpus(text, (uint32_t) m->min, (uint32_t) m->max, at, err);
        case UNIT_COUNT:
                return parse_count(m, text, at, err);
        }
        return -EINVAL;
}

int policy_limits_set(struct policy_limits *l, const char *name, const char *text, struct err *err) {
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
                if (str_eq(name, limits[i].name))
                        return parse(&limits[i], l, text, err);
        return err_set(err, -EINVAL, ERR_INVALID, "unknown limit; allowed: memory cpu pids disk time output files io");
}

int policy_limits_check(const struct policy_limits *l, struct err *err) {
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                const struct limit *m = &limits[i];
                const void *at = (const char *) l + m->offset;
                uint64_t v = is_wide(m) ? *(const uint64_t *) at : *(const uint32_t *) at;

                if ((v < m->min || v > m->max) && !(m->zero && v == 0))
                        return err_set(err, -ERANGE, ERR_INVALID, "limits.%s: %" PRIu64 " is out of range", m->name, v);
        }
        return 0;
}

int policy_set_limit(struct policy_limits *l, const char *name, const char *text, struct err *err) {
        int r = policy_limits_set(l, name, text, err);

        return r < 0 ? err_wrap(err, "%.40s", name) : 0;
}
