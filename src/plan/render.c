/* render.c - the plan as a document: what `gabion plan` prints and what the plan hash is taken of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "plan/plan.h"

static const char *const landlock_names[] = { "execute",    "write_file",  "read_file", "read_dir",
                                              "remove_dir", "remove_file", "make_char", "make_dir",
                                              "make_reg",   "make_sock",   "make_fifo", "make_block",
                                              "make_sym",   "refer",       "truncate",  "ioctl_dev" };

static struct json *rights(uint64_t bits) {
        struct json *a = json_new_array();

        for (size_t i = 0; i < ARRAY_SIZE(landlock_names); i++)
                if (bits >> i & 1)
                        json_add_str(a, landlock_names[i]);
        return a;
}

static struct json *render_namespaces(void) {
        static const char *const names[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" };
        struct json *a = json_new_array();

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                json_add_str(a, names[i]);
        return a;
}

static struct json *render_ids(const struct plan *p) {
        struct json *o = json_new_object();

        json_set_int(o, "uid", p->uid);
        json_set_int(o, "gid", p->gid);
        json_set_str(o, "groups", "none");
        json_set_int(o, "inside_first", 0);
        json_set_int(o, "count", PLAN_IDS);
        json_set_str(o, "host_range",
                     p->rootless ? "the caller's subordinate ids" : "own range, taken from the pool at start");
        json_set_bool(o, "host_root_mapped", false);
        return o;
}

static struct json *render_mounts(const struct plan *p) {
        static const char *const kinds[] = { "bind", "bind", "tmpfs", "devpts", "device", "own" };
        struct json *a = json_new_array();
        struct json *root = json_new_object();
        struct json *proc = json_new_object();

        json_set_str(root, "target", "/");
        json_set_str(root, "kind", "tmpfs");
        json_set_str(root, "mode", "ro");
        json_set_int(root, "bytes", (int64_t) p->tmpfs_bytes);
        json_set_int(root, "inodes", (int64_t) p->tmpfs_inodes);
        json_add(a, root);
        json_set_str(proc, "target", "/proc");
        json_set_str(proc, "kind", "proc");
        json_set_str(proc, "mode", "ro");
        json_add(a, proc);
        for (size_t i = 0; i < p->n_mounts; i++) {
                const struct plan_mount *m = &p->mounts[i];
                struct json *o = json_new_object();

                json_set_str(o, "target", m->target);
                json_set_str(o, "kind", kinds[m->kind]);
                if (m->source[0])
                        json_set_str(o, "source", m->source);
                json_set_str(o, "mode", m->writable || m->kind == PLAN_DEVPTS ? "rw" : "ro");
                if (m->kind == PLAN_OPTIONAL)
                        json_set_bool(o, "optional", true);
                json_set_str(o, "flags",
                             m->kind == PLAN_DEVICE || m->kind == PLAN_DEVPTS ? "nosuid,noexec" : "nosuid,nodev");
                json_add(a, o);
        }
        return a;
}

static struct json *render_nodes(const struct plan *p) {
        struct json *a = json_new_array();

        for (size_t i = 0; i < p->n_nodes; i++) {
                const struct plan_node *n = &p->nodes[i];
                char text[200], hash[HASH_TEXT];

                switch (n->kind) {
                case PLAN_DIR:
                        (void) snprintf(text, sizeof(text), "dir /%s %04o", n->path, n->mode);
                        break;
                case PLAN_LINK:
                        (void) snprintf(text, sizeof(text), "link /%s -> %s", n->path, n->text);
                        break;
                case PLAN_FILE:
                        if (n->text)
                                hash_text(hash, n->text, strlen(n->text));
                        else
                                (void) str_copy(hash, sizeof(hash), "made at the start");
                        (void) snprintf(text, sizeof(text), "file /%s %04o %s", n->path, n->mode, hash);
                        break;
                case PLAN_JAVA_STORE:
                        (void) snprintf(text, sizeof(text), "file /%s %04o made at the start", n->path, n->mode);
                        break;
                case PLAN_CHAR:
                        (void) snprintf(text, sizeof(text), "char /%s %u:%u %04o", n->path, n->major, n->minor,
                                        n->mode);
                        break;
                }
                json_add_str(a, text);
        }
        return a;
}

static struct json *render_limits(const struct plan *p) {
        const struct policy_limits *l = &p->policy->limits;
        struct json *o = json_new_object();
        struct json *r = json_new_object();
        bool cgroup = !(p->off & PLAN_OFF_CGROUP);

        json_set_str(o, "enforced_by", cgroup ? "cgroup" : "rlimit");
        json_set_int(o, "memory_bytes", (int64_t) l->memory_bytes);
        json_set_int(o, "swap_bytes", 0);
        json_set_real(o, "cpus", (double) l->cpu_milli / 1000);
        json_set_int(o, "pids", l->pids);
        json_set_int(o, "disk_bytes", (int64_t) l->disk_bytes);
        json_set_int(o, "disk_bytes_in_memory", (int64_t) p->tmpfs_bytes);
        json_set_int(o, "io_bytes_per_s", p->off & PLAN_OFF_IO ? 0 : (int64_t) l->io_bytes_per_s);
        json_set_int(o, "time_ms", (int64_t) l->time_ms);
        json_set_int(o, "output_bytes", (int64_t) l->output_bytes);
        for (size_t i = 0; i < p->n_rlimits; i++)
                json_set_int(r, p->rlimits[i].name, (int64_t) p->rlimits[i].value);
        json_set(o, "rlimits", r);
        return o;
}

static struct json *render_seccomp(const struct plan *p) {
        struct seccomp_program prog;
        const struct seccomp_row *rows;
        struct json *o = json_new_object();
        struct json *allowed = json_new_array();
        struct json *refused = json_new_object();
        size_t n;

        seccomp_program(p->profile, &prog);
        rows = seccomp_rows(p->profile, &n);
        json_set_str(o, "profile", policy_syscalls_name(p->policy->syscalls));
        json_set_str(o, "hash", prog.hash);
        json_set_int(o, "instructions", prog.n);
        for (size_t i = 0; i < n; i++) {
                if (strcmp(rows[i].answer, "allow") == 0 || strncmp(rows[i].answer, "rule:", 5) == 0)
                        json_add_str(allowed, rows[i].name);
                else
                        json_set_str(refused, rows[i].name, rows[i].answer);
        }
        json_set(o, "allowed", allowed);
        json_set(o, "refused", refused);
        json_set_str(o, "every_other_call", "ENOSYS");
        return o;
}

static struct json *render_landlock(const struct plan *p) {
        const struct {
                const char *path;
                uint64_t bits;
        } fixed[] = { { "/", p->landlock_root },
                      { "/proc", p->landlock_proc },
                      { "/etc", p->landlock_etc },
                      { "/dev", p->landlock_dev } };
        struct json *o = json_new_object();
        struct json *rules = json_new_object();
        struct json *scopes = json_new_array();

        json_set_int(o, "abi", p->landlock_abi);
        json_set(o, "handled", rights(p->landlock_fs));
        if (p->landlock_scoped) {
                json_add_str(scopes, "abstract_unix_socket");
                json_add_str(scopes, "signal");
        }
        json_set(o, "scopes", scopes);
        for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
                json_set(rules, fixed[i].path, rights(fixed[i].bits));
        for (size_t i = 0; i < p->n_mounts; i++)
                if (p->mounts[i].landlock)
                        json_set(rules, p->mounts[i].target, rights(p->mounts[i].landlock));
        json_set(o, "rules", rules);
        return o;
}

/* A proxy's password is nobody's business. */
static void set_proxy(struct json *o, const char *url) {
        const char *at = url ? strrchr(url, '@') : NULL, *host = url ? strstr(url, "://") : NULL;
        char text[256];

        if (at && host) {
                (void) snprintf(text, sizeof(text), "%.*s...%.200s", (int) (host + 3 - url), url, at);
                url = text;
        }
        json_set_str(o, "upstream_proxy", url);
}

