/* fan.h - which files of a sandbox are executed, read and written, seen from the host by fanotify. Private to monitor/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"

struct err;

enum { FAN_PATH = 512, FAN_RECENT = 64 };

enum fan_kind { FAN_EXECUTED, FAN_READ, FAN_WRITTEN, FAN_LOST };

struct fan {
        int fd; /* -1: nothing is watched */
        const struct policy *policy;
        int proc_fd; /* borrowed */
        struct {
                dev_t dev;
                ino_t ino;
        } expected[POLICY_EXPECTED]; /* programs, as they were found at the start; ino 0: not there */
        struct {
                uint64_t hash, until_ns;
        } recent[FAN_RECENT]; /* told a moment ago */
};

/* What happened to which path inside. Called once for what repeats itself within a second. */
typedef void (*fan_fn)(void *arg, enum fan_kind kind, const char *path);

/* Marks the mounts, while the command still waits. 0 also when the policy watches nothing. */
int fan_start(struct fan *f, const struct policy *policy, pid_t pid, int proc_fd, struct err *err);
/* Some of what has happened, of a bounded number. How many events there were. */
unsigned fan_read(struct fan *f, fan_fn fn, void *arg);
void fan_done(struct fan *f);
