/*
 * mounts.c - the mount table of the sandbox against the plan: every planned mount is there with its flags, nothing
 * else is, and none of them propagates to or from the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "evidence/read.h"

static bool has_option(const char *options, const char *name) {
        size_t n = strlen(name);

        for (const char *at = options; at; at = evidence_after(at, ','))
                if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
                        return true;
        return false;
}

static bool has_all(const char *options, const char *const *want) {
        for (size_t i = 0; want[i]; i++)
                if (!has_option(options, want[i]))
                        return false;
        return true;
}

/* Flags a planned mount must show. */
static const char *const *flags_of(const struct plan_mount *m) {
        static const char *const read_only[] = { "ro", "nosuid", "nodev", NULL };
        static const char *const writable[] = { "rw", "nosuid", "nodev", NULL };
        static const char *const device[] = { "ro", "nosuid", "noexec", NULL };
        static const char *const pts[] = { "rw", "nosuid", "noexec", NULL };

        if (m->kind == PLAN_DEVPTS)
                return pts;
        if (m->kind == PLAN_DEVICE)
                return device;
        return m->writable ? writable : read_only;
}

/* The planned mount at or above a target: a host directory brings its own submounts along, with its flags. */
static const struct plan_mount *planned(const struct plan *p, const char *target, bool *ret_exact) {
        const struct plan_mount *best = NULL;
        size_t best_len = 0;

        *ret_exact = false;
        for (size_t i = 0; i < p->n_mounts; i++) {
                const char *t = p->mounts[i].target;
                size_t n = strlen(t);

                if (strncmp(target, t, n) != 0 || (target[n] != '\0' && target[n] != '/') || n < best_len)
                        continue;
                best = &p->mounts[i];
                best_len = n;
                *ret_exact = target[n] == '\0';
        }
        return best;
}

static bool is_mask(const struct plan *p, const char *target) {
        if (!str_has_prefix(target, "/proc/"))
                return false;
        for (size_t i = 0; i < p->n_masks; i++) {
                size_t n = strlen(p->masks[i]);

                if (p->masks[i][n - 1] == '/')
                        n--;
                if (strncmp(target + 6, p->masks[i], n) == 0 && target[6 + n] == '\0')
                        return true;
        }
        return false;
}

/* What kind of file system a place must be; NULL: the host's own choice. */
static const char *type_of(const char *target, const struct plan_mount *m) {
        if (str_eq(target, "/proc"))
                return "proc";
        if (m && m->kind == PLAN_DEVPTS)
                return "devpts";
        return !m || m->kind == PLAN_WRITABLE ? "tmpfs" : NULL;
}

static const char *const *fixed_flags(const char *target) {
        static const char *const root[] = { "ro", "nosuid", "nodev", "noexec", NULL };
        static const char *const dev[] = { "ro", "nosuid", "noexec", NULL };

        if (str_eq(target, "/") || str_eq(target, "/proc") || str_eq(target, "/.gabion"))
                return root;
        return str_eq(target, "/dev") ? dev : NULL;
}

static const char *const mask_flags[] = { "ro", "nosuid", "nodev", "noexec", NULL };

static int check_one(const struct plan *p, const struct evidence_mount *m, struct err *err) {
        const char *const *want = fixed_flags(m->target);
        const struct plan_mount *plan_mount;
        bool exact;

        if (m->propagates)
                return read_mismatch(err, "mount", "%s propagates to other namespaces", m->target);
        if (want && !str_eq(m->fstype, type_of(m->target, NULL)))
                return read_mismatch(err, "mount", "%s is a %s", m->target, m->fstype);
        if (want)
                return has_all(m->options, want) ? 0 : read_mismatch(err, "mount", "%s is %s", m->target, m->options);
        if (is_mask(p, m->target))
                return has_all(m->options, mask_flags)
                               ? 0
                               : read_mismatch(err, "proc mask", "%s is %s", m->target, m->options);
        plan_mount = planned(p, m->target, &exact);
        if (!plan_mount || (!exact && plan_mount->kind != PLAN_BIND && plan_mount->kind != PLAN_OPTIONAL))
                return read_mismatch(err, "mount", "%s is not in the plan", m->target);
        if (exact && type_of(m->target, plan_mount) && !str_eq(m->fstype, type_of(m->target, plan_mount)))
                return read_mismatch(err, "mount", "%s is a %s", m->target, m->fstype);
        if (!has_all(m->options, flags_of(plan_mount)))
                return read_mismatch(err, "mount", "%s is %s", m->target, m->options);
        if (plan_mount->kind == PLAN_DEVPTS && !has_option(m->super, "max=" PLAN_TERMINALS))
                return read_mismatch(err, "terminal limit", "%s has %s", m->target, m->super);
        return 0;
}

/* How often something is mounted there: what is on top hides the rest, so twice is as wrong as never. */
static size_t count(const struct evidence *ev, const char *target) {
        size_t n = 0;

        for (size_t i = 0; i < ev->n_mounts; i++)
                n += str_eq(ev->mounts[i].target, target);
        return n;
}

int read_mounts(const struct reader *rd, struct err *err) {
        struct evidence *ev = rd->ev;
        const struct plan *p = rd->plan;
        int n = fd_read_at(rd->agent_fd, "mountinfo", ev->mount_text, sizeof(ev->mount_text));

        if (n >= 0)
                n = evidence_parse_mounts(ev->mount_text, ev->mounts, EVIDENCE_MOUNTS);
        if (n < 0)
                return read_mismatch(err, "mount", "the mount table cannot be read: %s", strerror(-n));
        ev->n_mounts = (size_t) n;
        for (size_t i = 0; i < ev->n_mounts; i++) {
                int r = check_one(p, &ev->mounts[i], err);

                if (r < 0)
                        return r;
        }
        if (count(ev, "/") != 1 || count(ev, "/proc") != 1 || count(ev, "/dev") != 1)
                return read_mismatch(err, "mount", "/, /proc or /dev is missing or covered");
        for (size_t i = 0; i < p->n_mounts; i++) {
                size_t times = count(ev, p->mounts[i].target);

                if (times > 1 || (times == 0 && p->mounts[i].kind != PLAN_OPTIONAL))
                        return read_mismatch(err, "mount", "%s is mounted %zu times", p->mounts[i].target, times);
        }
        for (size_t i = 0; i < p->n_masks; i++) {
                char path[64];
                size_t len = (size_t) snprintf(path, sizeof(path), "/proc/%s", p->masks[i]);

                if (path[len - 1] == '/')
                        path[len - 1] = '\0';
                /* A mask may be missing only where this kernel has nothing to mask. */
                if (count(ev, path) == 0 && faccessat(rd->sb->proc_fd, path + 6, F_OK, 0) == 0)
                        return read_mismatch(err, "proc mask", "%s is not masked", path);
        }
        return 0;
}
