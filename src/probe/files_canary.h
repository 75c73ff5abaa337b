/* files_canary.h - rows of group G about the root directory, and a file of the host by every name it may have. */
#pragma once

#include "probe/probe.h"

#define FILES_CANARY(ROW)                                                                                              \
        ROW("G07a", PROBE_CRIT, "the root is the root of a disk", "no pivot_root", root_is_disk)                       \
        ROW("G07b", PROBE_CRIT, "/.. leads elsewhere", "no pivot_root", root_dotdot)                                   \
        ROW("G07c", PROBE_CRIT, "/proc/self/root/.. leads elsewhere", "no pivot_root", root_proc_self)                 \
        ROW("G07d", PROBE_CRIT, "/proc/1/root is another root", "no pivot_root", root_of_init)                         \
        ROW("G07e", PROBE_CRIT, "the root of any other process is another", "no pid namespace", root_of_others)        \
        ROW("G07f", PROBE_HIGH, "the old root left mounted", "pivot_root without umount", root_old_left)               \
        ROW("G08a", PROBE_CRIT, "host file by its plain path", "", canary_plain)                                       \
        ROW("G08b", PROBE_CRIT, "host file by /proc/1/root", "magic link", canary_init_root)                           \
        ROW("G08c", PROBE_CRIT, "host file by /proc/self/root", "magic link", canary_self_root)                        \
        ROW("G08d", PROBE_CRIT, "host file by /proc/thread-self/root", "magic link", canary_thread_root)               \
        ROW("G08e", PROBE_CRIT, "host file by /proc/self/task/N/root", "magic link", canary_task_root)                 \
        ROW("G08f", PROBE_CRIT, "host file by /proc/1/cwd and ..", "magic link", canary_init_cwd)                      \
        ROW("G08g", PROBE_CRIT, "host file by /proc/self/cwd and ..", "magic link", canary_self_cwd)                   \
        ROW("G08h", PROBE_CRIT, "host file by every /proc/N/root", "magic link", canary_every_root)                    \
        ROW("G08i", PROBE_CRIT, "host file by the root of a host process", "magic link", canary_host_pid)              \
        ROW("G08j", PROBE_CRIT, "host file by a symbolic link of our own", "", canary_symlink)                         \
        ROW("G08k", PROBE_CRIT, "host file by many .. from /tmp", "", canary_dotdot)                                   \
        ROW("G08l", PROBE_CRIT, "host file by openat2 without beneath", "", canary_openat2)                            \
        ROW("G08m", PROBE_CRIT, "host file as an O_PATH descriptor", "", canary_o_path)                                \
        ROW("G08n", PROBE_CRIT, "host file for writing", "", canary_write)                                             \
        ROW("G08o", PROBE_HIGH, "stat of the host file", "", canary_stat)                                              \
        ROW("G08p", PROBE_HIGH, "list the host file's directory", "", canary_list)                                     \
        ROW("G08q", PROBE_HIGH, "enter the host file's directory", "", canary_chdir)                                   \
        ROW("G08r", PROBE_HIGH, "watch the host file", "inotify", canary_watch)                                        \
        ROW("G08s", PROBE_HIGH, "hard link to the host file", "", canary_link)                                         \
        ROW("G08t", PROBE_HIGH, "extended attributes of the host file", "", canary_xattr)                              \
        ROW("G08u", PROBE_CRIT, "search the tree for the host file's name", "", canary_search)                         \
        ROW("G08v", PROBE_LOW, "the host file's directory named in mountinfo", "layout leak", canary_mountinfo)        \
        ROW("G08w", PROBE_CRIT, "canary text on standard input", "", canary_stdin)

#define ROW_DECLARE(id, severity, what, technique, fn) void fn(const struct probe_canaries *c, struct probe_result *r);
FILES_CANARY(ROW_DECLARE)
#undef ROW_DECLARE
