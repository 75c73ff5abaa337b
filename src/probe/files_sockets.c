/*
 * files_sockets.c - control sockets of engines, sockets that the host planted, shared memory of others.
 *
 * Invariant: a connection that works is closed without a byte sent.
 */
#include "probe/files_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "probe/files_look.h"

/* is_abstract: the name follows a NUL. Only bind or connect, nothing is sent. */
static int unix_call(const char *name, bool is_abstract, int type, bool is_bind) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        size_t n = strlen(name), skip = is_abstract ? 1 : 0;
        AUTO_FD int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t len;

        if (fd < 0)
                return -errno;
        if (n + skip >= sizeof(sa.sun_path))
                return -ENAMETOOLONG;
        memcpy(sa.sun_path + skip, name, n);
        len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + skip + n);
        if ((is_bind ? bind(fd, (struct sockaddr *) &sa, len) : connect(fd, (struct sockaddr *) &sa, len)) < 0)
                return -errno;
        return 0;
}

/* Daemons listen with either kind; the wrong one is answered with EPROTOTYPE. */
static int connect_path(const char *path) {
        int ret = unix_call(path, false, SOCK_STREAM, false);

        if (ret == -EPROTOTYPE)
                ret = unix_call(path, false, SOCK_DGRAM, false);
        return ret == -EPROTOTYPE ? unix_call(path, false, SOCK_SEQPACKET, false) : ret;
}

#define CONNECT_TO(fn, path)                                                                                           \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                probe_judge(r, connect_path(path), "");                                                                \
        }

CONNECT_TO(sock_docker, "/run/docker.sock")
CONNECT_TO(sock_docker_var, "/var/run/docker.sock")
CONNECT_TO(sock_containerd, "/run/containerd/containerd.sock")
CONNECT_TO(sock_podman, "/run/podman/podman.sock")
CONNECT_TO(sock_crio, "/run/crio/crio.sock")
CONNECT_TO(sock_dbus, "/run/dbus/system_bus_socket")
CONNECT_TO(sock_systemd, "/run/systemd/private")
CONNECT_TO(sock_notify, "/run/systemd/notify")
CONNECT_TO(sock_journal, "/run/systemd/journal/stdout")
CONNECT_TO(sock_udev, "/run/udev/control")
CONNECT_TO(sock_snapd, "/run/snapd.socket")
CONNECT_TO(sock_libvirt, "/run/libvirt/libvirt-sock")
CONNECT_TO(sock_lxd, "/var/lib/lxd/unix.socket")
CONNECT_TO(sock_incus, "/var/lib/incus/unix.socket")
CONNECT_TO(sock_buildkit, "/run/buildkit/buildkitd.sock")
CONNECT_TO(sock_gabion, "/run/gabion/gabion.sock")
CONNECT_TO(sock_x11, "/tmp/.X11-unix/X0")
CONNECT_TO(sock_user_bus, "/run/user/1000/bus")
CONNECT_TO(sock_user_podman, "/run/user/1000/podman/podman.sock")
CONNECT_TO(sock_wayland, "/run/user/1000/wayland-0")
CONNECT_TO(sock_log, "/dev/log")

void sock_ssh_agent(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        for (char **e = environ; *e; e++)
                if (str_has_prefix(*e, "SSH_AUTH_SOCK=")) {
                        look_judge(r, connect_path(*e + strlen("SSH_AUTH_SOCK=")), *e);
                        return;
                }
        probe_absent(r, "not set");
}

struct sock_scan {
        int depth, left;
        char hit[110];
};

static bool on_sock_name(const char *dir, const char *name, void *arg) {
        struct sock_scan *s = arg;
        char path[256];
        struct stat st;
        bool is_hit;

        if (--s->left < 0 || snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int) sizeof(path) ||
            lstat(path, &st) < 0)
                return false;
        if (S_ISSOCK(st.st_mode) && connect_path(path) == 0) {
                (void) str_copy(s->hit, sizeof(s->hit), path);
                return true;
        }
        if (!S_ISDIR(st.st_mode) || s->depth >= 4)
                return false;
        s->depth++;
        is_hit = look_each(path, on_sock_name, s);
        s->depth--;
        return is_hit;
}

void sock_any(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const places[] = { "/run", "/tmp", "/var/run", "/var/lib" };
        struct sock_scan s = { .left = 5000 };

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (look_each(places[i], on_sock_name, &s)) {
                        probe_reached(r, s.hit);
                        return;
                }
        probe_stopped(r, 0, "none that answers");
}

