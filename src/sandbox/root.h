/* root.h - the detached mounts of a sandbox's root, made by the supervisor. Private to sandbox/. */
#pragma once

#include "sandbox/child.h"

/* The root tmpfs with its skeleton: c->root_fd. */
int root_make(const struct plan *plan, struct child *c, struct err *err);
/* Every mount that shows something of the host: c->piece_fds. idmap_fd: user namespace for user_owned binds, or -1. */
int root_pieces(const struct plan *plan, struct child *c, int idmap_fd, struct err *err);
/* The Landlock rule set, at AP_FD_LANDLOCK; all but the rule for /proc, which the child adds. */
int root_landlock(const struct plan *plan, const struct child *c, struct err *err);
