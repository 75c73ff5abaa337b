/* tree.h - private: the hierarchies of this machine as the files of this component share them. */
#pragma once

#include "cgroup/cgroup.h"
#include "parse.h"

struct err;

enum {
        CGROUP_TEXT = 8192,  /* greatest content of a control file that we read */
        CGROUP_PATHS = 7168, /* all paths of a host together */
};

/* A hierarchy in which groups are made. */
struct cgroup_hier {
        bool v2;
        unsigned ctls;    /* BIT(enum cgroup_ctl): which limits are set here */
        int parent_fd;    /* O_PATH, the shared group "gabion"; -1 if it could not be had (optional ones only) */
        const char *path; /* of that group, as /proc/PID/cgroup shows it */
        const char *dir;  /* the same as a path of this machine; both "" if it could not be had */
};

struct cgroup_host {
        struct cgroup_hier hiers[CGROUP_MOUNTS]; /* v2, if there is one, is the first */
        size_t n;
        enum cgroup_mode mode;
        size_t used;
        char paths[CGROUP_PATHS]; /* one behind the other, because each page that is touched costs a start 3 us */
};

/* The hierarchy that carries a controller; NULL if none does. */
const struct cgroup_hier *cgroup_host_of(const struct cgroup_host *h, enum cgroup_ctl ctl);

/* Makes the group of c in one more hierarchy (index into hiers) and opens what joining it needs. */
int cgroup_group_add(struct cgroup *c, size_t hier, struct err *err);

/* A control file of c in one hierarchy. Plain negative errno. */
int cgroup_file_write(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, const char *text);
int cgroup_file_read(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, char *dst, size_t cap);
/* Opens it; flags as for open(), O_CLOEXEC is added. */
int cgroup_file_open(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, int flags);

/* The same for reading, by the descriptor through which a limit was written, if there is one. */
int cgroup_limit_read(const struct cgroup *c, const struct cgroup_hier *hier, const char *file, char *dst, size_t cap);

/* Without swap on the host a missing swap limit is harmless. 0 or 1, or negative errno. */
int cgroup_host_has_swap(void);
