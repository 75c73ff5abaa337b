/* groups.h - what the tests with real control groups share: a fresh group for each test, and processes inside it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cgroup/cgroup.h"

struct CMUnitTest;
struct err;

struct groups {
        struct cgroup_host *host;
        struct cgroup c;
        struct cgroup_limits limits; /* small ones, already written */
};

/* cmocka set-up and tear-down: *state is a struct groups with a limited, empty group. */
int groups_setup(void **state);
int groups_teardown(void **state);

/* Both steps of making a group, as the mode under test wants them. */
int groups_make(const struct cgroup_host *h, const char *name, struct cgroup *ret, struct err *err);

/* Starts fn(arg) inside the group, the way a sandbox is started: born into v2, "0" written to each tasks file. It has
 * joined all of them when this returns. */
pid_t groups_start(const struct cgroup *c, int (*fn)(void *), void *arg);
/* Waits for a child; returns the status as waitpid() gives it. */
int groups_wait(pid_t pid);

/* Writes a control file of the group from outside, in whichever hierarchy has it. False if there is none. */
bool groups_poke(const struct groups *g, const char *file, const char *text);
/* Reads one, from the first hierarchy that has it. */
bool groups_peek(const struct groups *g, const char *file, char *dst, size_t cap);
/* Memory both start and tests see. */
void *groups_shared(size_t n);
void groups_sleep_ms(long ms);

/*
 * Runs the tests in the mode of this machine. On a hybrid one they run again without a v2 group until it is needed, and
 * in a mount namespace without the v2 hierarchy, which is pure v1. Needs root: the result is 77 ("skipped") for anybody
 * else.
 */
int groups_main(const char *name, const struct CMUnitTest *tests, size_t n);

/* Opens the directories in which groups are made. They stay open: a test is a short life. */
size_t groups_parents(const struct cgroup_host *h, int *dst, size_t cap);
