/* refuse.c - host paths that no sandbox should be shown, by default: the machine, other people, engines, keys. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "plan/plan.h"

/* Is a equal to b, or an ancestor of b? Both canonical. */
static bool covers(const char *a, const char *b) {
        size_t n = strlen(a);

        if (str_eq(a, "/"))
                return true;
        return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/');
}

static bool has_component(const char *path, const char *name) {
        size_t n = strlen(name);

        for (const char *at = strstr(path, name); at; at = strstr(at + 1, name))
                if (at > path && at[-1] == '/' && (at[n] == '\0' || at[n] == '/'))
                        return true;
        return false;
}

const char *plan_mount_refused(const char *canonical, const char *home) {
        static const struct {
                const char *path, *why;
        } below[] = {
                /* the path, everything below it, and everything above it */
                { "/proc", "it is the host's process table" },
                { "/sys", "it is the host's kernel interface" },
                { "/dev", "it holds the host's devices" },
                { "/boot", "it holds the host's kernel" },
                { "/run/docker.sock", "it is a container engine's socket" },
                { "/var/run/docker.sock", "it is a container engine's socket" },
                { "/run/containerd", "it is a container engine's socket" },
                { "/run/podman", "it is a container engine's socket" },
                { "/run/crio", "it is a container engine's socket" },
                { "/run/dbus", "it is the system bus" },
                { "/run/systemd", "it is the service manager's interface" },
                { "/run/user", "it holds users' buses and sockets" },
                { "/run/gabion", "it is Gabion's own state" },
                { "/var/lib/gabion", "it is Gabion's own state" },
                { "/var/lib/docker", "it is a container engine's state" },
                { "/var/lib/containerd", "it is a container engine's state" },
                { "/var/lib/containers", "it is a container engine's state" },
                { "/var/lib/kubelet", "it is a container engine's state" },
                { "/etc/ssh", "it holds the host's keys" },
                { "/etc/ssl/private", "it holds the host's keys" },
                { "/etc/shadow", "it holds the host's passwords" },
                { "/etc/gshadow", "it holds the host's passwords" },
                { "/etc/kubernetes", "it holds a cluster's keys" },
        };
        static const char *const key_folders[] = { ".ssh",    ".gnupg", ".aws",    ".azure",         ".kube",
                                                   ".docker", "gcloud", ".gcloud", ".password-store" };
        const char *rest;

        if (str_eq(canonical, "/"))
                return "it is the whole host";
        for (size_t i = 0; i < ARRAY_SIZE(below); i++)
                if (covers(below[i].path, canonical) || covers(canonical, below[i].path))
                        return below[i].why;
        for (size_t i = 0; i < ARRAY_SIZE(key_folders); i++)
                if (has_component(canonical, key_folders[i]))
                        return "it holds keys";
        if (str_eq(canonical, "/root") || str_eq(canonical, "/home") || (home && covers(canonical, home)))
                return "it is a home directory";
        rest = str_has_prefix(canonical, "/home/") ? canonical + 6 : NULL;
        if (rest && !strchr(rest, '/'))
                return "it is a home directory";
        return NULL;
}
