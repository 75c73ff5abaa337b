/* gate.h - waiting for the command at the gate. Private to sandbox/. */
#pragma once

#include "sandbox/child.h"

/* Writes queued frames as far as the socket takes them. */
void gate_flush(struct sandbox *sb);
/* Flushes queued frames and waits for AP_READY: sb->ready, command_pid, pair_fd, listener_fd. here: or for AP_HERE,
 * which brings command_pid only. */
int gate_wait(struct sandbox *sb, const struct child *c, bool here, struct err *err);
/* The child's own word on why it ended. */
int gate_child_error(const struct child *c, struct err *err);
/* spawn.c: closes what only the set-up child needed, above all our copy of the agent's end of the control socket, whose
 * death must be seen as the end of the stream; the fixed numbers are reserved again. Once for each start. */
void spawn_let_go(void);
