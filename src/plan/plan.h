/*
 * plan.h - everything a sandbox will get, as one value: namespaces, maps, mounts, limits, filter and rules.
 *
 * Compiling a plan is pure (policy and host facts in, plan out). The sandbox component executes the plan and nothing
 * else, and the evidence component compares the kernel's state with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "plan/net.h"
#include "policy/net.h"
#include "policy/policy.h"
#include "seccomp/seccomp.h"

/* Below /proc; covered by a boot id of our own instead of an empty file. */
#define PLAN_BOOT_ID "sys/kernel/random/boot_id"

/* Most terminals of one sandbox, as devpts wants it: the machine's are counted together. */
#define PLAN_TERMINALS "64"

struct err;
struct json;

enum {
        PLAN_MOUNTS = 64,
        PLAN_NODES = 48,
        PLAN_MASKS = 32,
        PLAN_RLIMITS = 12,
        PLAN_DEVIATIONS = 2 * POLICY_MOUNTS + POLICY_NET_RESOLVE + 10,
        PLAN_USER = 1000, /* uid and gid of `user` inside */
        PLAN_IDS = 65536, /* ids of one sandbox */
        PLAN_HOSTNAME = 64,
        PLAN_SECUREBITS = 0xef, /* NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE on; KEEP_CAPS off; all locked */
        PLAN_OOM_SCORE = 500,   /* the machine's OOM killer looks at sandboxes first */
};

/* Controls that an operator may turn off by name, never silently: each becomes a deviation. */
enum plan_off { PLAN_OFF_CGROUP = 1, PLAN_OFF_LANDLOCK = 2, PLAN_OFF_IO = 4 };

/* What the compiler must know of the machine; gathered by sandbox_facts(). */
struct plan_facts {
        bool rootless;
        uint32_t caller_uid;
        int landlock_abi;         /* 0 = none */
        const char *usr_links[7]; /* of /bin /sbin /lib /lib32 /lib64 /libx32: links into /usr, then NULL */
        const char *usr_dirs[7];  /* those that are directories of their own, then NULL */
        bool has_bundle;          /* PLAN_BUNDLE is there */
        bool has_java_bundle;     /* PLAN_JAVA_BUNDLE is there */
};

/* What one command line adds to the policy. */
struct plan_request {
        const char *hostname;  /* NULL: "gabion" */
        unsigned off;          /* enum plan_off */
        bool sensitive_mounts; /* the operator overrides the refusal of dangerous sources */
        const char *home;      /* the caller's home directory, or NULL */
        bool many_users;       /* commands of root will be started too, who then needs a home */
        struct plan_way_out way_out;
};

enum plan_mount_kind {
        PLAN_BIND,     /* a host directory or file */
        PLAN_OPTIONAL, /* the same, left out when the host has none */
        PLAN_WRITABLE, /* a directory of the sandbox's own tmpfs */
        PLAN_DEVPTS,
        PLAN_DEVICE, /* rootless only: a host device node, read-only mount */
        PLAN_OWN,    /* a file of the sandbox's own root, read-only */
};

struct plan_mount {
        enum plan_mount_kind kind;
        const char *source; /* canonical host path; OWN: relative to the root; "" for the sandbox's other own */
        const char *target;
        bool writable;
        bool user_owned;   /* belongs to the command's user (idmapped for binds) */
        uint64_t landlock; /* rights below it */
        int fd;            /* O_PATH descriptor of an opened source, or -1; never part of the hash */
};

enum plan_node_kind { PLAN_DIR, PLAN_LINK, PLAN_FILE, PLAN_CHAR, PLAN_JAVA_STORE };

/* What the root tmpfs holds before it becomes read-only. */
struct plan_node {
        enum plan_node_kind kind;
        const char *path; /* relative to the root */
        const char *text; /* LINK: target; FILE: content, NULL: the plan's certificates */
        uint16_t mode;
        uint8_t major, minor;
};

struct plan_rlimit {
        const char *name;
        uint8_t resource;
        uint64_t value; /* soft and hard */
};

struct plan {
        const struct policy *policy; /* borrowed, like the strings of its mounts */
        char hostname[PLAN_HOSTNAME];
        char etc_hosts[256], etc_hostname[PLAN_HOSTNAME + 1];
        uint32_t uid, gid; /* of the command, inside */
        const char *home;
        struct plan_mount mounts[PLAN_MOUNTS]; /* in the order in which they are attached */
        size_t n_mounts;
        struct plan_node nodes[PLAN_NODES];
        size_t n_nodes;
        const char *masks[PLAN_MASKS]; /* below /proc; a trailing slash marks a directory; absent ones are skipped */
        size_t n_masks;
        uint64_t tmpfs_bytes, tmpfs_inodes;
        struct plan_rlimit rlimits[PLAN_RLIMITS];
        size_t n_rlimits;
        enum seccomp_profile profile;
        int landlock_abi;
        uint64_t landlock_fs, landlock_scoped; /* handled rights and scopes */
        uint64_t landlock_root;                /* rights at / itself (listing) */
        uint64_t landlock_proc, landlock_etc, landlock_dev;
        const struct plan_net *net; /* NULL: loopback only */
        struct plan_way_out way_out;
        bool own_certificates;    /* the sandbox trusts others than the host does */
        const char *certificates; /* PEM; known when egress is ready, never part of the hash */
        const char *java_store;   /* the same certificates */
        size_t n_java_store;
        bool java_looks_there; /* at PLAN_JAVA_BUNDLE */
        bool rootless;
        unsigned off;
        char hash[HASH_TEXT]; /* "", or what plan_hash() said before; never part of it */
        size_t n_deviations;
        char deviations[PLAN_DEVIATIONS][160]; /* most of it, and hardly ever touched: last, so that nobody clears it */
};

/*
 * Compiles *ret. Fails with the field and the remedy when the policy asks for what the facts do not allow. The mounts'
 * sources must be canonical already (see plan_mount_refused()).
 */
int plan_compile(const struct policy *policy, const struct plan_request *req, const struct plan_facts *facts,
                 struct plan *ret, struct err *err);

/* NULL, or why a canonical source path is too dangerous to show to a sandbox. home: the caller's, or NULL. */
const char *plan_mount_refused(const char *canonical, const char *home);

/* All of Landlock's file rights that an ABI knows. */
uint64_t plan_landlock_rights(int abi);

/* The plan as a document, and its hash. The caller owns *ret. */
int plan_json(const struct plan *p, struct json **ret, struct err *err);
int plan_hash(const struct plan *p, char dst[HASH_TEXT], struct err *err);
