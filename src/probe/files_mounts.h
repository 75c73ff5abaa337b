/* files_mounts.h - rows of group G about the mount table, control groups and mounts of our own. */
#pragma once

#include "probe/probe.h"

#define FILES_MOUNTS(ROW)                                                                                              \
        ROW("G11a", PROBE_MED, "mounts that share with others", "mount propagation", mounts_shared)                    \
        ROW("G11b", PROBE_MED, "mounts that follow others", "mount propagation", mounts_master)                        \
        ROW("G12a", PROBE_LOW, "mounts without nosuid", "setuid planting", mounts_nosuid)                              \
        ROW("G12b", PROBE_LOW, "mounts without nodev", "device planting", mounts_nodev)                                \
        ROW("G12c", PROBE_HIGH, "system directories mounted writable", "persistence", mounts_system_rw)                \
        ROW("G12d", PROBE_MED, "writable mounts of a host disk", "persistence", mounts_disk_rw)                        \
        ROW("G12e", PROBE_HIGH, "/proc or /sys mounted writable", "control files", mounts_control_rw)                  \
        ROW("G12f", PROBE_HIGH, "host control file systems mounted", "debugfs, tracefs, cgroup", mounts_kernel)        \
        ROW("G13a", PROBE_CRIT, "open release_agent for writing", "CVE-2022-0492", cgroup_release_agent)               \
        ROW("G13b", PROBE_CRIT, "open notify_on_release for writing", "CVE-2022-0492", cgroup_notify_on_release)       \
        ROW("G14a", PROBE_HIGH, "open cgroup.procs for writing", "leave the limits", cgroup_cgroup_procs)              \
        ROW("G14b", PROBE_HIGH, "open tasks for writing", "leave the limits", cgroup_tasks)                            \
        ROW("G14c", PROBE_HIGH, "open cgroup.subtree_control for writing", "leave the limits",                         \
            cgroup_cgroup_subtree_control)                                                                             \
        ROW("G14d", PROBE_HIGH, "open memory.max for writing", "leave the limits", cgroup_memory_max)                  \
        ROW("G14e", PROBE_HIGH, "open memory.limit_in_bytes for writing", "leave the limits",                          \
            cgroup_memory_limit_in_bytes)                                                                              \
        ROW("G14f", PROBE_HIGH, "open pids.max for writing", "leave the limits", cgroup_pids_max)                      \
        ROW("G14g", PROBE_HIGH, "open cpu.max for writing", "leave the limits", cgroup_cpu_max)                        \
        ROW("G14h", PROBE_HIGH, "open cpu.cfs_quota_us for writing", "leave the limits", cgroup_cpu_cfs_quota_us)      \
        ROW("G14i", PROBE_HIGH, "open cgroup.kill for writing", "harm others", cgroup_cgroup_kill)                     \
        ROW("G14j", PROBE_HIGH, "open cgroup.freeze for writing", "harm others", cgroup_cgroup_freeze)                 \
        ROW("G14k", PROBE_CRIT, "open devices.allow for writing", "device access", cgroup_devices_allow)               \
        ROW("G14l", PROBE_HIGH, "make a control group", "leave the limits", cgroup_mkdir)                              \
        ROW("G15a", PROBE_LOW, "own group's place in the host's tree", "layout leak", cgroup_self)                     \
        ROW("G15b", PROBE_LOW, "pid 1's group in the host's tree", "layout leak", cgroup_init)                         \
        ROW("G15c", PROBE_LOW, "in the cgroup namespace of the host", "no cgroup namespace", cgroup_ns)                \
        ROW("G22a", PROBE_HIGH, "own directory bound over /proc/sys", "unmask", bind_proc_sys)                         \
        ROW("G22b", PROBE_HIGH, "own file bound over /proc/keys", "unmask", bind_proc_keys)                            \
        ROW("G22c", PROBE_HIGH, "own directory bound over /usr", "unmask", bind_usr)                                   \
        ROW("G22d", PROBE_HIGH, "own file bound over /etc/passwd", "unmask", bind_passwd)                              \
        ROW("G22e", PROBE_HIGH, "remount /usr writable", "remount", remount_usr)                                       \
        ROW("G22f", PROBE_HIGH, "mount_setattr: /usr writable", "CVE-2021-41133", setattr_usr)

#define ROW_DECLARE(id, severity, what, technique, fn) void fn(const struct probe_canaries *c, struct probe_result *r);
FILES_MOUNTS(ROW_DECLARE)
#undef ROW_DECLARE
