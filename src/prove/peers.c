/*
 * peers.c - how other sandboxes are called for a comparison: the ordinary hardened options of each, as its own manual
 * suggests them, and nothing that its default would refuse. They are shown in the report, so that nobody has to guess
 * what was compared.
 *
 * A name may have several lines: the next is tried where the one before does not run.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "prove/attack.h"
#include "prove/prove.h"

#define PODMAN(runtime)                                                                                                \
        "podman --root {bundle}/storage --runroot {bundle}/state --tmpdir {bundle}/tmp --storage-driver vfs "          \
        "--cgroup-manager cgroupfs --events-backend none " runtime                                                     \
        "run -i --rm --name {name} --cgroup-parent {name} --cgroups no-conmon --log-driver none --network none "       \
        "--read-only --cap-drop all --security-opt no-new-privileges --user 1000:1000 --uidmap 0:1878982656:65536 "    \
        "--pids-limit 256 --memory 512m --cpus 1 --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "                  \
        "--rootfs {bundle}/rootfs /probe {args}"

static const struct peer {
        const char *name, *command;
        bool bundle;
} peers[] = {
        { "bwrap",
          "bwrap --unshare-all --unshare-user --disable-userns --die-with-parent --new-session --clearenv --cap-drop ALL "
          "--uid 1000 --gid 1000 --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib "
          "--symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /home --ro-bind {probe} /probe "
          "/probe {args}",
          false },
        { "firejail",
          "firejail --quiet --noprofile --seccomp --caps.drop=all --nonewprivs --noroot --net=none --private-dev "
          "--private {}",
          false },
        { "crun", "crun --root {bundle}/state run --bundle {bundle} {name}", true },
        { "runc", "runc --root {bundle}/state run --bundle {bundle} {name}", true },
        { "runsc", "runsc --root {bundle}/state --network=none run --bundle {bundle} {name}", true },
        { "podman", PODMAN(""), true },
        { "podman", PODMAN("--runtime runc "), true },
};

const char *prove_peer_command(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
                if (str_eq(peers[i].name, name))
                        return peers[i].command;
        return NULL;
}

const char *prove_peer_name(size_t i) {
        size_t n = 0;

        for (size_t k = 0; k < ARRAY_SIZE(peers); k++)
                if ((k == 0 || !str_eq(peers[k].name, peers[k - 1].name)) && n++ == i)
                        return peers[k].name;
        return NULL;
}

/* Where programs are; PATH is the caller's matter, and some of these are in sbin. */
static bool is_installed(const char *name) {
        static const char *const dirs[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                            "/usr/bin",        "/sbin",          "/bin" };
        char path[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
                if (access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

int prove_peer(const char *name, const char *groups, struct prove_report *ret, struct err *err) {
        int r = err_set(err, -EINVAL, ERR_INVALID, "%.40s is not known", name);

        if (prove_peer_command(name) && !is_installed(name))
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "it is not installed");
        for (size_t i = 0; r < 0 && i < ARRAY_SIZE(peers); i++)
                if (str_eq(peers[i].name, name))
                        r = prove_other(name, peers[i].command, peers[i].bundle, groups, ret, err);
        return r;
}

int prove_wrap(const char *name, const char *command, const char *groups, struct prove_report *ret, struct err *err) {
        return prove_other(name, command, strstr(command, "{bundle}") != NULL, groups, ret, err);
}
