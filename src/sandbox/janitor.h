/* janitor.h - the process beside a supervisor: holds the user namespace, cleans up at the end. Private to sandbox/. */
#pragma once

#include <stdbool.h>

#include "sandbox/child.h"

/* Starts it: sb->janitor_pid. It must come before the first directory is made, so that no moment exists in which
 * SIGKILL would leave one behind. */
int janitor_start(struct sandbox *sb, const struct child *c, struct err *err);
/* Tells it where control groups are made, before one is. */
int janitor_watch(const struct sandbox *sb, struct err *err);
/* Tells it of the socket beside the slot, before there is one. */
void janitor_announce(const char *socket_name);
/* Lets it forbid user namespaces inside: asked for when the supervisor is about to wait, and a processor free. */
void janitor_wall(const struct sandbox *sb);
/* Waits until it has forbidden user namespaces inside; negative: why it could not. */
int janitor_walled(void);
/* From now on its end is not the sandbox's: it will remove nothing. */
void janitor_keep(bool keep);
/* Lets it clean up, which janitor_wait() completes: 0 when everything is gone, else -EBUSY. */
void janitor_finish(struct sandbox *sb);
int janitor_wait(struct sandbox *sb);
/* end.c: waits for an ended child; returns its status. */
int end_reap(pid_t pid);
