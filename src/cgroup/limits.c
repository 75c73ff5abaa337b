/*
 * limits.c - writes the limits of a group and reads them back.
 *
 * What v1 and v2 call a limit is one table; writing and verifying walk the same table, so nothing can be set without
 * being checked. Invariant: cgroup_limit() returns 0 only if every limit was accepted by the kernel. None is skipped,
 * with one exception that the code names: a kernel without swap accounting on a host without swap.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "tree.h"

enum { PERIOD_US = 100000, VALUE_MAX = 64 };

enum value { VALUE_MEMORY, VALUE_ZERO, VALUE_ONE, VALUE_CPU_MAX, VALUE_QUOTA, VALUE_PERIOD, VALUE_PIDS };

/* What holds where the kernel does not have the file. */
enum absent { ABSENT_ERROR, ABSENT_IF_NO_SWAP, ABSENT_USE_SWAPPINESS };

static const struct setting {
        enum cgroup_ctl ctl;
        bool v2;
        const char *file;
        enum value value;
        enum absent absent;
} settings[] = {
        { CGROUP_MEMORY, true, "memory.max", VALUE_MEMORY, ABSENT_ERROR },
        { CGROUP_MEMORY, true, "memory.swap.max", VALUE_ZERO, ABSENT_IF_NO_SWAP },
        /* A sandbox that lost one process to memory is not left running in halves. */
        { CGROUP_MEMORY, true, "memory.oom.group", VALUE_ONE, ABSENT_ERROR },
        { CGROUP_CPU, true, "cpu.max", VALUE_CPU_MAX, ABSENT_ERROR },
        { CGROUP_PIDS, true, "pids.max", VALUE_PIDS, ABSENT_ERROR },
        { CGROUP_MEMORY, false, "memory.limit_in_bytes", VALUE_MEMORY, ABSENT_ERROR },
        /* Memory and swap together get no more than memory alone: that is how v1 says "no swap". */
        { CGROUP_MEMORY, false, "memory.memsw.limit_in_bytes", VALUE_MEMORY, ABSENT_USE_SWAPPINESS },
        { CGROUP_CPU, false, "cpu.cfs_period_us", VALUE_PERIOD, ABSENT_ERROR },
        { CGROUP_CPU, false, "cpu.cfs_quota_us", VALUE_QUOTA, ABSENT_ERROR },
        { CGROUP_PIDS, false, "pids.max", VALUE_PIDS, ABSENT_ERROR },
};

_Static_assert(ARRAY_SIZE(settings) <= CGROUP_SETTINGS, "a file for each");

/* The text of a value: what is written, and what must be read back. */
static void value_text(enum value v, const struct cgroup_limits *l, char dst[VALUE_MAX]) {
        uint64_t quota = (uint64_t) l->cpu_milli * (PERIOD_US / 1000);
        uint64_t number = 0;

        switch (v) {
        case VALUE_MEMORY:
                /* The kernel counts pages and rounds down; rounding here makes the two texts equal. */
                number = l->memory_bytes - l->memory_bytes % (uint64_t) sysconf(_SC_PAGESIZE);
                break;
        case VALUE_ZERO:
                break;
        case VALUE_ONE:
                number = 1;
                break;
        case VALUE_CPU_MAX:
                (void) snprintf(dst, VALUE_MAX, "%llu %d", (unsigned long long) quota, PERIOD_US);
                return;
        case VALUE_QUOTA:
                number = quota;
                break;
        case VALUE_PERIOD:
                number = PERIOD_US;
                break;
        case VALUE_PIDS:
                number = l->pids;
                break;
        }
        (void) snprintf(dst, VALUE_MAX, "%llu", (unsigned long long) number);
}

static int limit_error(int r, enum cgroup_ctl ctl, const char *what, const char *file, struct err *err) {
        return err_set(err, r, ERR_INTERNAL, "cgroup.%s: %s %s: %s", cgroup_ctl_name(ctl, true), what, file,
                       strerrorname_np(-r));
}

/* Replaces a setting that this kernel does not have. 1: there is no need for one; 0: *s is now another; negative. */
static int setting_instead(struct setting *s, struct err *err) {
        int r;

        switch (s->absent) {
        case ABSENT_USE_SWAPPINESS:
                *s = (struct setting){ s->ctl, s->v2, "memory.swappiness", VALUE_ZERO, ABSENT_ERROR };
                return 0;
        case ABSENT_IF_NO_SWAP:
                r = cgroup_host_has_swap();
                if (r == 0)
                        return 1;
                return err_set(err, r < 0 ? r : -ENOENT, ERR_DENIED,
                               "cgroup.memory: this kernel cannot limit swap (no %s) and the host has swap; boot with "
                               "swapaccount=1, or swapoff -a",
                               s->file);
        case ABSENT_ERROR:
                break;
        }
        return limit_error(-ENOENT, s->ctl, "open", s->file, err);
}

