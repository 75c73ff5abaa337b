/* files_fds.h - rows of group G about descriptors, the working directory, executables and standard streams. */
#pragma once

#include "probe/probe.h"

#define FILES_FDS(ROW)                                                                                                 \
        ROW("G01a", PROBE_HIGH, "inherited descriptors above 2", "CVE-2024-21626", fds_inherited)                      \
        ROW("G01b", PROBE_CRIT, "a standard stream is a directory", "CVE-2024-21626", fds_stdio_directory)             \
        ROW("G02a", PROBE_CRIT, "canary through every inherited directory", "CVE-2024-21626", fds_canary)              \
        ROW("G02b", PROBE_CRIT, "fchdir to inherited directories", "CVE-2024-21626", fds_fchdir)                       \
        ROW("G02c", PROBE_CRIT, "descriptors of pid 1 by /proc/1/fd", "CVE-2016-9962", fds_of_init)                    \
        ROW("G02d", PROBE_HIGH, "descriptors of other processes by /proc/N/fd", "CVE-2016-9962", fds_of_others)        \
        ROW("G03a", PROBE_CRIT, "working directory outside the root", "CVE-2024-21626", fds_cwd)                       \
        ROW("G03b", PROBE_CRIT, "up from the working directory, 64 times", "CVE-2024-21626", fds_cwd_up)               \
        ROW("G04a", PROBE_CRIT, "chdir to /proc/self/fd/3..20", "CVE-2024-21626", fds_chdir_proc)                      \
        ROW("G04b", PROBE_CRIT, "chdir to /proc/1/cwd", "CVE-2024-21626", fds_chdir_init)                              \
        ROW("G05a", PROBE_CRIT, "open /proc/1/exe for writing", "CVE-2019-5736", fds_exe_init)                         \
        ROW("G05b", PROBE_CRIT, "reopen /proc/1/exe for writing by an O_PATH descriptor", "CVE-2019-5736",             \
            fds_exe_init_path)                                                                                         \
        ROW("G05c", PROBE_HIGH, "open the probe's own program for writing", "CVE-2019-5736", fds_exe_self)             \
        ROW("G05d", PROBE_CRIT, "open every other /proc/N/exe for writing", "CVE-2019-5736", fds_exe_others)           \
        ROW("G05e", PROBE_LOW, "read the runtime's program by /proc/1/exe", "CVE-2019-5736", fds_exe_read)             \
        ROW("G23a", PROBE_MED, "reopen standard input for writing", "reopen by /proc", fds_reopen_0)                   \
        ROW("G23b", PROBE_MED, "reopen standard output for reading", "reopen by /proc", fds_reopen_1)                  \
        ROW("G23c", PROBE_MED, "reopen standard error for reading", "reopen by /proc", fds_reopen_2)                   \
        ROW("G24a", PROBE_HIGH, "change the inode of standard input", "inode of the caller", fds_inode_0)              \
        ROW("G24b", PROBE_HIGH, "change the inode of standard output", "inode of the caller", fds_inode_1)             \
        ROW("G24c", PROBE_HIGH, "change the inode of standard error", "inode of the caller", fds_inode_2)              \
        ROW("G24d", PROBE_MED, "seek in standard output and error", "host file as output", fds_seek)                   \
        ROW("G34a", PROBE_MED, "open own mappings by /proc/self/map_files", "alias", fds_map_files)                    \
        ROW("G34b", PROBE_MED, "list /proc/1/map_files", "alias", fds_map_files_init)

#define ROW_DECLARE(id, severity, what, technique, fn) void fn(const struct probe_canaries *c, struct probe_result *r);
FILES_FDS(ROW_DECLARE)
#undef ROW_DECLARE
