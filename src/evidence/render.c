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

static void put_hex(struct json_emit *e, const char *key, uint64_t v) {
        char text[24];

        (void) snprintf(text, sizeof(text), "%016llx", (unsigned long long) v);
        json_emit_str(e, key, text);
}

static void put_status(struct json_emit *e, const char *key, const struct evidence_status *s) {
        json_emit_object(e, key);
        put_hex(e, "CapAmb", s->ambient);
        put_hex(e, "CapBnd", s->bounding);
        put_hex(e, "CapEff", s->effective);
        put_hex(e, "CapInh", s->inheritable);
        put_hex(e, "CapPrm", s->permitted);
        json_emit_int(e, "NoNewPrivs", (int64_t) s->no_new_privs);
        json_emit_int(e, "Seccomp", (int64_t) s->seccomp);
        json_emit_int(e, "Seccomp_filters", (int64_t) s->seccomp_filters);
        json_emit_int(e, "gid", (int64_t) s->gid[1]);
        json_emit_bool(e, "supplementary_groups", s->has_groups);
        json_emit_int(e, "uid", (int64_t) s->uid[1]);
        json_emit_close(e, '}');
}

static void put_namespaces(struct json_emit *e, const struct evidence *ev) {
        static const struct {
                const char *name;
                size_t at;
        } sorted[EVIDENCE_NS] = { { "cgroup", 6 }, { "ipc", 4 },  { "mnt", 2 },  { "net", 3 },
                                  { "pid", 1 },    { "time", 7 }, { "user", 0 }, { "uts", 5 } };

        json_emit_object(e, "namespaces");
        for (size_t i = 0; i < EVIDENCE_NS; i++) {
                json_emit_object(e, sorted[i].name);
                json_emit_str(e, "host", ev->host_ns[sorted[i].at]);
                json_emit_str(e, "sandbox", ev->ns[sorted[i].at]);
                json_emit_close(e, '}');
        }
        json_emit_close(e, '}');
}

static void put_mounts(struct json_emit *e, const struct evidence *ev) {
        json_emit_array(e, "mounts");
        for (size_t i = 0; i < ev->n_mounts; i++) {
                json_emit_object(e, NULL);
                json_emit_text(e, "options", ev->mounts[i].options);
                json_emit_text(e, "root", ev->mounts[i].root);
                json_emit_text(e, "target", ev->mounts[i].target);
                json_emit_text(e, "type", ev->mounts[i].fstype);
                json_emit_close(e, '}');
        }
        json_emit_close(e, ']');
}

static void put_landlock(struct json_emit *e, const struct plan *plan, const struct evidence *ev) {
        json_emit_object(e, "landlock");
        json_emit_int(e, "abi", plan->landlock_abi);
        if (plan->landlock_abi > 0) {
                put_hex(e, "handled_access_fs", plan->landlock_fs);
                if (plan->landlock_scoped)
                        json_emit_str(e, "probe_abstract_socket", ev->scope_errno == EPERM ? "EPERM" : "not refused");
                json_emit_str(e, "probe_outside_rules", ev->landlock_errno == EACCES ? "EACCES" : "not refused");
                put_hex(e, "scoped", plan->landlock_scoped);
        }
        json_emit_close(e, '}');
}

static void put_seccomp(struct json_emit *e, const struct plan *plan, const struct evidence *ev) {
        struct seccomp_program prog;

        seccomp_program(plan->profile, &prog);
        json_emit_object(e, "seccomp");
        json_emit_str(e, "hash_planned", prog.hash);
        json_emit_text(e, "hash_read_back", ev->filter_hash[0] ? ev->filter_hash : NULL);
        if (!ev->filter_hash[0])
                json_emit_text(e, "hash_unavailable", ev->filter_note);
        json_emit_int(e, "instructions", prog.n);
        json_emit_str(e, "profile", policy_syscalls_name(plan->policy->syscalls));
        json_emit_close(e, '}');
}

