/* describe.c - the facts about a group that evidence records: where it is, and what its control files say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "tree.h"

static const char *const mode_names[] = { [CGROUP_V2] = "v2", [CGROUP_HYBRID] = "hybrid", [CGROUP_V1] = "v1" };

/* Sorted by file, for each version. */
static const struct fact {
        enum cgroup_ctl ctl;
        bool v2;
        const char *file;
        bool is_swap;
} facts[] = {
        { CGROUP_CPU, true, "cpu.max", false },
        { CGROUP_IO, true, "io.max", false },
        { CGROUP_MEMORY, true, "memory.max", false },
        { CGROUP_MEMORY, true, "memory.oom.group", false },
        { CGROUP_MEMORY, true, "memory.swap.max", true },
        { CGROUP_PIDS, true, "pids.max", false },
        { CGROUP_IO, false, "blkio.throttle.read_bps_device", false },
        { CGROUP_IO, false, "blkio.throttle.write_bps_device", false },
        { CGROUP_CPU, false, "cpu.cfs_period_us", false },
        { CGROUP_CPU, false, "cpu.cfs_quota_us", false },
        { CGROUP_MEMORY, false, "memory.limit_in_bytes", false },
        { CGROUP_MEMORY, false, "memory.memsw.limit_in_bytes", true },
        { CGROUP_MEMORY, false, "memory.swappiness", true },
        { CGROUP_PIDS, false, "pids.max", false },
};

static bool has_group(const struct cgroup *c, const struct cgroup_hier *h) {
        return h && (c->made & BIT(h - c->host->hiers));
}

static struct json *describe_paths(const struct cgroup *c) {
        struct json *paths = json_new_object();

        for (size_t i = 0; i < c->host->n; i++) {
                const struct cgroup_hier *h = &c->host->hiers[i];
                char names[128] = "v2", path[CGROUP_PATH + CGROUP_NAME];
                size_t n = 0;

                if (!has_group(c, h))
                        continue;
                for (unsigned k = 0; !h->v2 && k < CGROUP_CTLS; k++)
                        if (h->ctls & BIT(k))
                                n += (size_t) snprintf(names + n, sizeof(names) - n, "%s%s", n ? "," : "",
                                                       cgroup_ctl_name(k, false));
                (void) snprintf(path, sizeof(path), "%s/%s", h->path, c->name);
                json_set_str(paths, names, path);
        }
        return paths;
}

int cgroup_describe(const struct cgroup *c, struct json_emit *e, const char *key, struct err *err) {
        bool swap_is_limited = false;
        int result = 0;

        json_emit_object(e, key);
        json_emit_object(e, "files");
        for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
                const struct cgroup_hier *h = cgroup_host_of(c->host, facts[i].ctl);
                char text[CGROUP_TEXT];
                int r;

                if (!has_group(c, h) || h->v2 != facts[i].v2)
                        continue;
                r = cgroup_limit_read(c, h, facts[i].file, text, sizeof(text));
                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        result = err_set(err, r, ERR_INTERNAL, "read %s of control group %s: %s", facts[i].file,
                                         c->name, strerrorname_np(-r));
                if (r > 0 && text[r - 1] == '\n')
                        text[r - 1] = '\0';
                json_emit_text(e, facts[i].file, r < 0 ? NULL : text);
                swap_is_limited |= facts[i].is_swap;
        }
        json_emit_close(e, '}');
        json_emit_str(e, "mode", mode_names[c->mode]);
        json_emit_str(e, "name", c->name);
        json_emit_tree(e, "paths", describe_paths(c));
        json_emit_str(e, "swap", swap_is_limited ? "limited to none" : "the host has none, and this kernel no limit");
        json_emit_close(e, '}');
        return result;
}
