/*
 * files.c - group G: descriptors, paths, mounts and local sockets. Puts the parts (files_*.c) into one table.
 *
 * Invariant: an id stands once, in one of the row lists; each row's function is declared from the same list.
 */
#include "probe/files_canary.h"
#include "probe/files_fds.h"
#include "probe/files_mounts.h"
#include "probe/files_places.h"
#include "probe/files_sockets.h"
#include "probe/probe.h"

#define ROW(id, severity, what, technique, fn) { id, severity, what, technique, fn },

const struct probe_attempt probe_files[] = {
        FILES_FDS(ROW) FILES_CANARY(ROW) FILES_PLACES(ROW) FILES_MOUNTS(ROW) FILES_SOCKETS(ROW){ 0 },
};
