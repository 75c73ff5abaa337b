/*
 * calls.h - shared by the files of group C (system calls).
 *
 * A dangerous call counts as reached as soon as the kernel's own argument checks answer (EFAULT, EBADF, EINVAL...):
 * what the filter refuses says EPERM, ENOSYS or EACCES. Where the filter answers like a kernel that lacks an option
 * (ioctl: ENOTTY, prctl and seccomp: EINVAL) only success counts, and the attempt uses arguments that would succeed.
 */
#pragma once

#include "probe/probe.h"

/* No address here is ever mapped: a call that gets this far answers EFAULT and changes nothing. */
#define CALLS_BAD ((void *) 1)
#define CALLS_UPPER 0x100000000l /* a bit above what an int argument holds */

typedef void calls_fn(const struct probe_canaries *c, struct probe_result *r);

void calls_answer(struct probe_result *r, long ret);
void calls_success(struct probe_result *r, long ret);
/* Success is what ordinary programs get on purpose; why says why that is fine. */
void calls_accept(struct probe_result *r, long ret, const char *why);
/* CONTROL attempts: success is good. */
void calls_control(struct probe_result *r, long ret);

/* Defines one attempt that is one expression. */
#define CALLS_ANSWER(id, expr)                                                                                         \
        void calls_##id(const struct probe_canaries *c, struct probe_result *r) {                                      \
                (void) c;                                                                                              \
                calls_answer(r, (expr));                                                                               \
        }
#define CALLS_SUCCESS(id, expr)                                                                                        \
        void calls_##id(const struct probe_canaries *c, struct probe_result *r) {                                      \
                (void) c;                                                                                              \
                calls_success(r, (expr));                                                                              \
        }
#define CALLS_ABSENT(id, why)                                                                                          \
        void calls_##id(const struct probe_canaries *c, struct probe_result *r) {                                      \
                (void) c;                                                                                              \
                probe_absent(r, why);                                                                                  \
        }

/* Runs fn in a child that leads nothing, so that it may call setsid; its exit status, or -1 if it was killed. */
int calls_in_child(int (*fn)(void *), void *arg);
/* Makes an empty folder in a writable place; 0 or -ENOENT. The caller removes it. */
int calls_scratch(char *path, size_t cap);

/* calls_answer.c */
calls_fn calls_c01a, calls_c01b, calls_c01c, calls_c02a, calls_c02b, calls_c02c, calls_c03a, calls_c03b, calls_c04a,
        calls_c04b, calls_c04c, calls_c04d, calls_c04e, calls_c07a, calls_c07b, calls_c08a, calls_c08b, calls_c09a,
        calls_c09b, calls_c09c, calls_c22a, calls_c22b, calls_c22c, calls_c22d, calls_c22e, calls_c22f, calls_c23a,
        calls_c23b, calls_c23c, calls_c23d, calls_c24a, calls_c24b, calls_c25a, calls_c25b, calls_c25c, calls_c26a,
        calls_c26b, calls_c27a, calls_c27b, calls_c27c, calls_c27d, calls_c27e, calls_c27f, calls_c29a, calls_c29b,
        calls_c29c, calls_c29d, calls_c29e, calls_c29f, calls_c29g, calls_c29h, calls_c29i, calls_c29j, calls_c29k,
        calls_c35a, calls_c35b, calls_c35c, calls_c36a, calls_c36b, calls_c36c, calls_c36d, calls_c37a, calls_c37b;
/* calls_mount.c */
calls_fn calls_c10a, calls_c10b, calls_c10c, calls_c11a, calls_c11b, calls_c11c, calls_c11d, calls_c11e, calls_c11f,
        calls_c11g, calls_c11h, calls_c12a, calls_c12b, calls_c12c, calls_c12d, calls_c12e, calls_c12f, calls_c12g,
        calls_c12h, calls_c12i, calls_c13a, calls_c13b, calls_c13c, calls_c14a, calls_c14b, calls_c14c, calls_c14d;
/* calls_entry.c */
calls_fn calls_c15a, calls_c15b, calls_c15c, calls_c15d, calls_c16a, calls_c16b, calls_c17a, calls_c17b, calls_c17c,
        calls_c18a, calls_c19a, calls_c19b, calls_c19c, calls_c19d, calls_c19e, calls_c19f, calls_c19g, calls_c21a,
        calls_c21b, calls_c21c, calls_c21d, calls_c28a, calls_c38a;
/* calls_process.c */
calls_fn calls_c05a, calls_c05b, calls_c06a, calls_c06b, calls_c06c, calls_c06d, calls_c06e, calls_c06f, calls_c32a,
        calls_c32b, calls_c39a, calls_c39b, calls_c39c, calls_c39d, calls_c39e, calls_c39f, calls_c40a, calls_c40b,
        calls_c41a, calls_c41b, calls_c41c, calls_c41d, calls_c41e, calls_c41f, calls_c42a, calls_c44a, calls_c44b;
/* calls_memory.c */
calls_fn calls_c30a, calls_c30b, calls_c31a, calls_c33a, calls_c33b, calls_c33c, calls_c34a;
/* calls_tty.c */
calls_fn calls_c20a, calls_c20b, calls_c20c, calls_c20d, calls_c20e, calls_c43a, calls_c43b;
