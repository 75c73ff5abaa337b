/* child.h - what the set-up child is told, in memory that it shares with the supervisor. Private to sandbox/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cgroup/cgroup.h"
#include "plan/plan.h"
#include "sandbox/sandbox.h"

struct netns_job;

/* What the supervisor has finished; the child waits for each before it uses what belongs to it. */
enum child_stage { STAGE_NONE, STAGE_ROOT, STAGE_PIECES, STAGE_GROUPS, STAGE_AGENT, STAGE_GIVE_UP };

enum {
        CHILD_FD_AGENT = 6, /* the sealed agent image, close-on-exec; all other descriptors are above */
        CHILD_WAIT_MS = 10000,
};

struct child {
        uint32_t stage;  /* futex word, written by the supervisor */
        uint32_t net;    /* futex word: 1 = the network namespace exists */
        uint32_t built;  /* futex word: 1 = namespaces, maps and mounts are final */
        uint32_t failed; /* 1 + index into child_steps, written by the child */
        uint32_t runs;   /* 1 = it has got a processor */
        int32_t code;    /* negative errno of that step */
        int parent_pidfd, proc_fd;
        bool scored; /* the agent and the command have their OOM score */
        bool born;   /* into its v2 group; otherwise it joins all its groups itself */
        int tasks_fds[CGROUP_V1_MAX];
        size_t n_tasks;
        char time_offsets[96];
        size_t n_time_offsets;
        int userns_fd;
        uint32_t user; /* host id of the command's user */
        int root_fd;
        struct netns_job *job;      /* makes the network of a plan that has one; NULL: loopback only */
        int pool_fd;                /* a network namespace that is ready; -1: none */
        int piece_fds[PLAN_MOUNTS]; /* detached mounts, in the plan's order; -1 = nothing to attach */
        bool piece_is_dir[PLAN_MOUNTS];
        const struct plan *plan;
        const void *cpus; /* struct sandbox_keep */
        enum sandbox_weaken weaken;
};

/* Body of the set-up child; exec's the agent and does not return but on failure. */
int child_main(void *arg);
/* Body of the process that holds a new user namespace open until its maps are written. */
int child_hold(void *arg);
/* skeleton.c: fills the root tmpfs; *ret_where is what could not be made. The caller sets the umask to 0. */
int skeleton_fill(const struct child *c, int root_fd, const char **ret_where);
/* mkdir -p of a mount's target below the current directory. */
int skeleton_target(const struct child *c, size_t mount);
/* Writes a text into an existing file, at once. */
int child_write(int dir_fd, const char *path, const char *text, size_t n);
/* Brings lo up in the current network namespace, and opens its low ports to everybody in it. */
int child_loopback(int proc_fd);
/* Name of a failed step, for messages. */
const char *child_step(uint32_t failed);

#ifdef GABION_WEAKEN
#define WEAK(c, what) ((c)->weaken == (what))
#else
#define WEAK(c, what) ((void) (c), 0)
#endif
