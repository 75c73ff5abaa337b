/*
 * plan.c - from policy and facts to a plan. Pure: no system call, no allocation; the result is one value.
 *
 * The cold start compiles a plan for every run, so everything that does not depend on the policy is a constant table.
 */
#include "plan/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/net.h"

enum { /* Landlock's file rights; the number is the bit */
       LL_EXECUTE = 0,
       LL_WRITE_FILE = 1,
       LL_READ_FILE = 2,
       LL_READ_DIR = 3,
       LL_MAKE_CHAR = 6,
       LL_MAKE_BLOCK = 11,
       LL_IOCTL_DEV = 15,
};
#define LL(x) (1ull << LL_##x)
#define LL_LOOK (LL(READ_FILE) | LL(READ_DIR))
#define LL_RUN (LL_LOOK | LL(EXECUTE))

#define OWN_BUNDLE ".gabion/certificates"

static const struct plan_node skeleton[] = {
        { PLAN_DIR, "usr", NULL, 0755, 0, 0 },
        { PLAN_DIR, "etc", NULL, 0755, 0, 0 },
        { PLAN_DIR, "etc/ssl", NULL, 0755, 0, 0 },
        { PLAN_DIR, "etc/ssl/certs", NULL, 0755, 0, 0 },
        { PLAN_DIR, "etc/alternatives", NULL, 0755, 0, 0 },
        { PLAN_FILE, "etc/ld.so.cache", "", 0644, 0, 0 },
        { PLAN_DIR, "proc", NULL, 0755, 0, 0 },
        { PLAN_DIR, "dev", NULL, 0755, 0, 0 },
        { PLAN_DIR, "dev/pts", NULL, 0755, 0, 0 },
        { PLAN_DIR, "home", NULL, 0755, 0, 0 },
        { PLAN_DIR, "var", NULL, 0755, 0, 0 },
        { PLAN_LINK, "var/tmp", "/tmp", 0, 0, 0 },
        { PLAN_LINK, "var/run", "/run", 0, 0, 0 },
        { PLAN_LINK, "etc/mtab", "/proc/self/mounts", 0, 0, 0 },
        { PLAN_LINK, "dev/fd", "/proc/self/fd", 0, 0, 0 },
        { PLAN_LINK, "dev/stdin", "/proc/self/fd/0", 0, 0, 0 },
        { PLAN_LINK, "dev/stdout", "/proc/self/fd/1", 0, 0, 0 },
        { PLAN_LINK, "dev/stderr", "/proc/self/fd/2", 0, 0, 0 },
        { PLAN_LINK, "dev/ptmx", "pts/ptmx", 0, 0, 0 },
        { PLAN_FILE, "etc/passwd",
          "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"
          "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
          0644, 0, 0 },
        { PLAN_FILE, "etc/group", "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n", 0644, 0, 0 },
        { PLAN_FILE, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0644, 0, 0 },
        { PLAN_DIR, ".gabion", NULL, 0755, 0, 0 },
        /* Readable by everybody as files go, and covered by no Landlock rule: the read-back tries to open it. */
        { PLAN_FILE, ".gabion/probe", "", 0444, 0, 0 },
        /* What is mounted over parts of /proc. */
        { PLAN_FILE, ".gabion/mask", "", 0, 0, 0 },
        { PLAN_DIR, ".gabion/mask.d", NULL, 0, 0, 0 },
        /* The host's boot id would tell tenants that they share a machine. */
        { PLAN_FILE, ".gabion/boot_id", "00000000-0000-4000-8000-000000000000\n", 0444, 0, 0 },
};

/* Any address that is not loopback will do: egress answers for all of them. */
static const struct plan_node resolver = {
        PLAN_FILE, "etc/resolv.conf", "nameserver " PLAN_NET_NAMESERVER "\n", 0644, 0, 0
};
/* Nobody answers there: names fail at once instead of after the resolver's own default. */
static const struct plan_node no_resolver = {
        PLAN_FILE, "etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", 0644, 0, 0
};

static const struct plan_node devices[] = {
        { PLAN_CHAR, "/dev/null", NULL, 0666, 1, 3 },    { PLAN_CHAR, "/dev/zero", NULL, 0666, 1, 5 },
        { PLAN_CHAR, "/dev/full", NULL, 0666, 1, 7 },    { PLAN_CHAR, "/dev/random", NULL, 0666, 1, 8 },
        { PLAN_CHAR, "/dev/urandom", NULL, 0666, 1, 9 }, { PLAN_CHAR, "/dev/tty", NULL, 0666, 5, 0 },
};

/* World-readable files of procfs that speak of the host rather than of the sandbox. Files that only the host's root
 * may open (kcore, kmsg, slabinfo, timer_list, ...) need no mask: no id of the sandbox is that root.
 */
