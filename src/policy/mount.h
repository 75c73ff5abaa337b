/* mount.h - which paths a mount may have. Messages are only the problem; the caller names the place. */
#pragma once

#include <stdbool.h>

struct err;

/* A host path: not empty, UTF-8, without control characters, shorter than POLICY_PATH. */
int policy_mount_check_source(const char *path, struct err *err);
/* A place inside the sandbox: absolute, normalised, not reserved; and all that holds for a source. */
int policy_mount_check_target(const char *path, struct err *err);
/* Absolute, not "/", without '.', '..', '//' and a '/' at the end. */
bool policy_path_is_normal(const char *path);
/* Two targets of one sandbox, in the order in which they are mounted: the later one must not cover the other. */
int policy_mount_check_pair(const char *target, const char *later, struct err *err);
