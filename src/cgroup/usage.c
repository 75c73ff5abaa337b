/* usage.c - what a group has used so far. Counters that this kernel does not have are zero, never an error. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "tree.h"

/* One counter and where it is found; of several rows the first whose file exists counts. */
static const struct counter {
        enum cgroup_ctl ctl; /* in the hierarchy of which controller; CGROUP_CTLS: v2, whatever it carries */
        bool v2;
        const char *file;
        const char *key; /* NULL: the file is the number */
        size_t offset;
        uint64_t divide;
        unsigned asks; /* enum cgroup_ask: for whom it is read */
} counters[] = {
#define INTO(member) offsetof(struct cgroup_usage, member)
#define TOTALS (CGROUP_TOTALS | CGROUP_ALL)
        { CGROUP_MEMORY, true, "memory.peak", NULL, INTO(memory_peak_bytes), 1,
          TOTALS | CGROUP_LEVELS }, /* since Linux 5.19 */
        { CGROUP_MEMORY, false, "memory.max_usage_in_bytes", NULL, INTO(memory_peak_bytes), 1, TOTALS | CGROUP_LEVELS },
        { CGROUP_MEMORY, true, "memory.current", NULL, INTO(memory_bytes), 1, CGROUP_ALL },
        { CGROUP_MEMORY, false, "memory.usage_in_bytes", NULL, INTO(memory_bytes), 1, CGROUP_ALL },
        { CGROUP_MEMORY, true, "memory.stat", "inactive_file", INTO(memory_cache_bytes), 1, CGROUP_ALL },
        { CGROUP_MEMORY, false, "memory.stat", "total_inactive_file", INTO(memory_cache_bytes), 1, CGROUP_ALL },
        { CGROUP_MEMORY, true, "memory.events", "oom_kill", INTO(oom_kills), 1, CGROUP_EVENTS | TOTALS },
        { CGROUP_MEMORY, false, "memory.oom_control", "oom_kill", INTO(oom_kills), 1, CGROUP_EVENTS | TOTALS },
        { CGROUP_PIDS, true, "pids.events", "max", INTO(pids_refused), 1, CGROUP_EVENTS | CGROUP_ALL },
        { CGROUP_PIDS, false, "pids.events", "max", INTO(pids_refused), 1, CGROUP_EVENTS | CGROUP_ALL },
        { CGROUP_PIDS, true, "pids.current", NULL, INTO(tasks), 1, CGROUP_ALL | CGROUP_LEVELS },
        { CGROUP_PIDS, false, "pids.current", NULL, INTO(tasks), 1, CGROUP_ALL | CGROUP_LEVELS },
        /* Every v2 group counts time, also one without controllers: on hybrid machines that is where it comes from. */
        { CGROUP_CTLS, true, "cpu.stat", "usage_usec", INTO(cpu_us), 1, TOTALS },
        { CGROUP_CPUACCT, false, "cpuacct.usage", NULL, INTO(cpu_us), 1000, TOTALS },
#undef INTO
#undef TOTALS
};

static const struct cgroup_hier *counter_hier(const struct cgroup_host *h, const struct counter *k) {
        const struct cgroup_hier *hier = k->ctl == CGROUP_CTLS ? &h->hiers[0] : cgroup_host_of(h, k->ctl);

        return hier && hier->v2 == k->v2 ? hier : NULL;
}

_Static_assert(ARRAY_SIZE(counters) <= CGROUP_COUNTERS, "a file for each");

void cgroup_usage_open(struct cgroup *c, enum cgroup_ask ask) {
        for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
                const struct cgroup_hier *h = counter_hier(c->host, &counters[i]);
                int fd = h && (ask & counters[i].asks) ? cgroup_file_open(c, h, counters[i].file, O_RDONLY) : -1;

                if (fd >= 0)
                        c->usage_fds[i] = fd + 1;
        }
}

static int counter_read(const struct cgroup *c, const struct cgroup_hier *h, const struct counter *k, uint64_t *ret) {
        static char text[CGROUP_TEXT];
        int fd = c->usage_fds[k - counters] - 1;
        int r = fd < 0 ? cgroup_file_read(c, h, k->file, text, sizeof(text)) : fd_read_upto(fd, text, sizeof(text));

        if (r < 0)
                return r;
        if (k->key)
                return cgroup_parse_key(text, k->key, ret);
        text[strcspn(text, "\n")] = '\0';
        return str_to_u64(text, UINT64_MAX, ret);
}

int cgroup_usage(const struct cgroup *c, enum cgroup_ask ask, struct cgroup_usage *ret, struct err *err) {
        struct cgroup_usage u = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
                const struct cgroup_hier *h = counter_hier(c->host, &counters[i]);
                uint64_t *into = (uint64_t *) ((char *) &u + counters[i].offset);
                uint64_t v = 0;
                int r;

                if (!h || *into > 0 || !(ask & counters[i].asks))
                        continue;
                r = counter_read(c, h, &counters[i], &v);
                if (r < 0 && r != -ENOENT)
                        return err_set(err, r, ERR_INTERNAL, "read %s of control group %s: %s", counters[i].file,
                                       c->name, strerrorname_np(-r));
                *into = v / counters[i].divide;
        }
        *ret = u;
        return 0;
}

int cgroup_pids(const struct cgroup *c, int *dst, size_t cap) {
        char text[CGROUP_TEXT];
        size_t n = 0;
        int r = -ENOENT, fd = -1;

        for (size_t i = 0; fd < 0 && i < c->host->n; i++)
                if (c->made & BIT(i))
                        fd = cgroup_file_open(c, &c->host->hiers[i], "cgroup.procs", O_RDONLY);
        if (fd >= 0) {
                ssize_t k = read(fd, text, sizeof(text) - 1);

                r = k < 0 ? -errno : 0;
                text[k > 0 ? k : 0] = '\0';
                (void) close(fd);
        }
        if (r < 0)
                return r;
        /* A line that was cut is left out: the next look finds its process. */
        for (char *line = text, *end; n < cap && (end = strchr(line, '\n')); line = end + 1) {
                uint64_t pid;

                *end = '\0';
                if (str_to_u64(line, INT32_MAX, &pid) < 0)
                        return -EBADMSG;
                dst[n++] = (int) pid;
        }
        return (int) n;
}