/* The kernel's period is ours as a rule, and to write it takes twenty times as long as to look: for processor time it
 * visits every group of the machine. So it is with all limits of a group that had them before. */
static bool is_set(const struct cgroup *c, const struct setting *s, int fd, const char *text) {
        char now[VALUE_MAX];
        ssize_t n = s->value == VALUE_PERIOD || c->older ? pread(fd, now, sizeof(now), 0) : 0;

        return n > 1 && (size_t) n == strlen(text) + 1 && memcmp(now, text, (size_t) n - 1) == 0;
}

/* Writes a limit and keeps its file open: reading it back then costs one call instead of three. Not one that stands in
 * for an absent file, as the slot is found by the name. */
static int keep_write(struct cgroup *c, const struct cgroup_hier *h, const struct setting *s, const char *text,
                      size_t slot) {
        AUTO_FD int fd = cgroup_file_open(c, h, s->file, O_RDWR);
        int r = fd < 0 ? fd : is_set(c, s, fd, text) ? 0 : fd_write_all(fd, text, strlen(text));

        if (r == 0 && c->limit_fds[slot] == 0 && str_eq(s->file, settings[slot].file))
                c->limit_fds[slot] = TAKE_FD(fd) + 1;
        return r;
}

int cgroup_limit_read(const struct cgroup *c, const struct cgroup_hier *h, const char *file, char *dst, size_t cap) {
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
                ssize_t n;

                if (c->limit_fds[i] == 0 || settings[i].v2 != h->v2 || !str_eq(settings[i].file, file))
                        continue;
                n = pread(c->limit_fds[i] - 1, dst, cap - 1, 0);
                dst[n > 0 ? n : 0] = '\0';
                return n < 0 ? -errno : (int) n;
        }
        return cgroup_file_read(c, h, file, dst, cap);
}

static int setting_write(struct cgroup *c, const struct cgroup_limits *l, struct setting s, size_t slot,
                         struct err *err) {
        const struct cgroup_hier *h = cgroup_host_of(c->host, s.ctl);
        char text[VALUE_MAX];
        int r;

        value_text(s.value, l, text);
        r = keep_write(c, h, &s, text, slot);
        /* v1 refuses memory above memory+swap: when a limit is raised, the sum has to go first. */
        if (r == -EINVAL && !s.v2 && s.value == VALUE_MEMORY && s.absent == ABSENT_ERROR &&
            cgroup_file_write(c, h, "memory.memsw.limit_in_bytes", text) == 0)
                r = keep_write(c, h, &s, text, slot);
        if (r == -ENOENT && s.absent != ABSENT_ERROR) {
                r = setting_instead(&s, err);
                return r == 0 ? setting_write(c, l, s, slot, err) : r < 0 ? r : 0;
        }
        return r < 0 ? limit_error(r, s.ctl, "write", s.file, err) : 0;
}

static int setting_verify(const struct cgroup *c, const struct cgroup_limits *l, struct setting s, struct err *err) {
        const struct cgroup_hier *h = cgroup_host_of(c->host, s.ctl);
        char want[VALUE_MAX], have[VALUE_MAX];
        int r;

        value_text(s.value, l, want);
        r = cgroup_limit_read(c, h, s.file, have, sizeof(have));
        if (r == -ENOENT && s.absent != ABSENT_ERROR) {
                r = setting_instead(&s, err);
                return r == 0 ? setting_verify(c, l, s, err) : r < 0 ? r : 0;
        }
        if (r < 0)
                return limit_error(r, s.ctl, "read", s.file, err);
        have[strcspn(have, "\n")] = '\0';
        if (!str_eq(have, want))
                return err_set(err, -ESTALE, ERR_INTERNAL, "cgroup.%s: %s is '%s', not '%s'",
                               cgroup_ctl_name(s.ctl, true), s.file, have, want);
        return 0;
}

/* --- io: a line for each disk --- */
static bool has_io(const struct cgroup_limits *l) {
        return l->io_bytes_per_s > 0 && l->n_io_devices > 0;
}

