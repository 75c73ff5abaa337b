/* idmap.h - user namespaces made for their maps. Private to sandbox/. */
#pragma once

#include "sandbox/child.h"

/* Writes the maps of the sandbox's user namespace and returns its descriptor. */
int idmap_sandbox(const struct sandbox *sb, const struct child *c, struct err *err);
/* Makes one for mounts: files of the caller on disk are the command user's inside. */
int idmap_mounts(const struct sandbox *sb, const struct plan *plan, struct child *c, struct err *err);
