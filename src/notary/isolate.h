/* isolate.h - the notary gives up what it does not need, in stages; each is required. Private to notary/. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct err;

/* Nothing inherited stays open, nothing can be gained, nobody looks in. */
int isolate_start(struct err *err);
/* Another user, for good. readers: the one group that stays, or (gid_t) -1. */
int isolate_user(uid_t uid, gid_t gid, gid_t readers, struct err *err);
/* Ends in order when the parent does, or has done so already. After isolate_user(), which would undo it. */
int isolate_with_parent(pid_t parent, struct err *err);
/* Files: the log, and the socket's place for its removal. Nothing can be executed. */
int isolate_fs(int log_fd, int socket_dir_fd, struct err *err);
/* System calls: what plain programs need. Last, when the key is loaded: locking its memory is not among them. */
int isolate_calls(struct err *err);
