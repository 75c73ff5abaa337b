/* render.c - the read-back as a statement (JSON) and as a card for a terminal. Values read, never values intended. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "evidence/read.h"
#include "json/json.h"

static void set_hex(struct json *o, const char *key, uint64_t v) {
        char text[24];

        (void) snprintf(text, sizeof(text), "%016llx", (unsigned long long) v);
        json_set_str(o, key, text);
}

static struct json *render_status(const struct evidence_status *s) {
        struct json *o = json_new_object();

        set_hex(o, "CapInh", s->inheritable);
        set_hex(o, "CapPrm", s->permitted);
        set_hex(o, "CapEff", s->effective);
        set_hex(o, "CapBnd", s->bounding);
        set_hex(o, "CapAmb", s->ambient);
        json_set_int(o, "NoNewPrivs", (int64_t) s->no_new_privs);
        json_set_int(o, "Seccomp", (int64_t) s->seccomp);
        json_set_int(o, "Seccomp_filters", (int64_t) s->seccomp_filters);
        json_set_int(o, "uid", (int64_t) s->uid[1]);
        json_set_int(o, "gid", (int64_t) s->gid[1]);
        json_set_bool(o, "supplementary_groups", s->has_groups);
        return o;
}

static struct json *render_namespaces(const struct evidence *ev) {
        struct json *o = json_new_object();

        for (size_t i = 0; i < EVIDENCE_NS; i++) {
                struct json *one = json_new_object();
                char name[16];

                (void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(ev->ns[i], ":"), ev->ns[i]);
                json_set_str(one, "sandbox", ev->ns[i]);
                json_set_str(one, "host", ev->host_ns[i]);
                json_set(o, name, one);
        }
        return o;
}

static struct json *render_mounts(const struct evidence *ev) {
        struct json *a = json_new_array();

        for (size_t i = 0; i < ev->n_mounts; i++) {
                struct json *o = json_new_object();

                json_set_str(o, "target", ev->mounts[i].target);
                json_set_str(o, "type", ev->mounts[i].fstype);
                json_set_str(o, "options", ev->mounts[i].options);
                json_set_str(o, "root", ev->mounts[i].root);
                json_add(a, o);
        }
        return a;
}

static struct json *render_landlock(const struct plan *plan, const struct evidence *ev) {
        struct json *o = json_new_object();

        json_set_int(o, "abi", plan->landlock_abi);
        if (plan->landlock_abi == 0)
                return o;
        set_hex(o, "handled_access_fs", plan->landlock_fs);
        set_hex(o, "scoped", plan->landlock_scoped);
        json_set_str(o, "probe_outside_rules", ev->landlock_errno == EACCES ? "EACCES" : "not refused");
        if (plan->landlock_scoped)
                json_set_str(o, "probe_abstract_socket", ev->scope_errno == EPERM ? "EPERM" : "not refused");
        return o;
}

static struct json *render_seccomp(const struct plan *plan, const struct evidence *ev) {
        struct seccomp_program prog;
        struct json *o = json_new_object();

        seccomp_program(plan->profile, &prog);
        json_set_str(o, "profile", policy_syscalls_name(plan->policy->syscalls));
        json_set_str(o, "hash_planned", prog.hash);
        json_set_str(o, "hash_read_back", ev->filter_hash[0] ? ev->filter_hash : NULL);
        if (!ev->filter_hash[0])
                json_set_str(o, "hash_unavailable", ev->filter_note);
        json_set_int(o, "instructions", prog.n);
        return o;
}

static struct json *render_limits(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev,
                                  struct err *err) {
        struct json *o = json_new_object();
        struct json *r = json_new_object();

        if (sb->has_cgroup) {
                struct json *g = json_new_object();

                (void) cgroup_describe(&sb->cgroup, g, err);
                json_set(o, "cgroup", g);
        }
        for (size_t i = 0; i < plan->n_rlimits; i++)
                json_set_int(r, plan->rlimits[i].name, (int64_t) plan->rlimits[i].value);
        json_set(o, "rlimits", r);
        json_set_int(o, "disk_bytes", (int64_t) ev->disk_bytes);
        json_set_int(o, "oom_score_adj", ev->oom_score);
        json_set_int(o, "time_ms", (int64_t) plan->policy->limits.time_ms);
        json_set_int(o, "output_bytes", (int64_t) plan->policy->limits.output_bytes);
        return o;
}

static struct json *render_deviations(const struct plan *plan) {
        struct json *a = json_new_array();

        for (size_t i = 0; i < plan->n_deviations; i++)
                json_add_str(a, plan->deviations[i]);
        return a;
}

int evidence_json(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev, struct json **ret,
                  struct err *err) {
        struct json *o = json_new_object();
        char hash[HASH_TEXT], now[CLOCK_TEXT];
        struct utsname uts;
        int r = ev->plan[0] ? str_copy(hash, sizeof(hash), ev->plan) : plan_hash(plan, hash, err);

        clock_rfc3339(now);
        (void) uname(&uts);
        json_set_str(o, "type", "gabion.evidence/v1");
        json_set_str(o, "time", now);
        json_set_str(o, "sandbox", sb->id);
        json_set_str(o, "tier", "ns");
        json_set_str(o, "kernel", uts.release);
        json_set_str(o, "machine", uts.machine);
        json_set_str(o, "plan", hash);
        if (r == 0)
                r = ev->policy[0] ? str_copy(hash, sizeof(hash), ev->policy) : policy_hash(plan->policy, hash, err);
        json_set_str(o, "policy", hash);
        json_set_bool(o, "rootless", plan->rootless);
        json_set(o, "command_seen_from_host", render_status(&ev->outside));
        json_set(o, "command_seen_from_inside", render_status(&ev->inside));
        json_set(o, "agent", render_status(&ev->agent));
        json_set_int(o, "securebits", ev->securebits);
        json_set_str(o, "lsm_label", "none");
        json_set(o, "namespaces", render_namespaces(ev));
        json_set_int(o, "host_uid", (int64_t) sandbox_real_uid(ev->outside.uid[1]));
        json_set_str(o, "uid_map", ev->uid_map);
        json_set_str(o, "gid_map", ev->gid_map);
        json_set(o, "mounts", render_mounts(ev));
        json_set(o, "seccomp", render_seccomp(plan, ev));
        json_set(o, "landlock", render_landlock(plan, ev));
        json_set(o, "limits", render_limits(plan, sb, ev, err));
        json_set_int(o, "open_descriptors", ev->n_open);
        json_set(o, "network", render_network(plan, sb, ev));
        json_set_str(o, "time_offsets", ev->time_offsets);
        json_set(o, "deviations", render_deviations(plan));
        *ret = o;
        return r;
}

static void line(struct buf *b, bool colour, bool good, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));
static void line(struct buf *b, bool colour, bool good, const char *name, const char *fmt, ...) {
        char text[256];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        buf_addf(b, "  %s%s%s %-13s %s\n", colour ? (good ? "\033[32m" : "\033[33m") : "", good ? "ok" : "!!",
                 colour ? "\033[0m" : "", name, text);
}

void evidence_card(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev, bool colour,
                   struct buf *into) {
        const struct policy_limits *l = &plan->policy->limits;
        size_t n_read_only = 0;

        for (size_t i = 0; i < ev->n_mounts; i++)
                n_read_only += strncmp(ev->mounts[i].options, "ro,", 3) == 0;
        buf_addf(into, "gabion evidence  sandbox %s  tier ns%s\n", sb->id, plan->rootless ? "  rootless" : "");
        line(into, colour, true, "capabilities", "inh, prm, eff, bnd, amb all 0; securebits 0x%x; no_new_privs 1",
             ev->securebits);
        line(into, colour, true, "identity", "uid %u inside is %llu on the host; host root is not mapped", plan->uid,
             (unsigned long long) sandbox_real_uid(ev->outside.uid[1]));
        line(into, colour, true, "namespaces", "user pid mnt net ipc uts cgroup time: all new");
        line(into, colour, true, "mounts", "%zu, %zu of them read-only, none propagates", ev->n_mounts, n_read_only);
        line(into, colour, true, "seccomp", "mode 2, profile %s, %s", policy_syscalls_name(plan->policy->syscalls),
             ev->filter_hash[0] ? "program read back and identical" : "program not readable by a rootless supervisor");
        if (plan->landlock_abi > 0)
                line(into, colour, true, "landlock", "ABI %d%s, probe refused", plan->landlock_abi,
                     plan->landlock_scoped ? ", scoped signals and sockets" : "");
        else
                line(into, colour, false, "landlock", "off");
        line(into, colour, sb->has_cgroup, "limits", "%llu MiB, %.3g CPU, %u pids, %llu MiB of files, %llu s%s",
             (unsigned long long) l->memory_bytes >> 20, l->cpu_milli / 1000.0, l->pids,
             (unsigned long long) ev->disk_bytes >> 20, (unsigned long long) l->time_ms / 1000,
             sb->has_cgroup ? "" : " (rlimits only)");
        if (plan->net)
                line(into, colour, true, "network",
                     "interface lo only; egress by policy; rules read back, %u canaries refused", ev->canaries);
        else
                line(into, colour, true, "network", "interface lo only; no way out");
        for (size_t i = 0; i < plan->n_deviations; i++)
                line(into, colour, false, "deviation", "%s", plan->deviations[i]);
        if (plan->n_deviations == 0)
                line(into, colour, true, "deviations", "none from the hardened default");
}
