/* seccomp.h - the system-call profiles: programs generated at build time from tables, and what they say. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct err;
struct sys_bpf_insn;

enum seccomp_profile { SECCOMP_AGENT, SECCOMP_STRICT, SECCOMP_DEBUG, SECCOMP_PROFILES };

/* A program for this machine's architecture. Intent calls answer through a notification listener when notify is
 * asked for; without a listener (or when it is closed) they answer ENOSYS, so both fail closed. */
struct seccomp_program {
        const struct sys_bpf_insn *insns;
        unsigned short n;
        char hash[HASH_TEXT]; /* of the instruction bytes */
};

void seccomp_program(enum seccomp_profile profile, struct seccomp_program *ret);

/* One row of the table: what a profile answers to a call. */
struct seccomp_row {
        const char *name;
        int nr;             /* on this architecture */
        const char *answer; /* "allow", "rule:<name>", "notify", or an errno name */
        const char *reason; /* why, in a few words */
};

/* Rows of a profile, for evidence and `gabion plan`; calls not listed answer ENOSYS. */
const struct seccomp_row *seccomp_rows(enum seccomp_profile profile, size_t *ret_n);

/* A call refused by notification, as the kernel reported it. */
struct seccomp_event {
        uint64_t id;
        uint32_t pid; /* in the reader's pid namespace */
        int nr;
        const char *name; /* from the table; "?" if unknown */
        uint64_t args[6];
};

/*
 * Reads one notification from the listener and answers it with the table's errno (never "continue"). Returns 1 and
 * fills *ev, 0 when there was nothing to read (the caller died meanwhile), negative errno when the listener is dead.
 * Never follows a pointer in the arguments.
 */
int seccomp_notify_answer(int listener_fd, enum seccomp_profile profile, struct seccomp_event *ev, struct err *err);

/* A stable text for people, such as `mount`, `unshare(CLONE_NEWUSER)` or `socket(AF_INET, SOCK_RAW)`; cut at cap. */
void seccomp_event_text(const struct seccomp_event *ev, char *dst, size_t cap);
