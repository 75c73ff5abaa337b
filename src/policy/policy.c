/*
 * policy.c - the default, the final check, and the canonical form.
 *
 * The canonical form is itself a policy document: decoding it gives the same policy and therefore the same hash, so an
 * operator can rerun what an evidence file says.
 */
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/limits.h"
#include "policy/mount.h"
#include "policy/net_rules.h"
#include "policy/units.h"

static const char *const tiers[] = { "ns", "gvisor", "microvm" };
static const char *const users[] = { "user", "root" };
static const char *const profiles[] = { "agent", "strict", "debug" };

/* On the path of every run without a policy file: assignments only. The 64 KiB of mounts are not touched, since
 * n_mounts says that none of them counts. */
void policy_default(struct policy *p) {
        static const char name[POLICY_NAME] = "default", template[POLICY_NAME] = "host";

        memcpy(p->name, name, sizeof(p->name));
        p->tier = POLICY_TIER_NS;
        memcpy(p->template, template, sizeof(p->template));
        p->user = POLICY_USER_USER;
        p->n_mounts = 0;
        p->limits = (struct policy_limits){
                .memory_bytes = POLICY_MEMORY_DEFAULT,
                .cpu_milli = POLICY_CPU_MILLI_DEFAULT,
                .pids = POLICY_PIDS_DEFAULT,
                .disk_bytes = POLICY_DISK_DEFAULT,
                .time_ms = POLICY_TIME_MS_DEFAULT,
                .output_bytes = POLICY_OUTPUT_DEFAULT,
                .files = POLICY_FILES_DEFAULT,
                .io_bytes_per_s = POLICY_IO_DEFAULT,
        };
        p->syscalls = POLICY_SYSCALLS_AGENT;
        policy_monitor_default(p);
        p->net = NULL;
}

void policy_done(struct policy *p) {
        p->net = net_free(p->net);
}

bool policy_is_name(const char *s) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        size_t n = strlen(s);

        return n > 0 && n < POLICY_NAME && strchr(letters, *s) &&
               n == strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

static int check_mounts(const struct policy *p, struct err *err) {
        if (p->n_mounts > POLICY_MOUNTS)
                return err_set(err, -EINVAL, ERR_INVALID, "filesystem.mounts: at most %d", POLICY_MOUNTS);
        for (size_t i = 0; i < p->n_mounts; i++) {
                if (policy_mount_check_source(p->mounts[i].source, err) < 0)
                        return err_wrap(err, "filesystem.mounts[%zu].source", i);
                if (policy_mount_check_target(p->mounts[i].target, err) < 0)
                        return err_wrap(err, "filesystem.mounts[%zu].target", i);
                for (size_t k = 0; k < i; k++)
                        if (policy_mount_check_pair(p->mounts[k].target, p->mounts[i].target, err) < 0)
                                return err_wrap(err, "filesystem.mounts[%zu].target", i);
        }
        return 0;
}

int policy_check_parts(const struct policy *p, struct err *err) {
        int r;

        if (!policy_is_name(p->name))
                return err_set(err, -EINVAL, ERR_INVALID, "name: must be letters, digits, '.', '_' and '-'");
        if (p->tier != POLICY_TIER_NS)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "tier: %s is not available in this build; the tier is never downgraded silently",
                               policy_tier_name(p->tier));
        if (!str_eq(p->template, "host"))
                return err_set(err, -EINVAL, ERR_INVALID, "template: only 'host' is available in this build");
        if (p->user > POLICY_USER_ROOT || p->syscalls > POLICY_SYSCALLS_DEBUG)
                return err_set(err, -EINVAL, ERR_INVALID, "user or syscalls: no such value");
        r = policy_limits_check(&p->limits, err);
        if (r == 0)
                r = policy_monitor_check(p, err);
        if (r == 0)
                r = check_mounts(p, err);
        return r == 0 && p->net ? net_check(p->net, err) : r;
}

/* Nobody may take an unexpanded preset for what it stands for. */
static int check_expanded(const struct policy *p, struct err *err) {
        if (p->net && p->net->packages)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "network.preset: packages is not expanded here; list the hosts");
        return 0;
}