static int put_limits(struct json_emit *e, const struct plan *plan, const struct sandbox *sb, const struct evidence *ev,
                      struct err *err) {
        struct json *rlimits = json_new_object();
        int r = 0;

        json_emit_object(e, "limits");
        if (sb->has_cgroup)
                r = cgroup_describe(&sb->cgroup, e, "cgroup", err);
        json_emit_int(e, "disk_bytes", (int64_t) ev->disk_bytes);
        json_emit_int(e, "oom_score_adj", ev->oom_score);
        json_emit_int(e, "output_bytes", (int64_t) plan->policy->limits.output_bytes);
        for (size_t i = 0; i < plan->n_rlimits; i++)
                json_set_int(rlimits, plan->rlimits[i].name, (int64_t) plan->rlimits[i].value);
        json_emit_tree(e, "rlimits", rlimits);
        json_emit_int(e, "time_ms", (int64_t) plan->policy->limits.time_ms);
        json_emit_close(e, '}');
        return r;
}

static void put_deviations(struct json_emit *e, const struct plan *plan) {
        json_emit_array(e, "deviations");
        for (size_t i = 0; i < plan->n_deviations; i++)
                json_emit_text(e, NULL, plan->deviations[i]);
        json_emit_close(e, ']');
}

static void put_rest(struct json_emit *e, const struct plan *plan, const struct sandbox *sb, const struct evidence *ev,
                     const char *plan_hash, const char *policy_hash) {
        char now[CLOCK_TEXT];

        clock_rfc3339(now);
        put_mounts(e, ev);
        put_namespaces(e, ev);
        put_network(e, plan, sb, ev);
        json_emit_int(e, "open_descriptors", ev->n_open);
        json_emit_str(e, "plan", plan_hash);
        json_emit_str(e, "policy", policy_hash);
        json_emit_bool(e, "rootless", plan->rootless);
        json_emit_str(e, "sandbox", sb->id);
        put_seccomp(e, plan, ev);
        json_emit_int(e, "securebits", ev->securebits);
        json_emit_str(e, "tier", "ns");
        json_emit_str(e, "time", now);
        json_emit_text(e, "time_offsets", ev->time_offsets);
        json_emit_str(e, "type", "gabion.evidence/v1");
        json_emit_text(e, "uid_map", ev->uid_map);
}

int evidence_text(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev, struct buf *into,
                  struct err *err) {
        char of_plan[HASH_TEXT], of_policy[HASH_TEXT];
        struct json_emit e = { .to = into };
        struct utsname uts;
        int r = ev->plan[0] ? str_copy(of_plan, sizeof(of_plan), ev->plan) : plan_hash(plan, of_plan, err);

        if (r == 0)
                r = ev->policy[0] ? str_copy(of_policy, sizeof(of_policy), ev->policy)
                                  : policy_hash(plan->policy, of_policy, err);
        if (r < 0)
                return r;
        (void) uname(&uts);
        json_emit_object(&e, NULL);
        put_status(&e, "agent", &ev->agent);
        put_status(&e, "command_seen_from_host", &ev->outside);
        put_status(&e, "command_seen_from_inside", &ev->inside);
        put_deviations(&e, plan);
        json_emit_text(&e, "gid_map", ev->gid_map);
        json_emit_int(&e, "host_uid", (int64_t) sandbox_real_uid(ev->outside.uid[1]));
        json_emit_str(&e, "kernel", uts.release);
        put_landlock(&e, plan, ev);
        r = put_limits(&e, plan, sb, ev, err);
        json_emit_str(&e, "lsm_label", "none");
        json_emit_str(&e, "machine", uts.machine);
        put_rest(&e, plan, sb, ev, of_plan, of_policy);
        json_emit_close(&e, '}');
        return r < 0 || !into->bad ? r : err_set(err, -EOVERFLOW, ERR_INTERNAL, "evidence: it is too long");
}

void evidence_brief(const struct evidence *ev, struct buf *into) {
        struct json_emit e = { .to = into };

        json_emit_object(&e, NULL);
        put_namespaces(&e, ev);
        json_emit_close(&e, '}');
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
