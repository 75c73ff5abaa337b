/* isolate.h - gabiond gives up what it does not need, in stages; each is required. Private to daemon/. */
#pragma once

#include <sys/types.h>

struct err;

/* Nothing inherited stays open, nobody looks in, no new privileges, limits. */
int isolate_start(struct err *err);
/* Another user, for good, without any capability. */
int isolate_user(uid_t uid, gid_t gid, struct err *err);
/* This process is killed when its parent ends. After isolate_user(), which would undo it. */
int isolate_with_parent(pid_t parent, struct err *err);
/* Files: what is below data; the rest of the machine cannot be opened, and nothing executed. */
int isolate_files(const char *data, struct err *err);
/* System calls: what a program of this kind needs; last. */
int isolate_calls(struct err *err);
