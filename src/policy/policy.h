/* policy.h - what a sandbox may do, as the operator wrote it. Pure: decoding, checking, canonical form, hash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "policy/monitor.h"

struct err;
struct json;
struct policy_net; /* net.h */

enum {
        POLICY_NAME = 64,
        POLICY_PATH = 1024,
        POLICY_MOUNTS = 32,
        POLICY_FILE_BYTES = 256 * 1024, /* a larger policy file is refused before it is parsed */
};

enum policy_tier { POLICY_TIER_NS, POLICY_TIER_GVISOR, POLICY_TIER_MICROVM };
enum policy_user { POLICY_USER_USER, POLICY_USER_ROOT };
enum policy_syscalls { POLICY_SYSCALLS_AGENT, POLICY_SYSCALLS_STRICT, POLICY_SYSCALLS_DEBUG };

struct policy_mount {
        char source[POLICY_PATH]; /* as written; relative to the policy file's or the caller's directory */
        char target[POLICY_PATH]; /* absolute, normalised, inside the sandbox */
        bool writable;
};

struct policy_limits {
        uint64_t memory_bytes;
        uint32_t cpu_milli; /* 1000 = one CPU */
        uint32_t pids;
        uint64_t disk_bytes;
        uint64_t time_ms;
        uint64_t output_bytes;
        uint32_t files;          /* open descriptors per process */
        uint64_t io_bytes_per_s; /* reads and writes each, per block device; 0 = no limit (a deviation) */
};

struct policy {
        char name[POLICY_NAME];
        enum policy_tier tier;
        char template[POLICY_NAME];
        enum policy_user user;
        size_t n_mounts, n_watch;
        struct policy_limits limits;
        enum policy_syscalls syscalls;
        struct policy_net *net; /* owned; NULL: no network */
        struct policy_monitor monitor;
        /* Large and mostly empty, so they are last: a start then touches two pages instead of five. */
        struct policy_mount mounts[POLICY_MOUNTS];
        char watch[POLICY_WATCHES][POLICY_PATH]; /* paths inside whose use is recorded */
};

/* The hardened default: what `gabion run` uses when nobody says anything. Overwrites: a used policy needs policy_done()
 * first. */
void policy_default(struct policy *p);
/* Frees what is inside; of a policy that was copied by assignment, only one copy may be done. */
void policy_done(struct policy *p);
/* A copy that owns what it has. The caller frees *ret. */
int policy_copy(const struct policy *of, struct policy **ret, struct err *err);
void policy_freep(struct policy **p);

/*
 * Overlays the members of a decoded document on *p; a list of mounts, and the network as a whole, replace the one
 * before. Unknown keys, wrong types and values out of range fail with "policy: key: what is allowed". Parts of the
 * schema that this build cannot enforce are refused, never ignored. Ends with policy_check(). On failure *p is
 * unchanged.
 */
int policy_decode(const struct json *doc, struct policy *p, struct err *err);

/* The same, but of a document that may have version, name and network only: a ceiling. */
int policy_decode_net(const struct json *doc, struct policy *p, struct err *err);

/* The same from a YAML file (JSON if its name ends in .json): a regular file of at most POLICY_FILE_BYTES. Messages
 * begin with "FILE:LINE:". Mount sources become absolute. A preset still has to be expanded (net.h). */
int policy_read_file(const char *path, struct policy *p, struct err *err);
/* The same, but of a file that may have version, name and network only: a ceiling, or what --net names. */
int policy_read_net_file(const char *path, struct policy *p, struct err *err);

/* Everything again, on the finished struct, however it was made (file, command line): mounts against each other,
 * targets, ranges, and what this build can enforce. To be called last. */
int policy_check(const struct policy *p, struct err *err);

/* The canonical JSON of the effective policy; -EINVAL while a preset is not expanded. The caller frees *ret. */
int policy_canonical(const struct policy *p, char **ret, struct err *err);
int policy_hash(const struct policy *p, char dst[HASH_TEXT], struct err *err);
/* {"from","to": hashes; "more","less","other": lists of what changed}: what b allows that a did not, and vice versa,
 * rule by rule and limit by limit. All three lists are empty only if both are the same. The caller frees *ret. */
int policy_diff(const struct policy *a, const struct policy *b, struct json **ret, struct err *err);

/* Units shared by the schema and the command line. All fail with -EINVAL or -ERANGE and a message naming the field. */
int policy_parse_size(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int policy_parse_duration_ms(const char *field, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                             struct err *err);
int policy_parse_cpus(const char *field, const char *text, uint32_t *ret_milli, struct err *err);
/* SRC:DST[:ro|rw]; SRC and DST must not be empty, DST must be absolute. Default ro. */
int policy_parse_mount(const char *text, struct policy_mount *ret, struct err *err);
/* Sets one limit by name (memory cpu pids disk time output files io), with the range checks of the schema. */
int policy_set_limit(struct policy_limits *l, const char *name, const char *text, struct err *err);

const char *policy_tier_name(enum policy_tier t);
const char *policy_user_name(enum policy_user u);
const char *policy_syscalls_name(enum policy_syscalls s);
/* By name, for the command line; -EINVAL with the list of what is allowed. */
int policy_parse_syscalls(const char *text, enum policy_syscalls *ret, struct err *err);
int policy_parse_user(const char *text, enum policy_user *ret, struct err *err);