static const char *const masks[] = {
        "keys",      "key-users", "kallsyms", "modules",   "config.gz",  "cmdline",    "interrupts",
        "softirqs",  "diskstats", "zoneinfo", "buddyinfo", "partitions", "swaps",      "cgroups",
        "schedstat", "bus/",      "fs/",      "irq/",      "pressure/",  PLAN_BOOT_ID,
};

static void deviate(struct plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void deviate(struct plan *p, const char *fmt, ...) {
        va_list ap;

        if (p->n_deviations == PLAN_DEVIATIONS)
                return;
        va_start(ap, fmt);
        (void) vsnprintf(p->deviations[p->n_deviations], sizeof(p->deviations[0]), fmt, ap);
        va_end(ap);
        p->n_deviations++;
}

uint64_t plan_landlock_rights(int abi) {
        static const unsigned char bits[] = { 0, 13, 14, 15, 15, 16 };

        if (abi >= (int) sizeof(bits))
                return (1ull << 16) - 1;
        return abi > 0 ? (1ull << bits[abi]) - 1 : 0;
}

static void node_add(struct plan *p, const struct plan_node *n) {
        p->nodes[p->n_nodes++] = *n;
}

static int mount_add(struct plan *p, const struct plan_mount *m, struct err *err) {
        if (p->n_mounts == PLAN_MOUNTS)
                return err_set(err, -E2BIG, ERR_LIMIT, "filesystem.mounts: at most %d", POLICY_MOUNTS);
        p->mounts[p->n_mounts++] = *m;
        return 0;
}

static int mount_own(struct plan *p, enum plan_mount_kind kind, const char *source, const char *target, uint64_t rights,
                     struct err *err) {
        bool own = kind == PLAN_WRITABLE;

        return mount_add(p, &(struct plan_mount){ kind, source, target, own, own, rights, -1 }, err);
}

/* The host template: the host's programs, read-only; public configuration; nothing of its accounts, keys or names. */
static int template_host(struct plan *p, const struct plan_request *req, const struct plan_facts *facts,
                         struct err *err) {
        static const char *const public_etc[] = {
                "/etc/ssl/certs",       "/etc/alternatives",    "/etc/ld.so.cache",
                "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-11-openjdk",
        };
        static const char *const writable[] = { "/tmp", "/run", "/dev/shm" };
        int r;

        r = mount_own(p, PLAN_BIND, "/usr", "/usr", LL_RUN, err);
        for (size_t i = 0; r == 0 && facts->usr_dirs[i]; i++) {
                node_add(p, &(struct plan_node){ PLAN_DIR, facts->usr_dirs[i] + 1, NULL, 0755, 0, 0 });
                r = mount_own(p, PLAN_BIND, facts->usr_dirs[i], facts->usr_dirs[i], LL_RUN, err);
        }
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(public_etc); i++)
                r = mount_own(p, PLAN_OPTIONAL, public_etc[i], public_etc[i], 0, err);
        if (r == 0 && p->own_certificates)
                r = mount_own(p, PLAN_OWN, OWN_BUNDLE, PLAN_BUNDLE, 0, err);
        p->java_looks_there = p->own_certificates && facts->has_java_bundle;
        if (r == 0 && p->java_looks_there)
                r = mount_own(p, PLAN_OWN, PLAN_JAVA, PLAN_JAVA_BUNDLE, 0, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(writable); i++)
                r = mount_own(p, PLAN_WRITABLE, "", writable[i], plan_landlock_rights(p->landlock_abi), err);
        if (r == 0)
                r = mount_own(p, PLAN_WRITABLE, "", p->home, plan_landlock_rights(p->landlock_abi), err);
        if (r == 0 && req->many_users && p->uid != 0)
                r = mount_add(p, &(struct plan_mount){ PLAN_WRITABLE, "", "/root", true, false, 0, -1 }, err);
        if (r == 0)
                r = mount_own(p, PLAN_DEVPTS, "", "/dev/pts", 0, err);
        for (size_t i = 0; r == 0 && facts->rootless && i < ARRAY_SIZE(devices); i++)
                r = mount_own(p, PLAN_DEVICE, devices[i].path, devices[i].path, 0, err);
        return r;
}

