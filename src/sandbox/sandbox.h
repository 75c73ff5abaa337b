/*
 * sandbox.h - making, holding and ending one sandbox of the namespace tier.
 *
 * sandbox_start() and sandbox_wait() execute a plan up to the point where the command has applied every control to
 * itself and waits at the gate, so that the caller can read everything back before the first user instruction.
 * sandbox_release() lets it go; sandbox_end() removes every trace, whatever happened before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentproto/agentproto.h"
#include "base/buf.h"
#include "base/id.h"
#include "cgroup/cgroup.h"
#include "plan/plan.h"
#include "sandbox/net.h"
#include "sandbox/weaken.h"

struct err;

/* True in the twin only: there a caller may go on after a failed read-back, to see what an attack makes of it. */
bool sandbox_is_twin(void);
/* By name ("net", "seccomp", ...); WEAKEN_NONE if unknown. */
enum sandbox_weaken sandbox_weaken_parse(const char *name);

struct sandbox;

/* For a sandbox that outlives the process that makes it. */
struct sandbox_keep {
        const char *id;
        int control_fd, gate_fd;    /* listening sockets for the agent, and */
        int connected_fd;           /* a connection to the second, with SO_PASSCRED */
        int agent_fd;               /* the agent's image, sealed */
        int proc_fd;                /* a /proc of our pid namespace */
        struct cgroup_host *groups; /* where groups are made; borrowed */
        const void *cpus;           /* cpu_set_t: where it may run when we may not run everywhere; NULL: where we may */
        /* The slot is taken, and nothing made yet that could stay behind: time to write down that something will. */
        int (*claimed)(const struct sandbox *sb, void *arg, struct err *err);
        void *arg;
};

struct sandbox_request {
        const char *const *argv, *const *envp; /* NULL-terminated */
        const char *cwd;
        bool tty, no_stdin;
        bool counted; /* processor time will be asked for */
        uint16_t rows, columns;
        uint32_t output_credit;
        struct netns *net; /* taken from a pool; NULL: it is made now, if the plan has a network */
        const void *agent; /* the agent's ELF image */
        size_t agent_bytes;
        const struct sandbox_keep *keep; /* NULL: it ends with us. Else a launcher waits at the gate, no command */
        enum sandbox_weaken weaken;
};

struct sandbox {
        char id[ID_TEXT];
        unsigned slot;
        uint32_t uid_base;   /* host id (in the supervisor's user namespace) of id 0 inside */
        bool user_is_caller; /* rootless with mounts: `user` inside is the caller outside */
        char run_dir[128];
        int run_fd, slot_fd, finish_fd;
        struct cgroup_host *cgroup_host;
        struct cgroup cgroup;
        struct cgroup_limits cgroup_limits;
        bool has_cgroup;
        bool kept; /* made by struct sandbox_keep: the host of its groups is not ours */
        pid_t janitor_pid, agent_pid, command_pid, egress_pid; /* as the supervisor sees them; 0 = none */
        int agent_pidfd;
        int control_fd;   /* the agent's frames; non-blocking */
        int gate_fd;      /* AP_READY arrives here */
        int pair_fd;      /* the waiting command; -1 once released and started */
        int listener_fd;  /* refused calls; -1 = none */
        int root_fd;      /* the root tmpfs, for its free space */
        int proc_fd;      /* the host's /proc, O_PATH */
        struct netns net; /* all -1 without a network */
        enum sandbox_weaken weaken;
        int64_t time_offset_s; /* monotonic and boot time inside start from this */
        struct buf out;        /* frames not yet written to control_fd */
        struct ap_ready ready;
};

/* Takes the process into its role: as root nothing; as a user, into a user namespace with its subordinate ids. Once,
 * before anything else, while the process has one thread. */
int sandbox_enter(bool *ret_rootless, struct err *err);

/* What plan_compile() must know of this machine. */
int sandbox_facts(struct plan_facts *ret, struct err *err);

/* Sets everything up; the sandbox goes on starting by itself meanwhile. Always leaves *sb in a state that sandbox_end()
 * accepts, also on failure. One sandbox at a time per process. */
int sandbox_start(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, struct err *err);
/* Waits until namespaces, maps and mounts are final; the agent is about to start. */
int sandbox_wait_built(const struct sandbox *sb, struct err *err);
/* Waits until the command has all its controls but the filter, which it is about to put on: command_pid is known. */
int sandbox_wait_here(struct sandbox *sb, struct err *err);
/* Waits until the command stands at the gate with all its controls on. */
int sandbox_wait(struct sandbox *sb, struct err *err);
/* Waits until the waiting command has closed what it handed over. Once, before its descriptors are counted. */
int sandbox_settle(const struct sandbox *sb);
int sandbox_release(struct sandbox *sb, struct err *err);
/* Bytes for the agent. What the socket does not take now is kept in sb->out, and goes first the next time; n = 0 only
 * tries again. */
void sandbox_send(struct sandbox *sb, const void *p, size_t n);

/* Host id of id 0 inside, of root's sandbox in that slot. */
uint32_t sandbox_uid_base(unsigned slot);

/* Host id of an id inside, as the supervisor counts. */
uint32_t sandbox_host_uid(const struct sandbox *sb, uint32_t inside);

/* The same id as the machine counts it: rootless, the supervisor's own numbers are those of a user namespace. */
uint64_t sandbox_real_uid(uint64_t supervisor_id);

/* Bytes used on the sandbox's tmpfs, and whether it is full. */
int sandbox_disk(const struct sandbox *sb, uint64_t *ret_used, bool *ret_full);

/* Kills, reaps and removes everything. Safe to call twice. The first failure is reported, the rest still done. */
int sandbox_end(struct sandbox *sb, struct err *err);

/* Is somebody known to reap those who then have no parent? */
bool sandbox_can_end_soon(const struct sandbox *sb);
/* For a process that ends next, instead of sandbox_end(), where that is so: kills, and leaves the rest to the janitor,
 * as if we had been killed. False, and nothing done, if it was killed itself. */
bool sandbox_end_soon(const struct sandbox *sb);

/* Is our death the end of a sandbox that was made to be kept? At first it is; it must not be any more before somebody
 * is told of the sandbox. */
void sandbox_survive(bool survives);
/* Lets go of it: it goes on by itself. */
void sandbox_leave(struct sandbox *sb);

/* One more launcher, for the plan's uid, in a sandbox that goes on by itself: up to the gate, as sandbox_wait() does.
 * Needs agent_pid, agent_pidfd, gate_fd (connected) and proc_fd of *sb. */
int sandbox_launch(const struct plan *plan, struct sandbox *sb, struct err *err);

/* Ends sandboxes whose supervisor is gone (killed with SIGKILL together with its janitor). Returns how many. */
int sandbox_sweep(const struct sandbox *sb);
