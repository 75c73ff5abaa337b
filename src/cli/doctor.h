/* doctor.h - what `gabion doctor` looks at: one function per primitive. Private to doctor*.c. */
#pragma once

#include <stdbool.h>

enum doctor_state { DOCTOR_OK, DOCTOR_LIMITED, DOCTOR_MISSING, DOCTOR_UNKNOWN };

/* A plain value: checks run in a child and write it into memory shared with the parent. */
struct doctor_finding {
        enum doctor_state state;
        char found[400];
        char remedy[400]; /* a command or a setting; "" when nothing is missing */
};

/* Sets state and what was found, and empties the remedy. */
void doctor_found(struct doctor_finding *f, enum doctor_state state, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void doctor_remedy(struct doctor_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Starts fn(arg) in a copy of this process, ended by SIGALRM if it hangs. Returns its pid, or a negative errno. */
int doctor_child(int (*fn)(void *arg), void *arg);
/* Waits for it: the wait status, or a negative errno. */
int doctor_wait(int pid);

/* An ordinary user needs a user namespace before anything else; root does not. 0 or a negative errno. */
int doctor_privileged(void);

/* doctor_kernel.c */
void doctor_kernel(struct doctor_finding *f);
void doctor_caller(struct doctor_finding *f);
void doctor_userns(struct doctor_finding *f);
void doctor_apparmor(struct doctor_finding *f);
void doctor_namespaces(struct doctor_finding *f);
void doctor_timens(struct doctor_finding *f);
void doctor_landlock(struct doctor_finding *f);
void doctor_seccomp(struct doctor_finding *f);
void doctor_readback(struct doctor_finding *f);
void doctor_memfd(struct doctor_finding *f);

/* doctor_files.c */
void doctor_mounts(struct doctor_finding *f);
void doctor_idmap(struct doctor_finding *f);
void doctor_overlay(struct doctor_finding *f);
void doctor_run_dir(struct doctor_finding *f);
void doctor_swap(struct doctor_finding *f);

/* doctor_network.c */
void doctor_network(struct doctor_finding *f);

/* doctor_host.c */
void doctor_cgroup_version(struct doctor_finding *f);
void doctor_cgroup(struct doctor_finding *f);
void doctor_subids(struct doctor_finding *f);
void doctor_kvm(struct doctor_finding *f);
void doctor_runsc(struct doctor_finding *f);
void doctor_qemu(struct doctor_finding *f);
void doctor_selftest(struct doctor_finding *f);
