/*
 * cgroup.h - one control group per sandbox, on cgroup v2, on v1, and on hybrid machines (v1 controllers, with an empty
 * v2 hierarchy used for kill and freeze, once one of them is needed). The caller does not see which it is.
 *
 * No start writes cgroup.procs: that waits for an RCU grace period, 5 to 20 ms. The child is born into the v2 group by
 * clone3(CLONE_INTO_CGROUP), and joins v1 groups by writing "0" to their tasks files itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json_emit;

enum { CGROUP_NAME = 48, CGROUP_V1_MAX = 8, CGROUP_DEVICES = 8, CGROUP_SETTINGS = 16, CGROUP_COUNTERS = 16 };

enum cgroup_mode { CGROUP_V2, CGROUP_HYBRID, CGROUP_V1 };

struct cgroup_limits {
        uint64_t memory_bytes; /* swap is always off */
        uint32_t cpu_milli;
        uint32_t pids;
        uint64_t io_bytes_per_s;                /* 0 = none */
        uint32_t io_devices[CGROUP_DEVICES][2]; /* major, minor of whole disks */
        size_t n_io_devices;
};

/* Where this process may make groups: found from /proc/self/cgroup and /proc/self/mountinfo, once per process. */
struct cgroup_host;
int cgroup_host_find(struct cgroup_host **ret, struct err *err); /* the error names what is missing and the remedy */
struct cgroup_host *cgroup_host_free(struct cgroup_host *h);
/* Where it holds its descriptors, for a child process that is to keep them. Returns how many, CGROUP_V1_MAX + 1 at
 * most.
 */
size_t cgroup_host_fds(struct cgroup_host *h, int *fds[]);
enum cgroup_mode cgroup_host_mode(const struct cgroup_host *h);
/* Quick and without a host: must a process be born into its group (v2), or may it join later by itself (v1)? */
bool cgroup_is_by_birth(void);

struct cgroup {
        char name[CGROUP_NAME];
        enum cgroup_mode mode;
        int v2_fd;                    /* directory in the v2 hierarchy: for CLONE_INTO_CGROUP; -1 on v1 and hybrid */
        int tasks_fds[CGROUP_V1_MAX]; /* v1: the child writes "0" to each */
        size_t n_tasks;
        bool counted;                   /* private: see cgroup_make_first() */
        bool older;                     /* private: it may have its limits already */
        unsigned made;                  /* in which hierarchies of the host the group exists; only for cgroup_refer() */
        int limit_fds[CGROUP_SETTINGS]; /* private: files of limits that were written, plus one; for reading back */
        int usage_fds[CGROUP_COUNTERS]; /* private: files of counters that will be read, plus one */
        const struct cgroup_host *host;
};

/*
 * Makes the groups, in two steps for a start that must not wait: the first makes what clone3(CLONE_INTO_CGROUP) needs
 * (the v2 group, or on pure v1 all), the second the rest. -EEXIST if the name is taken; each removes what it made when
 * it fails. counted: processor time is asked for later; a hybrid machine counts it in a v2 group, which it does without
 * otherwise, until the sandbox is frozen or killed.
 */
int cgroup_make_first(const struct cgroup_host *h, const char *name, bool counted, struct cgroup *ret, struct err *err);
int cgroup_make_rest(struct cgroup *c, struct err *err);
/* For a child that was not born into its v2 group after all: it is one more file to write "0" to, slowly. */
int cgroup_join_late(struct cgroup *c, struct err *err);
/* Writes all limits, before anything runs inside. */
int cgroup_limit(struct cgroup *c, const struct cgroup_limits *l, struct err *err);
/* Reads every limit back and compares; the error names the control ("cgroup.memory", "cgroup.pids", ...). */
int cgroup_verify(const struct cgroup *c, const struct cgroup_limits *l, struct err *err);
/* Is pid a member of every group? Compares /proc/PID/cgroup with the paths. */
int cgroup_verify_member(const struct cgroup *c, int proc_fd, int pid, struct err *err);

struct cgroup_usage {
        uint64_t memory_peak_bytes;
        uint64_t memory_bytes;       /* now, */
        uint64_t memory_cache_bytes; /* and what of it is files that nobody uses and that can go at once */
        uint64_t oom_kills;          /* processes killed for memory */
        uint64_t pids_refused;       /* forks refused for the pids limit */
        uint64_t tasks;              /* processes and threads inside now */
        uint64_t cpu_us;             /* 0 when this host does not count it */
};
enum cgroup_ask {
        CGROUP_EVENTS = 1, /* what was refused or killed (oom_kills, pids_refused); the rest is 0 */
        CGROUP_TOTALS = 2, /* oom_kills, memory_peak_bytes, cpu_us */
        CGROUP_ALL = 4,
        CGROUP_LEVELS = 8, /* memory_peak_bytes and tasks, which cost little */
};
/* Opens the files beforehand, for an end that must be quick. What cannot be opened is tried again then. */
void cgroup_usage_open(struct cgroup *c, enum cgroup_ask ask);
int cgroup_usage(const struct cgroup *c, enum cgroup_ask ask, struct cgroup_usage *ret, struct err *err);

/* Processes inside now, at most cap of them. Returns how many. */
int cgroup_pids(const struct cgroup *c, int *dst, size_t cap);

int cgroup_freeze(struct cgroup *c, bool frozen, struct err *err); /* returns when the state is reached */
bool cgroup_is_frozen(const struct cgroup *c);                     /* or about to be */
/* Kills every process inside, also frozen ones, and waits until the group is empty. */
int cgroup_kill(struct cgroup *c, struct err *err);
/* Removes the groups; they must be empty (retries EBUSY up to a second). Also closes the descriptors. */
int cgroup_remove(struct cgroup *c, struct err *err);
int cgroup_remove_now(struct cgroup *c, struct err *err); /* without retrying */

/* Closes the descriptors only; somebody else removes the groups. */
/* The files that only a start needs. */
void cgroup_close_start(struct cgroup *c);
void cgroup_close(struct cgroup *c);

/*
 * Names the groups without opening any. made: of the group when it was made; it can be limited and compared then. 0 is
 * for cgroup_usage() and cgroup_remove_now() alone: what is not there is not removed.
 */
int cgroup_refer(const struct cgroup_host *h, const char *name, unsigned made, struct cgroup *ret, struct err *err);

/* Opens the groups of a name that an earlier process left behind, so that they can be killed and removed. */
int cgroup_open(const struct cgroup_host *h, const char *name, struct cgroup *ret, struct err *err);

/*
 * The directory in which groups of the i-th hierarchy are made; NULL after the last, "" for one that is out of reach.
 * For a cleaner that may not use libc: it removes DIR/NAME in each, after "1" was written to DIR/NAME/cgroup.kill where
 * there is such a file. Borrowed from the host. Never more than CGROUP_V1_MAX + 1.
 */
const char *cgroup_parent(const struct cgroup_host *h, size_t i);

/* Facts for evidence as one object: paths, and the limit files with their contents. */
int cgroup_describe(const struct cgroup *c, struct json_emit *e, const char *key, struct err *err);