static struct json *render_network(const struct plan *p) {
        struct json *o = json_new_object();
        const struct plan_way_out *w = &p->way_out;

        json_set(o, "policy", policy_net_json(p->policy));
        if (w->ceiling)
                json_set(o, "ceiling", policy_net_json(w->ceiling));
        else
                json_set_str(o, "ceiling", NULL);
        json_set_bool(o, "opens_tls", policy_net_opens_tls(p->policy, w->ceiling));
        set_proxy(o, w->upstream_proxy);
        json_set_str(o, "bind", w->bind);
        json_set_str(o, "ca_bundle", w->ca_bundle);
        json_set(o, "namespace", plan_net_json(p->net));
        return o;
}

int plan_json(const struct plan *p, struct json **ret, struct err *err) {
        struct json *o = json_new_object();
        struct json *list;
        char hash[HASH_TEXT];
        int r = policy_hash(p->policy, hash, err);

        if (r < 0) {
                json_free(o);
                return r;
        }
        json_set_str(o, "tier", policy_tier_name(p->policy->tier));
        json_set_str(o, "template", p->policy->template);
        json_set_str(o, "policy", hash);
        json_set_str(o, "hostname", p->hostname);
        json_set_bool(o, "rootless", p->rootless);
        json_set(o, "namespaces", render_namespaces());
        json_set(o, "ids", render_ids(p));
        json_set(o, "mounts", render_mounts(p));
        json_set(o, "nodes", render_nodes(p));
        list = json_new_array();
        for (size_t i = 0; i < p->n_masks; i++)
                json_add_str(list, p->masks[i]);
        json_set(o, "proc_masks", list);
        json_set(o, "limits", render_limits(p));
        json_set_str(o, "capabilities", "none (all five sets empty)");
        json_set_str(o, "securebits", "0xef");
        json_set_bool(o, "no_new_privs", true);
        json_set(o, "seccomp", render_seccomp(p));
        json_set(o, "landlock", render_landlock(p));
        if (p->net)
                json_set(o, "network", render_network(p));
        else
                json_set_str(o, "network", "none: loopback only");
        list = json_new_array();
        for (size_t i = 0; i < p->n_deviations; i++)
                json_add_str(list, p->deviations[i]);
        json_set(o, "deviations", list);
        *ret = o;
        return 0;
}

int plan_hash(const struct plan *p, char dst[HASH_TEXT], struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        int r;

        if (p->hash[0]) {
                (void) memmove(dst, p->hash, HASH_TEXT);
                return 0;
        }
        r = plan_json(p, &doc, err);
        if (r == 0)
                r = json_text(doc, false, &text, err);
        if (r < 0 || !text)
                return r;
        hash_text(dst, text, strlen(text));
        return 0;
}
