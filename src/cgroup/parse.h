/* parse.h - private: what the kernel says about control groups, as text, turned into values. Pure, so it is fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The controllers we care about; the others (cpuset, devices, ...) are left alone. */
enum cgroup_ctl { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_IO, CGROUP_FREEZER, CGROUP_CPUACCT, CGROUP_CTLS };

enum { CGROUP_PATH = 1024, CGROUP_MOUNTS = 8 };

/* This process steps into a leaf of that name when its own group has to become an inner node (see host.c). */
#define CGROUP_SUPERVISOR "gabion-supervisor"

/* One mounted hierarchy. */
struct cgroup_mount {
        bool v2;
        unsigned ctls;     /* v1: BIT(enum cgroup_ctl) of what is attached */
        const char *root;  /* the group that is seen at `point` */
        const char *point; /* where it is mounted */
};

struct cgroup_layout {
        struct cgroup_mount mounts[CGROUP_MOUNTS];
        size_t n, used;
        char paths[4 * CGROUP_MOUNTS * CGROUP_PATH]; /* one behind the other; the mounts point into it */
};

/* Name of a controller on v1 ("blkio") or v2 ("io"); NULL if there is none on v2. */
const char *cgroup_ctl_name(enum cgroup_ctl ctl, bool v2);

/*
 * /proc/self/mountinfo to the hierarchies that matter: one entry for each. Of several mounts of the same hierarchy the
 * one below /sys/fs/cgroup is kept, and of several at one place the last, which is on top. Lines that make no sense are
 * skipped: a controller that is then missing is reported by the caller.
 */
void cgroup_parse_mountinfo(const char *text, struct cgroup_layout *ret);

/* The path in the line of one hierarchy of /proc/PID/cgroup; ctl is ignored for v2. -ENOENT, -ENAMETOOLONG. */
int cgroup_parse_member(const char *text, bool v2, enum cgroup_ctl ctl, char *dst, size_t cap);

/*
 * Where this process may make groups, relative to the mount: its own group, or the parent of that if it is our
 * supervisor leaf. "" is the mount itself. -ENOENT when the own group cannot be seen through this mount.
 */
int cgroup_parse_home(const char *root, const char *own, char *dst, size_t cap);

/* "key value" lines (memory.events, cpu.stat, ...). -ENOENT, -EINVAL, -ERANGE. */
int cgroup_parse_key(const char *text, const char *key, uint64_t *ret);

/* BIT(enum cgroup_ctl) of a blank-separated list of v2 names (cgroup.controllers). */
unsigned cgroup_parse_controllers(const char *text);

/* Is there a line that starts with the word `first` and has the word `word` after it? (io.max and the like) */
bool cgroup_parse_has_word(const char *text, const char *first, const char *word);
