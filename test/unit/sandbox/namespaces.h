/* namespaces.h - doing something as root, and again as the root of a user namespace alone: what a rootless supervisor
 * is. Shared by the tests of network namespaces. */
#pragma once

#include <stdbool.h>

/* Skips the test if this process may not make namespaces. */
void namespaces_needed(void);
/* Runs fn(arg) in a process of its own, as root or in a user namespace; true if it returned true there. */
bool namespaces_try(bool rootless, bool (*fn)(void *arg), void *arg);
