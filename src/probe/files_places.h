/* files_places.h - rows of group G about writing where the system lives, links, overlay marks and Landlock gaps. */
#pragma once

#include "probe/probe.h"

#define FILES_PLACES(ROW)                                                                                              \
        ROW("G09a", PROBE_HIGH, "create a file in /", "persistence", place_slash)                                      \
        ROW("G09b", PROBE_HIGH, "create a file in /etc", "persistence", place_etc)                                     \
        ROW("G09c", PROBE_HIGH, "create a file in /usr", "persistence", place_usr)                                     \
        ROW("G09d", PROBE_HIGH, "create a file in /usr/bin", "persistence", place_usr_bin)                             \
        ROW("G09e", PROBE_HIGH, "create a file in /usr/lib", "persistence", place_usr_lib)                             \
        ROW("G09f", PROBE_HIGH, "create a file in /usr/local/bin", "persistence", place_usr_local_bin)                 \
        ROW("G09g", PROBE_HIGH, "create a file in /lib/modules", "persistence", place_lib_modules)                     \
        ROW("G09h", PROBE_HIGH, "create a file in /boot", "persistence", place_boot)                                   \
        ROW("G09i", PROBE_MED, "create a file in /dev", "persistence", place_dev)                                      \
        ROW("G09j", PROBE_MED, "create a file in /proc", "persistence", place_proc)                                    \
        ROW("G09k", PROBE_MED, "create a file in /sys", "persistence", place_sys)                                      \
        ROW("G09l", PROBE_MED, "create a file in /var", "persistence", place_var)                                      \
        ROW("G09m", PROBE_MED, "create a file in /var/lib", "persistence", place_var_lib)                              \
        ROW("G09n", PROBE_MED, "create a file in /opt", "persistence", place_opt)                                      \
        ROW("G09o", PROBE_MED, "create a file in /root", "persistence", place_root)                                    \
        ROW("G09p", PROBE_MED, "create a file in /home", "persistence", place_home)                                    \
        ROW("G09q", PROBE_HIGH, "create a file in /etc/ssl/certs", "persistence", place_etc_ssl_certs)                 \
        ROW("G09r", PROBE_HIGH, "create a file in /etc/alternatives", "persistence", place_etc_alternatives)           \
        ROW("G09s", PROBE_HIGH, "create a file in /etc/cron.d", "persistence", place_etc_crond)                        \
        ROW("G09t", PROBE_MED, "create a file in /.gabion", "persistence", place_gabion)                               \
        ROW("G09u", PROBE_HIGH, "unnamed file (O_TMPFILE) in /usr", "persistence", place_tmpfile)                      \
        ROW("G09v", PROBE_CRIT, "open /etc/passwd for writing", "persistence", place_write_passwd)                     \
        ROW("G09w", PROBE_CRIT, "open /bin/sh for writing", "persistence", place_write_sh)                             \
        ROW("G09x", PROBE_HIGH, "change the times of /bin/sh to what they are", "shared inode", place_times_sh)        \
        ROW("G09y", PROBE_HIGH, "directory in /usr/bin", "persistence", place_mkdir)                                   \
        ROW("G09z", PROBE_HIGH, "symbolic link in /etc", "persistence", place_symlink)                                 \
        ROW("G18a", PROBE_MED, "hard link of /usr/bin/env into /tmp", "protected_hardlinks", place_link)               \
        ROW("G18b", PROBE_MED, "hard link by a descriptor of the file", "linkat AT_EMPTY_PATH", place_link_fd)         \
        ROW("G18c", PROBE_MED, "hard link by /proc/self/fd", "linkat AT_SYMLINK_FOLLOW", place_link_proc)              \
        ROW("G18d", PROBE_MED, "hard link of an own file into /usr", "", place_link_into)                              \
        ROW("G21a", PROBE_CRIT, "trusted.overlay attribute on an own file", "CVE-2023-2640", place_xattr_trusted)      \
        ROW("G21b", PROBE_MED, "user.overlay.opaque on an own directory", "CVE-2023-0386", place_xattr_user)           \
        ROW("G21c", PROBE_MED, "user.overlay.redirect on an own directory", "CVE-2023-0386", place_xattr_redirect)     \
        ROW("G21d", PROBE_MED, "whiteout by mknod 0:0", "overlay", place_whiteout)                                     \
        ROW("G21e", PROBE_MED, "whiteout by renameat2", "overlay", place_whiteout_rename)                              \
        ROW("G30a", PROBE_LOW, "lock a shared read-only file", "covert channel", place_flock)                          \
        ROW("G30b", PROBE_LOW, "lease on a shared read-only file", "covert channel", place_lease)                      \
        ROW("G30c", PROBE_LOW, "watch a shared system directory", "covert channel", place_watch)                       \
        ROW("G33a", PROBE_MED, "truncate /bin/sh to the size it has", "Landlock truncate", place_truncate)             \
        ROW("G33b", PROBE_MED, "rename an own file into /usr/bin", "Landlock refer", place_rename)                     \
        ROW("G33c", PROBE_MED, "FIFO in /usr/bin", "Landlock make_fifo", place_fifo)                                   \
        ROW("G33d", PROBE_MED, "socket in /usr/bin", "Landlock make_sock", place_sock)                                 \
        ROW("G33e", PROBE_MED, "reopen an O_PATH descriptor of /bin/sh for writing", "Landlock", place_reopen)         \
        ROW("G40a", PROBE_CONTROL, "write and read a file in /tmp", "", place_control_tmp)                             \
        ROW("G40b", PROBE_CONTROL, "write to /dev/null", "", place_control_null)                                       \
        ROW("G40c", PROBE_CONTROL, "run a program from /tmp", "", place_control_exec)

#define ROW_DECLARE(id, severity, what, technique, fn) void fn(const struct probe_canaries *c, struct probe_result *r);
FILES_PLACES(ROW_DECLARE)
#undef ROW_DECLARE