/* The group in which io is limited; on v1 it is made here. */
static int io_hier(struct cgroup *c, const struct cgroup_hier **ret, struct err *err) {
        const struct cgroup_hier *h = cgroup_host_of(c->host, CGROUP_IO);
        size_t i;

        if (!h || h->parent_fd < 0)
                return err_set(
                        err, -ENOENT, ERR_DENIED,
                        "cgroup.io: the io controller (blkio on v1) is not mounted, not delegated or not writable "
                        "here; run as root, or leave the io limit out");
        i = (size_t) (h - c->host->hiers);
        *ret = h;
        return c->made & BIT(i) ? 0 : cgroup_group_add(c, i, err);
}

static int io_write(struct cgroup *c, const struct cgroup_limits *l, struct err *err) {
        static const char *const v1_files[] = { "blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device" };
        unsigned long long bps = l->io_bytes_per_s;
        const struct cgroup_hier *h = NULL;
        int r = io_hier(c, &h, err);

        for (size_t i = 0; r == 0 && i < l->n_io_devices; i++) {
                const uint32_t *dev = l->io_devices[i];
                char line[VALUE_MAX * 2];

                if (h->v2) {
                        (void) snprintf(line, sizeof(line), "%u:%u rbps=%llu wbps=%llu", dev[0], dev[1], bps, bps);
                        r = cgroup_file_write(c, h, "io.max", line);
                } else {
                        (void) snprintf(line, sizeof(line), "%u:%u %llu", dev[0], dev[1], bps);
                        r = cgroup_file_write(c, h, v1_files[0], line);
                        if (r == 0)
                                r = cgroup_file_write(c, h, v1_files[1], line);
                }
                if (r < 0)
                        return err_set(err, r, ERR_INTERNAL, "cgroup.io: limit disk %u:%u: %s", dev[0], dev[1],
                                       strerrorname_np(-r));
        }
        return r;
}

static int io_verify(const struct cgroup *c, const struct cgroup_limits *l, struct err *err) {
        static const struct io_check {
                bool v2;
                const char *file, *prefix;
        } checks[] = {
                { true, "io.max", "rbps=" },
                { true, "io.max", "wbps=" },
                { false, "blkio.throttle.read_bps_device", "" },
                { false, "blkio.throttle.write_bps_device", "" },
        };
        const struct cgroup_hier *h = cgroup_host_of(c->host, CGROUP_IO);
        static char text[CGROUP_TEXT];
        char word[VALUE_MAX], dev[VALUE_MAX];

        for (size_t k = 0; k < ARRAY_SIZE(checks); k++) {
                int r = -ENOENT;

                if (h && checks[k].v2 != h->v2)
                        continue;
                if (h && h->parent_fd >= 0)
                        r = cgroup_file_read(c, h, checks[k].file, text, sizeof(text));
                if (r < 0)
                        return limit_error(r, CGROUP_IO, "read", checks[k].file, err);
                (void) snprintf(word, sizeof(word), "%s%llu", checks[k].prefix, (unsigned long long) l->io_bytes_per_s);
                for (size_t i = 0; i < l->n_io_devices; i++) {
                        (void) snprintf(dev, sizeof(dev), "%u:%u", l->io_devices[i][0], l->io_devices[i][1]);
                        if (!cgroup_parse_has_word(text, dev, word))
                                return err_set(err, -ESTALE, ERR_INTERNAL, "cgroup.io: %s does not say %s for disk %s",
                                               checks[k].file, word, dev);
                }
        }
        return 0;
}

static int check_limits(const struct cgroup_limits *l, struct err *err) {
        /* Zero never means "no limit" for these three, so it must not slip through as one. */
        if (l->memory_bytes < (uint64_t) sysconf(_SC_PAGESIZE) || l->cpu_milli == 0 || l->pids == 0)
                return err_set(err, -EINVAL, ERR_INVALID, "a group needs limits of memory, cpu and pids above zero");
        if (l->n_io_devices > CGROUP_DEVICES)
                return err_set(err, -EINVAL, ERR_INVALID, "io limits for more than %d disks", CGROUP_DEVICES);
        return 0;
}

int cgroup_limit(struct cgroup *c, const struct cgroup_limits *l, struct err *err) {
        int r = check_limits(l, err);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(settings); i++)
                if (settings[i].v2 == cgroup_host_of(c->host, settings[i].ctl)->v2)
                        r = setting_write(c, l, settings[i], i, err);
        return r == 0 && has_io(l) ? io_write(c, l, err) : r;
}

int cgroup_verify(const struct cgroup *c, const struct cgroup_limits *l, struct err *err) {
        int r = check_limits(l, err);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(settings); i++)
                if (settings[i].v2 == cgroup_host_of(c->host, settings[i].ctl)->v2)
                        r = setting_verify(c, l, settings[i], err);
        return r == 0 && has_io(l) ? io_verify(c, l, err) : r;
}