static void nodes_fill(struct plan *p, const struct plan_facts *facts) {
        static const struct {
                const char *name, *to;
        } links[] = {
                { "/bin", "usr/bin" },     { "/sbin", "usr/sbin" },   { "/lib", "usr/lib" },
                { "/lib32", "usr/lib32" }, { "/lib64", "usr/lib64" }, { "/libx32", "usr/libx32" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(skeleton); i++)
                node_add(p, &skeleton[i]);
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                struct plan_node n = devices[i];

                n.path++;              /* nodes are relative to the root */
                if (facts->rootless) { /* an ordinary user cannot make device nodes: a file to mount the host's on */
                        n.kind = PLAN_FILE;
                        n.text = "";
                }
                node_add(p, &n);
        }
        for (size_t i = 0; facts->usr_links[i]; i++)
                for (size_t k = 0; k < ARRAY_SIZE(links); k++)
                        if (str_eq(facts->usr_links[i], links[k].name))
                                node_add(p, &(struct plan_node){ PLAN_LINK, links[k].name + 1, links[k].to, 0, 0, 0 });
        node_add(p, p->net ? &resolver : &no_resolver);
        if (p->own_certificates) {
                node_add(p, &(struct plan_node){ PLAN_FILE, OWN_BUNDLE, NULL, 0444, 0, 0 });
                node_add(p, &(struct plan_node){ PLAN_JAVA_STORE, PLAN_JAVA, NULL, 0444, 0, 0 });
        }
        node_add(p, &(struct plan_node){ PLAN_FILE, "etc/hosts", p->etc_hosts, 0644, 0, 0 });
        node_add(p, &(struct plan_node){ PLAN_FILE, "etc/hostname", p->etc_hostname, 0644, 0, 0 });
        memcpy(p->masks, masks, sizeof(masks));
        p->n_masks = ARRAY_SIZE(masks);
}

static void limits_fill(struct plan *p) {
        const struct policy_limits *l = &p->policy->limits;
        const struct plan_rlimit always[] = {
                { "nofile", RLIMIT_NOFILE, l->files },
                { "core", RLIMIT_CORE, 0 },
                { "memlock", RLIMIT_MEMLOCK, 65536 },
                { "fsize", RLIMIT_FSIZE, l->disk_bytes },
                { "msgqueue", RLIMIT_MSGQUEUE, 0 },
                { "rtprio", RLIMIT_RTPRIO, 0 },
                { "nice", RLIMIT_NICE, 0 },
                { "sigpending", RLIMIT_SIGPENDING, 1024 },
        };
        const struct plan_rlimit instead_of_cgroup[] = {
                { "as", RLIMIT_AS, l->memory_bytes },
                { "nproc", RLIMIT_NPROC, l->pids },
                { "cpu", RLIMIT_CPU, l->time_ms / 1000 + 1 },
        };
        /* Files are kept in memory and charged to the memory limit: a full disk must be seen as ENOSPC before the
         * OOM killer sees it (docs/decisions/004). */
        uint64_t room = l->memory_bytes - l->memory_bytes / 8;

        p->tmpfs_bytes = (l->disk_bytes < room ? l->disk_bytes : room) & ~4095ull;
        p->tmpfs_inodes = p->tmpfs_bytes / 4096 < 262144 ? p->tmpfs_bytes / 4096 : 262144;
        for (size_t i = 0; i < ARRAY_SIZE(always); i++)
                p->rlimits[p->n_rlimits++] = always[i];
        for (size_t i = 0; (p->off & PLAN_OFF_CGROUP) && i < ARRAY_SIZE(instead_of_cgroup); i++)
                p->rlimits[p->n_rlimits++] = instead_of_cgroup[i];
}

static void landlock_fill(struct plan *p) {
        uint64_t all = plan_landlock_rights(p->landlock_abi);

        p->landlock_fs = all;
        p->landlock_scoped = p->landlock_abi >= 6 ? 3 : 0; /* abstract sockets, signals */
        p->landlock_root = LL(READ_DIR) & all;
        p->landlock_proc = LL_LOOK & all;
        p->landlock_etc = LL_LOOK & all;
        p->landlock_dev = (LL_LOOK | LL(WRITE_FILE) | LL(IOCTL_DEV)) & all;
        for (size_t i = 0; i < p->n_mounts; i++) {
                struct plan_mount *m = &p->mounts[i];

                if (m->writable)
                        m->landlock = all & ~(LL(MAKE_CHAR) | LL(MAKE_BLOCK) | LL(IOCTL_DEV));
                else
                        m->landlock &= all;
        }
}

static void network_deviations(struct plan *p) {
        if (!p->net)
                return;
        if (policy_net_is_public(p->policy))
                deviate(p, "network: public; whatever is not denied can be reached");
        for (size_t i = 0; i < p->way_out.n_resolve; i++) {
                const struct policy_resolve *q = &p->way_out.resolve[i];
                char to[ADDR_TEXT];

                addr_text(&q->address, to);
                deviate(p, "network: %.64s:%u leads to %s port %u (--resolve)", q->name, q->port, to, q->to_port);
        }
}