static void abstract_try(const struct probe_canaries *c, struct probe_result *r, int type, bool is_bind) {
        int ret;

        if (!c->abstract[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        ret = unix_call(c->abstract, true, type, is_bind);
        if (is_bind)
                ret = ret == -EADDRINUSE ? 0 : ret == 0 ? -EADDRNOTAVAIL : ret;
        look_judge(r, ret == -EPROTOTYPE ? 0 : ret, is_bind ? "the name is free here" : "");
}

void abstract_stream(const struct probe_canaries *c, struct probe_result *r) {
        abstract_try(c, r, SOCK_STREAM, false);
}

void abstract_seqpacket(const struct probe_canaries *c, struct probe_result *r) {
        abstract_try(c, r, SOCK_SEQPACKET, false);
}

void abstract_taken(const struct probe_canaries *c, struct probe_result *r) {
        abstract_try(c, r, SOCK_STREAM, true);
        if (r->verdict == PROBE_REACHED)
                probe_reached(r, "taken: the same names as on the host");
}

void abstract_x11(const struct probe_canaries *c, struct probe_result *r) {
        int ret = unix_call("/tmp/.X11-unix/X0", true, SOCK_STREAM, false);

        (void) c;
        if (ret == -ECONNREFUSED)
                probe_absent(r, "nobody listens");
        else
                probe_judge(r, ret, "");
}

static bool on_unix_line(char *line, void *arg) {
        const char *name = strrchr(line, ' ');
        const char *kind = arg;

        return name && name[1] == kind[0];
}

static void unix_listed(struct probe_result *r, const char *first) {
        char kind[2] = { first[0], '\0' };
        int ret = look_open("/proc/net/unix", O_RDONLY);

        if (ret < 0)
                probe_judge(r, ret, "");
        else if (look_each_line("/proc/net/unix", on_unix_line, kind))
                probe_reached(r, "names are listed");
        else
                probe_stopped(r, 0, "none");
}

struct listed {
        int n, ret;
        char name[64];
};

/* A name alone is no reach: only a connection that is let through counts. */
static bool on_abstract_line(char *line, void *arg) {
        struct listed *l = arg;
        const char *at = strstr(line, " @");

        if (!at || str_copy(l->name, sizeof(l->name), at + 2) < 0)
                return false;
        l->n++;
        l->ret = unix_call(l->name, true, SOCK_STREAM, false);
        if (l->ret == -EPROTOTYPE)
                l->ret = unix_call(l->name, true, SOCK_DGRAM, false);
        return l->ret == 0;
}

void abstract_listed(const struct probe_canaries *c, struct probe_result *r) {
        struct listed l = { 0 };

        (void) c;
        (void) look_each_line("/proc/net/unix", on_abstract_line, &l);
        if (l.n == 0)
                probe_stopped(r, 0, "none");
        else
                look_judge(r, l.ret, l.name);
}

void path_listed(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        unix_listed(r, "/");
}

static void path_by(const struct probe_canaries *c, struct probe_result *r, const char *prefix) {
        char path[160];

        if (!c->path_socket[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        (void) snprintf(path, sizeof(path), "%s%s", prefix, c->path_socket);
        look_judge(r, connect_path(path), "");
}

void path_plain(const struct probe_canaries *c, struct probe_result *r) {
        path_by(c, r, "");
}

void path_init_root(const struct probe_canaries *c, struct probe_result *r) {
        path_by(c, r, "/proc/1/root");
}

void path_self_root(const struct probe_canaries *c, struct probe_result *r) {
        path_by(c, r, "/proc/self/root");
}

static bool on_ipc_line(char *line, void *arg) {
        (void) arg;
        return !strstr(line, "key"); /* the first line names the columns */
}

static void ipc_listed(struct probe_result *r, const char *path) {
        int ret = look_open(path, O_RDONLY);

        if (ret < 0)
                probe_judge(r, ret, "");
        else if (look_each_line(path, on_ipc_line, NULL))
                probe_reached(r, "there are some");
        else
                probe_stopped(r, 0, "none");
}

void ipc_shm(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        ipc_listed(r, "/proc/sysvipc/shm");
}

void ipc_msg(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        ipc_listed(r, "/proc/sysvipc/msg");
}

void ipc_sem(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        ipc_listed(r, "/proc/sysvipc/sem");
}

static bool on_any_name(const char *dir, const char *name, void *arg) {
        (void) dir;
        probe_reached(arg, name);
        return true;
}

static void dir_empty(struct probe_result *r, const char *dir) {
        int ret = look_open(dir, O_RDONLY | O_DIRECTORY);

        if (ret < 0)
                probe_judge(r, ret, "");
        else if (!look_each(dir, on_any_name, r))
                probe_stopped(r, 0, "empty");
}

void ipc_dev_shm(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        dir_empty(r, "/dev/shm");
}

void ipc_mqueue(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        dir_empty(r, "/dev/mqueue");
}

void ipc_ns(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (look_ns_is_initial("ipc", LOOK_NS_IPC))
                probe_reached(r, "the first one");
        else
                probe_stopped(r, 0, "another");
}
