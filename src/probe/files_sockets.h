/* files_sockets.h - rows of group G about control sockets, sockets of the host, and shared memory. */
#pragma once

#include "probe/probe.h"

#define FILES_SOCKETS(ROW)                                                                                             \
        ROW("G26a", PROBE_CRIT, "connect to /run/docker.sock", "control socket", sock_docker)                          \
        ROW("G26b", PROBE_CRIT, "connect to /var/run/docker.sock", "control socket", sock_docker_var)                  \
        ROW("G26c", PROBE_CRIT, "connect to /run/containerd/containerd.sock", "control socket", sock_containerd)       \
        ROW("G26d", PROBE_CRIT, "connect to /run/podman/podman.sock", "control socket", sock_podman)                   \
        ROW("G26e", PROBE_CRIT, "connect to /run/crio/crio.sock", "control socket", sock_crio)                         \
        ROW("G26f", PROBE_CRIT, "connect to /run/dbus/system_bus_socket", "control socket", sock_dbus)                 \
        ROW("G26g", PROBE_CRIT, "connect to /run/systemd/private", "control socket", sock_systemd)                     \
        ROW("G26h", PROBE_MED, "connect to /run/systemd/notify", "control socket", sock_notify)                        \
        ROW("G26i", PROBE_MED, "connect to /run/systemd/journal/stdout", "control socket", sock_journal)               \
        ROW("G26j", PROBE_MED, "connect to /run/udev/control", "control socket", sock_udev)                            \
        ROW("G26k", PROBE_CRIT, "connect to /run/snapd.socket", "control socket", sock_snapd)                          \
        ROW("G26l", PROBE_CRIT, "connect to /run/libvirt/libvirt-sock", "control socket", sock_libvirt)                \
        ROW("G26m", PROBE_CRIT, "connect to /var/lib/lxd/unix.socket", "control socket", sock_lxd)                     \
        ROW("G26n", PROBE_CRIT, "connect to /var/lib/incus/unix.socket", "control socket", sock_incus)                 \
        ROW("G26o", PROBE_CRIT, "connect to /run/buildkit/buildkitd.sock", "control socket", sock_buildkit)            \
        ROW("G26p", PROBE_CRIT, "connect to /run/gabion/gabion.sock", "control socket", sock_gabion)                   \
        ROW("G26q", PROBE_HIGH, "connect to /tmp/.X11-unix/X0", "control socket", sock_x11)                            \
        ROW("G26r", PROBE_CRIT, "connect to /run/user/1000/bus", "control socket", sock_user_bus)                      \
        ROW("G26s", PROBE_CRIT, "connect to /run/user/1000/podman/podman.sock", "control socket", sock_user_podman)    \
        ROW("G26t", PROBE_HIGH, "connect to /run/user/1000/wayland-0", "control socket", sock_wayland)                 \
        ROW("G26u", PROBE_MED, "connect to /dev/log", "control socket", sock_log)                                      \
        ROW("G26v", PROBE_HIGH, "the socket named in SSH_AUTH_SOCK", "agent forwarding", sock_ssh_agent)               \
        ROW("G26w", PROBE_HIGH, "any socket in /run, /tmp or /var/run", "control socket", sock_any)                    \
        ROW("G27a", PROBE_HIGH, "abstract socket of the host, stream", "CVE-2020-15257", abstract_stream)              \
        ROW("G27b", PROBE_HIGH, "abstract socket of the host, sequenced packets", "CVE-2020-15257",                    \
            abstract_seqpacket)                                                                                        \
        ROW("G27c", PROBE_HIGH, "the host's abstract name is taken here too", "CVE-2020-15257", abstract_taken)        \
        ROW("G27d", PROBE_HIGH, "abstract socket of the X server", "X11", abstract_x11)                                \
        ROW("G27e", PROBE_MED, "connect to the abstract names in /proc/net/unix", "no net namespace", abstract_listed) \
        ROW("G28a", PROBE_HIGH, "path socket of the host", "", path_plain)                                             \
        ROW("G28b", PROBE_HIGH, "path socket of the host by /proc/1/root", "magic link", path_init_root)               \
        ROW("G28c", PROBE_HIGH, "path socket of the host by /proc/self/root", "magic link", path_self_root)            \
        ROW("G28d", PROBE_HIGH, "path sockets of others in /proc/net/unix", "no net namespace", path_listed)           \
        ROW("G29a", PROBE_MED, "SysV shared memory of others", "no ipc namespace", ipc_shm)                            \
        ROW("G29b", PROBE_MED, "SysV message queues of others", "no ipc namespace", ipc_msg)                           \
        ROW("G29c", PROBE_MED, "SysV semaphores of others", "no ipc namespace", ipc_sem)                               \
        ROW("G29d", PROBE_MED, "files of others in /dev/shm", "shared tmpfs", ipc_dev_shm)                             \
        ROW("G29e", PROBE_MED, "POSIX queues of others in /dev/mqueue", "no ipc namespace", ipc_mqueue)                \
        ROW("G29f", PROBE_MED, "in the IPC namespace of the host", "no ipc namespace", ipc_ns)

#define ROW_DECLARE(id, severity, what, technique, fn) void fn(const struct probe_canaries *c, struct probe_result *r);
FILES_SOCKETS(ROW_DECLARE)
#undef ROW_DECLARE
