/*
 * evidence.h - the state of a sandbox as the kernel tells it, compared with the plan, control by control.
 *
 * evidence_read() runs while the command waits at the gate: it fails with the name of the first control that is not as
 * planned, and then nothing may start. What it read stays in the struct, for the card and the statement.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

struct err;
struct plan;
struct sandbox;

enum { EVIDENCE_NS = 8, EVIDENCE_MOUNTS = 96 };

/* The lines of /proc/PID/status that matter. */
struct evidence_status {
        uint64_t inheritable, permitted, effective, bounding, ambient;
        uint64_t uid[4], gid[4];
        bool has_groups;
        uint64_t no_new_privs, seccomp, seccomp_filters;
        unsigned seen; /* one bit per line found; all must be */
};

struct evidence_mount {
        const char *root, *target, *options, *fstype, *source; /* into the text */
        const char *super;                                     /* options of the file system itself */
        bool propagates;                                       /* shared: or master: */
};

/* What was opened of a command at the gate. */
struct evidence_here {
        int pid; /* 0: nothing */
        int pid_fd, agent_fd, status_fd, list_fd;
};

struct evidence {
        struct evidence_here here; /* private */
        struct evidence_status outside, inside, agent;
        char ns[EVIDENCE_NS][32];      /* "pid:[4026531836]" of the command */
        char host_ns[EVIDENCE_NS][32]; /* the supervisor's own */
        char uid_map[160], gid_map[160];
        char mount_text[16384];
        struct evidence_mount mounts[EVIDENCE_MOUNTS];
        size_t n_mounts;
        char time_offsets[128];
        char net_devices[64];
        char rules_hash[HASH_TEXT];  /* of the rules of nftables, as nft lists them */
        const char *listeners_note;  /* why egress was not seen holding the listeners; NULL: it was */
        unsigned canaries;           /* attempts that were refused */
        char filter_hash[HASH_TEXT]; /* of the program read back from the kernel; "" if it cannot be read */
        const char *filter_note;     /* why not */
        uint32_t securebits;
        int landlock_errno, scope_errno;
        unsigned n_open;
        int oom_score;
        uint64_t disk_bytes;
        char plan[HASH_TEXT],
                policy[HASH_TEXT]; /* hashes that somebody has already; "": evidence_text() computes them */
};

/* The part that does not need the command: limits, namespaces, maps, mounts, network. Done while the agent starts. */
int evidence_read_early(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err);
/* What is final when the command is about to put its filter on (sandbox_wait_here()): limits, the agent. Done while it
 * does. */
int evidence_read_here(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err);
/* The rest, and what has not been read before. */
int evidence_read(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err);
/* Closes what the two have left open, when there is time for it. */
void evidence_forget(struct evidence *ev);
/* Everything, of a sandbox that goes on by itself: command_pid is a launcher, at the gate or behind it. What only it
 * can say (sb->ready) may be older, and so may the hash of its filter (NULL: it was not read): none can be taken off or
 * exchanged, and how many there are is read again. */
int evidence_read_again(const struct plan *plan, const struct sandbox *sb, const char *filter_hash,
                        struct evidence *ret, struct err *err);
/* The filter of a command at the gate, by itself. */
int evidence_read_filter(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err);

/* Reads the network back once more, at any time while the sandbox lives: the first difference, with its control's name,
 * in *err. */
int evidence_network(const struct plan *plan, const struct sandbox *sb, struct err *err);
/* A sandbox with a network whose listeners egress has: tries what must be refused. Once, before the release. */
int evidence_canary(const struct plan *plan, struct sandbox *sb, struct evidence *ret, struct err *err);

/* While it runs: a control that is not as planned any more. */
struct evidence_drift {
        char control[48]; /* "cgroup.memory", "mount", "capabilities", ... */
        char found[200];
};
/*
 * Reads limits, namespaces, mounts, network and every process again, and compares them with the plan and with what was
 * read first. 0: as it was; 1: drift; negative: the sandbox is ending, and nothing can be said.
 */
int evidence_again(const struct plan *plan, const struct sandbox *sb, const struct evidence *first,
                   struct evidence_drift *ret);

/* Parsers, pure and fuzzed. The first two: what follows the next separator, or a prefix; or NULL. */
const char *evidence_after(const char *at, char separator);
const char *evidence_past(const char *at, const char *prefix);
int evidence_parse_status(const char *text, struct evidence_status *ret);
/* Cuts text into mounts in place. Returns the number, or -EBADMSG, -E2BIG. */
int evidence_parse_mounts(char *text, struct evidence_mount *ret, size_t cap);

/* The statement as canonical JSON: everything read back, the plan's hash, the policy's hash, deviations. */
enum { EVIDENCE_TEXT = 1 << 20 }; /* room for it */
int evidence_text(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev, struct buf *into,
                  struct err *err);
/* Of that only what later read-backs are compared with: the namespaces. */
void evidence_brief(const struct evidence *ev, struct buf *into);
/* A few lines for a person. */
void evidence_card(const struct plan *plan, const struct sandbox *sb, const struct evidence *ev, bool colour,
                   struct buf *into);
