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
        for (const char *at = options; at; at = evidence_after(at, ',')) {
                const char *end = evidence_past(at, name);

                if (end && (*end == ',' || *end == '\0'))
                        return true;
        }
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

/* What is there in any case. */
static const struct place {
        const char *target, *fstype, *flags[5];
        bool needed;
} places[] = {
        { "/", "tmpfs", { "ro", "nosuid", "nodev", "noexec", NULL }, true },
        { "/proc", "proc", { "ro", "nosuid", "nodev", "noexec", NULL }, true },
        { "/dev", "tmpfs", { "ro", "nosuid", "noexec", NULL }, true },
        { "/.gabion", "tmpfs", { "ro", "nosuid", "nodev", "noexec", NULL }, false },
};

static const char *const mask_flags[] = { "ro", "nosuid", "nodev", "noexec", NULL };

/* How often something is mounted at each place: what is on top hides the rest, so twice is as wrong as never. */
struct tally {
        unsigned places[ARRAY_SIZE(places)], mounts[PLAN_MOUNTS], masks[PLAN_MASKS];
};

/* The planned mount at or above a target: a host directory brings its own submounts along, with its flags. */
static const struct plan_mount *planned(const struct plan *p, const char *target, bool *ret_exact) {
        const struct plan_mount *best = NULL;
        const char *best_end = target;

        *ret_exact = false;
        for (size_t i = 0; i < p->n_mounts; i++) {
                const char *end = evidence_past(target, p->mounts[i].target);

                if (!end || (*end != '\0' && *end != '/') || end < best_end)
                        continue;
                best = &p->mounts[i];
                best_end = end;
                *ret_exact = *end == '\0';
        }
        return best;
}

/* The mask over a target; n_masks if there is none. */
static size_t mask_of(const struct plan *p, const char *target) {
        const char *name = evidence_past(target, "/proc/");
        size_t i = 0;

        for (; name && i < p->n_masks; i++) {
                const char *end = evidence_past(p->masks[i], name);

                if (end && (*end == '\0' || str_eq(end, "/")))
                        return i;
        }
        return p->n_masks;
}

/* What kind of file system a place must be; NULL: the host's own choice. */
static const char *type_of(const struct plan_mount *m) {
        if (m->kind == PLAN_DEVPTS)
                return "devpts";
        return m->kind == PLAN_WRITABLE || m->kind == PLAN_OWN ? "tmpfs" : NULL;
}

static int check_place(const struct place *place, const struct evidence_mount *m, struct err *err) {
        if (!str_eq(m->fstype, place->fstype))
                return read_mismatch(err, "mount", "%s is a %s", m->target, m->fstype);
        return has_all(m->options, place->flags) ? 0 : read_mismatch(err, "mount", "%s is %s", m->target, m->options);
}

static int check_planned(const struct plan *p, const struct evidence_mount *m, struct tally *t, struct err *err) {
        bool exact;
        const struct plan_mount *want = planned(p, m->target, &exact);

        if (!want || (!exact && want->kind != PLAN_BIND && want->kind != PLAN_OPTIONAL))
                return read_mismatch(err, "mount", "%s is not in the plan", m->target);
        if (exact && type_of(want) && !str_eq(m->fstype, type_of(want)))
                return read_mismatch(err, "mount", "%s is a %s", m->target, m->fstype);
        if (!has_all(m->options, flags_of(want)))
                return read_mismatch(err, "mount", "%s is %s", m->target, m->options);
        if (want->kind == PLAN_DEVPTS && !has_option(m->super, "max=" PLAN_TERMINALS))
                return read_mismatch(err, "terminal limit", "%s has %s", m->target, m->super);
        t->mounts[want - p->mounts] += exact;
        return 0;
}

static int check_one(const struct plan *p, const struct evidence_mount *m, struct tally *t, struct err *err) {
        size_t mask = mask_of(p, m->target);

        if (m->propagates)
                return read_mismatch(err, "mount", "%s propagates to other namespaces", m->target);
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (str_eq(m->target, places[i].target)) {
                        t->places[i]++;
                        return check_place(&places[i], m, err);
                }
        if (mask == p->n_masks)
                return check_planned(p, m, t, err);
        t->masks[mask]++;
        return has_all(m->options, mask_flags) ? 0 : read_mismatch(err, "proc mask", "%s is %s", m->target, m->options);
}

/* Everything is there, and once. */
static int check_tally(const struct reader *rd, const struct tally *t, struct err *err) {
        const struct plan *p = rd->plan;

        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (places[i].needed && t->places[i] != 1)
                        return read_mismatch(err, "mount", "/, /proc or /dev is missing or covered");
        for (size_t i = 0; i < p->n_mounts; i++)
                if (t->mounts[i] > 1 || (t->mounts[i] == 0 && p->mounts[i].kind != PLAN_OPTIONAL))
                        return read_mismatch(err, "mount", "%s is mounted %u times", p->mounts[i].target, t->mounts[i]);
        /* A mask may be missing only where this kernel has nothing to mask. */
        for (size_t i = 0; i < p->n_masks; i++)
                if (t->masks[i] == 0 && faccessat(rd->sb->proc_fd, p->masks[i], F_OK, 0) == 0)
                        return read_mismatch(err, "proc mask", "/proc/%s is not masked", p->masks[i]);
        return 0;
}

int read_mounts(const struct reader *rd, struct err *err) {
        struct evidence *ev = rd->ev;
        struct tally t = { 0 };
        int n = fd_read_at(rd->agent_fd, "mountinfo", ev->mount_text, sizeof(ev->mount_text));

        if (n >= 0)
                n = evidence_parse_mounts(ev->mount_text, ev->mounts, EVIDENCE_MOUNTS);
        if (n < 0)
                return read_mismatch(err, "mount", "the mount table cannot be read: %s", strerror(-n));
        ev->n_mounts = (size_t) n;
        for (size_t i = 0; i < ev->n_mounts; i++) {
                int r = check_one(rd->plan, &ev->mounts[i], &t, err);

                if (r < 0)
                        return r;
        }
        return check_tally(rd, &t, err);
}