int policy_check(const struct policy *p, struct err *err) {
        int r = policy_check_parts(p, err);

        return r < 0 ? r : check_expanded(p, err);
}

static struct json *limits_json(const struct policy_limits *l) {
        struct json *j = json_new_object();
        char text[POLICY_UNIT_TEXT];

        json_set_int(j, "memory", (int64_t) l->memory_bytes);
        policy_units_cpus_text(text, l->cpu_milli);
        json_set_str(j, "cpu", text); /* text: reals have no canonical form */
        json_set_int(j, "pids", l->pids);
        json_set_int(j, "disk", (int64_t) l->disk_bytes);
        (void) snprintf(text, sizeof(text), "%" PRIu64 "ms", l->time_ms);
        json_set_str(j, "time", text);
        json_set_int(j, "output", (int64_t) l->output_bytes);
        json_set_int(j, "files", l->files);
        json_set_int(j, "io", (int64_t) l->io_bytes_per_s);
        return j;
}

static struct json *filesystem_json(const struct policy *p) {
        struct json *j = json_new_object(), *mounts = json_new_array();

        for (size_t i = 0; i < p->n_mounts; i++) {
                struct json *m = json_new_object();

                json_set_str(m, "source", p->mounts[i].source);
                json_set_str(m, "target", p->mounts[i].target);
                json_set_str(m, "mode", p->mounts[i].writable ? "rw" : "ro");
                json_add(mounts, m);
        }
        json_set(j, "mounts", mounts);
        json_set_str(j, "storage", "memory");
        json_set(j, "watch", policy_watch_json(p));
        return j;
}

int policy_canonical(const struct policy *p, char **ret, struct err *err) {
        CLEANUP(json_freep) struct json *j = NULL;
        int r = check_expanded(p, err);

        if (r < 0)
                return r;
        j = json_new_object();
        json_set_int(j, "version", 1);
        json_set_str(j, "name", p->name);
        json_set_str(j, "tier", policy_tier_name(p->tier));
        json_set_str(j, "template", p->template);
        json_set_str(j, "user", policy_user_name(p->user));
        json_set(j, "filesystem", filesystem_json(p));
        json_set(j, "network", policy_net_json(p));
        json_set(j, "limits", limits_json(&p->limits));
        json_set_str(j, "syscalls", policy_syscalls_name(p->syscalls));
        json_set(j, "monitor", policy_monitor_json(p));
        return json_text(j, false, ret, err);
}

int policy_hash(const struct policy *p, char dst[HASH_TEXT], struct err *err) {
        AUTO_FREE char *text = NULL;
        int r = policy_canonical(p, &text, err);

        if (r < 0)
                return r;
        hash_text(dst, text, strlen(text));
        return 0;
}

static const char *name_of(const char *const *names, size_t n, unsigned i) {
        return i < n ? names[i] : "?";
}

const char *policy_tier_name(enum policy_tier t) {
        return name_of(tiers, ARRAY_SIZE(tiers), t);
}

const char *policy_user_name(enum policy_user u) {
        return name_of(users, ARRAY_SIZE(users), u);
}

const char *policy_syscalls_name(enum policy_syscalls s) {
        return name_of(profiles, ARRAY_SIZE(profiles), s);
}

/* Index of text in names, or -1. */
static int index_of(const char *const *names, size_t n, const char *text) {
        for (size_t i = 0; i < n; i++)
                if (str_eq(text, names[i]))
                        return (int) i;
        return -1;
}

int policy_parse_syscalls(const char *text, enum policy_syscalls *ret, struct err *err) {
        int i = index_of(profiles, ARRAY_SIZE(profiles), text);

        if (i < 0)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "unknown syscalls profile '%.40s'; allowed: agent strict debug", text);
        *ret = (enum policy_syscalls) i;
        return 0;
}

int policy_parse_user(const char *text, enum policy_user *ret, struct err *err) {
        int i = index_of(users, ARRAY_SIZE(users), text);

        if (i < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "unknown user '%.40s'; allowed: user root", text);
        *ret = (enum policy_user) i;
        return 0;
}