static void deviations_fill(struct plan *p, const struct plan_request *req, const struct plan_facts *facts) {
        const struct policy *o = p->policy;

        if (o->syscalls == POLICY_SYSCALLS_DEBUG)
                deviate(p, "syscalls: profile debug allows ptrace and reading other processes' memory");
        if (o->user == POLICY_USER_ROOT)
                deviate(p, "user: the command is uid 0 inside (its capability sets are empty all the same)");
        if (p->off & PLAN_OFF_CGROUP)
                deviate(p,
                        "limits: no control group; memory, processes and CPU are bounded per process by rlimits only");
        if (p->off & PLAN_OFF_LANDLOCK)
                deviate(p, "landlock: off");
        if ((p->off & PLAN_OFF_IO) || o->limits.io_bytes_per_s == 0)
                deviate(p, "limits.io: off");
        if (facts->rootless && o->n_mounts > 0)
                deviate(p, "rootless: the sandbox's user is the caller's own uid %u, so that mounts can be used",
                        facts->caller_uid);
        network_deviations(p);
        for (size_t i = 0; i < o->n_mounts; i++) {
                const struct policy_mount *m = &o->mounts[i];

                if (req->sensitive_mounts && plan_mount_refused(m->source, req->home))
                        deviate(p, "mount %.60s: %s (overridden)", m->target, plan_mount_refused(m->source, req->home));
                if (m->writable && facts->caller_uid == 0)
                        deviate(p, "mount %.60s: writable and caller is root: its files belong to root", m->target);
        }
}

static int mounts_of_policy(struct plan *p, struct err *err) {
        for (size_t i = 0; i < p->policy->n_mounts; i++) {
                const struct policy_mount *from = &p->policy->mounts[i];
                struct plan_mount m = { PLAN_BIND, from->source, from->target, from->writable, true, LL_RUN, -1 };
                int r = mount_add(p, &m, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int network_fill(struct plan *p, const struct plan_request *req, const struct plan_facts *facts,
                        struct err *err) {
        if (!policy_net_any(p->policy))
                return 0;
        p->net = plan_net();
        p->way_out = req->way_out;
        p->own_certificates = req->way_out.ca_bundle || policy_net_opens_tls(p->policy, req->way_out.ceiling);
        if (p->own_certificates && !facts->has_bundle)
                return err_set(err, -ENOENT, ERR_INVALID,
                               "network: methods and paths need certificates; apt-get install ca-certificates");
        return 0;
}

int plan_compile(const struct policy *policy, const struct plan_request *req, const struct plan_facts *facts,
                 struct plan *ret, struct err *err) {
        static const enum seccomp_profile profiles[] = {
                [POLICY_SYSCALLS_AGENT] = SECCOMP_AGENT,
                [POLICY_SYSCALLS_STRICT] = SECCOMP_STRICT,
                [POLICY_SYSCALLS_DEBUG] = SECCOMP_DEBUG,
        };
        const char *host = req->hostname ? req->hostname : "gabion";
        int r;

        memset(ret, 0, offsetof(struct plan, deviations));
        if (policy->tier != POLICY_TIER_NS)
                return err_set(err, -EOPNOTSUPP, ERR_DENIED, "tier: %s is not available in this build; use ns",
                               policy_tier_name(policy->tier));
        if (facts->landlock_abi == 0 && !(req->off & PLAN_OFF_LANDLOCK))
                return err_set(err, -EOPNOTSUPP, ERR_DENIED,
                               "landlock: this kernel has none; boot with lsm=landlock,... or pass --off landlock");
        ret->policy = policy;
        if (str_copy(ret->hostname, sizeof(ret->hostname), host) < 0)
                return err_set(err, -ENAMETOOLONG, ERR_INVALID, "--name: at most %d characters", PLAN_HOSTNAME - 1);
        (void) snprintf(ret->etc_hosts, sizeof(ret->etc_hosts), "127.0.0.1 localhost %s\n::1 localhost\n",
                        ret->hostname);
        (void) snprintf(ret->etc_hostname, sizeof(ret->etc_hostname), "%s\n", ret->hostname);
        r = network_fill(ret, req, facts, err);
        if (r < 0)
                return r;
        ret->off = req->off;
        ret->rootless = facts->rootless;
        ret->uid = ret->gid = policy->user == POLICY_USER_ROOT ? 0 : PLAN_USER;
        ret->home = policy->user == POLICY_USER_ROOT ? "/root" : "/home/user";
        ret->profile = profiles[policy->syscalls];
        ret->landlock_abi = (req->off & PLAN_OFF_LANDLOCK) ? 0 : facts->landlock_abi;
        if (policy->limits.io_bytes_per_s == 0)
                ret->off |= PLAN_OFF_IO;
        nodes_fill(ret, facts);
        r = template_host(ret, req, facts, err);
        if (r == 0)
                r = mounts_of_policy(ret, err);
        if (r < 0)
                return r;
        limits_fill(ret);
        landlock_fill(ret);
        deviations_fill(ret, req, facts);
        return 0;
}
